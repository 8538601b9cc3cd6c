/* test_channel - lines and file descriptors arrive unchanged in another process, and a peer that breaks the protocol
 * does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workers/protocol/channel.h"

struct pair {
	struct channel ours, theirs;
};

static void make_pair(struct pair *pair)
{
	struct err err = {""};
	int ours, theirs;

	assert_int_equal(channel_pair(&ours, &theirs, &err), 0);
	assert_int_equal(fcntl(theirs, F_SETFL, O_NONBLOCK), 0);
	channel_open(&pair->ours, ours);
	channel_open(&pair->theirs, theirs);
}

static void lines_come_whole_however_they_were_cut(void **state)
{
	struct pair pair;
	size_t length;

	(void)state;
	make_pair(&pair);
	assert_int_equal(write(pair.theirs.fd, "one\ntw", 6), 6);
	assert_int_equal(channel_read(&pair.ours), CHANNEL_DATA);
	assert_string_equal(channel_line(&pair.ours, &length), "one");
	assert_int_equal(length, 3);
	assert_null(channel_line(&pair.ours, &length));
	assert_int_equal(write(pair.theirs.fd, "o\n\nthree", 8), 8);
	assert_int_equal(channel_read(&pair.ours), CHANNEL_DATA);
	assert_string_equal(channel_line(&pair.ours, &length), "two");
	assert_string_equal(channel_line(&pair.ours, &length), "");
	assert_null(channel_line(&pair.ours, &length));
	assert_int_equal(channel_read(&pair.ours), CHANNEL_EMPTY);
	channel_close(&pair.theirs);
	assert_int_equal(channel_read(&pair.ours), CHANNEL_END);
	channel_close(&pair.ours);
	channel_close(&pair.ours);
}

static void a_message_larger_than_the_socket_is_sent_bit_by_bit(void **state)
{
	enum { SIZE = 1 << 20 };
	struct pair pair;
	char *text = malloc(SIZE), *line = NULL;
	size_t length = 0;

	(void)state;
	make_pair(&pair);
	memset(text, 'x', SIZE);
	channel_send(&pair.ours, text, SIZE, NULL, 0);
	channel_send(&pair.ours, "next", 4, NULL, 0);
	assert_true(channel_unsent(&pair.ours));
	while (line == NULL) {
		channel_read(&pair.theirs);
		channel_flush(&pair.ours);
		line = channel_line(&pair.theirs, &length);
	}
	assert_int_equal(length, SIZE);
	assert_memory_equal(line, text, SIZE);
	while ((line = channel_line(&pair.theirs, &length)) == NULL)
		channel_read(&pair.theirs);
	assert_string_equal(line, "next");
	assert_false(channel_unsent(&pair.ours));
	free(text);
	channel_close(&pair.ours);
	channel_close(&pair.theirs);
}

static void a_line_without_end_is_noticed(void **state)
{
	struct pair pair;
	char block[65536];
	enum channel_answer answer;

	(void)state;
	make_pair(&pair);
	memset(block, 'x', sizeof block);
	do {
		while (write(pair.theirs.fd, block, sizeof block) > 0)
			;
		answer = channel_read(&pair.ours);
	} while (answer == CHANNEL_DATA);
	assert_int_equal(answer, CHANNEL_TOO_LONG);
	assert_true(pair.ours.in.length <= CHANNEL_LINE_MAX + sizeof block);
	channel_close(&pair.ours);
	channel_close(&pair.theirs);
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void descriptors_travel_and_none_is_leaked(void **state)
{
	int before = open_descriptors(), fds[2], taken;
	struct pair pair;
	char byte = 0;

	(void)state;
	make_pair(&pair);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	channel_send(&pair.ours, "take", 4, fds, 2);
	channel_send(&pair.ours, "again", 5, fds, 2);
	assert_int_equal(channel_read(&pair.theirs), CHANNEL_DATA);
	taken = channel_take_fd(&pair.theirs); /* returns the last descriptor of the message, which is the write end of
					        * the pipe */
	assert_true(taken >= 0);
	assert_int_equal(channel_take_fd(&pair.theirs), -1);
	assert_true(fcntl(taken, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(write(taken, "b", 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(byte, 'b');
	channel_read(&pair.theirs); /* receives the second pair of descriptors, which the test does not use;
				     * channel_close must close them */
	close(taken);
	close(fds[0]);
	close(fds[1]);
	channel_close(&pair.ours);
	channel_close(&pair.theirs);
	assert_int_equal(open_descriptors(), before);
}

/* A message that arrived without some of its descriptors would be misunderstood: for example, a runner would not move
 * to its control group. */
static void all_descriptors_travel_or_none(void **state)
{
	int before = open_descriptors(), fds[CHANNEL_FDS + 1];
	struct pair pair;

	(void)state;
	for (int i = 0; i <= CHANNEL_FDS; i++)
		assert_true((fds[i] = dup(STDERR_FILENO)) >= 0);
	make_pair(&pair);
	int own = open_descriptors();

	channel_send(&pair.ours, "all", 3, fds, CHANNEL_FDS);
	assert_int_equal(open_descriptors(), own);
	for (int i = 0; i < CHANNEL_FDS; i++) {
		char byte, space[CMSG_SPACE(CHANNEL_FDS * sizeof(int))];
		struct iovec part = {&byte, 1};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
		struct cmsghdr *head;

		assert_int_equal(recvmsg(pair.theirs.fd, &message, MSG_CMSG_CLOEXEC), 1);
		head = CMSG_FIRSTHDR(&message);
		if (i > 0) {
			assert_null(head); /* only the first byte carries descriptors */
			continue;
		}
		assert_int_equal(head->cmsg_len, CMSG_LEN(CHANNEL_FDS * sizeof(int)));
		for (int j = 0; j < CHANNEL_FDS; j++) {
			int received;

			memcpy(&received, CMSG_DATA(head) + (size_t)j * sizeof received, sizeof received);
			assert_int_equal(close(received), 0);
		}
	}
	channel_send(&pair.ours, "too many", 8, fds, CHANNEL_FDS + 1);
	assert_int_equal(channel_read(&pair.ours), CHANNEL_END);
	channel_close(&pair.ours);
	channel_close(&pair.theirs);
	for (int i = 0; i <= CHANNEL_FDS; i++)
		close(fds[i]);
	assert_int_equal(open_descriptors(), before);
}

static bool readable(int fd)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};

	return poll(&poll_fd, 1, 0) == 1;
}

/* A loop that waits on an epoll instance wakes up only if the channel can be read, or if it can send the rest of a
 * message. */
static void a_loop_is_woken_when_there_is_something_to_do(void **state)
{
	enum { SIZE = 4 << 20 };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct pair pair;
	struct err err = {""};
	char *text = calloc(1, SIZE);
	size_t length;

	(void)state;
	make_pair(&pair);
	memset(text, 'y', SIZE);
	assert_int_equal(channel_watch(&pair.ours, epoll, &err), 0);
	assert_false(readable(epoll));
	channel_send(&pair.ours, text, SIZE, NULL, 0);
	assert_true(channel_unsent(&pair.ours));
	assert_false(readable(epoll)); /* the socket is full */
	while (channel_line(&pair.theirs, &length) == NULL) {
		assert_int_equal(channel_read(&pair.theirs), CHANNEL_DATA);
		if (channel_unsent(&pair.ours) && readable(epoll))
			channel_flush(&pair.ours);
	}
	assert_false(channel_unsent(&pair.ours));
	assert_false(readable(epoll)); /* nothing is left to send */
	channel_send(&pair.theirs, "answer", 6, NULL, 0);
	assert_true(readable(epoll));
	free(text);
	channel_close(&pair.ours);
	assert_false(readable(epoll));
	channel_close(&pair.theirs);
	close(epoll);
}

static void what_is_sent_to_a_peer_that_is_gone_is_dropped(void **state)
{
	struct pair pair;

	(void)state;
	make_pair(&pair);
	channel_close(&pair.theirs);
	channel_send(&pair.ours, "hello", 5, NULL, 0);
	assert_false(channel_unsent(&pair.ours));
	assert_int_equal(channel_read(&pair.ours), CHANNEL_END);
	channel_close(&pair.ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_come_whole_however_they_were_cut),
	    cmocka_unit_test(a_message_larger_than_the_socket_is_sent_bit_by_bit),
	    cmocka_unit_test(a_line_without_end_is_noticed),
	    cmocka_unit_test(descriptors_travel_and_none_is_leaked),
	    cmocka_unit_test(all_descriptors_travel_or_none),
	    cmocka_unit_test(a_loop_is_woken_when_there_is_something_to_do),
	    cmocka_unit_test(what_is_sent_to_a_peer_that_is_gone_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
