/* test_diagnosis - which of the mistakes that explain a failed case are reported. Each row of a family's table of
 * mistakes describes one mistake. The row must explain the outputs of a reference that makes this mistake, and must not
 * explain correct outputs. The test uses small cases of the starter definitions. Nearly every mistake changes the
 * outputs of at least one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "kernels/core/mistakes.h"
#include "kernels/core/diagnosis.h"
#include "tests/unit/moe_world.h"
#include "tests/unit/problem_builder.h"
#include "tests/unit/seeds.h"
#include "workers/protocol/job.h"

/* At most LARGER mistakes may leave the outputs of all tested cases unchanged: those that show only with random draws,
 * in cases above MOST_BYTES, or with other inputs. Sanitized builds test smaller cases, in which fewer mistakes show,
 * so LARGER is no limit there. */
enum { SEEN = 1024, MOST_BYTES = SANITIZED ? 1 << 18 : 17 << 20, LARGER = SANITIZED ? SEEN : 20 };

/* The rows of the tables of mistakes that were tried so far. */
struct seen {
	const struct op_mistake *rows[SEEN];
	bool effect[SEEN]; /* whether the mistake of the row changed the outputs of a tested case */
	int count;
};

/* Returns the index of a row in `seen`. Adds the row if it is new. */
static int number_of(struct seen *seen, const struct op_mistake *row)
{
	for (int i = 0; i < seen->count; i++)
		if (seen->rows[i] == row)
			return i;
	assert_true(seen->count < SEEN);
	seen->rows[seen->count] = row;
	return seen->count++;
}

static bool is_done(struct seen *seen, const struct op_mistake *row)
{
	return seen->effect[number_of(seen, row)];
}

/* Rounds each output of a variation to the dtype that this output has in the problem. */
static void round_outputs(const struct op_variation *v, struct world *w)
{
	for (int i = 0; i < w->c.problem->output_count; i++) {
		struct tensor *to = &w->answer[i];

		double part[1024];

		for (int64_t k = 0, count; k < to->elements; k += count) {
			count = to->elements - k < 1024 ? to->elements - k : 1024;
			dtype_load_run(v->out[i].data, v->out[i].dtype, k, count, part);
			dtype_store_run(to->data, to->dtype, k, count, part);
		}
	}
}

/* Returns true if the outputs `found` of a reference agree with the outputs of the variation `v`. */
static bool explains(const struct world *w, const struct op_variation *v, const struct tensor *found)
{
	struct rule rules[2];
	const struct diagnosis_set set = {&w->c, w->in, found, rules};

	for (int i = 0; i < w->c.problem->output_count; i++)
		rules[i] = w->op->rule(&w->c, i);
	return diagnosis_agrees(v, &set);
}

/* Returns true if an output is mostly NaN, because diagnosis_agrees ignores such an output. */
static bool is_mostly_nan(const struct world *w)
{
	bool any = false;

	for (int i = 0; i < w->c.problem->output_count; i++) {
		const struct tensor *t = &w->answer[i];
		int64_t count = 0;

		for (int64_t k = 0; k < t->elements && dtype_is_float(t->dtype); k++)
			count += isnan(dtype_load(t->data, t->dtype, k));
		any = any || (count > 0 && 2 * count >= t->elements);
	}
	return any;
}

/* Checks a row of a table of mistakes. Runs the oracle once with the mistake of the row. `right` is the variation
 * without a mistake. */
static void expect_row(struct world *w, const struct op_mistake *row, const struct op_variation *right,
		       struct seen *seen)
{
	struct op_variation v = variation_open(w->op, &w->c, w->in);
	int number = number_of(seen, row);

	if (variation_run(&v, row, right->out)) {
		round_outputs(&v, w);
		bool hidden = is_mostly_nan(w);

		if (!hidden && !explains(w, &v, w->answer))
			fail_msg("%s: '%s' does not recognise its own outputs", w->c.problem->name, row->says);
		if (!hidden && !explains(w, right, w->answer)) { /* the mistake changes the outputs */
			if (explains(w, &v, w->truth))
				fail_msg("%s: '%s' agrees with the right outputs", w->c.problem->name, row->says);
			seen->effect[number] = true;
		}
	}
	variation_close(&v);
}

