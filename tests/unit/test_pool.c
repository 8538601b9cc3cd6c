/* Real references through a real judge and a real python: what each of them deserves, and that none harms the next.
 *
 * The program is its own judge (`test_pool judge …`), as reftest is. One pool serves most tests: that the next reference
 * finds everything as it should be is then tested by every one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/judge.h"
#include "workers/machine.h"
#include "workers/pool.c" /* to see when a case waits for its second try */

enum { HIDDEN = 64, BATCH = 4, GENEROUS_S = 120 };

/* ---- a definition: rmsnorm over 64 columns, in float32 ---- */

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

/* Lines of Python before and inside run(); `x` and `w` are the inputs, `y` is right. */
#define HEAD "import os, sys, time, ctypes\nimport torch\n"
#define RUN "def run(hidden_states, weight):\n    x, w = hidden_states, weight\n" \
	    "    y = x * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6).float() * w\n"
#define CORRECT HEAD RUN "    return y\n"

/* ---- a pool and what comes out of it ---- */

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

static struct pool *open_pool(int lanes, double timeout_s, bool staged)
{
	struct pool_options options = {.device = "cpu", .python = python(), .root = "/", .lanes = lanes,
	                               .timeout_s = timeout_s, .staged = staged};
	struct err err = {""};
	struct pool *pool = pool_open(&options, &err);

	if (pool == NULL)
		fail_msg("%s", err.text);
	return pool;
}

/* Turns the loop until a result comes. */
static struct pool_result next_result(struct pool *pool, struct arena *arena)
{
	struct pool_result result;
	struct err err = {""};

	while (!pool_next(pool, arena, &result)) {
		struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

		if (poll(&poll_pool, 1, GENEROUS_S * 1000) != 1)
			fail_msg("the pool has gone to sleep with %d cases pending", pool_pending(pool));
		if (pool_dispatch(pool, &err) != 0)
			fail_msg("%s", err.text);
	}
	return result;
}

static void submit(struct pool *pool, const char *reference, const struct job *const *jobs, int count, void *owner)
{
	struct task task = {.name = "rmsnorm/rmsnorm_h64", .reference = reference, .jobs = jobs, .job_count = count,
	                    .owner = owner};

	pool_submit(pool, &task);
}

static struct pool_result verify_job(struct setting *setting, const char *reference, const struct job *job)
{
	const struct job *jobs[] = {job};

	submit(setting->pool, reference, jobs, 1, setting);
	struct pool_result result = next_result(setting->pool, &setting->arena);

	assert_ptr_equal(result.owner, setting);
	assert_ptr_equal(result.job, job);
	assert_int_equal(pool_pending(setting->pool), 0);
	return result;
}

static struct pool_result verify(struct setting *setting, const char *reference)
{
	return verify_job(setting, reference, &rmsnorm);
}

static void expect(const struct pool_result *result, enum status status, enum reason reason, const char *says)
{
	const struct verdict *verdict = result->verdict;
	const char *message = verdict->message == NULL ? "" : verdict->message;

	if (verdict->status != status || verdict->reason != reason || (says != NULL && strstr(message, says) == NULL))
		fail_msg("expected %s (%s) \"%s\", got %s (%s) \"%s\"; printed: %s", status_name(status),
		         reason == REASON_NONE ? "-" : reason_name(reason), says == NULL ? "" : says,
		         status_name(verdict->status), verdict->reason == REASON_NONE ? "-" : reason_name(verdict->reason),
		         message, result->printed == NULL ? "" : result->printed);
}

/* After whatever it was: the right reference passes. */
static void expect_all_is_well(struct setting *setting)
{
	struct pool_result result = verify(setting, CORRECT);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

static int set_up(void **state)
{
	struct setting *setting = calloc(1, sizeof *setting);

	setting->pool = open_pool(1, GENEROUS_S, false);
	*state = setting;
	return 0;
}

static int tear_down(void **state)
{
	struct setting *setting = *state;

	pool_close(setting->pool);
	arena_free(&setting->arena);
	free(setting);
	return 0;
}

/* ---- verdicts that outputs deserve ---- */

static void the_right_reference_passes(void **state)
{
	struct pool_result result = verify(*state, CORRECT);
	const struct verdict *verdict = result.verdict;

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_true(result.keep);
	assert_null(result.printed);
	assert_string_equal(verdict->device, "cpu");
	assert_string_equal(verdict->device_class, "cpu");
	assert_string_equal(verdict->ground_truth, "builtin");
	assert_non_null(verdict->ground_truth_version);
	assert_non_null(verdict->torch);
	assert_int_equal(verdict->output_count, 1);
	assert_int_equal(verdict->elements, BATCH * HIDDEN);
	assert_false(verdict->weak);
	assert_true(verdict->outputs[0].metrics.margin < 1);
	assert_int_equal(verdict->constant_count, 1);
	assert_string_equal(verdict->constants[0].source, "name");
}

static void a_wrong_element_fails_with_its_place_and_both_values(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    y[2, 17] = 1000.5\n    return y\n");

	expect(&result, STATUS_FAILED, REASON_NUMERIC, "output 'output': 1 of 256 elements");
	expect(&result, STATUS_FAILED, REASON_NUMERIC, "[2, 17]: 1000.5, ground truth ");
	assert_true(result.keep);
	assert_int_equal(result.verdict->outputs[0].status, STATUS_FAILED);
	assert_int_equal(result.verdict->outputs[0].metrics.worst[0].index, 2 * HIDDEN + 17);
}

static void a_nan_and_an_infinity_fail(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    y[1, 3] = float('nan')\n    return y\n");

	expect(&result, STATUS_FAILED, REASON_NONFINITE, "[1, 3]: nan");
	result = verify(*state, HEAD RUN "    y[0, 0] = float('-inf')\n    return y\n");
	expect(&result, STATUS_FAILED, REASON_NONFINITE, "[0, 0]: -inf");
}

/* A process that claims a gradient was missing, where nobody asked for gradients, is not believed. */
static void a_claim_that_nobody_asked_for_is_passed_over(void **state)
{
	struct pool_result result = verify(*state, HEAD "import sys\n"
	                                                "def claim(store):\n"
	                                                "    return lambda *a: {**store(*a), 'none': True}\n"
	                                                "Arena = sys.modules['__main__'].Arena\n"
	                                                "Arena.store = claim(Arena.store)\n" RUN "    y[0, 0] = 7\n    return y\n");

	expect(&result, STATUS_FAILED, REASON_NUMERIC, "[0, 0]: 7");
	assert_null(strstr(result.verdict->message, "autograd"));
}

static void wrong_shapes_dtypes_and_numbers_are_told(void **state)
{
	static const struct {
		const char *reference, *says;
		enum status status;
		enum reason reason;
	} wrongs[] = {
	    {HEAD RUN "    return y.T\n", "output 'output': returned (64, 4) float32, declared (4, 64) float32",
	     STATUS_FAILED, REASON_SHAPE},
	    {HEAD RUN "    return y[:, None]\n", "returned (4, 1, 64) float32", STATUS_FAILED, REASON_SHAPE},
	    {HEAD RUN "    return y[0, 0]\n", "returned () float32", STATUS_FAILED, REASON_SHAPE},
	    {HEAD RUN "    return y.double()\n", "returned (4, 64) float64, declared (4, 64) float32", STATUS_FAILED,
	     REASON_DTYPE},
	    {HEAD RUN "    return y, y\n", "returned 2 outputs, the definition declares 1 (output)", STATUS_ERROR,
	     REASON_RAISED},
	    {HEAD RUN "    return ()\n", "returned 0 outputs", STATUS_ERROR, REASON_RAISED},
	    {HEAD RUN "    return None\n", "returned None for output 'output'", STATUS_ERROR, REASON_RAISED},
	    {HEAD RUN "    return 'done'\n", "a value of type str", STATUS_ERROR, REASON_RAISED},
	    {HEAD RUN "    return {'out': y}\n", "returned a dict of (out), the definition declares (output)", STATUS_ERROR,
	     REASON_RAISED},
	    {HEAD RUN "    return y.view(1,1,1,1,1,1,1,1,1,1,4,64)\n", "a tensor of 12 dimensions", STATUS_FAILED,
	     REASON_SHAPE},
	};

	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct pool_result result = verify(*state, wrongs[i].reference);

		expect(&result, wrongs[i].status, wrongs[i].reason, wrongs[i].says);
		assert_true(result.keep);
	}
}

