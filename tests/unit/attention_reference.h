/* attention_reference - emulates torch references of attention in float32. On request, an emulation contains one of the
 * mistakes that people make. The emulation finds keys through the index tensors, as a reference does, and shares no
 * code with the oracle. */
#ifndef REFTEST_TESTS_ATTENTION_REFERENCE_H
#define REFTEST_TESTS_ATTENTION_REFERENCE_H

#include "tests/unit/problem_builder.h"

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/input_values.h"
#include "tests/unit/seeds.h"

enum mistake {
	NONE,
	SCALE_TWO_PERCENT,
	OUTPUT_TWO_PERCENT,
	NATURAL_LSE,
	LSE_OF_UNSCALED_LOGITS,
	MAXIMUM_NOT_SUBTRACTED,
	WEIGHTS_NOT_NORMALISED,
	FIRST_KEY_LEFT_OUT,
	LAST_KEY_LEFT_OUT,
	KEYS_IN_FP8,
	VALUES_IN_FP8,
	VALUES_OF_NEXT_KEY,
	ZEROS,
	NOT_A_NUMBER,
	EMPTY_HAS_LSE_ZERO,
	EMPTY_IS_NOT_A_NUMBER,
	LAST_QUERY_NOT_WRITTEN,
	OF_ALL, /* the mistakes above can be made in any attention; each mistake below needs a certain input or mask */
	HEADS_TILED,
	KEYS_FOR_VALUES,
	MASK_LEFT_OUT,
	MASK_ALIGNED_AT_START,
	MASK_ONE_LATE,
	MASK_ONE_EARLY,
	CHUNKS_FORGET_THEIR_START,
	TABLE_IGNORED,
	SEQUENCE_START_IGNORED,
	PLACE_IN_PAGE_IGNORED,
	LAST_PAGE_TAKEN_AS_FULL,
	LAST_PAGE_ONE_SHORT,
	LAST_PAGE_ALONE,
	ROTARY_PART_LEFT_OUT,
	ROTARY_PART_NOT_SCALED,
	SCALE_OF_THE_LATENT,
	PADDING_IS_A_ROW,
	PADDING_ENDS_THE_ROW,
	LAST_PLACE_NOT_LOOKED_AT,
	ROWS_ARE_PAGES,
	MISTAKES
};

static const char *const mistake_names[MISTAKES] = {
    "none",
    "scale two percent off",
    "output two percent off",
    "natural lse",
    "lse of unscaled logits",
    "maximum not subtracted",
    "weights not normalised",
    "first key left out",
    "last key left out",
    "keys in fp8",
    "values in fp8",
    "values of the next key",
    "zeros",
    "not a number",
    "empty sequences have lse zero",
    "empty sequences are not a number",
    "last query not written",
    "",
    "heads tiled",
    "keys for values",
    "mask left out",
    "mask aligned at the start",
    "mask one late",
    "mask one early",
    "chunks forget their start",
    "table ignored",
    "sequence start ignored",
    "place in page ignored",
    "last page taken as full",
    "last page one short",
    "last page alone",
    "rotary part left out",
    "rotary part not scaled",
    "scale of the latent",
    "padding is a row",
    "padding ends the row",
    "last place not looked at",
    "rows are pages",
};

/* The rows of the key tensor that a sequence uses, as the reference finds them. */
struct found {
	int64_t *row;
	int64_t count;
};

/* The tensors that a reference computes with, converted to floats. Most rows of a large cache belong to no sequence, so
 * a row of keys and values is converted only when a sequence first uses it. */
struct emulation {
	struct attention_view v;
	enum mistake mistake;
	float *query[ATTENTION_PARTS], *key[ATTENTION_PARTS], *value;
	uint8_t *converted; /* for each row: 1 if the row is in `key` and `value` */
};

/* Returns memory for the elements of a tensor as floats. The caller frees the memory. */
static inline float *room_for(const struct tensor *tensor)
{
	float *out = calloc((size_t)tensor->elements + 1, sizeof *out);

	assert_non_null(out);
	return out;
}

/* Converts elements `first` to end - 1 to floats. If `narrow` is true, rounds each element to e4m3 first. */
static inline void convert(const struct tensor *tensor, int64_t first, int64_t end, bool narrow, float *out)
{
	for (int64_t i = first; i < end; i++) {
		float value = (float)dtype_load(tensor->data, tensor->dtype, i);

		out[i] = narrow ? float_from_e4m3(e4m3_from_float(value)) : value;
	}
}

