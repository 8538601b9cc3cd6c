#include "testgen/test_class.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "dataset/axis_expressions.h"
#include "dataset/definition_parse.h"
#include "engine/case_sizes.h"
#include "engine/cases.h"
#include "kernels/core/described_default.h"
#include "kernels/core/roles.h"
#include "workers/judge/case_inputs.h"
#include "workers/protocol/job.h"

static const char *const size_labels[SIZE_COUNT] = {
    [SIZE_SMALL] = "small", [SIZE_MEDIUM] = "medium", [SIZE_LARGE] = "large"};

static void add_sizes(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		      struct arena *arena)
{
	size_t width = (size_t)(problem->axis_count > 0 ? problem->axis_count : 1);
	struct test_size *sizes = arena_array(arena, (size_t)SIZE_COUNT * SIZE_ROWS, sizeof *sizes);

	for (int size = 0; size < SIZE_COUNT; size++) {
		int64_t *rows = arena_array(arena, SIZE_ROWS * width, sizeof *rows);
		int count = size_rows(op, variant, problem, c->definition, (enum op_size)size, rows);

		for (int i = 0; i < count; i++)
			sizes[c->size_count++] = 
			    (struct test_size){size_labels[size], rows + (size_t)i * width,
					       size_runs(op, (enum op_size)size, i, count)};
	}
	c->sizes = sizes;
}

/* Returns the axis values of the last size with the label "small", or NULL if there is none. add_repeats adds cases of
 * this size. */
static const int64_t *last_small(const struct test_class *c)
{
	const int64_t *axis = NULL;

	for (int i = 0; i < c->size_count && c->sizes[i].label == size_labels[SIZE_SMALL]; i++)
		axis = c->sizes[i].axis;
	return axis;
}

/* Adds more cases of the last small size. Each case either omits one optional input, or sets one Python scalar to the
 * number (0 or -1) that means "use the default" according to the scalar's description. */
static void add_repeats(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
			struct arena *arena)
{
	const struct op_case op_case = {.problem = problem, .variant = variant, .axis = last_small(c)};
	const char **omitted = arena_array(arena, (size_t)problem->input_count + 1, sizeof *omitted);
	struct test_number *numbers = arena_array(arena, (size_t)problem->input_count + 1, sizeof *numbers);

	for (int i = 0; i < problem->input_count && op_case.axis != NULL; i++) {
		const struct op_arg *arg = &problem->inputs[i];
		double number;

		if (input_may_be_omitted(op, &op_case, i))
			omitted[c->omitted_count++] = arg->name;
		if (described_default_known(op, &op_case, i, &number))
			numbers[c->number_count++] = (struct test_number){arg->name, arg->dtype, number};
	}
	c->omitted = omitted;
	c->numbers = numbers;
}

static const struct test_role *roles_of(const char *const *roles, const struct op_arg *args, int count, int *found,
					struct arena *arena)
{
	struct test_role *all = arena_array(arena, (size_t)count + 1, sizeof *all);

	for (int i = 0; i < count; i++)
		if (roles[i] != NULL)
			all[(*found)++] = (struct test_role){roles[i], args[i].name};
	return all;
}

static void add_roles(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		      struct arena *arena)
{
	struct op_names names = op_names_of(op, problem, variant);
	const char **modes = arena_array(arena, OP_MODES, sizeof *modes);

	c->roles = roles_of(names.inputs, problem->inputs, problem->input_count, &c->role_count, arena);
	c->output_roles =
	    roles_of(names.outputs, problem->outputs, problem->output_count, &c->output_role_count, arena);
	memcpy(modes, names.modes, (size_t)names.mode_count * sizeof *modes);
	c->modes = modes;
	c->mode_count = names.mode_count;
}

static void add_edges(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		      struct arena *arena)
{
	size_t width = (size_t)problem->axis_count + 1;
	struct test_size *edges = arena_array(arena, OP_EDGES, sizeof *edges);

	for (int i = 0; op->edges != NULL && op->edges[i].name != NULL; i++) {
		int64_t *axis = arena_array(arena, width, sizeof *axis);

		if (op->edge_axes(problem, variant, i + 1, axis) && axis_expressions_fit(c->definition, axis))
			edges[c->edge_count++] = (struct test_size){op->edges[i].name, axis, JOB_RUNS_ALL};
	}
	c->edges = edges;
}

static void add_probe(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		      struct arena *arena)
{
	bool unattested = false;
	int64_t *axis = arena_array(arena, (size_t)problem->axis_count + 1, sizeof *axis);

	for (int i = 0; i < c->constant_count; i++)
		unattested |= isnan(c->constants[i].value);
	if (!unattested || op->probe == NULL)
		return;
	op->probe_axes(problem, variant, axis);
	c->probe = axis;
}

static void add_constants(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
			  struct arena *arena)
{
	struct op_constant *found = arena_array(arena, OP_CONSTANTS, sizeof *found);
	int count = op->constants != NULL ? op->constants(problem, variant, found) : 0;
	struct test_constant *constants = arena_array(arena, OP_CONSTANTS, sizeof *constants);

	for (int i = 0; i < count; i++)
		constants[i] = (struct test_constant){found[i].name, found[i].source, found[i].value};
	c->constants = constants;
	c->constant_count = count;
}

