/* test_remote_store - the connection to the helper process of the remote cache: the helper cannot block the run, and a
 * helper that dies or sends nonsense is reported. */
#include "remote/remote_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* A remote cache without a helper process. The test plays the helper, at the other end of the socket. */
struct world {
	struct remote *remote;
	int helper;
};

static struct world begin(int timeout_ms, int signals)
{
	struct remote_url place = {.shown = "redis://h", .timeout_ms = timeout_ms};
	struct world w;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	w.helper = pair[1];
	w.remote = remote_open(&place, pair[0], signals);
	return w;
}

static void end(struct world *w)
{
	remote_close(w->remote);
	if (w->helper >= 0)
		close(w->helper);
}

/* Returns the number of bytes that the program has sent and the test has not read yet. */
static size_t unread(struct world *w)
{
	static char bytes[1 << 16];
	size_t sum = 0;
	ssize_t came;

	while ((came = recv(w->helper, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		sum += (size_t)came;
	return sum;
}

static void say(struct world *w, enum message_kind kind, uint32_t number, const char *body)
{
	struct buf out = {0};

	message_put_numbered(&out, kind, number, body, strlen(body));
	assert_int_equal(send(w->helper, out.data, out.length, MSG_NOSIGNAL), (ssize_t)out.length);
	buf_free(&out);
}

static const char *const keys[] = {"a", "b"};

struct answers {
	int count, place;
	char text[16];
};

static void take(void *context, int place, const void *bytes, size_t length)
{
	struct answers *answers = context;

	assert_in_range(length, 0, sizeof answers->text - 1);
	answers->count++;
	answers->place = place;
	memcpy(answers->text, bytes, length);
}

static int get(struct world *w, struct answers *answers, struct err *err)
{
	*answers = (struct answers){0};
	*err = (struct err){""};
	return remote_get(w->remote, keys, 2, take, answers, err);
}

static void what_the_helper_found_is_handed_out(void **state)
{
	struct world w = begin(60000, -1);
	struct answers answers;
	const char *first;
	struct err err;

	(void)state;
	say(&w, MESSAGE_REFUSED, 0, "it is none");
	say(&w, MESSAGE_FOUND, 1, "value");
	say(&w, MESSAGE_DONE, 0, "");
	assert_int_equal(get(&w, &answers, &err), 0);
	assert_int_equal(answers.count, 1);
	assert_int_equal(answers.place, 1);
	assert_string_equal(answers.text, "value");
	assert_int_equal(remote_refused(w.remote, &first), 1);
	assert_string_equal(first, "it is none");
	assert_false(remote_failed(w.remote));
	end(&w);
}

/* The program waits once for a remote cache that does not answer. Then it sends nothing more, and does not wait
 * again. */
static void after_a_failure_nothing_more_is_sent(void **state)
{
	struct world w = begin(100, -1);
	struct answers answers;
	struct err err;

	(void)state;
	remote_put(w.remote, keys, 1, "value", 5);
	assert_true(unread(&w) > 5);
	assert_int_equal(get(&w, &answers, &err), -1);
	assert_string_equal(err.text, "the remote cache redis://h did not answer within 0.1 s");
	assert_true(remote_failed(w.remote));
	assert_true(unread(&w) > 0);
	remote_put(w.remote, keys, 1, "value", 5);
	assert_int_equal(get(&w, &answers, &err), 0);
	assert_int_equal(remote_flush(w.remote, &err), 0);
	assert_int_equal(unread(&w), 0);
	end(&w);
}

/* Nobody reads the verdicts that the program sends. If the program waited for a reader, this test would not end. */
static void putting_waits_for_nobody(void **state)
{
	enum { LENGTH = 200 * 1024, PUTS = 400 };
	struct world w = begin(100, -1);
	char *value = calloc(1, LENGTH);
	struct err err = {""};

	(void)state;
	for (int i = 0; i < PUTS; i++)
		remote_put(w.remote, keys, 2, value, LENGTH);
	assert_true(unread(&w) < (size_t)LENGTH * PUTS / 2); /* the socket has no room for more */
	assert_int_equal(remote_flush(w.remote, &err), -1);
	assert_true(strstr(err.text, "did not answer within 0.1 s") != NULL);
	free(value);
	end(&w);
}

static void what_was_not_accepted_is_counted(void **state)
{
	struct world w = begin(60000, -1);
	char *large = calloc(1, REMOTE_VALUE_MAX + 1);
	struct err err = {""};

	(void)state;
	remote_put(w.remote, keys, 1, "value", 5);
	remote_put(w.remote, keys, 1, large, REMOTE_VALUE_MAX + 1); /* a value above the limit is not sent */
	say(&w, MESSAGE_DONE, 1, "");
	assert_int_equal(remote_flush(w.remote, &err), -1);
	assert_string_equal(err.text, "the remote cache redis://h stored 1 of 2 verdicts");
	free(large);
	end(&w);
}

static void a_helper_that_ends_or_sends_nonsense_is_reported(void **state)
{
	static const struct {
		enum message_kind kind;
		uint32_t number;
	} nonsense[] = {{MESSAGE_FOUND, 2}, {MESSAGE_FOUND, UINT32_MAX}, {MESSAGE_ASK, 0}, {(enum message_kind)0, 0}};
	static const unsigned char endless[] = {0xff, 0xff, 0xff, 0xff, 'v', 0, 0, 0, 0};
	struct answers answers;
	struct err err;

	(void)state;
	for (size_t i = 0; i <= sizeof nonsense / sizeof *nonsense + 1; i++) {
		struct world w = begin(60000, -1);

		if (i < sizeof nonsense / sizeof *nonsense) {
			say(&w, nonsense[i].kind, nonsense[i].number, "x");
		} else if (i == sizeof nonsense / sizeof *nonsense) {
			assert_int_equal(send(w.helper, endless, sizeof endless, MSG_NOSIGNAL), sizeof endless);
		} else {
			close(w.helper);
			w.helper = -1;
		}
		assert_int_equal(get(&w, &answers, &err), -1);
		assert_true(strstr(err.text, "could not be queried: the helper process exited") != NULL);
		assert_int_equal(answers.count, 0);
		end(&w);
	}
}

static void closing_does_not_wait_for_the_helper(void **state)
{
	struct answers answers;
	struct err err;
	int pair[2];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(write(pair[1], "x", 1), 1);
	struct world w = begin(600 * 1000, pair[0]);

	assert_int_equal(get(&w, &answers, &err), -1);
	assert_true(strstr(err.text, "interrupted") != NULL);
	end(&w);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_the_helper_found_is_handed_out),
	    cmocka_unit_test(after_a_failure_nothing_more_is_sent),
	    cmocka_unit_test(putting_waits_for_nobody),
	    cmocka_unit_test(what_was_not_accepted_is_counted),
	    cmocka_unit_test(a_helper_that_ends_or_sends_nonsense_is_reported),
	    cmocka_unit_test(closing_does_not_wait_for_the_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
