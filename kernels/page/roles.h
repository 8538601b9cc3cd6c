/* roles - finds the role of each tensor of an append to a paged cache, and the layout of each cache. Host only. */
#ifndef REFTEST_KERNELS_PAGE_ROLES_H
#define REFTEST_KERNELS_PAGE_ROLES_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bits of the variant that op.match returns. PAGE_HND: the axis of heads precedes the axis of slots. PAGE_COMBINED:
 * keys and values are in one cache [pages, 2, …]. PAGE_PADDED: the definition's description mentions padding.
 * PAGE_LATENT: the appended tensors have no head axis. */
enum { PAGE_HND = 1, PAGE_COMBINED = 2, PAGE_PADDED = 4, PAGE_LATENT = 8 };

enum { PAGE_PARTS = 2 };

/* The index of each input and output by its role, or -1 if the problem has no such tensor. */
struct page_roles {
	int append[PAGE_PARTS], cache[PAGE_PARTS], output[PAGE_PARTS]; /* with PAGE_COMBINED, only cache[0] and
									* output[0] are used */
	int parts, caches; /* the number of appended tensors, and the number of caches */
	int batch_indices, positions, indptr, indices, last_page_len;
};

/* The layout of a cache and of the tensor that is appended to it. */
struct page_extent {
	int64_t pages, page_size, heads, width; /* heads: the number of heads, or 1 if there is no head axis */
	int64_t halves;                         /* 2 if one cache contains both keys and values, else 1 */
	int hnd;
};

extern const struct op_role page_role_names[];
extern const struct op_mode page_mode_names[];
void page_bind(const struct op_problem *problem, int variant, void *roles);

/* Implements op.match: returns the variant, or -1 with a message in `why`. */
int page_match(const struct op_problem *problem, struct err *why);

/* op.match must have accepted the problem. */
struct page_roles page_roles_of(const struct op_problem *problem);

/* Returns the layout of the cache to which appended tensor `part` is written. */
struct page_extent page_extent_of(const struct op_case *c, int part);

#ifdef __cplusplus
}
#endif
#endif
