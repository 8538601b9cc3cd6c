/* diagnosis - finds the mistake in a reference that failed. It computes the operation with each known mistake in turn,
 * and reports the mistakes whose outputs agree with all outputs of the reference.
 *
 * There are three kinds of mistakes: those of the family (op.mistakes), other values of the family's constants, and
 * changes that are possible in any operation. For example, an input is ignored, rounded or limited, one input is used
 * in place of another, or an output is scaled, reversed or replaced by an input. The oracle runs on the host, in the
 * judge process, and never sees the reference. */
#ifndef REFTEST_KERNELS_CORE_DIAGNOSIS_H
#define REFTEST_KERNELS_CORE_DIAGNOSIS_H

#include "kernels/core/op.h"

/* DIAGNOSIS_MOST is the maximum number of reported mistakes. If more mistakes explain a case, no mistake is
 * reported. */
enum { DIAGNOSIS_MOST = 2, DIAGNOSIS_TEXT = 256, DIAGNOSIS_MISTAKES = 1024, DIAGNOSIS_PASSED = 4, DIAGNOSIS_AXES = 32 };

/* One set of input values of a case that failed. All tensors are on the host. */
struct diagnosis_set {
	const struct op_case *c;
	const struct tensor *in;
	const struct tensor *found; /* the outputs of the reference */
	const struct rule *rules;   /* one for each output */
};

/* A case that the reference passed. Its inputs and its truth can be computed again from this struct. */
struct diagnosis_passed {
	int64_t axis[DIAGNOSIS_AXES];
	struct op_case sets[CONTENTS_COUNT]; /* their members `problem` and `axis` are not valid */
	int set_count;
};

/* What is known about the mistake in the reference of a definition. Initially, all members are 0. */
struct diagnosis {
	/* Bit i is set if mistake i is refuted: at least one failed case of the definition is not explained by mistake
	 * i, or a reference with mistake i would fail a case that passed. The number i of a mistake depends only on the
	 * problem. */
	unsigned char refuted[DIAGNOSIS_MISTAKES / 8];
	unsigned char found[DIAGNOSIS_MISTAKES / 8]; /* bit i is set if mistake i explained an earlier case */
	/* Whether the result for the last case is complete: all mistakes of the family, and all mistakes that explained
	 * an earlier case, were tried on it, and neither a vague mistake (op_variation.vague) nor more than
	 * DIAGNOSIS_MOST mistakes explain it. */
	bool complete;
	int count;
	char says[DIAGNOSIS_MOST][DIAGNOSIS_TEXT]; /* the mistakes that explain the last case */
	struct diagnosis_passed passed[DIAGNOSIS_PASSED];
	int passed_count;
};

struct op_variation;

/* `v` contains the outputs that a reference with a mistake computes from the inputs of `set`. Returns true if all
 * outputs of the reference agree with those in `v`. */
bool diagnosis_agrees(const struct op_variation *v, const struct diagnosis_set *set);

/* Notes a case that the reference passed. diagnose() will refute every mistake with which a reference would fail this
 * case. The family must have filled all inputs of the case. Large cases are not noted. */
void diagnosis_note_passed(struct diagnosis *diagnosis, const struct op_case *const *sets, int count);

/* Tries all mistakes that are not refuted yet on one case that failed, for at most `seconds` of processor time. */
void diagnose(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
	      struct diagnosis *diagnosis);

#endif
