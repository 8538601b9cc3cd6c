#include "engine/cases.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dataset/axis_expressions.h"
#include "dataset/constraint.h"
#include "engine/case_sizes.h"
#include "engine/cases_internal.h"
#include "kernels/core/described_default.h"
#include "kernels/core/gradient_bounds.h"
#include "models/attested_dimensions.h"
#include "workers/judge/case_inputs.h"
#include "workers/pool/reference_environment.h"

struct case_options case_options_default(void)
{
	struct tolerance none = {-1, -1, -1};
	struct case_options options = {.size = {[SIZE_SMALL] = true, [SIZE_MEDIUM] = true}, .workloads = true, .tolerance = none};

	for (int i = 0; i < DTYPE_COUNT; i++)
		options.by_dtype[i] = options.dataset_by_dtype[i] = none;
	return options;
}

void case_options_only(struct case_options *options, const char *const only[2])
{
	const size_t length = strlen(only[0]), end = strlen(CASE_BACKWARD);

	options->only = only;
	for (int size = 0; size < SIZE_COUNT; size++)
		options->size[size] = true;
	options->sizes_given = true;
	options->edge = options->edge || strncmp(only[0], "edge:", 5) == 0;
	options->backward = options->backward || (length >= end && strcmp(only[0] + length - end, CASE_BACKWARD) == 0);
}

const struct op *maker_op(const struct maker *m)
{
	const struct op *op = m->out.op != NULL ? m->out.op->op : NULL;

	return m->asks == JOB_GRADIENTS ? m->gradient : op;
}

const struct blob *maker_blob(const struct maker *m, enum blob_use use, const char *path)
{
	for (int i = 0; i < m->blob_count; i++)
		if (m->blobs[i].use == use && strcmp(m->blobs[i].path, path) == 0)
			return &m->blobs[i];
	return NULL;
}

/* Returns whether the definition's code makes at least one of these inputs. */
static bool makes_any(const struct maker *m, const struct input_source *inputs)
{
	for (int i = 0; i < m->definition->input_count; i++)
		if (inputs[i].kind == SOURCE_CUSTOM)
			return true;
	return false;
}

bool maker_gives_axis(const struct maker *m, const struct input_source *inputs, int axis)
{
	return !makes_any(m, inputs) || m->definition->input_code.given[axis];
}

static const struct verdict *decided(struct maker *m, enum status status, enum reason reason, const char *message)
{
	struct verdict *verdict = arena_alloc(m->arena, sizeof *verdict);

	*verdict = (struct verdict){.status = status, .reason = reason, .message = message};
	return verdict;
}

static const struct verdict *decided_by_blob(struct maker *m, const struct blob *blob)
{
	if (blob->bad != NULL)
		return decided(m, STATUS_INVALID, REASON_NONE, blob->bad);
	return blob->missing != NULL ? decided(m, STATUS_SKIPPED, REASON_MISSING_BLOB, blob->missing) : NULL;
}

/* Returns the verdict (skipped or invalid) of a case that cannot run because a file is missing or unusable: a tensor
 * file of an input, or a file that the reference reads. Otherwise returns NULL. */
static const struct verdict *decided_by_blobs(struct maker *m, const struct input_source *inputs)
{
	const struct definition *d = m->definition;
	const struct verdict *verdict = NULL;

	for (int i = 0; i < d->read_count && verdict == NULL; i++)
		verdict = decided_by_blob(m, maker_blob(m, BLOB_READ, d->reads[i]));
	for (int i = 0; i < d->input_count && verdict == NULL; i++)
		if (inputs[i].kind == SOURCE_SAFETENSORS)
			verdict = decided_by_blob(m, maker_blob(m, BLOB_TENSORS, inputs[i].path));
	return verdict;
}

/* If no case of the definition can run, because the definition lacks something or contradicts itself, returns the
 * verdict of every case. Otherwise returns NULL. */