/* Tries the rows of the family that have not been tried yet, on one set of inputs. */
static void try_rows(struct world *w, struct seen *seen)
{
	struct op_variation right = variation_open(w->op, &w->c, w->in);
	const struct op_mistake none = {.says = ""};
	struct tensor truth[OP_PLACES] = {{.data = NULL}};
	struct err err = {""};

	/* The array `truth` may have more entries than the problem has outputs. The oracle does not compute an entry
	 * that is NULL. */
	for (int i = 0; i < w->c.problem->output_count; i++)
		truth[i] = w->truth[i];
	assert_int_equal(w->op->oracle(&w->c, w->in, truth, &err), 0);
	assert_true(variation_run(&right, &none, NULL));
	for (const struct op_mistake *row = w->op->mistakes; row->says != NULL; row++)
		if (!is_done(seen, row))
			expect_row(w, row, &right, seen);
	variation_close(&right);
}

static void look_at(const struct op *op, const struct op_problem *problem, struct seen *seen)
{
	int64_t axes[MAX_ROWS * MAX_AXES * 4];
	int rows = rows_of(op, problem, SIZE_SMALL, axes);
	bool any = false;

	for (const struct op_mistake *row = op->mistakes; row != NULL && row->says != NULL; row++)
		any = any || !is_done(seen, row);
	for (int i = 0; any && i < rows; i++) {
		struct world w;
		int64_t bytes = 0;

		for (int k = 0; k < problem->output_count + problem->input_count; k++) {
			const struct op_arg *arg = k < problem->output_count ? &problem->outputs[k] : &problem->inputs[k - problem->output_count];
			int64_t elements = 1;

			for (int d = 0; d < arg->rank; d++)
				elements *= axes[i * problem->axis_count + arg->axis[d]];
			bytes += arg->rank < 0 ? 0 : dtype_bytes(arg->dtype, elements);
		}
		if (bytes > MOST_BYTES)
			continue;
		for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
			make_inputs_of(&w, op, problem, axes + i * problem->axis_count, 1, 0, 0, (enum op_contents)contents);
			/* Operations that sample are skipped, because the oracle makes no random draws. */
			if (op->samples == NULL || !op->samples(&w.c))
				try_rows(&w, seen);
			free_world(&w);
		}
	}
}

/* Tries the rows of the family moe on small problems, because the problems of the dataset are larger than
 * MOST_BYTES. */
static void look_at_experts(struct seen *seen)
{
	struct built forms[7];

	deepseek(&forms[0], grouped_name);
	deepseek(&forms[1], flat_name);
	renormalised(&forms[2]);
	per_tensor(&forms[3], llama_text, 1, true);
	floats(&forms[4]);
	routed(&forms[5], "", DTYPE_INT32, false);
	routed(&forms[6], "", DTYPE_INT32, true);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		look_at(&moe_op, &forms[i].problem, seen);
}

static bool has_known_constants(const struct op *op, const struct op_problem *problem, int variant)
{
	struct op_constant constants[OP_CONSTANTS];
	int count = op->constants == NULL ? 0 : op->constants(problem, variant, constants);

	for (int i = 0; i < count; i++)
		if (isnan(constants[i].value))
			return false;
	return true;
}

/* Returns true if row i is the first row with its text, and no row with this text changes an output. Several families
 * may have the same row. */
static bool is_missing(const struct seen *seen, int i)
{
	for (int k = 0; k < seen->count; k++)
		if (strcmp(seen->rows[k]->says, seen->rows[i]->says) == 0 && (k < i || seen->effect[k]))
			return false;
	return true;
}

static void each_row_recognises_its_own_mistake_only(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};
	struct seen seen = {.count = 0};
	int missing = 0;

	(void)state;
	if (dataset_scan(".", &arena, &dataset, &err) != 0)
		fail_msg("%s", err.text);
	look_at_experts(&seen);
	for (int i = 0; i < dataset.definition_count; i++) {
		const struct dataset_file *file = &dataset.definitions[i];
		struct buf bytes = {0};
		const struct definition *definition = NULL;
		int variant;

		if (file_read(dataset.fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) != FILE_OK ||
		    (definition = definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, &arena,
		                                  &err)) == NULL)
			fail_msg("%s", err.text);
		struct op_problem problem = problem_of(definition, &arena);
		const struct op_entry *entry = op_find(&problem, &variant, &err);

		assert_non_null(entry);
		if (entry->op->mistakes != NULL && problem.input_count <= MAX_INPUTS && problem.output_count <= 2 &&
		    has_known_constants(entry->op, &problem, variant))
			look_at(entry->op, &problem, &seen);
		buf_free(&bytes);
	}
	for (int i = 0; i < op_count; i++)
		for (const struct op_mistake *row = op_table[i].op->mistakes; row != NULL && row->says != NULL; row++)
			number_of(&seen, row);
	for (int i = 0; i < seen.count; i++)
		if (is_missing(&seen, i)) {
			print_message("no case shows '%s'\n", seen.rows[i]->says);
			missing++;
		}
	assert_true(missing <= LARGER);
	dataset_close(&dataset);
	arena_free(&arena);
}

