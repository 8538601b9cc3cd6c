/* op - declares the interface that an op family implements. No source file outside of the folder kernels/{family}/
 * names the family. The folder contains the whole family:
 *
 *   {family}.c      `const struct op {family}_op`: match, roles, sizes, constants, rule, inputs, and the CPU oracle
 *   {family}.cu     `const struct op_cuda {family}_cuda`: fills the same inputs and computes the truth on a GPU
 *   input_values.h  computes each input element for both files, with integer arithmetic and exact scaling only
 *
 * A large family has further files in its folder. Code that several families share is in kernels/common/.
 * docs/adding-an-op-family.md explains the members of struct op, and lists the tests and pages that a new family needs.
 *
 * make writes build/ops.inc, which lists the folder names and a digest of each folder's sources. The files
 * kernels/core/ops.c and kernels/core/device_cuda.cu include build/ops.inc. An op family must not use files, caches or
 * processes. */
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
/* OP_EVIDENCE: how many numbers op.judge may write for op.judge_both. */
enum { OP_EVIDENCE = 402 };
/* OP_KEPT: the value of op_in_place.place for an input that the reference must not change. OP_PLACES: the maximum
 * length of op.oracle's array `out`. */
enum { OP_KEPT = -1, OP_PLACES = 2 * OP_ARGS };

/* A tensor in the memory of one device, row-major and dense, aligned to 256 bytes. */
struct tensor {
	void *data; /* NULL: an optional input that is absent */
	enum dtype dtype;
	int rank; /* OP_SCALAR for a Python scalar; its value is in op_case.scalar, and its `data` is NULL */
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
	int rank; /* number of dimensions (0 … OP_RANK), or OP_SCALAR */
	int axis[OP_RANK]; /* indices into problem.axes */
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

/* A constant that the schema of definitions cannot express, such as the epsilon of a norm, and the source of its
 * value. */
struct op_constant {
	char name[24];
	double value;      /* NaN if no source states the value; a probe case must then recover the value */
	char source[104];  /* for example "axis:eps", "name", "model:llama-3.1-8b", "description", "unattested" */
	char conflict[256]; /* a sentence about a source that states a different value; "" if there is none */
};

/* Every case runs on two sets of input values with the same shapes. Random inputs differ between the two sets, because
 * each set has its own seed (op_case_set_contents). The Python scalars that the family chooses (op.scalar) also differ.
 * For example, the first set has the scale that models use, 1 / sqrt(head dim), and the second set has another
 * scale. */
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
	int probe;                /* 1 for a probe case, from whose outputs constants are recovered; else 0 */
	int edge;                 /* 0 for an ordinary case; else 1 + the index into op.edges */
	/* Bit i is set if a workload provides input i, as a tensor in a file or as a number. The inputs that op.fill
	 * writes must be valid for any values that a workload provides. For example, provided indices may point to any
	 * row of a tensor that op.fill writes. */
	uint64_t given;
	uint64_t absent;          /* bit i is set if the case omits the optional input i (None) */
	enum op_contents contents;
	/* If 0, op.oracle computes the correct outputs. Otherwise, op.oracle computes the outputs of a reference with
	 * this mistake (op_mistake). Only op.oracle reads this number. Each family numbers its own mistakes. */
	int mistake;
	double mistake_by; /* a parameter of the mistake: op_mistake.by */
};

/* The tolerance rule of an output: |reference - ground_truth| <= atol + rtol |ground_truth| must hold for at least the
 * fraction hit_ratio of the elements. */
struct rule {
	double atol, rtol;
	double hit_ratio; /* 1: all elements must meet the bound */
};

/* An edge case, which the option --edge adds. For example, a dimension is empty, all lengths are 1, or known
 * implementations disagree. If implementations disagree, reftest applies one convention (op_edge.convention). The
 * result of an edge case is reported as a finding in addition to the verdict. */
struct op_edge {
	const char *name;       /* the edge's name in the id of the case, for example "no_rows" */
	const char *convention; /* the convention as a sentence for messages, for example "an input without rows gives
				 * an output without rows" */
};

/* After the reference has run, an input must have the values of the oracle's out[place], within the bounds that op.rule
 * returns for `place`. */
struct op_in_place {
	/* There are three kinds of values: OP_KEPT if the reference must not write to the input; the index of an output
	 * if the operation may write this output over the input; op_own_place(problem, input) if the input has a truth
	 * of its own, which the oracle writes at this index. */
	int place;
	bool may_keep; /* true if the input also passes when the reference has left it unchanged */
};

/* A range of values; both ends are inclusive. */
struct op_range {
	double least, most;
};