static const struct verdict *decided_by_definition(struct maker *m)
{
	const struct definition *d = m->definition;
	enum reason reason = d->reference_length == 0 ? REASON_NO_REFERENCE : REASON_UNKNOWN_DTYPE;

	if (m->contradiction != NULL)
		return decided(m, STATUS_FAILED, REASON_CONSTANTS, m->contradiction);
	return d->unverifiable != NULL ? decided(m, STATUS_SKIPPED, reason, d->unverifiable) : NULL;
}

/* Returns the verdict of a case whose inputs the definition's code must make, if this code has no function that can be
 * called. Otherwise returns NULL. */
static const struct verdict *decided_by_input_code(struct maker *m, const struct input_source *inputs)
{
	const struct input_code *code = &m->definition->input_code;

	if (!makes_any(m, inputs) || code->function != NULL)
		return NULL;
	return decided(m, STATUS_ERROR, REASON_INPUTS, arena_printf(m->arena, "%s: %s", code->place, code->missing));
}

/* If the definition has an op family, its code must not make a Python scalar: the bounds of the family depend on the
 * scalar, and they must be known before any code runs, because they are part of the case's subject. Returns the verdict
 * `skipped` for a case in which the code does so, and NULL for all other cases. */
static const struct verdict *decided_by_custom_scalar(struct maker *m, const struct input_source *inputs)
{
	for (int i = 0; m->out.op != NULL && i < m->problem.input_count; i++)
		if (inputs[i].kind == SOURCE_CUSTOM && m->problem.inputs[i].rank == OP_SCALAR)
			return decided(m, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
				       arena_printf(m->arena, "the bounds of this case are unknown, because %s "
				           "computes the Python scalar '%s'; give its value in the workload",
						    m->definition->input_code.function, m->problem.inputs[i].name));
	return NULL;
}

static bool is_wanted(const char *const *only, const char *id)
{
	const char *const *at = only;

	while (at != NULL && *at != NULL && strcmp(*at, id) != 0)
		at++;
	return at == NULL || *at != NULL;
}

static struct test_case *add_case(struct maker *m, const char *id)
{
	if (m->asks == JOB_GRADIENTS)
		id = arena_printf(m->arena, "%s" CASE_BACKWARD, id);
	if (!is_wanted(m->options->only, id))
		return NULL;
	if (m->out.count == m->room) {
		struct test_case *items = arena_array(m->arena, (size_t)m->room * 2 + 8, sizeof *items);

		if (m->out.count > 0)
			memcpy(items, m->out.items, (size_t)m->out.count * sizeof *items);
		m->out.items = items;
		m->room = m->room * 2 + 8;
	}
	struct test_case *c = &m->out.items[m->out.count++];

	c->id = id;
	return c;
}

/* Adds the texts of the constraints on tensor values to the job. Only the judge can check these constraints. If the
 * definition's code makes inputs, adds all constraints of the definition: the lengths of some axes may be unknown until
 * the code has made the inputs. */
static void data_constraints(struct maker *m, struct job *job)
{
	const struct definition *d = m->definition;
	const char **texts = arena_array(m->arena, (size_t)d->constraint_count, sizeof *texts);

	for (int i = 0; i < d->constraint_count; i++)
		if (job->input_code != NULL ||
		    constraint_evaluate(d, d->constraints[i], job->axis, NULL, NULL) == CONSTRAINT_UNKNOWN)
			texts[job->constraint_count++] = d->constraints[i];
	job->constraints = texts;
}

/* Returns a copy of the inputs in which each tensor file has its digest. The judge reads the files at the paths in the
 * copy. If a tensor file was extracted from git's index, this is the path of the extracted file. */
