/* test_described_effects - the words by which a definition says that its operation draws samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/core/described_effects.h"

static bool samples(const char *name, const char *description, const char *tag)
{
	const char *const tags[] = {tag};
	const struct op_problem problem = {
	    .name = name, .op_type = "novel", .description = description, .tags = tags, .tag_count = 1};

	return described_samples(&problem) != NULL;
}

static void words_say_that_an_operation_samples(void **state)
{
	(void)state;
	assert_true(samples("top_k_sampling", "", "status:draft"));
	assert_true(samples("x", "Adds random noise.", "status:draft"));
	assert_true(samples("x", "", "stage:sampling"));
	assert_false(samples("resample2", "Scales the rows", "status:draft"));
}

/* If a tag names a function with its modules, as in "flashinfer.sampling.top_k_mask_logits", only the name of the
 * function is examined. */
static void modules_say_nothing(void **state)
{
	(void)state;
	assert_false(samples("x", "", "fi_api:flashinfer.sampling.top_k_mask_logits"));
	assert_true(samples("x", "", "fi_api:flashinfer.sampling.top_k_sampling_from_probs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(words_say_that_an_operation_samples),
	    cmocka_unit_test(modules_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
