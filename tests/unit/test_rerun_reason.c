/* test_rerun_reason - the decision whether a case runs again. The result is the stored verdict that is accepted, or the
 * reason why no stored verdict is accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "engine/rerun_reason.h"

static const struct policy cpu = {.device = "cpu", .device_class = "cpu", .torch = "2.13.0+cpu"};
static const struct policy automatic = {.device = "cpu", .device_class = "cpu", .any_gpu = true, .torch = "2.13.0+cpu"};
static const struct policy gpu = {.device = "cuda:0", .device_class = "sm_90", .torch = "2.11.0", .cuda = "13.0"};

static const struct verdict on_cpu = {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v1",
                                      .torch = "2.13.0+cpu"};
static const struct verdict on_gpu = {.device_class = "sm_90", .ground_truth = "builtin", .ground_truth_version = "v1",
                                      .torch = "2.11.0", .cuda = "13.0"};
static const struct verdict by_nothing = {.status = STATUS_SKIPPED, .reason = REASON_NO_GROUND_TRUTH,
                                          .device_class = "cpu", .torch = "2.13.0+cpu"};

static void expect(const struct policy *policy, const char *truth, const char *version,
                   const struct verdict *const *stored, int count, enum rerun_answer answer, int candidate,
                   const char *why)
{
	struct arena arena = {0};
	const struct truth one = {.name = truth, .version = version};
	const struct truths truths = {&one, truth == NULL ? 0 : 1, false, TRUTHS_OF_AUTO};
	struct decision d = rerun_case(policy, &truths, NULL, stored, count, &arena);

	assert_int_equal(d.answer, answer);
	assert_int_equal(d.candidate, candidate);
	if (strstr(d.why, why) == NULL)
		fail_msg("'%s' does not say '%s'", d.why, why);
	arena_free(&arena);
}

static const struct truth chain[] = {{.name = "flashinfer", .version = "0.7"}, {.name = "torch", .version = "2.13"}, {.name = "builtin", .version = "v1"}};
static const struct truths first = {chain, 3, false, TRUTHS_OF_AUTO}, all = {chain, 3, true, TRUTHS_OF_ALL};

static const struct tried_truth passed[] = {
    {.name = "flashinfer", .version = "0.7", .passed_over = "no kernel"}, {.name = "torch", .version = "2.13"},
    {.name = "builtin", .version = "v1"}, {.name = "flashinfer", .version = "0.6"}, {.name = "torch", .version = "2.13"}};

static enum rerun_answer answer(const struct policy *policy, const struct truths *truths, const struct verdict *v,
                               const char *why)
{
	struct arena arena = {0};
	struct decision d = rerun_case(policy, truths, NULL, &v, 1, &arena);

	if (strstr(d.why, why) == NULL)
		fail_msg("'%s' does not say '%s'", d.why, why);
	arena_free(&arena);
	return d.answer;
}

/* A stored verdict lists the ground truths that were tried in turn; the last one in the list determined the verdict.
 * The verdict is accepted if this run would call the same ground truths. A run that compares references with all ground
 * truths accepts the verdict only if it would call exactly those in the list. */
static void a_verdict_counts_while_its_ground_truths_are_there(void **state)
{
	struct verdict v = on_cpu;
	(void)state;

	v.ground_truth = "torch";
	v.ground_truth_version = "2.13";
	v.tried = passed;
	v.tried_count = 2;
	assert_int_equal(answer(&cpu, &first, &v, "by torch"), RERUN_CACHED);
	assert_int_equal(answer(&cpu, &all, &v, "this run would use all of flashinfer, torch and builtin"), RERUN_RUN);
	v.tried = passed + 3; /* flashinfer was skipped when the verdict was computed, and now has another version */
	assert_int_equal(answer(&cpu, &first, &v,
				"flashinfer has changed since the verdict was stored: 0.6, now 0.7"), RERUN_RUN);
	v.tried = passed + 1; /* flashinfer has been installed since the verdict was stored */
	assert_int_equal(answer(&cpu, &first, &v, "this run would use flashinfer"), RERUN_RUN);
	v.tried = passed;
	v.tried_count = 3;
	v.all_tried = true;
	assert_int_equal(answer(&cpu, &all, &v, "stored verdict by torch"), RERUN_CACHED);
	assert_int_equal(answer(&cpu, &first, &v, "this run would use"), RERUN_RUN);
	v.tried_count = 2;
	assert_int_equal(answer(&cpu, &all, &v, "this run would use"), RERUN_RUN);
}

