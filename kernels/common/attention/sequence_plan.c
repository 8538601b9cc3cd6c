#include "kernels/common/attention/sequence_plan.h"

#include <stdlib.h>

#include "kernels/common/attention/lengths.h"
#include "kernels/core/input_key.h"
#include "kernels/core/random_inputs.h"
#include "kernels/core/take.h"

uint64_t attention_plan_key(const struct op_case *c, const struct attention_roles *roles)
{
	if (roles->sparse >= 0)
		return input_key(c, roles->sparse);
	struct op_case planned = attention_extent_of(c, roles).batch == 1 ? op_case_first(c) : *c;

	return input_key(&planned, roles->kv_indptr);
}

enum kind { PLAIN, ONE_KEY, SQUARE, NO_KEYS, NO_QUERY, ONE_QUERY, NOTHING };

enum { SHARE = -1 }; /* a value in the table queries_of: the number of queries is random */

static const enum kind prefill_kinds[8] = {PLAIN, ONE_KEY, SQUARE, NO_KEYS, PLAIN, NO_QUERY, ONE_QUERY, NOTHING};
static const enum kind decode_kinds[8] = {PLAIN, ONE_KEY, PLAIN, NO_KEYS, PLAIN, PLAIN, PLAIN, PLAIN};
static const int64_t queries_of[] = {SHARE, 1, SHARE, 2, 0, 1, 0};

/* The working data of a plan; each array has one element per sequence. */
struct draft {
	int64_t batch, page_size;
	enum kind *kind;
	int64_t *queries, *entries, *weight;
	uint64_t key;
	bool lengths; /* whether last pages may be partly filled */
	int64_t *keys; /* number of keys of each sequence, from the case's list; -1: the number follows from
			* `entries` */
};

/* Increases the elements of `share`, each in proportion to its weight, until their sum is `total`. Returns false if the
 * sum is greater than `total` on entry, or if all weights are 0. */
static bool distribute(int64_t total, int64_t count, const int64_t *weight, int64_t *share)
{
	int64_t rest = total, weights = 0, left;

	for (int64_t i = 0; i < count; i++) {
		rest -= share[i];
		weights += weight[i];
	}
	if (rest < 0 || (weights == 0 && rest > 0))
		return false;
	left = rest;
	for (int64_t i = 0; i < count && weights > 0; i++) {
		share[i] += rest / weights * weight[i] + rest % weights * weight[i] / weights;
		left -= rest / weights * weight[i] + rest % weights * weight[i] / weights;
	}
	for (int64_t i = 0; left > 0; i = (i + 1) % count)
		if (weight[i] > 0) {
			share[i]++;
			left--;
		}
	return true;
}

/* Returns a random number from 1 to 8, which depends on the sequence and on `purpose` (0: queries, 1: entries). */
static int64_t random_weight(const struct draft *d, int64_t b, int64_t purpose)
{
	return 1 + philox_bits(d->key, 4 * b + purpose) % 8;
}

static bool deal_queries(struct draft *d, int64_t total)
{
	for (int64_t b = 0; b < d->batch; b++) {
		int64_t fixed = queries_of[d->kind[b]];

		d->queries[b] = fixed == SHARE ? 1 : fixed;
		d->weight[b] = fixed == SHARE ? random_weight(d, b, 0) : 0;
	}
	return distribute(total, d->batch, d->weight, d->queries);
}

static bool deal_entries(struct draft *d, int64_t total)
{
	for (int64_t b = 0; b < d->batch; b++) {
		enum kind kind = d->kind[b];
		int64_t least = (d->queries[b] + d->page_size - 1) / d->page_size;

		if (least == 0 && kind != NOTHING)
			least = 1;
		d->entries[b] = kind == NO_KEYS ? 0 : least;
		d->weight[b] = kind == ONE_KEY || kind == NO_KEYS || kind == NOTHING || (kind == SQUARE && d->lengths)
		                   ? 0
		                   : random_weight(d, b, 1);
	}
	return distribute(total, d->batch, d->weight, d->entries);
}

/* Distributes queries and entries (pages or, without pages, keys) over the sequences in proportion to random weights.
 * This distribution is possible for all axis lengths. It is used where no other distribution is possible, for example
 * if there are more queries than keys. */
static void deal_anyhow(struct draft *d, int64_t queries, int64_t entries, bool decode)
{
	for (int64_t b = 0; b < d->batch; b++) {
		d->kind[b] = PLAIN;
		d->queries[b] = decode ? 1 : 0;
		d->entries[b] = 0;
		d->weight[b] = random_weight(d, b, 0);
	}
	if (!decode)
		distribute(queries, d->batch, d->weight, d->queries);
	distribute(entries, d->batch, d->weight, d->entries);
}

