/* pool_world - a pool with real judges and a real Python, a definition that the pool verifies, and checks of the
 * results.
 *
 * The judges (the processes that compare outputs) are forked from the test program, just as reftest forks them from
 * itself. Most tests share one pool, so each test also checks that the previous reference left the pool in working
 * order. */
#ifndef REFTEST_TESTS_POOL_WORLD_H
#define REFTEST_TESTS_POOL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "workers/judge/judge.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/pool.h"

enum { HIDDEN = 64, BATCH = 4, GENEROUS_S = 120 };

/* --- the definition: rmsnorm over 64 columns, in float32 ---------------------------------------------------------- */

static const struct op_axis axes[] = {{"batch_size", true, 0}, {"hidden_size", false, HIDDEN}};
static const struct op_arg inputs[] = {
    {.name = "hidden_states", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}},
    {.name = "weight", .dtype = DTYPE_FLOAT32, .rank = 1, .axis = {1}},
};
static const struct op_arg outputs[] = {{.name = "output", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}}};
static const int64_t axis[] = {BATCH, HIDDEN};
static const struct input_source sources[] = {{.kind = SOURCE_RANDOM}, {.kind = SOURCE_RANDOM}};
static const struct rule rules[] = {{1e-5, 1e-5, 1}};

static const struct job rmsnorm = {
    .id = "small:batch_size=4",
    .problem = {.name = "rmsnorm_h64", .op_type = "rmsnorm", .description = "", .axes = axes, .axis_count = 2,
                .inputs = inputs, .input_count = 2, .outputs = outputs, .output_count = 1},
    .op = "rmsnorm", .axis = axis, .seed = 7, .inputs = sources,
    .constants = {{"eps", 1e-6, "name", ""}}, .constant_count = 1, .rules = rules, .root = "/",
};

/* The first lines of the Python references. `x` and `w` are the inputs, and `y` is the correct output. */
#define HEAD "import os, sys, time, ctypes\nimport torch\n"
#define RUN "def run(hidden_states, weight):\n    x, w = hidden_states, weight\n" \
	    "    y = x * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6).float() * w\n"
#define CORRECT HEAD RUN "    return y\n"

/* --- a pool and its results --------------------------------------------------------------------------------------- */

struct setting {
	struct pool *pool;
	struct arena arena;
};

static const char *python(void)
{
	static char path[4096];
	struct err err = {""};

	if (path[0] == '\0' && machine_python(NULL, ".", path, sizeof path, &err) != 0)
		fail_msg("%s", err.text);
	return path;
}

/* Describes to the pool how to start judges with the kernels library of this build. The first call opens the
 * library. */
static inline struct judge_program test_judge(void)
{
	static struct kernels kernels;
	struct err err = {""};

	if (kernels.api == NULL && kernels_open(&kernels, NULL, &err) != 0)
		fail_msg("%s", err.text);
	return judge_program(&kernels);
}

static inline struct pool *open_pool(int lanes, double timeout_s, bool staged)
{
	struct pool_options options = {.device = "cpu", .python = python(), .root = "/", .lanes = lanes,
	                               .timeout_s = timeout_s, .staged = staged, .judge = test_judge()};
	struct err err = {""};
	struct pool *pool = pool_open(&options, &err);

	if (pool == NULL)
		fail_msg("%s", err.text);
	return pool;
}

/* Opens a pool with a changed runner.py, which first runs the Python code `patch`. In this code, the variable `runner`
 * is the module of the usual runner.py. The changed script is written to a temporary file, and `path` gets its name.
 * The caller deletes the file when the pool has started its last runner. */
static inline struct pool *open_patched_pool(const struct pool_options *options, const char *patch, char path[64])
{
	char *usual = strdup(getenv("REFTEST_RUNNER"));
	struct err err = {""};

	strcpy(path, "/tmp/reftest-test-pool-XXXXXX");
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	assert_non_null(usual);
	assert_non_null(file);
	fprintf(file,
	        "import importlib.util, sys, time\n"
	        "spec = importlib.util.spec_from_file_location('runner', '%s')\n"
	        "runner = sys.modules['runner'] = importlib.util.module_from_spec(spec)\n"
	        "spec.loader.exec_module(runner)\n"
	        "%s"
	        "sys.exit(runner.main())\n", usual, patch);
	assert_int_equal(fclose(file), 0);
	setenv("REFTEST_RUNNER", path, 1);
	struct pool *pool = pool_open(options, &err);

	setenv("REFTEST_RUNNER", usual, 1);
	free(usual);
	if (pool == NULL)
		fail_msg("%s", err.text);
	return pool;
}

/* Runs the event loop until the pool returns a result. */
static inline struct pool_result next_result(struct pool *pool, struct arena *arena)
{
	struct pool_result result;
	struct err err = {""};

	while (!pool_next(pool, arena, &result)) {
		struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

		if (poll(&poll_pool, 1, GENEROUS_S * 1000) != 1)
			fail_msg("the pool waits although %d cases are pending", pool_pending(pool));
		if (pool_dispatch(pool, &err) != 0)
			fail_msg("%s", err.text);
	}
	return result;
}

