#include "engine/cases.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cache/python_normal_form.h"
#include "dataset/axis_expressions.h"
#include "dataset/constrained_axes.h"
#include "dataset/constraint.h"
#include "kernels/core/described_default.h"
#include "kernels/core/described_effects.h"
#include "kernels/core/gradient_bounds.h"
#include "kernels/core/tolerance.h"
#include "models/attested_dimensions.h"
#include "workers/judge/case_inputs.h"
#include "workers/judge/described_inputs.h"
#include "workers/pool/environment.h"
#include "workers/protocol/chain_plan.h"

/* The length of an axis that no family, constraint or expression determines; the largest is tried last, for expressions
 * that have no value for smaller ones. */
enum { GENERIC_AXIS = 4, GENERIC_LARGEST = 4096 };

static const char *const size_names[SIZE_COUNT] = {[SIZE_SMALL] = "small", [SIZE_MEDIUM] = "medium", [SIZE_LARGE] = "large"};

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

/* State of cases_make while it builds the cases of one definition. */
struct maker {
	const struct kernels_api *kernels;
	const struct definition *definition;
	struct op_problem problem;
	const struct blob *blobs;
	int blob_count, variant, room;
	const char *root, *environment; /* environment: what environment_that_counts returns */
	const struct case_options *options;
	enum job_asks asks; /* selects what the next cases verify: outputs or gradients */
	bool in_float64;
	const char *contradiction; /* what contradicts the definition's axes (models/attested_dimensions.h); NULL: nothing */
	const struct workload_file *workloads;
	const struct workload *line; /* the workload line of the next case; NULL: none */
	bool chosen_axes; /* reftest chose the axis values of the next cases (job.chosen_axes) */
	bool two_runs; /* the next cases omit the third run (job.two_runs) */
	bool checks; /* the next case has checks beside its ground truth (job.checks) */
	const struct op *gradient; /* NULL: there is no ground truth of gradients for this definition */
	struct arena *arena;
	struct fields shared; /* the fingerprint fields that all cases of the definition share */
	struct cases out;
	bool without_init; /* the definition's `init` failed, so generic inputs take the place of those that it makes */
};

/* Returns the op that generates the inputs of the cases and checks the cases' results: the family's op, or its gradient
 * op. Returns NULL if there is none. */
static const struct op *op_of(const struct maker *m)
{
	const struct op *op = m->out.op != NULL ? m->out.op->op : NULL;

	return m->asks == JOB_GRADIENTS ? m->gradient : op;
}

static void override_rule(struct rule *rule, const struct tolerance *by)
{
	if (by->atol >= 0)
		rule->atol = by->atol;
	if (by->rtol >= 0)
		rule->rtol = by->rtol;
	if (by->hit_ratio >= 0)
		rule->hit_ratio = by->hit_ratio;
}

struct rule definition_rule(const struct definition *d, int output, const struct tolerance *dataset, struct rule rule)
{
	if (dataset != NULL)
		override_rule(&rule, &dataset[d->outputs[output].dtype]);
	override_rule(&rule, &d->tolerance);
	override_rule(&rule, &d->output_tolerance[output]);
	return rule;
}

bool cases_have_dataset_bound(const struct case_options *options, const struct definition *d)
{
	const struct rule none = {.atol = -1, .rtol = -1, .hit_ratio = -1};

	for (int i = 0; options->dataset_bounds && i < d->output_count; i++) {
		const struct tolerance *own = &d->output_tolerance[i], *by_dtype = &options->by_dtype[d->outputs[i].dtype];
		struct rule rule = definition_rule(d, i, options->dataset_by_dtype, none), others = none;

		override_rule(&others, &d->tolerance);
		override_rule(&others, own);
		override_rule(&others, by_dtype);
		override_rule(&others, &options->tolerance);
		if ((rule.atol >= 0 && others.atol < 0) || (rule.rtol >= 0 && others.rtol < 0) ||
		    (rule.hit_ratio >= 0 && others.hit_ratio < 0))
			return true;
	}
	return false;
}

/* Returns the tolerance rules of a case. Without a family, each output has the default rule of its dtype, or the
 * tolerance of the workload line; a line never changes the bounds of a family. The dataset's settings, then the
 * definition's tolerances override these rules, and the options of the command line override all. A definition's
 * tolerances apply to its outputs and not to gradients. */