/* If the reference is compared with all ground truths, the message names each ground truth that is new, missing or
 * changed, not only the first one. */
static void of_all_ground_truths_each_that_differs_is_named(void **state)
{
	static const struct tried_truth older[] = {{.name = "flashinfer", .version = "0.7"},
	                                       {.name = "torch", .version = "2.12"},
	                                       {.name = "builtin", .version = "v0"}},
	                            others[] = {{.name = "sglang", .version = "0.5"}, {.name = "torch", .version = "2.12"}};
	static const struct truth three[] = {{.name = "flashinfer", .version = "0.7"}, {.name = "torch", .version = "2.13"}, {.name = "builtin", .version = "v0"}};
	const struct truths one_changed = {three, 3, true, TRUTHS_OF_ALL};
	struct verdict v = on_cpu;
	(void)state;

	v.ground_truth = "flashinfer";
	v.ground_truth_version = "0.7";
	v.tried = older;
	v.tried_count = 3;
	v.all_tried = true;
	assert_int_equal(answer(&cpu, &one_changed, &v,
				"ground truth torch has changed since the verdict was stored: 2.12, now 2.13"),
	                 RERUN_RUN);
	assert_int_equal(answer(&cpu, &all, &v,
				"ground truths have changed since the verdict was stored: torch (2.12, now 2.13) and "
				"builtin (v0, now v1)"),
	                 RERUN_RUN);
	const struct truths two = {three, 2, true, TRUTHS_OF_ALL};
	assert_int_equal(answer(&cpu, &two, &v,
				"torch has changed since the verdict was stored: 2.12, now 2.13; builtin is no "
				"longer available"),
	                 RERUN_RUN);
	v.tried_count = 1;
	assert_int_equal(answer(&cpu, &all, &v, "this run would use all of flashinfer, torch and builtin; it lacks torch and builtin"), RERUN_RUN);
	v.tried = others;
	v.tried_count = 2;
	assert_int_equal(answer(&cpu, &all, &v, "; it lacks flashinfer and builtin; sglang is no longer available; torch (2.12, now 2.13) changed"),
	                 RERUN_RUN);
}

static void a_verdict_counts_only_after_the_same_cases(void **state)
{
	struct arena arena = {0};
	struct verdict v = on_cpu;
	const struct verdict *stored[] = {&v};
	const struct truth by = {.name = v.ground_truth, .version = v.ground_truth_version};
	const struct truths truths = {&by, 1, false, TRUTHS_OF_AUTO};
	static const struct {
		const char *ran_after, *after_all;
		enum lack lack;
	} rows[] = {{NULL, "none", LACK_NONE}, {NULL, "0123", LACK_NONE},    {"none", "none", LACK_NONE},
		    {"none", "0123", LACK_ORDER}, {"0123", "none", LACK_ORDER}, {"0123", "0123", LACK_NONE}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		v.after = rows[i].ran_after;
		struct decision d = rerun_case(&cpu, &truths, rows[i].after_all, stored, 1, &arena);

		assert_int_equal(d.lack, rows[i].lack);
		assert_int_equal(d.answer, rows[i].lack == LACK_NONE ? RERUN_CACHED : RERUN_RUN);
	}
	arena_free(&arena);
}

/* A machine without a GPU accepts a verdict from a GPU, whichever library computed the ground truth. But if builtin
 * computed it, the digest of builtin must be the same on both machines. */
static void a_library_of_another_machine_need_not_be_here(void **state)
{
	static const struct truth builtin = {.name = "builtin", .version = "v1"}, newer = {.name = "builtin", .version = "v2"};
	const struct truths here = {&builtin, 1, false, TRUTHS_OF_AUTO}, edited = {&newer, 1, false, TRUTHS_OF_AUTO};
	struct verdict v = on_gpu;
	(void)state;

	v.ground_truth = "flashinfer";
	v.ground_truth_version = "0.7";
	assert_int_equal(answer(&automatic, &here, &v, "by flashinfer on sm_90"), RERUN_CACHED);
	assert_int_equal(answer(&cpu, &here, &v, "is from sm_90"), RERUN_RUN);
	v.ground_truth = "builtin";
	v.ground_truth_version = "v1";
	assert_int_equal(answer(&automatic, &edited, &v, "has changed"), RERUN_RUN);
}

