/* test_derived_facts - if two variants of a definition have a case with the same subject, the op family derives the
 * same facts from both variants. Each starter definition is compared with variants of itself: keys are reordered, or
 * the name is replaced by one that suggests another variant of the family. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "engine/cases.h"
#include "kernels/core/roles.h"
#include "models/architectures.h"

static const struct kernels_api api = {
    .checker_digest = "checker", .find = op_find, .candidates = op_candidates, .by_name = op_by_name};

/* Each name suggests a variant of at least one family. */
static const char *const names[] = {
    "x_silu",   "x_gelu",       "x_gelu_tanh",    "x_causal", "x_noncausal", "x_gptj_interleave", "x_llama31",
    "x_v_first", "x_k_last",     "x_v_last",       "x_l2norm", "x_neg_eigval", "x_beta_sigmoid",    "x_eps1e-3",
    "x_theta77777", "x_topk3_ng2_kg1", "x_renorm", "x_llama4 routing", "x_dropout"};
enum { NAMES = sizeof names / sizeof *names, ARGS_MOST = 64 };

struct variant {
	struct arena arena;
	struct definition definition;
	struct cases cases;
	struct buf facts; /* what the family derives, with a line for each fact, in an order that keys do not change */
};

/* --- facts -------------------------------------------------------------------------------------------------------- */

static int index_of(const struct op_arg *args, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(args[i].name, name) == 0)
			return i;
	fail_msg("there is no '%s'", name);
	return -1;
}

static void write_args(const struct op_problem *problem, const struct op_case *c, const struct op *op,
		       const struct tensor_spec *specs, int count, bool output, struct buf *out)
{
	const struct op_names roles = op_names_of(op, problem, c->variant);

	for (int i = 0; i < count; i++) {
		int at = index_of(output ? problem->outputs : problem->inputs, count, specs[i].name);
		const char *role = (output ? roles.outputs : roles.inputs)[at];

		buf_printf(out, "%s: %s", specs[i].name, role != NULL ? role : "no role");
		if (!output && op->in_place != NULL) {
			struct op_in_place place = op->in_place(c, at);

			buf_printf(out, ", in place %d %d", place.place, place.may_keep);
		}
		if (!output && problem->inputs[at].rank == OP_SCALAR && op->scalar != NULL)
			buf_printf(out, ", scalar %.17g", op->scalar(c, at));
		if (output && op->rule != NULL)
			buf_printf(out, ", bounds %.17g %.17g", op->rule(c, at).atol, op->rule(c, at).rtol);
		buf_text(out, "\n");
	}
}

/* Writes the facts of a case. `order` is the definition whose order of inputs and outputs the facts have. */
static void write_facts(struct variant *v, const struct test_case *test, const struct definition *order)
{
	const struct op *op = v->cases.op->op;
	struct op_case c = {
	    .problem = &test->job->problem, .axis = test->job->axis, .constant_count = v->cases.constant_count};
	struct err why = {""};

	v->facts.length = 0;
	if (op_find(c.problem, &c.variant, &why) != v->cases.op)
		fail_msg("%s: %s", v->definition.name, why.text);
	memcpy(c.constants, v->cases.constants, sizeof c.constants);
	buf_printf(&v->facts, "%s %d\n", op->name, c.variant);
	for (int i = 0; i < c.constant_count; i++)
		buf_printf(&v->facts, "%s = %.17g\n", c.constants[i].name, c.constants[i].value);
	write_args(c.problem, &c, op, order->inputs, order->input_count, false, &v->facts);
	write_args(c.problem, &c, op, order->outputs, order->output_count, true, &v->facts);
}

/* --- variants ----------------------------------------------------------------------------------------------------- */

static void reverse_expressions(struct variant *v)
{
	struct definition *d = &v->definition;
	const char **expressions = arena_array(&v->arena, (size_t)d->axis_count + 1, sizeof *expressions);

	for (int i = 0; d->axis_expressions != NULL && i < d->axis_count; i++)
		expressions[d->axis_count - 1 - i] = d->axis_expressions[i];
	if (d->axis_expressions != NULL)
		d->axis_expressions = expressions;
}

