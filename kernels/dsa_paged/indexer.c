/* indexer - scores in double, the choice by sorting, and the judgement of a choice as a set. */
#include "kernels/dsa_paged/indexer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/attention.h"
#include "kernels/check.h"
#include "kernels/wide.h"

enum { PARALLEL_FROM = 64 }; /* keys from which threads are worth their start */

static void *take(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

int indexer_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);
	const struct tensor *lengths = &in[roles.lengths], *table = &in[roles.table];
	static const char why[] = "scores that follow from it have no order";

	if (check_numbers(c, in, roles.query, false, why, err) != 0 ||
	    check_numbers(c, in, roles.weights, false, why, err) != 0)
		return -1;
	for (int64_t b = 0; b < e.batch && lengths->data != NULL; b++) {
		int64_t length = attention_integer(lengths, b);

		if (length < 0 || length > e.most_pages * e.page_size)
			return err_set(err, "%s[%lld] is %lld; the table has room for 0 to %lld keys",
			               c->problem->inputs[roles.lengths].name, (long long)b, (long long)length,
			               (long long)(e.most_pages * e.page_size));
		for (int64_t i = 0; i * e.page_size < length && table->data != NULL; i++) {
			int64_t page = attention_integer(table, b * e.most_pages + i);

			if (page < 0 || page >= e.pages)
				return err_set(err, "%s[%lld, %lld] is %lld; there are %lld pages, counted from 0",
				               c->problem->inputs[roles.table].name, (long long)b, (long long)i,
				               (long long)page, (long long)e.pages);
		}
	}
	return 0;
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* A key of a sequence. */
struct key {
	double score, size; /* size: the sum of its terms' magnitudes */
	int64_t name;       /* page number * page size + place in the page */
	int64_t place;      /* in the sequence */
	bool named;
};

/* even[h] = the dot product of query h, of [dim][heads], with a key: the sum of the products of even places and that of odd
 * ones, which is made in `odd`, added up. */
WIDE static void multiply(const struct indexer_extent *e, const double *query, const double *key, double *even,
                          double *odd)
{
	int64_t heads = e->heads, paired = e->dim / 2 * 2;

	memset(even, 0, (size_t)heads * sizeof *even);
	memset(odd, 0, (size_t)heads * sizeof *odd);
	for (int64_t d = 0; d < paired; d += 2) {
		const double *row = query + d * heads;

#pragma omp simd
		for (int64_t h = 0; h < heads; h++) {
			even[h] += row[h] * key[d];
			odd[h] += row[heads + h] * key[d + 1];
		}
	}
	for (int64_t h = 0; h < heads; h++)
		even[h] += odd[h];
	for (int64_t h = 0; h < heads && paired < e->dim; h++)
		even[h] += query[paired * heads + h] * key[paired];
}

/* `room` is for a key's elements and two sums a head. */
static void score_key(struct key *key, const struct indexer_extent *e, const double *query, const double *weights,
                      const uint8_t *page, int64_t slot, double *room)
{
	double *sums = room + e->dim;
	float scale;

	memcpy(&scale, page + e->page_size * e->dim + slot * 4, sizeof scale);
	number_read(page, DTYPE_FLOAT8_E4M3FN, slot * e->dim, e->dim, room);
	multiply(e, query, room, sums, sums + e->heads);
	for (int64_t h = 0; h < e->heads; h++) {
		double sum = sums[h] * (double)scale;

		if (sum <= 0)
			continue; /* a NaN goes on */
		key->score += weights[h] * sum;
		key->size += fabs(weights[h]) * sum;
	}
	if (isnan(key->score))
		key->score = INFINITY; /* larger than everything, and sorting needs an order */
}

/* The queries of sequence b as [dim][heads], from malloc. */
static double *queries_of(const struct indexer_extent *e, const struct tensor *queries, int64_t b)
{
	double *query = take(e->heads * e->dim, sizeof *query), *row = take(e->dim, sizeof *row);

	for (int64_t h = 0; h < e->heads; h++) {
		number_read(queries->data, queries->dtype, (b * e->heads + h) * e->dim, e->dim, row);
		for (int64_t d = 0; d < e->dim; d++)
			query[d * e->heads + h] = row[d];
	}
	free(row);
	return query;
}

