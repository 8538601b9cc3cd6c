#include "engine/coverage.h"

#include <string.h>

#include "workers/judge/case_inputs.h"

static int axes_of(const struct op *op)
{
	int count = 0;

	while (op->coverage != NULL && op->coverage[count].name != NULL)
		count++;
	return count;
}

static int family_of(const struct coverage *coverage, const struct op *op)
{
	for (int i = 0; i < coverage->family_count; i++)
		if (op != NULL && strcmp(coverage->families[i].op->name, op->name) == 0)
			return i;
	return -1;
}

/* Returns whether the family computes the ground truth of the outputs of this case. */
static bool counts(const struct test_case *test)
{
	return test->job != NULL && test->job->op != NULL && test->job->asks == JOB_OUTPUTS;
}

/* Finds the checklist values that the case covers with the first or the second set of input values, as `contents` says.
 * `values` has one element for each axis of the checklist; if the case covers value i of the axis, sets bit i of this
 * element. */
static void add_values(const struct op *op, const struct job *job, int variant, enum op_contents contents,
		       unsigned *values)
{
	struct op_case c = {.problem = &job->problem,
			    .variant = variant,
			    .axis = job->axis,
			    .edge = job->edge,
			    .given = case_inputs_given(job),
			    .absent = case_inputs_absent(job),
			    .constant_count = job->constant_count};

	memcpy(c.constants, job->constants, sizeof c.constants);
	op_case_set_contents(&c, job->seed, contents);
	for (int i = 0; i < job->problem.input_count; i++)
		if (job->problem.inputs[i].rank == OP_SCALAR)
			case_inputs_set_scalar(job, op, &c, i);
	const struct coverage_view view = coverage_view_of(op, &c);

	for (int i = 0; op->coverage != NULL && op->coverage[i].name != NULL; i++) {
		int value = coverage_of(&view, &op->coverage[i]);

		if (value >= 0)
			values[i] |= 1u << value;
	}
}

static void count_case(const struct test_case *test, struct covered_family *family, unsigned *of_definition)
{
	unsigned values[COVERAGE_AXES] = {0};
	int variant = family->op->match(&test->job->problem, NULL);

	if (variant < 0)
		return;
	for (int contents = 0; contents < CONTENTS_COUNT; contents++)
		if (job_runs_on(test->job->runs, (enum op_contents)contents))
			add_values(family->op, test->job, variant, (enum op_contents)contents, values);
	for (int i = 0; i < family->axis_count; i++) {
		for (int k = 0; k < COVERAGE_VALUES; k++) {
			family->counts[i][k].cases += (int)(values[i] >> k & 1);
			family->counts[i][k].definitions += (int)((values[i] & ~of_definition[i]) >> k & 1);
		}
		of_definition[i] |= values[i];
	}
}

static void count_definition(struct coverage *coverage, struct covered_family *families, struct covered_definition *d,
			     struct arena *arena)
{
	const struct result *result = d->result;
	const struct op_entry *entry = result->made != NULL ? result->made->op : NULL;

	d->family = family_of(coverage, entry != NULL ? entry->op : NULL);
	if (d->family < 0)
		return;
	struct covered_family *family = &families[d->family];
	unsigned *values = arena_array(arena, (size_t)family->axis_count + 1, sizeof *values);

	for (int i = 0; i < result->case_count; i++) {
		if (!counts(result->cases[i].test))
			continue;
		count_case(result->cases[i].test, family, values);
		d->cases++;
	}
	d->values = values;
	family->definitions++;
	family->cases += d->cases;
}

static void find_holes(struct coverage *coverage, struct arena *arena)
{
	struct coverage_hole *holes =
	    arena_array(arena, (size_t)coverage->family_count * COVERAGE_AXES * COVERAGE_VALUES + 1, sizeof *holes);

	for (int f = 0; f < coverage->family_count; f++) {
		const struct covered_family *family = &coverage->families[f];

		for (int i = 0; family->definitions > 0 && i < family->axis_count; i++)
			for (int k = 0; k < COVERAGE_VALUES && family->op->coverage[i].values[k].name != NULL; k++)
				if (family->counts[i][k].definitions == 0 && family->op->coverage[i].values[k].says != NULL)
					holes[coverage->hole_count++] = (struct coverage_hole){f, i, k};
	}
	coverage->holes = holes;
}

void coverage_hole_says(const struct coverage *coverage, const struct coverage_hole *hole, struct buf *out)
{
	const struct op *op = coverage->families[hole->family].op;

	buf_printf(out, "no %sdefinition of %s %s", coverage->selected ? "selected " : "", op->name,
		   op->coverage[hole->axis].values[hole->value].says);
}

struct coverage coverage_of_run(const struct run *run, struct arena *arena)
{
	const struct kernels_api *api = run->program->kernels.api;
	struct covered_family *families = arena_array(arena, (size_t)api->op_count + 1, sizeof *families);
	struct covered_definition *definitions = arena_array(arena, (size_t)run->count + 1, sizeof *definitions);
	struct coverage coverage = {.families = families, .family_count = api->op_count, .definitions = definitions};

	for (int f = 0; f < api->op_count; f++) {
		families[f].op = api->ops[f].op;
		families[f].axis_count = axes_of(api->ops[f].op);
		families[f].counts = arena_array(arena, (size_t)families[f].axis_count + 1, sizeof *families[f].counts);
	}
	for (int i = 0; i < run->count; i++) {
		definitions[i].result = run->results[i];
		count_definition(&coverage, families, &definitions[i], arena);
	}
	coverage.definition_count = run->count;
	coverage.selected = run->selected_count < run->dataset.definition_count;
	find_holes(&coverage, arena);
	return coverage;
}
