#include "commands/test_class.h"

#include <string.h>

#include "base/file.h"
#include "commands/cases.h"
#include "workers/given.h"
#include "workers/job.h"

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
			sizes[c->size_count++] = (struct test_size){size_labels[size], rows + (size_t)i * width};
	}
	c->sizes = sizes;
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

/* The case of a size, as verify makes it. */
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
			op_case.scalar[i] = given_scalar(&job, op, &op_case, i).number;
	return op_case;
}

/* What verify gives to Python scalars and holds each output to at each size, and whether the operation draws from torch's generators. */
static void add_rules(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		      struct arena *arena)
{
	size_t width = (size_t)problem->output_count;
	struct tolerance *rules = arena_array(arena, (size_t)c->size_count * width + 1, sizeof *rules);
	size_t inputs = (size_t)problem->input_count;
	double *scalars = arena_array(arena, (size_t)c->size_count * inputs + 1, sizeof *scalars);

	for (int i = 0; i < c->size_count; i++) {
		struct op_case op_case = case_of(c, op, variant, problem, c->sizes[i].axis, arena);

		for (int output = 0; output < problem->output_count; output++) {
			struct rule rule = definition_rule(c->definition, output, op->rule(&op_case, output));

			rules[(size_t)i * width + (size_t)output] =
			    (struct tolerance){rule.atol, rule.rtol, rule.hit_ratio};
		}
		memcpy(scalars + (size_t)i * inputs, op_case.scalar, inputs * sizeof *scalars);
		c->samples |= op->samples != NULL && op->samples(&op_case);
	}
	c->rules = rules;
	c->scalars = scalars;
}

/* Which inputs an operation writes to is no matter of how large they are. */
static void add_left(struct test_class *c, const struct op *op, int variant, const struct op_problem *problem,
		     struct arena *arena)
{
	struct op_case op_case = {.problem = problem, .variant = variant};
	struct test_left *left = arena_array(arena, (size_t)problem->input_count + 1, sizeof *left);
	int64_t *axis = arena_array(arena, (size_t)problem->axis_count + 1, sizeof *axis);

	if (op->leaves == NULL)
		return;
	for (int i = 0; i < problem->axis_count; i++)
		axis[i] = problem->axes[i].value;
	op_case.axis = axis;
	for (int i = 0; i < problem->input_count; i++) {
		struct op_leaves leaves =
		    problem->inputs[i].rank != OP_SCALAR ? op->leaves(&op_case, i) : (struct op_leaves){OP_KEPT, true};
		bool own = leaves.place == op_own_place(problem, i);

		if (own || (leaves.place >= 0 && leaves.place < problem->output_count))
			left[c->left_count++] = (struct test_left){
			    problem->inputs[i].name, own ? NULL : problem->outputs[leaves.place].name, leaves.may_keep};
	}
	c->left = left;
}

void test_class_fill(struct test_class *c, const struct kernels_face *face, struct arena *arena)
{
	struct op_problem *problem = arena_alloc(arena, sizeof *problem);
	const struct op_entry *entry;
	int variant = -1;

	*problem = problem_of(c->definition, arena);
	entry = face->find(problem, &variant, NULL);
	if (entry != NULL) {
		c->family = entry->op->name;
		c->variant = variant;
		add_constants(c, entry->op, variant, problem, arena);
	}
	add_sizes(c, entry != NULL ? entry->op : NULL, variant, problem, arena);
	if (entry != NULL) {
		add_rules(c, entry->op, variant, problem, arena);
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
		definition = definition_load(file->path, file->op_type, file->name, bytes.length > 0 ? bytes.data : "",
					     bytes.length, arena, err);
	else if (answer == FILE_ABSENT)
		err_set(err, "%s: the file has gone", file->path);
	buf_free(&bytes);
	return definition;
}
