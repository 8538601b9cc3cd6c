/* test_pool_references - real references, run by a real judge and a real Python, get the right verdicts. Some of these
 * references fail, cheat or cause damage, but none of them affects the next reference. */
#include "tests/unit/pool_world.h"
#include "workers/pool/memory_limit.h"
#include "workers/sandbox/sandbox.h"

/* --- verdicts on outputs ------------------------------------------------------------------------------------------ */

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
	assert_int_equal(verdict->elements, 2 * BATCH * HIDDEN); /* the verdict counts the elements of both sets of
								  * input values */
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

/* The reference patches the runner, so that the runner reports a missing gradient. The case asks for no gradients, so
 * the pool ignores this report. */
static void a_claim_that_was_not_requested_is_ignored(void **state)
{
	struct pool_result result = verify(*state, HEAD "import sys\n"
	                                                "def claim(store):\n"
	                                                "    return lambda *a: {**store(*a), 'none': True}\n"
	                                                "Arena = sys.modules['__main__'].Arena\n"
	                                                "Arena.store = claim(Arena.store)\n" RUN "    y[0, 0] = 7\n    return y\n");

	expect(&result, STATUS_FAILED, REASON_NUMERIC, "[0, 0]: 7");
	assert_null(strstr(result.verdict->message, "autograd"));
}

static void wrong_shapes_dtypes_and_numbers_of_outputs_are_reported(void **state)
{
	static const struct {
		const char *reference, *says;
		enum status status;
		enum reason reason;
	} wrongs[] = {
	    {HEAD RUN "    return y.T\n", "output 'output' is (64, 4) float32, but it is declared as (4, 64) float32",
	     STATUS_FAILED, REASON_SHAPE},
	    {HEAD RUN "    return y[:, None]\n", "is (4, 1, 64) float32", STATUS_FAILED, REASON_SHAPE},
	    {HEAD RUN "    return y[0, 0]\n", "is () float32", STATUS_FAILED, REASON_SHAPE},
	    {HEAD RUN "    return y.double()\n", "is (4, 64) float64, but it is declared as (4, 64) float32", STATUS_FAILED,
	     REASON_DTYPE},
	    {HEAD RUN "    return y, y\n", "returned 2 outputs, but the definition declares 1 (output)", STATUS_ERROR,
	     REASON_RAISED},
	    {HEAD RUN "    return ()\n", "returned 0 outputs", STATUS_ERROR, REASON_RAISED},
	    {HEAD RUN "    return None\n", "returned None for output 'output'", STATUS_ERROR, REASON_RAISED},
	    {HEAD RUN "    return 'done'\n", "a value of type str", STATUS_ERROR, REASON_RAISED},
	    {HEAD RUN "    return {'out': y}\n", "returned a dict with the keys (out), but the definition declares "
						 "the outputs (output)", STATUS_ERROR,
	     REASON_RAISED},
	    {HEAD RUN "    return y.view(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4,64)\n", "a tensor of 20 dimensions", STATUS_FAILED,
	     REASON_SHAPE},
	};

	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct pool_result result = verify(*state, wrongs[i].reference);

		expect(&result, wrongs[i].status, wrongs[i].reason, wrongs[i].says);
		assert_true(result.keep);
	}
}

static void outputs_may_come_scaleb_list_or_dict_and_need_not_be_contiguous(void **state)
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

	/* the reason is a wrong result, not a mutated input or an error */
	expect(&result, STATUS_FAILED, REASON_NUMERIC, NULL);
	assert_true(result.verdict->outputs[0].metrics.hits < BATCH * HIDDEN);
}

/* The runner gets the names of attributes that no class of Python or torch may have. It reports the first name that a class
 * has, and forgets the report before the next reference. */
static void attributes_of_classes_are_reported(void **state)
{
	static const struct {
		const char *attributes, *reached;
	} rows[] = {
	    {"made_up_7 deleter", "it used the attribute 'deleter', which objects of Python or torch also have"},
	    {"made_up_7", NULL},
	    {"_backward_hooks", "it used the attribute '_backward_hooks', which objects of Python or torch also have"},
	    {"scaleb", "it used the attribute 'scaleb', which objects of Python or torch also have"}, /* decimal */
	    {"__chain_b", "it used the attribute '__chain_b', which objects of Python or torch also have"},
	    {"made_up_7 __made_up_8", NULL},
	    {"", NULL},
	};
	struct setting *setting = *state;
	const struct job *jobs[] = {&rmsnorm};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct task task = {.name = "rmsnorm/rmsnorm_h64", .reference = CORRECT, .jobs = jobs, .job_count = 1,
					  .attributes = rows[i].attributes};

		pool_submit(setting->pool, &task);
		struct pool_result result = next_result(setting->pool, &setting->arena);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
		assert_int_equal(result.keep, rows[i].reached == NULL);
		assert_string_equal(result.reached == NULL ? "nothing" : result.reached,
				    rows[i].reached == NULL ? "nothing" : rows[i].reached);
	}
}

