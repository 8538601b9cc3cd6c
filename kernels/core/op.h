/* op - the interface that an op family implements. The folder kernels/{family}/ contains the whole family, and no
 * source outside that folder names the family:
 *
 *   {family}.c      `const struct op {family}_op`: match, roles, sizes, constants, rule, inputs, and the CPU oracle
 *   {family}.cu     `const struct op_cuda {family}_cuda`: fills the same inputs and computes the truth on a GPU
 *   input_values.h  computes each input element for both files, with integer arithmetic and exact scaling only
 *
 * A large family has further files in its folder. Code that several families share is in kernels/common/.
 * docs/adding-an-op-family.md says what each member is for, and lists the tests and pages that a new family needs.
 *
 * make writes build/ops.inc, which lists the folder names and a digest of each folder's sources. The files
 * kernels/core/ops.c and kernels/core/device_cuda.cu include build/ops.inc. The code of an op family must not use
 * files, caches or processes. */
#ifndef REFTEST_KERNELS_CORE_OP_H
#define REFTEST_KERNELS_CORE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"
#include "base/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OP_RANK = 16, OP_CONSTANTS = 8, OP_ARGS = 64, OP_EDGES = 32, OP_SCALAR = -1 };
/* OP_KEPT: the value of op_in_place.place for an input that the reference must not change. OP_PLACES: the largest
 * length of op.oracle's array `out`. */
enum { OP_KEPT = -1, OP_PLACES = 2 * OP_ARGS };

/* A tensor in the memory of one device, row-major and dense, aligned to 256 bytes. */
struct tensor {
	void *data; /* NULL: an absent optional input */
	enum dtype dtype;
	int rank; /* OP_SCALAR: a Python scalar, whose value is in op_case.scalar and whose data is NULL */
	int64_t shape[OP_RANK];
	int64_t elements;
};

struct op_axis {
	const char *name;
	bool var;
	int64_t value; /* the length of a const axis; 0 for a var axis */
};

struct op_arg {
	const char *name;
	enum dtype dtype;
	int rank; /* OP_SCALAR, or 0 … OP_RANK */
	int axis[OP_RANK]; /* index into problem.axes */
	bool optional;
	const char *description; /* NULL: none */
};

/* The part of a definition that an op family may read. A family never sees the source code of the reference, because
 * reftest verifies that code. */
struct op_problem {
	const char *name, *op_type, *description; /* op_type: "" if the definition has none */
	const char *const *tags;
	int tag_count;
	const struct op_axis *axes;
	int axis_count;
	const struct op_arg *inputs;
	int input_count;
	const struct op_arg *outputs;
	int output_count;
};

/* A number that the definition's schema does not contain, such as the epsilon of a norm, and the source that states its
 * value. */
struct op_constant {
	char name[24];
	double value;      /* NaN: no source states the value, and a probe case must recover it */
	char source[104];  /* "axis:eps", "name", "model:llama-3.1-8b", "description", "unattested" */
	char conflict[256]; /* "", or a sentence that names a source with a different value */
};

/* Every case runs on two sets of input values with the same shapes. Random inputs differ between the two sets, because
 * the second set has a seed of its own (op_case_set_contents). Each family also makes the Python scalars (op.scalar)
 * differ: for example, the first set uses the scale that models use, 1 / sqrt(head dim), and the second set uses
 * another scale. */
enum op_contents { CONTENTS_FIRST, CONTENTS_SECOND, CONTENTS_COUNT };

/* One case: a problem with a value for every axis. The C library and the CUDA library use the same memory layout of
 * this struct. */
struct op_case {
	const struct op_problem *problem;
	int variant;              /* the variant that op.match returned */
	const int64_t *axis;      /* one value for each axis of the problem */
	uint64_t seed;
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
	double scalar[OP_ARGS];   /* values of Python-scalar inputs, by input index */
	int probe;                /* 1: a probe case, from whose outputs hidden constants are recovered; else 0 */
	int edge;                 /* 0: an ordinary case; else 1 + the index into op.edges */
	/* Bit i is set if a workload provides input i, as a file's tensor or as a number. The inputs that op.fill
	 * writes must be valid together with any provided values. For example, the indices that a workload provides may
	 * point to any row of a tensor that op.fill writes. */
	uint64_t given;
	uint64_t absent;          /* bit i is set if the case omits the optional input i (None) */
	enum op_contents contents;
	/* 0: op.oracle computes the definition; else, it computes what a reference with this mistake would compute
	 * (op_mistake). Only op.oracle reads this number. Each family numbers its own mistakes. */
	int mistake;
	double mistake_by; /* a parameter of the mistake: op_mistake.by */
};

