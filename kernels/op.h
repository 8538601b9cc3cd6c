/* op - what an op family brings. One folder kernels/{family}/ holds all of it; nothing else names the family:
 *
 *   {family}.c    `const struct op {family}_op`: match, sizes, constants, rule, inputs, and the CPU oracle
 *   {family}.cu   `const struct op_cuda {family}_cuda`: the same inputs filled and the truth computed on a GPU
 *   inputs.h      what both share: the value of an input element, by integer arithmetic and exact scaling only
 *
 * and what of it fills a room of its own. What several families are alike stands beside this file (attention*, rms*, …).
 *
 * make writes build/ops.inc from the folder names (with a digest of each folder's sources), ops.c and device_cuda.cu
 * include it. This room knows tensors and bounds; files, caches and processes it has never heard of. */
#ifndef REFTEST_KERNELS_OP_H
#define REFTEST_KERNELS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/err.h"
#include "base/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OP_RANK = 8, OP_CONSTANTS = 8, OP_ARGS = 32, OP_EDGES = 32, OP_SCALAR = -1 };
enum { OP_KEPT = -1, OP_PLACES = 2 * OP_ARGS }; /* op.leaves; tensors that `out` of an oracle may have */

/* A tensor in memory of some device, row-major and dense, aligned to 256 bytes. */
struct tensor {
	void *data; /* NULL: an optional input that is absent */
	enum dtype dtype;
	int rank; /* OP_SCALAR: a Python scalar; the value is in op_case.scalar, data is NULL */
	int64_t shape[OP_RANK];
	int64_t elements;
};

struct op_axis {
	const char *name;
	bool var;
	int64_t value; /* const axes; 0 for var ones */
};

struct op_arg {
	const char *name;
	enum dtype dtype;
	int rank; /* OP_SCALAR, or 0 … OP_RANK */
	int axis[OP_RANK]; /* index into problem.axes */
	bool optional;
};

/* What a definition says, as far as an op family may look at it. The reference's text is not here: it is what is
 * being checked. */
struct op_problem {
	const char *name, *op_type, *description;
	const char *const *tags;
	int tag_count;
	const struct op_axis *axes;
	int axis_count;
	const struct op_arg *inputs;
	int input_count;
	const struct op_arg *outputs;
	int output_count;
};

/* A number that no schema holds (the epsilon of a norm), and where it is attested. */
struct op_constant {
	char name[24];
	double value;      /* NaN: nothing attests it; it is to be recovered by probing */
	char source[104];  /* "axis:eps", "name", "model:llama-3.1-8b", "description", "unattested" */
	char conflict[256]; /* "" or a sentence naming a source that disagrees and its value */
};

/* Every case runs on two sets of contents of the same shapes. Random values differ by themselves, for the second has a seed
 * of its own (op_case_set_contents). What op.scalar gives, and whatever else a family chooses, differs by its own doing:
 * the first may hold what models have (1 / sqrt(head dim)), the second holds something else. */
enum op_contents { CONTENTS_FIRST, CONTENTS_SECOND, CONTENTS_COUNT };

/* One case: a problem with every axis given. Plain data, the same in the C and the CUDA library. */
struct op_case {
	const struct op_problem *problem;
	int variant;              /* what op.match returned */
	const int64_t *axis;      /* a value per problem axis */
	uint64_t seed;
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
	double scalar[OP_ARGS];   /* values of Python-scalar inputs, by input index */
	int probe;                /* 0: an ordinary case; 1: the inputs that make a hidden constant visible */
	int edge;                 /* 0: an ordinary case; else 1 + the index of one of op.edges */
	uint32_t given;           /* bit i: input i comes from a workload: a file's tensor, or a number. What op.fill makes
	                             of the others must suit it whatever it holds: indices may lead to any row */
	uint32_t absent;          /* bit i: the optional input i is left out (None) */
	enum op_contents contents;
};

/* |reference - ground_truth| <= atol + rtol |ground_truth| for at least hit_ratio of the elements. */
struct rule {
	double atol, rtol;
	double hit_ratio; /* 1: all elements */
};

/* A case of --edge: there is nothing, or one of everything, or implementations are known to differ and one convention
 * has to count. What such a case shows is a finding beside the verdict. */
struct op_edge {
	const char *name;       /* its word in the case's id: "no_rows" */
	const char *convention; /* what counts here, as a clause: "no rows in, no rows out" */
};

