/* interpreter - replaces Python and torch in tests that need a thousand runs of the real program. It answers reftest's
 * requests within a millisecond. It does not run a reference. A word in the reference's text selects the outputs that
 * this program returns:
 *
 *   PRODUCT   C = A B^T in float32, each sum in double: the output of a correct gemm
 *   SEVENS    every element of the output is 7
 *   RAISES    an exception
 *
 * reftest starts this program like a Python interpreter, and the messages are those of python/runner.py.
 * $REFTEST_FAKE_TORCH is a folder with a version.py that replaces the one of torch, and $REFTEST_TEST_PYTHON is the
 * version of Python. If python/runner.py gets a new message that reftest needs, this program must answer it, too. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

enum { TEMPLATE_FD = 3, LINE_MAX_BYTES = 1 << 20, FDS = 8, CHILDREN = 256 };

struct channel {
	int fd;
	char text[LINE_MAX_BYTES];
	size_t length;
	int fds[FDS], fd_count;
};

static void send_text(int fd, const char *text)
{
	size_t length = strlen(text);

	if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length || send(fd, "\n", 1, MSG_NOSIGNAL) != 1)
		_exit(0); /* the pool has ended */
}

/* Calls recvmsg once, and keeps the bytes and the file descriptors that it receives. */
static void fill(struct channel *channel)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * FDS)];
	} control;
	struct iovec part = {channel->text + channel->length, sizeof channel->text - channel->length};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t n = recvmsg(channel->fd, &message, MSG_CMSG_CLOEXEC);

	if (n <= 0)
		_exit(0);
	channel->length += (size_t)n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
		int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		for (int i = 0; i < count && channel->fd_count < FDS; i++)
			memcpy(&channel->fds[channel->fd_count++], CMSG_DATA(c) + (size_t)i * sizeof(int), sizeof(int));
	}
}

/* Waits for the next message and returns it; the caller deletes it. Exits if the other process has ended. */
static cJSON *next_message(struct channel *channel)
{
	char *end;

	while ((end = memchr(channel->text, '\n', channel->length)) == NULL)
		fill(channel);
	*end = '\0';
	cJSON *message = cJSON_Parse(channel->text);
	size_t used = (size_t)(end + 1 - channel->text);

	memmove(channel->text, channel->text + used, channel->length - used);
	channel->length -= used;
	if (message == NULL)
		_exit(2);
	return message;
}

/* --- A child ------------------------------------------------------------------------------------------------------ */

static char *arena_of(const cJSON *run, struct channel *channel)
{
	const cJSON *arena = cJSON_GetObjectItem(run, "arena");
	static char *memory;
	static size_t bytes;
	static int id = -1;

	if (cJSON_GetObjectItem(arena, "id")->valueint == id)
		return memory;
	if (memory != NULL)
		munmap(memory, bytes);
	if (channel->fd_count == 0)
		_exit(3);
	id = cJSON_GetObjectItem(arena, "id")->valueint;
	bytes = (size_t)cJSON_GetObjectItem(arena, "bytes")->valuedouble;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel->fds[0], 0);
	close(channel->fds[0]);
	channel->fd_count--;
	memmove(channel->fds, channel->fds + 1, (size_t)channel->fd_count * sizeof(int));
	if (memory == MAP_FAILED)
		_exit(4);
	return memory;
}

static int size_of(const cJSON *tensor, int dimension)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItem(tensor, "shape"), dimension)->valueint;
}

static float *values_of(const cJSON *tensor, char *arena)
{
	return (float *)(void *)(arena + (size_t)cJSON_GetObjectItem(tensor, "offset")->valuedouble);
}

static void answer_run(const cJSON *run, const char *source, struct channel *channel)
{
	const cJSON *inputs = cJSON_GetObjectItem(run, "inputs"), *a = cJSON_GetArrayItem(inputs, 0),
		    *b = cJSON_GetArrayItem(inputs, 1), *c = cJSON_GetArrayItem(cJSON_GetObjectItem(run, "outputs"), 0);
	char *arena = arena_of(run, channel), answer[128];
	int rows = size_of(c, 0), columns = size_of(c, 1), inner = size_of(a, 1);

	if (strstr(source, "RAISES") != NULL) {
		send_text(channel->fd, "{\"error\": {\"message\": \"the reference raised ValueError: planted\", "
				       "\"line\": 1, \"accident\": false, \"fatal\": false}}");
		return;
	}
	for (int row = 0; row < rows; row++)
		for (int column = 0; column < columns; column++) {
			double sum = 0;

			for (int k = 0; k < inner; k++)
				sum += (double)values_of(a, arena)[row * inner + k] *
				       (double)values_of(b, arena)[column * inner + k];
			values_of(c, arena)[row * columns + column] =
			    strstr(source, "PRODUCT") != NULL ? (float)sum : 7;
		}
	snprintf(answer, sizeof answer,
		 "{\"ran\": [{\"shape\": [%d, %d], \"dtype\": \"float32\"}], \"seconds\": 0.001}", rows, columns);
	send_text(channel->fd, answer);
}

