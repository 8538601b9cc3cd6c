/* input_values - computes the elements of the appended tensors and of the caches. The CPU and the GPU compute the same
 * values. The page tables are computed on the host (page_table.h).
 *
 * Every element is random and not zero. Elements have both signs, and their magnitudes cover most of the dtype's range.
 * Therefore, if a reference writes a vector to a wrong slot, or does not write it, the bits of the cache are wrong. If
 * a reference converts a vector to another dtype, the vector loses digits or overflows; for example, bfloat16 values
 * overflow in float16. No element is NaN, because whole caches are compared, and NaN does not equal itself. */
#ifndef REFTEST_KERNELS_PAGE_INPUT_VALUES_H
#define REFTEST_KERNELS_PAGE_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/random_inputs.h"
#include "kernels/page/roles.h"

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