/* The only ground truth of a verdict may be coarse, i.e. less exact than the tolerances demand. A run accepts the
 * verdict if this ground truth is the only one that it can use. If the run can also use builtin, the case runs
 * again. */
static void a_coarse_ground_truth_alone_does_not_answer_for_more(void **state)
{
	static const struct truth both[] = {{.name = "flashinfer", .version = "0.7"}, {.name = "builtin", .version = "v1"}};
	const struct truths alone = {both, 1, false, TRUTHS_OF_AUTO}, more = {both, 2, false, TRUTHS_OF_AUTO},
			    elsewhere = {&both[1], 1, false, TRUTHS_OF_AUTO};
	struct tried_truth tried = {.name = "flashinfer", .version = "0.7", .coarse = true};
	struct verdict v = on_gpu;
	(void)state;

	v.ground_truth = "flashinfer";
	v.ground_truth_version = "0.7";
	v.tried = &tried;
	v.tried_count = 1;
	assert_int_equal(answer(&gpu, &alone, &v, "by flashinfer on sm_90"), RERUN_CACHED);
	assert_int_equal(answer(&gpu, &more, &v, "flashinfer gave no verdict for the case, but this run can try other "
	    "ground truths"), RERUN_RUN);
	assert_int_equal(answer(&automatic, &elsewhere, &v, "this run would use"), RERUN_RUN);
	tried.coarse = false;
	assert_int_equal(answer(&gpu, &more, &v, "by flashinfer on sm_90"), RERUN_CACHED);
	assert_int_equal(answer(&automatic, &elsewhere, &v, "by flashinfer on sm_90"), RERUN_CACHED);
}

#define STORED(...)                                                                                                    \
	(const struct verdict *const[]){__VA_ARGS__},                                                                  \
	    sizeof((const struct verdict *const[]){__VA_ARGS__}) / sizeof(void *)

static void a_verdict_of_the_same_ground_truth_counts(void **state)
{
	(void)state;
	expect(&cpu, "builtin", "v1", STORED(&on_cpu), RERUN_CACHED, 0, "by builtin on cpu");
	expect(&gpu, "builtin", "v1", STORED(&on_cpu, &on_gpu), RERUN_CACHED, 1, "on sm_90");
	expect(&cpu, NULL, NULL, STORED(&by_nothing), RERUN_CACHED, 0, "no ground truth on cpu");
}

static void nothing_stored_runs(void **state)
{
	(void)state;
	expect(&cpu, "builtin", "v1", NULL, 0, RERUN_RUN, -1, "no verdict for this version of the case is stored");
}

static void a_cpu_verdict_never_passes_for_a_gpu_one(void **state)
{
	(void)state;
	expect(&gpu, "builtin", "v1", STORED(&on_cpu), RERUN_RUN, -1, "is from cpu, and this run needs sm_90");
}

static void a_gpu_verdict_counts_on_the_cpu_only_under_auto_and_then_first(void **state)
{
	(void)state;
	expect(&cpu, "builtin", "v1", STORED(&on_gpu), RERUN_RUN, -1, "is from sm_90");
	expect(&automatic, "builtin", "v1", STORED(&on_gpu), RERUN_CACHED, 0, "with torch 2.11.0");
	expect(&automatic, "builtin", "v1", STORED(&on_gpu, &on_cpu), RERUN_CACHED, 0, "on sm_90");
	expect(&automatic, "builtin", "v1", STORED(&on_cpu), RERUN_CACHED, 0, "on cpu");
	struct verdict newer = on_gpu; /* a newer verdict, from another GPU and another version of torch */

	newer.device_class = "sm_100";
	newer.torch = "2.14.0";
	expect(&automatic, "builtin", "v1", STORED(&on_gpu, &newer, &on_cpu), RERUN_CACHED, 1,
	       "on sm_100 with torch 2.14.0");
}