/* The tolerance rule of an output: |reference - ground_truth| <= atol + rtol |ground_truth| must hold for at least the
 * fraction hit_ratio of the elements. */
struct rule {
	double atol, rtol;
	double hit_ratio; /* 1: all elements */
};

/* An edge case, which --edge adds: for example, a dimension is empty, all lengths are 1, or known implementations
 * disagree. If implementations disagree, reftest applies one convention (op_edge.convention). The result of an edge
 * case is a finding, which reftest reports beside the verdict. */
struct op_edge {
	const char *name;       /* the edge's name in the id of the case: "no_rows" */
	const char *convention; /* in words, for messages: "an input without rows gives an output without rows" */
};

/* The values that an input must hold after the reference ran: those of the oracle's out[place], within the bounds that
 * op.rule returns for `place`. */
struct op_in_place {
	/* OP_KEPT: the reference must not write to the input. The index of an output: the operation may write this output
	 * over the input. op_own_place(problem, input): the oracle writes a separate truth of the input at this index. */
	int place;
	bool may_keep; /* true: an input that the reference left unchanged also passes */
};

/* A range of values; both ends are inclusive. */
struct op_range {
	double least, most;
};

enum op_size { SIZE_SMALL, SIZE_MEDIUM, SIZE_LARGE, SIZE_COUNT };

/* The role of an input or output in the operation, such as "residual" or "kv_indptr". The role does not depend on the
 * name that the definition gives to the tensor. The Python code that calls other libraries, and generated tests, read
 * the family's table of roles through kernels/core/roles.h. The name of a role matches [a-z0-9_]+. OP_ROLE and
 * OP_ROLE_OUTPUT build the entries of the table. */
struct op_role {
	const char *name;
	/* The offset of an int in the struct that op.bind fills. The int is the tensor's index, or -1 if the tensor is
	 * absent. */
	short at;
	bool output; /* true: the role belongs to an output */
};

/* A name for a property that op.match recognised. The mode holds if (variant & mask) == value. */
struct op_mode {
	const char *name;
	int mask, value;
};

/* OP_ROLES_SIZE: the largest size of a family's struct of roles, in bytes. OP_MODES: the largest number of modes of a
 * family. */
enum { OP_ROLES_SIZE = 512, OP_MODES = 32 };

/* The offset of `member`, an int of the struct `type`, which op.bind fills. A member of any other type does not
 * compile. */
#define OP_ROLE_AT(type, member)                                                                                          \
	((short)(offsetof(type, member) +                                                                                 \
		 0 * sizeof(char[_Generic(((type *)0)->member, int: sizeof(type) <= OP_ROLES_SIZE ? 1 : -1)])))
#define OP_ROLE(name, type, member)	   {name, OP_ROLE_AT(type, member), false}
#define OP_ROLE_OUTPUT(name, type, member) {name, OP_ROLE_AT(type, member), true}

/* A mistake that people make in references of a family. If a reference fails, the judge computes the operation with the
 * mistake, and reports the mistake if the result agrees with the reference everywhere (kernels/core/diagnosis.h). Each
 * family lists its mistakes in op.mistakes; kernels/core/mistakes.h has the functions for `before` and `after`. */
struct op_variation;
struct op_coverage;
enum { OP_NARROWER = 3 };
struct op_mistake {
	const char *says; /* the end of the sentence "behaves as if …": "kv heads were tiled, not interleaved" */
	/* `before` changes the case or its inputs before the oracle runs; `after` changes the outputs. Both functions
	 * return false if the case has nothing to change; the mistake then does not explain the failure. NULL: nothing
	 * is changed. */
	bool (*before)(struct op_variation *variation, const struct op_mistake *mistake);
	bool (*after)(struct op_variation *variation, const struct op_mistake *mistake);
	const char *role, *other; /* roles of the tensors that are changed, as in op.roles */
	double by;                /* a parameter of the change: a factor, a limit, a dtype, … */
	int in_oracle;            /* op_case.mistake while the oracle runs; op_case.mistake_by is then `by` */
	/* The narrower mistakes: each number is the member `in_oracle` of an earlier row of the table; 0 ends the list.
	 * Outputs with a narrower mistake also agree with this mistake, for example because this mistake leaves the
	 * order of ties open. If a narrower mistake explains a case, this mistake is not reported. */
	int narrower[OP_NARROWER];
	/* true: if op.check would reject the changed inputs in a workload, the mistake is not tried. This is needed if the
	 * mistake changes indices: the oracle could then read outside of its tensors. */
	bool checked;
};