/* Verifies the references of the next two tests. */
static void expect_that_uses_are_reported(void **state)
{
	static const struct {
		const char *reference, *says;
	} reaches[] = {
	    {HEAD "NAME = open('/etc/passwd').readline()\n" RUN "    return y\n", "it opened /etc/passwd"},
	    {HEAD RUN "    open('/etc/../etc/passwd').close()\n    return y\n", "it opened /etc/../etc/passwd"},
	    {HEAD RUN "    import socket; socket.gethostname()\n    return y\n", "it caused Python's audit event socket.gethostname"},
	    {HEAD RUN "    import subprocess; subprocess.call(['true'])\n    return y\n", "subprocess.Popen"},
	    {HEAD RUN "    import os; os.listdir('/')\n    return y\n", "it opened /"},
	    {HEAD RUN "    import ctypes; ctypes.CDLL('/nothing.so') if x is None else 0\n    import os; os.system('true')\n    return y\n",
	     "os.system"},
	};

	for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
		struct pool_result result = verify(*state, reaches[i].reference);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
		assert_false(result.keep);
		if (result.reached == NULL || strstr(result.reached, reaches[i].says) == NULL)
			fail_msg("reported is '%s', not '%s'", result.reached, reaches[i].says);
	}

	/* Importing a module of the interpreter does not prevent caching, because such modules do not change between
	 * runs. */
	struct pool_result result = verify(*state, HEAD RUN "    import wave; print(wave)\n    return y\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_null(result.reached);
	assert_true(result.keep);
}

/* The verdict is not stored if Python's audit events show that the reference opened or imported a file outside the
 * folders of its interpreter, started a process, or connected to a server. */
static void what_a_reference_uses_outside_its_process_is_reported(void **state)
{
	expect_that_uses_are_reported(state);
}

/* While a runner waits for its first reference, it warms up, and the warm-up already installs the audit hook. What
 * happens between the warm-up and the load of the reference is not reported. */
static void a_warm_runner_reports_what_its_reference_uses(void **state)
{
	static const char patch[] = "load = runner.Child.load\n"
				    "def load_warm(self, message):\n"
				    "    for step in runner.further_steps(self):\n"
				    "        step()\n"
				    "    assert self.is_watched\n"
				    "    open('/etc/hostname').close()\n"
				    "    return load(self, message)\n"
				    "runner.Child.load = load_warm\n";
	struct pool_options options = {.device = "cpu", .python = python(), .root = "/", .lanes = 1,
				       .timeout_s = GENEROUS_S, .judge = test_judge()};
	struct setting warm = *(struct setting *)*state;
	char path[64];

	warm.pool = open_patched_pool(&options, patch, path);
	void *other = &warm;

	expect_that_uses_are_reported(&other);
	((struct setting *)*state)->arena = warm.arena; /* the arena may have grown */
	pool_close(warm.pool);
	unlink(path);
}

static void answers_that_change_are_nondeterministic(void **state)
{
	static const char *const fickle[] = {
	    /* The first reference's result depends on a counter, the second one's on the clock, and the third one's on
	     * a memory address. The address differs between runs, because the shared arena has two layouts. */
	    HEAD "n = 0\n" RUN "    global n\n    n += 1\n    y[3, 63] += n * 1e-7\n    return y\n",
	    HEAD RUN "    return y + (time.perf_counter_ns() % 1000003) * 1e-13\n",
	    HEAD RUN "    return y + (x.data_ptr() % 65536) * 1e-12\n",
	};

	for (size_t i = 0; i < sizeof fickle / sizeof fickle[0]; i++) {
		struct pool_result result = verify(*state, fickle[i]);

		expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, "differs between two runs on the same inputs, first at [");
	}
}

/* The garbage collector is off while torch is imported. The collector is on again while a reference runs, because
 * cycles of Python objects may keep tensors alive. */
