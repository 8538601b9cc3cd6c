/* sizes - chooses the axes of attention's cases, for the default cases (size presets) and for the edge cases. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_SIZES_H
#define REFTEST_KERNELS_COMMON_ATTENTION_SIZES_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* attention_sizes, attention_reach and attention_edge_axes implement the members of struct op for every attention
 * family. attention_sizes is only for problems with sequences. */
int attention_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
struct op_reach attention_reach(const struct op_problem *problem, int variant, int axis);

/* The edge cases in op.edges of every attention family; dsa_paged has further edge cases. */
#define ATTENTION_EDGES                                                                                                \
	{"no_queries", "if the input has no queries, the output has no queries"},                                                               \
	    {"no_keys", "where there is no key, a query has output 0 and log-sum-exp -infinity"},                      \
	    {"blind_queries", "masks are aligned at the end of the keys, and a query before the first key has output " \
			      "0 and log-sum-exp -infinity"},                                                                     \
	    {"one_of_each", "one query and one key: the output is the key's value"},                                   \
	{                                                                                                              \
		"many_keys", "a query sees all keys, however many there are"                                           \
	}
enum { ATTENTION_EDGE_COUNT = 5 };
extern const struct op_edge attention_edges[];
bool attention_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);

#ifdef __cplusplus
}
#endif
#endif
