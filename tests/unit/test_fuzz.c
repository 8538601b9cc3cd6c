/* test_fuzz - the parsers that read bytes from strangers survive thousands of random and changed inputs, and the fuzz
 * driver notices a broken promise. */
#include "tests/fuzz/targets.c"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 20000 };

/* Some inputs must be accepted and some rejected: a target that always does the same tests only half of its code. */
static void strangers_bytes_do_no_harm(void **state)
{
	const char *target = *state;
	int taken = fuzz_run(target, 0, COUNT);

	assert_true(taken > COUNT / 50);
	assert_true(taken < COUNT - COUNT / 50);
}

/* A fuzz target whose check fails; the driver must notice that. */
static bool feed_broken(const struct input *input)
{
	hold(input, input->number != 7, "all is well");
	return true;
}

static void a_broken_promise_aborts(void **state)
{
	static const struct target broken = {"broken", feed_broken, json_seeds, 1};
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		feed(&broken, 6);
		feed(&broken, 7);
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

#define fuzz(target) cmocka_unit_test_prestate(strangers_bytes_do_no_harm, (char *)(target))

int main(void)
{
	const struct CMUnitTest tests[] = {
	    fuzz("json"),
	    fuzz("definition"),
	    fuzz("workload"),
	    fuzz("constraint"),
	    fuzz("safetensors"),
	    fuzz("verdict"),
	    fuzz("audit"),
	    cmocka_unit_test(a_broken_promise_aborts),
	    cmocka_unit_test(an_unknown_target_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