/* Reverses the order of the axes; tensors keep their shapes. */
static void reverse_axes(struct variant *v)
{
	struct definition *d = &v->definition;
	struct axis *axes = arena_array(&v->arena, (size_t)d->axis_count + 1, sizeof *axes);
	const struct tensor_spec **sides[] = {&d->inputs, &d->outputs};
	const int counts[] = {d->input_count, d->output_count};

	for (int i = 0; i < d->axis_count; i++)
		axes[d->axis_count - 1 - i] = d->axes[i];
	d->axes = axes;
	reverse_expressions(v);
	for (int side = 0; side < 2; side++) {
		struct tensor_spec *specs = arena_array(&v->arena, (size_t)counts[side] + 1, sizeof *specs);

		for (int i = 0; i < counts[side]; i++) {
			specs[i] = (*sides[side])[i];
			for (int k = 0; k < specs[i].rank; k++)
				specs[i].axis[k] = d->axis_count - 1 - specs[i].axis[k];
		}
		*sides[side] = specs;
	}
}

static const struct tensor_spec *reversed(struct variant *v, const struct tensor_spec *specs, int count)
{
	struct tensor_spec *out = arena_array(&v->arena, (size_t)count + 1, sizeof *out);

	for (int i = 0; i < count; i++)
		out[count - 1 - i] = specs[i];
	return out;
}

static void reverse_inputs(struct variant *v)
{
	v->definition.inputs = reversed(v, v->definition.inputs, v->definition.input_count);
}

static void reverse_outputs(struct variant *v)
{
	v->definition.outputs = reversed(v, v->definition.outputs, v->definition.output_count);
}

static void drop_texts(struct variant *v)
{
	v->definition.description = "";
	v->definition.tag_count = 0;
}

static void (*const orders[])(struct variant *) = {reverse_axes, reverse_inputs, reverse_outputs, drop_texts};
enum { ORDERS = sizeof orders / sizeof *orders };

/* --- comparison --------------------------------------------------------------------------------------------------- */

static struct architectures architectures;
static int compared, equal_subjects;

static void make_cases(struct variant *v)
{
	static const struct workload_file none;
	struct case_options options = case_options_default();

	options.size[SIZE_MEDIUM] = false;
	v->cases = cases_make(&api, &v->definition, &none, NULL, 0, ".", &options, 0, &architectures, &v->arena);
}

static void compare(struct variant *v, struct variant *other, const struct definition *order)
{
	for (int i = 0; i < v->cases.count && i < other->cases.count; i++) {
		const struct test_case *a = &v->cases.items[i], *b = &other->cases.items[i];

		compared++;
		if (a->job == NULL || b->job == NULL || !digest_equal(&a->subject, &b->subject))
			continue;
		equal_subjects++;
		write_facts(v, a, order);
		write_facts(other, b, order);
		if (strcmp(v->facts.data, other->facts.data) != 0)
			fail_msg("%s and %s have the same subject, but these facts:\n%s\n%s", order->name, v->definition.name,
				 other->facts.data, v->facts.data);
	}
}

/* Compares the definition with variant number `number`: first the names, then the orders. */
static void compare_variant(struct variant *original, int number)
{
	struct variant v = {.definition = original->definition};

	if (number < NAMES) {
		v.definition.name = names[number];
		drop_texts(&v);
	} else {
		orders[number - NAMES](&v);
	}
	make_cases(&v);
	if (v.cases.op != NULL)
		compare(&v, original, &original->definition);
	buf_free(&v.facts);
	arena_free(&v.arena);
}

static void compare_file(const struct dataset *dataset, const struct dataset_file *file)
{
	struct variant original = {.cases = {.count = 0}};
	struct buf bytes = {0};
	struct err err = {""};
	const struct definition *definition = NULL;

	if (file_read(dataset->fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) != FILE_OK ||
	    (definition = definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, &original.arena,
					   &err)) == NULL)
		fail_msg("%s", err.text);
	original.definition = *definition;
	make_cases(&original);
	for (int i = 0; i < NAMES + ORDERS; i++)
		compare_variant(&original, i);
	buf_free(&original.facts);
	buf_free(&bytes);
	arena_free(&original.arena);
}

static void equal_subjects_have_equal_facts(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};

	(void)state;
	if (dataset_scan(".", &arena, &dataset, &err) != 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < dataset.definition_count; i++)
		compare_file(&dataset, &dataset.definitions[i]);
	assert_true(dataset.definition_count > 80);
	assert_true(equal_subjects > dataset.definition_count && equal_subjects < compared);
	architectures_free(&architectures);
	dataset_close(&dataset);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(equal_subjects_have_equal_facts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