static const struct input_source *placed_inputs(struct maker *m, const struct input_source *inputs)
{
	struct input_source *placed = arena_array(m->arena, (size_t)m->definition->input_count, sizeof *placed);
	bool any = false;

	for (int i = 0; i < m->definition->input_count; i++) {
		const struct blob *blob = inputs[i].kind == SOURCE_SAFETENSORS ? maker_blob(m, BLOB_TENSORS, inputs[i].path) : NULL;

		placed[i] = inputs[i];
		if (blob == NULL)
			continue;
		placed[i].content = blob->content;
		if (blob->file != NULL)
			placed[i].path = blob->file;
		any = true;
	}
	return any ? placed : inputs;
}

/* Sets the members of the job that say what is verified (outputs or gradients), for which shapes, and with which
 * inputs. */
static void ask(struct maker *m, struct job *job, const struct input_source *inputs)
{
	int count = m->problem.input_count;

	job->asks = m->asks;
	job->problem = m->problem;
	job->inputs = placed_inputs(m, inputs);
	if (m->asks == JOB_OUTPUTS)
		return;
	bool *absent = arena_array(m->arena, (size_t)count, sizeof *absent);

	for (int i = 0; i < count; i++)
		absent[i] = inputs[i].kind == SOURCE_ABSENT;
	job->problem = gradient_problem(&m->problem, absent, m->in_float64, m->arena);
	struct input_source *all = arena_array(m->arena, (size_t)job->problem.input_count, sizeof *all);

	memcpy(all, job->inputs, (size_t)count * sizeof *all);
	job->inputs = all;
}

/* Converts the job to a struct op_case, which the functions of op families take. */
static struct op_case op_case_of(const struct maker *m, const struct job *job, enum op_contents states)
{
	struct op_case c = {.problem = &job->problem,
			    .variant = m->variant,
			    .axis = job->axis,
			    .edge = job->edge,
			    .given = case_inputs_given(job),
			    .absent = case_inputs_absent(job),
			    .constant_count = m->out.constant_count};

	op_case_set_contents(&c, job->seed, states);
	memcpy(c.constants, m->out.constants, sizeof c.constants);
	for (int i = 0; i < m->problem.input_count; i++)
		if (m->problem.inputs[i].rank == OP_SCALAR)
			case_inputs_set_scalar(job, maker_op(m), &c, i);
	return c;
}

static const struct rule *rules_on(const struct maker *m, const struct job *job, enum op_contents states)
{
	struct op_case c = op_case_of(m, job, states);

	return make_rules(m, &c);
}

/* Copies the name of the FlashInfer function from the definition to the job, and for each input the name of its
 * argument. */
static void name_arguments(const struct maker *m, struct job *job)
{
	const struct definition *d = m->definition;
	const char **arguments = arena_array(m->arena, (size_t)d->input_count, sizeof *arguments);

	if (d->fi_api == NULL || m->asks != JOB_OUTPUTS)
		return;
	for (int i = 0; i < d->input_count; i++)
		arguments[i] = d->inputs[i].param != NULL ? d->inputs[i].param : d->inputs[i].name;
	job->fi_api = d->fi_api;
	job->arguments = arguments;
}

/* Returns the limit that the workload line sets for the difference of a single element, or 0 if it sets none. If the
 * line sets the limit 0, returns the smallest number above 0, because 0 stands for no limit. */
static double error_cap_of(const struct maker *m)
{
	if (maker_op(m) != NULL || m->line == NULL || !m->line->tolerance.given || m->line->tolerance.error_cap < 0)
		return 0;
	return fmax(m->line->tolerance.error_cap, DBL_TRUE_MIN);
}

/* Builds one case, and adds it to the list unless --case excludes it. `edge` is the number of an edge case, counted
 * from 1; it is 0 for other cases. */
