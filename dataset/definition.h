/* definition - one kernel's contract: axes, inputs, outputs, and the PyTorch `reference` to verify.
 *
 * The struct contains only data, which is in the caller's arena. dataset/definition_load.h returns only valid
 * definitions. Every axis that a tensor names exists. Names of inputs are Python identifiers. The values of const axes
 * are integers from 0 to 2^53 - 1, which JSON represents exactly. They violate no constraint. The size of a tensor in
 * bytes does not overflow. docs/architecture.md lists the places that a new field of the schema must be added to. */
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
	DEFINITION_BYTES = 16 << 20, /* the most bytes of a file */
	DEFINITION_AXES = 128,       /* the most axes of a definition */
	DEFINITION_TENSORS = 64,     /* the most inputs of a definition; also the most outputs */
	DEFINITION_READS = 16,       /* the most files that a reference may read */
	READ_PATH_BYTES = 1024,      /* the most bytes of the path of a file that a reference may read */
	READ_FILE_BYTES = 32 << 20   /* the most bytes of a file that a reference may read */
};

struct axis {
	const char *name;
	/* True if each case sets the value; `value` is then 0. An axis whose value follows from constraints and const
	 * axes is not var. */
	bool var;
	int64_t value; /* the value of a const axis */
};

struct tensor_spec {
	const char *name;
	enum dtype dtype;
	int rank;             /* RANK_SCALAR for "shape": null, a Python scalar; 0 for "shape": [], a 0-D tensor */
	int axis[RANK_MAX];   /* for each dimension, the index of its axis in definition.axes */
	bool optional;        /* the value may be None; only inputs can be optional */
	const char *description; /* "" when absent */
	const char *param; /* the name of the function's argument if it may differ from `name`; otherwise NULL */
};

struct tolerance {
	/* A negative number means that the definition does not give this bound; hit_ratio is in (0, 1]. */
	double atol, rtol, hit_ratio;
};

enum input_code_kind { INPUT_CODE_NONE, INPUT_CODE_INIT, INPUT_CODE_ENTRYPOINT };

/* The function that makes the inputs of a definition. The code of the function is in `init` or in the reference. */
struct input_code {
	enum input_code_kind kind;
	const char *function; /* the function that is called; NULL: none */
	const char *missing;  /* if there is no function to call, the reason why; otherwise NULL */
	const char *place;    /* the position of the field that names the function: "definitions/norm/x.json:12:11" */
	/* For each axis: whether the function gets the value of the axis. The values of the other var axes come from
	 * the shapes that the function returns. */
	const bool *given;
};

struct definition {
	const char *name;
	/* The name of the file's folder. If the folder is unknown: the member "op_type", or "" if this member is
	 * absent. */
	const char *op_type;
	const char *description; /* "" when absent */
	const char *const *tags;
	int tag_count;
	const struct axis *axes; /* in file order */
	const char *const *axis_descriptions; /* one description for each axis; "" when absent */
	/* NULL: no axis has an expression. Otherwise, the array has one element for each axis: the text of the axis's
	 * expression, or NULL if the axis has none. The length of an axis is the value of its expression over other
	 * axes (dataset/axis_expressions.h). An axis with an expression is var if the expression depends on var axes. A
	 * size or an expression in a "shape" also becomes an axis, whose name is the text in the "shape". */
	const char *const *axis_expressions;
	int axis_count;
	const struct tensor_spec *inputs; /* in the order of the file; run() gets inputs as keyword arguments */
	int input_count;
	bool has_other_names; /* some input has a name that is not valid for a Python argument */
	/* Names of arguments that no case passes: options, which are not tensors, and optional inputs of unknown dtype.
	 * If one of these arguments has a `param`, the list contains both its name and its `param`. */
	const char *const *left_out;
	int left_out_count;
	const char *unverifiable; /* the position in the file and the reason why no case can run; NULL: cases can run */
	/* In the order of the file. If run() returns a tuple, the elements of the tuple are the outputs in this
	 * order. */
	const struct tensor_spec *outputs;
	int output_count;
	/* Texts of the constraints. The first constraint_count constraints can be checked (dataset/constraint.h). The
	 * other constraints, unchecked_count of them, cannot be checked. `notes` say why. */
	const char *const *constraints;
	int constraint_count, unchecked_count;
	/* The files that the reference reads: paths relative to the root, sorted, without duplicates. No part of a path
	 * begins with '.', so hidden files cannot be named. The upstream schema has no such list. */
	const char *const *reads;
	int read_count;
	/* The function of FlashInfer in the tag "fi_api:…", for example "flashinfer.norm.rmsnorm"; or NULL. */
	const char *fi_api;
	const char *hf_id; /* the model from which the operation comes, for example "Qwen/Qwen3-8B"; or NULL */
	/* The name of the function in the reference that makes the inputs of kind SOURCE_CUSTOM (dataset/workload.h);
	 * may be NULL. The reference may lack this function. */
	const char *custom_inputs_entrypoint;
	const char *init;   /* Python source of a function that makes inputs; "" when absent */
	/* The code of custom_inputs_entrypoint if there is one, otherwise the code of `init`. */
	struct input_code input_code;
	const char *check;  /* Python source of a comparison, which reftest does not run; "" when absent */
	/* Python source, NUL-terminated, as decoded from the JSON string; "" if the file has no reference. Only a
	 * definition with `fi_api` may lack a reference. Without a reference, `unverifiable` is set. */
	const char *reference;
	size_t reference_length;
	/* The name of the function that is called in the reference: "run", or a name that ends with "_reference"; NULL
	 * if there is no reference. */
	const char *entry_point;
	int reference_line;                   /* the line of the JSON file where the reference string begins */
	/* The object "tolerance" {"atol", "rtol", "hit_ratio"} at top level. The upstream schema has no such object, so
	 * most definitions have only negative values here. */
	struct tolerance tolerance;
	/* The text of the member "ground_truth" (dataset/truth_chain.h); NULL if there is no such member. */
	const char *chain;
	/* The object "tolerance" of each output, output_count elements. */
	const struct tolerance *output_tolerance;
	const char *const *notes; /* one message for each field that the schema does not know; these are not errors */
	int note_count;
};

/* Returns whether a call of the function must be fitted to the function's parameters. A fitted call omits an input if
 * the function has no parameter for it, or if the input is None and its parameter has a default. A call that need not
 * be fitted passes every input by name. */
bool definition_fits_arguments(const struct definition *definition);

/* The next two functions return the index of the axis or of the input with the name `name`, or -1 if there is none. */
int definition_axis(const struct definition *definition, const char *name);
int definition_input(const struct definition *definition, const char *name);

/* Returns the size in bytes of a tensor for these axis values. `axis` has one value for each axis; a negative value
 * counts as 1. Returns 0 for a Python scalar, and -1 if the tensor has more than 2^48 bytes, which no machine has. */
int64_t definition_bytes(const struct tensor_spec *tensor, const int64_t *axis);

/* Returns shape and dtype in the form that torch uses: "(8, 4096) bfloat16". Shapes with fewer axes are "(8,)" and
 * "()". */
const char *tensor_type_text(struct arena *arena, int rank, const int64_t *shape, const char *dtype);

#endif
