/* test_remote_keys - the keys under which a remote cache stores verdicts. A run looks up the keys of the verdicts that
 * it would accept, and no other keys. */
#include "engine/remote_keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cache/fingerprint.h"
#include "cache/witness.h"

static struct remote_keys lies(const struct verdict *v, const struct digest *subject)
{
	struct arena arena = {0};
	struct fields fields = {0};

	witness_fields(v->ground_truth, v->ground_truth_version, v->device_class, v->torch, v->cuda, v->python,
		       &arena, &fields);
	struct digest witness = fields_digest(&fields);

	arena_free(&arena);
	return remote_keys_of(subject, &witness, v);
}

static int in_common(const struct remote_keys *a, const struct remote_keys *b)
{
	int count = 0;

	for (int i = 0; i < a->count; i++)
		for (int k = 0; k < b->count; k++)
			count += strcmp(a->text[i], b->text[k]) == 0;
	return count;
}

/* With each policy, the keys of a run find exactly those verdicts that rerun_case would accept. */
static void what_would_count_is_found_and_nothing_else(void **state)
{
	static const struct verdict verdicts[] = {
	    {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v1", .torch = "2.13.0"},
	    {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v1", .torch = "2.14.0"},
	    {.device_class = "cpu", .ground_truth = "builtin", .ground_truth_version = "v2", .torch = "2.13.0"},
	    {.device_class = "sm_90",
	     .ground_truth = "builtin",
	     .ground_truth_version = "v1",
	     .torch = "2.9",
	     .cuda = "13.0"},
	    {.device_class = "sm_90",
	     .ground_truth = "builtin",
	     .ground_truth_version = "v1",
	     .torch = "2.9",
	     .cuda = "12.8"},
	    {.device_class = "sm_80",
	     .ground_truth = "builtin",
	     .ground_truth_version = "v1",
	     .torch = "2.9",
	     .cuda = "13.0"},
	    {.device_class = "cpu", .torch = "2.13.0"},
	};
	static const struct policy policies[] = {
	    {.device_class = "cpu", .torch = "2.13.0"},			 /* --device cpu */
	    {.device_class = "cpu", .torch = "2.13.0", .any_gpu = true}, /* a machine without a GPU */
	    {.device_class = "cpu", .any_gpu = true},			 /* a machine without a GPU and without torch */
	    {.device_class = "cpu"},
	    {.device_class = "sm_90", .torch = "2.9", .cuda = "13.0"},
	    {.device_class = "sm_90"},
	    {.device_class = "sm_90", .foreign_class = true}, /* --device-class sm_90 */
	    {.device_class = "cpu", .foreign_class = true},
	};
	static const struct truth builtin = {.name = "builtin", .version = "v1"};
	static const struct truths truths = {&builtin, 1, false, TRUTHS_OF_AUTO};
	struct digest subject = digest_of("subject", 7), other = digest_of("other", 5);
	struct arena arena = {0};
	int found = 0;

	(void)state;
	for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
		for (size_t v = 0; v < sizeof verdicts / sizeof verdicts[0]; v++) {
			const struct verdict *stored[] = {&verdicts[v]};
			struct remote_keys wanted = remote_keys_wanted(&policies[p], &subject, &truths);
			struct remote_keys there = lies(&verdicts[v], &subject), elsewhere = lies(&verdicts[v], &other);
			bool counts = rerun_case(&policies[p], &truths, NULL, stored, 1, &arena).answer == RERUN_CACHED;

			assert_int_equal(in_common(&wanted, &there) > 0, counts);
			assert_int_equal(in_common(&wanted, &elsewhere), 0);
			found += counts;
		}
	assert_int_equal(found, 19);
	arena_free(&arena);
}

/* A machine without a GPU finds each verdict that it would accept, also if a library on a GPU computed the ground truth
 * of the verdict. A library may be coarse: its arithmetic is less exact than the tolerances demand. If the verdict was
 * then computed with the ground truth builtin, only a machine with the same version of builtin finds the verdict. If
 * the coarse library was the only ground truth, no machine without a GPU finds the verdict. */
static void what_libraries_gave_is_found_without_them(void **state)
{
	static const struct tried_truth flashinfer[] = {{.name = "flashinfer", .version = "0.7"}};
	static const struct tried_truth coarse[] = {{.name = "flashinfer", .version = "0.7", .coarse = true}};
	static const struct tried_truth both[] = {{.name = "flashinfer", .version = "0.6", .coarse = true},
					      {.name = "builtin", .version = "v1"}};
	static const struct tried_truth older[] = {{.name = "fla", .version = "1"}, {.name = "builtin", .version = "v0"}};
#define BY(list, truth, of) \
	{.device_class = of, .ground_truth = truth, .ground_truth_version = "0.7", .tried = list, \
	 .tried_count = sizeof list / sizeof *list, .torch = "2.9", .cuda = "13.0"}
	static const struct {
		struct verdict verdict;
		int finders; /* how many of the policies accept and find the verdict */
	} cases[] = {
	    {BY(flashinfer, "flashinfer", "sm_90"), 3},
	    {BY(flashinfer, "flashinfer", "sm_80"), 2},
	    {BY(both, "builtin", "sm_90"), 3},
	    {BY(older, "builtin", "sm_90"), 0},
	    {BY(coarse, "flashinfer", "sm_90"), 0},
	    {BY(flashinfer, "flashinfer", "cpu"), 0},
	};
	static const struct policy policies[] = {
	    {.device_class = "cpu", .torch = "2.13.0", .any_gpu = true}, /* --device auto on a machine without a GPU */
	    {.device_class = "cpu", .any_gpu = true},
	    {.device_class = "sm_90", .foreign_class = true}, /* --device-class sm_90 */
	    {.device_class = "cpu", .torch = "2.13.0"},	  /* --device cpu */
	};
	static const struct truth builtin = {.name = "builtin", .version = "v1"};
	static const struct truths truths = {&builtin, 1, false, TRUTHS_OF_AUTO};
	struct digest subject = digest_of("subject", 7);
	struct arena arena = {0};

	(void)state;
	for (size_t v = 0; v < sizeof cases / sizeof *cases; v++) {
		struct remote_keys there = lies(&cases[v].verdict, &subject);
		int finders = 0;

		for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
			const struct verdict *stored[] = {&cases[v].verdict};
			struct remote_keys wanted = remote_keys_wanted(&policies[p], &subject, &truths);
			bool counts = rerun_case(&policies[p], &truths, NULL, stored, 1, &arena).answer == RERUN_CACHED;

			assert_int_equal(in_common(&wanted, &there) > 0, counts);
			finders += counts;
		}
		assert_int_equal(finders, cases[v].finders);
	}
	arena_free(&arena);
}

/* A verdict lists all ground truths that were tried, including a library that was too inexact or had no kernel. Another
 * machine of the same device class, with the same libraries, finds exactly those verdicts that it would accept. */
static void verdicts_by_several_libraries_are_found_by_machines_that_have_them(void **state)
{
	static const struct tried_truth first[] = {{.name = "flashinfer", .version = "0.7"}};
	static const struct tried_truth passed[] = {{.name = "flashinfer", .version = "0.7", .passed_over = "no kernel"},
						{.name = "torch", .version = "2.9"}};
	static const struct tried_truth older[] = {{.name = "flashinfer", .version = "0.6", .coarse = true},
					       {.name = "torch", .version = "2.9"}};
	static const struct tried_truth three[] = {{.name = "flashinfer", .version = "0.7"},
					       {.name = "torch", .version = "2.9"},
					       {.name = "builtin", .version = "v1"}};
#define ALL(list, truth, of) \
	{.device_class = of, .ground_truth = truth, .ground_truth_version = "0.7", .tried = list, \
	 .tried_count = sizeof list / sizeof *list, .torch = "2.9", .cuda = "13.0", .all_tried = true}
	static const struct verdict verdicts[] = {
	    BY(first, "flashinfer", "sm_90"), BY(passed, "torch", "sm_90"), BY(older, "torch", "sm_90"),
	    BY(passed, "torch", "sm_80"),     ALL(three, "flashinfer", "sm_90"),
	};
	static const struct truth items[] = {{.name = "flashinfer", .version = "0.7"}, {.name = "torch", .version = "2.9"}, {.name = "builtin", .version = "v1"}};
	static const struct truths truths[] = {{items, 3, false, TRUTHS_OF_AUTO}, {items, 3, true, TRUTHS_OF_ALL},
					       {items, 1, false, TRUTHS_OF_AUTO}, {items, 1, true, TRUTHS_OF_ALL}};
	static const struct {
		struct policy policy;
		int finds[4]; /* finds[i]: how many verdicts are found with truths[i] */
	} cases[] = {
	    {{.device_class = "sm_90", .torch = "2.9", .cuda = "13.0"}, {2, 1, 1, 1}},
	    {{.device_class = "sm_90"}, {2, 1, 1, 1}},
	    {{.device_class = "sm_90", .torch = "2.10", .cuda = "13.0"}, {0, 0, 0, 0}},
	    {{.device_class = "sm_80", .torch = "2.9", .cuda = "13.0"}, {1, 0, 0, 0}},
	    {{.device_class = "cpu", .torch = "2.9"}, {0, 0, 0, 0}},
	};
	struct digest subject = digest_of("subject", 7);
	struct arena arena = {0};

	(void)state;
	for (size_t p = 0; p < sizeof cases / sizeof *cases; p++)
		for (size_t t = 0; t < sizeof truths / sizeof *truths; t++) {
			struct remote_keys wanted = remote_keys_wanted(&cases[p].policy, &subject, &truths[t]);
			int found = 0;

			for (size_t v = 0; v < sizeof verdicts / sizeof *verdicts; v++) {
				const struct verdict *stored[] = {&verdicts[v]};
				struct remote_keys there = lies(&verdicts[v], &subject);
				bool counts = rerun_case(&cases[p].policy, &truths[t], NULL, stored, 1, &arena).answer == RERUN_CACHED;

				if (counts)
					assert_true(in_common(&wanted, &there) > 0);
				found += counts;
			}
			assert_int_equal(found, cases[p].finds[t]);
		}
	arena_free(&arena);
}

/* A machine without a GPU that asks for other ground truths accepts fewer verdicts from GPUs. It finds those that it
 * accepts. */
static void a_verdict_from_a_gpu_counts_for_the_ground_truths_that_are_asked_for(void **state)
{
	static const struct tried_truth flashinfer[] = {{.name = "flashinfer", .version = "0.7"}};
	static const struct tried_truth three[] = {{.name = "flashinfer", .version = "0.7"},
						   {.name = "torch", .version = "2.9"},
						   {.name = "builtin", .version = "v1"}};
	static const struct truth items[] = {{.name = "flashinfer", .version = "none"},
					     {.name = "torch", .version = "2.13"},
					     {.name = "builtin", .version = "v1"},
					     {.name = "truth", .version = "a"}};
	enum { LISTS = 6 };
	static const struct truths truths[LISTS] = {
	    {items + 2, 1, false, TRUTHS_OF_AUTO}, {items + 1, 2, true, TRUTHS_OF_ALL}, {items + 2, 1, false, TRUTHS_OF_ALL},
	    {items + 2, 1, false, TRUTHS_NAMED},   {items, 3, false, TRUTHS_NAMED},	{items + 2, 2, true, TRUTHS_OF_ALL},
	};
	static const struct {
		struct verdict verdict;
		bool counts[LISTS];
	} rows[] = {
	    {BY(flashinfer, "flashinfer", "sm_90"), {true, false, false, false, true, false}},
	    {ALL(three, "flashinfer", "sm_90"), {true, true, true, false, true, false}},
	    {{.device_class = "sm_90", .ground_truth = "builtin", .ground_truth_version = "v1", .torch = "2.9", .cuda = "13.0"},
	     {true, false, true, true, true, false}},
	};
	static const struct policy no_gpu = {.device_class = "cpu", .torch = "2.13.0", .any_gpu = true};
	struct digest subject = digest_of("subject", 7);
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int t = 0; t < LISTS; t++) {
			const struct verdict *stored[] = {&rows[i].verdict};
			struct remote_keys there = lies(stored[0], &subject);
			struct remote_keys wanted = remote_keys_wanted(&no_gpu, &subject, &truths[t]);
			bool counts = rerun_case(&no_gpu, &truths[t], NULL, stored, 1, &arena).answer == RERUN_CACHED;

			if (counts != rows[i].counts[t])
				fail_msg("verdict %zu, list %d: counts is %d", i, t, counts);
			if (counts)
				assert_true(in_common(&wanted, &there) > 0);
		}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_libraries_gave_is_found_without_them),
	    cmocka_unit_test(verdicts_by_several_libraries_are_found_by_machines_that_have_them),
	    cmocka_unit_test(what_would_count_is_found_and_nothing_else),
	    cmocka_unit_test(a_verdict_from_a_gpu_counts_for_the_ground_truths_that_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
