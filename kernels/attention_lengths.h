/* attention_lengths - how long the sequences of default cases are: lists in which the lengths stand at which kernels and
 * references that work by blocks go wrong.
 *
 * A list says of sequences 1, 2, 3, … how many queries and keys each has, over and over; sequence 0 has what the axes leave.
 * It says so for both contents of a case, which have the same axes. Where one has a multiple of 16, 32, 64, 128 or 256, the
 * other has one off it.
 *
 *   SINGLE  one sequence: its last page holds one key in the first contents, and is full in the second
 *   BLOCKS  key lengths around every block size, one sequence of more than 2048 keys, and of prefill query lengths around the
 *           block sizes up to 128 (latent heads, where a pair of query and key costs ten times as much: 64); sequences
 *           without keys, without queries, without either, of one key, of as many keys as queries
 *   CHUNK   prefill of 512 and 513, 256 and 257 queries, at which references cut; causal ones have as many keys
 *   MANY    301 sequences (fewer where heads are many and large): those beside a multiple of 16 have two queries and two keys
 *           at most, the others one query and no key, so that they are cheap */
#ifndef REFTEST_KERNELS_ATTENTION_LENGTHS_H
#define REFTEST_KERNELS_ATTENTION_LENGTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys that the longest sequence of BLOCKS has, at least. */
enum { LIST_LONGEST = 2100 };

enum attention_list {
	LIST_SINGLE_DECODE,
	LIST_SINGLE_PREFILL,
	LIST_BLOCKS_DECODE,
	LIST_BLOCKS_PREFILL,
	LIST_BLOCKS_LATENT,
	LIST_CHUNK_CAUSAL,
	LIST_CHUNK_FULL,
	LIST_MANY_DECODE,
	LIST_MANY_PREFILL,
	LISTS,
	LIST_NONE = LISTS, /* lengths are random */
};

/* Totals of a case, and the page size that its keys come in (1: no pages). Entries: pages, or keys without pages. */
struct attention_totals {
	int64_t batch, queries, entries, page_size;
	bool decode; /* one query a sequence, whatever the list says */
};

/* The totals of a case of this list. `row`: elements that a query has in all heads of its output, by which MANY is as long as
 * it is. */
struct attention_totals attention_list_totals(enum attention_list list, int64_t page_size, int64_t row);

/* The list whose cases have these totals; LIST_NONE. */
enum attention_list attention_list_of(const struct attention_totals *totals);

/* Queries and keys of sequence b. Of sequence 0: the queries that are left; *keys is -1. */
void attention_list_lengths(enum attention_list list, const struct attention_totals *totals, enum op_contents contents,
                            int64_t b, int64_t *queries, int64_t *keys);

#ifdef __cplusplus
}
#endif
#endif