static void garbage_is_collected(void **state)
{
	struct pool_result result = verify(*state, HEAD RUN "    import gc\n    assert gc.isenabled(), 'nobody collects'\n    return y\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

/* In the third run of a reference, the inputs have the same values as in the first run, but every random generator that
 * a reference may use has another seed. */
static void what_depends_on_a_generators_seed_is_nondeterministic(void **state)
{
	static const char *const random[] = {
	    HEAD RUN "    return y * (1 + 1e-6 * torch.rand(()))\n",
	    HEAD "import random\n" RUN "    return y * (1 + 1e-6 * random.random())\n",
	};

	for (size_t i = 0; i < sizeof random / sizeof random[0]; i++) {
		struct pool_result result = verify(*state, random[i]);

		expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, "differs between two runs on the same inputs");
	}
}

/* A reference runs on the first set of input values, on other values of the same shapes, and on the first set again. */
static void what_is_kept_between_calls_is_found(void **state)
{
	static const char *const keepers[] = {
	    HEAD "kept = {}\n" RUN "    return kept.setdefault(x.shape, y)\n",
	    HEAD "kept = {}\n" RUN "    return y * (kept.setdefault(x.shape, x.square().mean()) / x.square().mean())\n",
	};
	struct pool_result result;

	for (size_t i = 0; i < sizeof keepers / sizeof keepers[0]; i++) {
		result = verify(*state, keepers[i]);
		expect(&result, STATUS_FAILED, REASON_NUMERIC, "on the second set of input values");
		assert_true(result.verdict->second_set);
		assert_true(i > 0 || strstr(result.verdict->message, "keeps results between calls") != NULL);
	}
	result = verify(*state, HEAD "seen = []\n" RUN "    seen.append(y)\n    return seen[-1] if len(seen) < 3 else seen[-2]\n");
	expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, NULL);
	result = verify(*state, HEAD "seen = set()\n" RUN "    assert not seen or x[0, 0].item() in seen, 'who are you'\n"
	                                                 "    seen.add(x[0, 0].item())\n    return y\n");
	expect(&result, STATUS_ERROR, REASON_RAISED, "on the second set of input values");
	assert_true(result.verdict->second_set);
	expect_all_is_well(*state);
}

/* The first reference returns the same buffer in every call, and the second one returns two buffers in turn. */
static void an_output_that_overwrites_that_of_an_earlier_call_fails(void **state)
{
	static const char *const writers[] = {
	    HEAD "kept = {}\n" RUN "    return kept.setdefault(x.shape, torch.empty_like(y)).copy_(y)\n",
	    HEAD "kept, calls = {}, []\n" RUN "    calls.append(0)\n"
	                                      "    return kept.setdefault((x.shape, len(calls) % 2), torch.empty_like(y)).copy_(y)\n",
	};

	for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++) {
		struct pool_result result = verify(*state, writers[i]);

		expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, "uses the memory of an output of an earlier call");
	}
	expect_all_is_well(*state);
}

static void what_would_surprise_a_caller_is_a_finding(void **state)
{
	static const struct {
		const char *reference, *says;
	} surprises[] = {
	    {HEAD RUN "    return [y]\n", "in a list"},
	    {HEAD RUN "    return y.requires_grad_()\n", "output 'output' requires a gradient"},
	    {HEAD RUN "    old = w.clone()\n    w.zero_()\n    w.copy_(old)\n    return y\n",
	     "writes to its input 'weight' and restores it"},
	};

	for (size_t i = 0; i < sizeof surprises / sizeof surprises[0]; i++) {
		struct pool_result result = verify(*state, surprises[i].reference);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
		assert_int_equal(result.verdict->finding_count, 1);
		assert_non_null(strstr(result.verdict->findings[0], surprises[i].says));
	}
}

