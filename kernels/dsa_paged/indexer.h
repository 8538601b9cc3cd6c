/* indexer - selects the keys that a query of sparse attention reads: those with the largest scores.
 *
 *   score[t] = sum over heads of weight[h] * max(0, query[h] . (key[t] * scale[t]))
 *
 * For each sequence, the indexer lists the min(chosen, length) keys with the largest scores. The number of a key is
 * page number * page size + slot in the page. The remaining entries of the list are -1. A NaN score counts as the
 * largest score. Only the keys of a workload can cause NaN scores. */
#ifndef REFTEST_KERNELS_DSA_PAGED_INDEXER_H
#define REFTEST_KERNELS_DSA_PAGED_INDEXER_H

#include "kernels/dsa_paged/input_values.h"

/* Checks the lengths and the page table, if they are loaded. Returns 0, or -1 with a message if the case is invalid. */
int indexer_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Implements op.oracle. Lists the selected keys by decreasing score; keys with equal scores are listed in the order of
 * their positions. */
int indexer_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

/* Implements op.judge. Let n be min(chosen, length), and let the least selected score be the smallest of the n largest
 * scores. A correct row of `reference` lists n different keys, all from the row's sequence. It lists every key whose
 * score is clearly above the least selected score, and no key whose score is clearly below the least selected score.
 * The order of the keys does not matter. "Clearly" means by more than 2^-14 S. For each score of the row, take the sum
 * of the magnitudes of its terms; S is the largest of these sums. A float32 sum of 64 x 128 products has an error of
 * 1e-6 S. A sum on 8-bit tensor cores, which keep 14 bits, has an error of 2^-15 S.
 *
 * In the metrics, `hits` is the number of correct entries, and `cosine` is the fraction of entries that are correct.
 * `max_abs` is the largest distance between the least selected score and the score of a key that is wrongly listed or
 * omitted. `margin` is the largest ratio of such a distance to the allowed distance, 2^-14 S. It also counts listed
 * keys whose score is below the least selected score by at most the allowed distance. */
int indexer_judge(const struct op_case *c, const struct tensor *in, const struct tensor *reference,
                  const struct tensor *truth, struct metrics *metrics, struct err *why);

#endif
