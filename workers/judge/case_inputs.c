#include "workers/judge/case_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "dataset/constraint.h"
#include "kernels/core/described_default.h"
#include "kernels/core/dtype_convert.h"
#include "workers/judge/described_inputs.h"
#include "workers/judge/message_text.h"

static int rule(struct rejection *rejection, enum status status, enum reason reason)
{
	rejection->status = status;
	rejection->reason = reason;
	return -1;
}

struct input_source case_inputs_scalar(const struct job *job, const struct op *op, const struct op_case *c, int input)
{
	enum dtype dtype = job->problem.inputs[input].dtype;
	struct input_source out = job->inputs[input];

	if (out.kind == SOURCE_SCALAR)
		return out;
	if (out.kind == SOURCE_ABSENT) {
		out.number = op != NULL && op->scalar != NULL && job->problem.inputs[input].rank == OP_SCALAR
		                 ? op->scalar(c, input) : 0; /* the default of the omitted scalar */
		return out;
	}
	out.kind = SOURCE_SCALAR;
	out.scalar_kind = dtype_is_float(dtype) ? SCALAR_FLOAT : dtype == DTYPE_BOOL ? SCALAR_BOOL : SCALAR_INT;
	out.number = op == NULL ? described_scalar(&job->problem, c->axis, input) : dtype_is_float(dtype) ? 1 : 0;
	if (op != NULL && op->scalar != NULL)
		out.number = op->scalar(c, input);
	out.integer = out.scalar_kind == SCALAR_FLOAT ? 0 : (int64_t)out.number;
	return out;
}

void case_inputs_set_scalar(const struct job *job, const struct op *op, struct op_case *c, int input)
{
	const struct input_source scalar = case_inputs_scalar(job, op, c, input);

	if (scalar.kind == SOURCE_ABSENT)
		c->scalar[input] = scalar.number;
	else
		described_set_scalar(op, c, input, scalar.number);
}

/* Sets the status and reason for invalid inputs that reftest did not generate: they come from the workload, or from the
 * definition's code. */
static int rule_given(const struct job *job, struct rejection *rejection)
{
	return job->input_code != NULL ? rule(rejection, STATUS_ERROR, REASON_INPUTS)
				       : rule(rejection, STATUS_INVALID, REASON_NONE);
}

static int rule_tensors(struct rejection *rejection, enum tensors_answer answer)
{
	switch (answer) {
	case TENSORS_OK:
		return 0;
	case TENSORS_MISSING:
		return rule(rejection, STATUS_SKIPPED, REASON_MISSING_BLOB);
	case TENSORS_CHANGED:
		return rule(rejection, STATUS_SKIPPED, REASON_CHANGED);
	default:
		return rule(rejection, STATUS_ERROR, REASON_GROUND_TRUTH);
	}
}

static int fill_from_file(struct device *device, struct tensors *tensors, int root, const struct op_arg *arg,
                          const struct input_source *source, struct tensor *out, struct rejection *rejection)
{
	const struct safetensors *content;
	enum tensors_answer answer =
	    tensors_content(tensors, root, source->path, &source->content, &content, &rejection->why);

	if (answer != TENSORS_OK)
		return rule_tensors(rejection, answer);
	const struct safetensor *found =
	    safetensors_expect(content, source->path, source->tensor_key, arg->name,
			       out->dtype, out->rank, out->shape, &rejection->why);

	if (found == NULL)
		return rule(rejection, STATUS_INVALID, REASON_NONE);
	return rule_tensors(rejection, tensors_upload(tensors, root, source->path, found, device, out->data, &rejection->why));
}

static int fill_from_blob(struct device *device, struct tensors *tensors, const struct job *job, int input,
                          struct tensor *out, struct rejection *rejection)
{
	int root = open(job->root, O_PATH | O_DIRECTORY | O_CLOEXEC), rc;

	if (root < 0) {
		err_errno(&rejection->why, "cannot open %s", job->root);
		return rule(rejection, STATUS_SKIPPED, REASON_MISSING_BLOB);
	}
	rc = fill_from_file(device, tensors, root, &job->problem.inputs[input], &job->inputs[input], out, rejection);
	close(root);
	return rc;
}

/* Fills a tensor of one element with the number that the workload gives. */
static int fill_from_scalar(struct device *device, const struct job *job, int input, struct tensor *out,
                            struct rejection *rejection)
{
	unsigned char element[8] = {0};

	if (out->elements != 1) {
		err_set(&rejection->why, "input '%s' is a tensor of several elements, but the workload gives a single number",
		        job->problem.inputs[input].name);
		return rule(rejection, STATUS_INVALID, REASON_NONE);
	}
	dtype_store(element, out->dtype, 0, job->inputs[input].number);
	if (device->calls->upload(device, out->data, element, job_tensor_bytes(out), &rejection->why) != 0)
		return rule(rejection, STATUS_ERROR, REASON_GROUND_TRUTH);
	return 0;
}

