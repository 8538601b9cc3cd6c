/* test_chain_plan - chains of operations: which JSON texts are accepted as chains, how the error bounds of the
 * operations are added, and which values a chain computes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/buf.h"
#include "workers/protocol/chain_plan.h"

static const struct kernels_api api = {.find = op_find};

/* The axes of a chain of two norms; the output of the first norm is the input of the second. */
static const struct op_axis axes[] = {{"rows", true, 0}, {"hidden", false, 4}};
static const struct op_arg inputs[] = {{.name = "x", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}},
				       {.name = "w", .dtype = DTYPE_FLOAT32, .rank = 1, .axis = {1}}};
static const struct op_arg outputs[] = {{.name = "y", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}}};
static const struct op_problem problem = {.name = "twice",
					  .op_type = "fused",
					  .description = "",
					  .axes = axes,
					  .axis_count = 2,
					  .inputs = inputs,
					  .input_count = 2,
					  .outputs = outputs,
					  .output_count = 1};

#define FIRST                                                                                        \
	"{\"op\":\"rmsnorm\",\"inputs\":{\"hidden_states\":\"x\",\"weight\":\"w\"},\"outputs\":{\"output\":" \
	"{\"name\":\"a\",\"shape\":[\"rows\",\"hidden\"],\"dtype\":\"float32\"}},\"constants\":{\"eps\":0}}"
#define SECOND                                                                                         \
	"{\"op\":\"rmsnorm\",\"inputs\":{\"hidden_states\":\"a\",\"weight\":\"w\"},\"outputs\":{\"output\":\"y\"}," \
	"\"constants\":{\"eps\":0}}"
#define ALONE                                                                                          \
	"[{\"op\":\"rmsnorm\",\"inputs\":{\"hidden_states\":\"x\",\"weight\":\"w\"},\"outputs\":{\"output\":\"y\"}," \
	"\"constants\":{\"eps\":0}}]"

static const int64_t lengths[] = {2, 4};
static const struct op_case one = {.problem = &problem, .axis = lengths};

static struct chain_plan *plan_of(const char *text, struct arena *arena)
{
	struct err err = {""};
	struct chain_plan *plan = chain_plan_make(&api, text, &problem, arena, &err);

	if (plan == NULL)
		fail_msg("%s", err.text);
	return plan;
}

static void a_chain_computes_what_its_steps_compute(void **state)
{
	struct arena arena = {0};
	float x[8] = {1, 1, 1, 1, 3, 3, 3, 3}, w[4] = {2, 2, 2, 2}, y[8] = {0};
	const struct tensor in[] = {{x, DTYPE_FLOAT32, 2, {2, 4}, 8}, {w, DTYPE_FLOAT32, 1, {4}, 4}};
	struct tensor out[] = {{y, DTYPE_FLOAT32, 2, {2, 4}, 8}};
	struct err err = {""};

	(void)state;
	assert_int_equal(chain_plan_compute(plan_of("[" FIRST "," SECOND "]", &arena), &one, in, out, &err), 0);
	for (int i = 0; i < 8; i++)
		assert_float_equal(y[i], 2, 1e-6); /* the chain normalises, multiplies by 2, normalises again, and
						    * multiplies by 2 again */
	arena_free(&arena);
}

static void bounds_add_up_over_the_steps(void **state)
{
	struct arena arena = {0};
	struct rule alone = chain_plan_rule(plan_of(ALONE, &arena), &one, 0);
	struct rule both = chain_plan_rule(plan_of("[" FIRST "," SECOND "]", &arena), &one, 0);

	(void)state;
	assert_true(alone.rtol > 0);
	assert_true(both.rtol == 2 * alone.rtol && both.atol == 2 * alone.atol && both.hit_ratio == alone.hit_ratio);
	arena_free(&arena);
}

static void the_version_depends_on_text_and_families(void **state)
{
	struct arena arena = {0};
	const char *version = chain_plan_version(plan_of(ALONE, &arena), &arena);

	(void)state;
	assert_string_equal(version, chain_plan_version(plan_of(ALONE, &arena), &arena));
	assert_string_not_equal(version, chain_plan_version(plan_of("[" FIRST "," SECOND "]", &arena), &arena));
	arena_free(&arena);
}

/* Returns the version of a chain of one activation in a definition with this name. */
static const char *version_named(const char *name, const char *description, struct arena *arena)
{
	static const struct op_axis widths[] = {{"rows", true, 0}, {"both", false, 4}, {"half", false, 2}};
	static const struct op_arg x = {.name = "x", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}},
				   y = {.name = "y", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 2}};
	const struct op_problem gated = {.name = name, .op_type = "fused", .description = description, .axes = widths,
					 .axis_count = 3, .inputs = &x, .input_count = 1, .outputs = &y, .output_count = 1};
	struct err err = {""};
	struct chain_plan *plan =
	    chain_plan_make(&api, "[{\"op\":\"activation\",\"inputs\":[\"x\"],\"outputs\":[\"y\"]}]", &gated, arena, &err);

	if (plan == NULL)
		fail_msg("%s", err.text);
	return chain_plan_version(plan, arena);
}

static void the_version_depends_on_what_steps_derive_from_the_name(void **state)
{
	struct arena arena = {0};
	const char *silu = version_named("mlp_silu", "", &arena);

	(void)state;
	assert_string_not_equal(silu, version_named("mlp_gelu", "", &arena));
	assert_string_equal(silu, version_named("another_silu", "Says nothing else.", &arena));
	arena_free(&arena);
}

static void assert_refused(const char *text, const char *words)
{
	struct arena arena = {0};
	struct err err = {""};

	assert_null(chain_plan_make(&api, text, &problem, &arena, &err));
	if (strstr(err.text, words) == NULL)
		fail_msg("%s: expected %s", err.text, words);
	arena_free(&arena);
}

static void bad_chains_are_refused_with_the_step(void **state)
{
	struct buf many = {0};

	(void)state;
	assert_refused("{}", "expected a list of steps");
	assert_refused("[1]", "expected an object with");
	assert_refused("[{\"op\":\"rmsnorm\",\"inputs\":[\"x\"],\"outputs\":[\"y\"]}]", "ground_truth/0 (rmsnorm): ");
	assert_refused("[{\"op\":\"rmsnorm\",\"inputs\":[],\"outputs\":[\"y\"]}]", "an object or a list with names");
	assert_refused("[" SECOND "," FIRST "]", "the chain is circular: step 1 needs \"a\"");
	assert_refused("[" FIRST "]", "no step produces the output \"y\"");
	assert_refused("[" FIRST "," FIRST "," SECOND "]", "the name \"a\" is already used");
	assert_refused("[{\"op\":\"sampling\",\"inputs\":[\"x\",\"w\"],\"outputs\":[\"y\"]}]", "ground_truth/0 (sampling): ");
	buf_text(&many, "[" ALONE);
	for (int i = 0; i < 20; i++)
		buf_text(&many, ",1");
	buf_text(&many, "]");
	assert_refused(many.data, "expected at most 16 steps");
	buf_free(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_chain_computes_what_its_steps_compute),
	    cmocka_unit_test(bounds_add_up_over_the_steps),
	    cmocka_unit_test(the_version_depends_on_text_and_families),
	    cmocka_unit_test(the_version_depends_on_what_steps_derive_from_the_name),
	    cmocka_unit_test(bad_chains_are_refused_with_the_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