/* Copies all elements to new memory as floats. The caller frees the memory. */
static inline float *floats_of(const struct tensor *tensor)
{
	float *out = room_for(tensor);

	convert(tensor, 0, tensor->elements, false, out);
	return out;
}

static inline void convert_rows(const struct emulation *m, const struct found *found)
{
	const struct attention_extent *e = &m->v.extent;

	for (int64_t j = 0; j < found->count; j++) {
		int64_t row = found->row[j], size = e->kv_heads * e->value_dim;

		if (m->converted[row])
			continue;
		m->converted[row] = 1;
		convert(&m->v.value, row * size, (row + 1) * size, m->mistake == VALUES_IN_FP8, m->value);
		for (int p = 0; p < ATTENTION_PARTS; p++) {
			size = e->kv_heads * e->dim[p];
			convert(&m->v.key[p], row * size, (row + 1) * size, m->mistake == KEYS_IN_FP8, m->key[p]);
		}
	}
}

/* Like torch, replaces a negative index by an index that counts from the end. Returns false if the row does not exist.
 * In this case torch would raise an error, so the emulation must end, and the mistake counts as caught. */
static inline bool readable(const struct attention_view *v, int64_t *row)
{
	if (*row < 0)
		*row += v->extent.rows;
	return *row >= 0 && *row < v->extent.rows;
}

static inline int64_t emulate_length(const struct attention_view *v, int64_t b, int64_t pages, enum mistake mistake)
{
	int64_t size = v->extent.page_size, last = size;

	if (pages <= 0)
		return 0;
	if (v->last_page_len.data != NULL && mistake != LAST_PAGE_TAKEN_AS_FULL)
		last = attention_integer(&v->last_page_len, b);
	if (mistake == LAST_PAGE_ONE_SHORT)
		last--;
	return (mistake == LAST_PAGE_ALONE ? 0 : (pages - 1) * size) + last;
}

static inline int64_t emulate_row(const struct attention_view *v, int64_t b, int64_t j, enum mistake mistake)
{
	int64_t start = mistake == SEQUENCE_START_IGNORED ? 0 : attention_integer(&v->kv_indptr, b);
	int64_t size = v->extent.page_size, entry = start + j / size;
	int64_t page =
	    v->kv_indices.data == NULL || mistake == TABLE_IGNORED ? entry : attention_integer(&v->kv_indices, entry);

	return page * size + (mistake == PLACE_IN_PAGE_IGNORED ? 0 : j % size);
}

/* Finds the keys of sequence b. Returns false if torch would raise an error. */
static inline bool find_keys(const struct attention_view *v, int64_t b, enum mistake mistake, struct found *found)
{
	int64_t pages = attention_integer(&v->kv_indptr, b + 1) - attention_integer(&v->kv_indptr, b);

	found->count = emulate_length(v, b, pages, mistake);
	found->row = calloc((size_t)found->count + 1, sizeof *found->row);
	assert_non_null(found->row);
	for (int64_t j = 0; j < found->count; j++) {
		found->row[j] = emulate_row(v, b, j, mistake);
		if (!readable(v, &found->row[j]))
			return false;
	}
	return true;
}

static inline bool find_rows(const struct attention_view *v, int64_t t, enum mistake mistake, struct found *found)
{
	int64_t most = v->extent.entries;

	found->count = 0;
	found->row = calloc((size_t)most + 1, sizeof *found->row);
	assert_non_null(found->row);
	for (int64_t j = 0; j < most - (mistake == LAST_PLACE_NOT_LOOKED_AT); j++) {
		int64_t row = attention_integer(&v->sparse, t * most + j);

		if (row == -1 && mistake == PADDING_ENDS_THE_ROW)
			break;
		if (row == -1 && mistake != PADDING_IS_A_ROW)
			continue;
		if (mistake == ROWS_ARE_PAGES)
			row *= v->extent.page_size;
		if (!readable(v, &row))
			return false;
		found->row[found->count++] = row;
	}
	return true;
}