static void a_changed_ground_truth_does_not_count_whatever_the_device(void **state)
{
	(void)state;
	expect(&cpu, "builtin", "v2", STORED(&on_cpu), RERUN_RUN, -1, "ground truth builtin has changed");
	expect(&automatic, "builtin", "v2", STORED(&on_gpu), RERUN_RUN, -1, "ground truth builtin has changed");
	expect(&cpu, "builtin", "v1", STORED(&by_nothing), RERUN_RUN, -1, "by ground truth none");
	expect(&cpu, NULL, NULL, STORED(&on_cpu), RERUN_RUN, -1, "by ground truth builtin, and this run would use none");
}

static void the_change_of_a_ground_truth_is_reported_with_its_versions(void **state)
{
	static const char old_digest[] = "0123456789abcdef0123456789abcdef",
	                  new_digest[] = "fedcba9876543210fedcba9876543210";
	struct verdict digested = on_cpu, released = on_cpu;

	(void)state;
	digested.ground_truth_version = old_digest;
	released.ground_truth = "flashinfer";
	released.ground_truth_version = "0.2.1";
	expect(&cpu, "builtin", new_digest, STORED(&digested), RERUN_RUN, -1, "was stored: 01234567, now fedcba98");
	expect(&cpu, "flashinfer", "0.2.3", STORED(&released), RERUN_RUN, -1, "was stored: 0.2.1, now 0.2.3");
}

static void the_sentence_is_of_the_verdict_that_came_nearest(void **state)
{
	(void)state;
	struct verdict old_torch = on_cpu;

	old_torch.torch = "2.12.0+cpu";
	expect(&cpu, "builtin", "v1", STORED(&on_gpu, &old_torch, &by_nothing), RERUN_RUN, -1, "torch 2.12.0+cpu");
	expect(&cpu, "builtin", "v2", STORED(&old_torch, &by_nothing, &on_gpu), RERUN_RUN, -1, "builtin has changed");
}

static void another_torch_does_not_count_unless_there_is_none_here(void **state)
{
	(void)state;
	struct policy other = cpu, none = cpu, other_cuda = gpu;

	other.torch = "2.14.0";
	none.torch = NULL;
	other_cuda.cuda = "12.8";
	expect(&other, "builtin", "v1", STORED(&on_cpu), RERUN_RUN, -1,
	       "torch 2.13.0+cpu (CUDA none), and this run would use torch 2.14.0");
	expect(&none, "builtin", "v1", STORED(&on_cpu), RERUN_CACHED, 0, "with torch 2.13.0+cpu");
	expect(&other_cuda, "builtin", "v1", STORED(&on_gpu), RERUN_RUN, -1, "CUDA 12.8");
}

static void another_python_does_not_count_unless_there_is_no_torch_here(void **state)
{
	(void)state;
	struct policy here = cpu, none = cpu;
	struct verdict stored = on_cpu;

	here.python = "3.11.7";
	none.torch = NULL;
	stored.python = "3.11.7";
	expect(&here, "builtin", "v1", STORED(&stored), RERUN_CACHED, 0, "");
	expect(&none, "builtin", "v1", STORED(&stored), RERUN_CACHED, 0, "with torch 2.13.0+cpu");
	stored.python = "3.11.2";
	expect(&here, "builtin", "v1", STORED(&stored), RERUN_RUN, -1, "from Python 3.11.2, and this run would use Python 3.11.7");
	stored.python = NULL;
	expect(&here, "builtin", "v1", STORED(&stored), RERUN_RUN, -1, "from an unknown version of Python");
}

/* With --require-containment, a verdict must say how its reference was contained. A verdict without this information is
 * accepted only if no reference ran. */
static void required_containment_is_asked_of_references_alone(void **state)
{
	struct policy strict = cpu;
	struct verdict full = on_cpu, unknown = on_cpu, without = on_cpu;
	struct arena arena = {0};
	static const struct {
		const char *containment;
		enum lack lack;
	} rows[] = {{"full", LACK_NONE}, {"disk", LACK_NONE}, {"disk,files", LACK_CONTAINMENT}, {NULL, LACK_CONTAINMENT}};
	const struct truth by = {.name = full.ground_truth, .version = full.ground_truth_version};
	const struct truths truths = {&by, 1, false, TRUTHS_OF_AUTO};

	(void)state;
	strict.required = "files,network";
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct verdict *stored[] = {&full};

		full.containment = rows[i].containment;
		assert_int_equal(rerun_case(&strict, &truths, NULL, stored, 1, &arena).lack, rows[i].lack);
	}
	const struct verdict *stored[] = {&without};

	without.torch = without.containment = NULL;
	without.status = STATUS_INVALID;
	assert_int_equal(rerun_case(&strict, &truths, NULL, stored, 1, &arena).answer, RERUN_CACHED);
	without.status = STATUS_PASSED; /* a case cannot pass unless its reference ran */
	assert_int_equal(rerun_case(&strict, &truths, NULL, stored, 1, &arena).answer, RERUN_RUN);
	without.status = STATUS_INVALID;
	without.torch = unknown.torch;
	assert_int_equal(rerun_case(&strict, &truths, NULL, stored, 1, &arena).lack, LACK_CONTAINMENT);
	arena_free(&arena);
}

