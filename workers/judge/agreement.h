/* agreement - finds the outlier among several ground truths, that is, the one that differs from all others. The module
 * reads no tensors: the caller records which ground truths could be computed and which pairs of them differ. */
#ifndef REFTEST_WORKERS_JUDGE_AGREEMENT_H
#define REFTEST_WORKERS_JUDGE_AGREEMENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "dataset/verdict.h"

struct agreement {
	int count; /* the number of ground truths, at most GROUND_TRUTHS_MAX */
	bool answered[GROUND_TRUTHS_MAX];
	bool differ[GROUND_TRUTHS_MAX][GROUND_TRUTHS_MAX]; /* [a][b] and [b][a]: ground truths a and b differ */
};

/* Which ground truths differ from the oracle. The oracle is the op family's own implementation of the operation, which
 * runs on the CPU. */
struct agreement_vote {
	bool cast;		  /* the oracle could be computed */
	bool against[GROUND_TRUTHS_MAX]; /* against[i]: ground truth i differs from the oracle */
};

/* Records that the ground truths `a` and `b` differ. */
void agreement_differ(struct agreement *agreement, int a, int b);
/* Returns how many pairs of ground truths differ. */
int agreement_differences(const struct agreement *agreement);

/* Returns the index of the ground truth that differs from all others, if at least two others exist and agree with each
 * other. Returns -1 if there is no such ground truth. If there are only two ground truths, returns -1, because either
 * of them may be wrong. */
int agreement_alone(const struct agreement *agreement);
/* Returns the index of the only ground truth that differs from the oracle. Returns -1 if no ground truth differs from
 * the oracle, if several differ from it, or if the oracle could not be computed. */
int agreement_alone_by(const struct agreement *agreement, const struct agreement_vote *vote);

/* Returns whether only coarse ground truths could be computed, although the precise ground truth `exact` was tried. If
 * `exact` is -1, there is no precise ground truth. A ground truth is coarse if its arithmetic is less precise than the
 * tolerance rule demands. If the result is true, the verdict must not depend on the coarse ground truths. */
bool agreement_too_coarse(const struct agreement *agreement, const bool coarse[GROUND_TRUTHS_MAX], int exact);

/* Appends which ground truth is the outlier, for example "fla is the outlier". If no ground truth differs from all
 * others, the outlier is the one that differs from the oracle (agreement_alone_by). */
void agreement_describe(const struct agreement *agreement, const struct agreement_vote *vote, const char *const *names,
		   struct buf *out);

#endif
