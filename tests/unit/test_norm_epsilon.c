/* test_norm_epsilon - the sources for the epsilon of a norm are, in this order: an axis, the definition's name, the
 * published configuration of a model, and the description. The first source that has the epsilon determines it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/core/norm_epsilon.h"

static void epsilon_is_read_from_the_words_of_a_description(void **state)
{
	static const struct {
		const char *text;
		double eps; /* -1: the text does not give the epsilon */
	} cases[] = {
	    {"Root Mean Square Normalization with hidden_size=4096. Epsilon is fixed at 1e-5.", 1e-5},
	    {"Epsilon is fixed at 1e-6.", 1e-6},
	    {"RMSNorm, eps = 1e-6", 1e-6},
	    {"RMSNorm (eps=1e-06), fused", 1e-6},
	    {"with epsilon 0.00001.", 1e-5},
	    {"uses an epsilon of 1e-05 inside the root", 1e-5},
	    {"\xCE\xB5 = 1e-6", 1e-6},
	    {"\xCE\xB5=10^-6", 1e-6},
	    {"The EPSILON value is hard-coded to 5e-6", 5e-6},
	    {"rms_norm_eps: 1e-06", 1e-6},
	    {"epsilon (1e-6)", 1e-6},
	    {"eps is 0", 0},
	    {"Epsilon is not 1e-5.", -1},
	    {"several steps 1e-5", -1},
	    {"keeps 1e-5", -1},
	    {"epsilon from the config", -1},
	    {"epsilon is 1e-5x", -1},
	    {"eps = 64", -1},
	    {"eps", -1},
	    {"eps = ", -1},
	    {"", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *at = cases[i].text;
		double eps = -1;
		bool found = epsilon_in_text(&at, &eps);

		if (found != (cases[i].eps >= 0) || (found && eps != cases[i].eps))
			fail_msg("\"%s\" gave %g", cases[i].text, eps);
	}
}

static void epsilon_is_read_from_a_name(void **state)
{
	double eps = -1;

	(void)state;
	assert_true(epsilon_in_name("rmsnorm_h4096_eps1e-5", &eps) && eps == 1e-5);
	assert_true(epsilon_in_name("rmsnorm_eps1e6_h128", &eps) && eps == 1e-6);
	assert_true(epsilon_in_name("eps_1e_05", &eps) && eps == 1e-5);
	assert_true(epsilon_in_name("x_epsilon_5e6", &eps) && eps == 5e-6);
	assert_false(epsilon_in_name("rmsnorm_h4096", &eps));
	assert_false(epsilon_in_name("steps1e5", &eps));
	assert_false(epsilon_in_name("eps4096", &eps));
	assert_false(epsilon_in_name("eps", &eps));
	assert_false(epsilon_in_name("eps1e5x7", &eps));
}

static struct op_constant attested(const char *name, const char *tag, const char *other_tag, const char *description)
{
	const char *const tags[] = {tag, other_tag};
	const struct op_problem problem = {.name = name, .tags = tags, .tag_count = 2, .description = description};

	return epsilon_constant(&problem, "rms_norm_eps");
}

static void sources_of_epsilon_are_used_in_order(void **state)
{
	struct op_constant eps = attested("n", "status:verified", "model:llama-3.1-8b", "Epsilon is fixed at 1e-5.");

	(void)state;
	assert_true(eps.value == 1e-5);
	assert_string_equal(eps.source, "model:llama-3.1-8b");
	assert_string_equal(eps.conflict, "");
	eps = attested("n", "model:deepseek-v3", "model:deepseek-r1", "");
	assert_true(eps.value == 1e-6 && eps.conflict[0] == '\0');
	assert_string_equal(eps.source, "model:deepseek-v3");
	eps = attested("n", "model:nemotron-h-8b", "x", ""); /* in this model's configuration, the epsilon has the name
							      * layer_norm_epsilon */
	assert_true(eps.value == 1e-5);
	eps = attested("n_eps1e-5", "model:deepseek-v3", "x", "");
	assert_true(eps.value == 1e-5);
	assert_string_equal(eps.source, "name");
	assert_string_equal(eps.conflict, "eps is 1e-05 according to name, but 1e-06 according to model:deepseek-v3");
	eps = attested("n", "model:no-such-model", "x", "Epsilon is fixed at 1e-6.");
	assert_true(eps.value == 1e-6);
	assert_string_equal(eps.source, "description");
	eps = attested("n", "model:llama-3.1-8b", "x", "Epsilon is fixed at 1e-6.");
	assert_string_equal(eps.conflict, "eps is 1e-05 according to model:llama-3.1-8b, but 1e-06 according to description");
	eps = attested("n", "x", "x", "A norm.");
	assert_true(isnan(eps.value));
	assert_string_equal(eps.source, "unattested");
}

static void an_axis_speaks_before_everything_else(void **state)
{
	static const struct op_axis axes[] = {{"hidden_size", false, 64}, {"inv_eps", false, 1000000}};
	const struct op_problem problem = {
	    .name = "n", .axes = axes, .axis_count = 2, .description = "Epsilon is fixed at 1e-5."};
	struct op_constant eps = epsilon_constant(&problem, "rms_norm_eps");

	(void)state;
	assert_true(eps.value == 1e-6);
	assert_string_equal(eps.source, "axis:inv_eps");
	assert_string_equal(eps.conflict, "eps is 1e-06 according to axis:inv_eps, but 1e-05 according to description");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(epsilon_is_read_from_the_words_of_a_description),
	    cmocka_unit_test(epsilon_is_read_from_a_name),
	    cmocka_unit_test(sources_of_epsilon_are_used_in_order),
	    cmocka_unit_test(an_axis_speaks_before_everything_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