static bool deal(struct draft *d, const struct attention_extent *e, bool decode, bool parts)
{
	for (int64_t b = 0; b < d->batch; b++) {
		d->kind[b] = !parts || d->batch == 1 ? PLAIN : decode ? decode_kinds[b % 8] : prefill_kinds[b % 8];
		d->queries[b] = 1;
	}
	return (decode || deal_queries(d, e->queries)) && deal_entries(d, e->entries);
}

static void exchange(int64_t *of, int64_t a, int64_t b)
{
	int64_t kept = of[a];

	of[a] = of[b];
	of[b] = kept;
}

/* Finds the list of lengths (lengths.h) whose totals equal the axis lengths of the case, and sets the lengths of all
 * sequences from that list. Returns false if no list has these totals. */
static bool deal_list(struct draft *d, const struct attention_extent *e, bool decode, enum op_contents contents)
{
	struct attention_totals totals = {e->batch, e->queries, e->entries, e->page_size, decode};
	enum attention_list list = attention_list_of(&totals);
	int64_t left = e->entries;

	for (int64_t b = d->batch - 1; b >= 0 && list != LIST_NONE; b--) {
		attention_list_lengths(list, &totals, contents, b, &d->queries[b], &d->keys[b]);
		d->kind[b] = PLAIN;
		d->entries[b] = b == 0 ? left : (d->keys[b] + d->page_size - 1) / d->page_size;
		left -= d->entries[b];
	}
	if (list != LIST_NONE && d->lengths) /* sequence 0's last page holds one key in the first set, and is full in
					      * the second set */
		d->keys[0] = contents == CONTENTS_FIRST ? (d->entries[0] - 1) * d->page_size + 1
		                                        : d->entries[0] * d->page_size;
	if (attention_list_ends_long(list, contents)) {
		exchange(d->queries, 0, d->batch - 1);
		exchange(d->entries, 0, d->batch - 1);
		exchange(d->keys, 0, d->batch - 1);
	}
	return list != LIST_NONE;
}

static int64_t last_of(const struct draft *d, int64_t b)
{
	int64_t before = (d->entries[b] - 1) * d->page_size, least = d->queries[b] - before;

	if (d->entries[b] == 0)
		return 0;
	least = least < 1 ? 1 : least > d->page_size ? d->page_size : least;
	if (d->lengths && d->keys[b] >= 0) /* keys[b] is the number of keys of sequence b */
		return d->keys[b] - before > least ? d->keys[b] - before : least;
	if (!d->lengths || b % 8 == 4)
		return d->page_size;
	if (d->kind[b] == ONE_KEY || d->kind[b] == SQUARE || least >= d->page_size - 1)
		return least;
	return least + philox_bits(d->key, 4 * b + 2) % (d->page_size - least);
}

static void sum_up(const struct draft *d, struct attention_plan *plan)
{
	for (int64_t b = 0; b < d->batch; b++) {
		plan->queries[b + 1] = plan->queries[b] + d->queries[b];
		plan->entries[b + 1] = plan->entries[b] + d->entries[b];
		plan->last[b] = last_of(d, b);

		int64_t keys = d->entries[b] == 0 ? 0 : (d->entries[b] - 1) * d->page_size + plan->last[b];

		plan->longest = keys > plan->longest ? keys : plan->longest;
	}
}

struct attention_plan attention_plan_of(const struct op_case *c, const struct attention_roles *roles)
{
	struct attention_extent e = attention_extent_of(c, roles);
	bool decode = roles->qo_indptr < 0;
	struct draft d = {
	    .batch = e.batch,
	    .page_size = e.page_size,
	    .kind = take(e.batch, sizeof *d.kind),
	    .queries = take(e.batch, sizeof *d.queries),
	    .entries = take(e.batch, sizeof *d.entries),
	    .weight = take(e.batch, sizeof *d.weight),
	    .keys = take(e.batch, sizeof *d.keys),
	    .key = attention_plan_key(c, roles),
	    .lengths = roles->last_page_len >= 0 || e.page_size == 1,
	};
	struct attention_plan plan = {
	    .batch = e.batch,
	    .queries = take(e.batch, sizeof *plan.queries),
	    .entries = take(e.batch, sizeof *plan.entries),
	    .last = take(e.batch, sizeof *plan.last),
	};

	for (int64_t b = 0; b < e.batch; b++)
		d.keys[b] = -1;
	if (!deal_list(&d, &e, decode, c->contents) && !deal(&d, &e, decode, true) && !deal(&d, &e, decode, false))
		deal_anyhow(&d, e.queries, e.entries, decode);
	sum_up(&d, &plan);
	free(d.kind);
	free(d.queries);
	free(d.entries);
	free(d.weight);
	free(d.keys);
	return plan;
}

void attention_plan_free(struct attention_plan *plan)
{
	free(plan->queries);
	free(plan->entries);
	free(plan->last);
}
