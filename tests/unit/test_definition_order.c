/* test_definition_order - checks the order of the tasks that wait for a lane (a judge and its runner): tasks that a
 * user waits for come first, and then the longest tasks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "workers/pool/definition_order.h"

static struct queued *new_work(const char *name, const double *seconds, int count, bool urgent)
{
	const struct task task = {.name = name, .seconds = seconds, .job_count = count, .urgent = urgent};

	return queued_new(&task);
}

/* Takes all tasks from a queue. The names of the tasks must be the words of `names`, in this order. */
static void expect_order(struct queue *queue, const char *names)
{
	char found[256] = "";
	struct queued *work;

	while ((work = queue_pop(queue)) != NULL) {
		strcat(found, found[0] != '\0' ? " " : "");
		strcat(found, work->task.name);
		queued_free(work);
	}
	assert_string_equal(found, names);
}

static void the_longest_task_comes_first(void **state)
{
	static const double one[] = {1}, three[] = {1, 2}, two[] = {0.5, 0.5, 1};
	struct queue queue = {NULL};

	(void)state;
	queue_push(&queue, new_work("one", one, 1, false));
	queue_push(&queue, new_work("three", three, 2, false));
	queue_push(&queue, new_work("two", two, 3, false));
	expect_order(&queue, "three two one");
}

static void equal_tasks_keep_their_order(void **state)
{
	static const double one[] = {1};
	struct queue queue = {NULL};

	(void)state;
	queue_push(&queue, new_work("unknown", NULL, 1, false));
	queue_push(&queue, new_work("first", one, 1, false));
	queue_push(&queue, new_work("second", one, 1, false));
	queue_push(&queue, new_work("unknown_too", NULL, 1, false));
	expect_order(&queue, "first second unknown unknown_too");
}

static void urgent_tasks_come_before_longer_ones(void **state)
{
	static const double one[] = {1}, nine[] = {9};
	struct queue queue = {NULL};

	(void)state;
	queue_push(&queue, new_work("one", one, 1, false));
	queue_push_first(&queue, new_work("urgent", NULL, 1, true));
	queue_push(&queue, new_work("nine", nine, 1, false));
	expect_order(&queue, "urgent nine one");
}

static void finished_cases_of_a_task_do_not_count(void **state)
{
	static const double seconds[] = {8, 1}, two[] = {2};
	struct queued *begun = new_work("begun", seconds, 2, false);
	struct queue queue = {NULL};

	(void)state;
	begun->job = 1;
	assert_true(queued_seconds(begun) == 1);
	queue_push(&queue, begun);
	queue_push(&queue, new_work("two", two, 1, false));
	expect_order(&queue, "two begun");
}

/* Cases that run again only for what they leave behind have results, but take time. */
static void repeated_cases_have_results_and_take_time(void **state)
{
	static const double seconds[] = {8, 1, 2};
	struct queued *work = new_work("again", seconds, 3, false);

	(void)state;
	work->repeated = 2;
	assert_int_equal(queued_left(work), 1);
	assert_true(queued_seconds(work) == 11);
	work->job = 2;
	assert_int_equal(queued_left(work), 1);
	work->job = 3;
	assert_int_equal(queued_left(work), 0);
	queued_free(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_longest_task_comes_first),
	    cmocka_unit_test(equal_tasks_keep_their_order),
	    cmocka_unit_test(urgent_tasks_come_before_longer_ones),
	    cmocka_unit_test(finished_cases_of_a_task_do_not_count),
	    cmocka_unit_test(repeated_cases_have_results_and_take_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