static void what_changes_the_whole_process_is_an_error(void **state)
{
	struct pool_result result =
	    verify(*state, HEAD RUN "    torch.set_default_dtype(torch.float64)\n    return y\n");

	expect(&result, STATUS_ERROR, REASON_RAISED, "changes torch's default dtype to torch.float64");
	result = verify(*state, HEAD "torch.set_default_dtype(torch.float64)\n" RUN "    return y\n");
	expect(&result, STATUS_ERROR, REASON_RAISED, "changes torch's default dtype to torch.float64");
	result = verify(*state, HEAD RUN "    old = torch.get_default_dtype()\n    torch.set_default_dtype(torch.float64)\n"
	                                 "    torch.set_default_dtype(old)\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

/* If a reference calls memset to write outside of a tensor, torch does not notice it, so the judge must find it. If a
 * reference uses torch to write beyond the tensor's storage, torch itself raises an error. */
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
	/* a later run finds this stored failure only if the verdict names the ground truth */
	assert_string_equal(result.verdict->ground_truth, "builtin");
}

static void references_that_do_not_load_say_where(void **state)
{
	static const struct {
		const char *reference, *says;
		int line;
		bool keep;
	} wrongs[] = {
	    /* the text of this message differs between versions of Python */
	    {"import torch\n\ndef run(hidden_states, weight:\n    return 1\n",
	     "failed to load: SyntaxError: ", 3, true},
	    {"def walk():\n    pass\n", "does not define a function named run", 0, true},
	    {"run = 3\n", "does not define a function named run", 0, true},
	    {"import no_such_module_anywhere\ndef run(): pass\n", "No module named 'no_such_module_anywhere'", 1, false},
	    {"x = 1\ny = 1 / 0\ndef run(): pass\n", "failed to load: ZeroDivisionError", 2, true},
	    {"import sys\nsys.exit('enough')\n", "called sys.exit(enough)", 2, true},
	    {"", "does not define a function named run", 0, true},
	};

	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct pool_result result = verify(*state, wrongs[i].reference);

		expect(&result, STATUS_ERROR, REASON_RAISED, wrongs[i].says);
		assert_int_equal(result.verdict->reference_line, wrongs[i].line);
		assert_int_equal(result.keep, wrongs[i].keep);
	}
}

/* The reference is loaded once, and its error is reported for every case. */
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
	    {HEAD RUN "    os._exit(7)\n", "terminated with exit status 7 while it ran", REASON_CRASHED, false},
	    {HEAD "os._exit(0)\n" RUN, "terminated with exit status 0 while the reference was loading", REASON_CRASHED, false},
	    {HEAD RUN "    ctypes.string_at(0)\n", "signal 11 (SIGSEGV", REASON_CRASHED, false},
	    {HEAD RUN "    os.abort()\n", "signal 6 (SIGABRT", REASON_CRASHED, false},
	    {HEAD RUN "    os.kill(os.getpid(), 9)\n", "signal 9 (SIGKILL", REASON_CRASHED, false},
	    {HEAD RUN "    os.closerange(3, 4096)\n    time.sleep(600)\n", "closed the descriptor for its answers",
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
	assert_string_equal(result.printed, "hello\n{\"ran\": []}\nhello\n{\"ran\": []}\nhello\n{\"ran\": []}\n");

	result = verify(*state, HEAD RUN "    for i in range(160): print('y' * 65536)\n    print('the end')\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_true(strlen(result.printed) <= (64 << 10) + 64);
	assert_non_null(strstr(result.printed, "of the printed text were dropped"));
	assert_string_equal(result.printed + strlen(result.printed) - 8, "the end\n");

	result = verify(*state, HEAD RUN "    os.write(1, b'a\\0b\\xff')\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_memory_equal(result.printed, "a?b", 3);
}

static void a_long_reference_and_a_long_line_are_accepted(void **state)
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

	expect(&result, STATUS_ERROR, REASON_MEMORY_LIMIT, "ran out of memory");
	assert_false(result.keep);
	/* Memory that is reserved but not written uses no RAM, so without a limit, a reference could reserve much more
	 * than the machine has. For the small tensors of this definition, the default limit is a little more than 4
	 * GiB. */
	result = verify(*state, HEAD RUN "    hog = []\n"
	                                 "    try:\n        while True: hog.append(torch.empty(1 << 28))\n"
	                                 "    finally: assert len(hog) <= 4, len(hog)\n");
	expect(&result, STATUS_ERROR, REASON_MEMORY_LIMIT, "can't allocate memory");
	assert_false(result.keep);
	expect_all_is_well(*state);
}

/* Each limit has its own reason (enum reason). The reason does not depend on whether the limit is reached in run() or
 * while the reference is loaded. A verdict with such a reason is never stored. */
static void each_limit_is_told(void **state)
{
	static const struct {
		const char *reference, *says;
		enum reason reason;
	} limits[] = {
	    {HEAD RUN "    return [bytearray(1 << 33)]\n", "--memory SIZE changes this limit\nthe reference raised MemoryError", REASON_MEMORY_LIMIT},
	    {HEAD "hog = bytearray(1 << 33)\n" RUN "    return y\n", "the reference failed to load: MemoryError", REASON_MEMORY_LIMIT},
	    {HEAD RUN "    open(os.environ['TMPDIR'] + '/big', 'wb').truncate((1 << 30) + 1)\n", "it should write less\n", REASON_FILE_LIMIT},
	    {HEAD "import signal\n" RUN "    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
	     "    open(os.environ['TMPDIR'] + '/big', 'wb').truncate((1 << 30) + 1)\n", "signal 25", REASON_FILE_LIMIT},
	    /* the reference lowers its own limit of processor time, so that it ends in about a second */
	    {HEAD "import resource\n" RUN "    limits = resource.getrlimit(resource.RLIMIT_CPU)\n"
	     "    assert 0 < limits[0] < limits[1] < 1 << 40, limits\n"
	     "    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1, limits[1]))\n"
	     "    while True: pass\n", "more processor time than its limit", REASON_TIMEOUT},
	    {HEAD RUN "    return [os.dup(1) for _ in range(5000)]\n", "its limit of open files (4096)", REASON_FILE_LIMIT},
	    {HEAD "import threading\n" RUN "    threading.stack_size(65536)\n    end = threading.Event()\n    try:\n"
	     "        for _ in range(16 * os.cpu_count() + 1200): threading.Thread(target=end.wait).start()\n"
	     "    finally: end.set()\n", "its limit of processes and threads", REASON_PROCESS_LIMIT},
	    {HEAD RUN "    raise BlockingIOError(11, 'not ready')\n", "BlockingIOError", REASON_RAISED},
	    {HEAD RUN "    raise OSError([], 'odd')\n", "OSError", REASON_RAISED},
	};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		struct pool_result result = verify(*state, limits[i].reference);

		if (limits[i].reason == REASON_FILE_LIMIT && result.verdict->reason != REASON_FILE_LIMIT &&
		    strcmp(result.verdict->containment, "full") != 0)
			continue; /* without full containment, there is no limit for temporary files */
		expect(&result, STATUS_ERROR, limits[i].reason, limits[i].says);
		assert_int_equal(result.keep, limits[i].reason == REASON_RAISED);
		assert_null(result.reached != NULL && strstr(result.reached, "/proc") != NULL ? result.reached : NULL);
	}
	expect_all_is_well(*state);
}

