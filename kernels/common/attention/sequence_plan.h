/* sequence_plan - chooses the numbers of queries and keys of each sequence of a case.
 *
 * The plan depends only on the axes and on the Philox key of one input (kv_indptr, or the sparse rows). Each input can
 * therefore be computed separately from the same plan.
 *
 * Most default cases get their lengths from a list (kernels/common/attention/lengths.h). If the axes fit no list, the
 * lengths of sequence b depend on its role, which is b % 8:
 *
 *   0, 4  plain: has more keys than queries, so that a mask must be aligned at the end (role 4: the last page is full)
 *   1     one query, one key
 *   2     as many keys as queries
 *   3     no key: output 0, lse -infinity
 *   5     keys, but no query
 *   6     one query, many keys
 *   7     neither queries nor keys
 *
 * In decode, every sequence has one query, roles 1 and 3 are as above, and all other sequences are plain.
 *
 * The last page of a sequence is partly filled, except in sequences with b % 8 == 4. Sequences with b % 8 from 2 to 4
 * have their first pages in common with sequence 0, and thus also with each other. Pages are in random order, and some
 * are unused. If the axes are too short for the lengths in the table above, all sequences are plain. With a causal
 * mask, a sequence with keys has at least as many keys as queries, because definitions disagree about the output of a
 * query from which the mask hides every key. Only the axes of a workload can make this impossible. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_SEQUENCE_PLAN_H
#define REFTEST_KERNELS_COMMON_ATTENTION_SEQUENCE_PLAN_H

#include "kernels/common/attention/roles.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The lengths of the sequences of a case, in arrays allocated by malloc. */
struct attention_plan {
	int64_t batch;
	int64_t *queries, *entries; /* [batch + 1] offsets of each sequence's queries and entries; an entry is a page
				     * or, without pages, a key */
	int64_t *last;              /* [batch] number of keys in the last page; 0: the sequence has no page */
	int64_t longest;            /* number of keys of the longest sequence */
};

/* Returns the Philox key from which the plan of a case is computed. If there is only one sequence, both sets of input
 * values have the same key, and therefore the same pages. The number of keys in the last page may differ. */
uint64_t attention_plan_key(const struct op_case *c, const struct attention_roles *roles);

/* Free the result with attention_plan_free. */
struct attention_plan attention_plan_of(const struct op_case *c, const struct attention_roles *roles);
void attention_plan_free(struct attention_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