/* All keys of sequence b, from malloc. The inputs are in order. */
static struct key *keys_of(const struct op_case *c, const struct tensor *in, int64_t b, int64_t *count)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);
	const struct tensor *cache = &in[roles.cache], *weight = &in[roles.weights];
	double *query = queries_of(&e, &in[roles.query], b), *weights = take(e.heads, sizeof *weights);
	int64_t length = attention_integer(&in[roles.lengths], b);
	struct key *keys = take(length, sizeof *keys);

	number_read(weight->data, weight->dtype, b * e.heads, e.heads, weights);
#pragma omp parallel if (length >= PARALLEL_FROM)
	{
		double *room = take(e.dim + 2 * e.heads, sizeof *room);

#pragma omp for
		for (int64_t j = 0; j < length; j++) {
			int64_t page = attention_integer(&in[roles.table], b * e.most_pages + j / e.page_size);

			keys[j].name = page * e.page_size + j % e.page_size;
			keys[j].place = j;
			score_key(&keys[j], &e, query, weights,
			          (const uint8_t *)cache->data + page * e.page_size * (e.dim + 4), j % e.page_size, room);
		}
		free(room);
	}
	free(query);
	free(weights);
	*count = length;
	return keys;
}

static int by_falling_score(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

int indexer_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);

	if (indexer_check(c, in, err) != 0)
		return -1;
	for (int64_t b = 0; b < e.batch; b++) {
		int64_t count;
		struct key *keys = keys_of(c, in, b, &count);

		qsort(keys, (size_t)count, sizeof *keys, by_falling_score);
		for (int64_t i = 0; i < e.chosen; i++)
			number_set(out[0].data, out[0].dtype, b * e.chosen + i, i < count ? (double)keys[i].name : -1);
		free(keys);
	}
	return 0;
}

/* --- judgement ---------------------------------------------------------------------------------------------------- */

/* What is known of one row before its answer is looked at. */
struct row {
	struct key *keys; /* by name */
	int64_t count, wanted;
	double least, slack; /* the score of the least chosen key; how far from it a choice is free */
};

static int by_name(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

static struct row row_of(const struct op_case *c, const struct tensor *in, int64_t b, int64_t chosen)
{
	struct row row = {0};
	double size = 0;

	row.keys = keys_of(c, in, b, &row.count);
	row.wanted = row.count < chosen ? row.count : chosen;
	qsort(row.keys, (size_t)row.count, sizeof *row.keys, by_falling_score);
	row.least = row.wanted > 0 ? row.keys[row.wanted - 1].score : 0;
	for (int64_t j = 0; j < row.count; j++)
		size = isfinite(row.keys[j].size) ? fmax(size, row.keys[j].size) : size;
	row.slack = size * 0x1p-14;
	qsort(row.keys, (size_t)row.count, sizeof *row.keys, by_name);
	return row;
}

/* An unnamed key of that name; NULL: there is none (any more). */
static struct key *find_key(struct row *row, int64_t name)
{
	int64_t low = 0, high = row->count;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (row->keys[middle].name < name)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < row->count && row->keys[low].name == name && row->keys[low].named)
		low++;
	return low < row->count && row->keys[low].name == name ? &row->keys[low] : NULL;
}

/* The judgement so far. */
struct judgement {
	struct metrics *metrics;
	struct err *why;
	const struct tensor *reference, *truth; /* reference NULL: an answer of zeros */
	int64_t misses;
};

static int64_t answer_at(const struct judgement *j, int64_t index)
{
	return j->reference == NULL ? 0 : (int64_t)number_get(j->reference->data, j->reference->dtype, index);
}