struct op {
	const char *name;             /* the name of the family's folder */
	const char *const *op_types;  /* NULL-terminated list of the op_types that this family may match */
	/* NULL-terminated list of the names of the operation, in lower case with '_' between words: "rms_norm". A
	 * definition whose name, fi_api tag or description contains one of these names states that it computes this
	 * operation (kernels/core/family_candidates.h). NULL: the names of the operation are those in op_types. */
	const char *const *words;

	/* Returns the variant (>= 0) if the family can compute the truth of the problem. Otherwise, returns -1 and
	 * stores the mismatch in `why` ("input 'weight' has shape [hidden_size], expected …"). Checks shapes and dtypes
	 * first, and names last. */
	int (*match)(const struct op_problem *problem, struct err *why);

	/* Both `roles` and `modes` end with an entry whose name is NULL. `bind` fills the family's struct of roles; the
	 * offsets in `roles` refer to this struct. Before `bind` is called, `match` has accepted the problem with this
	 * variant. `bind` must give every input and output exactly one role. `modes` is NULL if the variant shows only
	 * which optional roles are present. `roles`, `bind` and `modes` are NULL in an op.gradient; the forward
	 * family's members are used instead. */
	const struct op_role *roles;
	void (*bind)(const struct op_problem *problem, int variant, void *roles);
	const struct op_mode *modes;

	/* Lists the cases of a size preset: writes up to `room` rows of problem->axis_count values to `axis`, and
	 * returns the number of rows. A row has the lengths of the const axes and a value for every var axis. */
	int (*sizes)(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);

	/* `edges` lists the cases of --edge (at most OP_EDGES) and ends with an entry whose name is NULL. edge_axes
	 * writes the axis values of one edge case, as one row in the layout that `sizes` writes. If the problem has no
	 * such case, edge_axes returns false. The functions scalar, fill, oracle and judge read the edge from
	 * op_case.edge. The inputs of an edge case are always computed on the host, and copied if the device is a GPU.
	 * Both `edges` and `edge_axes` are NULL if the family has no edge cases. */
	const struct op_edge *edges;
	bool (*edge_axes)(const struct op_problem *problem, int variant, int edge, int64_t *axis);

	/* Writes the hidden constants (at most OP_CONSTANTS) and returns their number. NULL: the family has no hidden
	 * constants. */
	int (*constants)(const struct op_problem *problem, int variant, struct op_constant *out);

	/* Returns the tolerance rule of an output, or of an input with its own truth (op.in_place). Each family derives
	 * its tolerance rules in a comment. */
	struct rule (*rule)(const struct op_case *c, int output);

	/* Returns the values that an input must hold after the reference ran. NULL: every input must stay unchanged. */
	struct op_in_place (*in_place)(const struct op_case *c, int input);

	/* Returns the value of a Python-scalar input, which must differ between the two sets of input values. If the
	 * input's bit in op_case.absent is set, returns the scalar's default, or NaN if the family does not know a
	 * default. If the default is NaN, no case omits the scalar. NULL: the family has no Python scalars. */
	double (*scalar)(const struct op_case *c, int input);

	/* Writes the range of an input's values in the default cases (small and medium sizes, both sets of input
	 * values). NaN and infinities do not count. tests/unit/test_ranges.c verifies both ends of the range. Returns
	 * false if the input has no meaningful range, such as indices that only have to be valid. */
	bool (*range)(const struct op_problem *problem, int variant, int input, struct op_range *out);
	/* Returns a length that a var axis reaches or exceeds in some default case, or 0 if the length of the axis
	 * follows from other axes. */
	int64_t (*reach)(const struct op_problem *problem, int variant, int axis);
	/* Returns true if this operation draws random numbers from torch's generators. If `samples` returns false, the
	 * output must not depend on the seeds of these generators. NULL: the operation draws no random numbers. */
	bool (*samples)(const struct op_case *c);

