/* indexer - computes scores in double, selects keys by sorting them, and judges the selected keys as a set. */
#include "kernels/dsa_paged/indexer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/attention/attention.h"
#include "kernels/core/input_check.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"
#include "kernels/dsa_paged/mistakes.h"

enum { PARALLEL_FROM = 64 }; /* for fewer keys, one thread is faster than several */

int indexer_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);
	const struct tensor *lengths = &in[roles.lengths], *table = &in[roles.table];
	static const char why[] = "the scores would be NaN and have no order";

	if (check_numbers(c, in, roles.query, false, why, err) != 0 ||
	    check_numbers(c, in, roles.weights, false, why, err) != 0)
		return -1;
	for (int64_t b = 0; b < e.batch && lengths->data != NULL; b++) {
		int64_t length = attention_integer(lengths, b);

		if (length < 0 || length > e.most_pages * e.page_size)
			return err_set(err, "%s[%lld] is %lld; a length must be from 0 to %lld, the number of keys in all pages of the table",
			               c->problem->inputs[roles.lengths].name, (long long)b, (long long)length,
			               (long long)(e.most_pages * e.page_size));
		for (int64_t i = 0; i * e.page_size < length && table->data != NULL; i++) {
			int64_t page = attention_integer(table, b * e.most_pages + i);

			if (page < 0 || page >= e.pages)
				return err_set(err, "%s[%lld, %lld] is %lld, but there are only %lld pages, numbered from 0",
				               c->problem->inputs[roles.table].name, (long long)b, (long long)i,
				               (long long)page, (long long)e.pages);
		}
	}
	return 0;
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

struct key {
	double score, size; /* size: the sum of the magnitudes of the score's terms */
	int64_t name;       /* the key's number: page number * page size + slot in the page */
	int64_t place;      /* the key's position in the sequence */
	bool named;         /* whether the judged row of the reference's output lists the key */
};

/* Computes even[h], the dot product of a key with query h (`query` is [dim][heads]). The sums of the products of even
 * elements go to `even`, those of odd elements go to `odd`, and then `odd` is added to `even`. */
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

/* Reads the elements and the scale of the key in slot `slot` of a page. */
static double read_key(int mistake, const struct indexer_extent *e, const uint8_t *page, int64_t slot, double *elements)
{
	bool apart = mistake == INDEXER_SCALE_AFTER_KEY, integers = mistake == INDEXER_INTEGERS;
	float scale;

	memcpy(&scale, page + e->page_size * e->dim + slot * 4, sizeof scale);
	dtype_load_run(page, integers ? DTYPE_INT8 : DTYPE_FLOAT8_E4M3FN, slot * (apart ? e->dim + 4 : e->dim), e->dim, elements);
	return mistake == INDEXER_NO_SCALES ? 1 : mistake == INDEXER_DIVIDED_SCALES ? 1 / (double)scale : (double)scale;
}

/* Some mistakes select keys by a number other than the score. For such a mistake, replaces the score with this
 * number. */
static void mistake_score(int mistake, struct key *key)
{
	switch (mistake) {
	case INDEXER_RELU_LAST:
		key->score = key->score < 0 ? 0 : key->score;
		break;
	case INDEXER_SMALLEST:
		key->score = -key->score;
		break;
	case INDEXER_MAGNITUDES:
		key->score = fabs(key->score);
		break;
	case INDEXER_FIRST_KEYS:
	case INDEXER_LAST_KEYS:
		key->score = (double)(mistake == INDEXER_LAST_KEYS ? key->place : -key->place);
		key->size = 0;
		break;
	default:
		break;
	}
}

/* Computes the score of the key in slot `slot` of a page. `room` is memory for the elements of a key and two sums per
 * head. */