static void outputs_may_come_as_tuple_list_or_dict_and_need_not_be_contiguous(void **state)
{
	static const char *const rights[] = {
	    HEAD RUN "    return (y,)\n", HEAD RUN "    return [y]\n", HEAD RUN "    return {'output': y}\n",
	    HEAD RUN "    return y.T.contiguous().T\n", HEAD RUN "    return y.requires_grad_()\n",
	};

	for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
		struct pool_result result = verify(*state, rights[i]);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	}
}

static void an_input_that_is_written_to_is_named(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    w[5] = 77\n    return y\n");

	expect(&result, STATUS_FAILED, REASON_MUTATED_INPUT, "changed its input 'weight', first at [5]: ");
	expect(&result, STATUS_FAILED, REASON_MUTATED_INPUT, ", then 77");
}

static void an_output_may_be_an_input(void **state)
{
	struct pool_result result = verify(*state, HEAD "def run(hidden_states, weight):\n    return hidden_states\n");

	expect(&result, STATUS_FAILED, REASON_NUMERIC, NULL); /* wrong, but neither mutation nor error */
	assert_true(result.verdict->outputs[0].metrics.hits < BATCH * HIDDEN);
}

static void answers_that_change_are_nondeterministic(void **state)
{
	static const char *const fickle[] = {
	    /* a counter; the clock; memory addresses; which run it is, by the arena's layout */
	    HEAD "n = 0\n" RUN "    global n\n    n += 1\n    y[3, 63] += n * 1e-7\n    return y\n",
	    HEAD RUN "    return y + (time.perf_counter_ns() % 1000003) * 1e-13\n",
	    HEAD RUN "    return y + (x.data_ptr() % 65536) * 1e-12\n",
	};

	for (size_t i = 0; i < sizeof fickle / sizeof fickle[0]; i++) {
		struct pool_result result = verify(*state, fickle[i]);

		expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, "differs between two runs on the same inputs, first at [");
	}
}