static const struct rule *make_rules(const struct maker *m, const struct op_case *c)
{
	const struct definition *d = m->definition;
	const struct op_problem *problem = c->problem;
	struct rule *rules = arena_array(m->arena, (size_t)problem->output_count, sizeof *rules);

	struct err why = {""};
	const struct chain_plan *chain = op_of(m) == NULL && d->chain != NULL && m->asks == JOB_OUTPUTS
					     ? chain_plan_make(m->kernels, d->chain, problem, m->arena, &why)
					     : NULL;

	for (int i = 0; i < problem->output_count; i++) {
		rules[i] = op_of(m) != NULL ? op_of(m)->rule(c, i)
			   : chain != NULL  ? chain_plan_rule(chain, c, i)
					    : rule_default(problem->outputs[i].dtype);
		if (op_of(m) == NULL && m->line != NULL && m->line->tolerance.given)
			override_rule(&rules[i], &m->line->tolerance.bounds);
		if (m->asks == JOB_OUTPUTS)
			rules[i] = definition_rule(d, i, m->options->dataset_by_dtype, rules[i]);
		override_rule(&rules[i], &m->options->by_dtype[problem->outputs[i].dtype]);
		override_rule(&rules[i], &m->options->tolerance);
	}
	return rules;
}

/* Finds a blob by its path. */
static const struct blob *find_blob(const struct maker *m, enum blob_use use, const char *path)
{
	for (int i = 0; i < m->blob_count; i++)
		if (m->blobs[i].use == use && strcmp(m->blobs[i].path, path) == 0)
			return &m->blobs[i];
	return NULL;
}

static bool any_custom(const struct maker *m, const struct input_source *inputs)
{
	for (int i = 0; i < m->definition->input_count; i++)
		if (inputs[i].kind == SOURCE_CUSTOM)
			return true;
	return false;
}

/* Does the case give this axis its value? Otherwise the inputs that the definition's code makes do. */
static bool is_given(const struct maker *m, const struct input_source *inputs, int axis)
{
	return !any_custom(m, inputs) || m->definition->input_code.given[axis];
}

static void input_field(struct maker *m, struct fields *fields, const char *name, const struct input_source *source)
{
	const char *tag = arena_printf(m->arena, "case.inputs.%s", name);
	char hex[DIGEST_HEX];

	switch (source->kind) {
	case SOURCE_RANDOM:
		field_text(fields, m->arena, tag, "random");
		return;
	case SOURCE_ABSENT:
		field_text(fields, m->arena, tag, "absent");
		return;
	case SOURCE_CUSTOM:
		field_text(fields, m->arena, tag, "custom");
		return;
	case SOURCE_SCALAR:
		field_printf(fields, m->arena, tag, "scalar %d %.17g", (int)source->scalar_kind, source->number);
		return;
	case SOURCE_SAFETENSORS:
		digest_hex(&source->content, hex);
		field_printf(fields, m->arena, tag, "tensor '%s' of a safetensors file with content %s", source->tensor_key, hex);
		return;
	}
}

/* Adds what the descriptions of Python scalars say about their defaults, because it decides what some numbers mean.
 * Other words of descriptions do not change a result. */
static void described_default_fields(struct maker *m, struct fields *fields)
{
	double number;

	for (int i = 0; i < m->problem.input_count; i++)
		if (described_default(&m->problem.inputs[i], &number))
			field_printf(fields, m->arena,
			             arena_printf(m->arena, "inputs.%s.default", m->problem.inputs[i].name), "%g", number);
}

/* Adds what the words of a definition of no family announce, because some checks depend on it. */
static void described_effect_fields(struct maker *m, struct fields *fields)
{
	const char *samples = described_samples(&m->problem);

	if (samples != NULL)
		field_text(fields, m->arena, "samples", samples);
	for (int i = 0; i < m->problem.input_count; i++)
		if (described_written(&m->problem, i))
			field_text(fields, m->arena, arena_printf(m->arena, "inputs.%s.written", m->problem.inputs[i].name), "yes");
	for (int i = 0; i < m->problem.input_count; i++) {
		const struct described_input described = described_input(&m->problem, i);

		if (described.kind != INPUT_GENERIC)
			field_printf(fields, m->arena, arena_printf(m->arena, "inputs.%s.kind", m->problem.inputs[i].name), "%s %s",
			             input_kind_name(described.kind),
			             described.axis < 0 ? "" : m->problem.axes[described.axis].name);
	}
}