static void make_case(struct maker *m, const char *id, const int64_t *axis, const struct input_source *inputs, int edge)
{
	struct test_case *c = add_case(m, id);

	if (c == NULL)
		return;
	c->convention = edge > 0 ? m->out.op->op->edges[edge - 1].convention : NULL;
	c->beside = (edge > 0 || m->checks) && m->options->only == NULL;
	c->finer = m->in_float64;
	c->made_up = m->chosen_axes && m->out.op == NULL;
	c->decided = decided_by_definition(m);
	if (c->decided == NULL)
		c->decided = decided_by_blobs(m, inputs);
	if (c->decided == NULL)
		c->decided = decided_by_input_code(m, inputs);
	if (c->decided == NULL)
		c->decided = decided_by_custom_scalar(m, inputs);
	if (c->decided != NULL)
		return;
	struct job *job = arena_alloc(m->arena, sizeof *job);
	*job = (struct job){.id = c->id,
			    .op = m->out.op != NULL ? m->out.op->op->name : NULL,
			    .no_truth = m->out.no_truth,
			    .axis = axis,
			    .seed = m->options->seed,
			    .edge = edge,
			    .checks = m->checks,
			    .input_code = makes_any(m, inputs) ? &m->definition->input_code : NULL,
			    .chosen_axes = m->chosen_axes && makes_any(m, inputs),
			    .runs = m->asks == JOB_OUTPUTS ? m->runs : JOB_RUNS_ALL,
			    .no_diagnosis = m->options->no_diagnosis,
			    .save = m->options->save,
			    .error_cap = error_cap_of(m),
			    .bench = m->options->bench && m->asks == JOB_OUTPUTS,
			    .constant_count = m->out.constant_count,
			    .chain = m->asks == JOB_OUTPUTS ? m->definition->chain : NULL,
			    .root = m->root};
	ask(m, job, inputs);
	name_arguments(m, job);
	memcpy(job->constants, m->out.constants, sizeof job->constants);
	job->rules = rules_on(m, job, CONTENTS_FIRST);
	job->second_rules = rules_on(m, job, CONTENTS_SECOND);
	data_constraints(m, job);
	c->job = job;
	subject_fields(m, c);
}

static const char *axes_id(const struct maker *m, const char *kind, const int64_t *axis,
			   const struct input_source *inputs)
{
	char *id = arena_printf(m->arena, "%s:", kind);
	const char *comma = "";

	for (int i = 0; i < m->definition->axis_count; i++)
		if (m->definition->axes[i].var && maker_gives_axis(m, inputs, i)) {
			id = arena_printf(m->arena, "%s%s%s=%lld", id, comma, m->definition->axes[i].name, (long long)axis[i]);
			comma = ",";
		}
	return id;
}

bool input_may_be_omitted(const struct op *op, const struct op_case *c, int input)
{
	struct op_case without = *c;

	if (op == NULL || !c->problem->inputs[input].optional)
		return false;
	without.absent |= UINT64_C(1) << input;
	return c->problem->inputs[input].rank != OP_SCALAR || (op->scalar != NULL && !isnan(op->scalar(&without, input)));
}

/* For each optional input, adds a copy of the last small case without this input. The last small case is used, because
 * it has several rows or sequences. */
static void make_absent_cases(struct maker *m, const char *id, const int64_t *axis)
{
	const struct op *op = m->out.op != NULL ? m->out.op->op : NULL;
	const struct op_case c = {.problem = &m->problem, .variant = m->variant, .axis = axis, .seed = m->options->seed};

	for (int i = 0; i < m->problem.input_count; i++) {
		struct input_source *inputs = arena_array(m->arena, (size_t)m->problem.input_count, sizeof *inputs);

		inputs[i].kind = SOURCE_ABSENT;
		if (input_may_be_omitted(op, &c, i))
			make_case(m, arena_printf(m->arena, "%s:without=%s", id, m->problem.inputs[i].name), axis, inputs, 0);
	}
}

/* If the description of a Python scalar says that a special number selects the default, adds a case with this number.
 * Apart from this number, the case is a copy of the last small case. */
