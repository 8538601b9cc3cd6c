/* dsa_paged inputs - for the indexer of DeepSeek's sparse attention, declares the role of each tensor and computes the
 * values of the inputs.
 *
 * kernels/common/attention/input_values.h describes the inputs of sparse attention (variant DSA_ATTENTION).
 *
 * In the indexer (variant DSA_INDEXER), sequences 0 … 7 have these lengths in the first set of values and in the second
 * set:
 *
 *   0  all keys that the table can hold, less 3       all keys that the table can hold.
 *   1  one key                                        one key.
 *   2  as many keys as are selected                   as many keys as are selected.
 *   3  no key                                         no key.
 *   4  one key more than are selected                 one key more than are selected.
 *   5  half as many keys as are selected, plus 5      half as many keys as are selected.
 *   6  a random number of keys                        one key fewer than are selected.
 *   7  one page of keys                               one page of keys, plus one key.
 *
 * In the second set, sequences 0 and 1 exchange their lengths if both exist, so the first sequence has one key.
 * Sequences 8 to 22 have 15, 16, 17, 31, 32, 33, … 257 keys. After sequence 22, only these sequences have keys (one to
 * three): the last one, and each sequence whose number is a power of two, or one more or one less than a power of two.
 * The others have none, because a reference takes time for each sequence with keys. The pages of a sequence are distinct and in random order;
 * a page can belong to several sequences. One page in eight is unused. The entries of the page table after the last
 * page of a sequence have no meaning, and a reference need not read them. These entries are the number of an unused
 * page in the first set of values, and -1 in the second set. The keys in unused pages, and those after the last key of
 * a sequence, are NaN, and so are their scales.
 *
 * Each edge case of the indexer has three sequences, except no_sequences and long_sequence, which has one sequence of
 * 40960 keys. In empty_sequences, no sequence has keys. In few_keys, the first sequence has one key fewer than are
 * selected, the second has one key, and the third has one page of keys plus one key. In equal_scores, each sequence has
 * as many keys as the table can hold, all keys of the cache are equal, and all scales are equal.
 *
 *   Queries  Uniform on [-8, 8).
 *   Keys     Uniform on [-448, 448), rounded to e4m3; about half of the zeros are -0. One key in sixteen consists of
 *            zeros (in the second set, one group of eight equal keys in sixteen). The scores of these keys are exactly
 *            0, and lie between the negative and the positive scores of other keys.
 *   Scales   The scale of a key is m * 2^e with m in [1, 2) and e = -8 … -11, so that a reference that ignores the
 *            scales orders the keys differently. In the second set, the scales are 2^12 times as large, and the
 *            products of queries and keys exceed the range of float16.
 *   Weights  Uniform on [-1, 1), so that a reference that ignores the weights or the relu orders the keys differently.
 *            In one third of the sequences, the weights are 0.5 lower, and most scores are negative. In another third,
 *            the weights are 0.5 higher, and most scores are positive. In the other sequences, scores have both signs.
 *            In one quarter of the sequences, the weights are 2^10 times as large, and in another quarter, they are
 *            2^10 times as small; such a factor does not change the order of a sequence's keys.
 *
 * In the second set of values, eight consecutive keys in a page of the cache are equal. Several keys then have the
 * least selected score, and a reference may select any of these keys. In the first set, no two keys are equal. */
#ifndef REFTEST_KERNELS_DSA_PAGED_INPUT_VALUES_H
#define REFTEST_KERNELS_DSA_PAGED_INPUT_VALUES_H

#include "kernels/common/attention/input_values.h"

/* The variants that op.match returns. */
enum { DSA_ATTENTION = 0, DSA_INDEXER = 1 };

/* Consecutive keys that are equal form a group. The keys of group n are zeros if n % INDEXER_ZERO_GROUPS is
 * INDEXER_ZERO_GROUP. */
enum { INDEXER_ZERO_GROUPS = 16, INDEXER_ZERO_GROUP = 5 };

/* The indices of the indexer's inputs and of its only output. */
struct indexer_roles {
	int query;   /* [sequences, heads, dim] floats */
	int cache;   /* [pages, page size, 1, dim + 4] bytes: all keys of the page (e4m3), then all their scales (float32) */
	int weights; /* [sequences, heads] floats */
	int lengths; /* [sequences] integers */
	int table;   /* [sequences, maximum number of pages per sequence] integers: page numbers */
	int indices; /* [sequences, chosen] integers */
};

