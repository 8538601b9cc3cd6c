/* test_roles - the roles of inputs and outputs. The tables of all families are well-formed. In every starter
 * definition, each input and output has exactly one role, even if inputs and outputs are listed in another order. A
 * gradient case has the roles of its forward operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "kernels/core/gradient_bounds.h"
#include "kernels/core/ground_truth_api.h"
#include "kernels/core/roles.h"
#include "tests/unit/problem_builder.h"
#include "workers/protocol/job.h"

enum { ORDERS = 8, NAMES = 64 };

/* --- the tables --------------------------------------------------------------------------------------------------- */

static bool is_spelled(const char *name)
{
	return name[0] != '\0' && name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* Checks that each name in the table matches [a-z0-9_]+ and occurs once. Returns the number of names. */
static int expect_names(const char *family, const char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (!is_spelled(names[i]))
			fail_msg("%s: '%s' is not spelled [a-z0-9_]+", family, names[i]);
		for (int j = 0; j < i; j++)
			if (strcmp(names[i], names[j]) == 0)
				fail_msg("%s: '%s' occurs twice", family, names[i]);
	}
	return count;
}

static void names_of_roles_are_well_spelled_and_unique(void **state)
{
	(void)state;
	for (int i = 0; i < op_count; i++) {
		const struct op *op = op_table[i].op;
		const char *names[NAMES];
		int count = 0, outputs = 0;

		if (op->roles == NULL || op->bind == NULL)
			fail_msg("%s has no roles", op->name);
		for (const struct op_role *role = op->roles; role->name != NULL; role++, count++) {
			assert_true(count < NAMES);
			assert_true(role->at >= 0 && role->at + (int)sizeof(int) <= OP_ROLES_SIZE);
			for (const struct op_role *other = op->roles; other != role; other++)
				assert_true(other->at != role->at);
			names[count] = role->name;
			outputs += role->output;
		}
		assert_true(expect_names(op->name, names, count) > outputs && outputs > 0);
	}
}

static void names_of_modes_are_well_spelled_and_unique(void **state)
{
	(void)state;
	for (int i = 0; i < op_count; i++) {
		const struct op *op = op_table[i].op;
		const char *names[OP_MODES];
		int count = 0;

		for (const struct op_mode *mode = op->modes; mode != NULL && mode->name != NULL; mode++) {
			assert_true(count < OP_MODES);
			assert_int_equal(mode->value & ~mode->mask, 0); /* a mode whose value has bits outside its mask
									 * would never apply */
			names[count++] = mode->name;
		}
		expect_names(op->name, names, count);
	}
}

/* --- starter definitions ------------------------------------------------------------------------------------------ */

struct subject {
	struct arena arena;
	struct op_problem problem;
	const struct op *op;
	int variant;
};

static void each_definition(void (*look)(struct subject *))
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};

	if (dataset_scan(".", &arena, &dataset, &err) != 0)
		fail_msg("%s", err.text);
	assert_true(dataset.definition_count > 80);
	for (int i = 0; i < dataset.definition_count; i++) {
		const struct dataset_file *file = &dataset.definitions[i];
		struct subject s = {.problem = {.input_count = 0}};
		struct buf bytes = {0};
		const struct definition *definition = NULL;

		if (file_read(dataset.fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) != FILE_OK ||
		    (definition = definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, &s.arena,
		                                  &err)) == NULL)
			fail_msg("%s", err.text);
		s.problem = problem_of(definition, &s.arena);
		const struct op_entry *entry = op_find(&s.problem, &s.variant, &err);

		if (entry == NULL)
			fail_msg("%s: %s", s.problem.name, err.text);
		s.op = entry->op;
		look(&s);
		buf_free(&bytes);
		arena_free(&s.arena);
	}
	dataset_close(&dataset);
	arena_free(&arena);
}