static void make_described_default_cases(struct maker *m, const char *id, const int64_t *axis)
{
	const struct op_case c = {.problem = &m->problem, .variant = m->variant, .axis = axis, .seed = m->options->seed};

	for (int i = 0; i < m->problem.input_count; i++) {
		struct input_source *inputs = arena_array(m->arena, (size_t)m->problem.input_count, sizeof *inputs);
		const struct op_arg *arg = &m->problem.inputs[i];
		double number;

		if (m->out.op == NULL || !described_default_known(m->out.op->op, &c, i, &number))
			continue;
		inputs[i] = (struct input_source){.kind = SOURCE_SCALAR,
		                                  .scalar_kind = dtype_is_float(arg->dtype) ? SCALAR_FLOAT : SCALAR_INT,
		                                  .number = number,
		                                  .integer = (int64_t)number};
		make_case(m, arena_printf(m->arena, "%s:%s=%g", id, arg->name, number), axis, inputs, 0);
	}
}

/* Returns the sources of the inputs of a case that reftest adds. With a family, the family makes all inputs. Without a
 * family, the inputs have the same sources as in the first workload line in which the definition's code makes inputs,
 * but tensor files are replaced by random values. If there is no such line, the definition's code makes all inputs. */
static struct input_source *sources_of_size(const struct maker *m)
{
	const struct definition *d = m->definition;
	struct input_source *inputs = arena_array(m->arena, (size_t)d->input_count, sizeof *inputs);
	const struct workload *first = NULL;

	if (m->out.op != NULL || d->input_code.kind == INPUT_CODE_NONE || m->without_init)
		return inputs;
	for (int i = 0; i < m->workloads->count && first == NULL; i++)
		if (m->workloads->lines[i].error == NULL && makes_any(m, m->workloads->lines[i].inputs))
			first = &m->workloads->lines[i];
	for (int i = 0; i < d->input_count; i++) {
		inputs[i].kind = SOURCE_CUSTOM;
		if (first != NULL && first->inputs[i].kind != SOURCE_CUSTOM)
			inputs[i] = first->inputs[i].kind == SOURCE_SAFETENSORS ? (struct input_source){0} : first->inputs[i];
	}
	return inputs;
}

static void make_size_cases(struct maker *m, enum op_size size)
{
	const struct definition *d = m->definition;
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int64_t *rows = arena_array(m->arena, SIZE_ROWS * width, sizeof *rows);
	int count = size_rows(m->out.op != NULL ? m->out.op->op : NULL, m->variant, &m->problem, d, size, rows);
	struct input_source *inputs = sources_of_size(m);

	if (count == 0 && size == SIZE_SMALL)
		m->out.no_sizes = why_no_sizes(m->definition, m->arena);
	m->chosen_axes = true;
	for (int i = 0; i < count; i++) {
		const int64_t *axis = rows + (size_t)i * width;

		const char *id = axes_id(m, size_name(size), axis, inputs);

		m->runs = size_runs(m->out.op != NULL ? m->out.op->op : NULL, size, i, count);
		if (m->runs != JOB_RUNS_ALL && makes_any(m, inputs))
			m->runs = JOB_RUNS_BOTH;
		make_case(m, id, axis, inputs, 0);
		if (size != SIZE_SMALL || i < count - 1)
			continue;
		make_absent_cases(m, id, axis);
		make_described_default_cases(m, id, axis);
	}
	m->chosen_axes = false;
	m->runs = JOB_RUNS_ALL;
}

/* Adds a copy of the smallest case in which all floating-point tensors are float64. In float64, gradients have much
 * tighter bounds (docs/gradients.md). */
static void make_float64_case(struct maker *m)
{
	const struct definition *d = m->definition;
	int64_t *rows = arena_array(m->arena, SIZE_ROWS * (size_t)(d->axis_count > 0 ? d->axis_count : 1), sizeof *rows);
	struct input_source *inputs = arena_array(m->arena, (size_t)d->input_count, sizeof *inputs);

	if (size_rows(m->out.op->op, m->variant, &m->problem, d, SIZE_SMALL, rows) < 1)
		return;
	m->in_float64 = true;
	make_case(m, axes_id(m, "float64", rows, inputs), rows, inputs, 0);
	m->in_float64 = false;
}