/* The lengths of a var axis in the default cases. Kernels process an axis in blocks, and mistakes often show at the end
 * of a block. */
struct op_reach {
	int64_t most;  /* at least one case has this length or a greater one; 0 if the length follows from other axes */
	int64_t block; /* one length is a multiple of `block`, and another is one more than a multiple. The same is
		        * true for powers of two below `block` if `block` is a power of two. 0: no block size is
		        * tested. */
};

enum op_size { SIZE_SMALL, SIZE_MEDIUM, SIZE_LARGE, SIZE_COUNT };

/* The role of an input or output in the operation, such as "residual" or "kv_indptr". The role does not depend on the
 * name that the definition gives to the tensor. Generated tests, and the Python code that calls other libraries, get
 * the family's table of roles through kernels/core/roles.h. The name of a role matches [a-z0-9_]+. OP_ROLE and
 * OP_ROLE_OUTPUT build the entries of the table. */
struct op_role {
	const char *name;
	/* The offset of an int in the struct that op.bind fills. The int is the tensor's index, or -1 if the tensor is
	 * absent. */
	short at;
	bool output; /* whether the role belongs to an output */
};

/* A name for a property that op.match recognised. The operation is in the mode if (variant & mask) == value. */
struct op_mode {
	const char *name;
	int mask, value;
};

/* OP_ROLES_SIZE: the maximum size of a family's struct of roles, in bytes. OP_MODES: the maximum number of modes of a
 * family. */
enum { OP_ROLES_SIZE = 512, OP_MODES = 32 };

/* The offset of the int `member` in the struct `type`. op.bind fills this struct. A member of any other type does not
 * compile. */
#define OP_ROLE_AT(type, member)                                                                                          \
	((short)(offsetof(type, member) +                                                                                 \
		 0 * sizeof(char[_Generic(((type *)0)->member, int: sizeof(type) <= OP_ROLES_SIZE ? 1 : -1)])))
#define OP_ROLE(name, type, member)	   {name, OP_ROLE_AT(type, member), false}
#define OP_ROLE_OUTPUT(name, type, member) {name, OP_ROLE_AT(type, member), true}

/* A mistake that people make in references of a family. If a reference fails, the judge computes the operation with
 * each mistake. The judge reports a mistake if the result agrees with all outputs of the reference
 * (kernels/core/diagnosis.h). Each family lists its mistakes in op.mistakes; kernels/core/mistakes.h has the functions
 * for `before` and `after`. */
struct op_variation;
struct op_coverage;
enum { OP_NARROWER = 4 };
struct op_mistake {
	const char *says; /* the end of the sentence "behaves as if …", for example "kv heads were tiled, not
			   * interleaved" */
	/* `before` changes the case or its inputs before the oracle runs; `after` changes the outputs. Both functions
	 * return false if the case has nothing to change; then the mistake does not explain the failure. NULL: the
	 * function is not needed. */
	bool (*before)(struct op_variation *variation, const struct op_mistake *mistake);
	bool (*after)(struct op_variation *variation, const struct op_mistake *mistake);
	const char *role, *other; /* the roles of the tensors that are changed or read, as in op.roles */
	double by;                /* a parameter of the change: a factor, a limit, a dtype, … */
	int in_oracle;            /* the oracle gets this value in op_case.mistake, and `by` in op_case.mistake_by */
	/* The mistakes that are narrower than this one. Each number is the member `in_oracle` of an earlier row of the
	 * table; 0 ends the list. If a reference contains a narrower mistake, its outputs also agree with this mistake,
	 * for example because this mistake allows any order of ties. If a narrower mistake explains a case, this one is
	 * not reported. */
	int narrower[OP_NARROWER];
	/* If true, the mistake is tried only if op.check accepts the changed inputs as if a workload provided them.
	 * This is needed if the mistake changes indices, because the oracle could then read outside of its tensors. */
	bool checked;
};

struct op {
	const char *name;             /* the name of the family's folder */
	const char *const *op_types;  /* the op_types that this family may match, followed by NULL */
	/* The names of the operation, in lower case with '_' between words, such as "rms_norm". The list ends with
	 * NULL. If the name, the fi_api tag or the description of a definition contains one of these names, the
	 * definition computes this operation (kernels/core/family_candidates.h). NULL: the names are those in
	 * op_types. */
	const char *const *words;

	/* Returns the variant (>= 0) if the family can compute the truth of the problem. Otherwise, returns -1 and
	 * describes the mismatch in `why`, as in "input 'weight' has shape [hidden_size], expected …". Checks shapes
	 * and dtypes first, and names last. */
	int (*match)(const struct op_problem *problem, struct err *why);