/* Returns the sum of products, computed in 8 partial sums, as vector code does. */
NOT_INSTRUMENTED
static inline float sum_of_products(const float *a, const float *b, int64_t count)
{
	float sums[8] = {0}, sum = 0;
	int64_t d = 0;

	for (; d + 8 <= count; d += 8)
		for (int i = 0; i < 8; i++)
			sums[i] += a[d + i] * b[d + i];
	for (; d < count; d++)
		sum += a[d] * b[d];
	for (int i = 0; i < 8; i++)
		sum += sums[i];
	return sum;
}

/* Adds factor * from[d] to each of `count` elements of `to`. */
NOT_INSTRUMENTED
static inline void add_multiple(float *restrict to, float factor, const float *restrict from, int64_t count)
{
	int64_t d = 0;

	for (; d + 8 <= count; d += 8)
		for (int i = 0; i < 8; i++)
			to[d + i] += factor * from[d + i];
	for (; d < count; d++)
		to[d] += factor * from[d];
}

NOT_INSTRUMENTED
static inline float emulate_logit(const struct emulation *m, int64_t t, int64_t h, int64_t row, float scale)
{
	const struct attention_extent *e = &m->v.extent;
	int64_t kv_head = m->mistake == HEADS_TILED ? h % e->kv_heads : h / (e->heads / e->kv_heads);
	float logit = 0;

	for (int p = 0; p < ATTENTION_PARTS; p++) {
		const float *query = m->query[p] + (t * e->heads + h) * e->dim[p];
		const float *key = m->key[p] + (row * e->kv_heads + kv_head) * e->dim[p];

		if (p == 1 && m->mistake == ROTARY_PART_LEFT_OUT)
			break;
		float sum = sum_of_products(query, key, e->dim[p]);

		logit += p == 1 && m->mistake == ROTARY_PART_NOT_SCALED ? sum : sum * scale;
	}
	return logit;
}

/* Returns the number of keys that query i of `queries` queries sees. */
static inline int64_t emulate_seen(const struct attention_view *v, int64_t i, int64_t queries, int64_t count,
                                   enum mistake mistake)
{
	int64_t seen = count - queries + i + 1;

	if (!v->causal || mistake == MASK_LEFT_OUT)
		return count;
	if (mistake == MASK_ALIGNED_AT_START)
		seen = i + 1;
	if (mistake == MASK_ONE_LATE)
		seen++;
	if (mistake == MASK_ONE_EARLY)
		seen--;
	if (mistake == CHUNKS_FORGET_THEIR_START)
		seen = count - queries + i % 512 + 1;
	return seen < 0 ? 0 : seen < count ? seen : count;
}

/* Computes the softmax weights of keys `first` to seen - 1, and returns the lse. */
static inline float emulate_weights(const struct emulation *m, const struct found *found, int64_t t, int64_t h,
                                    int64_t first, int64_t seen, float *weight, float *sum)
{
	const struct attention_extent *e = &m->v.extent;
	float scale = (float)m->v.scale * (m->mistake == SCALE_TWO_PERCENT ? 1.02f : 1), largest = -INFINITY, raw = 0;

	if (m->mistake == SCALE_OF_THE_LATENT)
		scale = 1 / sqrtf((float)(e->dim[0] + e->dim[1]));
	for (int64_t j = first; j < seen; j++) {
		weight[j] = emulate_logit(m, t, h, found->row[j], scale);
		largest = weight[j] > largest || isnan(weight[j]) ? weight[j] : largest;
	}
	float shift = m->mistake == MAXIMUM_NOT_SUBTRACTED ? 0 : largest;

	for (int64_t j = first; j < seen; j++) {
		raw += expf((weight[j] - largest) / scale);
		*sum += weight[j] = expf(weight[j] - shift);
	}
	if (seen <= first)
		return m->mistake == EMPTY_HAS_LSE_ZERO ? 0 : -INFINITY;
	if (m->mistake == LSE_OF_UNSCALED_LOGITS)
		return (largest / scale + logf(raw)) / logf(2);
	return (shift + logf(*sum)) / (m->mistake == NATURAL_LSE ? 1 : logf(2));
}

