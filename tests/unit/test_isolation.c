/* test_isolation - checks which tasks may keep their runner and which tasks may have several runners. It tests only
 * that part of the decision which depends on the task itself. It also checks how the pool uses the answers of the
 * reader, the process that reads the source code of references. In this test, a socket replaces the reader, and no
 * process is started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workers/pool/isolation.h"

static const double seconds[] = {1, 1};

static struct queued *work_of(struct task task)
{
	static const struct job plain = {.id = "small"};
	static const struct job *const jobs[] = {&plain, &plain};

	task.reference = "def run(x):\n    return x\n";
	task.jobs = task.jobs != NULL ? task.jobs : jobs;
	task.job_count = 2;
	task.seconds = seconds;
	return queued_new(&task);
}

/* ---- what the task decides ---- */

static void expect_own(struct task task, const char *because)
{
	struct queued *work = work_of(task);

	isolation_by_task(work, false);
	assert_int_equal(work->isolation, ISOLATION_OWN);
	assert_string_equal(work->own_because, because);
	assert_int_equal(work->separable, SEPARABLE_NO);
	queued_free(work);
}

static void what_a_task_asks_for_decides(void **state)
{
	static const struct truth_program program = {.name = "solution"};
	static const struct read_file reads[] = {{.path = "table.json"}};
	static const struct job plain = {.id = "small"}, gradients = {.asks = JOB_GRADIENTS}, measured = {.bench = true};
	static const struct job *const with_gradients[] = {&plain, &gradients}, *const with_bench[] = {&plain, &measured};

	(void)state;
	expect_own((struct task){.urgent = true}, "a user waits for it");
	expect_own((struct task){.program = &program}, "it is a solution");
	expect_own((struct task){.reads = reads, .read_count = 1}, "it reads files");
	expect_own((struct task){.jobs = with_gradients}, "autograd starts threads that keep running");
	expect_own((struct task){.jobs = with_bench}, "its latency is measured");
}

static void the_text_decides_about_other_tasks(void **state)
{
	struct queued *work = work_of((struct task){0});

	(void)state;
	isolation_by_task(work, false);
	assert_int_equal(work->isolation, ISOLATION_UNKNOWN);
	assert_int_equal(work->separable, SEPARABLE_UNKNOWN);
	assert_null(work->own_because);
	queued_free(work);
}

/* The reader examines only the source code of the reference. A solution, or a ground truth of the dataset, may keep
 * something although the reference keeps nothing. */
static void a_task_with_other_source_code_is_not_stateless(void **state)
{
	static const struct truth_program program = {.name = "other"};
	const struct {
		struct task task;
		enum stateless stateless;
	} rows[] = {{{0}, STATELESS_YES},
		    {{.program = &program}, STATELESS_NO},
		    {{.programs = &program, .program_count = 1}, STATELESS_NO}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct queued *work = work_of(rows[i].task);

		isolation_by_task(work, true);
		isolation_apply(work, &(struct isolation_answer){1, NULL, true});
		assert_int_equal(work->stateless, rows[i].stateless);
		queued_free(work);
	}
}

static void no_runner_is_kept_unless_that_is_asked_for(void **state)
{
	struct queued *work = work_of((struct task){0});

	(void)state;
	isolation_by_task(work, true);
	assert_int_equal(work->isolation, ISOLATION_OWN);
	assert_string_equal(work->own_because, "runners are reused only with --isolation kept");
	assert_int_equal(work->separable, SEPARABLE_UNKNOWN);
	queued_free(work);
}

static void a_later_reason_replaces_the_earlier_one(void **state)
{
	struct queued *work = work_of((struct task){0});

	(void)state;
	isolation_set(work, NULL);
	assert_int_equal(work->isolation, ISOLATION_KEPT);
	work->question = 3;
	isolation_set(work, "after a failure");
	assert_int_equal(work->isolation, ISOLATION_OWN);
	assert_string_equal(work->own_because, "after a failure");
	assert_int_equal(work->question, 0);
	isolation_set(work, NULL);
	assert_null(work->own_because);
	queued_free(work);
}

/* ---- what the reader decides ---- */

static void expect_applied(bool always_own, struct isolation_answer answer, enum isolation isolation, enum separable separable)
{
	struct queued *work = work_of((struct task){0});

	isolation_by_task(work, always_own);
	work->question = answer.question;
	isolation_apply(work, &answer);
	assert_int_equal(work->isolation, isolation);
	assert_int_equal(work->separable, separable);
	assert_int_equal(work->question, 0);
	queued_free(work);
}

static void an_answer_counts_for_what_is_not_decided_yet(void **state)
{
	static char why[] = "it imports os";
	struct queued *measured;

	(void)state;
	expect_applied(false, (struct isolation_answer){1, NULL, true}, ISOLATION_KEPT, SEPARABLE_YES);
	expect_applied(false, (struct isolation_answer){1, NULL, false}, ISOLATION_KEPT, SEPARABLE_NO);
	expect_applied(false, (struct isolation_answer){1, why, true}, ISOLATION_OWN, SEPARABLE_NO);
	expect_applied(true, (struct isolation_answer){1, NULL, true}, ISOLATION_OWN, SEPARABLE_YES);
	measured = work_of((struct task){.urgent = true});
	isolation_by_task(measured, false);
	isolation_apply(measured, &(struct isolation_answer){1, NULL, true});
	assert_int_equal(measured->isolation, ISOLATION_OWN);
	assert_int_equal(measured->separable, SEPARABLE_NO);
	queued_free(measured);
}