/* Returns whether the constraints allow the sizes of an edge case. If they do not, the edge case is left out, because
 * other sizes would not test the edge. */
static bool constraints_hold(const struct definition *d, const int64_t *axis)
{
	for (int i = 0; i < d->constraint_count; i++)
		if (constraint_evaluate(d, d->constraints[i], axis, NULL, NULL) == CONSTRAINT_BROKEN)
			return false;
	return true;
}

static void make_edge_cases(struct maker *m)
{
	const struct op *op = m->out.op != NULL ? m->out.op->op : NULL;
	size_t width = (size_t)(m->definition->axis_count > 0 ? m->definition->axis_count : 1);
	struct input_source *inputs = arena_array(m->arena, (size_t)m->definition->input_count, sizeof *inputs);

	for (int i = 0; op != NULL && op->edges != NULL && op->edges[i].name != NULL; i++) {
		int64_t *axis = arena_array(m->arena, width, sizeof *axis);

		if (op->edge_axes(&m->problem, m->variant, i + 1, axis) && axis_expressions_fit(m->definition, axis) &&
		    constraints_hold(m->definition, axis))
			make_case(m, arena_printf(m->arena, "edge:%s", op->edges[i].name), axis, inputs, i + 1);
	}
}

/* Sets `axis` to the axis values of a case with FEW_ROWS rows. `first` and `second` are the axis values of the first
 * two small cases. The axis that counts rows is the first axis that is 1 in `first` and above FEW_ROWS in `second`. The
 * other values are interpolated between `first` and `second`, and rounded up. Returns false if no axis counts rows. */
static bool few_rows(const int64_t *first, const int64_t *second, size_t width, int64_t *axis)
{
	enum { FEW_ROWS = 3 };
	int64_t most = 0;

	for (size_t i = 0; i < width && most == 0; i++)
		most = first[i] == 1 && second[i] > FEW_ROWS ? second[i] : 0;
	for (size_t i = 0; i < width && most > 0; i++) {
		int64_t more = (FEW_ROWS - 1) * (second[i] - first[i]);

		axis[i] = first[i] + (more + (more > 0 ? most - 2 : 0)) / (most - 1);
	}
	return most > 0;
}

/* Adds a case with a few rows, because kernels often have a path of their own for such cases. */
static void make_few_rows_case(struct maker *m)
{
	const struct definition *d = m->definition;
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int64_t *rows = arena_array(m->arena, SIZE_ROWS * width, sizeof *rows), *axis = arena_array(m->arena, width, sizeof *axis);
	struct input_source *inputs = arena_array(m->arena, (size_t)d->input_count, sizeof *inputs);
	int count = m->out.op == NULL ? 0 : size_rows(m->out.op->op, m->variant, &m->problem, d, SIZE_SMALL, rows);

	if (count >= 2 && few_rows(rows, rows + width, width, axis) && axis_expressions_fit(d, axis) && constraints_hold(d, axis))
		make_case(m, axes_id(m, "few", axis, inputs), axis, inputs, 0);
}

/* The limit for the size of the inputs of a medium case that has checks. */
enum { CHECKED_BYTES = 4 << 20 };

/* Returns true if the checks of a medium case are cheap enough, and its rows can be compared with the rows of the small
 * case. Returns false if an input contains integers: these may be the indices of rows, so that a row of the output
 * depends on other rows of the inputs. */
static bool can_be_held_to_rows(const struct definition *d, const int64_t *axis)
{
	int64_t bytes = 0;

	for (int i = 0; i < d->input_count; i++) {
		if (d->inputs[i].rank != RANK_SCALAR && !dtype_is_float(d->inputs[i].dtype))
			return false;
		int64_t one = definition_bytes(&d->inputs[i], axis);

		if (one < 0 || one > CHECKED_BYTES)
			return false;
		bytes += one;
	}
	return bytes <= CHECKED_BYTES;
}