/* Copies the values that the definition's code made. */
static int fill_from_code(struct device *device, const struct job *job, int input, struct tensor *out,
			  struct rejection *rejection)
{
	int64_t bytes = job_tensor_bytes(out);

	if (bytes > 0 && device->calls->copy(device, out->data, job->inputs[input].values, bytes, &rejection->why) != 0)
		return rule(rejection, STATUS_ERROR, REASON_GROUND_TRUTH);
	return 0;
}

/* Fills an input of a definition without op family. Chooses the values according to a constraint or, if no constraint
 * determines the kind of the input, according to the input's name and description. */
static int fill_described(struct device *device, const struct job *job, const struct op_case *c, int input,
			  struct tensor *out, struct rejection *rejection)
{
	const struct described_input described = described_input(c->problem, job->constraints, job->constraint_count, input);
	struct arena arena = {0};
	struct tensor host = *out;
	int64_t bytes = job_tensor_bytes(out);
	int rc = 0;

	if (described_input_is_generic(&described, out->elements))
		return device->calls->fill(device, NULL, c, input, out, &rejection->why);
	host.data = arena_alloc(&arena, (size_t)bytes + 1);
	described_input_fill(c, input, &described, &host);
	if (bytes > 0)
		rc = device->calls->upload(device, out->data, host.data, bytes, &rejection->why);
	arena_free(&arena);
	return rc;
}

static int fill_one(struct device *device, struct tensors *tensors, const struct job *job, const struct op *op,
                    const struct op_case *c, int input, struct tensor *out, struct rejection *rejection)
{
	/* A probing case only recovers constants from the reference. The op family generates all of its inputs, because
	 * its shapes differ from those of the workload's tensors. */
	enum source_kind kind = c->probe ? SOURCE_RANDOM : job->inputs[input].kind;

	if (kind == SOURCE_SAFETENSORS)
		return fill_from_blob(device, tensors, job, input, out, rejection);
	if (kind == SOURCE_SCALAR)
		return fill_from_scalar(device, job, input, out, rejection);
	if (kind == SOURCE_CUSTOM)
		return fill_from_code(device, job, input, out, rejection);
	if ((op == NULL ? fill_described(device, job, c, input, out, rejection)
	                : device->calls->fill(device, op, c, input, out, &rejection->why)) == 0)
		return 0;
	return rule(rejection, STATUS_ERROR, REASON_GROUND_TRUTH);
}

/* Lets the op family check the axes and the Python scalars before any tensor is filled. */
static int ask_about_axes(const struct job *job, const struct op *op, const struct op_case *c, const struct tensor *in,
                          struct rejection *rejection)
{
	struct tensor nothing[OP_ARGS];

	memcpy(nothing, in, (size_t)job->problem.input_count * sizeof *in);
	for (int i = 0; i < job->problem.input_count; i++)
		nothing[i].data = NULL;
	return op->check(c, nothing, &rejection->why) == 0 ? 0 : rule_given(job, rejection);
}

int case_inputs_fill(struct device *device, struct tensors *tensors, const struct job *job, const struct op *op,
		     const struct op_case *c, struct tensor *in, struct rejection *rejection)
{
	if (op != NULL && op->check != NULL && !c->probe && ask_about_axes(job, op, c, in, rejection) != 0)
		return -1;
	for (int i = 0; i < job->problem.input_count; i++)
		if (in[i].data != NULL && fill_one(device, tensors, job, op, c, i, &in[i], rejection) != 0)
			return -1;
	return 0;
}

/* Builds a definition with only those parts to which constraints can refer: axes, inputs and outputs. */
static struct definition schema_of(const struct op_problem *problem, struct arena *arena)
{
	struct axis *axes = arena_array(arena, (size_t)problem->axis_count, sizeof *axes);
	struct tensor_spec *inputs = arena_array(arena, (size_t)problem->input_count, sizeof *inputs);

	for (int i = 0; i < problem->axis_count; i++)
		axes[i] = (struct axis){problem->axes[i].name, problem->axes[i].var, problem->axes[i].value};
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *arg = &problem->inputs[i];

		inputs[i] = (struct tensor_spec){
		    .name = arg->name, .dtype = arg->dtype, .rank = arg->rank, .optional = arg->optional};
		for (int d = 0; d < arg->rank; d++)
			inputs[i].axis[d] = arg->axis[d];
	}
	return (struct definition){.name = problem->name,
	                           .op_type = problem->op_type,
	                           .axes = axes,
	                           .axis_count = problem->axis_count,
	                           .inputs = inputs,
	                           .input_count = problem->input_count};
}

void case_inputs_solve_axes(const struct job *job, int64_t *axis, struct arena *arena)
{
	struct definition schema = schema_of(&job->problem, arena);

	schema.constraints = job->constraints;
	schema.constraint_count = job->constraint_count;
	constraint_solve(&schema, axis);
}