/* If a tensor is freed, the next tensor uses its memory, and the kernel need not supply new pages. Even a block that is
 * larger than malloc's largest mmap threshold is used again. */
static void freed_memory_is_reused_by_the_next_tensor(void **state)
{
	struct pool_result result = verify(
	    *state, HEAD "import resource\n" RUN "    def new_pages():\n"
		    "        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
		    "        size = 64 << 20\n        b'x' * size\n"
		    "        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
		    "    first, second = new_pages(), new_pages()\n"
		    "    raise ValueError(f'{first >= 32} {second < 16}: {first} and {second} new pages')\n");

	expect(&result, STATUS_ERROR, REASON_RAISED, "ValueError: True True");
}

/* The default limits of memory leave room for holes in the heap. A smaller limit, which a user sets, may leave too
 * little room. */
static void every_default_limit_has_room(void **state)
{
	(void)state;
	assert_true(memory_limit_has_room(memory_limit(0, 0)));
	assert_true(memory_limit_has_room(memory_limit(0, INT64_MAX)));
	assert_false(memory_limit_has_room(memory_limit(1 << 30, 0)));
}

/* A new tensor fits into the memory of a freed tensor of the same size, even if small tensors were created in between.
 * This is the effect of the runner's settings of malloc. Without these settings, the heap would grow by 2 GiB in about half
 * of the processes. */
static void freed_tensors_leave_no_holes(void **state)
{
	const char *reference =
	    HEAD RUN "    sbrk = ctypes.CDLL(None).sbrk\n"
		"    sbrk.restype, sbrk.argtypes = ctypes.c_void_p, [ctypes.c_long]\n"
		"    kept, ends = [], []\n"
		"    for i in range(200):\n"
		"        a = torch.ones((5 + i // 40) << 18)\n        b = a * 2\n        c = a + b\n"
		"        kept += [c.sum(), *[c[:3].clone() for i in range(i % 3)]]\n        del a, b, c\n"
		"        ends.append(sbrk(0))\n"
		"    grown = (ends[-1] - ends[0]) >> 20\n"
		"    raise ValueError(f'{grown < 100}: the heap has grown by {grown} MiB')\n";

	for (int i = 0; i < 3; i++) {
		struct pool_result result = verify(*state, reference);

		expect(&result, STATUS_ERROR, REASON_RAISED, "ValueError: True");
	}
}