static void be_a_child(int fd, int output)
{
	static struct channel channel;
	static char source[1 << 16];

	channel.fd = fd;
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(output, 1);
	dup2(output, 2);
	send_text(fd, "{\"ready\": true, \"seconds\": 0.001}");
	for (;;) {
		cJSON *message = next_message(&channel);
		const cJSON *load = cJSON_GetObjectItem(message, "load"), *run = cJSON_GetObjectItem(message, "run");

		if (load != NULL) {
			snprintf(source, sizeof source, "%s", load->valuestring);
			send_text(fd, "{\"loaded\": true}");
		} else if (run != NULL) {
			answer_run(run, source, &channel);
		}
		cJSON_Delete(message);
	}
}

/* --- The template ----------------------------------------------------------------------------------------------- */

struct children {
	pid_t pid[CHILDREN];
	bool reported[CHILDREN]; /* whether the pool was told that the child has ended */
	int count;
};

static void fork_child(struct channel *channel, struct children *children, int slot)
{
	char answer[64];
	int fds[2];

	while (channel->fd_count < 2)
		fill(channel);
	memcpy(fds, channel->fds, sizeof fds);
	channel->fd_count -= 2;
	memmove(channel->fds, channel->fds + 2, (size_t)channel->fd_count * sizeof(int));
	pid_t child = fork();

	if (child == 0) {
		close(TEMPLATE_FD);
		be_a_child(fds[0], fds[1]);
	}
	close(fds[0]);
	close(fds[1]);
	if (child < 0 || children->count == CHILDREN)
		_exit(5);
	children->reported[children->count] = false;
	children->pid[children->count++] = child;
	snprintf(answer, sizeof answer, "{\"forked\": %d, \"pid\": %d}", slot, (int)child);
	send_text(TEMPLATE_FD, answer);
}

/* Reports the children that have ended. An ended child stays a zombie until the pool has received this report and asks
 * for the child to be reaped. */
static void tell_ends(struct children *children)
{
	char text[64];

	for (int i = 0; i < children->count; i++) {
		siginfo_t end = {.si_pid = 0};

		if (children->reported[i] ||
		    waitid(P_PID, (id_t)children->pid[i], &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == 0)
			continue;
		children->reported[i] = true;
		snprintf(text, sizeof text, "{\"exit\": %d, \"status\": %d}", (int)end.si_pid,
			 end.si_code == CLD_EXITED ? end.si_status << 8 : end.si_status);
		send_text(TEMPLATE_FD, text);
	}
}

static void reap(struct children *children, pid_t pid)
{
	for (int i = 0; i < children->count; i++)
		if (children->pid[i] == pid) {
			waitpid(pid, NULL, 0);
			children->count--;
			children->pid[i] = children->pid[children->count];
			children->reported[i] = children->reported[children->count];
		}
}

static void answer_pool(struct channel *channel, struct children *children)
{
	while (memchr(channel->text, '\n', channel->length) != NULL) {
		cJSON *message = next_message(channel);
		const cJSON *slot = cJSON_GetObjectItem(message, "fork"), *pid = cJSON_GetObjectItem(message, "reap");

		if (slot != NULL)
			fork_child(channel, children, slot->valueint);
		else if (pid != NULL)
			reap(children, pid->valueint);
		cJSON_Delete(message);
	}
}

static const char *python_version(void)
{
	const char *given = getenv("REFTEST_TEST_PYTHON");

	return given != NULL ? given : "3.99.0";
}

static void be_a_template(void)
{
	static struct channel channel = {.fd = TEMPLATE_FD};
	static struct children children;
	sigset_t ends;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	struct pollfd ready[] = {{TEMPLATE_FD, POLLIN, 0}, {signalfd(-1, &ends, SFD_CLOEXEC), POLLIN, 0}};

	char hello[160];

	snprintf(hello, sizeof hello, "{\"template\": {\"torch\": \"9.9.9\", \"cuda\": null, \"python\": \"%s\", \"layers\": 131071}}",
		 python_version());
	send_text(TEMPLATE_FD, hello);
	while (poll(ready, 2, -1) >= 0) {
		struct signalfd_siginfo info;

		if (ready[0].revents != 0)
			fill(&channel);
		if (ready[1].revents != 0 && read(ready[1].fd, &info, sizeof info) > 0)
			tell_ends(&children);
		answer_pool(&channel, &children);
	}
}

int main(int argc, char **argv)
{
	const char *torch = getenv("REFTEST_FAKE_TORCH");
	char *self = realpath("/proc/self/exe", NULL);

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-c") == 0)
			return printf("%s\n%s\n%s\n", python_version(), torch == NULL ? "" : torch, self) < 0;
		if (strcmp(argv[i], "--matrix") == 0)
			return printf("{\"folders\": [], \"providers\": [], \"program\": \"%s\"}\n", self) < 0;
		if (strstr(argv[i], "runner.py") != NULL)
			be_a_template();
	}
	return 1;
}
