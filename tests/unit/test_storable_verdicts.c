/* test_storable_verdicts - which verdicts may be shared by equal cases, and which verdicts of a definition may be
 * stored after all its cases ran. */
#include "engine/storable_verdicts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A problem with a tensor file affects only the definition that names the file, not another definition with an equal
 * case. */
static void a_problem_of_one_tensor_file_is_not_shared(void **state)
{
	(void)state;
	for (int i = 0; i < REASON_COUNT; i++) {
		const struct verdict verdict = {.reason = (enum reason)i};
		bool of_one_file = i == REASON_CHANGED || i == REASON_MISSING_BLOB;

		if (storable_for_subject(&verdict) == of_one_file)
			fail_msg("a verdict with reason %d is%s shared", i, of_one_file ? "" : " not");
	}
}

/* Two cases: a new verdict, and a verdict that an earlier run stored. */
struct two_cases {
	struct verdict verdicts[2];
	struct case_result cases[2];
	struct result result;
};

static void set_up(struct two_cases *two)
{
	*two = (struct two_cases){.result = {.cases = two->cases, .case_count = 2}};
	for (int i = 0; i < 2; i++)
		two->cases[i] = (struct case_result){.verdict = &two->verdicts[i], .in_store = true, .cached = i == 1};
}

static void without_a_change_both_are_stored(void **state)
{
	struct two_cases two;

	(void)state;
	set_up(&two);
	storable_after_run(&two.result, true);
	assert_true(two.cases[0].in_store && two.cases[1].in_store);
	assert_true(!two.result.changed && !two.result.put_back);
}

static void after_a_change_no_new_verdict_is_stored(void **state)
{
	struct two_cases two;

	(void)state;
	set_up(&two);
	storable_after_run(&two.result, false);
	assert_true(!two.cases[0].in_store && two.cases[1].in_store);
	assert_true(two.result.changed && !two.result.put_back);
}

static void a_tensor_file_that_was_restored_counts_as_changed(void **state)
{
	struct two_cases two;

	(void)state;
	set_up(&two);
	two.verdicts[1].reason = REASON_CHANGED;
	storable_after_run(&two.result, true);
	assert_true(!two.cases[0].in_store && two.result.changed && two.result.put_back);
}

static void a_reference_that_depends_on_more_is_named(void **state)
{
	static char clock_reference[] = "import torch\nimport time\n\ndef run(x):\n    return x * time.time()\n";
	static char plain_reference[] = "import torch\n\ndef run(x):\n    return torch.exp(x)\n";
	struct definition definition = {.reference = clock_reference, .reference_length = strlen(clock_reference)};
	struct arena arena = {0};

	(void)state;
	const char *why = storable_reference(&definition, false, &arena);

	assert_non_null(why);
	assert_non_null(strstr(why, "not cached: line 2 of the reference contains"));
	definition.reference = plain_reference;
	definition.reference_length = strlen(plain_reference);
	assert_null(storable_reference(&definition, false, &arena));
	definition.init = clock_reference;
	assert_null(storable_reference(&definition, false, &arena));
	why = storable_reference(&definition, true, &arena);
	assert_non_null(why);
	assert_non_null(strstr(why, "not cached: line 2 of init contains"));
	arena_free(&arena);
}

/* The attributes of all files of a ground truth are listed, and texts without such attributes have no list. */
static void attributes_that_only_the_text_gives_are_listed(void **state)
{
	static const struct definition definition = {0};
	static const char one[] = "a.x_1 = 1\n", none[] = "a.shape\n";
	static const struct program_file files[] = {{"a.py", one}, {"b.py", none}, {"c.py", "a.x_2 = 1\na.x_3 = 1\n"}};
	const struct truth_program text = {.source = one}, program = {.files = files, .file_count = 3},
				   without = {.files = &files[1], .file_count = 1};
	struct arena arena = {0};

	(void)state;
	assert_string_equal(storable_attributes(&definition, one, sizeof one - 1, &arena), "x_1");
	assert_null(storable_attributes(&definition, none, sizeof none - 1, &arena));
	assert_string_equal(storable_program_attributes(&text, &arena), "x_1");
	assert_string_equal(storable_program_attributes(&program, &arena), "x_1 x_2 x_3");
	assert_null(storable_program_attributes(&without, &arena));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_problem_of_one_tensor_file_is_not_shared),
	    cmocka_unit_test(without_a_change_both_are_stored),
	    cmocka_unit_test(after_a_change_no_new_verdict_is_stored),
	    cmocka_unit_test(a_tensor_file_that_was_restored_counts_as_changed),
	    cmocka_unit_test(a_reference_that_depends_on_more_is_named),
	    cmocka_unit_test(attributes_that_only_the_text_gives_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
