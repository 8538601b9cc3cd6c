/* output_shapes - compares the shapes and dtypes of outputs with those that the definition declares. An output may
 * differ from its declared shape in axes whose lengths reftest guessed. */
#include "workers/judge/trial_internal.h"

#include <string.h>

#include "base/json.h"
#include "workers/judge/message_text.h"

enum { SHAPE_SHOWN = RANK_MAX };

/* Converts the runner's description of an output to a text such as "(8, 4096) float32". Returns NULL if the description
 * is malformed. */
static const char *described_tensor(struct trial *trial, const cJSON *said, int64_t shape[SHAPE_SHOWN], int *rank)
{
	const cJSON *dims = json_member(said, "shape"), *dim;
	const char *dtype = json_text_of(said, "dtype");

	*rank = 0;
	if (!cJSON_IsArray(dims) || dtype == NULL)
		return NULL;
	cJSON_ArrayForEach(dim, dims)
		if (*rank == SHAPE_SHOWN || !json_integer(dim, &shape[(*rank)++]))
			return arena_printf(&trial->arena, "a tensor of %d dimensions", cJSON_GetArraySize(dims));
	return tensor_type_text(&trial->arena, *rank, shape, err_show(dtype).text);
}

const char *trial_wrong_form(struct trial *trial, const struct round *round, int output, const cJSON *said,
			     enum reason *reason)
{
	const struct tensor *wanted = &round->first[output];
	const char *declared = tensor_type_text(&trial->arena, wanted->rank, wanted->shape, dtype_name(wanted->dtype));
	int64_t shape[SHAPE_SHOWN] = {0};
	int rank;
	const char *returned = described_tensor(trial, said, shape, &rank);
	bool same_shape = returned != NULL && rank == wanted->rank;

	for (int d = 0; same_shape && d < rank; d++)
		same_shape = shape[d] == wanted->shape[d];
	if (same_shape && strcmp(returned, declared) == 0)
		return NULL;
	*reason = same_shape ? REASON_DTYPE : REASON_SHAPE;
	if (returned == NULL)
		return arena_printf(&trial->arena,
				    "the shape and dtype of output '%s' cannot be read; it is declared as %s",
				    trial->job->problem.outputs[output].name, declared);
	return arena_printf(&trial->arena, "output '%s' is %s, but it is declared as %s",
			    trial->job->problem.outputs[output].name, returned, declared);
}

/* Returns whether the length of this axis may depend on a Python integer among the inputs whose value reftest has
 * chosen. This is possible only if no input tensor has the axis. */
static bool may_be_a_scalar(const struct trial *trial, int axis)
{
	const struct op_problem *problem = &trial->job->problem;
	bool scalar = false;

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		for (int d = 0; d < input->rank; d++)
			if (input->axis[d] == axis)
				return false;
		scalar = scalar || (input->rank == OP_SCALAR && !dtype_is_float(input->dtype) && input->dtype != DTYPE_BOOL &&
				    trial->job->inputs[i].kind == SOURCE_RANDOM);
	}
	return scalar && problem->axes[axis].var && trial->op == NULL;
}

/* Returns true if the shape of an output differs from the declared shape only in axes whose lengths reftest guessed. If
 * so, the guess may be wrong, and the reference may be right. */
static bool may_be_guessed(struct trial *trial, const struct round *round, int output, const cJSON *said)
{
	const struct op_problem *problem = &trial->job->problem;
	const struct tensor *wanted = &round->first[output];
	const char *dtype = json_text_of(said, "dtype");
	int64_t shape[SHAPE_SHOWN] = {0};
	int rank;

	if (described_tensor(trial, said, shape, &rank) == NULL || rank != wanted->rank ||
	    strcmp(dtype, dtype_name(wanted->dtype)) != 0)
		return false;
	for (int d = 0; d < rank; d++) {
		int axis = problem->outputs[output].axis[d];
		bool guessed = trial->guessed_axis != NULL && trial->guessed_axis[axis];

		if (shape[d] != wanted->shape[d] && !guessed && !may_be_a_scalar(trial, axis))
			return false;
	}
	return true;
}

void trial_check_shape(struct trial *trial, const struct round *round, int output, const cJSON *said)
{
	enum reason reason = REASON_NONE;
	const char *wrong = trial_wrong_form(trial, round, output, said, &reason);

	if (wrong != NULL && reason == REASON_SHAPE && may_be_guessed(trial, round, output, said))
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena, "%s\nOn generic sizes, which may be invalid for this operation, %s",
					  trial->job->no_truth == NULL ? "" : trial->job->no_truth, wrong));
	else if (wrong != NULL)
		trial_decide(trial, STATUS_FAILED, reason, wrong);
	else if (trial->run != RUN_FIRST && cJSON_IsTrue(json_member(said, "overwrites")))
		trial->overwrites |= UINT64_C(1) << output;
}