/* A machine without a GPU accepts a verdict from a GPU, whichever library computed the ground truth. But the text of a
 * ground truth that the dataset defines must be the same on both machines. */
static void a_verdict_by_another_text_of_the_dataset_does_not_count(void **state)
{
	struct arena arena = {0};
	struct policy no_gpu = cpu;
	struct verdict from_gpu = on_gpu;
	const struct verdict *stored[] = {&from_gpu};
	struct truth own = {.name = "truth", .version = "a", .program = true};
	const struct truth oracle = {.name = "builtin", .version = "v1"};
	const struct truths truths = {&own, 1, false, TRUTHS_OF_AUTO}, builtin = {&oracle, 1, false, TRUTHS_OF_AUTO};

	(void)state;
	no_gpu.any_gpu = true;
	from_gpu.ground_truth = "truth";
	from_gpu.ground_truth_version = "a";
	assert_int_equal(rerun_case(&no_gpu, &truths, NULL, stored, 1, &arena).lack, LACK_NONE);
	own.version = "b";
	assert_int_equal(rerun_case(&no_gpu, &truths, NULL, stored, 1, &arena).lack, LACK_VERSION);
	assert_int_equal(rerun_case(&no_gpu, &builtin, NULL, stored, 1, &arena).lack, LACK_TRUTH);
	arena_free(&arena);
}

/* A list of ground truths: "flashinfer=0.7 builtin=1". */
struct word_list {
	char text[128];
	struct truth truths[4];
	struct tried_truth tried[4];
	int count;
};