static void constant_fields(struct maker *m, struct fields *fields)
{
	for (int i = 0; i < m->out.constant_count; i++) {
		const struct op_constant *constant = &m->out.constants[i];
		const char *tag = arena_printf(m->arena, "constants.%s", constant->name);

		if (isnan(constant->value))
			field_text(fields, m->arena, tag, "probed");
		else
			field_printf(fields, m->arena, tag, "%.17g", constant->value);
	}
}

/* Adds the tolerance rule of an output. A reference is run on two sets of input values. The rule for the second set of
 * values is added only if it differs from the rule for the first set. */
static void tolerance_field(struct maker *m, struct fields *fields, const struct job *job, int output)
{
	const char *tag = arena_printf(m->arena, "tolerance.%s", job->problem.outputs[output].name);
	struct rule a = job_rule(job, CONTENTS_FIRST, output), b = job_rule(job, CONTENTS_SECOND, output);
	const char *first =
	    arena_printf(m->arena, "atol %.17g rtol %.17g hit_ratio %.17g", a.atol, a.rtol, a.hit_ratio);

	if (a.atol == b.atol && a.rtol == b.rtol && a.hit_ratio == b.hit_ratio)
		field_text(fields, m->arena, tag, first);
	else
		field_printf(fields, m->arena, tag, "%s; second contents: atol %.17g rtol %.17g hit_ratio %.17g", first, b.atol,
		             b.rtol, b.hit_ratio);
	if (job->error_cap > 0)
		field_printf(fields, m->arena, arena_printf(m->arena, "error_cap.%s", job->problem.outputs[output].name), "%.17g",
			     job->error_cap);
}

/* Adds the files that the reference reads. */
static void reads_fields(struct maker *m, struct fields *fields)
{
	char hex[DIGEST_HEX];

	for (int i = 0; i < m->definition->read_count; i++) {
		const char *path = m->definition->reads[i];

		digest_hex(&find_blob(m, BLOB_READ, path)->content, hex);
		field_printf(fields, m->arena, arena_printf(m->arena, "reads.%s", path), "a file with content %s", hex);
	}
}

/* Adds the code that makes inputs. The code of an entry point is in the reference, which is a field of its own. */
static void input_code_fields(struct maker *m, struct fields *fields)
{
	const struct definition *d = m->definition;
	struct buf form = {0};

	field_text(fields, m->arena, "input_code", d->input_code.function);
	if (d->input_code.kind != INPUT_CODE_INIT)
		return;
	python_normal_form(d->init, strlen(d->init), &form);
	field_add(fields, m->arena, "init", NULL, form.data, form.length);
	buf_free(&form);
}

static const char *matched_text(enum op_matched matched)
{
	static const char *const texts[] = {
	    [MATCHED_BY_TYPE] = "op_type", [MATCHED_BY_WORDS] = "words", [MATCHED_BY_SHAPES] = "shapes"};

	return texts[matched];
}

const char *cases_matched(const struct cases *cases)
{
	return cases->op != NULL ? matched_text(cases->matched) : NULL;
}