/* What an input has to hold after the reference ran: the truth at a place, by rule(c, place). */
struct op_leaves {
	int place; /* OP_KEPT: it must not be written. An output's index: the operation may be done in place.
	            * op_own_place(problem, input): a truth of its own, which the oracle puts there */
	bool may_keep; /* what it held before will do too */
};

/* Both ends belong to it. */
struct op_range {
	double least, most;
};

enum op_size { SIZE_SMALL, SIZE_MEDIUM, SIZE_LARGE, SIZE_COUNT };

struct op {
	const char *name;             /* the folder's */
	const char *const *op_types;  /* NULL-terminated: op_types this family looks at */

	/* The variant (>= 0) if this family has the truth of the problem, else -1 and in `why` a sentence: what does not
	 * fit ("input 'weight' has shape [hidden_size], expected …"). Looks at shapes and dtypes first, at names last. */
	int (*match)(const struct op_problem *problem, struct err *why);

	/* The cases of a size preset: writes up to `room` rows of problem->axis_count values (const axes filled in, every
	 * var axis given) to `axis` and returns how many rows there are. */
	int (*sizes)(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);

	/* The cases of --edge (at most OP_EDGES), up to one whose name is NULL, and the axis values of one (as sizes,
	 * one row); false: this problem has no such case. scalar, fill, oracle and judge find it in op_case.edge; a
	 * GPU's inputs of such a case are those of the host. Both NULL: the family has none. */
	const struct op_edge *edges;
	bool (*edge_axes)(const struct op_problem *problem, int variant, int edge, int64_t *axis);

	/* Fills the hidden constants (at most OP_CONSTANTS) and returns their number. NULL: it needs none. */
	int (*constants)(const struct op_problem *problem, int variant, struct op_constant *out);

	/* The bounds of one output of a case (or of an input with a truth of its own: op.leaves), with the arithmetic behind
	 * them in the family's comment. */
	struct rule (*rule)(const struct op_case *c, int output);

	/* What an input has to hold after the reference ran; NULL: what it held before. */
	struct op_leaves (*leaves)(const struct op_case *c, int input);

	/* Value of a Python-scalar input, another one for each of the contents. With the input's bit in op_case.absent:
	 * what leaving it out stands for; NaN: the family cannot tell, and no case leaves it out. NULL: the family has none. */
	double (*scalar)(const struct op_case *c, int input);

	/* The values of an input that the default cases (small and medium sizes, both contents) reach: tests/unit/test_ranges.c
	 * holds the family to both ends. Not-a-number and infinities do not count. false: the input holds no numbers that could
	 * have a range of their own (indices that only have to lead somewhere). */
	bool (*range)(const struct op_problem *problem, int variant, int input, struct op_range *out);
	/* The most that a var axis has in the default cases. 0: it follows from other axes. */
	int64_t (*reach)(const struct op_problem *problem, int variant, int axis);
	/* Does this operation draw random numbers from torch's generators? Else what it answers must not depend on their
	 * seeds. NULL: it does not. */
	bool (*samples)(const struct op_case *c);

	/* Fills one tensor input on the host. The bytes depend on the case, the input's name and the seed alone (philox,
	 * kernels/inputs.h), and are the same as what op_cuda.fill gives. 0 or -1. */
	int (*fill)(const struct op_case *c, int input, struct tensor *out, struct err *err);

	/* Do the axes and inputs that a workload brings make sense, as far as the family reads them as indices, offsets
	 * or lengths, or divides by them? 0, or -1 with the sentence that makes the case invalid. Asked before the
	 * reference runs: once with no tensor at hand, before any is made (Python scalars are known: op_case.scalar), and
	 * once more when tensors were brought. `in` on the host; data NULL: not at hand, and not looked at. NULL: nothing
	 * to ask. */
	int (*check)(const struct op_case *c, const struct tensor *in, struct err *err);