static void score_key(int mistake, struct key *key, const struct indexer_extent *e, const double *query,
                      const double *weights, const uint8_t *page, int64_t slot, double *room)
{
	double *sums = room + e->dim, scale = read_key(mistake, e, page, slot, room);
	bool relu = mistake != INDEXER_NO_RELU && mistake != INDEXER_RELU_LAST;

	multiply(e, query, room, sums, sums + e->heads);
	for (int64_t h = 0; h < e->heads; h++) {
		double sum = mistake == INDEXER_LIMITED_PRODUCTS ? fmin(sums[h] * scale, 65504) : sums[h] * scale;

		if (relu && sum <= 0)
			continue; /* the comparison is false for NaN, so NaN is added to the score */
		key->score += weights[h] * sum;
		key->size += fabs(weights[h] * sum);
	}
	mistake_score(mistake, key);
	if (isnan(key->score))
		key->score = INFINITY; /* sorting needs an order, so NaN counts as larger than all other scores */
}

/* Changes the weights of the heads as a reference with the mistake does. */
static void mistake_weights(int mistake, double *weights, int64_t heads)
{
	double most = -INFINITY, sum = 0;

	for (int64_t h = 0; h < heads && mistake == INDEXER_NO_WEIGHTS; h++)
		weights[h] = 1;
	if (mistake != INDEXER_SOFTMAX_WEIGHTS)
		return;
	for (int64_t h = 0; h < heads; h++)
		most = fmax(most, weights[h]);
	for (int64_t h = 0; h < heads; h++)
		sum += weights[h] = exp(weights[h] - most);
	for (int64_t h = 0; h < heads; h++)
		weights[h] /= sum;
}

/* Returns the queries of sequence b as [dim][heads], allocated with malloc. */
static double *queries_of(const struct indexer_extent *e, const struct tensor *queries, int64_t b)
{
	double *query = take(e->heads * e->dim, sizeof *query), *row = take(e->dim, sizeof *row);

	for (int64_t h = 0; h < e->heads; h++) {
		dtype_load_run(queries->data, queries->dtype, (b * e->heads + h) * e->dim, e->dim, row);
		for (int64_t d = 0; d < e->dim; d++)
			query[d * e->heads + h] = row[d];
	}
	free(row);
	return query;
}

/* Removes the keys whose score is 0, and returns the number of the remaining keys. */
static int64_t without_zeros(struct key *keys, int64_t count)
{
	int64_t left = 0;

	for (int64_t j = 0; j < count; j++)
		if (keys[j].score != 0)
			keys[left++] = keys[j];
	return left;
}

/* Returns the keys of sequence b, allocated with malloc. The caller has checked the inputs. */
static struct key *keys_of(const struct op_case *c, const struct tensor *in, int64_t b, int64_t *count)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer_extent e = indexer_extent_of(c, &roles);
	const struct tensor *cache = &in[roles.cache], *weight = &in[roles.weights];
	double *query = queries_of(&e, &in[roles.query], b), *weights = take(e.heads, sizeof *weights);
	int64_t length = attention_integer(&in[roles.lengths], b);
	if (c->mistake == INDEXER_WHOLE_PAGES)
		length = (length + e.page_size - 1) / e.page_size * e.page_size;
	struct key *keys = take(length, sizeof *keys);

	dtype_load_run(weight->data, weight->dtype, b * e.heads, e.heads, weights);
	mistake_weights(c->mistake, weights, e.heads);
#pragma omp parallel if (length >= PARALLEL_FROM)
	{
		double *room = take(e.dim + 2 * e.heads, sizeof *room);

#pragma omp for
		for (int64_t j = 0; j < length; j++) {
			int64_t page = attention_integer(&in[roles.table], b * e.most_pages + j / e.page_size);

			keys[j].name = c->mistake == INDEXER_PLACES ? j : page * e.page_size + j % e.page_size;
			keys[j].place = j;
			score_key(c->mistake, &keys[j], &e, query, weights,
			          (const uint8_t *)cache->data + page * e.page_size * (e.dim + 4), j % e.page_size, room);
		}
		free(room);
	}
	free(query);
	free(weights);
	*count = c->mistake == INDEXER_NO_ZERO_SCORES ? without_zeros(keys, length) : length;
	return keys;
}

