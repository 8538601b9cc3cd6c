/* diagnosis - finds the mistake in a reference that failed: computes the operation with each known mistake in turn, and
 * reports the mistakes whose outputs agree with those of the reference everywhere.
 *
 * There are three kinds of mistakes: those of the family (op.mistakes), other values of the family's hidden
 * constants, and changes that apply to any operation. Examples of such changes: an input is ignored, rounded or
 * limited, one input is used in place of another, an output is scaled or reversed, or copies an input. The oracle runs
 * on the host, in the judge process, and never sees the reference. */
#ifndef REFTEST_KERNELS_CORE_DIAGNOSIS_H
#define REFTEST_KERNELS_CORE_DIAGNOSIS_H

#include "kernels/core/op.h"

/* DIAGNOSIS_MOST: the largest number of reported mistakes. If more mistakes explain a case, no mistake is reported. */
enum { DIAGNOSIS_MOST = 2, DIAGNOSIS_TEXT = 256, DIAGNOSIS_MISTAKES = 1024, DIAGNOSIS_PASSED = 4, DIAGNOSIS_AXES = 32 };

/* One set of input values of a case that failed. All tensors are on the host. */
struct diagnosis_set {
	const struct op_case *c;
	const struct tensor *in;
	const struct tensor *found; /* the outputs of the reference */
	const struct rule *rules;   /* one for each output */
};

/* A case that the reference passed, from which inputs and truth can be computed again. */
struct diagnosis_passed {
	int64_t axis[DIAGNOSIS_AXES];
	struct op_case sets[CONTENTS_COUNT]; /* the members `problem` and `axis` are not valid */
	int set_count;
};

/* What is known about the mistake in the reference of a definition. If all members are 0, nothing is known. */
struct diagnosis {
	/* Bit i is set if mistake i does not explain a failure of an earlier case of the definition. The numbers of
	 * mistakes depend only on the problem. */
	unsigned char refuted[DIAGNOSIS_MISTAKES / 8];
	unsigned char found[DIAGNOSIS_MISTAKES / 8]; /* bit i is set if mistake i explained an earlier case */
	/* True if all mistakes of the family, and all mistakes that explained an earlier case, were tried on the last
	 * case. */
	bool complete;
	int count;
	char says[DIAGNOSIS_MOST][DIAGNOSIS_TEXT]; /* the mistakes that explain the last case */
	struct diagnosis_passed passed[DIAGNOSIS_PASSED];
	int passed_count;
};

struct op_variation;

/* `v` holds the outputs that a mistake computes from the inputs of `set`. Returns true if the outputs of the reference
 * agree everywhere with the outputs in `v`. */
bool diagnosis_agrees(const struct op_variation *v, const struct diagnosis_set *set);

/* Notes a case that the reference passed. If a reference with some mistake would fail this case, the reference does not
 * have that mistake. The family must have filled all inputs of the case. Large cases are not noted. */
void diagnosis_note_passed(struct diagnosis *diagnosis, const struct op_case *const *sets, int count);

/* Tries on one case all mistakes that are not refuted yet, for at most `seconds`. */
void diagnose(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
	      struct diagnosis *diagnosis);

#endif