/* Adds a copy of the last small case or of the first medium case. For this copy, reftest also makes checks that need
 * extra runs of the reference. If such a check fails, the copy gets a finding, but keeps the status that its ground
 * truth determined. */
static void make_checked_case(struct maker *m, enum op_size size)
{
	const struct definition *d = m->definition;
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int64_t *rows = arena_array(m->arena, SIZE_ROWS * width, sizeof *rows);
	struct input_source *inputs = arena_array(m->arena, (size_t)d->input_count, sizeof *inputs);
	int count = m->out.op == NULL ? 0 : size_rows(m->out.op->op, m->variant, &m->problem, d, size, rows);
	const int64_t *axis = rows + (size_t)(size == SIZE_SMALL && count > 0 ? count - 1 : 0) * width;

	if (count == 0 || (size == SIZE_MEDIUM && !can_be_held_to_rows(d, axis)))
		return;
	m->checks = true;
	make_case(m, axes_id(m, "checks", axis, inputs), axis, inputs, 0);
	m->checks = false;
}

static void make_workload_cases(struct maker *m, const struct workload_file *workloads)
{
	for (int i = 0; i < workloads->count; i++) {
		const struct workload *line = &workloads->lines[i];
		const char *id = line->uuid != NULL ? arena_printf(m->arena, "workload:%s", line->uuid)
		                                    : arena_printf(m->arena, "workload:line %d", line->line);

		if (line->error == NULL) {
			m->line = line;
			make_case(m, id, line->axis, line->inputs, 0);
			m->line = NULL;
			continue;
		}
		/* Report an invalid line once, not again for gradients. */
		struct test_case *c = m->asks == JOB_OUTPUTS ? add_case(m, id) : NULL;

		if (c != NULL)
			c->decided = decided(m, STATUS_INVALID, REASON_NONE, line->error);
	}
}

/* Returns why the op_type does not determine the family, for example "the definition has no op_type". */
static const char *undecided_by_op_type(struct maker *m)
{
	const char *op_type = m->definition->op_type;

	if (*op_type == '\0')
		return "the definition has no op_type";
	for (int i = 0; i < m->kernels->op_count; i++)
		for (const char *const *known = m->kernels->ops[i].op->op_types; *known != NULL; known++)
			if (strcmp(*known, op_type) == 0)
				return arena_printf(m->arena, "the shapes do not fit the op_type '%s'", op_type);
	return arena_printf(m->arena, "op_type '%s' is unknown", op_type);
}

static void use_candidate(struct maker *m, const struct op_candidate *candidate)
{
	const struct op *op = candidate->entry->op;

	m->out.op = candidate->entry;
	m->out.matched = candidate->matched;
	m->variant = candidate->variant;
	m->problem.op_type = arena_string(m->arena, candidate->op_type);
	if (candidate->matched == MATCHED_BY_WORDS)
		m->out.how_matched = arena_printf(m->arena, "matched op family %s, because the words and the shapes of "
		    "the definition fit; %s",
		                                  op->name, undecided_by_op_type(m));
	else if (candidate->matched == MATCHED_BY_SHAPES)
		m->out.how_matched = arena_printf(m->arena, "matched op family %s, because the shapes fit and the reference agrees "
							    "with the family's ground truth; %s", op->name,
		                                  undecided_by_op_type(m));
	if (op->constants != NULL)
		m->out.constant_count = op->constants(&m->problem, m->variant, m->out.constants);
}

