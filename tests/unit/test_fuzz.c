/* test_fuzz - the parsers of data from strangers survive thousands of random and mutated inputs, and the fuzz driver
 * reports a failed check. */
#include "tests/fuzz/targets.c"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 20000 };

/* Each target must accept some inputs and reject others, because a target that accepts all inputs, or rejects all, tests
 * only half of its code. */
static void strangers_bytes_do_no_harm(void **state)
{
	const struct target *target = *state;
	int count = COUNT / target->slower, taken = fuzz_run(target->name, 0, (uint64_t)count);

	if (taken <= count / 50 || taken >= count - count / 50)
		fail_msg("%s: %d of %d inputs were accepted", target->name, taken, count);
}

/* A fuzz target whose check fails for input 7. The fuzz driver must notice this. */
static bool feed_broken(const struct input *input)
{
	hold(input, input->number != 7, "all is well");
	return true;
}

static void a_broken_promise_aborts(void **state)
{
	static const struct target broken = {"broken", feed_broken, json_seeds, 1, 1};
	struct seeds seeds;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		seeds_open(&broken, &seeds);
		feed(&broken, &seeds, 6);
		feed(&broken, &seeds, 7);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void an_unknown_target_is_none(void **state)
{
	(void)state;
	assert_int_equal(fuzz_run("none", 0, 1), -1);
	assert_null(fuzz_target(TARGETS));
}

int main(void)
{
	struct CMUnitTest tests[TARGETS + 2];

	for (int i = 0; i < TARGETS; i++)
		tests[i] = (struct CMUnitTest){.name = targets[i].name, .test_func = strangers_bytes_do_no_harm,
		                               .initial_state = (void *)(uintptr_t)&targets[i]};
	tests[TARGETS] = (struct CMUnitTest)cmocka_unit_test(a_broken_promise_aborts);
	tests[TARGETS + 1] = (struct CMUnitTest)cmocka_unit_test(an_unknown_target_is_none);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