/* What is switched off while torch is imported is on again for references: cycles may hold tensors. */
static void garbage_is_collected(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    import gc\n    assert gc.isenabled(), 'nobody collects'\n    return y\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

static void random_numbers_are_seeded_alike(void **state)
{
	struct pool_result result =
	    verify(*state, HEAD "import random\n" RUN "    return y + 1e-9 * torch.rand(4, 64) + 1e-9 * random.random()\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

/* The ways there are to write past a tensor without torch noticing; past its storage torch itself objects. */
static void writing_outside_the_tensors_is_an_error(void **state)
{
	struct pool_result result = verify(
	    *state, HEAD RUN "    ctypes.memset(w.data_ptr() + w.numel() * 4 + 12, 0, 4)\n    return y\n");

	expect(&result, STATUS_ERROR, REASON_OUT_OF_BOUNDS, "12 bytes past the end of input 'weight'");
	result = verify(*state, HEAD RUN "    ctypes.memset(x.data_ptr() - 1, 0, 1)\n    return y\n");
	expect(&result, STATUS_ERROR, REASON_OUT_OF_BOUNDS, "1 bytes before input 'hidden_states'");
	result = verify(*state, HEAD RUN "    torch.as_strided(w, (65,), (1,))[64] = 1\n    return y\n");
	expect(&result, STATUS_ERROR, REASON_RAISED, NULL);
	expect_all_is_well(*state);
}

static void zeros_where_zeros_are_right_are_weak(void **state)
{
	static const struct rule wide[] = {{1e9, 0, 1}};
	struct job job = rmsnorm;

	job.rules = wide;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_true(result.verdict->weak);
}

/* ---- references that fail ---- */

static void a_reference_that_raises_keeps_its_traceback_and_line(void **state)
{
	struct pool_result result = verify(*state, "import torch\n\ndef helper(x):\n    return x.reshape(3, -1)\n\n"
	                                           "def run(hidden_states, weight):\n    return helper(hidden_states)\n");

	expect(&result, STATUS_ERROR, REASON_RAISED, "the reference raised RuntimeError: shape '[3, -1]' is invalid");
	expect(&result, STATUS_ERROR, REASON_RAISED, "File \"<reference>\", line 4, in helper\n"
	                                             "    return x.reshape(3, -1)");
	assert_int_equal(result.verdict->reference_line, 4);
	assert_null(strstr(result.verdict->message, "runner.py"));
	assert_true(result.keep);
	assert_string_equal(result.verdict->ground_truth, "builtin"); /* so that the failure is found again in the cache */
}

static void references_that_do_not_load_say_where(void **state)
{
	static const struct {
		const char *reference, *says;
		int line;
		bool keep;
	} wrongs[] = {
	    {"import torch\n\ndef run(hidden_states, weight:\n    return 1\n", /* the words differ between Pythons */
	     "cannot be loaded: SyntaxError: ", 3, true},
	    {"def walk():\n    pass\n", "defines no function named run", 0, true},
	    {"run = 3\n", "defines no function named run", 0, true},
	    {"import no_such_module_anywhere\ndef run(): pass\n", "No module named 'no_such_module_anywhere'", 1, false},
	    {"x = 1\ny = 1 / 0\ndef run(): pass\n", "cannot be loaded: ZeroDivisionError", 2, true},
	    {"import sys\nsys.exit('enough')\n", "called sys.exit(enough)", 2, true},
	    {"", "defines no function named run", 0, true},
	};

	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct pool_result result = verify(*state, wrongs[i].reference);

		expect(&result, STATUS_ERROR, REASON_RAISED, wrongs[i].says);
		assert_int_equal(result.verdict->reference_line, wrongs[i].line);
		assert_int_equal(result.keep, wrongs[i].keep);
	}
}

/* It is loaded once, and every case is told. */
static void a_reference_that_does_not_load_fails_every_case(void **state)
{
	struct setting *setting = *state;
	struct job second = rmsnorm;
	const struct job *jobs[] = {&rmsnorm, &second};

	submit(setting->pool, "print('loading')\nraise ValueError('no')\n", jobs, 2, NULL);
	for (int i = 0; i < 2; i++) {
		struct pool_result result = next_result(setting->pool, &setting->arena);

		expect(&result, STATUS_ERROR, REASON_RAISED, "ValueError: no");
		assert_ptr_equal(result.job, jobs[i]);
		if (i == 0)
			assert_string_equal(result.printed, "loading\n");
		else
			assert_null(result.printed);
	}
	expect_all_is_well(setting);
}

static void a_reference_that_ends_its_process_is_blamed_with_the_status(void **state)
{
	static const struct {
		const char *reference, *says;
		enum reason reason;
		bool keep;
	} ends[] = {
	    {HEAD RUN "    sys.exit(3)\n", "the reference called sys.exit(3)", REASON_RAISED, true},
	    {HEAD RUN "    raise KeyboardInterrupt\n", "raised KeyboardInterrupt", REASON_RAISED, true},
	    {HEAD RUN "    os._exit(7)\n", "ended by exit status 7, while it ran", REASON_CRASHED, false},
	    {HEAD "os._exit(0)\n" RUN, "ended by exit status 0, while the reference was loading", REASON_CRASHED, false},
	    {HEAD RUN "    ctypes.string_at(0)\n", "signal 11 (SIGSEGV", REASON_CRASHED, false},
	    {HEAD RUN "    os.abort()\n", "signal 6 (SIGABRT", REASON_CRASHED, false},
	    {HEAD RUN "    os.kill(os.getpid(), 9)\n", "signal 9 (SIGKILL", REASON_CRASHED, false},
	    {HEAD RUN "    os.closerange(3, 4096)\n    time.sleep(600)\n", "closed the descriptor on which it answers",
	     REASON_CRASHED, false},
	};

	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		struct pool_result result = verify(*state, ends[i].reference);

		expect(&result, STATUS_ERROR, ends[i].reason, ends[i].says);
		assert_int_equal(result.keep, ends[i].keep);
	}
	expect_all_is_well(*state);
}

static void a_crash_shows_what_was_printed_and_the_line(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    print('before the fall')\n    ctypes.string_at(0)\n");

	expect(&result, STATUS_ERROR, REASON_CRASHED, NULL);
	assert_non_null(strstr(result.printed, "before the fall\n"));
	assert_non_null(strstr(result.printed, "line 7 in run"));
}

static void only_the_case_that_crashed_is_blamed(void **state)
{
	struct setting *setting = *state;
	struct job other = rmsnorm;
	static const int64_t two[] = {2, HIDDEN};
	const struct job *jobs[] = {&rmsnorm, &other, &rmsnorm};

	other.axis = two;
	submit(setting->pool, HEAD RUN "    if x.shape[0] == 2: os._exit(1)\n    return y\n", jobs, 3, NULL);
	for (int i = 0; i < 3; i++) {
		struct pool_result result = next_result(setting->pool, &setting->arena);

		expect(&result, i == 1 ? STATUS_ERROR : STATUS_PASSED, i == 1 ? REASON_CRASHED : REASON_NONE, NULL);
	}
}

static void printing_disturbs_nothing_and_its_end_is_kept(void **state)
{
	struct pool_result result =
	    verify(*state, HEAD RUN "    print('hello')\n    print('{\"ran\": []}', file=sys.stderr)\n    return y\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_string_equal(result.printed, "hello\n{\"ran\": []}\nhello\n{\"ran\": []}\n");

	result = verify(*state, HEAD RUN "    for i in range(160): print('y' * 65536)\n    print('the end')\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_true(strlen(result.printed) <= (64 << 10) + 64);
	assert_non_null(strstr(result.printed, "bytes before this are not kept"));
	assert_string_equal(result.printed + strlen(result.printed) - 8, "the end\n");

	result = verify(*state, HEAD RUN "    os.write(1, b'a\\0b\\xff')\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_memory_equal(result.printed, "a?b", 3);
}

static void a_long_reference_and_a_long_line_are_taken(void **state)
{
	static const char head[] = "# ", tail[] = "\n" CORRECT;
	enum { LENGTH = 1 << 20 };
	char *long_one = malloc(LENGTH + sizeof head + sizeof tail);
	struct pool_result result;

	memcpy(long_one, head, 2);
	memset(long_one + 2, 'x', LENGTH);
	memcpy(long_one + 2 + LENGTH, tail, sizeof tail);
	result = verify(*state, long_one);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	free(long_one);
	result = verify(*state, HEAD RUN "    raise ValueError('z' * (40 << 20))\n");
	expect(&result, STATUS_ERROR, REASON_RAISED, "ValueError: zzzz");
	assert_true(strlen(result.verdict->message) < 100000);
}

static void taking_more_memory_than_there_is_raises(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    torch.zeros(1 << 50)\n    return y\n");

	expect(&result, STATUS_ERROR, REASON_RAISED, NULL);
	assert_false(result.keep);
	/* untouched memory costs nothing: without a limit of its own it would get far more than there is */
	result = verify(*state, HEAD RUN "    there = int(open('/proc/meminfo').read().split()[1]) >> 20\n    hog = []\n"
	                                 "    try:\n        while True: hog.append(torch.empty(1 << 28))\n"
	                                 "    finally: assert len(hog) <= there, len(hog)\n");
	expect(&result, STATUS_ERROR, REASON_RAISED, "can't allocate memory");
	assert_false(result.keep);
	expect_all_is_well(*state);
}

/* ---- references that cheat or break things ---- */

static void junk_on_every_descriptor_hurts_only_its_own_case(void **state)
{
	struct pool_result result = verify(
	    *state, HEAD RUN "    for fd in range(3, 1024):\n        try: os.write(fd, b'junk\\n')\n"
	                     "        except OSError: pass\n    return y\n");

	expect(&result, STATUS_ERROR, REASON_CRASHED, "sent something that is no answer");
	result = verify(*state, HEAD RUN "    for fd in range(3, 1024):\n        try:\n"
	                                 "            for i in range(1024): os.write(fd, b'x' * 32768)\n"
	                                 "        except OSError: pass\n    return y\n");
	expect(&result, STATUS_ERROR, REASON_CRASHED, "a line without end");
	expect_all_is_well(*state);
}

/* The whole file table, with the answer that the runner would have sent. */
#define FORGED "    for fd in range(3, 1024):\n" \
	       "        try: os.write(fd, b'{\"ran\":[{\"shape\":[4,64],\"dtype\":\"float32\"}]}\\n')\n" \
	       "        except OSError: pass\n"

static void claiming_to_have_run_is_worth_nothing(void **state)
{
	/* never to answer again, and to answer twice */
	struct pool_result result = verify(*state, HEAD RUN FORGED "    time.sleep(600)\n");

	assert_int_not_equal(result.verdict->status, STATUS_PASSED);
	result = verify(*state, HEAD RUN FORGED FORGED FORGED "    time.sleep(600)\n");
	assert_int_not_equal(result.verdict->status, STATUS_PASSED);
	result = verify(*state, HEAD RUN FORGED "    return y * 2\n");
	assert_int_not_equal(result.verdict->status, STATUS_PASSED);
	expect_all_is_well(*state);
}

static void an_output_that_nobody_wrote_cannot_look_deterministic(void **state)
{
	/* the runner's own copying is patched away: both runs leave the poison */
	struct pool_result result = verify(*state, HEAD "torch.Tensor.copy_ = lambda self, other: self\n" RUN "    return y\n");

	expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, NULL);
}

static void what_is_patched_is_whole_again_for_the_next_definition(void **state)
{
	struct pool_result result = verify(*state, HEAD "import builtins, json\n"
	                                                "torch.rsqrt = lambda x: x\ntorch.Tensor.pow = None\n"
	                                                "json.dumps = None\nbuiltins.len = None\n"
	                                                "def run(hidden_states, weight): return hidden_states\n");

	assert_int_not_equal(result.verdict->status, STATUS_PASSED);
	expect_all_is_well(*state);
}

static void threads_and_children_left_behind_do_not_answer(void **state)
{
	/* the copy returns while the second run is under way, in which its tensors lie elsewhere */
	struct pool_result result = verify(*state, HEAD "n = 0\n" RUN "    global n\n    n += 1\n"
	                                                "    if os.fork() == 0: time.sleep(0.2)\n"
	                                                "    elif n == 2: time.sleep(0.6)\n    return y\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	result = verify(*state, HEAD "import threading\n" RUN
	                             "    threading.Thread(target=time.sleep, args=(600,)).start()\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	expect_all_is_well(*state);
}

/* parent(pid); 0: there is no such process (any more) */
#define PARENT "def parent(pid):\n    try: return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n" \
	       "    except OSError: return 0\n"

/* Every process of this user that is not its own: where the kernel has a fence for it, nothing happens; elsewhere the
 * pool loses judge and template, and tries again alone. */
static void killing_its_relatives_gains_nothing(void **state)
{
	struct pool_result result = verify(
	    *state, HEAD PARENT RUN
	                 "    pool = parent(os.getppid())\n"
	                 "    for name in os.listdir('/proc'):\n"
	                 "        try:\n"
	                 "            if name.isdigit() and parent(name) == pool: os.kill(int(name), 9)\n"
	                 "        except OSError: pass\n"
	                 "    return y * 2\n");

	if (result.verdict->status != STATUS_ERROR)
		expect(&result, STATUS_FAILED, REASON_NUMERIC, NULL);
	expect_all_is_well(*state);
}

static void the_memory_of_the_judge_is_closed(void **state)
{
	struct pool_result result = verify(
	    *state, HEAD PARENT RUN
	                 "    pool, opened = parent(os.getppid()), []\n"
	                 "    for name in [str(pool)] + [n for n in os.listdir('/proc') if n.isdigit() and parent(n) == pool]:\n"
	                 "        try: os.close(os.open(f'/proc/{name}/mem', os.O_RDWR)); opened.append(name)\n"
	                 "        except OSError: pass\n"
	                 "    assert not opened, opened\n"
	                 "    return y\n");

	if (geteuid() == 0 && result.verdict->message != NULL && strstr(result.verdict->message, "AssertionError") != NULL) {
		print_message("this kernel fences off no process from root\n");
		skip();
	}
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

/* ---- loops, and processes that are killed from outside ---- */

static void endless_loops_are_ended(void **state)
{
	struct setting slow = {.pool = open_pool(1, 1, false)};
	struct pool_result result = verify(&slow, HEAD RUN "    print('round and round', flush=True)\n    while True: pass\n");

	(void)state;
	expect(&result, STATUS_ERROR, REASON_TIMEOUT, "the reference did not answer within 1 s");
	assert_string_equal(result.printed, "round and round\n");
	assert_false(result.keep);
	result = verify(&slow, "while True: pass\n");
	expect(&result, STATUS_ERROR, REASON_TIMEOUT, "the reference did not load within 1 s");
	result = verify(&slow, HEAD RUN "    time.sleep(600)\n");
	expect(&result, STATUS_ERROR, REASON_TIMEOUT, NULL);
	expect_all_is_well(&slow);
	pool_close(slow.pool);
	arena_free(&slow.arena);
}

/* The parent of a process, 0 if it is gone. */
static pid_t parent_of(const char *pid)
{
	char path[64], text[512] = "";
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	if ((file = fopen(path, "re")) == NULL)
		return 0;
	if (fread(text, 1, sizeof text - 1, file) > 0 && strrchr(text, ')') != NULL)
		sscanf(strrchr(text, ')') + 1, " %*c %d", &parent);
	fclose(file);
	return parent;
}

/* Signals every child of ours whose command line holds `word`; how many there were. */
static int signal_children(const char *word, int number)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while ((entry = readdir(proc)) != NULL) {
		char path[64], text[4096] = "";
		FILE *file;
		size_t length;

		if (parent_of(entry->d_name) != getpid())
			continue;
		snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
		if ((file = fopen(path, "re")) == NULL)
			continue;
		length = fread(text, 1, sizeof text - 1, file);
		fclose(file);
		for (size_t i = 0; i < length; i++)
			text[i] = text[i] == '\0' ? ' ' : text[i];
		if (strstr(text, word) == NULL)
			continue;
		found++;
		kill((pid_t)atoi(entry->d_name), number);
	}
	closedir(proc);
	return found;
}

/* Kills a worker while a reference sleeps in its case, once or every time; a second try must have been made. */
static struct pool_result kill_while_it_runs(struct setting *setting, const char *victim, int times)
{
	static const char mark[] = "/tmp/reftest-test-pool-XXXXXX";
	const struct job *jobs[] = {&rmsnorm};
	char path[sizeof mark], reference[1024];
	struct pool_result result;
	struct err err = {""};
	int fd, killed = 0;

	memcpy(path, mark, sizeof mark);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	/* it says in the file that it runs, and goes on once the file is gone */
	snprintf(reference, sizeof reference,
	         HEAD RUN "    if os.path.exists('%s'): open('%s', 'a').write('x'); time.sleep(600)\n    return y\n", path, path);
	submit(setting->pool, reference, jobs, 1, NULL);
	while (!pool_next(setting->pool, &setting->arena, &result)) {
		struct pollfd poll_pool = {pool_fd(setting->pool), POLLIN, 0};
		char byte;

		poll(&poll_pool, 1, 10);
		if (pool_dispatch(setting->pool, &err) != 0)
			fail_msg("%s", err.text);
		if (read(fd, &byte, 1) == 1) {
			assert_int_equal(signal_children(victim, SIGKILL), 1);
			if (++killed == times)
				unlink(path);
		}
	}
	unlink(path);
	close(fd);
	assert_int_equal(killed, times);
	return result;
}

static void a_judge_or_template_killed_by_others_costs_a_second_try(void **state)
{
	struct pool_result result = kill_while_it_runs(*state, "judge --device", 1);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	result = kill_while_it_runs(*state, "runner.py", 1);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	expect_all_is_well(*state);
}

static void a_judge_killed_twice_is_an_error_of_that_case(void **state)
{
	struct pool_result result = kill_while_it_runs(*state, "judge --device", 2);

	expect(&result, STATUS_ERROR, REASON_CRASHED, "the judge ended by signal 9 (SIGKILL, Killed)");
	expect(&result, STATUS_ERROR, REASON_CRASHED, "twice");
	assert_false(result.keep);
	result = kill_while_it_runs(*state, "runner.py", 2);
	expect(&result, STATUS_ERROR, REASON_CRASHED, "ended together with its parent");
	expect_all_is_well(*state);
}

/* Is there a process whose environment has this word? */
static bool any_process_with(const char *word)
{
	char command[256];

	snprintf(command, sizeof command, "grep -qsa '%s' /proc/[0-9]*/environ", word);
	return system(command) == 0;
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void closing_leaves_no_process_and_no_descriptor_behind(void **state)
{
	int before = open_descriptors();
	struct setting busy = {.pool = open_pool(2, GENEROUS_S, false)};
	const struct job *jobs[] = {&rmsnorm};
	struct err err = {""};
	char path[] = "/tmp/reftest-test-pool-XXXXXX", reference[1024], byte;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	setenv("REFTEST_TEST_MARK", path, 1);
	/* a daemon in a session of its own, which ignores what can be ignored, and a child that is stopped */
	snprintf(reference, sizeof reference,
	         HEAD "import subprocess\n" RUN
	              "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP INT; sleep 600'], start_new_session=True)\n"
	              "    subprocess.Popen(['sh', '-c', 'kill -STOP $$; sleep 600'])\n"
	              "    open('%s', 'a').write('x')\n    time.sleep(600)\n", path);
	for (int i = 0; i < 2; i++)
		submit(busy.pool, reference, jobs, 1, NULL);
	for (int ready = 0; ready < 2; ready += read(fd, &byte, 1) == 1) {
		struct pollfd poll_pool = {pool_fd(busy.pool), POLLIN, 0};

		poll(&poll_pool, 1, 10);
		assert_int_equal(pool_dispatch(busy.pool, &err), 0);
	}
	unlink(path);
	close(fd);
	unsetenv("REFTEST_TEST_MARK");
	assert_true(any_process_with(path));
	pool_close(busy.pool);
	assert_false(any_process_with(path));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(open_descriptors(), before);
	arena_free(&busy.arena);
}

/* A daemon in a session of its own outlives the process that started it, and the definition ends it all the same. */
static void what_a_reference_leaves_running_is_ended_with_it(void **state)
{
	static const char reference[] =
	    HEAD "import subprocess\n" RUN
	         "    subprocess.Popen(['sh', '-c', 'sleep 600; : left-by-test-pool'], start_new_session=True)\n    return y\n";
	struct setting *setting = *state;
	struct pool_result result = verify(setting, reference);
	struct err err = {""};
	int patience = 500;

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	while (system("grep -qsa 'sleep 600; : [l]eft-by-test-pool' /proc/[0-9]*/cmdline") == 0 && --patience > 0) {
		struct pollfd poll_pool = {pool_fd(setting->pool), POLLIN, 0};

		poll(&poll_pool, 1, 10);
		assert_int_equal(pool_dispatch(setting->pool, &err), 0);
	}
	assert_true(patience > 0);
}

/* What `test_pool abandon REFERENCE` does: it starts a reference and waits to be killed. */
static int abandon(const char *reference)
{
	const struct job *jobs[] = {&rmsnorm};
	struct setting setting = {.pool = open_pool(1, GENEROUS_S, false)};

	submit(setting.pool, reference, jobs, 1, NULL);
	next_result(setting.pool, &setting.arena);
	return 1;
}

static void when_the_program_itself_is_killed_nothing_stays_behind(void **state)
{
	char path[] = "/tmp/reftest-test-pool-XXXXXX", reference[1024], byte;
	int fd = mkstemp(path);
	const int fds[] = {-1, STDERR_FILENO, STDERR_FILENO};
	struct process program;
	struct err err = {""};
	int status;

	(void)state;
	assert_true(fd >= 0);
	snprintf(reference, sizeof reference,
	         HEAD "import subprocess\n" RUN
	              "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP INT; sleep 600'], start_new_session=True)\n"
	              "    open('%s', 'a').write('x')\n    time.sleep(600)\n", path);
	char *argv[] = {"test_pool", "abandon", reference, NULL};

	setenv("REFTEST_TEST_MARK", path, 1);
	assert_int_equal(process_start(&program, "/proc/self/exe", argv, environ, fds, 3, &err), 0);
	unsetenv("REFTEST_TEST_MARK");
	while (read(fd, &byte, 1) == 0) {
		assert_false(process_ended(&program, &status));
		poll(NULL, 0, 10);
	}
	assert_true(any_process_with(path));
	kill(program.pid, SIGKILL);
	while (!process_ended(&program, &status))
		poll(NULL, 0, 10);
	for (int patience = 500; any_process_with(path) && patience > 0; patience--)
		poll(NULL, 0, 10);
	assert_false(any_process_with(path));
	unlink(path);
	close(fd);
}

/* ---- the pool itself ---- */

/* A case for which there is no memory while another is at work is tried again when that has ended. */
static void no_memory_is_only_believed_when_nobody_else_is_at_work(void **state)
{
	struct setting wide = {.pool = open_pool(2, GENEROUS_S, false)};
	static const int64_t huge[] = {(int64_t)1 << 40, HIDDEN};
	struct job large = rmsnorm;
	const struct job *small_jobs[] = {&rmsnorm}, *large_jobs[] = {&large};
	char path[] = "/tmp/reftest-test-pool-XXXXXX", reference[1024];
	int fd = mkstemp(path);
	struct pool_result result;
	struct err err = {""};

	(void)state;
	assert_true(fd >= 0);
	large.axis = huge;
	snprintf(reference, sizeof reference, HEAD RUN "    while os.path.exists('%s'): time.sleep(0.01)\n    return y\n", path);
	submit(wide.pool, reference, small_jobs, 1, NULL);
	submit(wide.pool, CORRECT, large_jobs, 1, NULL);
	while (wide.pool->yard.alone.first == NULL) {
		struct pollfd poll_pool = {pool_fd(wide.pool), POLLIN, 0};

		assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
		assert_int_equal(pool_dispatch(wide.pool, &err), 0);
		assert_false(pool_next(wide.pool, &wide.arena, &result));
	}
	unlink(path);
	close(fd);
	result = next_result(wide.pool, &wide.arena);
	assert_ptr_equal(result.job, &rmsnorm);
	result = next_result(wide.pool, &wide.arena);
	assert_ptr_equal(result.job, &large);
	expect(&result, STATUS_SKIPPED, REASON_MEMORY, NULL);
	pool_close(wide.pool);
	arena_free(&wide.arena);
}


enum { SLOW_S = 2, SPARES = 3 };

/* Children that take SLOW_S to be ready, as they do on a GPU, and such that go on warming up for a minute after that. */
#define SLOW "runner.warm_up = lambda *how: (time.sleep(2), warm_up(*how))[1]\n"
#define LONG "runner.further_steps = lambda device: ((lambda: time.sleep(0.02)) for _ in range(3000))\n"
#define FAILING "runner.further_steps = lambda device: ((lambda: 1 / 0) for _ in range(3))\n"

/* A runner.py that is patched; unlink() what `path` names. */

static void write_slow_runner(char path[64], const char *patch)
{
	FILE *file;
	int fd;

	strcpy(path, "/tmp/reftest-test-pool-XXXXXX");
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	assert_non_null(file);
	fprintf(file,
	        "import importlib.util, sys, time\n"
	        "spec = importlib.util.spec_from_file_location('runner', '%s')\n"
	        "runner = sys.modules['runner'] = importlib.util.module_from_spec(spec)\n"
	        "spec.loader.exec_module(runner)\n"
	        "warm_up = runner.warm_up\n"
	        "%s"
	        "sys.exit(runner.main())\n", getenv("REFTEST_RUNNER"), patch);
	assert_int_equal(fclose(file), 0);
}

/* A warm pool whose spares are all ready. */
static struct pool *open_slow_pool(const char *patch)
{
	struct pool_options options = {.device = "cpu", .python = python(), .root = "/", .lanes = 1,
	                               .timeout_s = GENEROUS_S, .spares = SPARES};
	char path[64], *usual = strdup(getenv("REFTEST_RUNNER"));
	struct err err = {""};
	struct pool *pool;

	assert_non_null(usual);
	write_slow_runner(path, patch);
	setenv("REFTEST_RUNNER", path, 1);
	pool = pool_open(&options, &err);
	setenv("REFTEST_RUNNER", usual, 1);
	free(usual);
	assert_non_null(pool);
	pool_warm(pool);
	while (pool_spares(pool) < SPARES || !pool->yard.lanes[0].up) {
		struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

		assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
		assert_int_equal(pool_dispatch(pool, &err), 0);
	}
	unlink(path);
	return pool;
}

static void spares_made_ahead_answer_a_burst(void **state)
{
	struct setting warm = {.pool = open_slow_pool(SLOW)};
	int64_t start = clock_ms();

	(void)state;
	for (int i = 0; i < SPARES; i++) {
		struct pool_result result = verify(&warm, CORRECT);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	}
	if (clock_ms() - start >= SLOW_S * 1000)
		fail_msg("%d definitions waited for a runner: %lld ms", SPARES, (long long)(clock_ms() - start));
	pool_close(warm.pool);
	arena_free(&warm.arena);
}

static void a_spare_that_warms_on_makes_way(void **state)
{
	static const char *const patches[] = {LONG, FAILING};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct setting warm = {.pool = open_slow_pool(patches[i])};
		int64_t start = clock_ms();
		struct pool_result result = verify(&warm, CORRECT);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
		if (clock_ms() - start > 20000)
			fail_msg("a definition waited %lld ms for a runner to be as warm as can be",
			         (long long)(clock_ms() - start));
		pool_close(warm.pool);
		arena_free(&warm.arena);
	}
}

/* On a device of which each spare holds memory a case that lacks some is tried again without them. */
static void spares_make_room_for_a_case_that_lacks_memory(void **state)
{
	struct setting warm = {.pool = open_slow_pool(SLOW)};
	static const int64_t huge[] = {(int64_t)1 << 40, HIDDEN};
	struct job large = rmsnorm;
	char *device = warm.pool->yard.device;

	(void)state;
	large.axis = huge;
	warm.pool->yard.device = strdup("one with little memory");
	assert_non_null(warm.pool->yard.device);
	struct pool_result result = verify_job(&warm, CORRECT, &large);

	expect(&result, STATUS_SKIPPED, REASON_MEMORY, NULL);
	assert_int_equal(pool_spares(warm.pool), 0); /* new ones are not ready yet */
	result = verify(&warm, CORRECT);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	free(warm.pool->yard.device);
	warm.pool->yard.device = device;
	pool_close(warm.pool);
	arena_free(&warm.arena);
}

/* On a GPU what bounds a burst is how many contexts can be made; on the CPU making one would take a run's time. */
static void spares_are_made_anew_when_they_do_not_disturb(void **state)
{
	static const struct {
		const char *device;
		bool warm;
		int spares, waiting, working;
		bool refill;
	} rows[] = {
	    {"cpu", true, 0, 0, 0, true},     {"cpu", true, 0, 1, 0, false},    {"cpu", true, 0, 0, 1, false},
	    {"cpu", false, 0, 0, 0, false},   {"cuda:0", true, 4, 0, 0, true},  {"cuda:0", true, 0, 1, 0, true},
	    {"cuda:0", true, 2, 0, 1, false}, {"cuda:0", true, 1, 0, 1, true},  {"cuda:0", true, 0, 1, 1, true},
	    {"cuda:0", false, 0, 1, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct child children[4] = {{.state = CHILD_NONE}};
		char device[16];
		struct pool pool = {.warm = rows[i].warm, .yard = {.device = device, .crew = {.children = children, .room = 4}}};

		snprintf(device, sizeof device, "%s", rows[i].device);
		for (int k = 0; k < rows[i].spares; k++)
			children[k].state = CHILD_SPARE;
		if (may_refill(&pool, rows[i].waiting, rows[i].working) != rows[i].refill)
			fail_msg("row %zu is wrong", i);
	}
}

static void cases_of_several_definitions_run_side_by_side(void **state)
{
	struct setting wide = {.pool = open_pool(3, GENEROUS_S, false)};
	const struct job *jobs[] = {&rmsnorm, &rmsnorm};
	int owners[8], told[8] = {0};

	(void)state;
	for (int i = 0; i < 8; i++)
		submit(wide.pool, i % 2 == 0 ? CORRECT : HEAD RUN "    return y + 1\n", jobs, 2, &owners[i]);
	assert_int_equal(pool_pending(wide.pool), 16);
	for (int i = 0; i < 16; i++) {
		struct pool_result result = next_result(wide.pool, &wide.arena);
		ptrdiff_t who = (int *)result.owner - owners;

		assert_int_equal(result.verdict->status, who % 2 == 0 ? STATUS_PASSED : STATUS_FAILED);
		told[who]++;
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(told[i], 2);
	pool_close(wide.pool);
	arena_free(&wide.arena);
}

static void what_is_cancelled_is_not_told(void **state)
{
	struct setting *setting = *state;
	const struct job *jobs[] = {&rmsnorm, &rmsnorm};
	int running, queued;

	submit(setting->pool, HEAD RUN "    time.sleep(600)\n", jobs, 2, &running);
	submit(setting->pool, CORRECT, jobs, 2, &queued);
	submit(setting->pool, CORRECT, jobs, 1, setting);
	for (int i = 0; i < 20; i++) {
		struct pollfd poll_pool = {pool_fd(setting->pool), POLLIN, 0};
		struct err err = {""};

		poll(&poll_pool, 1, 20);
		assert_int_equal(pool_dispatch(setting->pool, &err), 0);
	}
	assert_int_equal(pool_pending(setting->pool), 5);
	pool_cancel(setting->pool, &running);
	pool_cancel(setting->pool, &queued);
	assert_int_equal(pool_pending(setting->pool), 1);
	struct pool_result result = next_result(setting->pool, &setting->arena);

	assert_ptr_equal(result.owner, setting);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

static void tensors_may_go_through_the_host(void **state)
{
	struct setting staged = {.pool = open_pool(1, GENEROUS_S, true)};
	struct pool_result result = verify(&staged, CORRECT);

	(void)state;
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	result = verify(&staged, HEAD RUN "    y[0, 1] += 1\n    return y\n");
	expect(&result, STATUS_FAILED, REASON_NUMERIC, "[0, 1]");
	result = verify(&staged, HEAD RUN "    w[5] = 77\n    return y\n");
	expect(&result, STATUS_FAILED, REASON_MUTATED_INPUT, "'weight', first at [5]");
	pool_close(staged.pool);
	arena_free(&staged.arena);
}

static void a_case_that_is_too_large_is_skipped_with_both_figures(void **state)
{
	static const int64_t huge[] = {(int64_t)1 << 40, HIDDEN};
	struct job job = rmsnorm;

	job.axis = huge;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_SKIPPED, REASON_MEMORY, "the case needs 1");
	expect(&result, STATUS_SKIPPED, REASON_MEMORY, " are free");
	assert_false(result.keep);
	expect_all_is_well(*state);
}

static void a_blob_that_is_not_there_is_skipped(void **state)
{
	static const struct input_source from_file[] = {
	    {.kind = SOURCE_SAFETENSORS, .path = "no/such/file.safetensors", .tensor_key = "x"}, {.kind = SOURCE_RANDOM}};
	struct job job = rmsnorm;

	job.inputs = from_file;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_SKIPPED, REASON_MISSING_BLOB, "no/such/file.safetensors");
	assert_false(result.keep);
}

static void without_a_family_form_and_determinism_are_still_checked(void **state)
{
	struct job job = rmsnorm;

	job.op = NULL;
	job.no_truth = "no family knows this";
	job.constant_count = 0;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "no family knows this");
	assert_null(result.verdict->ground_truth);
	result = verify_job(*state, HEAD RUN "    return y.T\n", &job);
	expect(&result, STATUS_FAILED, REASON_SHAPE, NULL);
	result = verify_job(*state, HEAD "n = 0\n" RUN "    global n\n    n += 1\n    return y + n\n", &job);
	expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, NULL);
	result = verify_job(*state, HEAD RUN "    x[1, 2] = 9\n    return y\n", &job);
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, NULL);
	assert_int_equal(result.verdict->finding_count, 1);
	assert_non_null(strstr(result.verdict->findings[0], "changed its input 'hidden_states', first at [1, 2]: "));
	result = verify_job(*state, HEAD RUN "    raise ValueError('not like this')\n", &job);
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "no family knows this\nOn generic inputs");
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "ValueError: not like this");
	result = verify_job(*state, "def run(: pass\n", &job);
	expect(&result, STATUS_ERROR, REASON_RAISED, "SyntaxError");
}