	/* `roles` and `modes` each end with an entry whose name is NULL. `bind` fills the family's struct of roles, to
	 * which the offsets in `roles` refer. `bind` is called for a problem that `match` accepted with this variant,
	 * and must assign exactly one role to every input and output. `modes` is NULL if variants differ only in which
	 * optional roles are present. In an op.gradient, `roles`, `bind` and `modes` are NULL; the forward family's
	 * `roles`, `bind` and `modes` are used instead. */
	const struct op_role *roles;
	void (*bind)(const struct op_problem *problem, int variant, void *roles);
	const struct op_mode *modes;

	/* Writes the cases of a size preset to `axis`, as up to `room` rows of problem->axis_count values, and returns
	 * the number of rows. A row contains the lengths of all axes, const and var. */
	int (*sizes)(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);

	/* `edges` lists the cases of --edge (at most OP_EDGES) and ends with an entry whose name is NULL. edge_axes
	 * writes the axis values of one edge case, as one row in the layout that `sizes` writes. edge_axes returns
	 * false if the problem has no such case. The functions scalar, fill, oracle and judge read the edge from
	 * op_case.edge. The inputs of an edge case are always computed on the host, and copied if the device is a GPU.
	 * Both `edges` and `edge_axes` are NULL if the family has no edge cases. */
	const struct op_edge *edges;
	bool (*edge_axes)(const struct op_problem *problem, int variant, int edge, int64_t *axis);

	/* Writes the constants that the schema of definitions cannot express, such as an epsilon, and returns their
	 * number, at most OP_CONSTANTS. NULL: the family has no such constants. */
	int (*constants)(const struct op_problem *problem, int variant, struct op_constant *out);

	/* Returns the tolerance rule of an output, or of an input with its own truth (op.in_place). Each family derives
	 * its tolerance rules in a comment. */
	struct rule (*rule)(const struct op_case *c, int output);

	/* Returns the values that an input must have after the reference has run. NULL: every input must stay
	 * unchanged. */
	struct op_in_place (*in_place)(const struct op_case *c, int input);

	/* Returns the value of a Python-scalar input, which must differ between the two sets of input values. If the
	 * input's bit in op_case.absent is set, returns the default of the scalar, or NaN if the family knows no
	 * default. If it returns NaN, no case omits the scalar. NULL: the family has no Python scalars. */
	double (*scalar)(const struct op_case *c, int input);

	/* Writes the range of an input's values in the default cases (small and medium sizes, both sets of input
	 * values). NaN and infinities do not count. tests/unit/test_ranges.c verifies both ends of the range. Returns
	 * false if the input has no meaningful range, such as indices that only have to be valid. */
	bool (*range)(const struct op_problem *problem, int variant, int input, struct op_range *out);
	/* Returns which lengths the var axis `axis` has in the default cases. tests/unit/test_ranges.c verifies these
	 * lengths. */
	struct op_reach (*reach)(const struct op_problem *problem, int variant, int axis);
	/* Returns true if this operation draws random numbers from torch's generators. If it returns false, the output
	 * must not depend on the seeds of these generators. NULL: the operation draws no random numbers. */
	bool (*samples)(const struct op_case *c);

	/* Fills one tensor input on the host. The bytes depend only on the case, the input's name and the seed (Philox,
	 * kernels/core/random_inputs.h). op_cuda.fill writes the same bytes. Returns 0 or -1. */
	int (*fill)(const struct op_case *c, int input, struct tensor *out, struct err *err);

	/* Checks the axes and the inputs that a workload provides, if the family uses them as indices, offsets, lengths
	 * or divisors. Returns 0 if they are valid. Otherwise, returns -1 with a message in `err`, and the case is
	 * reported as invalid. The judge calls `check` twice before the reference runs: first before any tensor exists
	 * (Python scalars are in op_case.scalar), and again after the provided tensors are loaded. `in` is on the host.
	 * A tensor whose `data` is NULL is not loaded, and is not checked. NULL: the family has nothing to check. */
	int (*check)(const struct op_case *c, const struct tensor *in, struct err *err);