static inline void submit(struct pool *pool, const char *reference, const struct job *const *jobs, int count, void *owner)
{
	struct task task = {.name = "rmsnorm/rmsnorm_h64", .reference = reference, .jobs = jobs, .job_count = count,
	                    .owner = owner};

	pool_submit(pool, &task);
}

static inline struct pool_result verify_job(struct setting *setting, const char *reference, const struct job *job)
{
	const struct job *jobs[] = {job};

	submit(setting->pool, reference, jobs, 1, setting);
	struct pool_result result = next_result(setting->pool, &setting->arena);

	assert_ptr_equal(result.owner, setting);
	assert_ptr_equal(result.job, job);
	assert_int_equal(pool_pending(setting->pool), 0);
	return result;
}

static inline struct pool_result verify(struct setting *setting, const char *reference)
{
	return verify_job(setting, reference, &rmsnorm);
}

static inline void expect(const struct pool_result *result, enum status status, enum reason reason, const char *says)
{
	const struct verdict *verdict = result->verdict;
	const char *message = verdict->message == NULL ? "" : verdict->message;

	if (verdict->status != status || verdict->reason != reason || (says != NULL && strstr(message, says) == NULL))
		fail_msg("expected %s (%s) \"%s\", got %s (%s) \"%s\"; printed: %s", status_name(status),
		         reason == REASON_NONE ? "-" : reason_name(reason), says == NULL ? "" : says,
		         status_name(verdict->status), verdict->reason == REASON_NONE ? "-" : reason_name(verdict->reason),
		         message, result->printed == NULL ? "" : result->printed);
}

/* Checks that a correct reference still passes, i.e. that the previous reference did not damage the pool. */
static inline void expect_all_is_well(struct setting *setting)
{
	struct pool_result result = verify(setting, CORRECT);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

static inline int set_up(void **state)
{
	struct setting *setting = calloc(1, sizeof *setting);

	setting->pool = open_pool(1, GENEROUS_S, false);
	*state = setting;
	return 0;
}

static inline int tear_down(void **state)
{
	struct setting *setting = *state;

	pool_close(setting->pool);
	arena_free(&setting->arena);
	free(setting);
	return 0;
}

/* ---- the program ---- */

/* Returns the path of the file to which tell_outside() writes. A child program inherits the path through the
 * environment. */
static inline const char *tells_path(void)
{
	char path[64];

	snprintf(path, sizeof path, "/tmp/reftest-test-tells-%d", (int)getpid());
	setenv("REFTEST_TEST_TELLS", path, 0);
	return getenv("REFTEST_TEST_TELLS");
}

static inline void remove_tells(void)
{
	char script[4096];

	if (atoi(strrchr(tells_path(), '-') + 1) != getpid())
		return; /* only the test program removes the files, not a process that it forked */
	snprintf(script, sizeof script, "%s-runner.py", tells_path());
	unlink(script);
	unlink(tells_path());
}

/* Gives references two functions that reach files of the test, which the sandbox hides from references. tell_outside()
 * appends a byte to the file that open_tells opens; exists_outside(name) returns whether a file exists in /tmp. The
 * functions work because the runner opens that file and /tmp before it enters its sandbox. */
static inline void let_references_tell(const char *here)
{
	char script[4096];
	FILE *file;

	snprintf(script, sizeof script, "%s-runner.py", tells_path());
	close(open(tells_path(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_non_null(file = fopen(script, "we"));
	fprintf(file,
		"import builtins, os\n"
		"outside, tells = os.open('/tmp', os.O_RDONLY), os.open('%s', os.O_WRONLY | os.O_APPEND)\n"
		"builtins.exists_outside = lambda path: os.access(os.path.basename(path), os.F_OK, dir_fd=outside)\n"
		"builtins.tell_outside = lambda: os.write(tells, b'x')\n"
		"__file__ = '%s/python/runner.py'\n"
		"exec(compile(open(__file__).read(), __file__, 'exec'))\n",
		tells_path(), here);
	assert_int_equal(fclose(file), 0);
	setenv("REFTEST_RUNNER", script, 1);
	atexit(remove_tells);
}

/* Opens the file to which tell_outside() writes, and moves to the end of the file. For each later call of
 * tell_outside(), the test can read one byte from this file. */
static inline int open_tells(void)
{
	int fd = open(tells_path(), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0 && lseek(fd, 0, SEEK_END) >= 0);
	return fd;
}

/* Makes the program use the kernels library and the scripts of the build folder. In an installation, the library and
 * the scripts are beside the reftest executable. */
static inline void find_build(void)
{
	const char *build = getenv("REFTEST_BUILD");
	char here[4096], path[8192];

	assert_non_null(getcwd(here, sizeof here));
	snprintf(path, sizeof path, "%s%s%s", build != NULL && build[0] == '/' ? "" : here,
	         build != NULL && build[0] == '/' ? "" : "/", build == NULL ? "build" : build);
	setenv("REFTEST_KERNELS", path, 0);
	let_references_tell(here);
}

/* The main function of a test calls pool_main first. pool_main selects the tests that the command line names, or all
 * tests if the command line names none. */
static inline void pool_main(int argc, char **argv)
{
	find_build();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
}

#endif