/* ---- references that cheat or break things ---- */

static void junk_on_every_descriptor_hurts_only_its_own_case(void **state)
{
	struct pool_result result = verify(
	    *state, HEAD RUN "    for fd in range(3, 1024):\n        try: os.write(fd, b'junk\\n')\n"
	                     "        except OSError: pass\n    return y\n");

	expect(&result, STATUS_ERROR, REASON_CRASHED, "sent an invalid answer");
	result = verify(*state, HEAD RUN "    for fd in range(3, 1024):\n        try:\n"
	                                 "            for i in range(1024): os.write(fd, b'x' * 32768)\n"
	                                 "        except OSError: pass\n    return y\n");
	expect(&result, STATUS_ERROR, REASON_CRASHED, "an unterminated line");
	expect_all_is_well(*state);
}

/* Python lines for the function run() of a reference. They forge an answer of the runner, and write it to every open
 * file descriptor. */
#define FORGED "    for fd in range(3, 1024):\n" \
	       "        try: os.write(fd, b'{\"ran\":[{\"shape\":[4,64],\"dtype\":\"float32\"}]}\\n')\n" \
	       "        except OSError: pass\n"

static void claiming_to_have_run_is_worth_nothing(void **state)
{
	/* The first two references never return. The first one sends one answer, and the second one sends three. */
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
	/* The reference patches Tensor.copy_, so that the runner copies nothing. The outputs then have the fill value,
	 * which differs between runs. */
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
	/* A forked copy of the runner returns from run() while the third run is in progress, in which the tensors have
	 * other addresses than in the first run. */
	struct pool_result result = verify(*state, HEAD "n = 0\n" RUN "    global n\n    n += 1\n"
	                                                "    if os.fork() == 0: time.sleep(0.2)\n"
	                                                "    elif n == 3: time.sleep(0.6)\n    return y\n");

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	result = verify(*state, HEAD "import threading\n" RUN
	                             "    threading.Thread(target=time.sleep, args=(600,)).start()\n    return y\n");
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	expect_all_is_well(*state);
}

/* Python code for references. The code defines parent(pid), which returns the parent process of pid, or 0 if process
 * pid does not exist. */
#define PARENT "def parent(pid):\n    try: return int(open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[1])\n" \
	       "    except OSError: return 0\n"

/* The reference tries to kill every process of this user. On a machine whose sandbox prevents this, no other process
 * ends. On other machines, the pool loses its judge and its zygote, and tries the case again while no other case
 * runs. */
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
	                 "    for name in [str(pool)] + [n for n in os.listdir('/proc') if n.isdigit() and parent(n) == pool and int(n) != os.getpid()]:\n"
	                 "        try: os.close(os.open(f'/proc/{name}/mem', os.O_RDWR)); opened.append(name)\n"
	                 "        except OSError: pass\n"
	                 "    assert not opened, opened\n"
	                 "    return y\n");

	if (geteuid() == 0 && result.verdict->message != NULL && strstr(result.verdict->message, "AssertionError") != NULL) {
		print_message("this kernel cannot keep root from killing a process\n");
		skip();
	}
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

/* A reference starts a daemon in a session of its own. The daemon outlives the reference's process. The pool ends the
 * daemon when the definition is done. */
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

/* A reference that searches its arena for the words "left behind", which an earlier run may have written there. It
 * reports how often it finds them, and the inode of the arena's memfd. Before that, it writes the words into the arena,
 * and starts a process that writes them again and again until the process is killed. */
#define LEAVES_BYTES HEAD "import gc\n" RUN \
	"    arena = next(o.map for o in gc.get_objects() if type(o).__name__ == 'Arena' and hasattr(o, 'map'))\n" \
	"    inode = next(line.split()[4] for line in open('/proc/self/maps') if 'reftest-arena' in line)\n" \
	"    found = arena[:].count(b'left behind')\n" \
	"    if os.fork() == 0:\n        os.setsid()\n" \
	"        while True:\n            arena[-64:-53] = b'left behind'\n            time.sleep(0.0001)\n" \
	"    arena[-64:-53] = b'left behind'\n" \
	"    raise ValueError(f'{found} in {inode}.')\n"

