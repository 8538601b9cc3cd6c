/* device_probe - finds the class ("sm_90") and product name of a device by starting a judge that only reports them.
 * workers/pool/pool.h declares the function. */
#include "workers/pool/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "workers/pool/process.h"

extern char **environ;

enum { PROBE_MS = 60000, PROBE_ANSWER = 4096 };

static int read_probe(int fd, struct buf *out)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};
	char bytes[512];
	ssize_t got = 1;

	while (got > 0 && out->length < PROBE_ANSWER) {
		if (poll(&poll_fd, 1, PROBE_MS) != 1)
			return -1;
		got = read(fd, bytes, sizeof bytes);
		if (got > 0)
			buf_add(out, bytes, (size_t)got);
	}
	return out->length > 0 ? 0 : -1;
}

static int understand_probe(const struct buf *answer, char *class_name, size_t size, char *product, size_t product_size,
                            struct err *err)
{
	const struct json_text text = {"judge", answer->data, answer->length, 1};
	cJSON *message = json_parse(&text, err);
	const char *found = json_text_of(message, "class"), *name = json_text_of(message, "product");
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

int pool_probe_device(const char *device, char *class_name, size_t size, char *product, size_t product_size,
                      struct err *err)
{
	char *argv[] = {"reftest", "judge", "--probe", (char *)(uintptr_t)device, NULL};
	struct process judge;
	struct buf answer = {0};
	int ends[2], status = 0, rc;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "cannot create a pipe for a worker");
	const int fds[] = {-1, ends[1], STDERR_FILENO};

	rc = process_start(&judge, "/proc/self/exe", argv, environ, fds, 3, err);
	close(ends[1]);
	if (rc == 0 && read_probe(ends[0], &answer) != 0) {
		rc = -1;
		process_kill(&judge);
	}
	close(ends[0]);
	while (judge.pid != 0 && waitpid(judge.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (judge.pidfd >= 0)
		close(judge.pidfd);
	if (rc != 0 && judge.pid != 0)
		err_set(err, "the judge that probes %s did not answer: it terminated with %s", device, process_end(status).text);
	if (rc == 0)
		rc = understand_probe(&answer, class_name, size, product, product_size, err);
	buf_free(&answer);
	return rc;
}
