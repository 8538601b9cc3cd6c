/* definition - one kernel's contract: axes, inputs, outputs, and the PyTorch `reference` that is its truth.
 *
 * definition_load parses and validates the whole of one JSON file. What comes out is plain data in the caller's arena
 * and is valid in full: every axis a tensor names exists, axes and inputs have Python identifiers for names, const axes
 * hold 1 … 2^53 - 1 (JSON's exact integers), the axes alone break no constraint, and no tensor is so large that its
 * bytes cannot be counted. */
#ifndef REFTEST_DATASET_DEFINITION_H
#define REFTEST_DATASET_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/err.h"

enum {
	RANK_MAX = 8,
	RANK_SCALAR = -1,
	DEFINITION_BYTES = 16 << 20, /* the largest file that is read */
	DEFINITION_AXES = 128,       /* the most axes */
	DEFINITION_TENSORS = 32      /* the most inputs, and the most outputs */
};

struct axis {
	const char *name;
	bool var;      /* true: each case gives the value; `value` is 0 then */
	int64_t value; /* const axes: at least 1 */
};

struct tensor_spec {
	const char *name;
	enum dtype dtype;
	int rank;             /* RANK_SCALAR: "shape": null, a Python scalar; 0: "shape": [], a 0-D tensor */
	int axis[RANK_MAX];   /* index into definition.axes for each dimension */
	bool optional;        /* inputs only: may be passed as None */
};

struct tolerance {
	double atol, rtol, hit_ratio; /* negative = not given here; hit_ratio in (0, 1] */
};

struct definition {
	const char *name, *op_type, *description; /* description: "" when absent */
	const char *const *tags;
	int tag_count;
	const struct axis *axes; /* in file order */
	int axis_count;
	const struct tensor_spec *inputs; /* in file order; run() is called with keywords */
	int input_count;
	const struct tensor_spec *outputs; /* in file order: a tuple that run() returns maps to them in this order */
	int output_count;
	const char *const *constraints; /* texts, all of which parse (dataset/constraint.h) */
	int constraint_count;
	const char *reference; /* Python source, NUL-terminated, as decoded from the JSON string */
	size_t reference_length;
	int reference_line;                   /* line of the JSON file on which the reference string stands */
	struct tolerance tolerance;           /* "tolerance": {"atol", "rtol", "hit_ratio"} at top level; not in the
	                                         schema upstream, so all negative in most files */
	const struct tolerance *output_tolerance; /* the same inside an output's spec, output_count of them */
	const char *const *notes; /* fields that the schema does not know: a sentence each, never an error */
	int note_count;
};

/* `path` is shown in errors ("definitions/gemm/x.json:3:10: …"). `bytes` is the file as read; the definition keeps
 * nothing of it (everything is copied into `arena`). NULL with one sentence: the first thing that is wrong. `stem`
 * and `folder`, when not NULL, are the file's stem and op_type folder, which name and op_type must equal. */
const struct definition *definition_load(const char *path, const char *folder, const char *stem, const void *bytes,
                                         size_t length, struct arena *arena, struct err *err);

/* Index of the axis, input or output of that name; -1 if there is none. */
int definition_axis(const struct definition *definition, const char *name);
int definition_input(const struct definition *definition, const char *name);
int definition_output(const struct definition *definition, const char *name);

/* Bytes of a tensor when the axes have these values (one for each axis; negative counts as 1): 0 for a Python scalar,
 * -1 if there are more than 2^48, which no machine has. */
int64_t definition_bytes(const struct tensor_spec *tensor, const int64_t *axis);

#endif