struct reader {
	struct zygote runners;
	struct child child;
	struct isolation_reader reader;
	struct queued *work;
	int end; /* the test's end of the socket; a real reader would have this end */
};

static int set_up(void **state)
{
	struct reader *r = calloc(1, sizeof *r);
	int ends[2];
	struct err err = {""};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	r->child = (struct child){.state = CHILD_TAKEN, .pidfd = -1, .pipe = -1, .deadline_ms = INT64_MAX, .reader = true, .proc = -1};
	channel_open(&r->child.channel, ends[0]);
	r->end = ends[1];
	isolation_open(&r->reader);
	assert_true(r->reader.child == NULL && r->reader.deadline_ms == INT64_MAX);
	r->reader.child = &r->child;
	r->work = work_of((struct task){0});
	isolation_by_task(r->work, false);
	assert_int_equal(isolation_ask(&r->reader, &r->runners, r->work, &err), 0);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct reader *r = *state;

	isolation_close(&r->reader, &r->runners);
	channel_close(&r->child.channel);
	buf_free(&r->child.printed);
	close(r->end);
	queued_free(r->work);
	free(r);
	return 0;
}

static void says(struct reader *r, const char *line)
{
	assert_int_equal(write(r->end, line, strlen(line)), strlen(line));
}

static void one_text_at_a_time_is_asked_about(void **state)
{
	struct reader *r = *state;
	struct queued *second = work_of((struct task){0});
	struct err err = {""};
	char asked[512] = "";

	assert_int_equal(r->work->question, 1);
	assert_true(r->reader.deadline_ms < INT64_MAX);
	assert_true(read(r->end, asked, sizeof asked - 1) > 0);
	assert_non_null(strstr(asked, "{\"classify\":1,\"text\":\"def run(x):"));
	assert_int_equal(isolation_ask(&r->reader, &r->runners, second, &err), 0);
	assert_int_equal(second->question, 0);
	assert_int_equal(read(r->end, asked, sizeof asked), -1);
	queued_free(second);
}

static void an_answer_is_read_after_the_reader_is_ready(void **state)
{
	struct reader *r = *state;
	struct isolation_answer answer;

	assert_false(isolation_next(&r->reader, &r->runners, clock_ms(), &answer));
	says(r, "{\"ready\": true}\n{\"classified\": 1, \"own\": null, \"stateless\": true}\n");
	assert_true(isolation_next(&r->reader, &r->runners, clock_ms(), &answer));
	assert_int_equal(answer.question, 1);
	assert_null(answer.why);
	assert_true(answer.stateless);
	assert_int_equal(r->reader.question, 0);
	assert_true(r->reader.deadline_ms == INT64_MAX && r->reader.child != NULL);
}

static void a_reason_is_read_and_nothing_is_assumed(void **state)
{
	struct reader *r = *state;
	struct isolation_answer answer;

	says(r, "{\"classified\": 1, \"own\": \"it imports os\"}\n");
	assert_true(isolation_next(&r->reader, &r->runners, clock_ms(), &answer));
	assert_string_equal(answer.why, "it imports os");
	assert_false(answer.stateless);
	free(answer.why);
}

/* Checks what happens if the reader gives no valid answer: the reference gets a runner of its own, and the reader is
 * replaced. */
static void expect_unread(struct reader *r, int64_t now_ms)
{
	struct isolation_answer answer;

	assert_true(isolation_next(&r->reader, &r->runners, now_ms, &answer));
	assert_int_equal(answer.question, 1);
	assert_string_equal(answer.why, "the source code could not be read");
	assert_false(answer.stateless);
	assert_null(r->reader.child);
	free(answer.why);
}

static void another_number_is_no_answer(void **state)
{
	says(*state, "{\"classified\": 2, \"own\": null, \"stateless\": true}\n");
	expect_unread(*state, clock_ms());
}

static void another_message_is_no_answer(void **state)
{
	says(*state, "{\"classified\": 1}\n");
	expect_unread(*state, clock_ms());
}

static void a_reader_that_is_silent_is_not_waited_for(void **state)
{
	struct reader *r = *state;
	struct isolation_answer answer;

	assert_false(isolation_next(&r->reader, &r->runners, r->reader.deadline_ms - 1, &answer));
	expect_unread(r, r->reader.deadline_ms);
}

static void a_reader_that_ends_gives_no_answer(void **state)
{
	struct reader *r = *state;

	r->child.ended = true;
	shutdown(r->end, SHUT_RDWR);
	r->runners.children = &r->child;
	channel_open(&r->runners.channel, -1);
	expect_unread(r, clock_ms());
	r->child.state = CHILD_NONE;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_a_task_asks_for_decides),
	    cmocka_unit_test(the_text_decides_about_other_tasks),
	    cmocka_unit_test(a_task_with_other_source_code_is_not_stateless),
	    cmocka_unit_test(no_runner_is_kept_unless_that_is_asked_for),
	    cmocka_unit_test(a_later_reason_replaces_the_earlier_one),
	    cmocka_unit_test(an_answer_counts_for_what_is_not_decided_yet),
	    TEST(one_text_at_a_time_is_asked_about),
	    TEST(an_answer_is_read_after_the_reader_is_ready),
	    TEST(a_reason_is_read_and_nothing_is_assumed),
	    TEST(another_number_is_no_answer),
	    TEST(another_message_is_no_answer),
	    TEST(a_reader_that_is_silent_is_not_waited_for),
	    TEST(a_reader_that_ends_gives_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
