/* truth_chain - reads the member "ground_truth" of a definition. This member is a chain of operations that together
 * compute what the definition does. Each step names an op_type; an output of a step can be an input of later steps.
 *
 *   "ground_truth": [
 *     {"op": "rmsnorm", "inputs": {"hidden_states": "x", "weight": "w"},
 *      "outputs": {"output": {"name": "normed", "shape": ["n", "hidden"], "dtype": "bfloat16"}},
 *      "constants": {"eps": 1e-6}},
 *     {"op": "gemm", "inputs": {"A": "normed", "B": "proj"}, "outputs": {"C": "y"}}]
 *
 * The keys of "inputs" and "outputs" are the names of tensors in the op family. The values are names of the
 * definition's inputs and outputs, or names of tensors that exist only between steps. If all keys equal their values, a
 * list of names may replace the object. */
#ifndef REFTEST_DATASET_TRUTH_CHAIN_H
#define REFTEST_DATASET_TRUTH_CHAIN_H

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/err.h"
#include "base/json.h"

enum { CHAIN_STEPS = 16, CHAIN_ARGS = 32, CHAIN_CONSTANTS = 8, CHAIN_RANK = 8 };

/* The names of the axes, inputs and outputs of a definition, which a chain may use. */
struct chain_scope {
	const char *const *axes, *const *inputs, *const *outputs;
	int axis_count, input_count, output_count;
};

/* A tensor that a step makes only for later steps: it is not an output of the definition. */
struct chain_tensor {
	const char *name;
	enum dtype dtype;
	int rank, axis[CHAIN_RANK]; /* indexes into chain_scope.axes */
};

/* `tensor` is an index into three lists that follow each other: the inputs, the outputs (from input_count on), and
 * chain.tensors. */
struct chain_arg {
	const char *name; /* the name of the tensor in the op family */
	int tensor;
};

struct chain_step {
	const char *op, *description;
	struct chain_arg inputs[CHAIN_ARGS], outputs[CHAIN_ARGS];
	int input_count, output_count;
	const char *constants[CHAIN_CONSTANTS];
	double values[CHAIN_CONSTANTS];
	int constant_count;
};

struct chain {
	struct chain_step steps[CHAIN_STEPS];
	int step_count;
	struct chain_tensor tensors[CHAIN_STEPS * CHAIN_ARGS];
	int tensor_count;
};

/* Reads a chain from `json`. `text` and `at` are used only in messages: `text` is the file that contains `json`, and
 * `at` is the position of `json` in it (NULL: `json` is the whole text). Returns NULL with a message if a step uses a
 * tensor that no earlier step makes, if a tensor is made twice, or if no step makes an output of the definition. */
const struct chain *chain_read(const struct json_text *text, const struct json_step *at, const cJSON *json,
			       const struct chain_scope *scope, struct arena *arena, struct err *err);

#endif
