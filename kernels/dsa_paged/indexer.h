/* indexer - which keys a query of sparse attention is to look at: those with the largest scores.
 *
 *   score[t] = sum over heads of weight[h] * max(0, query[h] . (key[t] * scale[t]))
 *
 * Of sequence b the min(chosen, length) keys of the largest scores, named by page number * page size + place in the
 * page; the other places hold -1. A score that is no number (a workload may bring such keys) counts as the largest. */
#ifndef REFTEST_KERNELS_DSA_PAGED_INDEXER_H
#define REFTEST_KERNELS_DSA_PAGED_INDEXER_H

#include "kernels/dsa_paged/inputs.h"

/* Are lengths and page numbers in order, as far as they are at hand? 0, or -1 with the sentence. */
int indexer_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* op.oracle: the chosen keys by falling score, equal scores by place. */
int indexer_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

/* op.judge: `reference` is right if, in each row, it names no key twice and none outside the sequence, has as many
 * names as there are to choose, and names every key whose score is clearly above the least chosen one and none clearly
 * below. "Clearly": by more than 2^-14 of the largest sum of |terms| of the row: float32 sums of 64 x 128 products are
 * off by 1e-6 of it, those of 8-bit tensor cores (which keep 14 bits) by 2^-15. The order within a row is free.
 *
 * In the metrics, `hits` are the places that are right, max_abs the largest distance of a wrongly named or omitted
 * key's score from the least chosen one, margin the same over what is allowed, cosine the part of the truth that was
 * found. */
int indexer_judge(const struct op_case *c, const struct tensor *in, const struct tensor *reference,
                  const struct tensor *truth, struct metrics *metrics, struct err *why);

#endif