/* ---- a small operation: y[i] = x[rows[i]] ---- */

enum { ELEMENTS = 8, TRIPLED = 1, TRIPLED_OR_DOUBLED = 2, DOUBLED = 3 };

struct gather_roles {
	int x, rows, y;
};

static const struct op_role gather_role_names[] = {
    OP_ROLE("x", struct gather_roles, x),
    OP_ROLE("rows", struct gather_roles, rows),
    OP_ROLE_OUTPUT("y", struct gather_roles, y),
    {NULL, 0, false},
};

static void bind_gather(const struct op_problem *problem, int variant, void *roles)
{
	(void)problem, (void)variant;
	*(struct gather_roles *)roles = (struct gather_roles){0, 1, 0};
}

static bool has_row(const struct tensor *rows, int64_t i)
{
	double row = dtype_load(rows->data, rows->dtype, i);

	return row >= 0 && row < ELEMENTS;
}

static int check_gather(const struct op_case *c, const struct tensor *in, struct err *err)
{
	for (int64_t i = 0; i < in[1].elements && (c->given >> 1 & 1) != 0; i++)
		if (!has_row(&in[1], i))
			return err_set(err, "row %lld is outside x", (long long)i);
	return 0;
}

static int gather(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	double scale = c->problem->input_count > 2 ? c->scalar[2] : 1;

	(void)err;
	for (int64_t i = 0; i < ELEMENTS; i++) {
		if (!has_row(&in[1], i))
			fail_msg("the oracle reads outside x");
		double x = scale * dtype_load(in[0].data, in[0].dtype, (int64_t)dtype_load(in[1].data, in[1].dtype, i));

		dtype_store(out[0].data, out[0].dtype, i, c->mistake == DOUBLED ? 2 * x : c->mistake != 0 ? 3 * x : x);
	}
	return 0;
}

static const struct op_mistake past_the_end[] = {
    {.says = "rows were one too far", .before = before_add, .role = "rows", .by = 1, .checked = true},
    {.says = NULL},
};
static const struct op_mistake two_rows[] = {
    {.says = "a", .in_oracle = TRIPLED},
    {.says = "b", .in_oracle = TRIPLED},
    {.says = NULL},
};
static const struct op_mistake three_rows[] = {
    {.says = "a", .in_oracle = TRIPLED},
    {.says = "b", .in_oracle = TRIPLED},
    {.says = "c", .in_oracle = TRIPLED},
    {.says = NULL},
};

static const struct op_mistake narrower_rows[] = {
    {.says = "a", .in_oracle = TRIPLED},
    {.says = "b", .in_oracle = TRIPLED_OR_DOUBLED, .narrower = {TRIPLED}},
    {.says = NULL},
};
static const struct op_mistake refuted_narrower_rows[] = {
    {.says = "a", .in_oracle = DOUBLED},
    {.says = "b", .in_oracle = TRIPLED_OR_DOUBLED, .narrower = {DOUBLED}},
    {.says = NULL},
};

static const struct op_mistake second_narrower_rows[] = {
    {.says = "a", .in_oracle = TRIPLED},
    {.says = "b", .in_oracle = TRIPLED_OR_DOUBLED, .narrower = {DOUBLED, TRIPLED}},
    {.says = NULL},
};

static struct op gather_op(const struct op_mistake *mistakes)
{
	return (struct op){.name = "gather", .roles = gather_role_names, .bind = bind_gather, .check = check_gather,
			   .oracle = gather, .mistakes = mistakes};
}

/* A case of the small operation, and the outputs of a reference that triples every output. */
struct small {
	struct built built;
	struct op_case c;
	int64_t axis[MAX_AXES];
	float x[ELEMENTS], tripled[ELEMENTS];
	int32_t rows[ELEMENTS];
	struct tensor in[2], found;
};

