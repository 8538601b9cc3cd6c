/* definition - one kernel's contract: axes, inputs, outputs, and the PyTorch `reference` to verify.
 *
 * The struct contains only data, which is in the caller's arena. dataset/definition_parse.h returns only valid
 * definitions. Each axis named in the shape of a tensor exists in `axes`. Names of inputs are Python identifiers. The
 * values of const axes are integers from 0 to 2^53 - 1, which JSON represents exactly. These values do not violate the
 * constraints. The size of a tensor in bytes does not overflow. To add a field to the schema, see the list of places in
 * docs/architecture.md. */
#ifndef REFTEST_DATASET_DEFINITION_H
#define REFTEST_DATASET_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/err.h"

enum {
	RANK_MAX = 16,
	RANK_SCALAR = -1,
	DEFINITION_BYTES = 16 << 20, /* the maximum size of a definition file */
	DEFINITION_AXES = 128,       /* the maximum number of axes */
	DEFINITION_TENSORS = 64,     /* the maximum number of inputs, and of outputs */
	DEFINITION_READS = 16,       /* the maximum number of files that a reference reads */
	READ_PATH_BYTES = 1024,      /* the maximum length in bytes of the path of a file that a reference reads */
	READ_FILE_BYTES = 32 << 20   /* the maximum size of a file that a reference reads */
};

struct axis {
	const char *name;
	/* True if each case chooses the value of the axis; `value` is then 0. False if the value is constant or follows
	 * from constraints and const axes. */
	bool var;
	int64_t value; /* the value of a const axis */
};

struct tensor_spec {
	const char *name;
	enum dtype dtype;
	int rank;             /* RANK_SCALAR: a Python scalar ("shape": null); 0: a 0-D tensor ("shape": []) */
	int axis[RANK_MAX];   /* for each dimension, the index of its axis in definition.axes */
	bool optional;        /* the value may be None; only inputs can be optional */
	const char *description; /* "" when absent */
	/* the name of the parameter through which the reference gets this tensor; NULL: the same as the tensor's
	 * `name` */
	const char *param;
};

struct tolerance {
	/* A negative number means that the definition does not give this bound; hit_ratio is in (0, 1]. */
	double atol, rtol, hit_ratio;
};

enum input_code_kind { INPUT_CODE_NONE, INPUT_CODE_INIT, INPUT_CODE_ENTRYPOINT };

/* The Python function in `init` or in the reference that makes the inputs of a definition. */
struct input_code {
	enum input_code_kind kind;
	const char *function; /* the name of the function; NULL: there is none */
	const char *missing;  /* the reason why `function` is NULL; otherwise NULL */
	const char *place;    /* the position of the field that names the function: "definitions/norm/x.json:12:11" */
	/* given[i] says whether the value of axis i is passed to the function. If the value of a var axis is not
	 * passed, it follows from the shapes of the tensors that the function returns. */
	const bool *given;
};

