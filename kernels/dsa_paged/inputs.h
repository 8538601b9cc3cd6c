/* dsa_paged inputs - which tensor plays which part in DeepSeek's sparse attention, and the bytes of the indexer's
 * cache.
 *
 * Sparse attention (op.match's variant DSA_ATTENTION): kernels/attention_inputs.h.
 *
 * The indexer (DSA_INDEXER). Of sequences 0 … 7 the first contents, and the second:
 *
 *   0  all that its table holds but 3 keys         all that its table holds
 *   1  one key                                     one key
 *   2  as many keys as are to be chosen            as many
 *   3  none                                        none
 *   4  one more than are to be chosen              one more
 *   5  half as many, and 5                         half as many
 *   6  a random length                             one fewer than are to be chosen
 *   7  one page                                    one page and a key
 *
 * 8 to 22 have 15, 16, 17, 31, 32, 33, … 257 keys; those after them, so that many are cheap, none to three. A sequence's pages
 * are distinct and in random order; sequences share pages. One page in eight is used by nobody; in the first contents table
 * entries beyond a sequence's pages point at such a page, in the second they are -1. Nobody has to read them: a page of a
 * table means something up to the sequence's length. Unused keys, in unused pages or after the last key, are NaN, and so are
 * their scales.
 *
 * The edges have three sequences: of no keys; of one fewer than are to be chosen, one, and a page and one; of all that the
 * table holds, where every key and every scale is the cache's first.
 *
 *   queries  uniform on [-8, 8), keys uniform on [-448, 448), both rounded to the dtype (keys: e4m3, of
 *            whose zeros every second one is -0)
 *   scales   of keys: [1, 2) * 2^-8 … 2^-11, so that order by score is not order without them
 *   weights  uniform on [-1, 1): of either sign, so that order by score is not order without them, or without the relu; of
 *            every third sequence 0.5 less and of every third 0.5 more, so that scores are nearly all below 0, or all above,
 *            and of the others on both sides of it
 *
 * In the second contents eight neighbours in the cache are one and the same key: the least chosen score is that of several
 * keys, of which not all may be chosen. In the first no two keys are the same. */
#ifndef REFTEST_KERNELS_DSA_PAGED_INPUTS_H
#define REFTEST_KERNELS_DSA_PAGED_INPUTS_H

#include "kernels/attention_inputs.h"

/* op.match's variants. */
enum { DSA_ATTENTION = 0, DSA_INDEXER = 1 };

/* Indices into the indexer's inputs. Its only output is output 0. */
struct indexer_roles {
	int query;   /* [sequences, heads, dim] floats */
	int cache;   /* [pages, page size, 1, dim + 4] octets: all keys of the page (e4m3), then all their scales
	                (float32) */
	int weights; /* [sequences, heads] floats */
	int lengths; /* [sequences] integers */
	int table;   /* [sequences, most pages] integers: page numbers */
};

struct indexer_extent {
	int64_t batch, heads, dim, pages, page_size, most_pages, chosen;
};

/* Everything an octet of the cache depends on; plain data, given to the GPU by value. */
struct indexer_cache {
	uint64_t key;
	int64_t page_size, dim;
	int equal; /* so many neighbours are one and the same key */
	const uint8_t *used; /* [pages * page size] 0: this key is NaN; NULL: all are used. Where the octets are made */
};

/* An element of a key from its random bits. */
HOST_DEVICE static inline uint8_t indexer_key_octet(uint32_t random)
{
	uint8_t octet = e4m3_from_float(uniform_signed(random, 8) * 448);

	return octet == 0 ? (uint8_t)((random & 1) << 7) : octet;
}

/* Octet `index` of the cache. A scale's four octets share the random bits of its first. */
HOST_DEVICE static inline uint8_t indexer_octet(const struct indexer_cache *f, int64_t index)
{
	int64_t page_bytes = f->page_size * (f->dim + 4), page = index / page_bytes, place = index % page_bytes;
	int64_t keys_end = f->page_size * f->dim, slot = place < keys_end ? place / f->dim : (place - keys_end) / 4;
	int used = f->used == NULL || f->used[page * f->page_size + slot] != 0;
	int64_t copied = index - slot % f->equal * (place < keys_end ? f->dim : 4); /* the first of its equals */

	if (place < keys_end)
		return used ? indexer_key_octet(philox_bits(f->key, copied)) : 0x7f;

	int octet = (int)((place - keys_end) % 4);
	uint32_t random = philox_bits(f->key, copied - octet);
	float scale = (float)(128 + (random & 127)) * float_power(-15 - (int)(random >> 7 & 3));

	return (uint8_t)((used ? float_bits(scale) : 0x7fc00000u) >> (8 * octet));
}

/* An element of the indexer's queries (heads 0), or of weights of so many heads: element `index`. `turn`: op_case.contents. */
HOST_DEVICE static inline float indexer_element(int64_t heads, int turn, int64_t index, uint32_t random)
{
	return heads == 0 ? uniform_signed(random, 7) * 8
	                  : uniform_signed(random, 20) + 0.5f * (float)((index / heads + turn) % 3 - 1);
}

#ifdef __cplusplus
extern "C" {
#endif

/* For problems that op.match took as DSA_ATTENTION, as DSA_INDEXER. */
struct attention_roles dsa_paged_roles(const struct op_problem *problem);
struct indexer_roles indexer_roles_of(const struct op_problem *problem);

struct indexer_extent indexer_extent_of(const struct op_case *c, const struct indexer_roles *roles);

/* How the cache's octets are made but for `used`, and the heads that indexer_element is asked with for an input. */
struct indexer_cache indexer_cache_of(const struct op_case *c, const struct indexer_roles *roles);
int64_t indexer_heads_of(const struct op_case *c, const struct indexer_roles *roles, int input);

/* A byte a key, 1 where a sequence has it, from malloc; NULL: all (the caller brings lengths or table). Host only. */
uint8_t *indexer_used(const struct op_case *c, const struct indexer_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