/* The memory of the arena is used again after all processes of the reference have ended. The next reference finds only
 * zeros in this memory. */
static void memory_of_an_earlier_reference_is_empty(void **state)
{
	struct setting *setting = *state;
	char seen[40][32];
	int count = 0, again = 0;

	while (count < 40 && again == 0) {
		struct pool_result result = verify(setting, LEAVES_BYTES);
		const char *says;

		expect(&result, STATUS_ERROR, REASON_RAISED, "ValueError: 0 in ");
		says = strstr(result.verdict->message, "ValueError: 0 in ") + strlen("ValueError: 0 in ");
		snprintf(seen[count], sizeof seen[count], "%.*s", (int)strcspn(says, "."), says);
		for (int i = 0; i < count; i++)
			again += strcmp(seen[i], seen[count]) == 0;
		count++;
	}
	assert_int_equal(again > 0, (sandbox_probe(false) & SANDBOX_PID) != 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_right_reference_passes),
	    cmocka_unit_test(a_wrong_element_fails_with_its_place_and_both_values),
	    cmocka_unit_test(a_nan_and_an_infinity_fail),
	    cmocka_unit_test(a_claim_that_was_not_requested_is_ignored),
	    cmocka_unit_test(wrong_shapes_dtypes_and_numbers_of_outputs_are_reported),
	    cmocka_unit_test(outputs_may_come_scaleb_list_or_dict_and_need_not_be_contiguous),
	    cmocka_unit_test(an_input_that_is_written_to_is_named),
	    cmocka_unit_test(an_output_may_be_an_input),
	    cmocka_unit_test(attributes_of_classes_are_reported),
	    cmocka_unit_test(what_a_reference_uses_outside_its_process_is_reported),
	    cmocka_unit_test(a_warm_runner_reports_what_its_reference_uses),
	    cmocka_unit_test(answers_that_change_are_nondeterministic),
	    cmocka_unit_test(garbage_is_collected),
	    cmocka_unit_test(what_depends_on_a_generators_seed_is_nondeterministic),
	    cmocka_unit_test(what_is_kept_between_calls_is_found),
	    cmocka_unit_test(an_output_that_overwrites_that_of_an_earlier_call_fails),
	    cmocka_unit_test(what_would_surprise_a_caller_is_a_finding),
	    cmocka_unit_test(what_changes_the_whole_process_is_an_error),
	    cmocka_unit_test(writing_outside_the_tensors_is_an_error),
	    cmocka_unit_test(zeros_where_zeros_are_right_are_weak),
	    cmocka_unit_test(a_reference_that_raises_keeps_its_traceback_and_line),
	    cmocka_unit_test(references_that_do_not_load_say_where),
	    cmocka_unit_test(a_reference_that_does_not_load_fails_every_case),
	    cmocka_unit_test(a_reference_that_ends_its_process_is_blamed_with_the_status),
	    cmocka_unit_test(a_crash_shows_what_was_printed_and_the_line),
	    cmocka_unit_test(only_the_case_that_crashed_is_blamed),
	    cmocka_unit_test(printing_disturbs_nothing_and_its_end_is_kept),
	    cmocka_unit_test(a_long_reference_and_a_long_line_are_accepted),
	    cmocka_unit_test(taking_more_memory_than_there_is_raises),
	    cmocka_unit_test(freed_memory_is_reused_by_the_next_tensor),
	    cmocka_unit_test(every_default_limit_has_room),
	    cmocka_unit_test(freed_tensors_leave_no_holes),
	    cmocka_unit_test(each_limit_is_told),
	    cmocka_unit_test(junk_on_every_descriptor_hurts_only_its_own_case),
	    cmocka_unit_test(claiming_to_have_run_is_worth_nothing),
	    cmocka_unit_test(an_output_that_nobody_wrote_cannot_look_deterministic),
	    cmocka_unit_test(what_is_patched_is_whole_again_for_the_next_definition),
	    cmocka_unit_test(threads_and_children_left_behind_do_not_answer),
	    cmocka_unit_test(what_a_reference_leaves_running_is_ended_with_it),
	    cmocka_unit_test(killing_its_relatives_gains_nothing),
	    cmocka_unit_test(the_memory_of_the_judge_is_closed),
	    cmocka_unit_test(memory_of_an_earlier_reference_is_empty),
	};
	pool_main(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