struct definition {
	const char *name;
	/* The name of the folder that contains the definition's file. If the folder is unknown: the member "op_type",
	 * or "" if this member is absent. */
	const char *op_type;
	const char *description; /* "" when absent */
	const char *const *tags;
	int tag_count;
	const struct axis *axes; /* in file order */
	const char *const *axis_descriptions; /* one description for each axis; "" when absent */
	/* NULL: no axis has an expression. Otherwise, the array has one element for each axis: the text of the axis's
	 * expression, or NULL if the axis has none. The length of an axis is the value of its expression over other
	 * axes (dataset/axis_expressions.h). An axis with an expression is var if the expression depends on var axes.
	 * If a "shape" contains a number or an expression instead of the name of an axis, definition_parse adds an axis
	 * whose name is this number or expression. */
	const char *const *axis_expressions;
	int axis_count;
	const struct tensor_spec *inputs; /* in the order of the file; run() gets inputs as keyword arguments */
	int input_count;
	bool has_other_names; /* the name of some input is not ASCII or is a Python keyword */
	/* Names of arguments that no case passes to run(): options, which are not tensors, and optional inputs of
	 * unknown dtype. If one of these arguments has a `param`, the list contains both its name and its `param`. */
	const char *const *left_out;
	int left_out_count;
	const char *unverifiable; /* the position in the file and the reason why no case can run; NULL: cases can run */
	/* In the order of the file. If run() returns a tuple, the elements of the tuple are the outputs in this
	 * order. */
	const struct tensor_spec *outputs;
	int output_count;
	/* Texts of the constraints. The first constraint_count constraints can be checked (dataset/constraint.h). The
	 * unchecked_count constraints after them cannot be checked; `notes` says why. */
	const char *const *constraints;
	int constraint_count, unchecked_count;
	/* The files that the reference reads: paths relative to the root, sorted, without duplicates. No component of a
	 * path begins with '.', so hidden files cannot be named. The upstream schema has no such list. */
	const char *const *reads;
	int read_count;
	/* The name of a FlashInfer function, from the tag "fi_api:…": for example "flashinfer.norm.rmsnorm". NULL if
	 * there is no such tag. */
	const char *fi_api;
	const char *hf_id; /* the model from which the operation comes, for example "Qwen/Qwen3-8B"; or NULL */
	/* The name of the function that makes the inputs of kind SOURCE_CUSTOM (dataset/workload.h), or NULL. The
	 * function should be in the reference, but may be missing there. */
	const char *custom_inputs_entrypoint;
	const char *init;   /* Python source of a function that makes the inputs of a case; "" when absent */
	/* The code of custom_inputs_entrypoint if there is one, otherwise the code of `init`. */
	struct input_code input_code;
	const char *check;  /* Python source that compares outputs; reftest does not run it; "" when absent */
	/* Python source, NUL-terminated, as decoded from the JSON string; "" if the file has no reference. Only a
	 * definition with `fi_api` may lack a reference. Without a reference, `unverifiable` is set. */
	const char *reference;
	size_t reference_length;
	/* The name of the function in the reference that reftest calls: "run", or a name that ends with "_reference";
	 * NULL if there is no reference. */
	const char *entry_point;
	int reference_line;                   /* the line of the JSON file where the reference string begins */
	/* The object "tolerance" {"atol", "rtol", "hit_ratio"} at top level. The upstream schema has no such object, so
	 * most definitions have only negative values here. */
	struct tolerance tolerance;
	/* The text of the member "ground_truth" (dataset/truth_chain.h); NULL if there is no such member. */
	const char *chain;
	/* For each output, its object "tolerance"; output_count elements. */
	const struct tolerance *output_tolerance;
	const char *const *notes; /* messages that are not errors: unknown fields, unchecked constraints, … */
	int note_count;
};

/* Returns whether a call of the reference's function must be fitted to the function's parameters. A fitted call omits
 * each input for which the function has no parameter. It also omits each input that is None, if the parameter has a
 * default. A call that need not be fitted passes every input by name. */
bool definition_fits_arguments(const struct definition *definition);

/* The next two functions return the index of the axis or of the input with the name `name`, or -1 if there is none. */
int definition_axis(const struct definition *definition, const char *name);
int definition_input(const struct definition *definition, const char *name);

/* Returns the size of a tensor in bytes. `axis` has the length of each axis of the definition; a negative length counts
 * as 1. Returns 0 for a Python scalar, and -1 if the tensor has more than 2^48 bytes, which no machine has. */
int64_t definition_bytes(const struct tensor_spec *tensor, const int64_t *axis);

/* Returns a text with the shape and the dtype as torch writes them: "(8, 4096) bfloat16". A shape with one axis is
 * "(8,)", and a shape without axes is "()". */
const char *tensor_type_text(struct arena *arena, int rank, const int64_t *shape, const char *dtype);

#endif
