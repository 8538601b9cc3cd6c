#include "engine/cases_internal.h"

#include <math.h>
#include <string.h>

#include "cache/python_normal_form.h"
#include "kernels/core/described_default.h"
#include "kernels/core/described_effects.h"
#include "kernels/core/roles.h"
#include "workers/judge/described_inputs.h"
#include "workers/judge/extra_runs.h"

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

void described_default_fields(struct maker *m, struct fields *fields)
{
	double number;

	for (int i = 0; i < m->problem.input_count; i++)
		if (described_default(&m->problem.inputs[i], &number))
			field_printf(fields, m->arena,
			             arena_printf(m->arena, "inputs.%s.default", m->problem.inputs[i].name), "%g", number);
}

/* Adds the facts that checks read from the definition's names, descriptions and tags: whether the reference draws random
 * samples, and which inputs it overwrites. */
static void described_effect_fields(struct maker *m, struct fields *fields)
{
	const char *samples = described_samples(&m->problem);

	if (samples != NULL)
		field_text(fields, m->arena, "samples", samples);
	for (int i = 0; i < m->problem.input_count; i++)
		if (described_written(&m->problem, i))
			field_text(fields, m->arena, arena_printf(m->arena, "inputs.%s.written", m->problem.inputs[i].name), "yes");
}

/* For a definition without a family, adds the kind of each input, such as indices or probabilities, which follows from
 * names, descriptions and constraints (workers/judge/described_inputs.h). */
static void described_kind_fields(struct maker *m, const struct job *job, struct fields *fields)
{
	for (int i = 0; i < m->problem.input_count; i++) {
		const struct described_input described = described_input(&m->problem, job->constraints, job->constraint_count, i);

		if (described.kind != INPUT_GENERIC)
			field_printf(fields, m->arena, arena_printf(m->arena, "inputs.%s.kind", m->problem.inputs[i].name), "%s %s",
			             input_kind_name(described.kind),
			             described.axis < 0 ? "" : m->problem.axes[described.axis].name);
	}
}

static void role_fields_of(struct maker *m, struct fields *fields, const char *kind, const struct op_arg *args,
			   int count, const char *const *roles)
{
	for (int i = 0; i < count; i++)
		if (roles[i] != NULL)
			field_text(fields, m->arena, arena_printf(m->arena, "%s.%s.role", kind, args[i].name), roles[i]);
}

/* Adds the role of each input and output in the family's operation. A family finds roles by dtypes, shapes, names and
 * orders, and may read more of the definition. In a gradient case, the roles are those of the forward operation. */
static void role_fields(struct maker *m, struct fields *fields)
{
	const struct op_problem *problem = &m->problem;
	const struct op_names names = op_names_of(m->out.op->op, problem, m->variant);

	role_fields_of(m, fields, "inputs", problem->inputs, problem->input_count, names.inputs);
	role_fields_of(m, fields, "outputs", problem->outputs, problem->output_count, names.outputs);
}

/* Adds a field for each input to which the reference may or must write. For some families, the descriptions of the
 * definition and its tensors decide this (op_in_place_as_said). */
static void in_place_fields(struct maker *m, const struct job *job, struct fields *fields)
{
	const struct op_problem *problem = &job->problem;
	const struct op_case c = {.problem = problem, .variant = m->variant, .axis = job->axis};
	const struct op *op = maker_op(m);

	for (int i = 0; op != NULL && op->in_place != NULL && i < problem->input_count; i++) {
		struct op_in_place out = op->in_place(&c, i);

		if (out.place != OP_KEPT)
			field_printf(fields, m->arena, arena_printf(m->arena, "inputs.%s.in_place", problem->inputs[i].name),
				     "%s %s", out.may_keep ? "may receive" : "receives",
				     out.place < problem->output_count ? problem->outputs[out.place].name : "values of its own");
	}
}

/* Adds the value of each hidden constant. If another source states a different value, the judge makes a finding of
 * this conflict, so it is added, too. */
static void constant_fields(struct maker *m, struct fields *fields)
{
	for (int i = 0; i < m->out.constant_count; i++) {
		const struct op_constant *constant = &m->out.constants[i];
		const char *tag = arena_printf(m->arena, "constants.%s", constant->name);

		if (isnan(constant->value))
			field_text(fields, m->arena, tag, "probed");
		else
			field_printf(fields, m->arena, tag, "%.17g", constant->value);
		if (constant->conflict[0] != '\0')
			field_text(fields, m->arena, arena_printf(m->arena, "%s.conflict", tag), constant->conflict);
	}
}

/* Adds the tolerance rule of an output. A reference is run on two sets of input values. If the two sets have different
 * rules, both rules are added, otherwise only one. */
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

static void reads_fields(struct maker *m, struct fields *fields)
{
	char hex[DIGEST_HEX];

	for (int i = 0; i < m->definition->read_count; i++) {
		const char *path = m->definition->reads[i];

		digest_hex(&maker_blob(m, BLOB_READ, path)->content, hex);
		field_printf(fields, m->arena, arena_printf(m->arena, "reads.%s", path), "a file with content %s", hex);
	}
}

/* Adds fields for the code that makes inputs. If this code is a function of the reference, adds only the name of the
 * function, because another field contains the code of the reference. */
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

void case_inputs_are_valid(struct test_case *c, struct arena *arena)
{
	c->job->inputs_are_valid = true;
	field_text(&c->fields, arena, "case.inputs_are_valid", "another implementation has run on them");
	c->subject = fields_digest(&c->fields);
}

void subject_fields(struct maker *m, struct test_case *c)
{
	static const char *const runs[JOB_RUNS_COUNT] = {
	    [JOB_RUNS_BOTH] = "two", [JOB_RUNS_FIRST] = "first set", [JOB_RUNS_SECOND] = "second set"};
	const struct definition *d = m->definition;
	const struct job *job = c->job;
	struct fields *fields = &c->fields;

	*fields = fields_copy(&m->shared, m->arena);
	field_text(fields, m->arena, "checker", m->kernels->checker_digest);
	field_printf(fields, m->arena, "family", "%s variant %d", job->op != NULL ? job->op : "none", m->variant);
	field_text(fields, m->arena, "family.inputs", m->out.op != NULL ? m->out.op->inputs_digest : "generic");
	if (job->op == NULL || job->checks)
		described_effect_fields(m, fields);
	if (job->op == NULL)
		described_kind_fields(m, job, fields);
	if (m->out.op != NULL)
		role_fields(m, fields);
	in_place_fields(m, job, fields);
	if (m->out.op != NULL && m->out.matched != MATCHED_BY_TYPE)
		field_text(fields, m->arena, "family.matched", matched_text(m->out.matched));
	if (job->edge > 0)
		field_text(fields, m->arena, "case.edge", m->out.op->op->edges[job->edge - 1].name);
	if (job->checks)
		field_text(fields, m->arena, "case.checks", extra_runs_beside(m->arena));
	if (job->input_code != NULL)
		input_code_fields(m, fields);
	if (job->chosen_axes)
		field_text(fields, m->arena, "case.sizes", "chosen");
	if (job->runs != JOB_RUNS_ALL)
		field_text(fields, m->arena, "case.runs", runs[job->runs]);
	if (job->asks == JOB_GRADIENTS)
		field_text(fields, m->arena, "backward", m->in_float64 ? "gradients in float64" : "gradients");
	field_printf(fields, m->arena, "seed", "%llu", (unsigned long long)job->seed);
	for (int i = 0; i < d->axis_count; i++)
		if (d->axes[i].var && maker_gives_axis(m, job->inputs, i))
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