/* Copies the integer tensors to the host, where constraints are evaluated. Other tensors are not copied, because
 * constraints use only their shapes. */
static int contents(struct device *device, const struct job *job, const struct tensor *in, struct arena *arena,
                    struct constraint_tensor *out, struct rejection *rejection)
{
	for (int i = 0; i < job->problem.input_count; i++) {
		int64_t bytes = job_tensor_bytes(&in[i]);
		void *copy;

		out[i].dtype = in[i].dtype;
		out[i].rank = in[i].rank;
		memcpy(out[i].shape, in[i].shape, sizeof out[i].shape);
		if (in[i].data == NULL || dtype_is_float(in[i].dtype))
			continue;
		copy = arena_alloc(arena, (size_t)bytes);
		if (bytes > 0 && device->calls->download(device, copy, in[i].data, bytes, &rejection->why) != 0)
			return rule(rejection, STATUS_ERROR, REASON_GROUND_TRUTH);
		out[i].data = copy;
	}
	return 0;
}

uint64_t case_inputs_given(const struct job *job)
{
	uint64_t given = 0;

	for (int i = 0; i < job->problem.input_count; i++) {
		enum source_kind kind = job->inputs[i].kind;

		if (kind == SOURCE_SAFETENSORS || kind == SOURCE_SCALAR || kind == SOURCE_CUSTOM)
			given |= UINT64_C(1) << i;
	}
	return given;
}

uint64_t case_inputs_absent(const struct job *job)
{
	uint64_t absent = 0;

	for (int i = 0; i < job->problem.input_count; i++)
		if (job->inputs[i].kind == SOURCE_ABSENT)
			absent |= UINT64_C(1) << i;
	return absent;
}

static bool brings_tensors(const struct job *job)
{
	uint64_t given = case_inputs_given(job);

	for (int i = 0; i < job->problem.input_count; i++)
		if (job->problem.inputs[i].rank != OP_SCALAR && (given >> i & 1) != 0)
			return true;
	return false;
}

/* Checks the constraints. If the inputs violate a constraint and the workload or the definition's code provides a
 * tensor, this tensor is treated as the cause (rule_given). If reftest generated all tensors, the case is skipped,
 * because its result would show nothing about the reference. */
static int check_constraints(struct device *device, const struct job *job, const struct op_case *c,
                             const struct tensor *in, struct arena *arena, struct rejection *rejection)
{
	struct constraint_tensor tensors[OP_ARGS] = {0};
	struct definition schema;

	if (job->constraint_count == 0)
		return 0;
	schema = schema_of(&job->problem, arena);
	if (contents(device, job, in, arena, tensors, rejection) != 0)
		return -1;
	for (int i = 0; i < job->constraint_count; i++) {
		struct err why = {""};
		enum constraint_answer answer = constraint_evaluate(&schema, job->constraints[i], c->axis, tensors, &why);

		if (answer != CONSTRAINT_BROKEN && answer != CONSTRAINT_ERROR)
			continue;
		err_set(&rejection->why, "the inputs break the definition's constraint %s", why.text);
		if (brings_tensors(job))
			return rule_given(job, rejection);
		err_set(&rejection->why, "the inputs that reftest generates break the definition's constraint %s; "
				      "add a workload whose inputs satisfy the constraint", why.text);
		return rule(rejection, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH);
	}
	return 0;
}

/* Lets the op family check the inputs on the host. For this, copies to the host the tensors that the workload or the
 * definition's code provides, and all index tensors (int32 and int64). */
static int ask_family(struct device *device, const struct job *job, const struct op *op, const struct op_case *c,
                      const struct tensor *in, struct arena *arena, struct rejection *rejection)
{
	struct tensor host[OP_ARGS];

	for (int i = 0; i < job->problem.input_count; i++) {
		int64_t bytes = job_tensor_bytes(&in[i]);
		bool index = in[i].dtype == DTYPE_INT32 || in[i].dtype == DTYPE_INT64;

		host[i] = in[i];
		host[i].data = NULL;
		if (in[i].data == NULL || (!index && (c->given >> i & 1) == 0))
			continue;
		host[i].data = arena_alloc(arena, (size_t)bytes);
		if (bytes > 0 && device->calls->download(device, host[i].data, in[i].data, bytes, &rejection->why) != 0)
			return rule(rejection, STATUS_ERROR, REASON_GROUND_TRUTH);
	}
	return op->check(c, host, &rejection->why) == 0 ? 0 : rule_given(job, rejection);
}

int case_inputs_check(struct device *device, const struct job *job, const struct op *op, const struct op_case *c,
		      const struct tensor *in, struct arena *arena, struct rejection *rejection)
{
	if (check_constraints(device, job, c, in, arena, rejection) != 0)
		return -1;
	if (op == NULL || op->check == NULL || c->probe || !brings_tensors(job))
		return 0;
	return ask_family(device, job, op, c, in, arena, rejection);
}