static void a_constant_that_nothing_attests_is_probed(void **state)
{
	struct setting *setting = *state;
	struct job job = rmsnorm;
	const struct job *jobs[] = {&job, &job};

	job.constants[0] = (struct op_constant){"eps", NAN, "unattested", ""};
	submit(setting->pool, HEAD RUN "    return y\n", jobs, 2, NULL);
	for (int i = 0; i < 2; i++) {
		struct pool_result result = next_result(setting->pool, &setting->arena);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
		assert_int_equal(result.verdict->constant_count, 1);
		assert_true(fabs(result.verdict->constants[0].value - 1e-6) < 1e-9);
		assert_string_equal(result.verdict->constants[0].source, "unattested");
		assert_int_equal(result.verdict->finding_count, 1);
		assert_string_equal(result.verdict->findings[0],
		                    "eps is attested nowhere; probing the reference shows 1e-06");
	}
	struct pool_result result = verify_job(setting, HEAD RUN "    return y + float('nan')\n", &job);

	assert_int_not_equal(result.verdict->status, STATUS_PASSED);
}

/* Every dtype, a 0-D tensor, one without elements, an absent one, and Python scalars of each kind, in and out. */
static void every_kind_of_argument_arrives_and_returns(void **state)
{
	static const struct op_axis sizes[] = {{"n", true, 0}, {"none", true, 0}};
	static const int64_t values[] = {6, 0};
	struct op_arg in[OP_ARGS] = {{0}}, out[OP_ARGS] = {{0}};
	struct input_source from[OP_ARGS] = {{0}};
	struct rule exact[OP_ARGS];
	char names[OP_ARGS][16];
	int count = 0;
	struct job job = rmsnorm;

	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++, count++)
		in[count] = (struct op_arg){.dtype = (enum dtype)dtype, .rank = 1};
	in[count++] = (struct op_arg){.dtype = DTYPE_FLOAT16, .rank = 0};
	in[count++] = (struct op_arg){.dtype = DTYPE_BFLOAT16, .rank = 3, .axis = {0, 1, 0}};
	in[count++] = (struct op_arg){.dtype = DTYPE_INT64, .rank = OP_SCALAR};
	in[count++] = (struct op_arg){.dtype = DTYPE_FLOAT32, .rank = OP_SCALAR};
	in[count++] = (struct op_arg){.dtype = DTYPE_BOOL, .rank = OP_SCALAR};
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "a%d", i);
		out[i] = in[i];
		in[i].name = out[i].name = names[i];
		exact[i] = (struct rule){0, 0, 1};
	}
	from[count - 3] =
	    (struct input_source){.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_INT, .integer = ((int64_t)1 << 60) + 1};
	from[count - 2] = (struct input_source){.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_FLOAT, .number = -INFINITY};
	from[count - 1] = (struct input_source){.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_BOOL, .integer = 1, .number = 1};
	in[count] = (struct op_arg){.name = "absent", .dtype = DTYPE_FLOAT32, .rank = 1, .optional = true};
	from[count].kind = SOURCE_ABSENT;
	job.problem = (struct op_problem){.name = "all", .op_type = "all", .description = "", .axes = sizes, .axis_count = 2,
	                                  .inputs = in, .input_count = count + 1, .outputs = out, .output_count = count};
	job.axis = values;
	job.inputs = from;
	job.rules = exact;
	job.op = NULL;
	job.no_truth = "none";
	job.constant_count = 0;
	struct pool_result result = verify_job(
	    *state, HEAD "def run(absent, **a):\n"
	                 "    assert absent is None\n"
	                 "    assert type(a['a17']) is int and a['a17'] == 2**60 + 1, a['a17']\n"
	                 "    assert type(a['a18']) is float and a['a18'] == float('-inf'), a['a18']\n"
	                 "    assert a['a19'] is True, a['a19']\n"
	                 "    assert a['a15'].shape == () and a['a16'].shape == (6, 0, 6)\n"
	                 "    assert a['a0'].abs().sum() > 0 and a['a6'].sum() == 0 and a['a10'].dtype == torch.bool\n"
	                 "    return a\n", &job);

	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "none");
	result = verify_job(*state, HEAD "def run(absent, **a):\n    a['a17'] = 0.5\n    return a\n", &job);
	expect(&result, STATUS_FAILED, REASON_DTYPE, "output 'a17': returned () float32, declared () int64");
}

