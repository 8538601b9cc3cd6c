/* diagnosis - finds the mistake of a reference that failed: computes the operation with one known mistake after the
 * other, and reports those with which the outputs of the reference agree everywhere.
 *
 * The mistakes are those of the family (op.confusions), other values of its hidden constants, and changes that can be
 * made to any operation: an input or a factor is left out, an input is rounded or limited, one input is used for
 * another, an output is scaled, reversed or the copy of an input. The oracle runs on the host, in the process that
 * decides, and never sees the reference. */
#ifndef REFTEST_KERNELS_CORE_DIAGNOSIS_H
#define REFTEST_KERNELS_CORE_DIAGNOSIS_H

#include "kernels/core/op.h"

enum { DIAGNOSIS_MOST = 4, DIAGNOSIS_TEXT = 256, DIAGNOSIS_CONFUSIONS = 1024 };

/* One set of input values of a case that failed. All tensors are on the host. */
struct diagnosis_set {
	const struct op_case *c;
	const struct tensor *in;
	const struct tensor *found; /* the outputs of the reference */
	const struct rule *rules;   /* one for each output */
};

/* What is known about the mistake of a definition. All zeros: nothing. */
struct diagnosis {
	/* Bit i is set if mistake i does not explain a failure of the definition, in an earlier case. The numbers of
	 * mistakes depend on the problem only. */
	unsigned char refuted[DIAGNOSIS_CONFUSIONS / 8];
	bool complete; /* every mistake that is not refuted was tried on the last case */
	int count;
	char says[DIAGNOSIS_MOST][DIAGNOSIS_TEXT]; /* the mistakes that explain the last case */
};

/* Do the outputs of the reference agree with this mistake everywhere? */
bool diagnosis_explains(const struct op *op, const struct op_confusion *confusion, const struct diagnosis_set *set);

/* Tries all mistakes that are not refuted on one case, until `seconds` have passed. */
void diagnose(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
	      struct diagnosis *diagnosis);

#endif