	/* Fills one tensor input on the host. The bytes depend only on the case, the input's name and the seed (Philox,
	 * kernels/core/random_inputs.h), and equal the bytes that op_cuda.fill writes. Returns 0 or -1. */
	int (*fill)(const struct op_case *c, int input, struct tensor *out, struct err *err);

	/* Checks the axes and inputs that a workload provides and that the family uses as indices, offsets, lengths or
	 * divisors. Returns 0 if the axes and inputs are valid. Otherwise, returns -1 with a message in `err`, and the
	 * case is reported as invalid. The judge calls `check` before the reference runs: first while no tensor exists
	 * (Python scalars are in op_case.scalar), and again once the provided tensors are loaded. `in` is on the host;
	 * a tensor with data NULL is not loaded and is not checked. NULL: the family has nothing to check. */
	int (*check)(const struct op_case *c, const struct tensor *in, struct err *err);

	/* Computes the operation's definition in plain C: accumulates in double and rounds once, to the output's dtype.
	 * `in` holds problem->input_count tensors on the host, equal to those that the reference got. `out` starts with
	 * the problem's output_count outputs. After the outputs, at op_own_place, follows the truth of each input that
	 * has its own truth. If the `data` of such an entry is NULL, its truth was not requested. A family whose inputs
	 * have no truth of their own never accesses the entries after the outputs. Returns 0 or -1. */
	int (*oracle)(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

	/* Computes hidden constants from the outputs of the reference for a case with probe = 1. A constant whose value
	 * is NaN is hidden, and gets the computed value. NULL: the family has no constant to recover. `in` and `out`
	 * are on the host. Returns 0 or -1. */
	int (*probe)(const struct op_case *c, const struct tensor *in, const struct tensor *out,
	             struct op_constant *constants, struct err *err);
	/* Writes the axis values of the probe case, as one row in the layout that `sizes` writes. NULL if `probe` is
	 * NULL. */
	void (*probe_axes)(const struct op_problem *problem, int variant, int64_t *axis);

	/* Judges, on the host, an output to which no elementwise tolerance rule applies, such as samples of a
	 * distribution or indices that are compared as sets. Returns 1 after judging output `output`: `metrics` is then
	 * complete, and `why` holds a sentence if the output did not pass. Returns 0 if the elementwise rule applies,
	 * and -1 on error. `in` has all inputs. `reference` is the output as the reference computed it, and `truth` is the
	 * output as the oracle or op_cuda.launch computed it. NULL: the elementwise rule applies to every output. */
	int (*judge)(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
	             const struct tensor *truth, struct metrics *metrics, struct err *why);
	/* Returns true if `judge`, instead of op.rule, judges this output. The result depends only on the problem and
	 * the variant. NULL if `judge` is NULL. */
	bool (*judges)(const struct op_case *c, int output);

	/* Judges an output on both sets of input values together, after `judge` passed the output on each set. Returns
	 * 0, or -1 with a message in `why` if the output fails. `c`, `outputs` (on the host) and `metrics` have one
	 * entry for each set. NULL: no output is judged on both sets together. */
	int (*judge_both)(const struct op_case *const *c, int output, const struct tensor *const *outputs,
	                  const struct metrics *const *metrics, struct err *why);

	/* Compares an output with the truth if `rule` does not bound each element but, for example, the norm of the output.
	 * Runs on the host and writes `metrics`; if the output did not pass, also writes `why`. NULL: the rule applies to
	 * each element. */
	void (*weigh)(const struct op_case *c, int output, struct rule rule, const struct tensor *reference,
	              const struct tensor *truth, struct metrics *metrics, struct err *why);

	/* Computes the gradients of this family's operation: an op for the gradient problem of a definition
	 * (kernels/core/gradient_bounds.h). NULL: the family has no gradients. */
	const struct op *gradient;

	/* Mistakes that people make in references of this family; the list ends with an entry whose `says` is NULL. If
	 * the list is NULL, only mistakes that are possible in any operation are recognised. */
	const struct op_mistake *mistakes;
	/* The checklist of the family (kernels/core/coverage.h); it ends with an entry whose name is NULL. Only an
	 * op.gradient has no checklist (NULL). */
	const struct op_coverage *coverage;
	/* true: every value of a hidden constant is right, because the schema leaves the choice open. false: if no source
	 * states a constant, the best verdict of a case is `checked`. */
	bool free_constants;
	bool on_host; /* true: the host computes inputs and truth for every device, because the family has no op_cuda */
};

/* The part of a family that runs on a GPU, in {family}.cu. `stream` is a cudaStream_t; `fill` and `launch` run all work
 * on this stream asynchronously. */
struct op_cuda {
	const char *name;
	/* Fills an input in device memory, with the same bytes as op.fill. Returns 1 for an input, such as offsets,
	 * that op.fill must fill on the host and the caller must copy to the device. NULL: every input is filled on the
	 * host. */
	int (*fill)(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
	/* Computes the truth, like op.oracle, but accumulates in float32. The results are deterministic, and addresses
	 * are computed in 64 bits. `scratch` has scratch_bytes(c) bytes. */
	int (*launch)(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
	              struct err *err);
	int64_t (*scratch_bytes)(const struct op_case *c); /* NULL: launch needs no scratch memory */
};

/* One family; the table is sorted by name. A digest is 32 hex digits, computed over source files. `truth_digest` covers
 * the family's whole folder and the code that all families share. `inputs_digest` covers the family's host code
 * (inputs, sizes, rule, judge) and the shared code that the host code uses. Both digests cover this header and
 * ops.c. */
struct op_entry {
	const struct op *op;
	const char *truth_digest, *inputs_digest;
};
extern const struct op_entry op_table[];
extern const int op_count;

/* Finds the family for a problem: the first family whose op_types contain the problem's op_type and whose match accepts
 * the problem. If no family matches, returns NULL and writes a sentence with the reasons to `why`. */
const struct op_entry *op_find(const struct op_problem *problem, int *variant, struct err *why);
const struct op_entry *op_by_name(const char *name);

/* Look up an axis or an input by name, for op.match. The result is -1 if no axis or input has that name. */
int op_axis_index(const struct op_problem *problem, const char *name);
int op_input_index(const struct op_problem *problem, const char *name);

/* Implements op.in_place for families in which the new values of an input are the output with the same name. */
struct op_in_place op_in_place_namesake(const struct op_case *c, int input);

/* Implements op.in_place for an input whose new content is an output. The operation may write the output over the input
 * if input and output have the same name, or if the description of the input or of the output says "in place".
 * Otherwise, the input must stay unchanged. If the description of the definition says "in place", the operation must
 * write. The description of a tensor does not oblige the operation to write: in published definitions, such a
 * description is about the kernel, while the reference updates a copy. */
struct op_in_place op_in_place_as_said(const struct op_case *c, int input, int output);

/* Switches the case `c` to the first or second set of input values; `seed` is the seed of the first set. */
static inline void op_case_set_contents(struct op_case *c, uint64_t seed, enum op_contents contents)
{
	c->contents = contents;
	c->seed = contents == CONTENTS_FIRST ? seed : seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns the seed that the first set of input values of case `c` has. */
static inline uint64_t op_case_first_seed(const struct op_case *c)
{
	return c->contents == CONTENTS_FIRST ? c->seed : c->seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns the index, in op.oracle's `out`, of the separate truth of an input that the operation writes to
 * (op.in_place). These indices follow the indices of the outputs. */
static inline int op_own_place(const struct op_problem *problem, int input)
{
	return problem->output_count + input;
}

/* Returns tensors[index]. If `index` is -1 (the problem has no tensor of the role), returns a tensor without data. */
static inline struct tensor op_tensor(const struct tensor *tensors, int index)
{
	static const struct tensor none = {NULL, DTYPE_FLOAT32, 0, {0}, 0};

	return index < 0 ? none : tensors[index];
}

/* For op.sizes. op_start_axes sets every const axis to its length and every var axis to `value`. op_set_axis sets an
 * axis to `value` if it is var. */
void op_start_axes(const struct op_problem *problem, int64_t value, int64_t *axis);
void op_set_axis(const struct op_problem *problem, int at, int64_t value, int64_t *axis);

/* For op.edge_axes: writes the axes of the first case of the family's small preset (`sizes`), but gives one axis the
 * length `rows`. This axis is the first var axis of the first output, except the output's last axis. Returns false if
 * there is no such axis. */
bool op_edge_rows(int (*sizes)(const struct op_problem *, int, enum op_size, int64_t *, int),
                  const struct op_problem *problem, int variant, int64_t rows, int64_t *axis);

/* Writes a tensor's shape as axis names, for messages: "[batch_size, hidden_size]", "[]", "a Python scalar". */
const char *op_shape_text(const struct op_problem *problem, const struct op_arg *arg, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