static void read_words(const char *text, struct word_list *out)
{
	char *rest, *word;

	out->count = 0;
	assert_true((size_t)snprintf(out->text, sizeof out->text, "%s", text) < sizeof out->text);
	for (word = strtok_r(out->text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		char *version = strchr(word, '=');

		assert_true(version != NULL && out->count < 4);
		*version++ = '\0';
		out->truths[out->count] = (struct truth){.name = word, .version = version};
		out->tried[out->count++] = (struct tried_truth){.name = word, .version = version};
	}
}

/* A verdict from a GPU counts on a machine without a GPU only if it is by all ground truths that both machines have and
 * that a run on the GPU would try now. Libraries are not compared, because the other machine has its own. But a verdict
 * by a library counts only if --ground-truth is auto or all, or names the library. */
static void a_verdict_from_a_gpu_is_by_what_this_run_asks_for(void **state)
{
	enum { ONE, ALL }; /* whether all ground truths in the verdict's list had to agree */
	static const struct {
		enum truth_option option;
		const char *truths, *tried;
		int agree;
		enum lack lack;
	} rows[] = {
	    {TRUTHS_OF_AUTO, "builtin=1", "flashinfer=9", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "builtin=1", "flashinfer=9 builtin=1", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "builtin=1", "flashinfer=9 builtin=0", ONE, LACK_VERSION},
	    {TRUTHS_OF_AUTO, "builtin=1", "flashinfer=9 builtin=1", ALL, LACK_NONE},
	    {TRUTHS_OF_AUTO, "builtin=1", "truth=1", ONE, LACK_TRUTH},
	    {TRUTHS_OF_AUTO, "builtin=1 solution:a=1", "flashinfer=9", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "builtin=1 solution:a=1", "solution:a=1", ONE, LACK_TRUTH},
	    {TRUTHS_OF_AUTO, "builtin=1 truth=1", "flashinfer=9", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "solution:a=1 solution:b=1", "solution:a=1", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "solution:a=1 solution:b=1", "solution:b=1", ONE, LACK_TRUTH}, /* a was added later */
	    {TRUTHS_OF_AUTO, "solution:a=1 solution:b=1", "solution:a=1 solution:b=1", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "solution:a=1 solution:b=1", "solution:a=0 solution:b=1", ONE, LACK_VERSION},
	    /* auto tries fi_api after the chain and the truth, and before the solutions */
	    {TRUTHS_OF_AUTO, "chain=1 truth=1 solution:a=1", "fi_api=9", ONE, LACK_TRUTH},
	    {TRUTHS_OF_AUTO, "chain=1 truth=1 solution:a=1", "chain=1 fi_api=9", ONE, LACK_TRUTH},
	    {TRUTHS_OF_AUTO, "chain=1 truth=1 solution:a=1", "chain=1 truth=0 fi_api=9", ONE, LACK_VERSION},
	    {TRUTHS_OF_AUTO, "chain=1 truth=1 solution:a=1", "chain=1 truth=1 fi_api=9", ONE, LACK_NONE},
	    {TRUTHS_OF_AUTO, "approved=1", "fi_api=9", ONE, LACK_NONE},

	    {TRUTHS_OF_ALL, "builtin=1", "builtin=1", ONE, LACK_NONE}, /* the GPU's machine may have no library */
	    {TRUTHS_OF_ALL, "builtin=1", "flashinfer=9", ONE, LACK_TRUTH},
	    {TRUTHS_OF_ALL, "builtin=1", "flashinfer=9 builtin=1", ALL, LACK_NONE},
	    {TRUTHS_OF_ALL, "torch=1 builtin=1", "builtin=1", ONE, LACK_TRUTH},
	    {TRUTHS_OF_ALL, "torch=1 builtin=1", "flashinfer=9 builtin=1", ONE, LACK_TRUTH},
	    {TRUTHS_OF_ALL, "torch=1 builtin=1", "flashinfer=9 builtin=1", ALL, LACK_NONE},
	    {TRUTHS_OF_ALL, "builtin=1 truth=1", "flashinfer=9 builtin=1", ALL, LACK_TRUTH}, /* truth was added later */
	    {TRUTHS_OF_ALL, "builtin=1 truth=1", "flashinfer=9 builtin=1 truth=0", ALL, LACK_VERSION},
	    {TRUTHS_OF_ALL, "builtin=1 truth=1", "flashinfer=9 builtin=1 truth=1", ALL, LACK_NONE},
	    {TRUTHS_OF_ALL, "builtin=1 truth=1", "truth=1 flashinfer=9", ALL, LACK_TRUTH},

	    {TRUTHS_NAMED, "builtin=1", "flashinfer=9", ONE, LACK_TRUTH},
	    {TRUTHS_NAMED, "builtin=1", "builtin=1", ONE, LACK_NONE},
	    {TRUTHS_NAMED, "truth=1", "flashinfer=9", ONE, LACK_TRUTH},
	    {TRUTHS_NAMED, "truth=1", "truth=1", ONE, LACK_NONE},
	    {TRUTHS_NAMED, "flashinfer=none builtin=1", "flashinfer=9", ONE, LACK_NONE},
	    {TRUTHS_NAMED, "flashinfer=none builtin=1", "builtin=1", ONE, LACK_NONE},
	    {TRUTHS_NAMED, "flashinfer=none builtin=1", "torch=9", ONE, LACK_TRUTH},
	    {TRUTHS_NAMED, "flashinfer=none builtin=1", "torch=9 builtin=1", ONE, LACK_TRUTH},
	    {TRUTHS_NAMED, "truth=1 flashinfer=none", "flashinfer=9", ONE, LACK_TRUTH},
	    {TRUTHS_NAMED, "truth=1 flashinfer=none", "truth=1 flashinfer=9", ONE, LACK_NONE},
	};
	static const struct policy foreign = {.device_class = "sm_90", .foreign_class = true};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena = {0};
		struct word_list now, then;
		struct verdict v = on_gpu;
		const struct verdict *stored[] = {&v};

		read_words(rows[i].truths, &now);
		read_words(rows[i].tried, &then);
		const struct truths truths = {now.truths, now.count, rows[i].option == TRUTHS_OF_ALL && now.count > 1,
					      rows[i].option};

		v.ground_truth = then.tried[then.count - 1].name;
		v.ground_truth_version = then.tried[then.count - 1].version;
		v.tried = then.tried;
		/* a verdict by builtin alone has no list */
		v.tried_count = strcmp(rows[i].tried, "builtin=1") == 0 ? 0 : then.count;
		v.all_tried = rows[i].agree == ALL;
		if (rerun_case(&automatic, &truths, NULL, stored, 1, &arena).lack != rows[i].lack ||
		    rerun_case(&foreign, &truths, NULL, stored, 1, &arena).lack != rows[i].lack)
			fail_msg("row %zu: a verdict by '%s' for '%s'", i, rows[i].tried, rows[i].truths);
		arena_free(&arena);
	}
}

