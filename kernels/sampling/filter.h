/* filter - determines which tokens top-k, top-p and min-p keep in one row of probabilities.
 *
 *   top-k   keeps the k most likely tokens; if k <= 0 or k >= vocabulary, it keeps all tokens.
 *   top-p   keeps a token if the tokens before it, by decreasing probability, sum to at most p. If p <= 0, it keeps
 *           only the most likely token; if p >= 1, it keeps all tokens. If top-k has dropped tokens, the probabilities
 *           of the remaining tokens are first renormalised.
 *   min-p   keeps a token if its probability is at least min_p times the largest probability; if min_p >= 1, it keeps
 *           only the most likely token. If the product of min_p and the largest probability is exact in float32, a
 *           token whose probability equals the product must be kept.
 *
 * Tokens of probability 0 are never drawn, so they count as dropped. If tokens tie at the boundary between kept and
 * dropped tokens, all tied tokens are kept. In some rows, correct implementations keep different tokens, because of
 * float32 rounding or the order of tied tokens. In struct filter_kept, `least` is the smallest probability that any
 * correct implementation keeps. `slack` is the total variation distance between the implementation that keeps the most
 * tokens and the one that keeps the fewest. */
#ifndef REFTEST_KERNELS_SAMPLING_FILTER_H
#define REFTEST_KERNELS_SAMPLING_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The FILTER_ORDERED most likely tokens of a row are always sorted. If at most FILTER_SORTED tokens are kept, all kept
 * tokens are sorted. If more tokens are kept, at least FILTER_DEEP + 1 tokens are sorted. */
enum { FILTER_ORDERED = 64, FILTER_DEEP = 4096, FILTER_SORTED = 16384 };

struct filter_token {
	int64_t token;
	double value; /* its probability */
};

struct filter_buckets;

/* Working memory for one row. The next row uses the same memory. */
struct filter {
	int64_t vocab;
	double *value; /* the probability of each token, which the caller writes before it calls filter_row */
	int64_t count; /* the number of tokens with a probability above 0 */
	int64_t *order; /* starts with the `ordered` most likely tokens, by decreasing probability and then by token */
	double *before; /* before[i]: the sum of the probabilities of the tokens before order[i] */
	int64_t ordered;
	struct filter_buckets *buckets; /* where each bucket ends in `order`, and which buckets are sorted */
	int64_t *merged;                /* working memory for sorting a bucket */
	struct filter_token *placed; /* the `placed_count` tokens that filter_place has found */
	int64_t placed_count;
	double sum, least; /* the sum of all probabilities, and the smallest probability above 0 */
};

struct filter_bounds {
	bool has_top_k, has_top_p, has_min_p;
	int64_t top_k;
	double top_p, min_p;
};

/* Which filter determines the last kept token: the one that dropped the most likely of the dropped tokens. */
enum filter_by { FILTER_BY_NONE, FILTER_BY_TOP_K, FILTER_BY_TOP_P };

struct filter_kept {
	/* False if a probability is NaN, infinite or negative, or if all probabilities are 0. If `defined` is false, no
	 * other member is set. */
	bool defined;
	int64_t count; /* number of kept tokens; if it is at most FILTER_SORTED, filter.order starts with the kept
			* tokens */
	double threshold; /* the smallest kept probability */
	double mass;      /* the sum of the kept probabilities */
	double mass_before; /* the sum of all probabilities or, with top-p, of those that top-k keeps */
	double limit;     /* the sum of probabilities at which top-p stops, or `mass` if top-p dropped no token */
	enum filter_by by;
	double least, slack;
};

/* Returns 0, or -1 with a message in `err` if memory runs out. */
int filter_open(struct filter *filter, int64_t vocab, struct err *err);
void filter_close(struct filter *filter);

struct filter_kept filter_row(struct filter *filter, const struct filter_bounds *bounds);

/* Returns the most likely token: the first one if several tokens are equally likely. This is the token that filter_row
 * puts first, but this function does not sort the row. Returns 0 if filter_row would set `defined` to false. */
int64_t filter_most_likely(const struct filter *filter);

/* Writes to filter.placed the kept tokens, in the order of the vocabulary. */
void filter_place(struct filter *filter, const struct filter_kept *kept);

#endif