static void make_small(struct small *s)
{
	memset(s, 0, sizeof *s);
	start_problem(&s->built, "gather", "gather");
	add_axis(&s->built, "n", ELEMENTS);
	add_input(&s->built, "x", DTYPE_FLOAT32, "n");
	add_input(&s->built, "rows", DTYPE_INT32, "n");
	add_output(&s->built, "y", DTYPE_FLOAT32, "n");
	s->axis[0] = ELEMENTS;
	s->c = (struct op_case){.problem = &s->built.problem, .axis = s->axis};
	for (int i = 0; i < ELEMENTS; i++) {
		s->x[i] = (float)(1 + i * i);
		s->rows[i] = i;
		s->tripled[i] = 3 * s->x[i];
	}
	s->in[0] = (struct tensor){s->x, DTYPE_FLOAT32, 1, {ELEMENTS}, ELEMENTS};
	s->in[1] = (struct tensor){s->rows, DTYPE_INT32, 1, {ELEMENTS}, ELEMENTS};
	s->found = (struct tensor){s->tripled, DTYPE_FLOAT32, 1, {ELEMENTS}, ELEMENTS};
}

static void a_mistake_in_indices_never_leaves_a_tensor(void **state)
{
	const struct op op = gather_op(past_the_end);
	struct small s;

	(void)state;
	make_small(&s);
	struct op_variation v = variation_open(&op, &s.c, s.in);

	assert_false(variation_run(&v, past_the_end, NULL));
	variation_close(&v);
}

/* Looks for the mistakes of `table` in the outputs of a reference that triples every output. */
static void look_for_triples(const struct op_mistake *table, struct diagnosis *diagnosis)
{
	const struct op op = gather_op(table);
	const struct rule rule = {0, 1e-5, 1};
	struct small s;

	make_small(&s);
	diagnose(&op, &(struct diagnosis_set){&s.c, s.in, &s.found, &rule}, 1, 10, diagnosis);
}

static void two_mistakes_are_told_and_three_are_not(void **state)
{
	struct diagnosis two = {.count = 0}, three = {.count = 0};

	(void)state;
	look_for_triples(two_rows, &two);
	assert_true(two.complete);
	assert_int_equal(two.count, 2);
	assert_string_equal(two.says[0], "a");
	assert_string_equal(two.says[1], "b");
	look_for_triples(three_rows, &three);
	assert_false(three.complete); /* three mistakes explain the outputs, so the diagnosis names none */
	assert_int_equal(three.count, 0);
}

static void a_narrower_mistake_is_told_alone(void **state)
{
	struct diagnosis narrow = {.count = 0}, wide = {.count = 0};

	(void)state;
	look_for_triples(narrower_rows, &narrow);
	assert_int_equal(narrow.count, 1);
	assert_string_equal(narrow.says[0], "a");
	narrow = (struct diagnosis){.count = 0};
	look_for_triples(second_narrower_rows, &narrow);
	assert_int_equal(narrow.count, 1);
	assert_string_equal(narrow.says[0], "a");
	look_for_triples(refuted_narrower_rows, &wide);
	assert_int_equal(wide.count, 1);
	assert_string_equal(wide.says[0], "b");
}

static int no_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	(void)c, (void)in, (void)out, (void)err;
	fail_msg("the oracle runs, though the mistake changes no element");
	return -1;
}

static void a_limit_that_changes_nothing_runs_no_oracle(void **state)
{
	const struct op op = {.name = "gather", .roles = gather_role_names, .bind = bind_gather, .oracle = no_oracle};
	const struct op_mistake limit = {.before = before_clamp, .role = "x", .by = 1000};
	double outputs[ELEMENTS] = {7};
	const struct tensor right = {outputs, DTYPE_FLOAT64, 1, {ELEMENTS}, ELEMENTS};
	struct small s;

	(void)state;
	make_small(&s);
	struct op_variation v = variation_open(&op, &s.c, s.in);

	assert_true(variation_run(&v, &limit, &right));
	assert_memory_equal(v.out[0].data, outputs, sizeof outputs);
	variation_close(&v);
}

/* Calls `limit` for a mistake in a Python scalar whose value is x. Returns true if `limit` marks the variation as
 * vague, because a narrower mistake would change x in the same way. */
