/* inputs - random numbers that any machine makes again: Philox4x32-10, by counter.
 *
 * An element's bits depend on (input name, case, seed) and its flat index alone, so a case can be rebuilt anywhere,
 * in any order, and CPU and GPU agree bit for bit. Only integer arithmetic and exact scaling (by powers of two, of
 * integers below 2^24) are used: no libm, nothing a compiler may contract.
 * Philox: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (multipliers and Weyl constants from
 * there, table 2 and section 2.2). */
#ifndef REFTEST_KERNELS_INPUTS_H
#define REFTEST_KERNELS_INPUTS_H

#include <stdint.h>

#include "base/dtype.h"
#include "kernels/number.h"

struct philox {
	uint32_t word[4];
};

/* The four words of counter `block` under `key`. */
HOST_DEVICE static inline struct philox philox_block(uint64_t key, uint64_t block)
{
	uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	struct philox out;

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out.word[0] = c0;
	out.word[1] = c1;
	out.word[2] = c2;
	out.word[3] = c3;
	return out;
}

/* The 32 random bits of element `index`: word index % 4 of block index / 4. */
HOST_DEVICE static inline uint32_t philox_bits(uint64_t key, int64_t index)
{
	return philox_block(key, (uint64_t)index / 4).word[index & 3];
}

/* Uniform on [-1, 1) in steps of 2^-`bits` (bits 1 … 23), exactly representable in float. The low 31 - bits bits of
 * `random` take no part. */
HOST_DEVICE static inline float uniform_signed(uint32_t random, int bits)
{
	int32_t steps = (int32_t)(random >> (31 - bits)) - (1 << bits); /* -2^bits … 2^bits - 1 */

	return (float)steps * float_power(-bits);
}

/* Generic values, for an input that no family knows. Float dtypes: uniform on [-1, 1), rounded to the dtype
 * (float8_e8m0fnu, which has no sign: 1), written by units: one element, or for float4_e2m1 the two of one octet. All
 * other dtypes: zero octets, which the caller sets. */
HOST_DEVICE static inline int64_t generic_units(enum dtype dtype, int64_t elements)
{
	return dtype == DTYPE_FLOAT4_E2M1 ? (elements + 1) / 2 : elements;
}

HOST_DEVICE static inline void generic_store(void *data, enum dtype dtype, uint64_t key, int64_t unit)
{
	int64_t first = dtype == DTYPE_FLOAT4_E2M1 ? 2 * unit : unit;
	int64_t last = dtype == DTYPE_FLOAT4_E2M1 ? first + 1 : first;

	for (int64_t i = first; i <= last; i++)
		number_store(data, dtype, i,
		             dtype == DTYPE_FLOAT8_E8M0FNU ? 1 : uniform_signed(philox_bits(key, i), 23));
}

#ifdef __cplusplus
extern "C" {
#endif

/* The Philox key of one input of one case: from the input's name, the axis values by axis name (const and var, in
 * the order of their names) and the seed; never from the definition's name. Host only. */
struct op_case;
uint64_t input_key(const struct op_case *c, int input);

/* The words of `blocks` blocks from `block` on, one after the other. Host only. */
void philox_run(uint64_t key, int64_t block, int64_t blocks, uint32_t *words);

/* Fills a tensor of floats on the host, as rows of `columns` elements: for each run of elements of one row, `make` is
 * given the place of the first of them and the random bits of all, and gives their values. Loops over a run need no
 * division, and compilers make vectors of them. */
struct tensor;
typedef void input_run(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                       float *values);
void input_fill(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe);

#ifdef __cplusplus
}
#endif
#endif