/* Returns a message which says that the reference disagrees with the ground truths of all candidate families. */
static const char *computes_something_else(struct maker *m, const struct op_candidate *list, int count, const char *why)
{
	const char *names = "";

	for (int i = 0; i < count; i++)
		if (i == 0 || list[i].entry != list[i - 1].entry)
			names = arena_printf(m->arena, "%s%s%s", names, i > 0 ? ", " : "", list[i].entry->op->name);
	return arena_printf(m->arena,
	                    "%s; the shapes of the definition also fit %s, but the reference computes something else",
	                    why, names);
}

/* Sets the family to candidate number `attempt`. If there is no such candidate, sets no family, and stores the reason
 * in no_truth. */
static void find_family(struct maker *m, int attempt)
{
	struct op_candidate list[CANDIDATES_MAX];
	struct err why = {""};

	if (m->definition->unverifiable != NULL)
		err_set(&why, "%s", m->definition->unverifiable);
	else
		m->out.candidate_count = m->kernels->candidates(&m->problem, list, &why);
	m->variant = -1;
	if (attempt < m->out.candidate_count)
		use_candidate(m, &list[attempt]);
	else if (m->out.candidate_count > 0)
		m->out.no_truth = computes_something_else(m, list, m->out.candidate_count, why.text);
	else
		m->out.no_truth = arena_string(m->arena, why.text);
}

static void make_all(struct maker *m, const struct workload_file *workloads)
{
	for (int size = 0; size < SIZE_COUNT; size++)
		if (m->options->size[size])
			make_size_cases(m, (enum op_size)size);
	if (m->options->edge && m->asks == JOB_OUTPUTS) {
		make_edge_cases(m);
		make_few_rows_case(m);
		make_checked_case(m, SIZE_SMALL);
	}
	if (m->options->edge && m->asks == JOB_OUTPUTS && m->options->size[SIZE_MEDIUM])
		make_checked_case(m, SIZE_MEDIUM); /* learn_rows compares the rows of this case and of the small case */
	if (m->options->workloads)
		make_workload_cases(m, workloads);
}

/* Sets m->gradient to the op that verifies gradients, and returns NULL. If there is none, returns the reason why. */
static const char *find_gradient(struct maker *m)
{
	const struct op *gradient = m->out.op != NULL ? m->out.op->op->gradient : NULL;
	struct err why = {""};

	if (m->out.op == NULL)
		return "no op family supports this definition, so there are no expected gradients: only its outputs are "
		       "verified";
	if (gradient == NULL)
		err_set(&why, "there is no ground truth of gradients for op family '%s'", m->out.op->op->name);
	else if (gradient->match == NULL || gradient->match(&m->problem, &why) >= 0)
		m->gradient = gradient;
	return m->gradient != NULL ? NULL : arena_printf(m->arena, "%s: only its outputs are verified", why.text);
}

struct cases cases_make(const struct kernels_api *kernels, const struct definition *definition,
                        const struct workload_file *workloads, const struct blob *blobs, int blob_count,
                        const char *root, const struct case_options *options, int attempt,
                        struct architectures *architectures, struct arena *arena)
{
	struct maker m = {.kernels = kernels, .definition = definition, .problem = problem_of(definition, arena),
	                  .blobs = blobs, .blob_count = blob_count, .root = root, .options = options, .arena = arena, .workloads = workloads};

	m.environment = environment_that_counts(arena);
	m.contradiction = attest_definition(definition, architectures, arena);
	find_family(&m, attempt);
	m.without_init = attempt > m.out.candidate_count && definition->input_code.kind == INPUT_CODE_INIT;
	definition_fields(definition, arena, &m.shared);
	described_default_fields(&m, &m.shared);
	make_all(&m, workloads);
	if (m.contradiction != NULL) {
		m.out.count = m.out.count > 0 ? 1 : 0; /* one case is enough to report the contradiction */
		return m.out;
	}
	if (options->backward)
		m.out.no_gradients = find_gradient(&m);
	if (m.gradient == NULL)
		return m.out;
	m.asks = JOB_GRADIENTS;
	make_all(&m, workloads);
	make_float64_case(&m);
	return m.out;
}
