/* filter - what top-k, top-p and min-p keep of one row of probabilities.
 *
 *   top-k   the k most likely tokens; k <= 0 or k >= vocabulary: all
 *   top-p   a token is kept if those before it, by falling probability, sum to at most p; p <= 0: the most likely
 *           alone; p >= 1: all. After a top-k that dropped something, "sum" is of the probabilities renormalised over
 *           what it kept; otherwise of the probabilities as they are.
 *   min-p   a token is kept if it has at least min_p times the largest probability; min_p >= 1: the most likely alone
 *
 * Tokens of probability 0 are never drawn, so they count as dropped. Ties at the boundary are all kept here. Where
 * rounding in float32, or the order among ties, decides whether a token is kept, a row says so: `least` is what the
 * most generous correct implementation keeps, and `slack` how far apart in total variation the generous and the strict
 * are. */
#ifndef REFTEST_KERNELS_SAMPLING_FILTER_H
#define REFTEST_KERNELS_SAMPLING_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* So many tokens of a row, if it has them, are always in order; and all that are kept, if they are no more than DEEP. */
enum { FILTER_ORDERED = 64, FILTER_DEEP = 4096 };

/* Room for one row, used again for the next. */
struct filter {
	int64_t vocab;
	double *value; /* probability by token; the caller fills it before filter_row */
	int64_t *heap; /* tokens not taken yet */
	int64_t left;
	int64_t *order; /* the first `ordered` tokens by falling probability, ties by token */
	double *before; /* sum of the probabilities of those before it, for each of them */
	int64_t ordered;
};

struct filter_bounds {
	bool has_top_k, has_top_p, has_min_p;
	int64_t top_k;
	double top_p, min_p;
};

/* Which filter dropped the most likely of the tokens that are dropped. */
enum filter_by { FILTER_BY_NONE, FILTER_BY_TOP_K, FILTER_BY_TOP_P };

struct filter_kept {
	bool defined;  /* false: a probability is NaN, infinite or negative, or all are 0; nothing else is set then */
	int64_t count; /* tokens kept; filter.order begins with them if they are no more than FILTER_DEEP */
	double threshold; /* the smallest probability that is kept */
	double mass;      /* sum of those kept */
	double limit;     /* of it, what a top-p asked for; the mass where none dropped anything */
	enum filter_by by;
	double least, slack;
};

/* 0, or -1: no memory. */
int filter_open(struct filter *filter, int64_t vocab, struct err *err);
void filter_close(struct filter *filter);

struct filter_kept filter_row(struct filter *filter, const struct filter_bounds *bounds);

#endif