/* Returns how many of the family's roles are assigned to this input or output in `roles`. */
static int roles_of(const struct subject *s, const unsigned char *roles, bool output, int index)
{
	int count = 0;

	for (const struct op_role *role = s->op->roles; role->name != NULL; role++)
		count += role->output == output && *(const int *)(const void *)(roles + role->at) == index;
	return count;
}

static void expect_one_role_each(struct subject *s)
{
	const struct op_problem *problem = &s->problem;
	alignas(max_align_t) unsigned char roles[OP_ROLES_SIZE];

	s->op->bind(problem, s->variant, roles);
	for (int i = 0; i < problem->input_count; i++)
		if (roles_of(s, roles, false, i) != 1)
			fail_msg("%s: input '%s' has %d roles", problem->name, problem->inputs[i].name,
			         roles_of(s, roles, false, i));
	for (int i = 0; i < problem->output_count; i++)
		if (roles_of(s, roles, true, i) != 1)
			fail_msg("%s: output '%s' has %d roles", problem->name, problem->outputs[i].name,
			         roles_of(s, roles, true, i));
	for (const struct op_role *role = s->op->roles; role->name != NULL; role++) {
		int at = *(const int *)(const void *)(roles + role->at);

		if (at < -1 || at >= (role->output ? problem->output_count : problem->input_count))
			fail_msg("%s: role '%s' has index %d", problem->name, role->name, at);
	}
}

static void each_input_and_output_has_exactly_one_role(void **state)
{
	(void)state;
	each_definition(expect_one_role_each);
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

/* Returns true for the families in which tensors of equal shape are distinguished only by their order. */
static bool by_order(const struct op *op)
{
	return strcmp(op->name, "cascade") == 0 || strcmp(op->name, "page") == 0 || strcmp(op->name, "rope") == 0;
}

static bool has_order(const struct op *op, const struct op_arg *arg)
{
	return by_order(op) && arg->rank != OP_SCALAR && dtype_is_float(arg->dtype);
}

/* Returns a shuffled copy of the inputs or outputs. The order depends on `seed`. */
static const struct op_arg *shuffled(struct subject *s, const struct op_arg *args, int count, uint32_t seed)
{
	struct op_arg *out = arena_array(&s->arena, (size_t)count + 1, sizeof *out);

	memcpy(out, args, (size_t)count * sizeof *out);
	for (int i = count - 1; i > 0; i--) {
		seed = seed * 1664525 + 1013904223;
		int j = (int)((seed >> 16) % (uint32_t)(i + 1));
		struct op_arg kept = out[i];

		if (has_order(s->op, &out[i]) || has_order(s->op, &out[j]))
			continue;
		out[i] = out[j];
		out[j] = kept;
	}
	return out;
}

static const char *role_named(const struct op_arg *args, int count, const char *const *roles, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(args[i].name, name) == 0)
			return roles[i];
	fail_msg("there is no '%s'", name);
	return NULL;
}

static void expect_same(const struct op_problem *a, const struct op_names *of_a, const struct op_problem *b,
                        const struct op_names *of_b)
{
	assert_int_equal(a->input_count, b->input_count);
	for (int i = 0; i < a->input_count; i++)
		assert_string_equal(of_a->inputs[i],
		                    role_named(b->inputs, b->input_count, of_b->inputs, a->inputs[i].name));
	for (int i = 0; i < a->output_count; i++)
		assert_string_equal(of_a->outputs[i],
		                    role_named(b->outputs, b->output_count, of_b->outputs, a->outputs[i].name));
	assert_int_equal(of_a->mode_count, of_b->mode_count);
	for (int i = 0; i < of_a->mode_count; i++)
		assert_string_equal(of_a->modes[i], of_b->modes[i]);
}