/* Returns the number of keys that the indexer selects from a sequence with enough keys. */
static int64_t most_chosen(const struct op_case *c, const struct indexer_extent *e)
{
	return c->mistake == INDEXER_ONE_LESS && e->chosen > 0 ? e->chosen - 1 : e->chosen;
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
	if (c->mistake != 0 && c->mistake < INDEXER_NO_MISTAKE)
		return err_set(err, "the indexer cannot simulate this mistake, which exists only for attention");
	for (int64_t b = 0; b < e.batch; b++) {
		int64_t count, most = most_chosen(c, &e), none = c->mistake == INDEXER_ZEROS ? 0 : -1;
		struct key *keys = keys_of(c, in, b, &count);

		qsort(keys, (size_t)count, sizeof *keys, by_falling_score);
		for (int64_t i = 0; i < e.chosen; i++)
			dtype_store(out[0].data, out[0].dtype, b * e.chosen + i, i < count && i < most ? (double)keys[i].name : (double)none);
		free(keys);
	}
	return 0;
}

/* --- judgement ---------------------------------------------------------------------------------------------------- */

/* The keys of one sequence, with their true scores. The output has one row for each sequence. */
struct row {
	struct key *keys; /* sorted by name */
	int64_t count, wanted;
	/* `least` is the smallest selected score. A key whose score differs from `least` by at most `slack` may be
	 * selected or left out. */
	double least, slack;
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

/* Returns a key of the row that has the number `name` and is not marked as listed yet, or NULL if there is none. */
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

/* The state of a comparison between an output and the true scores. */
struct judgement {
	int64_t none; /* the value of entries that stand for no key */
	struct metrics *metrics;
	struct err *why;
	const struct tensor *reference, *truth; /* `reference` is NULL if an output of zeros is judged */
	int64_t misses;
};

static int64_t answer_at(const struct judgement *j, int64_t index)
{
	return j->reference == NULL ? 0 : (int64_t)dtype_load(j->reference->data, j->reference->dtype, index);
}

/* Counts entry `index` of the output as wrong. `distance` is the distance between the key's score and the least
 * selected score. If it is not finite, max_abs does not include it. */
static void miss(struct judgement *j, int64_t index, double distance, double slack)
{
	struct metrics *m = j->metrics;

	j->misses++;
	m->margin = fmax(m->margin, !isfinite(distance) || slack == 0 ? INFINITY : distance / slack);
	m->max_abs = isfinite(distance) ? fmax(m->max_abs, distance) : m->max_abs;
	if (m->worst_count < METRICS_WORST && j->reference != NULL)
		m->worst[m->worst_count++] =
		    (struct worst){index, (double)answer_at(j, index),
		                   dtype_load(j->truth->data, j->truth->dtype, index), distance};
}

static void judge_place(struct judgement *j, struct row *row, int64_t b, int64_t index, int64_t *unnamed)
{
	int64_t name = answer_at(j, index);
	struct key *key = name == j->none && *unnamed > 0 ? NULL : find_key(row, name);

	if (key == NULL && name == j->none && --*unnamed >= 0)
		return;
	if (key == NULL) {
		if (j->misses == 0 && name == j->none)
			err_set(j->why, "sequence %lld: fewer than %lld keys are listed", (long long)b,
			        (long long)row->wanted);
		else if (j->misses == 0)
			err_set(j->why, "sequence %lld: the listed key %lld is not a key of this sequence, or is "
				"listed twice",
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
		        "sequence %lld: key %lld is listed with score %.6g, but the %lld largest scores are at least "
			"%.6g",
		        (long long)b, (long long)name, key->score, (long long)row->wanted, row->least);
	miss(j, index, row->least - key->score, row->slack);
}

/* Counts keys that must be listed but are not. The first omitted key counts as an error of the row's first entry, the
 * second omitted key as an error of its second entry, and so on. */
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
			        "sequence %lld: key %lld is not listed, although its score is %.6g; the %lld largest "
				"scores are at least %.6g",
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
	struct judgement judged = {-1, metrics, why, reference, truth, 0}, zeros = {-1, &unused, NULL, NULL, truth, 0};

	if (indexer_check(c, in, why) != 0)
		return -1;
	judged.none = c->mistake == INDEXER_ZEROS ? 0 : -1;
	memset(metrics, 0, sizeof *metrics);
	metrics->elements = e.batch * e.chosen;
	for (int64_t b = 0; b < e.batch; b++) {
		struct row row = row_of(c, in, b, most_chosen(c, &e));
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
