#include "kernels/common/attention/lengths.h"

struct length {
	int16_t queries, keys;
};

enum { PARTS = 14 };

/* How many sequences a case with a list of lengths has. PARTS_ONLY: sequence 0 and the sequences whose lengths are in
 * list.part. BLOCK: attention_block(). PAST_BLOCK: attention_past_block(). BLOCK_WITHOUT_KEYS: attention_block(), but
 * of the sequences after those in list.part, only the last one has keys. */
enum sequences { PARTS_ONLY, BLOCK, BLOCK_WITHOUT_KEYS, PAST_BLOCK };

/* One list of sequence lengths. Sequences 1 … `count` have the lengths part[…][0 … count - 1]. Unless `sequences` is
 * PARTS_ONLY, more sequences follow, each with few keys or none (see part_of). `rest` is the smallest length of sequence
 * 0. */
struct list {
	bool decode;
	enum sequences sequences;
	int count;
	struct length part[CONTENTS_COUNT][PARTS], rest;
};

/* The lengths of the lists BLOCKS_DECODE and BLOCKS_LATENT_DECODE. */
#define DECODE_BLOCKS \
	{ \
		{{1, 1}, {1, 0}, {1, 16}, {1, 17}, {1, 32}, {1, 33}, {1, 64}, {1, 65}, {1, 128}, {1, 129}, {1, 256}, {1, 257}, \
		 {1, 512}, {1, 513}}, \
		{{1, 0}, {1, 1}, {1, 15}, {1, 16}, {1, 31}, {1, 32}, {1, 63}, {1, 64}, {1, 127}, {1, 128}, {1, 255}, {1, 256}, \
		 {1, 511}, {1, 512}} \
	}

static const struct list lists[LISTS] = {
    [LIST_SINGLE_DECODE] = {true, PARTS_ONLY, 0, {{{0, 0}}}, {1, 33}},
    [LIST_SINGLE_PREFILL] = {false, PARTS_ONLY, 0, {{{0, 0}}}, {16, 33}},
    [LIST_BLOCKS_DECODE] = {true, PAST_BLOCK, PARTS, DECODE_BLOCKS, {1, LIST_LONGEST}},
    [LIST_BLOCKS_PREFILL] = {false,
                             PAST_BLOCK,
                             PARTS,
                             {{{1, 1},
                               {16, 16},
                               {162, 0},
                               {17, 33},
                               {0, 20},
                               {1, 256},
                               {0, 0},
                               {32, 64},
                               {33, 65},
                               {64, 128},
                               {65, 129},
                               {128, 130},
                               {1, 512},
                               {1, 513}},
                              {{162, 0},
                               {17, 17},
                               {1, 1},
                               {15, 32},
                               {0, 0},
                               {1, 257},
                               {0, 31},
                               {31, 63},
                               {32, 33},
                               {63, 127},
                               {64, 255},
                               {129, 129},
                               {1, 511},
                               {1, 512}}},
                             {6, LIST_LONGEST}},
    [LIST_BLOCKS_LATENT] = {false,
                            PAST_BLOCK,
                            PARTS,
                            {{{1, 1},
                              {16, 16},
                              {129, 0},
                              {17, 33},
                              {0, 20},
                              {1, 256},
                              {0, 0},
                              {3, 64},
                              {32, 32},
                              {2, 128},
                              {1, 129},
                              {65, 65},
                              {1, 512},
                              {1, 513}},
                             {{129, 0},
                              {17, 17},
                              {1, 1},
                              {15, 32},
                              {0, 0},
                              {1, 257},
                              {0, 31},
                              {2, 63},
                              {33, 33},
                              {1, 127},
                              {2, 255},
                              {64, 65},
                              {1, 511},
                              {1, 512}}},
                            {2, LIST_LATENT_LONGEST}},
    [LIST_BLOCKS_LATENT_DECODE] = {true, PAST_BLOCK, PARTS, DECODE_BLOCKS, {1, LIST_LATENT_LONGEST}},
    [LIST_CHUNK_CAUSAL] = {false,
                           BLOCK_WITHOUT_KEYS,
                           3,
                           {{{1011, 0}, {256, 256}, {16, 16}}, {{1779, 0}, {0, 769}, {17, 17}}},
                           {512, 513}},
    [LIST_CHUNK_FULL] = {false, BLOCK_WITHOUT_KEYS, 2, {{{256, 17}, {2, 0}}, {{257, 16}, {2, 0}}}, {2048, 20}},
    [LIST_MANY_DECODE] = {true, BLOCK, 0, {{{0, 0}}}, {1, 33}},
    [LIST_MANY_PREFILL] = {false, BLOCK, 2, {{{2, 5}, {0, 4}}, {{0, 4}, {2, 5}}}, {1, 33}},
};

/* The lengths of the sequences that follow those in list.part and may have keys (part_of). Sequence b has the lengths
 * later[…][(b - 1) % LATER]. */
enum { LATER = 4 };
static const struct length later[CONTENTS_COUNT][LATER] = {{{1, 1}, {1, 0}, {1, 2}, {1, 2}},
                                                          {{1, 0}, {1, 2}, {1, 1}, {1, 2}}};

/* The largest number of output elements in a case with 513 sequences, and in a case with 256 or 257. */
enum { MANY_ELEMENTS = 9000000, BLOCK_ELEMENTS = 68 << 20 };

int64_t attention_block(int64_t row)
{
	return 257 <= BLOCK_ELEMENTS / (row > 0 ? row : 1) ? 256 : 128;
}