static void sources_that_disagree_are_a_finding(void **state)
{
	struct job job = rmsnorm;

	strcpy(job.constants[0].conflict, "the description says that eps is 1e-05");
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_int_equal(result.verdict->finding_count, 1);
	assert_string_equal(result.verdict->findings[0], job.constants[0].conflict);
}

static void an_interpreter_without_torch_is_a_sentence(void **state)
{
	static const struct {
		const char *python, *says;
	} wrongs[] = {{"/bin/true", "does not come up as a runner (exit status 0)"},
	              {"/no/such/python", "/no/such/python cannot be started"}};
	const struct job *jobs[] = {&rmsnorm};

	(void)state;
	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct pool_options options = {.device = "cpu", .python = wrongs[i].python, .root = "/", .lanes = 1,
		                               .timeout_s = GENEROUS_S};
		struct err err = {""};
		struct pool *pool = pool_open(&options, &err);
		int rc = 0;

		assert_non_null(pool);
		submit(pool, CORRECT, jobs, 1, NULL);
		while (rc == 0) {
			struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

			assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
			rc = pool_dispatch(pool, &err);
		}
		if (strstr(err.text, wrongs[i].says) == NULL)
			fail_msg("%s", err.text);
		pool_close(pool);
	}
}

static void a_device_is_asked_for_its_class(void **state)
{
	char class_name[64], product[256];
	struct err err = {""};

	(void)state;
	assert_int_equal(pool_probe_device("cpu", class_name, sizeof class_name, product, sizeof product, &err), 0);
	assert_string_equal(class_name, "cpu");
	assert_int_equal(pool_probe_device("tpu", class_name, sizeof class_name, product, sizeof product, &err), -1);
	assert_string_equal(err.text, "there is no device \"tpu\"; devices are cpu and cuda:N");
}

