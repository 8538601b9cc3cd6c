/* random_inputs - computes the random numbers of inputs with the counter-based generator Philox4x32-10, in the same way
 * on every machine.
 *
 * The random bits of an element depend only on the name of the input, the case, the seed, and the flat index of the
 * element. Inputs can therefore be computed again on any machine and in any order, with equal bits on CPU and GPU. The
 * code uses only integer arithmetic, and exact scaling of integers below 2^24 by powers of two. It calls no function of
 * libm, and has no expression that a compiler may contract into a fused multiply-add. Source of the multipliers and
 * Weyl constants: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, table 2 and section 2.2.
 *
 * In each op family, input_values.h describes the values of the inputs, and the family's .c and .cu files fill the
 * tensors with these values; the .cu file uses kernels/core/elements_cuda.h. The inputs of definitions without a family
 * are filled in device_cpu.c and device_cuda.cu. */
#ifndef REFTEST_KERNELS_CORE_RANDOM_INPUTS_H
#define REFTEST_KERNELS_CORE_RANDOM_INPUTS_H

#include <stdint.h>

#include "base/dtype.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_key.h"

/* In each round, words 0 and 2 of the counter are multiplied by PHILOX_M0 and PHILOX_M1. After each round, PHILOX_W0
 * and PHILOX_W1 are added to the two halves of the key. */
enum { PHILOX_ROUNDS = 10 };
#define PHILOX_M0 0xD2511F53u
#define PHILOX_M1 0xCD9E8D57u
#define PHILOX_W0 0x9E3779B9u
#define PHILOX_W1 0xBB67AE85u

struct philox {
	uint32_t word[4];
};

/* Returns the four random words of block number `block` for the key `key`. */
HOST_DEVICE static inline struct philox philox_block(uint64_t key, uint64_t block)
{
	uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = 0, c3 = 0;
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	struct philox out;

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)PHILOX_M0 * c0, p1 = (uint64_t)PHILOX_M1 * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += PHILOX_W0;
		k1 += PHILOX_W1;
	}
	out.word[0] = c0;
	out.word[1] = c1;
	out.word[2] = c2;
	out.word[3] = c3;
	return out;
}

/* Returns the 32 random bits of element `index`: word index % 4 of block index / 4. */
HOST_DEVICE static inline uint32_t philox_bits(uint64_t key, int64_t index)
{
	return philox_block(key, (uint64_t)index / 4).word[index & 3];
}

/* Returns a number that is uniform on [-1, 1) and a multiple of 2^-`bits`. `bits` is from 1 to 23, so float represents
 * the number exactly. Only the upper `bits` + 1 bits of `random` are used. */
HOST_DEVICE static inline float uniform_signed(uint32_t random, int bits)
{
	int32_t steps = (int32_t)(random >> (31 - bits)) - (1 << bits); /* from -2^bits to 2^bits - 1 */

	return (float)steps * float_power(-bits);
}

/* generic_store writes random values to an input of a definition without an op family. Elements of a float dtype are
 * uniform on [-1, 1), rounded to the dtype. Elements of float8_e8m0fnu, which has no sign, are 1. A unit is one element
 * or, for float4_e2m1, the two elements of a byte. Elements of other dtypes are not random: the caller writes zero
 * bytes. */
HOST_DEVICE static inline int64_t generic_units(enum dtype dtype, int64_t elements)
{
	return dtype == DTYPE_FLOAT4_E2M1 ? (elements + 1) / 2 : elements;
}

HOST_DEVICE static inline void generic_store(void *data, enum dtype dtype, uint64_t key, int64_t unit)
{
	int64_t first = dtype == DTYPE_FLOAT4_E2M1 ? 2 * unit : unit;
	int64_t last = dtype == DTYPE_FLOAT4_E2M1 ? first + 1 : first;

	for (int64_t i = first; i <= last; i++)
		dtype_store_float(data, dtype, i,
		                  dtype == DTYPE_FLOAT8_E8M0FNU ? 1 : uniform_signed(philox_bits(key, i), 23));
}

#ifdef __cplusplus
extern "C" {
#endif

/* Writes 0 … `count` - 1 to `order` in random order. Host only. */
void philox_shuffle(uint64_t key, int64_t count, int64_t *order);

/* Exchanges two elements of `order` so that order[at] is `number`. `order` has each number of 0 … `count` - 1 once. If
 * `number` is none of them, does nothing. */
void order_place(int64_t *order, int64_t count, int64_t number, int64_t at);

/* Like philox_shuffle, except that the first `used` elements of `order` include 0 and `count` - 1 (if `used` and
 * `count` are at least 2). If `used` is 1, the first element is `count` - 1. For cases that use only these elements, such
 * as pages of a cache: a reference may mistake the first or the last page for padding. Host only. */
void philox_shuffle_ends(uint64_t key, int64_t count, int64_t used, int64_t *order);

/* Writes the random words of `blocks` consecutive blocks, from number `block` on. Host only. */
void philox_run(uint64_t key, int64_t block, int64_t blocks, uint32_t *words);

/* input_fill fills a tensor of floats on the host, as rows of `columns` elements. It calls `make` for each run of
 * elements in one row, and passes the position of the first element and the random bits of all elements. `make` writes
 * the values of the elements. Since a run lies in one row, the loop in `make` needs no division to find rows and
 * columns, and compilers can vectorise it. */
struct tensor;
typedef void input_run(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                       float *values);
void input_fill(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe);

/* Like input_fill, but fills only the elements `first` … `end` - 1. `first` must be a multiple of 4. */
void input_fill_range(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe,
                      int64_t first, int64_t end);

#ifdef __cplusplus
}
#endif
#endif