	/* The definition of the operation: plain C, double accumulation, one rounding to the output's dtype. `in` holds
	 * problem->input_count tensors on the host (as the reference got them), `out` output_count, and beyond them
	 * op_own_place is where that of an input with a truth of its own lies (data NULL: it is not asked for; families
	 * without such inputs never look there). 0 or -1. */
	int (*oracle)(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

	/* Constants recovered from what the reference answered to a case with probe = 1: fills the value of each constant
	 * that was NaN. NULL if the family has none to recover. `in` and `out` on the host. 0 or -1. */
	int (*probe)(const struct op_case *c, const struct tensor *in, const struct tensor *out,
	             struct op_constant *constants, struct err *err);
	/* Axis values of the probing case (one row, as sizes). NULL like probe. */
	void (*probe_axes)(const struct op_problem *problem, int variant, int64_t *axis);

	/* Outputs that no element rule fits (samples of a distribution, indices equal as sets) are judged by the family, on
	 * the host: 1 when it judged output `output` (then `metrics` is full, and `why` has a sentence if it did not pass),
	 * 0 when the element rule is to decide, -1 on error. `truth` is what the oracle or op_cuda.launch made. NULL: the
	 * element rule decides everywhere. */
	int (*judge)(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
	             const struct tensor *truth, struct metrics *metrics, struct err *why);

	/* What both contents show together of an output that `judge` passed on each: 0, or -1 with the sentence of why
	 * it fails after all. `c`, `outputs` (on the host) and `metrics` have one for each of the contents. NULL:
	 * nothing. */
	int (*judge_both)(const struct op_case *const *c, int output, const struct tensor *const *outputs,
	                  const struct metrics *const *metrics, struct err *why);

	/* Outputs that are held by `rule` in another sense than each element's are weighed by it, on the host: fills
	 * `metrics`, and `why` if they did not pass. NULL: the element rule. */
	void (*weigh)(const struct op_case *c, int output, struct rule rule, const struct tensor *reference,
	              const struct tensor *truth, struct metrics *metrics, struct err *why);

	/* The gradients of this family's operation, as an operation of the problem that kernels/gradient.h makes of a
	 * definition: of its members only rule, scalar, fill, check, oracle and weigh are looked at, and match: NULL, or it
	 * refuses definitions of the family that have no gradients (-1, with the sentence). NULL: the family has none. */
	const struct op *gradient;
	bool on_host; /* inputs and truth are made on the host on every device: it has no op_cuda */
};

/* The GPU half of a family, in {family}.cu. `stream` is a cudaStream_t; everything is asynchronous on it. */
struct op_cuda {
	const char *name;
	/* As op.fill on device memory. 1: this input is filled on the host by op.fill and copied (structure, not bulk);
	 * NULL: every input is. */
	int (*fill)(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
	/* As op.oracle, float32 accumulation, deterministic, 64-bit address arithmetic. `scratch` of scratch_bytes(c). */
	int (*launch)(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
	              struct err *err);
	int64_t (*scratch_bytes)(const struct op_case *c); /* NULL: none */
};

/* Every family, in name order. Digests are 32 hex digits over the sources: `truth` over the whole folder and what all
 * families share, `inputs` over what of it runs on the host (synthesis, sizes, rule, judgement) and what they share. */
struct op_entry {
	const struct op *op;
	const char *truth_digest, *inputs_digest;
};
extern const struct op_entry op_table[];
extern const int op_count;

/* The family for a problem: the first whose op_types has its op_type and whose match takes it. NULL with the sentence
 * why none does. */
const struct op_entry *op_find(const struct op_problem *problem, int *variant, struct err *why);
const struct op_entry *op_by_name(const char *name);

/* Default rules by output dtype (design.md, "Verdicts"): a family that needs no other uses this. */
struct rule rule_default(enum dtype dtype);

/* Small look-ups that every match needs. -1: none. */
int op_axis_index(const struct op_problem *problem, const char *name);
int op_input_index(const struct op_problem *problem, const char *name);

/* For op.leaves of families whose in-place forms name an output like the input that it replaces. */
struct op_leaves op_leaves_namesake(const struct op_case *c, int input);

/* Makes `c` one on these contents, of a case whose seed is `seed`. */
static inline void op_case_set_contents(struct op_case *c, uint64_t seed, enum op_contents contents)
{
	c->contents = contents;
	c->seed = contents == CONTENTS_FIRST ? seed : seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* The seed of the first contents of the case that `c` belongs to. */
static inline uint64_t op_case_first_seed(const struct op_case *c)
{
	return c->contents == CONTENTS_FIRST ? c->seed : c->seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* Where the truth of an input that the operation writes to lies among those of the outputs (op.leaves). */
static inline int op_own_place(const struct op_problem *problem, int input)
{
	return problem->output_count + input;
}

/* For op.edge_axes: the first case of the family's smallest preset (its `sizes`), with `rows` in the first var axis of
 * the first output, that output's last axis aside. False: it has no such axis. */
bool op_edge_rows(int (*sizes)(const struct op_problem *, int, enum op_size, int64_t *, int),
                  const struct op_problem *problem, int variant, int64_t rows, int64_t *axis);

/* A tensor's shape by axis names, for sentences: "[batch_size, hidden_size]", "[]", "a Python scalar". */
const char *op_shape_text(const struct op_problem *problem, const struct op_arg *arg, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