static void subject_fields(struct maker *m, struct test_case *c)
{
	const struct definition *d = m->definition;
	const struct job *job = c->job;
	struct fields *fields = &c->fields;

	*fields = fields_copy(&m->shared, m->arena);
	field_text(fields, m->arena, "checker", m->kernels->checker_digest);
	field_printf(fields, m->arena, "family", "%s variant %d", job->op != NULL ? job->op : "none", m->variant);
	field_text(fields, m->arena, "family.inputs", m->out.op != NULL ? m->out.op->inputs_digest : "generic");
	if (job->op == NULL)
		described_effect_fields(m, fields);
	if (m->out.op != NULL && m->out.matched != MATCHED_BY_TYPE)
		field_text(fields, m->arena, "family.matched", matched_text(m->out.matched));
	if (job->edge > 0)
		field_text(fields, m->arena, "case.edge", m->out.op->op->edges[job->edge - 1].name);
	if (job->checks)
		field_text(fields, m->arena, "case.checks", "strided, rows, numerics");
	if (job->input_code != NULL)
		input_code_fields(m, fields);
	if (job->chosen_axes)
		field_text(fields, m->arena, "case.sizes", "chosen");
	if (job->two_runs)
		field_text(fields, m->arena, "case.runs", "two");
	if (job->asks == JOB_GRADIENTS)
		field_text(fields, m->arena, "backward", m->in_float64 ? "gradients in float64" : "gradients");
	field_printf(fields, m->arena, "seed", "%llu", (unsigned long long)job->seed);
	for (int i = 0; i < d->axis_count; i++)
		if (d->axes[i].var && is_given(m, job->inputs, i))
			field_printf(fields, m->arena, arena_printf(m->arena, "case.axes.%s", d->axes[i].name), "%lld",
			             (long long)job->axis[i]);
	for (int i = 0; i < job->problem.input_count; i++)
		input_field(m, fields, job->problem.inputs[i].name, &job->inputs[i]);
	for (int i = 0; i < job->problem.output_count; i++)
		tolerance_field(m, fields, job, i);
	constant_fields(m, fields);
	reads_fields(m, fields);
	if (m->environment != NULL)
		field_text(fields, m->arena, "environment", m->environment);
	c->subject = fields_digest(fields);
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

/* If the tensor file of an input, or a file that the reference reads, is missing or unusable, the case cannot run, and
 * the function returns its verdict (skipped or invalid). Otherwise returns NULL. */
static const struct verdict *decided_by_blobs(struct maker *m, const struct input_source *inputs)
{
	const struct definition *d = m->definition;
	const struct verdict *verdict = NULL;

	for (int i = 0; i < d->read_count && verdict == NULL; i++)
		verdict = decided_by_blob(m, find_blob(m, BLOB_READ, d->reads[i]));
	for (int i = 0; i < d->input_count && verdict == NULL; i++)
		if (inputs[i].kind == SOURCE_SAFETENSORS)
			verdict = decided_by_blob(m, find_blob(m, BLOB_TENSORS, inputs[i].path));
	return verdict;
}

/* If the definition does not say what a case needs, or contradicts itself, returns the verdict of each of its cases;
 * otherwise NULL. */
static const struct verdict *decided_by_definition(struct maker *m)
{
	const struct definition *d = m->definition;
	enum reason reason = d->reference_length == 0 ? REASON_NO_REFERENCE : REASON_UNKNOWN_DTYPE;

	if (m->contradiction != NULL)
		return decided(m, STATUS_FAILED, REASON_CONSTANTS, m->contradiction);
	return d->unverifiable != NULL ? decided(m, STATUS_SKIPPED, reason, d->unverifiable) : NULL;
}

/* If the case needs code that has no function to call, returns the verdict of the case; otherwise NULL. */
static const struct verdict *decided_by_input_code(struct maker *m, const struct input_source *inputs)
{
	const struct input_code *code = &m->definition->input_code;

	if (!any_custom(m, inputs) || code->function != NULL)
		return NULL;
	return decided(m, STATUS_ERROR, REASON_INPUTS, arena_printf(m->arena, "%s: %s", code->place, code->missing));
}

/* If the definition's code makes a Python scalar, returns the verdict of a case of an op family; otherwise NULL. The
 * family's bounds depend on its scalars, and are part of what identifies the case before the code runs. */
static const struct verdict *decided_by_custom_scalar(struct maker *m, const struct input_source *inputs)
{
	for (int i = 0; m->out.op != NULL && i < m->problem.input_count; i++)
		if (inputs[i].kind == SOURCE_CUSTOM && m->problem.inputs[i].rank == OP_SCALAR)
			return decided(m, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
				       arena_printf(m->arena, "the bounds of this case are unknown, because %s makes the Python scalar "
							      "'%s'; give its value in the workload",
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

/* Adds the texts of the constraints on tensor values to the job, because only the judge can check these constraints.
 * Inputs that the definition's code makes have to satisfy all of its constraints, also those on axes that the inputs
 * give a value. */
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

/* Returns a copy of the inputs in which each tensor file has its digest. For a tensor file that was extracted from git,
 * the path in the copy is the path of the extracted file. */
static const struct input_source *placed_inputs(struct maker *m, const struct input_source *inputs)
{
	struct input_source *placed = arena_array(m->arena, (size_t)m->definition->input_count, sizeof *placed);
	bool any = false;

	for (int i = 0; i < m->definition->input_count; i++) {
		const struct blob *blob = inputs[i].kind == SOURCE_SAFETENSORS ? find_blob(m, BLOB_TENSORS, inputs[i].path) : NULL;

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

/* Fills in the job: outputs or gradients, the shapes of the problem, and the source of each input. */
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

/* Converts the job into the parameter of an op family's functions. */
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
			case_inputs_set_scalar(job, op_of(m), &c, i);
	return c;
}

static const struct rule *rules_on(const struct maker *m, const struct job *job, enum op_contents states)
{
	struct op_case c = op_case_of(m, job, states);

	return make_rules(m, &c);
}

/* Says which function of FlashInfer the definition names, and which argument each input is. */
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

/* Returns the limit of the workload line on the difference of a single element, or 0. A limit of 0 allows no
 * difference. */
static double error_cap_of(const struct maker *m)
{
	if (op_of(m) != NULL || m->line == NULL || !m->line->tolerance.given || m->line->tolerance.error_cap < 0)
		return 0;
	return fmax(m->line->tolerance.error_cap, DBL_TRUE_MIN);
}

/* Builds one case and adds it to the list, unless --case excludes it. `edge`: the value for op_case.edge. */
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
			    .input_code = any_custom(m, inputs) ? &m->definition->input_code : NULL,
			    .chosen_axes = m->chosen_axes && any_custom(m, inputs),
			    .two_runs = m->two_runs && m->asks == JOB_OUTPUTS,
			    .no_diagnosis = m->options->no_diagnosis,
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
		if (m->definition->axes[i].var && is_given(m, inputs, i)) {
			id = arena_printf(m->arena, "%s%s%s=%lld", id, comma, m->definition->axes[i].name, (long long)axis[i]);
			comma = ",";
		}
	return id;
}

/* Returns whether a constraint of the form `axis == …` determines this axis. */
static bool axis_is_derived(const struct definition *d, int axis)
{
	size_t length = strlen(d->axes[axis].name);

	if (d->axis_expressions != NULL && d->axis_expressions[axis] != NULL)
		return true;
	for (int i = 0; i < d->constraint_count; i++) {
		const char *text = d->constraints[i];

		if (strncmp(text, d->axes[axis].name, length) != 0)
			continue;
		text += length;
		if (strncmp(text + strspn(text, " "), "==", 2) == 0)
			return true;
	}
	return false;
}

/* Chooses axis values that satisfy the definition's constraints on axes. `length` is the value of an axis that nothing
 * determines. */
static void choose_axes(const struct definition *d, int64_t length, int64_t *axis)
{
	for (int i = 0; i < d->axis_count; i++)
		axis[i] = d->axes[i].var ? -1 : d->axes[i].value;
	constraint_solve(d, axis);
	for (int derived = 0; derived < 2; derived++)
		for (int i = 0; i < d->axis_count; i++)
			if (axis[i] < 0 && (derived == 1 || !axis_is_derived(d, i))) {
				axis[i] = length;
				constraint_solve(d, axis);
			}
}

/* Chooses small axis values for a definition that no family supports. Returns the number of rows: 0 if the
 * expressions of axes have no value above 0 for the values that were tried, else 1. */
static int generic_axes(const struct definition *d, int64_t *axis)
{
	for (int64_t length = GENERIC_AXIS; length <= GENERIC_LARGEST; length *= 4) {
		bool positive = true;
		struct err why;
		int at;

		choose_axes(d, length, axis);
		if (d->axis_expressions == NULL)
			return 1;
		for (int i = 0; i < d->axis_count; i++)
			positive = positive && (axis[i] > 0 || d->axis_expressions[i] == NULL);
		if (positive && axis_expressions_compute(d, axis, &at, &why) == 0)
			return 1;
	}
	return 0;
}

/* Returns whether one of the first `count` rows is equal to the row that follows them. */
static bool is_repeated(const int64_t *rows, int count, size_t width)
{
	for (int i = 0; i < count; i++)
		if (memcmp(rows + (size_t)i * width, rows + (size_t)count * width, width * sizeof *rows) == 0)
			return true;
	return false;
}

/* Makes rows agree with the expressions of axes and with the constraints, and removes the rows that cannot, and rows
 * that become equal to an earlier one. Returns their number. */
static int fit_rows(const struct definition *d, int64_t *rows, int count)
{
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int kept = 0;

	for (int i = 0; i < count; i++) {
		int64_t *row = rows + (size_t)kept * width;

		memmove(row, rows + (size_t)i * width, width * sizeof *rows);
		kept += axis_expressions_fit(d, row) && constrained_axes_fit(d, row) && !is_repeated(rows, kept, width);
	}
	return kept;
}

int size_rows(const struct op *op, int variant, const struct op_problem *problem, const struct definition *d,
              enum op_size size, int64_t *rows)
{
	int count = op != NULL ? op->sizes(problem, variant, size, rows, SIZE_ROWS)
	          : size == SIZE_SMALL ? generic_axes(d, rows) : 0;

	return fit_rows(d, rows, count < SIZE_ROWS ? count : SIZE_ROWS);
}

/* The family must know the default value of an omitted Python scalar. */
bool input_may_be_omitted(const struct op *op, const struct op_case *c, int input)
{
	struct op_case without = *c;

	if (op == NULL || !c->problem->inputs[input].optional)
		return false;
	without.absent |= UINT64_C(1) << input;
	return c->problem->inputs[input].rank != OP_SCALAR || (op->scalar != NULL && !isnan(op->scalar(&without, input)));
}

/* For each optional input, adds a case without this input: a copy of the last case of the size preset small. Callers
 * may omit an input that the definition declares optional. The last small case is used because it has several rows or
 * sequences. */
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

/* For each Python scalar whose description says that a number stands for its default, adds a case with this number: a
 * copy of the last small case, as for optional inputs. */
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

/* Returns the sources of the inputs of a case that reftest adds. If no family knows the definition, its own code makes
 * the inputs: all of them, or those that the first workload leaves to the code. */
static struct input_source *sources_of_size(const struct maker *m)
{
	const struct definition *d = m->definition;
	struct input_source *inputs = arena_array(m->arena, (size_t)d->input_count, sizeof *inputs);
	const struct workload *first = NULL;

	if (m->out.op != NULL || d->input_code.kind == INPUT_CODE_NONE || m->without_init)
		return inputs;
	for (int i = 0; i < m->workloads->count && first == NULL; i++)
		if (m->workloads->lines[i].error == NULL && any_custom(m, m->workloads->lines[i].inputs))
			first = &m->workloads->lines[i];
	for (int i = 0; i < d->input_count; i++) {
		inputs[i].kind = SOURCE_CUSTOM;
		if (first != NULL && first->inputs[i].kind != SOURCE_CUSTOM)
			inputs[i] = first->inputs[i].kind == SOURCE_SAFETENSORS ? (struct input_source){0} : first->inputs[i];
	}
	return inputs;
}

/* Returns why a definition has no sizes, or NULL if its expressions and constraints are not the reason. */
static const char *why_no_sizes(const struct maker *m)
{
	const struct definition *d = m->definition;
	int64_t axis[DEFINITION_AXES];
	struct err why;
	int at;

	choose_axes(d, GENERIC_AXIS, axis);
	if (d->axis_expressions != NULL && axis_expressions_compute(d, axis, &at, &why) != 0)
		return arena_printf(m->arena, "no sizes were found, because %s; only workloads are verified", why.text);
	return d->constraint_count > 0 ? "no sizes were found that satisfy the constraints, so only workloads are verified" : NULL;
}

static void make_size_cases(struct maker *m, enum op_size size)
{
	const struct definition *d = m->definition;
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int64_t *rows = arena_array(m->arena, SIZE_ROWS * width, sizeof *rows);
	int count = size_rows(m->out.op != NULL ? m->out.op->op : NULL, m->variant, &m->problem, d, size, rows);
	struct input_source *inputs = sources_of_size(m);

	if (count == 0 && size == SIZE_SMALL)
		m->out.no_sizes = why_no_sizes(m);
	m->chosen_axes = true;
	m->two_runs = size == SIZE_MEDIUM;
	for (int i = 0; i < count; i++) {
		const int64_t *axis = rows + (size_t)i * width;

		const char *id = axes_id(m, size_names[size], axis, inputs);

		make_case(m, id, axis, inputs, 0);
		if (size != SIZE_SMALL || i < count - 1)
			continue;
		make_absent_cases(m, id, axis);
		make_described_default_cases(m, id, axis);
	}
	m->chosen_axes = false;
	m->two_runs = false;
}

/* Adds a copy of the smallest case with all floating-point tensors in float64, because the bounds on gradients are a
 * hundred times tighter in float64. */
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

/* Edge cases need their exact sizes, so a definition whose constraints exclude them has no such cases. */
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

/* Adds the last small case again, with the checks that need runs of their own. The ground truth decides the case;
 * what the checks find are findings. */
static void make_checked_case(struct maker *m)
{
	const struct definition *d = m->definition;
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int64_t *rows = arena_array(m->arena, SIZE_ROWS * width, sizeof *rows);
	struct input_source *inputs = arena_array(m->arena, (size_t)d->input_count, sizeof *inputs);
	int count = m->out.op == NULL ? 0 : size_rows(m->out.op->op, m->variant, &m->problem, d, SIZE_SMALL, rows);

	if (count == 0)
		return;
	m->checks = true;
	make_case(m, axes_id(m, "checks", rows + (size_t)(count - 1) * width, inputs), rows + (size_t)(count - 1) * width, inputs, 0);
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
		struct test_case *c = m->asks == JOB_OUTPUTS ? add_case(m, id) : NULL; /* report an invalid line once,
											* not again for gradients */

		if (c != NULL)
			c->decided = decided(m, STATUS_INVALID, REASON_NONE, line->error);
	}
}

/* Says why the op_type does not decide the family: "the definition has no op_type". */
static const char *undecided_by_op_type(struct maker *m)
{
	const char *op_type = m->definition->op_type;

	if (*op_type == '\0')
		return "the definition has no op_type";
	for (int i = 0; i < m->kernels->op_count; i++)
		for (const char *const *known = m->kernels->ops[i].op->op_types; *known != NULL; known++)
			if (strcmp(*known, op_type) == 0)
				return arena_printf(m->arena, "the shapes are not those of op_type '%s'", op_type);
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
		m->out.how_matched = arena_printf(m->arena, "matched op family %s by the words of the definition and its shapes; %s",
		                                  op->name, undecided_by_op_type(m));
	else if (candidate->matched == MATCHED_BY_SHAPES)
		m->out.how_matched = arena_printf(m->arena, "matched op family %s by shapes and agreement; %s", op->name,
		                                  undecided_by_op_type(m));
	if (op->constants != NULL)
		m->out.constant_count = op->constants(&m->problem, m->variant, m->out.constants);
}

/* Returns why no candidate has the ground truth, if the reference disagreed with each of them. */
static const char *computes_something_else(struct maker *m, const struct op_candidate *list, int count, const char *why)
{
	const char *names = "";

	for (int i = 0; i < count; i++)
		if (i == 0 || list[i].entry != list[i - 1].entry)
			names = arena_printf(m->arena, "%s%s%s", names, i > 0 ? ", " : "", list[i].entry->op->name);
	return arena_printf(m->arena,
	                    "%s; the shapes are also those of %s, but the reference computes something else on their inputs",
	                    why, names);
}

/* Finds the family of an attempt: candidate number `attempt`, or none after the last candidate. */
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
	if (m->options->edge && m->asks == JOB_OUTPUTS)
		make_edge_cases(m);
	if (m->options->edge && m->asks == JOB_OUTPUTS)
		make_checked_case(m);
	if (m->options->workloads)
		make_workload_cases(m, workloads);
}

/* Finds the op that verifies gradients. Returns NULL, or the reason why there is no ground truth of gradients. */
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
                        const char *root, const struct case_options *options, int attempt, struct arena *arena)
{
	struct maker m = {.kernels = kernels, .definition = definition, .problem = problem_of(definition, arena),
	                  .blobs = blobs, .blob_count = blob_count, .root = root, .options = options, .arena = arena, .workloads = workloads};

	m.environment = environment_that_counts(arena);
	m.contradiction = attest_definition(definition, arena);
	find_family(&m, attempt);
	m.without_init = attempt > m.out.candidate_count && definition->input_code.kind == INPUT_CODE_INIT;
	definition_fields(definition, arena, &m.shared);
	described_default_fields(&m, &m.shared);
	make_all(&m, workloads);
	if (m.contradiction != NULL) {
		m.out.count = m.out.count > 0 ? 1 : 0; /* one case reports it */
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

int case_sizes_read(const char *list, bool size[SIZE_COUNT], struct err *err)
{
	static const char *const names[SIZE_COUNT] = {"small", "medium", "large"};

	while (*list != '\0') {
		size_t length = strcspn(list, ",");
		bool found = false;

		for (int s = 0; s < SIZE_COUNT; s++)
			if (strlen(names[s]) == length && memcmp(names[s], list, length) == 0)
				found = size[s] = true;
		if (!found)
			return err_set(err, "unknown size '%.*s' (--sizes takes small, medium and large, separated by "
					    "commas)",
			               (int)length, list);
		list += length + (list[length] == ',');
	}
	return 0;
}