int64_t attention_past_block(int64_t row)
{
	return 513 <= MANY_ELEMENTS / (row > 0 ? row : 1) ? 513 : attention_block(row) + 1;
}

bool attention_near_power(int64_t number)
{
	int64_t power = 16;

	while (power + 1 < number)
		power *= 2;
	return number >= power - 1;
}

/* Returns the lengths of sequence b, which must not be sequence 0. Of the sequences after the first `count`, the last
 * one has keys, so a reference that omits the last sequence gives a wrong output. Most sequences with an index near a
 * power of two (attention_near_power) also have keys, except in a list with BLOCK_WITHOUT_KEYS. All other sequences
 * after the first `count` have one query and no key, because a reference that loops over sequences takes time for each
 * sequence with keys. */
static struct length part_of(const struct list *list, int contents, int64_t batch, int64_t b)
{
	struct length part = {1, 0};

	if (b <= list->count)
		return list->part[contents][b - 1];
	if ((attention_near_power(b) && list->sequences != BLOCK_WITHOUT_KEYS) || b + 1 == batch)
		part = later[contents][(b - 1) % LATER];
	if (list->decode)
		part.queries = 1;
	return part;
}

static int64_t pages_of(int64_t keys, int64_t page_size)
{
	return (keys + page_size - 1) / page_size;
}

/* Writes the sums of queries and of entries (pages or, without pages, keys) over all sequences except sequence 0. */
static void sum_up(const struct list *list, int contents, int64_t batch, int64_t page_size, int64_t *queries,
                   int64_t *entries)
{
	*queries = *entries = 0;
	for (int64_t b = 1; b < batch; b++) {
		struct length part = part_of(list, contents, batch, b);

		*queries += part.queries;
		*entries += pages_of(part.keys, page_size);
	}
}

/* Returns the smallest number that is at least `number` and leaves the remainder `rest` (0 or 1) when divided by 256. */
static int64_t up_to_block(int64_t number, int64_t rest)
{
	return (number - rest + 255) / 256 * 256 + rest;
}

/* Returns the totals of a case with `batch` sequences. The lengths of sequences 1, 2, … have different sums in the two
 * sets of input values. A total is the larger of these two sums, plus the smallest length that sequence 0 may have. If
 * sequence 0 is the only sequence, it has at least two pages. If page_size is 1, and more sequences follow those in
 * list.part, the number of entries is rounded up to a multiple of 256 or, with PAST_BLOCK, to one more than a
 * multiple. */
static struct attention_totals totals_of(const struct list *list, int64_t batch, int64_t page_size)
{
	struct attention_totals totals = {.batch = batch, .page_size = page_size, .decode = list->decode};
	int64_t rest = pages_of(list->rest.keys, page_size);

	for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
		int64_t queries, entries;

		sum_up(list, contents, batch, page_size, &queries, &entries);
		totals.queries = queries > totals.queries ? queries : totals.queries;
		totals.entries = entries > totals.entries ? entries : totals.entries;
	}
	totals.queries += list->rest.queries;
	totals.entries += rest < 2 && batch == 1 ? 2 : rest;
	if (page_size == 1 && list->sequences != PARTS_ONLY)
		totals.entries = up_to_block(totals.entries, list->sequences == PAST_BLOCK);
	return totals;
}

struct attention_totals attention_list_totals(enum attention_list list, int64_t page_size, int64_t row)
{
	const struct list *chosen = &lists[list];
	int64_t batch = 1 + chosen->count;

	if (chosen->sequences != PARTS_ONLY)
		batch = chosen->sequences == PAST_BLOCK ? attention_past_block(row) : attention_block(row);
	return totals_of(chosen, batch, page_size);
}

/* Returns true if a case with this list may have `batch` sequences. */
static bool has_batch(const struct list *list, int64_t batch)
{
	int64_t block = list->sequences == PAST_BLOCK ? batch - 1 : batch;

	if (list->sequences == PARTS_ONLY)
		return batch == 1 + list->count;
	if (block == 512)
		return list->sequences == PAST_BLOCK;
	return block == 128 || block == 256;
}

enum attention_list attention_list_of(const struct attention_totals *totals)
{
	for (int i = 0; i < LISTS; i++) {
		const struct list *list = &lists[i];

		if (list->decode != totals->decode || !has_batch(list, totals->batch))
			continue;

		struct attention_totals own = totals_of(list, totals->batch, totals->page_size);

		if (own.queries == totals->queries && own.entries == totals->entries)
			return (enum attention_list)i;
	}
	return LIST_NONE;
}

void attention_list_lengths(enum attention_list list, const struct attention_totals *totals, enum op_contents contents,
                            int64_t b, int64_t *queries, int64_t *keys)
{
	struct length part;
	int64_t entries;

	if (b == 0) {
		sum_up(&lists[list], (int)contents, totals->batch, totals->page_size, queries, &entries);
		*queries = totals->queries - *queries;
		*keys = -1;
		return;
	}
	part = part_of(&lists[list], (int)contents, totals->batch, b);
	*queries = part.queries;
	*keys = part.keys;
}

bool attention_list_ends_long(enum attention_list list, enum op_contents contents)
{
	return list != LIST_NONE && (lists[list].sequences == PAST_BLOCK || lists[list].sequences == BLOCK_WITHOUT_KEYS) &&
	       contents == CONTENTS_SECOND;
}