/* Place `index` is wrong, by `distance` (not finite: not a matter of degree). The first one gives the sentence. */
static void miss(struct judgement *j, int64_t index, double distance, double slack)
{
	struct metrics *m = j->metrics;

	j->misses++;
	m->margin = fmax(m->margin, !isfinite(distance) || slack == 0 ? INFINITY : distance / slack);
	m->max_abs = isfinite(distance) ? fmax(m->max_abs, distance) : m->max_abs;
	if (m->worst_count < METRICS_WORST && j->reference != NULL)
		m->worst[m->worst_count++] =
		    (struct worst){index, (double)answer_at(j, index),
		                   number_get(j->truth->data, j->truth->dtype, index), distance};
}

static void judge_place(struct judgement *j, struct row *row, int64_t b, int64_t index, int64_t *unnamed)
{
	int64_t name = answer_at(j, index);
	struct key *key = name == -1 ? NULL : find_key(row, name);

	if (name == -1 && --*unnamed >= 0)
		return;
	if (key == NULL) {
		if (j->misses == 0 && name == -1)
			err_set(j->why, "sequence %lld: fewer than %lld keys are named", (long long)b,
			        (long long)row->wanted);
		else if (j->misses == 0)
			err_set(j->why, "sequence %lld: %lld is named, which is no key of it, or named twice",
			        (long long)b, (long long)name);
		miss(j, index, INFINITY, row->slack);
		return;
	}
	key->named = true;
	if (key->score >= row->least - row->slack) {
		j->metrics->margin =
		    fmax(j->metrics->margin, key->score < row->least ? (row->least - key->score) / row->slack : 0);
		return;
	}
	if (j->misses == 0)
		err_set(j->why,
		        "sequence %lld: %lld is named, whose score is %.6g; the %lld largest reach down to %.6g",
		        (long long)b, (long long)name, key->score, (long long)row->wanted, row->least);
	miss(j, index, row->least - key->score, row->slack);
}

/* Keys that had to be named and were not. Each is laid at a place of the row's own, from the first on. */
static void judge_omitted(struct judgement *j, const struct row *row, int64_t b, int64_t chosen)
{
	int64_t place = 0;

	for (int64_t i = 0; i < row->count; i++) {
		const struct key *key = &row->keys[i];
		bool needed = row->wanted == row->count || key->score > row->least + row->slack;

		if (!needed || key->named)
			continue;
		if (j->misses == 0)
			err_set(j->why,
			        "sequence %lld: %lld is not named, whose score is %.6g; the %lld largest reach down to "
			        "%.6g",
			        (long long)b, (long long)key->name, key->score, (long long)row->wanted, row->least);
		miss(j, b * chosen + place++ % chosen, fabs(key->score - row->least), row->slack);
	}
}

static int64_t judge_row(struct judgement *j, struct row *row, int64_t b, int64_t chosen)
{
	int64_t unnamed = chosen - row->wanted, before = j->misses;

	for (int64_t i = 0; i < row->count; i++)
		row->keys[i].named = false;
	for (int64_t i = 0; i < chosen; i++)
		judge_place(j, row, b, b * chosen + i, &unnamed);
	judge_omitted(j, row, b, chosen);
	return j->misses - before;
}

int indexer_judge(const struct op_case *c, const struct tensor *in, const struct tensor *reference,
                  const struct tensor *truth, struct metrics *metrics, struct err *why)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);
	struct metrics unused = {0};
	struct judgement judged = {metrics, why, reference, truth, 0}, zeros = {&unused, NULL, NULL, truth, 0};

	if (indexer_check(c, in, why) != 0)
		return -1;
	memset(metrics, 0, sizeof *metrics);
	metrics->elements = e.batch * e.chosen;
	for (int64_t b = 0; b < e.batch; b++) {
		struct row row = row_of(c, in, b, e.chosen);
		int64_t misses = judge_row(&judged, &row, b, e.chosen);

		metrics->hits += misses < e.chosen ? e.chosen - misses : 0;
		judge_row(&zeros, &row, b, e.chosen);
		free(row.keys);
	}
	metrics->cosine = metrics->elements > 0 ? (double)metrics->hits / (double)metrics->elements : 1;
	metrics->zeros_would_pass = zeros.misses == 0;
	metrics->passed = judged.misses == 0;
	return 1;
}
