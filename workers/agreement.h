/* agreement - of several ground truths that answered, who stands alone. Knows no tensors: only who answered, and which
 * of them differ. */
#ifndef REFTEST_WORKERS_AGREEMENT_H
#define REFTEST_WORKERS_AGREEMENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "dataset/verdict.h"

struct agreement {
	int count; /* ground truths, of at most TRUTHS_MAX */
	bool answered[TRUTHS_MAX];
	bool differ[TRUTHS_MAX][TRUTHS_MAX]; /* of those that answered; symmetric */
};

/* What the oracle on the CPU says of each that answered. */
struct agreement_vote {
	bool cast;		  /* it could be asked */
	bool against[TRUTHS_MAX]; /* this one differs from it */
};

/* Notes that two of them differ. */
void agreement_differ(struct agreement *agreement, int a, int b);
/* How many pairs differ. */
int agreement_differences(const struct agreement *agreement);

/* Who differs from all others while those agree among themselves. -1: nobody; and of two, neither, for nothing tells
 * which is wrong. */
int agreement_alone(const struct agreement *agreement);
/* Whom alone the oracle is against. -1: it is against none, several, or could not be asked. */
int agreement_alone_by(const struct agreement *agreement, const struct agreement_vote *vote);

/* Is all that was answered by such as are coarser than the rule, though one that is not (`exact`, -1: none) was asked
 * as well? They do not decide alone. */
bool agreement_too_coarse(const struct agreement *agreement, const bool coarse[TRUTHS_MAX], int exact);

/* The clause that names who stands alone, by the others' word if that tells, else by the oracle's: "fla stands alone".
 */
void agreement_say(const struct agreement *agreement, const struct agreement_vote *vote, const char *const *names,
		   struct buf *out);

#endif