	/* Computes the operation in plain C, straight from its definition: accumulates in double, and rounds once, to
	 * the output's dtype. `in` holds problem->input_count tensors on the host, equal to the inputs of the
	 * reference. `out` starts with the output_count outputs of the problem. After the outputs, at op_own_place,
	 * there is an entry for each input that has its own truth. If the `data` of such an entry is NULL, its truth is
	 * not requested. If no input has its own truth, the oracle must not access entries after the outputs. Returns 0
	 * or -1. */
	int (*oracle)(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

	/* Computes unknown constants, whose value is NaN, from the outputs of the reference for a case with probe = 1.
	 * Stores their values in `constants`. NULL: the family has no constant to recover. `in` and `out` are on the
	 * host. Returns 0 or -1. */
	int (*probe)(const struct op_case *c, const struct tensor *in, const struct tensor *out,
	             struct op_constant *constants, struct err *err);
	/* Writes the axis values of the probe case, as one row in the layout that `sizes` writes. NULL if `probe` is
	 * NULL. */
	void (*probe_axes)(const struct op_problem *problem, int variant, int64_t *axis);

	/* Judges, on the host, an output to which no elementwise tolerance rule applies, such as samples of a
	 * distribution or indices that are compared as sets. Returns 1 if it has judged output `output`: `metrics` is
	 * then complete, and `why` contains a sentence if the output did not pass. Returns 0 if the elementwise rule
	 * applies, and -1 on error. `in` contains all inputs. `reference` is the output of the reference, and `truth`
	 * is the output of the oracle or of op_cuda.launch. `evidence` has room for OP_EVIDENCE numbers, which `judge`
	 * writes for judge_both; it is NULL if the caller does not call judge_both. NULL: the elementwise rule applies
	 * to every output. */
	int (*judge)(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
	             const struct tensor *truth, struct metrics *metrics, double *evidence, struct err *why);
	/* Returns true if this output is judged by `judge` and not by op.rule. The result depends only on the problem
	 * and the variant. NULL if `judge` is NULL. */
	bool (*judges)(const struct op_case *c, int output);

	/* The sets of input values on which the reference runs in medium cases, if there are several such cases.
	 * Families whose references take much time have fewer runs. MEDIUM_RUNS_TWICE: every case runs on both sets.
	 * LAST_MEDIUM_RUNS_ONCE: the last case runs only on the first set, and every other case runs on both sets. This
	 * is for families whose last case differs from another case only in the number of rows. LAST_MEDIUM_RUNS_TWICE:
	 * the last case runs on both sets, and every other case runs on one set: the first case on the second set, the
	 * second case on the first set, and so on. A family with `judge_both` must not use this value. */
	enum op_medium_runs { MEDIUM_RUNS_TWICE, LAST_MEDIUM_RUNS_ONCE, LAST_MEDIUM_RUNS_TWICE } medium_runs;

	/* Judges an output on both sets of input values together, after `judge` passed the output on each set. Returns
	 * 0, or -1 with a message in `why` if the output fails. `c`, `outputs` (on the host) and `evidence` (what
	 * `judge` wrote) have one entry for each set. NULL: no output is judged on both sets together. */
	int (*judge_both)(const struct op_case *const *c, int output, const struct tensor *const *outputs,
	                  const double *const *evidence, struct err *why);

	/* Compares an output with the truth, in a family whose `rule` applies to the output as a whole, for example to
	 * its norm, and not to each element. Runs on the host. Writes `metrics` and, if the output does not pass,
	 * `why`. NULL: the rule applies to each element. */
	void (*weigh)(const struct op_case *c, int output, struct rule rule, const struct tensor *reference,
	              const struct tensor *truth, struct metrics *metrics, struct err *why);

	/* The op that computes the gradients of this family's operation, for the gradient problem of a definition
	 * (kernels/core/gradient_bounds.h). NULL: the family has no gradients. */
	const struct op *gradient;

	/* Mistakes that people make in references of this family. The list ends with an entry whose `says` is NULL. If
	 * `mistakes` is NULL, only mistakes that are possible in any operation are recognised. */
	const struct op_mistake *mistakes;
	/* The properties that `reftest coverage` lists for this family (kernels/core/coverage.h). The list ends with an
	 * entry whose name is NULL. `coverage` is NULL only in an op.gradient. */
	const struct op_coverage *coverage;
	/* If true, every value of a constant is right, because the schema leaves the choice open. If false and no
	 * source states a constant, the best verdict of a case is `checked`. */
	bool free_constants;
	bool on_host; /* whether the host computes inputs and truth for every device, because the family has no
		       * op_cuda */
};

/* The part of a family that runs on a GPU, in {family}.cu. `stream` is a cudaStream_t; `fill` and `launch` run all work
 * on this stream asynchronously. */
struct op_cuda {
	const char *name;
	/* Fills an input in device memory, with the same bytes as op.fill. Returns 1 for an input, such as offsets,
	 * that the caller must fill on the host with op.fill and copy to the device. NULL: every input is filled on the
	 * host. */
	int (*fill)(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
	/* Computes the truth as op.oracle does, but accumulates in float32. The results must be deterministic, and
	 * addresses must be computed in 64 bits. `scratch` has scratch_bytes(c) bytes. */
	int (*launch)(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
	              struct err *err);
	int64_t (*scratch_bytes)(const struct op_case *c); /* NULL: launch needs no scratch memory */
};

/* One family in the table of families, which is sorted by name. Digests are 32 hex digits, computed from source files.
 * `truth_digest` depends on the family's whole folder and on the code that all families share. `inputs_digest` depends
 * on the family's host code (inputs, sizes, rule, judge) and on the shared code that the host code uses. Both digests
 * depend on this header and on ops.c. */
struct op_entry {
	const struct op *op;
	const char *truth_digest, *inputs_digest;
};
extern const struct op_entry op_table[];
extern const int op_count;

/* Finds the family for a problem: the first family whose op_types contain the problem's op_type and whose match accepts
 * the problem. If no family matches, returns NULL and writes a sentence that gives the reasons to `why`. */
const struct op_entry *op_find(const struct op_problem *problem, int *variant, struct err *why);
const struct op_entry *op_by_name(const char *name);

/* Look up an axis or an input by name, for use in op.match. Return -1 if no axis or input has that name. */
int op_axis_index(const struct op_problem *problem, const char *name);
int op_input_index(const struct op_problem *problem, const char *name);

/* Implements op.in_place for families in which the new values of an input are in the output with the same name. */
struct op_in_place op_in_place_namesake(const struct op_case *c, int input);

/* Implements op.in_place for an input whose new values are in an output. The operation may write the output over the
 * input if input and output have the same name, or if the description of the input or of the output says "in place".
 * Otherwise, the input must stay unchanged. If the description of the definition says "in place", the operation must
 * write to the input. If "in place" stands only in the description of the input or of the output, the operation may
 * leave the input unchanged. In published definitions, such a description is about the kernel, and the reference
 * updates a copy of the input. */
struct op_in_place op_in_place_as_said(const struct op_case *c, int input, int output);

/* Switches the case `c` to the first or second set of input values. `seed` is the seed of the first set. */
static inline void op_case_set_contents(struct op_case *c, uint64_t seed, enum op_contents contents)
{
	c->contents = contents;
	c->seed = contents == CONTENTS_FIRST ? seed : seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns the seed of the first set of input values of the case `c`. */
static inline uint64_t op_case_first_seed(const struct op_case *c)
{
	return c->contents == CONTENTS_FIRST ? c->seed : c->seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns a copy of the case `c` with the first set of input values. The scalars stay those of `c`. In a case of one
 * sequence, some families compute page numbers or slots from this copy, so that both sets have the same ones. A reference
 * that keeps results, and finds them again by these numbers alone, then gives wrong results. */
static inline struct op_case op_case_first(const struct op_case *c)
{
	struct op_case first = *c;

	op_case_set_contents(&first, op_case_first_seed(c), CONTENTS_FIRST);
	return first;
}

/* An input that has its own truth (op.in_place) has an entry in op.oracle's `out`. Returns the index of this entry,
 * which is after the entries of all outputs. */
static inline int op_own_place(const struct op_problem *problem, int input)
{
	return problem->output_count + input;
}

/* Returns tensors[index]. If `index` is -1, because the problem has no tensor of the role, returns a tensor without
 * data. */
static inline struct tensor op_tensor(const struct tensor *tensors, int index)
{
	static const struct tensor none = {NULL, DTYPE_FLOAT32, 0, {0}, 0};

	return index < 0 ? none : tensors[index];
}

/* Helpers for op.sizes. op_start_axes sets every const axis to its length and every var axis to `value`. op_set_axis
 * sets one axis to `value` if it is var. */
void op_start_axes(const struct op_problem *problem, int64_t value, int64_t *axis);
void op_set_axis(const struct op_problem *problem, int at, int64_t value, int64_t *axis);

/* A helper for op.edge_axes. Calls the family's function `sizes` to write the axes of the first small case, and then
 * sets one axis to `rows`. This is the first var axis of output 0, whose last axis does not count. Returns false if
 * there is no such axis. */
bool op_edge_rows(int (*sizes)(const struct op_problem *, int, enum op_size, int64_t *, int),
                  const struct op_problem *problem, int variant, int64_t rows, int64_t *axis);

/* Writes the shape of a tensor for messages, with the names of its axes: "[batch_size, hidden_size]", "[]", or "a
 * Python scalar". */
const char *op_shape_text(const struct op_problem *problem, const struct op_arg *arg, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
