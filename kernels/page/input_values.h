/* page inputs - finds the role of each tensor and the layout of a cache, and computes the elements of the appended
 * tensors and of the caches. The CPU and the GPU compute the same values. The page tables are computed on the host
 * (page.c).
 *
 * Every element is random and not zero. Elements have both signs, and their magnitudes cover most of the dtype's range.
 * Therefore, if a reference writes a vector to a wrong slot, or does not write it, the bits of the cache are wrong. If
 * a reference converts a vector to another dtype, the vector loses digits or overflows; for example, bfloat16 values
 * overflow in float16. No element is NaN, because whole caches are compared, and NaN does not equal itself. */
#ifndef REFTEST_KERNELS_PAGE_INPUT_VALUES_H
#define REFTEST_KERNELS_PAGE_INPUT_VALUES_H

#include <stdint.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

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

/* Finds the role of input `i` by its name. The input is a table of integers. */
static inline void page_table_role(const struct op_problem *problem, int i, struct page_roles *roles)
{
	const char *name = problem->inputs[i].name;

	if (strstr(name, "position") != NULL)
		roles->positions = i;
	else if (strstr(name, "indptr") != NULL)
		roles->indptr = i;
	else if (strstr(name, "last_page") != NULL)
		roles->last_page_len = i;
	else if (strstr(name, "batch") != NULL)
		roles->batch_indices = i;
	else
		roles->indices = i;
}

/* Returns the output that belongs to a cache: the output with the cache's name or, if there is none, output number
 * `order`. */
static inline int page_output(const struct op_problem *problem, int cache, int order)
{
	for (int i = 0; i < problem->output_count; i++)
		if (strcmp(problem->outputs[i].name, problem->inputs[cache].name) == 0)
			return i;
	return order < problem->output_count ? order : -1;
}

/* Finds the roles in a problem that op.match accepts. Float tensors with the token axis are appended, and other float
 * tensors are caches. Host only. */
static inline struct page_roles page_roles_of(const struct op_problem *problem)
{
	struct page_roles roles = {{-1, -1}, {-1, -1}, {-1, -1}, 0, 0, -1, -1, -1, -1, -1};
	int token = -1;

	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == 1 && !dtype_is_float(problem->inputs[i].dtype))
			page_table_role(problem, i, &roles);
	if (roles.positions >= 0)
		token = problem->inputs[roles.positions].axis[0];
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (!dtype_is_float(input->dtype) || input->rank < 2)
			continue;
		if (input->axis[0] == token && strstr(input->name, "cache") == NULL && roles.parts < PAGE_PARTS)
			roles.append[roles.parts++] = i;
		else if (roles.caches < PAGE_PARTS)
			roles.cache[roles.caches++] = i;
	}
	for (int j = 0; j < roles.caches; j++)
		roles.output[j] = page_output(problem, roles.cache[j], j);
	return roles;
}

/* The layout of a cache and of the tensor that is appended to it. */
struct page_extent {
	int64_t pages, page_size, heads, width; /* heads: the number of heads, or 1 if there is no head axis */
	int64_t halves;                         /* 2 if one cache contains both keys and values, else 1 */
	int hnd;
};

/* Returns the layout of the cache to which appended tensor `part` is written. Host only. */
static inline struct page_extent page_extent_of(const struct op_case *c, int part)
{
	const struct op_problem *problem = c->problem;
	struct page_roles roles = page_roles_of(problem);
	int combined = (c->variant & PAGE_COMBINED) != 0, hnd = (c->variant & PAGE_HND) != 0;
	const struct op_arg *append = &problem->inputs[roles.append[part]];
	const struct op_arg *cache = &problem->inputs[roles.cache[combined ? 0 : part]];
	struct page_extent e;

	e.pages = c->axis[cache->axis[0]];
	e.page_size = c->axis[cache->axis[1 + combined + hnd]];
	e.heads = append->rank == 3 ? c->axis[append->axis[1]] : 1;
	e.width = c->axis[append->axis[append->rank - 1]];
	e.halves = combined ? 2 : 1;
	e.hnd = hnd;
	return e;
}

/* Returns the index of an element of the cache: the first element of the vector that belongs to a head and to slot
 * `place` of a page. */
HOST_DEVICE static inline int64_t page_offset(const struct page_extent *e, int64_t page, int64_t half, int64_t place,
                                              int64_t head)
{
	int64_t inside = e->hnd ? head * e->page_size + place : place * e->heads + head;

	return ((page * e->halves + half) * e->page_size * e->heads + inside) * e->width;
}

/* Returns a number `reach` for a dtype: elements of this dtype have magnitudes from 2^-reach to 2^(reach + 1), which
 * the dtype represents as finite, normal numbers. */
static inline int page_reach(enum dtype dtype)
{
	switch (dtype) {
	case DTYPE_FLOAT32:
	case DTYPE_BFLOAT16:
		return 30;
	case DTYPE_FLOAT16:
	case DTYPE_FLOAT8_E5M2:
		return 13;
	case DTYPE_FLOAT8_E4M3FN:
		return 6;
	default:
		return 0;
	}
}

/* Computes an element from its random bits. The caller converts the element to the input's dtype with
 * dtype_store_float. */
HOST_DEVICE static inline float page_element(uint32_t random, int reach)
{
	float magnitude = 1 + (float)(random >> 12) * float_power(-20);
	int exponent = (int)((random >> 1 & 0x7ff) % (uint32_t)(2 * reach + 1)) - reach;

	return (random & 1 ? magnitude : -magnitude) * float_power(exponent);
}

#endif
