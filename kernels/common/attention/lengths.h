/* lengths - lists the sequence lengths of default cases. Kernels and references with blocked loops tend to fail at
 * these lengths.
 *
 * A list contains the numbers of queries and keys of sequences 1, 2, 3 and so on. Sequence 0 gets the remaining queries
 * and keys. The two sets of input values of a case have the same axes, but a list has different lengths for each set.
 * If a length is a multiple of 16, 32, 64, 128, 256 or 512 in one set, the other set has this length plus or minus one.
 *
 *   SINGLE  One sequence. The last page of the sequence holds one key in the first set, and is full in the second set.
 *   BLOCKS  The numbers of keys are around every block size. One sequence has more than 2048 keys (latent heads: 4096).
 *           Some sequences have no keys, no queries, neither keys nor queries, one key, or as many keys as queries. In
 *           prefill, the numbers of queries are also around block sizes, up to 128. With latent heads, these numbers
 *           are at most 64, because each pair of a query and a key then costs ten times as much. The number of
 *           sequences is attention_past_block(). After the first 14 sequences, the last sequence and most sequences
 *           whose index is near a power of two have at most two queries and two keys. All others have one query and no
 *           key, which keeps the case fast. In the second set, the first and the last sequence are exchanged: the
 *           longest sequence is the last, and the first one has fewer keys than most.
 *   CHUNK   Prefill of long sequences, because references process chunks of 256, 512, 1024 or 2048 queries. One
 *           sequence is long: sequence 0 in the first set and, as in BLOCKS, the last sequence in the second set. In
 *           causal cases, the long sequence has 1025 queries (second set: 512) and more keys than queries. Its queries
 *           take most of the case's time, so only the first set has more than 1024 of them; 2049 queries would take
 *           four times as long. Sequence 1 has no keys, but so many queries that the last sequence begins after the
 *           first 2048 queries of the case. In cases without a mask, the long sequence has few keys and 2049 queries
 *           (second set: 2048). The number of sequences is attention_block(). After the first few sequences, only the
 *           last one has keys.
 *   MANY    attention_block() sequences, each with few queries. As in BLOCKS, most sequences have no key.
 *
 * In CHUNK and MANY_PREFILL, the total number of queries is a multiple of the number of sequences. In BLOCKS, the total
 * number of queries is one more than a multiple of attention_block(). */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_LENGTHS_H
#define REFTEST_KERNELS_COMMON_ATTENTION_LENGTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The longest sequence in a BLOCKS list has at least LIST_LONGEST keys or, with latent heads, LIST_LATENT_LONGEST
 * keys. */
enum { LIST_LONGEST = 2100, LIST_LATENT_LONGEST = 4200 };

enum attention_list {
	LIST_SINGLE_DECODE,
	LIST_SINGLE_PREFILL,
	LIST_BLOCKS_DECODE,
	LIST_BLOCKS_PREFILL,
	LIST_BLOCKS_LATENT,
	LIST_BLOCKS_LATENT_DECODE,
	LIST_CHUNK_CAUSAL,
	LIST_CHUNK_FULL,
	LIST_MANY_DECODE,
	LIST_MANY_PREFILL,
	LISTS,
	LIST_NONE = LISTS, /* the case has no list, and its lengths are random */
};

/* The total numbers of sequences, queries and entries of a case. Entries are pages. If the keys are not in pages,
 * entries are keys, and page_size is 1. */
struct attention_totals {
	int64_t batch, queries, entries, page_size;
	bool decode; /* whether every sequence has exactly one query */
};

/* Some cases have as many sequences as kernels usually process in one block. Returns this number: 256, or fewer if a
 * query has many or large heads. `row` is the number of elements in the output of one query (heads times value dim). */
int64_t attention_block(int64_t row);

/* Returns the number of sequences of another case with many sequences: 513 if attention_block is 256 and `row` is not
 * too large, otherwise one more than attention_block. */
int64_t attention_past_block(int64_t row);

/* Returns true if the number is a power of two that is at least 16, or one more or one less than such a power. */
bool attention_near_power(int64_t number);

/* Returns the totals of a case with the lengths of `list`. `row` has the same meaning as in attention_block. */
struct attention_totals attention_list_totals(enum attention_list list, int64_t page_size, int64_t row);

/* Returns the list whose cases have the totals `totals`, or LIST_NONE if no list has such cases. */
enum attention_list attention_list_of(const struct attention_totals *totals);

/* Writes the numbers of queries and keys of sequence b. For sequence 0, which has the remaining keys, writes -1 to
 * *keys. */
void attention_list_lengths(enum attention_list list, const struct attention_totals *totals, enum op_contents contents,
                            int64_t b, int64_t *queries, int64_t *keys);

/* Returns true for the second set of a BLOCKS or CHUNK list. The caller must then exchange the lengths of the first and
 * the last sequence, so that the longest sequence is the last one, and the first one has few keys. */
bool attention_list_ends_long(enum attention_list list, enum op_contents contents);

#ifdef __cplusplus
}
#endif
#endif