/* Builds the case of a size in the same way as `reftest verify`. */
static struct op_case case_of(const struct test_class *c, const struct op *op, int variant,
			      const struct op_problem *problem, const int64_t *axis, struct arena *arena)
{
	struct op_case op_case = {
	    .problem = problem, .variant = variant, .axis = axis, .constant_count = c->constant_count};
	struct input_source *inputs = arena_array(arena, (size_t)problem->input_count + 1, sizeof *inputs);
	const struct job job = {.problem = *problem, .inputs = inputs};

	if (op->constants != NULL)
		op->constants(problem, variant, op_case.constants);
	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == OP_SCALAR)
			case_inputs_set_scalar(&job, op, &op_case, i);
	return op_case;
}

/* Adds the values of Python scalars and the tolerance rules that `reftest verify` uses at each size. Also sets
 * `samples`. */
static void add_rules(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		      const struct tolerance *dataset, struct arena *arena)
{
	size_t width = (size_t)problem->output_count;
	struct tolerance *rules = arena_array(arena, (size_t)c->size_count * width + 1, sizeof *rules);
	size_t inputs = (size_t)problem->input_count;
	double *scalars = arena_array(arena, (size_t)c->size_count * inputs + 1, sizeof *scalars);

	for (int i = 0; i < c->size_count; i++) {
		struct op_case op_case = case_of(c, op, variant, problem, c->sizes[i].axis, arena);

		for (int output = 0; output < problem->output_count; output++) {
			struct rule rule = definition_rule(c->definition, output, dataset, op->rule(&op_case, output));

			rules[(size_t)i * width + (size_t)output] =
			    (struct tolerance){rule.atol, rule.rtol, rule.hit_ratio};
		}
		memcpy(scalars + (size_t)i * inputs, op_case.scalar, inputs * sizeof *scalars);
		c->samples |= op->samples != NULL && op->samples(&op_case);
	}
	c->rules = rules;
	c->scalars = scalars;
}

/* Sets `judged`: for each output, whether op.judge judges it without a tolerance rule. This does not depend on the
 * size. */
static void add_judged(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		       struct arena *arena)
{
	struct op_case op_case = {.problem = problem, .variant = variant};
	bool *judged = arena_array(arena, (size_t)problem->output_count + 1, sizeof *judged);

	for (int i = 0; i < problem->output_count; i++)
		judged[i] = op->judges != NULL && op->judges(&op_case, i);
	c->judged = judged;
}

/* Adds the list of inputs that the operation may write to. The list does not depend on the size. */
static void add_left(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		     struct arena *arena)
{
	struct op_case op_case = {.problem = problem, .variant = variant};
	struct test_left *left = arena_array(arena, (size_t)problem->input_count + 1, sizeof *left);
	int64_t *axis = arena_array(arena, (size_t)problem->axis_count + 1, sizeof *axis);

	if (op->in_place == NULL)
		return;
	for (int i = 0; i < problem->axis_count; i++)
		axis[i] = problem->axes[i].value;
	op_case.axis = axis;
	for (int i = 0; i < problem->input_count; i++) {
		struct op_in_place in_place =
		    problem->inputs[i].rank != OP_SCALAR ? op->in_place(&op_case, i) : (struct op_in_place){OP_KEPT, true};
		bool own = in_place.place == op_own_place(problem, i);

		if (own || (in_place.place >= 0 && in_place.place < problem->output_count))
			left[c->left_count++] = (struct test_left){
			    problem->inputs[i].name, own ? NULL : problem->outputs[in_place.place].name, in_place.may_keep};
	}
	c->left = left;
}

void test_class_fill(struct test_class *c, const struct kernels_api *api, const struct tolerance *dataset,
		     struct arena *arena)
{
	struct op_problem *problem = arena_alloc(arena, sizeof *problem);
	const struct op_entry *entry;
	int variant = -1;

	*problem = problem_of(c->definition, arena);
	entry = api->find(problem, &variant, NULL);
	if (entry != NULL) {
		c->family = entry->op->name;
		add_roles(c, entry->op, variant, problem, arena);
		add_constants(c, entry->op, variant, problem, arena);
		add_edges(c, entry->op, variant, problem, arena);
		add_probe(c, entry->op, variant, problem, arena);
	}
	add_sizes(c, entry != NULL ? entry->op : NULL, variant, problem, arena);
	if (entry != NULL) {
		add_repeats(c, entry->op, variant, problem, arena);
		add_rules(c, entry->op, variant, problem, dataset, arena);
		add_judged(c, entry->op, variant, problem, arena);
		add_left(c, entry->op, variant, problem, arena);
	}
}

const struct definition *test_class_definition(int fd, const struct dataset_file *file, struct arena *arena,
					       struct err *err)
{
	const struct definition *definition = NULL;
	struct buf bytes = {0};
	enum file_answer answer = file_read(fd, file->path, DEFINITION_BYTES, &bytes, NULL, err);

	if (answer == FILE_OK)
		definition = definition_parse(file->path, file->op_type, file->name, bytes.length > 0 ? bytes.data : "",
					     bytes.length, arena, err);
	else if (answer == FILE_ABSENT)
		err_set(err, "%s: the file disappeared; run reftest again", file->path);
	buf_free(&bytes);
	return definition;
}