NOT_INSTRUMENTED
static inline void emulate_output(const struct emulation *m, const struct found *found, int64_t h, int64_t first,
                                  int64_t seen, const float *weight, float *out)
{
	const struct attention_extent *e = &m->v.extent;
	int64_t kv_head = m->mistake == HEADS_TILED ? h % e->kv_heads : h / (e->heads / e->kv_heads);
	const float *values = m->mistake == KEYS_FOR_VALUES ? m->key[0] : m->value;

	memset(out, 0, (size_t)e->value_dim * sizeof *out);
	for (int64_t j = first; j < seen; j++) {
		int64_t row = found->row[m->mistake == VALUES_OF_NEXT_KEY && j + 1 < found->count ? j + 1 : j];
		const float *value = values + (row * e->kv_heads + kv_head) * e->value_dim;

		add_multiple(out, weight[j], value, e->value_dim);
	}
}

static inline void emulate_head(const struct emulation *m, const struct found *found, int64_t t, int64_t h,
                                int64_t seen)
{
	const struct attention_view *v = &m->v;
	int64_t place = t * v->extent.heads + h, first = m->mistake == FIRST_KEY_LEFT_OUT;
	float *weight = calloc((size_t)found->count + 1, sizeof *weight), sum = 0, lse;
	float *out = calloc((size_t)v->extent.value_dim + 1, sizeof *out);

	assert_true(weight != NULL && out != NULL);
	seen -= m->mistake == LAST_KEY_LEFT_OUT;
	lse = emulate_weights(m, found, t, h, first, seen, weight, &sum);
	emulate_output(m, found, h, first, seen, weight, out);
	for (int64_t d = 0; d < v->extent.value_dim; d++) {
		float value = m->mistake == WEIGHTS_NOT_NORMALISED  ? out[d]
		              : seen > first                        ? out[d] / sum
		              : m->mistake == EMPTY_IS_NOT_A_NUMBER ? NAN
		                                                    : 0;

		value *= m->mistake == OUTPUT_TWO_PERCENT ? 1.02f : m->mistake == ZEROS ? 0 : 1;
		if (m->mistake == NOT_A_NUMBER && place == 0)
			value = NAN;
		dtype_store(v->output.data, v->output.dtype, place * v->extent.value_dim + d, (double)value);
	}
	if (v->lse.data != NULL)
		dtype_store(v->lse.data, v->lse.dtype, place, (double)lse);
	free(out);
	free(weight);
}

static inline bool emulate_sequence(const struct emulation *m, int64_t b)
{
	const struct attention_view *v = &m->v;
	bool sparse = v->sparse.data != NULL;
	int64_t first = v->qo_indptr.data != NULL ? attention_integer(&v->qo_indptr, b) : b;
	int64_t end = v->qo_indptr.data != NULL ? attention_integer(&v->qo_indptr, b + 1) : b + 1;
	struct found found;
	bool ran = sparse ? find_rows(v, b, m->mistake, &found) : find_keys(v, b, m->mistake, &found);

	if (ran)
		convert_rows(m, &found);
	for (int64_t t = first; ran && t < end; t++)
		for (int64_t h = 0; h < v->extent.heads; h++)
			if (m->mistake != LAST_QUERY_NOT_WRITTEN || t != v->extent.queries - 1)
				emulate_head(m, &found, t, h,
				             emulate_seen(v, t - first, end - first, found.count, m->mistake));
	free(found.row);
	return ran;
}

/* Computes the reference's outputs into w->answer. Returns false if the reference would raise an error. */
static inline bool emulate(struct world *w, const struct attention_roles *roles, enum mistake mistake)
{
	struct emulation m = {.v = attention_view_of(&w->c, roles, w->in, w->answer), .mistake = mistake};
	int64_t sequences = m.v.sparse.data != NULL ? m.v.extent.queries : m.v.extent.batch;
	bool ran = true;

	for (int i = 0; i < w->c.problem->output_count; i++)
		memset(w->answer[i].data, 0, (size_t)dtype_bytes(w->answer[i].dtype, w->answer[i].elements));
	for (int p = 0; p < ATTENTION_PARTS; p++) {
		m.query[p] = floats_of(&m.v.query[p]);
		m.key[p] = room_for(&m.v.key[p]);
	}
	m.value = room_for(&m.v.value);
	m.converted = calloc((size_t)m.v.extent.rows + 1, 1);
	assert_non_null(m.converted);
	for (int64_t b = 0; ran && b < sequences; b++)
		ran = emulate_sequence(&m, b);
	for (int p = 0; p < ATTENTION_PARTS; p++) {
		free(m.query[p]);
		free(m.key[p]);
	}
	free(m.value);
	free(m.converted);
	return ran;
}

#endif