/* Where this build keeps what is beside the program when it is installed. */
static void find_build(void)
{
	const char *build = getenv("REFTEST_BUILD");
	char here[4096], path[8192];

	assert_non_null(getcwd(here, sizeof here));
	snprintf(path, sizeof path, "%s%s%s", build != NULL && build[0] == '/' ? "" : here,
	         build != NULL && build[0] == '/' ? "" : "/", build == NULL ? "build" : build);
	setenv("REFTEST_KERNELS", path, 0);
	snprintf(path, sizeof path, "%s/workers/runner.py", here);
	setenv("REFTEST_RUNNER", path, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_right_reference_passes),
	    cmocka_unit_test(a_wrong_element_fails_with_its_place_and_both_values),
	    cmocka_unit_test(a_nan_and_an_infinity_fail),
	    cmocka_unit_test(a_claim_that_nobody_asked_for_is_passed_over),
	    cmocka_unit_test(wrong_shapes_dtypes_and_numbers_are_told),
	    cmocka_unit_test(outputs_may_come_as_tuple_list_or_dict_and_need_not_be_contiguous),
	    cmocka_unit_test(an_input_that_is_written_to_is_named),
	    cmocka_unit_test(an_output_may_be_an_input),
	    cmocka_unit_test(answers_that_change_are_nondeterministic),
	    cmocka_unit_test(garbage_is_collected),
	    cmocka_unit_test(random_numbers_are_seeded_alike),
	    cmocka_unit_test(writing_outside_the_tensors_is_an_error),
	    cmocka_unit_test(zeros_where_zeros_are_right_are_weak),
	    cmocka_unit_test(a_reference_that_raises_keeps_its_traceback_and_line),
	    cmocka_unit_test(references_that_do_not_load_say_where),
	    cmocka_unit_test(a_reference_that_does_not_load_fails_every_case),
	    cmocka_unit_test(a_reference_that_ends_its_process_is_blamed_with_the_status),
	    cmocka_unit_test(a_crash_shows_what_was_printed_and_the_line),
	    cmocka_unit_test(only_the_case_that_crashed_is_blamed),
	    cmocka_unit_test(printing_disturbs_nothing_and_its_end_is_kept),
	    cmocka_unit_test(a_long_reference_and_a_long_line_are_taken),
	    cmocka_unit_test(taking_more_memory_than_there_is_raises),
	    cmocka_unit_test(junk_on_every_descriptor_hurts_only_its_own_case),
	    cmocka_unit_test(claiming_to_have_run_is_worth_nothing),
	    cmocka_unit_test(an_output_that_nobody_wrote_cannot_look_deterministic),
	    cmocka_unit_test(what_is_patched_is_whole_again_for_the_next_definition),
	    cmocka_unit_test(threads_and_children_left_behind_do_not_answer),
	    cmocka_unit_test(what_a_reference_leaves_running_is_ended_with_it),
	    cmocka_unit_test(killing_its_relatives_gains_nothing),
	    cmocka_unit_test(the_memory_of_the_judge_is_closed),
	    cmocka_unit_test(a_judge_or_template_killed_by_others_costs_a_second_try),
	    cmocka_unit_test(a_judge_killed_twice_is_an_error_of_that_case),
	    cmocka_unit_test(what_is_cancelled_is_not_told),
	    cmocka_unit_test(a_case_that_is_too_large_is_skipped_with_both_figures),
	    cmocka_unit_test(a_blob_that_is_not_there_is_skipped),
	    cmocka_unit_test(without_a_family_form_and_determinism_are_still_checked),
	    cmocka_unit_test(a_constant_that_nothing_attests_is_probed),
	    cmocka_unit_test(every_kind_of_argument_arrives_and_returns),
	    cmocka_unit_test(sources_that_disagree_are_a_finding),
	};
	const struct CMUnitTest own_pools[] = {
	    cmocka_unit_test(endless_loops_are_ended),
	    cmocka_unit_test(closing_leaves_no_process_and_no_descriptor_behind),
	    cmocka_unit_test(when_the_program_itself_is_killed_nothing_stays_behind),
	    cmocka_unit_test(no_memory_is_only_believed_when_nobody_else_is_at_work),
	    cmocka_unit_test(spares_made_ahead_answer_a_burst),
	    cmocka_unit_test(a_spare_that_warms_on_makes_way),
	    cmocka_unit_test(spares_make_room_for_a_case_that_lacks_memory),
	    cmocka_unit_test(spares_are_made_anew_when_they_do_not_disturb),
	    cmocka_unit_test(cases_of_several_definitions_run_side_by_side),
	    cmocka_unit_test(tensors_may_go_through_the_host),
	    cmocka_unit_test(an_interpreter_without_torch_is_a_sentence),
	    cmocka_unit_test(a_device_is_asked_for_its_class),
	};

	if (argc > 1 && strcmp(argv[1], "judge") == 0)
		return judge_main(argc - 1, argv + 1);
	find_build();
	if (argc > 2 && strcmp(argv[1], "abandon") == 0)
		return abandon(argv[2]);
	if (argc > 1) /* one test, by its name */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, set_up, tear_down) + cmocka_run_group_tests(own_pools, NULL, NULL);
}