struct indexer_extent {
	int64_t batch, heads, dim, pages, page_size, most_pages, chosen;
};

/* The parameters from which a byte of the cache is computed. Kernels take this struct by value. */
struct indexer_cache {
	uint64_t key;
	int64_t page_size, dim;
	int equal; /* the number of consecutive keys that are equal */
	int loud;  /* all scales are multiplied by 2^loud */
	/* [pages * page size], one entry per key. If no sequence uses the key, the entry is 0, and the elements of the
	 * key are NaN. `used` is NULL if all keys are used. The array is in the memory of the device that computes the
	 * bytes. */
	const uint8_t *used;
};

/* Computes an element of a key from the bits `random`. If `zero` is true, the element is 0 or -0. */
HOST_DEVICE static inline uint8_t indexer_key_byte(int zero, uint32_t random)
{
	uint8_t byte = zero ? 0 : e4m3_from_float(uniform_signed(random, 8) * 448);

	return byte == 0 ? (uint8_t)((random & 1) << 7) : byte;
}

/* Returns byte `index` of the cache. The four bytes of a scale are computed from the random bits of its first byte. */
HOST_DEVICE static inline uint8_t indexer_byte(const struct indexer_cache *f, int64_t index)
{
	int64_t page_bytes = f->page_size * (f->dim + 4), page = index / page_bytes, place = index % page_bytes;
	int64_t keys_end = f->page_size * f->dim, slot = place < keys_end ? place / f->dim : (place - keys_end) / 4;
	int used = f->used == NULL || f->used[page * f->page_size + slot] != 0;
	int64_t copied = index - slot % f->equal * (place < keys_end ? f->dim : 4); /* the index of the same byte in the
										     * first key of the group of
										     * f->equal equal keys */

	int zero = (page * f->page_size + slot) / f->equal % INDEXER_ZERO_GROUPS == INDEXER_ZERO_GROUP;

	if (place < keys_end)
		return used ? indexer_key_byte(zero, philox_bits(f->key, copied)) : 0x7f;

	int byte = (int)((place - keys_end) % 4);
	uint32_t random = philox_bits(f->key, copied - byte);
	float scale = (float)(128 + (random & 127)) * float_power(f->loud - 15 - (int)(random >> 7 & 3));

	return (uint8_t)((used ? float_bits(scale) : 0x7fc00000u) >> (8 * byte));
}

enum { INDEXER_LOUD_SCALES = 12, INDEXER_LOUD_WEIGHTS = 10 };

/* If `heads` is 0, computes element `index` of the indexer's queries. Otherwise, computes element `index` of the
 * indexer's weights, which have `heads` heads. `turn` is op_case.contents. */
HOST_DEVICE static inline float indexer_element(int64_t heads, int turn, int64_t index, uint32_t random)
{
	if (heads == 0)
		return uniform_signed(random, 7) * 8;

	int64_t number = index / heads + turn, kind = number % 4;
	int loud = kind == 1 ? INDEXER_LOUD_WEIGHTS : kind == 3 ? -INDEXER_LOUD_WEIGHTS : 0;

	return (uniform_signed(random, 20) + 0.5f * (float)(number % 3 - 1)) * float_power(loud);
}

#ifdef __cplusplus
extern "C" {
#endif

/* op.match must have accepted the problem as DSA_INDEXER. */
struct indexer_roles indexer_roles_of(const struct op_problem *problem);

struct indexer_extent indexer_extent_of(const struct op_case *c, const struct indexer_roles *roles);

/* indexer_cache_of returns the parameters for indexer_byte, except `used`, which is NULL in the result.
 * indexer_heads_of returns the argument `heads` of indexer_element for an input. */
struct indexer_cache indexer_cache_of(const struct op_case *c, const struct indexer_roles *roles);
int64_t indexer_heads_of(const struct op_case *c, const struct indexer_roles *roles, int input);

/* Returns an array with one byte per key of the cache, allocated with malloc: 1 if the key belongs to a sequence, else
 * 0. Returns NULL if a workload provides the lengths or the page table; all keys then count as used. Host only. */
uint8_t *indexer_used(const struct op_case *c, const struct indexer_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
