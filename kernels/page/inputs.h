/* page inputs - which tensor plays which part, how a cache lies, and the value of every element of what is appended and
 * of the caches, the same on CPU and GPU. The page tables are made on the host (page.c).
 *
 * Every element is random, of either sign, never zero, and of magnitudes over most of what its dtype holds: a vector that
 * lands in another place, or does not land, changes the cache's bits, and bits that change are values that change; one
 * that goes through another dtype on its way loses digits or range (bfloat16 through float16 overflows). There is no NaN,
 * since whole caches are compared. */
#ifndef REFTEST_KERNELS_PAGE_INPUTS_H
#define REFTEST_KERNELS_PAGE_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variant. HND: heads before the places of a page. COMBINED: keys and values in one cache [pages, 2, …].
 * PADDED: the definition's description speaks of padding. */
enum { PAGE_HND = 1, PAGE_COMBINED = 2, PAGE_PADDED = 4 };

enum { PAGE_PARTS = 2 };

/* Indices into the problem's inputs and outputs; -1: the problem has none. */
struct page_roles {
	int append[PAGE_PARTS], cache[PAGE_PARTS], output[PAGE_PARTS]; /* COMBINED: the first cache and output alone */
	int parts, caches;                                             /* tensors appended; caches */
	int batch_indices, positions, indptr, indices, last_page_len;
};

/* Integers by name; of floats, those with an axis for the tokens are appended. Complete for what op.match takes. */
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

/* The output of a cache: the one of its name, else the one in its place. */
static inline int page_output(const struct op_problem *problem, int cache, int order)
{
	for (int i = 0; i < problem->output_count; i++)
		if (strcmp(problem->outputs[i].name, problem->inputs[cache].name) == 0)
			return i;
	return order < problem->output_count ? order : -1;
}

/* Host only. */
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

/* How a cache lies and what is appended to it. */
struct page_extent {
	int64_t pages, page_size, heads, width; /* heads: 1 where there is no such axis */
	int64_t halves;                         /* parts in one cache: 1 or 2 */
	int hnd;
};

/* Of the cache that part `part` is appended to. Host only. */
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

/* Where the vector of one head lies: in which page, at which place of it. */
HOST_DEVICE static inline int64_t page_offset(const struct page_extent *e, int64_t page, int64_t half, int64_t place,
                                              int64_t head)
{
	int64_t inside = e->hnd ? head * e->page_size + place : place * e->heads + head;

	return ((page * e->halves + half) * e->page_size * e->heads + inside) * e->width;
}

/* Elements are of magnitude 2^-reach to 2^(reach + 1), which the dtype holds exactly but for digits. */
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

/* Element from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float page_element(uint32_t random, int reach)
{
	float magnitude = 1 + (float)(random >> 12) * float_power(-20);
	int exponent = (int)((random >> 1 & 0x7ff) % (uint32_t)(2 * reach + 1)) - reach;

	return (random & 1 ? magnitude : -magnitude) * float_power(exponent);
}

#endif