static bool is_vague(bool (*limit)(struct op_variation *v, const struct op_mistake *mistake), double by, double x)
{
	const struct op op = gather_op(two_rows);
	const struct op_mistake mistake = {.before = limit, .role = "scale", .by = by};
	struct small s;
	struct tensor in[3];

	make_small(&s);
	add_input(&s.built, "scale", DTYPE_FLOAT32, NULL);
	s.c.scalar[2] = x;
	in[0] = s.in[0], in[1] = s.in[1], in[2] = (struct tensor){.rank = OP_SCALAR};
	struct op_variation v = variation_open(&op, &s.c, in);

	assert_true(limit(&v, &mistake));
	bool vague = v.vague;

	variation_close(&v);
	return vague;
}

static void a_limit_that_equals_rounding_is_vague(void **state)
{
	(void)state;
	assert_true(is_vague(before_least, 1, 0.75));
	assert_false(is_vague(before_least, 1, 0.25));
	assert_false(is_vague(before_least, 1, 1.5));
	assert_true(is_vague(before_most, 1, 1.75)); /* x = 1.75 becomes 1 if it is limited to 1, but also if its
						      * fraction is dropped */
	assert_false(is_vague(before_most, 1, 2.5));
}

/* Emulates a reference on two sets of inputs. For the scale 2, the reference is right. For the scale `small`, it uses
 * the scale 1 instead. Then diagnoses this reference. */
static void look_for_limit(double small, struct diagnosis *diagnosis)
{
	const struct op_mistake none[] = {{.says = NULL}};
	const struct op op = gather_op(none);
	const struct rule rule = {0, 1e-5, 1};
	const double scale[2] = {2, small}, used[2] = {2, 1};
	struct diagnosis_set sets[2];
	struct small s[2];
	struct tensor in[2][3];

	for (int k = 0; k < 2; k++) {
		make_small(&s[k]);
		add_input(&s[k].built, "scale", DTYPE_FLOAT32, NULL);
		s[k].c.scalar[2] = scale[k];
		for (int i = 0; i < ELEMENTS; i++)
			s[k].tripled[i] = (float)(used[k] * s[k].x[i]);
		in[k][0] = s[k].in[0], in[k][1] = s[k].in[1], in[k][2] = (struct tensor){.rank = OP_SCALAR};
		sets[k] = (struct diagnosis_set){&s[k].c, in[k], &s[k].found, &rule};
	}
	diagnose(&op, sets, 2, 10, diagnosis);
}

static void a_set_on_which_the_reference_is_right_names_no_mistake(void **state)
{
	struct diagnosis limit = {.count = 0}, vague = {.count = 0};

	(void)state;
	look_for_limit(0.25, &limit);
	assert_int_equal(limit.count, 1);
	assert_string_equal(limit.says[0], "input 'scale' was clamped to at least 1");
	look_for_limit(0.75, &vague); /* 0.75 becomes 1 if it is clamped, but also if it is rounded */
	assert_int_equal(vague.count, 0);
	assert_false(vague.complete);
}

/* tests/mutants/diagnoses.py states, for each family, the number of diagnoses that must be right. */
static void each_family_has_a_number_of_right_diagnoses(void **state)
{
	struct buf text = {0};
	struct arena arena = {0};

	(void)state;
	assert_int_equal(file_read(AT_FDCWD, "tests/mutants/diagnoses.py", 1 << 20, &text, NULL, NULL), FILE_OK);
	const char *figures = strstr(text.data, "\nFIGURES = {\n"), *end = figures == NULL ? NULL : strstr(figures, "\n}\n");

	assert_non_null(end);
	for (int i = 0; i < op_count; i++) {
		const char *row = strstr(figures, arena_printf(&arena, "\n    \"%s\": ", op_table[i].op->name));

		if (row == NULL || row > end)
			fail_msg("FIGURES in tests/mutants/diagnoses.py has no row for %s", op_table[i].op->name);
	}
	buf_free(&text);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_set_on_which_the_reference_is_right_names_no_mistake),
	    cmocka_unit_test(a_limit_that_equals_rounding_is_vague),
	    cmocka_unit_test(a_narrower_mistake_is_told_alone),
	    cmocka_unit_test(a_limit_that_changes_nothing_runs_no_oracle),
	    cmocka_unit_test(a_mistake_in_indices_never_leaves_a_tensor),
	    cmocka_unit_test(two_mistakes_are_told_and_three_are_not),
	    cmocka_unit_test(each_family_has_a_number_of_right_diagnoses),
	    cmocka_unit_test(each_row_recognises_its_own_mistake_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