static void expect_roles_in_any_order(struct subject *s)
{
	struct op_names names = op_names_of(s->op, &s->problem, s->variant);

	for (uint32_t seed = 1; seed <= ORDERS; seed++) {
		struct subject other = *s;
		struct err err = {""};

		other.problem.inputs = shuffled(s, s->problem.inputs, s->problem.input_count, seed);
		other.problem.outputs = shuffled(s, s->problem.outputs, s->problem.output_count, seed);
		other.variant = s->op->match(&other.problem, &err);
		if (other.variant < 0)
			fail_msg("%s, order %u: %s", s->problem.name, seed, err.text);
		expect_one_role_each(&other);
		struct op_names found = op_names_of(s->op, &other.problem, other.variant);

		expect_same(&s->problem, &names, &other.problem, &found);
	}
}

static void no_order_of_inputs_and_outputs_changes_a_role(void **state)
{
	(void)state;
	each_definition(expect_roles_in_any_order);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

static int with_gradients;

static void expect_roles_of_forward(struct subject *s)
{
	static const bool absent[OP_ARGS] = {false};
	struct op_names names = op_names_of(s->op, &s->problem, s->variant);

	if (s->op->gradient == NULL)
		return;
	with_gradients++;
	for (int in_float64 = 0; in_float64 < 2; in_float64++) {
		struct op_problem gradients = gradient_problem(&s->problem, absent, in_float64, &s->arena);
		struct gradient_forward room;
		struct op_problem forward = gradient_forward_problem(&gradients, &room);
		struct err err = {""};
		int variant = s->op->match(&forward, &err);

		assert_string_equal(err.text, "");
		struct op_names found = op_names_of(s->op, &forward, variant);

		expect_same(&s->problem, &names, &forward, &found);
	}
}

static void gradients_have_the_roles_of_the_forward_operation(void **state)
{
	(void)state;
	with_gradients = 0;
	each_definition(expect_roles_of_forward);
	assert_true(with_gradients > 10);
}

/* --- modes -------------------------------------------------------------------------------------------------------- */

/* Modes that are determined only by the name of a definition. Each entry is a new name for a starter definition, and
 * the modes of the renamed definition. */
static const struct {
	const char *definition, *name, *modes;
} renamed[] = {
    {"gdn_decode_qk8_v16_d128_k_last", "gdn_decode_v_last", "v_last"},
    {"gdn_prefill_qk2_v4_d128_k_last", "gdn_prefill_l2norm", "l2norm"},
    {"delta_rule_recurrent_qk_l2norm_h4_d64", "delta_rule_neg_eigval", "doubled"},
    {"delta_rule_recurrent_qk_l2norm_h4_d64", "delta_rule_beta_sigmoid_v_first", "v_first sigmoid"},
    {"gqa_ragged_prefill_causal_h10_kv2_d128", "gqa_ragged_noncausal", ""},
    {"rope_pos_ids_h32_kv8_d128", "rope_pos_ids_gptj", "interleaved"},
    {"rope_pos_ids_interleaved_given_d64", "rope_interleaved", ""}, /* the mode depends on a Python scalar, not on the
								     * name */
};
enum { RENAMED = sizeof renamed / sizeof *renamed };

static const char *modes_of(const struct op *op, const struct op_problem *problem, char *out, size_t size)
{
	struct err err = {""};
	int variant = op->match(problem, &err);

	if (variant < 0)
		fail_msg("%s: %s", problem->name, err.text);
	struct op_names names = op_names_of(op, problem, variant);

	out[0] = '\0';
	for (int i = 0; i < names.mode_count; i++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s", i > 0 ? " " : "", names.modes[i]);
	return out;
}

static int met;

static void expect_modes_of_names(struct subject *s)
{
	char modes[256];

	for (int i = 0; i < RENAMED; i++) {
		struct op_problem problem = s->problem;

		if (strcmp(problem.name, renamed[i].definition) != 0)
			continue;
		met++;
		problem.name = renamed[i].name;
		problem.description = "";
		problem.tag_count = 0;
		assert_string_equal(modes_of(s->op, &problem, modes, sizeof modes), renamed[i].modes);
	}
}

static void names_say_modes(void **state)
{
	(void)state;
	met = 0;
	each_definition(expect_modes_of_names);
	assert_int_equal(met, RENAMED);
}

/* Builds a problem that appends keys and values of the shape [tokens, heads, dim] to a paged cache. `cache` names the
 * axes of a cache tensor, and `caches` is the number of cache tensors (1 or 2). */
static void page_problem(struct built *b, const char *cache, int caches)
{
	start_problem(b, "append", "page");
	add_axis(b, "tokens", 0);
	add_axis(b, "heads", 3);
	add_axis(b, "dim", 32);
	add_axis(b, "pages", 0);
	add_axis(b, "place", 16);
	add_axis(b, "two", 2);
	add_axis(b, "offsets", 0);
	add_axis(b, "entries", 0);
	add_input(b, "batch", DTYPE_INT32, "tokens");
	add_input(b, "positions", DTYPE_INT32, "tokens");
	add_input(b, "indptr", DTYPE_INT32, "offsets");
	add_input(b, "indices", DTYPE_INT32, "entries");
	add_input(b, "keys", DTYPE_BFLOAT16, "tokens heads dim");
	add_input(b, "values", DTYPE_BFLOAT16, "tokens heads dim");
	for (int i = 0; i < caches; i++) {
		add_input(b, i == 0 ? "cache" : "cache_of_values", DTYPE_BFLOAT16, cache);
		add_output(b, i == 0 ? "cache" : "cache_of_values", DTYPE_BFLOAT16, cache);
	}
}

static void layouts_of_caches_are_modes(void **state)
{
	struct built b;
	char modes[256];

	(void)state;
	page_problem(&b, "pages place heads dim", 2);
	assert_string_equal(modes_of(op_by_name("page")->op, &b.problem, modes, sizeof modes), "");
	page_problem(&b, "pages heads place dim", 2);
	assert_string_equal(modes_of(op_by_name("page")->op, &b.problem, modes, sizeof modes), "hnd");
	page_problem(&b, "pages two heads place dim", 1);
	assert_string_equal(modes_of(op_by_name("page")->op, &b.problem, modes, sizeof modes), "hnd combined");
}

/* --- as JSON ------------------------------------------------------------------------------------------------------ */

#define DEFINITION                                                                                                        \
	"{\"name\": \"fused_add_rmsnorm_x\", \"op_type\": \"rmsnorm\", \"axes\": {\"b\": {\"type\": \"var\"},"            \
	" \"h\": {\"type\": \"const\", \"value\": 4}}, \"inputs\": {"                                                     \
	"\"the \\\"residual\\\"\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"float32\"},"                                  \
	" \"x\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"float32\"},"                                                    \
	" \"w\": {\"shape\": [\"h\"], \"dtype\": \"float32\"}, \"eps\": {\"shape\": null, \"dtype\": \"float32\"}},"      \
	" \"outputs\": {\"y\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"float32\"}}}"

static const char roles_of_definition[] =
    "{\"roles\":{\"residual\":\"the \\\"residual\\\"\",\"hidden\":\"x\",\"weight\":\"w\",\"eps\":\"eps\"},"
    "\"output_roles\":{\"output\":\"y\"},\"modes\":[]}";

static const char causal[] =
    "{\"name\": \"causal\", \"op_type\": \"gqa_ragged\", \"axes\": {\"n\": {\"type\": \"var\"}, \"m\": {\"type\": \"var\"},"
    " \"len\": {\"type\": \"var\"}, \"h\": {\"type\": \"const\", \"value\": 2}, \"d\": {\"type\": \"const\", \"value\": 8}},"
    " \"inputs\": {\"q\": {\"shape\": [\"n\", \"h\", \"d\"], \"dtype\": \"float16\"},"
    " \"values\": {\"shape\": [\"m\", \"h\", \"d\"], \"dtype\": \"float16\"},"
    " \"keys\": {\"shape\": [\"m\", \"h\", \"d\"], \"dtype\": \"float16\"},"
    " \"qo_indptr\": {\"shape\": [\"len\"], \"dtype\": \"int32\"},"
    " \"kv_indptr\": {\"shape\": [\"len\"], \"dtype\": \"int32\"}, \"scale\": {\"shape\": null, \"dtype\": \"float32\"}},"
    " \"outputs\": {\"lse\": {\"shape\": [\"n\", \"h\"], \"dtype\": \"float32\"},"
    " \"o\": {\"shape\": [\"n\", \"h\", \"d\"], \"dtype\": \"float16\"}}}";

static void other_programs_get_roles_and_modes_as_json(void **state)
{
	char out[1024], exact[sizeof roles_of_definition];

	(void)state;
	assert_int_equal(reftest_roles(DEFINITION, out, sizeof out), TRUTH_OK);
	assert_string_equal(out, roles_of_definition);
	assert_int_equal(
	    reftest_roles("{\"definition\": " DEFINITION ", \"axes\": {\"b\": 3}, \"seed\": 1}", out, sizeof out), TRUTH_OK);
	assert_string_equal(out, roles_of_definition);
	assert_int_equal(reftest_roles(DEFINITION, exact, sizeof exact), TRUTH_OK);
	assert_string_equal(exact, roles_of_definition);
	assert_int_equal(reftest_roles(causal, out, sizeof out), TRUTH_OK);
	assert_string_equal(out, "{\"roles\":{\"q\":\"q\",\"v\":\"values\",\"k\":\"keys\",\"qo_indptr\":\"qo_indptr\","
	                         "\"kv_indptr\":\"kv_indptr\",\"scale\":\"scale\"},"
	                         "\"output_roles\":{\"lse\":\"lse\",\"output\":\"o\"},\"modes\":[\"causal\"]}");
}

static void what_has_no_roles_is_refused_with_a_sentence(void **state)
{
	char out[1024], small[sizeof roles_of_definition - 1];

	(void)state;
	assert_int_equal(reftest_roles(DEFINITION, small, sizeof small), TRUTH_BAD);
	assert_non_null(strstr(small, "but the caller's buffer has"));
	assert_int_equal(reftest_roles(DEFINITION, NULL, 0), TRUTH_BAD);
	assert_int_equal(reftest_roles("[1]", out, sizeof out), TRUTH_BAD);
	assert_int_equal(reftest_roles("{", out, sizeof out), TRUTH_BAD);
	assert_non_null(strstr(out, "the case"));
	assert_int_equal(reftest_roles("{\"name\": \"x\", \"op_type\": \"x\", \"axes\": {}, \"inputs\": {}, \"outputs\": {}}", out,
	                               sizeof out),
	                 TRUTH_NONE);
	assert_non_null(strstr(out, "no op family knows op_type 'x'"));
	/* A case without the lengths of its axes is accepted only in a request for the roles. */
	assert_int_equal(reftest_family(DEFINITION, out, sizeof out), TRUTH_BAD);
	assert_int_equal(reftest_family("{\"definition\": " DEFINITION "}", out, sizeof out), TRUTH_BAD);
	assert_non_null(strstr(out, "axis 'b' has no value"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_of_roles_are_well_spelled_and_unique),
	    cmocka_unit_test(names_of_modes_are_well_spelled_and_unique),
	    cmocka_unit_test(each_input_and_output_has_exactly_one_role),
	    cmocka_unit_test(no_order_of_inputs_and_outputs_changes_a_role),
	    cmocka_unit_test(gradients_have_the_roles_of_the_forward_operation),
	    cmocka_unit_test(names_say_modes),
	    cmocka_unit_test(layouts_of_caches_are_modes),
	    cmocka_unit_test(other_programs_get_roles_and_modes_as_json),
	    cmocka_unit_test(what_has_no_roles_is_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