/* The message names the ground truth that both machines have, although the lists of the two machines differ. */
static void a_change_is_named_although_the_gpu_has_other_libraries(void **state)
{
	static const struct tried_truth tried[] = {{.name = "flashinfer", .version = "0.7", .passed_over = "no kernel"},
						   {.name = "builtin", .version = "v0"}};
	static const struct truth builtin = {.name = "builtin", .version = "v1"};
	static const struct truths truths = {&builtin, 1, false, TRUTHS_OF_AUTO};
	struct verdict v = on_gpu;

	(void)state;
	v.tried = tried;
	v.tried_count = 2;
	assert_int_equal(answer(&automatic, &truths, &v, "builtin has changed since the verdict was stored: v0, now v1"),
			 RERUN_RUN);
}

static void the_newest_of_those_that_count_is_used(void **state)
{
	(void)state;
	struct verdict failed = on_cpu;

	failed.status = STATUS_FAILED;
	expect(&cpu, "builtin", "v1", STORED(&on_cpu, &failed, &on_gpu), RERUN_CACHED, 1, "on cpu");
}

static void force_runs_and_cached_only_does_not(void **state)
{
	(void)state;
	struct policy forced = cpu, looking = cpu;

	forced.force = true;
	looking.cached_only = true;
	expect(&forced, "builtin", "v1", STORED(&on_cpu), RERUN_RUN, -1, "--force");
	expect(&looking, "builtin", "v1", STORED(&on_gpu), RERUN_NOT_CACHED, -1, "is from sm_90");
	expect(&looking, "builtin", "v1", STORED(&on_cpu), RERUN_CACHED, 0, "on cpu");
	/* no command accepts --cached-only with --force; rerun_case then neither accepts the verdict nor runs the
	 * case */
	looking.force = true;
	expect(&looking, "builtin", "v1", STORED(&on_cpu), RERUN_NOT_CACHED, -1, "--force");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_verdict_counts_while_its_ground_truths_are_there),
	    cmocka_unit_test(of_all_ground_truths_each_that_differs_is_named),
	    cmocka_unit_test(a_library_of_another_machine_need_not_be_here),
	    cmocka_unit_test(a_coarse_ground_truth_alone_does_not_answer_for_more),
	    cmocka_unit_test(a_verdict_of_the_same_ground_truth_counts),
	    cmocka_unit_test(nothing_stored_runs),
	    cmocka_unit_test(a_cpu_verdict_never_passes_for_a_gpu_one),
	    cmocka_unit_test(a_gpu_verdict_counts_on_the_cpu_only_under_auto_and_then_first),
	    cmocka_unit_test(a_changed_ground_truth_does_not_count_whatever_the_device),
	    cmocka_unit_test(the_change_of_a_ground_truth_is_reported_with_its_versions),
	    cmocka_unit_test(the_sentence_is_of_the_verdict_that_came_nearest),
	    cmocka_unit_test(another_torch_does_not_count_unless_there_is_none_here),
	    cmocka_unit_test(another_python_does_not_count_unless_there_is_no_torch_here),
	    cmocka_unit_test(required_containment_is_asked_of_references_alone),
	    cmocka_unit_test(a_verdict_by_another_text_of_the_dataset_does_not_count),
	    cmocka_unit_test(a_verdict_from_a_gpu_is_by_what_this_run_asks_for),
	    cmocka_unit_test(a_change_is_named_although_the_gpu_has_other_libraries),
	    cmocka_unit_test(a_verdict_counts_only_after_the_same_cases),
	    cmocka_unit_test(the_newest_of_those_that_count_is_used),
	    cmocka_unit_test(force_runs_and_cached_only_does_not),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
