/* device_probe - finds the class (such as "sm_90") and the product name of a device. To do this, it starts a judge and
 * reads its first message. workers/pool/pool.h declares the function. */
#include "workers/pool/pool.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "workers/pool/judge_fork.h"
#include "workers/protocol/channel.h"

enum { PROBE_MS = 60000 };

/* Returns the judge's first message. Returns NULL if the judge ends or needs longer than PROBE_MS. */
static const char *read_hello(struct channel *channel, size_t *length)
{
	struct pollfd poll_fd = {channel->fd, POLLIN, 0};
	const char *line;

	while ((line = channel_line(channel, length)) == NULL)
		if (poll(&poll_fd, 1, PROBE_MS) != 1 || channel_read(channel) > CHANNEL_EMPTY)
			return NULL;
	return line;
}

static int understand_hello(const char *line, size_t length, char *class_name, size_t size, char *product,
			    size_t product_size, struct err *err)
{
	const struct json_text text = {"judge", line, length, 1};
	cJSON *message = json_parse(&text, err);
	const cJSON *hello = json_member(message, "judge");
	const char *found = json_text_of(hello, "class"), *name = json_text_of(hello, "product");
	const char *refused = json_text_of(message, "refused");
	int rc = -1;

	if (found != NULL && name != NULL) {
		snprintf(class_name, size, "%s", found);
		snprintf(product, product_size, "%s", name);
		rc = 0;
	} else if (refused != NULL) {
		err_set(err, "%s", refused);
	}
	cJSON_Delete(message);
	return rc;
}

int pool_probe_device(const struct judge_program *program, const char *device, char *class_name, size_t size,
		      char *product, size_t product_size, struct err *err)
{
	const struct judge_order order = {.device = device};
	struct process judge;
	struct channel channel;
	int socket, status = 0, rc = -1;
	size_t length;

	if (judge_fork(&judge, program, &order, &socket, err) != 0)
		return -1;
	channel_open(&channel, socket);
	const char *line = read_hello(&channel, &length);

	if (line != NULL)
		rc = understand_hello(line, length, class_name, size, product, product_size, err);
	else
		process_kill(&judge);
	channel_close(&channel); /* when the channel closes, the judge ends */
	while (waitpid(judge.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (judge.pidfd >= 0)
		close(judge.pidfd);
	if (line == NULL)
		err_set(err, "the judge that tests %s did not answer: it terminated with %s",
			device, process_end(status).text);
	return rc;
}
