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

/* DIAGNOSIS_MOST: if more mistakes explain a case, none of them is reported. */
enum { DIAGNOSIS_MOST = 2, DIAGNOSIS_TEXT = 256, DIAGNOSIS_CONFUSIONS = 1024, DIAGNOSIS_PASSED = 4, DIAGNOSIS_AXES = 32 };

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
	struct op_case sets[CONTENTS_COUNT]; /* problem and axis are not valid */
	int set_count;
};

/* What is known about the mistake of a definition. All zeros: nothing. */
struct diagnosis {
	/* Bit i is set if mistake i does not explain a failure of the definition, in an earlier case. The numbers of
	 * mistakes depend on the problem only. */
	unsigned char refuted[DIAGNOSIS_CONFUSIONS / 8];
	unsigned char found[DIAGNOSIS_CONFUSIONS / 8]; /* bit i is set if mistake i explained an earlier case */
	/* The mistakes that explained an earlier case, and those of the family, were tried on the last case. */
	bool complete;
	int count;
	char says[DIAGNOSIS_MOST][DIAGNOSIS_TEXT]; /* the mistakes that explain the last case */
	struct diagnosis_passed passed[DIAGNOSIS_PASSED];
	int passed_count;
};

/* A mistake in progress (kernels/core/confusion.h). */
struct op_variation;

/* Do the outputs of the reference agree everywhere with those of a mistake that ran on the inputs of `set`? */
bool diagnosis_agrees(const struct op_variation *v, const struct diagnosis_set *set);

/* Notes a case that the reference passed: a mistake must let it pass, too. Its inputs are those that the family fills.
 * Large cases are not noted. */
void diagnosis_note_passed(struct diagnosis *diagnosis, const struct op_case *const *sets, int count);

/* Tries all mistakes that are not refuted on one case, until `seconds` have passed. */
void diagnose(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
	      struct diagnosis *diagnosis);

#endif
