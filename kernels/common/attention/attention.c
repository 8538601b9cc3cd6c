/* attention - the CPU oracle of attention. It computes in double. The oracle first copies the keys and values of a
 * sequence to contiguous memory. Then it computes each head of each query separately, in two passes over the logits.
 * The oracle rounds each result once, at the end. */
#include "kernels/common/attention/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/attention/forms.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

struct attention_view attention_view_of(const struct op_case *c, const struct attention_roles *roles,
                                        const struct tensor *in, const struct tensor *out)
{
	struct attention_view v = {
	    .extent = attention_extent_of(c, roles),
	    .value = op_tensor(in, roles->value),
	    .qo_indptr = op_tensor(in, roles->qo_indptr),
	    .kv_indptr = op_tensor(in, roles->kv_indptr),
	    .kv_indices = op_tensor(in, roles->kv_indices),
	    .last_page_len = op_tensor(in, roles->last_page_len),
	    .sparse = op_tensor(in, roles->sparse),
	    .scale = c->scalar[roles->scale],
	    .causal = attention_is_causal(c->problem, roles),
	    .mistake = c->mistake,
	    .mistake_by = c->mistake_by,
	};

	for (int p = 0; p < ATTENTION_PARTS; p++) {
		v.query[p] = op_tensor(in, roles->query[p]);
		v.key[p] = op_tensor(in, roles->key[p]);
	}
	if (out != NULL) {
		v.output = op_tensor(out, roles->output);
		v.lse = op_tensor(out, roles->lse);
	}
	return v;
}

/* --- checks of the index tensors ---------------------------------------------------------------------------------- */

static const char *name_of(const struct op_case *c, int input)
{
	return c->problem->inputs[input].name;
}

/* Checks an offset vector: the first offset must be 0, no offset may be below the previous one, and the last offset
 * must be at most `limit`, the number of rows that the offsets index. */
static int check_offsets(const struct op_case *c, int input, const struct tensor *offsets, int64_t limit,
                         const char *unit, struct err *err)
{
	const char *name = name_of(c, input);

	if (attention_integer(offsets, 0) != 0)
		return err_set(err, "%s[0] is %lld, not 0; offsets must start at 0", name,
		               (long long)attention_integer(offsets, 0));
	for (int64_t b = 1; b < offsets->elements; b++) {
		int64_t from = attention_integer(offsets, b - 1), to = attention_integer(offsets, b);

		if (to < from || to > limit)
			return err_set(err,
			               "%s[%lld] is %lld: it must be at least %s[%lld] = %lld, and at most %lld, the number of %s",
			               name, (long long)b, (long long)to, name, (long long)b - 1, (long long)from,
			               (long long)limit, unit);
	}
	return 0;
}

static int check_range(const struct op_case *c, int input, const struct tensor *numbers, int64_t least, int64_t limit,
                       const char *unit, struct err *err)
{
	for (int64_t i = 0; i < numbers->elements; i++) {
		int64_t number = attention_integer(numbers, i);

		if (number < least || number >= limit)
			return err_set(err, "%s has %lld at flat index %lld; there are only %lld %s, numbered from 0%s",
			               name_of(c, input), (long long)number, (long long)i, (long long)limit, unit,
			               least < 0 ? ", and -1 means no entry" : "");
	}
	return 0;
}

/* Checks that the number of keys in every last page is from 1 to the page size. For a sequence without pages, which has
 * no last page, any number is valid. */
static int check_last(const struct op_case *c, int input, const struct attention_view *v, struct err *err)
{
	const char *name = name_of(c, input);

	for (int64_t b = 0; b < v->extent.batch; b++) {
		int64_t length = attention_integer(&v->last_page_len, b);
		bool empty = v->kv_indptr.data != NULL &&
		             attention_integer(&v->kv_indptr, b) == attention_integer(&v->kv_indptr, b + 1);

		if (!empty && (length < 1 || length > v->extent.page_size))
			return err_set(err, "%s[%lld] is %lld: the last page of a sequence holds 1 to %lld keys",
			    name, (long long)b,
			               (long long)length, (long long)v->extent.page_size);
	}
	return 0;
}

/* Checks the axes of problems with sequences: the numbers of offsets, lengths, pages and queries must be consistent. */
static int check_axes(const struct op_case *c, const struct attention_roles *roles, const struct attention_extent *e,
                      struct err *err)
{
	const struct op_arg *inputs = c->problem->inputs;
	int64_t offsets = c->axis[inputs[roles->kv_indptr].axis[0]];
	int64_t lengths = roles->last_page_len < 0 ? e->batch : c->axis[inputs[roles->last_page_len].axis[0]];

	if (offsets < 1)
		return err_set(err, "%s is empty; for N sequences, an offset vector has N + 1 elements",
		               name_of(c, roles->kv_indptr));
	if (roles->qo_indptr < 0 && e->batch > e->queries)
		return err_set(err, "%s has offsets of %lld sequences, but there are only %lld queries",
		               name_of(c, roles->kv_indptr), (long long)e->batch, (long long)e->queries);
	if (lengths < e->batch)
		return err_set(err, "%s has %lld elements, but there are %lld sequences",
		               name_of(c, roles->last_page_len), (long long)lengths, (long long)e->batch);
	if (roles->kv_indices >= 0 && e->pages == 0 && e->entries > 0)
		return err_set(err, "%s has %lld page numbers, but the caches have no page",
		               name_of(c, roles->kv_indices), (long long)e->entries);
	return 0;
}

int attention_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	const struct attention_roles found = attention_roles_of(c->problem), *roles = &found;
	struct attention_view v = attention_view_of(c, roles, in, NULL);
	const struct attention_extent *e = &v.extent;
	bool paged = roles->kv_indices >= 0;

	if (roles->sparse >= 0)
		return v.sparse.data == NULL
		           ? 0
		           : check_range(c, roles->sparse, &v.sparse, -1, e->rows, "key rows", err);
	if (check_axes(c, roles, e, err) != 0)
		return -1;
	if (v.kv_indptr.data != NULL &&
	    check_offsets(c, roles->kv_indptr, &v.kv_indptr, e->entries, paged ? "page numbers" : "keys", err) != 0)
		return -1;
	if (v.qo_indptr.data != NULL &&
	    check_offsets(c, roles->qo_indptr, &v.qo_indptr, e->queries, "queries", err) != 0)
		return -1;
	if (v.kv_indices.data != NULL &&
	    check_range(c, roles->kv_indices, &v.kv_indices, 0, e->pages, "pages", err) != 0)
		return -1;
	return v.last_page_len.data != NULL ? check_last(c, roles->last_page_len, &v, err) : 0;
}

/* --- the truth ---------------------------------------------------------------------------------------------------- */

/* Several threads compute a sequence only if it needs at least this many multiplications. For fewer multiplications,
 * starting the threads takes longer than the computation. */
enum { PARALLEL_FROM = 1 << 20 };

/* A pair is a query and a head. TOGETHER pairs that read the same keys and values are processed together. KEYS keys
 * form a block. In a block, element d of the first key is followed by element d of the other keys. These KEYS elements
 * form a vector, which is loaded once for all pairs. A sum of products is also such a vector: lane i contains the sum
 * for key i, so lanes are never added to each other. */
enum { TOGETHER = 8, KEYS = 8, LANES = 8 };

typedef double lanes __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* The keys and values of one sequence, copied to contiguous memory. */
struct gathered {
	int64_t count;
	int64_t room;       /* number of keys that fit in the memory */
	int64_t value_room; /* number of elements of one value: value_dim, rounded up to a multiple of LANES */
	double *key[ATTENTION_PARTS]; /* [blocks of KEYS keys][kv heads][dim][KEYS]; the last block may have unused
				       * elements */
	double *value;                /* [kv heads][value_room / LANES][room][LANES] */
};

/* Returns part `p` of the keys of one block and one kv head, as [dim][KEYS]. */
static inline double *key_block(const struct attention_extent *e, const struct gathered *g, int p, int64_t block,
                                int64_t kv_head)
{
	return g->key[p] + (block * e->kv_heads + kv_head) * e->dim[p] * KEYS;
}

/* Returns the elements d … d + LANES - 1 of all values of a kv head, as [room][LANES]. */
static inline double *value_block(const struct gathered *g, int64_t kv_head, int64_t d)
{
	return g->value + (kv_head * g->value_room + d) * g->room;
}

/* Copies row `row` of the values to `g`, as value number g->count. `numbers` is scratch memory for one row of
 * values. */
static void gather_value(const struct attention_view *v, struct gathered *g, int64_t row, double *numbers)
{
	const struct attention_extent *e = &v->extent;
	int64_t size = e->kv_heads * e->value_dim;

	dtype_load_run(v->value.data, v->value.dtype, row * size, size, numbers);
	for (int64_t h = 0; h < e->kv_heads; h++)
		for (int64_t d = 0; d < e->value_dim; d += LANES)
			memcpy(value_block(g, h, d) + g->count * LANES, numbers + h * e->value_dim + d,
			       (size_t)(e->value_dim - d < LANES ? e->value_dim - d : LANES) * sizeof *numbers);
}

/* Copies row `row` of the keys and values to `g`, as key number g->count. `numbers` is scratch memory for one row of
 * keys or values. */
static void gather_row(const struct attention_view *v, struct gathered *g, int64_t row, double *numbers)
{
	const struct attention_extent *e = &v->extent;

	for (int p = 0; p < ATTENTION_PARTS && e->dim[p] > 0; p++) {
		int64_t size = e->kv_heads * e->dim[p];

		dtype_load_run(v->key[p].data, v->key[p].dtype, row * size, size, numbers);
		for (int64_t h = 0; h < e->kv_heads; h++) {
			double *block = key_block(e, g, p, g->count / KEYS, h) + g->count % KEYS;

			for (int64_t d = 0; d < e->dim[p]; d++)
				block[d * KEYS] = numbers[h * e->dim[p] + d];
		}
	}
	gather_value(v, g, row, numbers);
	g->count++;
}

static struct gathered gather(const struct attention_view *v, const struct attention_span *span)
{
	const struct attention_extent *e = &v->extent;
	struct gathered g = {.room = (span->keys + KEYS - 1) / KEYS * KEYS,
	                     .value_room = (e->value_dim + LANES - 1) / LANES * LANES};
	double *numbers = take(e->kv_heads * (e->dim[0] + e->dim[1] + e->value_dim), sizeof *numbers);

	for (int p = 0; p < ATTENTION_PARTS; p++)
		g.key[p] = take_dirty(g.room * e->kv_heads * e->dim[p], sizeof *g.key[p]);
	g.value = take_dirty(g.room * e->kv_heads * g.value_room, sizeof *g.value);
	for (int64_t j = v->mistake == ATTENTION_FIRST_KEY && span->keys > 1; j < span->keys; j++) {
		int64_t row = attention_row(v, span, j);

		if (row >= 0)
			gather_row(v, &g, row, numbers);
	}
	free(numbers);
	return g;
}

static void let_go(struct gathered *g)
{
	free(g->value);
	for (int p = 0; p < ATTENTION_PARTS; p++)
		free(g->key[p]);
}

/* The query of one head of one token: a row of q. */
struct query_row {
	int64_t place, seen; /* place: t * heads + h for query t and head h; seen: number of keys that the query sees */
	double largest, sum; /* the largest scaled logit; the sum of e^(logit - largest) */
};

struct query_rows {
	int64_t count, least, most; /* least, most: the minimum and the maximum of `seen` in `of` */
	int64_t kv_head;
	double *query;  /* [dim of both parts][TOGETHER] */
	double *output; /* [TOGETHER][value_room] */
	double *weight; /* [keys, rounded up to a multiple of KEYS][TOGETHER]: first the scaled logits, then the
			 * weights */
	struct query_row of[TOGETHER];
};

/* Adds the products of TOGETHER queries with the keys of one block to sum[query][key]. */
FUSED static inline void add_products(const double *query, const double *key, int64_t dim, lanes *sum)
{
	for (int64_t d = 0; d < dim; d++, query += TOGETHER, key += KEYS) {
		lanes k = *(const lanes *)key;

		sum[0] += query[0] * k, sum[1] += query[1] * k, sum[2] += query[2] * k, sum[3] += query[3] * k;
		sum[4] += query[4] * k, sum[5] += query[5] * k, sum[6] += query[6] * k, sum[7] += query[7] * k;
	}
}

/* Writes the scaled logits of the keys of one block to query_rows->weight. Also writes logits of keys that a query does
 * not see; the caller must ignore these logits. */
WIDE FUSED static void scale_logits(const struct attention_view *v, const struct gathered *g, int64_t block,
                                    struct query_rows *query_rows)
{
	const struct attention_extent *e = &v->extent;
	lanes sum[TOGETHER] = {{0}};

	for (int p = 0; p < ATTENTION_PARTS && e->dim[p] > 0; p++)
		add_products(query_rows->query + (p > 0 ? e->dim[0] * TOGETHER : 0),
		             key_block(e, g, p, block, query_rows->kv_head), e->dim[p], sum);
	for (int64_t j = 0; j < KEYS; j++)
		for (int64_t i = 0; i < TOGETHER; i++)
			query_rows->weight[(block * KEYS + j) * TOGETHER + i] = v->scale * sum[i][j];
}

static double to_bfloat16(double x)
{
	return (double)float_from_bf16(bf16_from_float((float)x));
}

/* Replaces the correct weights of query row i with the weights that a reference with the mistake computes. */
static void mistake_weights(int mistake, struct query_rows *query_rows, int64_t i)
{
	struct query_row *query_row = &query_rows->of[i];
	double *weight = query_rows->weight + i, sum = 0;

	for (int64_t j = 0; j < query_row->seen; j++) {
		double *w = &weight[j * TOGETHER], logit = log(*w * query_row->sum) + query_row->largest;

		if (mistake == ATTENTION_ROUNDED_WEIGHTS)
			*w = to_bfloat16(*w);
		else if (mistake == ATTENTION_NOT_DIVIDED)
			*w *= query_row->sum;
		else if (mistake == ATTENTION_RAW_WEIGHTS)
			*w = logit;
		else if (mistake == ATTENTION_ROUNDED_LOGITS)
			*w = exp(to_bfloat16(logit) - query_row->largest);
		else if (mistake == ATTENTION_BASE_2)
			*w = exp2(logit - query_row->largest);
		sum += *w;
	}
	for (int64_t j = 0; j < query_row->seen && (mistake == ATTENTION_ROUNDED_LOGITS || mistake == ATTENTION_BASE_2); j++)
		weight[j * TOGETHER] /= sum;
	if (mistake == ATTENTION_ROUNDED_LOGITS)
		query_row->sum = sum;
}

/* Computes the weights in float32 and without subtracting the largest logit: e^logit divided by the sum of all
 * e^logit. */
static void divide_as_they_are(struct query_rows *query_rows, int64_t i)
{
	struct query_row *query_row = &query_rows->of[i];
	double *weight = query_rows->weight + i;
	float sum = 0;

	for (int64_t j = 0; j < query_row->seen; j++)
		sum += expf((float)(log(weight[j * TOGETHER] * query_row->sum) + query_row->largest));
	for (int64_t j = 0; j < query_row->seen; j++)
		weight[j * TOGETHER] = (double)(expf((float)(log(weight[j * TOGETHER] * query_row->sum) + query_row->largest)) / sum);
}

/* Replaces the log-sum-exp of query row i with the log-sum-exp of its unscaled logits. */
static void unscale_sum(const struct attention_view *v, struct query_rows *query_rows, int64_t i)
{
	struct query_row *query_row = &query_rows->of[i];
	double largest = query_row->largest / v->scale, sum = 0;

	for (int64_t j = 0; j < query_row->seen; j++)
		sum += exp((log(query_rows->weight[j * TOGETHER + i] * query_row->sum) + query_row->largest) / v->scale - largest);
	query_row->largest = largest;
	query_row->sum = sum;
}

/* Replaces the logits of query row i with its weights. */
static void find_weights(const struct attention_view *v, struct query_rows *query_rows, int64_t i)
{
	struct query_row *query_row = &query_rows->of[i];
	double largest = -INFINITY, sum = 0, *weight = query_rows->weight + i;

	for (int64_t j = 0; j < query_row->seen; j++)
		if (!(weight[j * TOGETHER] <= largest)) /* also true if the logit is NaN; `largest` then becomes NaN */
			largest = weight[j * TOGETHER];
	for (int64_t j = 0; j < query_row->seen; j++) {
		weight[j * TOGETHER] = exp(weight[j * TOGETHER] - largest);
		sum += weight[j * TOGETHER];
	}
	for (int64_t j = 0; j < query_row->seen; j++)
		weight[j * TOGETHER] /= sum;
	query_row->largest = largest;
	query_row->sum = sum;
	if (v->mistake == ATTENTION_NO_MAXIMUM)
		divide_as_they_are(query_rows, i);
	else if (v->mistake == ATTENTION_UNSCALED_LSE)
		unscale_sum(v, query_rows, i);
	else if (v->mistake >= ATTENTION_ROUNDED_WEIGHTS)
		mistake_weights(v->mistake, query_rows, i);
}

/* Computes the elements d … d + LANES - 1 of the outputs of all query rows. Adds only the values of keys that all of
 * these rows see. */
WIDE static void add_values(const struct gathered *g, const struct query_rows *query_rows, int64_t d)
{
	lanes sum[TOGETHER] = {{0}};
	const double *w = query_rows->weight, *value = value_block(g, query_rows->kv_head, d);
	double *output = query_rows->output + d;

	for (int64_t j = 0; j < query_rows->least; j++, w += TOGETHER, value += LANES) {
		lanes x = *(const lanes *)value;

		sum[0] += w[0] * x, sum[1] += w[1] * x, sum[2] += w[2] * x, sum[3] += w[3] * x;
		sum[4] += w[4] * x, sum[5] += w[5] * x, sum[6] += w[6] * x, sum[7] += w[7] * x;
	}
	for (int64_t i = 0; i < TOGETHER; i++)
		*(lanes *)(output + i * g->value_room) = sum[i];
}

/* Adds value j to the output of query row i. */
static inline void add_value(const struct gathered *g, const struct query_rows *query_rows, int64_t i, int64_t j)
{
	double weight = query_rows->weight[j * TOGETHER + i], *output = query_rows->output + i * g->value_room;

	for (int64_t d = 0; d < g->value_room; d += LANES)
		*(lanes *)(output + d) += weight * *(const lanes *)(value_block(g, query_rows->kv_head, d) + j * LANES);
}

/* Computes, for each query row, the weighted sum of the values, the largest logit and the sum of the weights. A value
 * that a query does not see does not change the query's output, even if the value is not finite. */
WIDE static void attend(const struct attention_view *v, const struct gathered *g, struct query_rows *query_rows)
{
	for (int64_t block = 0; block * KEYS < query_rows->most; block++)
		scale_logits(v, g, block, query_rows);
	for (int64_t i = 0; i < query_rows->count; i++)
		find_weights(v, query_rows, i);
	for (int64_t d = 0; d < g->value_room; d += LANES)
		add_values(g, query_rows, d);
	for (int64_t i = 0; i < query_rows->count; i++)
		for (int64_t j = query_rows->least; j < query_rows->of[i].seen; j++)
			add_value(g, query_rows, i, j);
}

/* Reads row i of the queries. `room` is working memory for one query. */
static void read_query(const struct attention_view *v, struct query_rows *query_rows, int64_t i, double *room)
{
	const struct attention_extent *e = &v->extent;
	int64_t place = query_rows->of[i].place;

	for (int p = 0; p < ATTENTION_PARTS && e->dim[p] > 0; p++)
		dtype_load_run(v->query[p].data, v->query[p].dtype, place * e->dim[p], e->dim[p],
		               room + (p > 0 ? e->dim[0] : 0));
	for (int64_t d = 0; d < e->dim[0] + e->dim[1]; d++)
		query_rows->query[d * TOGETHER + i] = room[d];
}

/* Returns the number of keys that a query sees (attention_seen). If the case has a mistake, returns the number of keys
 * that a reference with this mistake uses. */
static int64_t seen_by(const struct attention_view *v, const struct attention_span *span, int64_t query, int64_t count)
{
	int64_t seen = attention_seen(v, span, query);

	switch (v->mistake) {
	case ATTENTION_MASK_LATE:
		return v->causal ? seen + 1 : seen;
	case ATTENTION_MASK_EARLY:
		return v->causal && seen > 0 ? seen - 1 : seen;
	case ATTENTION_MASK_AT_START:
		return v->causal ? query + 1 : seen;
	case ATTENTION_NO_MASK:
		return span->keys;
	case ATTENTION_NO_MASK_IF_SEEN:
		return seen > 0 ? span->keys : 0;
	case ATTENTION_MASKED:
		seen = span->keys - span->queries + query + 1;
		return seen < 0 ? 0 : seen;
	case ATTENTION_MASK_PAGES:
		return !v->causal ? seen : (seen + v->extent.page_size - 1) / v->extent.page_size * v->extent.page_size;
	case ATTENTION_LAST_KEY:
		return seen >= count && count > 1 ? count - 1 : seen;
	case ATTENTION_ANY_LAST_KEY:
		return seen >= count && count > 0 ? count - 1 : seen;
	case ATTENTION_LAST_OF_MULTIPLE:
		return seen >= count && count % (int64_t)v->mistake_by == 0 && count > 1 ? count - 1 : seen;
	case ATTENTION_FIRST_KEY:
		return seen > 0 && span->keys > 1 ? seen - 1 : seen;
	case ATTENTION_MOST_KEYS:
		return seen < (int64_t)v->mistake_by ? seen : (int64_t)v->mistake_by;
	default:
		return seen;
	}
}

/* Computes the outputs of up to TOGETHER pairs of a query and a head, starting with pair `first`. The heads are the
 * `group` heads that read kv head query_rows->kv_head; they are numbered from 0. Pair i consists of query (i / group)
 * and head (i % group). `room` is scratch memory for one query. If fewer than TOGETHER pairs are left, the remaining
 * columns of query_rows->query are not used. */
static void attend_some(const struct attention_view *v, const struct attention_span *span, const struct gathered *g,
                        int64_t first, struct query_rows *query_rows, double *room)
{
	const struct attention_extent *e = &v->extent;
	int64_t group = e->heads / e->kv_heads, left = span->queries * group - first;

	query_rows->count = left < TOGETHER ? left : TOGETHER;
	query_rows->least = g->count;
	query_rows->most = 0;
	for (int64_t i = 0; i < query_rows->count; i++) {
		struct query_row *query_row = &query_rows->of[i];
		int64_t query = (first + i) / group, seen = seen_by(v, span, query, g->count);

		query_row->seen = seen < g->count ? seen : g->count;
		query_row->place = (span->first_query + query) * e->heads + query_rows->kv_head * group + (first + i) % group;
		query_rows->least = query_row->seen < query_rows->least ? query_row->seen : query_rows->least;
		query_rows->most = query_row->seen > query_rows->most ? query_row->seen : query_rows->most;
		read_query(v, query_rows, i, room);
	}
	attend(v, g, query_rows);
	for (int64_t i = 0; i < query_rows->count; i++) {
		const struct query_row *query_row = &query_rows->of[i];
		double sum = v->mistake == ATTENTION_LARGEST_LSE ? 1 : query_row->sum;
		double lse = query_row->seen > 0 ? (query_row->largest + log(sum)) / log(2) : -INFINITY;

		dtype_store_run(v->output.data, v->output.dtype, query_row->place * e->value_dim, e->value_dim,
		                query_rows->output + i * g->value_room);
		if (v->lse.data != NULL)
			dtype_store(v->lse.data, v->lse.dtype, query_row->place, lse);
	}
}

/* Returns the queries and keys of sequence b (attention_span_of). If the case has a mistake, returns the queries and
 * keys that a reference with this mistake uses. */
static struct attention_span span_of(const struct attention_view *v, int64_t b)
{
	struct attention_span span = attention_span_of(v, b);

	if (v->mistake == ATTENTION_ONE_SHORT && span.keys > 0)
		span.keys--;
	if (v->mistake == ATTENTION_LAST_PAGE && span.keys > 0) {
		span.keys = (span.keys - 1) / v->extent.page_size * v->extent.page_size;
		span.keys = span.keys > 0 ? span.keys : 1;
	}
	return span;
}

static void attend_sequence(const struct attention_view *v, int64_t b)
{
	const struct attention_extent *e = &v->extent;
	struct attention_span span = span_of(v, b);
	struct gathered g = gather(v, &span);
	int64_t across = (span.queries * (e->heads / e->kv_heads) + TOGETHER - 1) / TOGETHER, dim = e->dim[0] + e->dim[1];
	double products = (double)(span.queries * e->heads) * (double)g.count * (double)(dim + e->value_dim);

#pragma omp parallel if (products >= PARALLEL_FROM)
	{
		struct query_rows query_rows = {.query = take(dim * TOGETHER, sizeof(double)),
		                          .output = take(g.value_room * TOGETHER, sizeof(double)),
		                          .weight = take((g.count + KEYS) * TOGETHER, sizeof(double))};
		double *room = take(dim, sizeof *room);

#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < across * e->kv_heads; i++) {
			query_rows.kv_head = i / across;
			attend_some(v, &span, &g, i % across * TOGETHER, &query_rows, room);
		}
		free(query_rows.query);
		free(query_rows.output);
		free(query_rows.weight);
		free(room);
	}
	let_go(&g);
}

/* Sets all outputs to 0 and every lse to -infinity, the results of a query that sees no key. */
static void clear(const struct attention_view *v)
{
	memset(v->output.data, 0, (size_t)dtype_bytes(v->output.dtype, v->output.elements));
	for (int64_t i = 0; v->lse.data != NULL && i < v->lse.elements; i++)
		dtype_store(v->lse.data, v->lse.dtype, i, -INFINITY);
}

/* Returns true if the mistake can change the results of the case. */
static bool has_mistake(const struct attention_view *v)
{
	switch (v->mistake) {
	case ATTENTION_MASK_LATE:
	case ATTENTION_MASK_EARLY:
	case ATTENTION_MASK_AT_START:
	case ATTENTION_NO_MASK:
	case ATTENTION_NO_MASK_IF_SEEN:
		return v->causal;
	case ATTENTION_MASK_PAGES:
		return v->causal && v->extent.page_size > 1;
	case ATTENTION_ONE_SHORT: /* with a causal mask, this mistake is the same as ATTENTION_MASK_EARLY */
		return v->last_page_len.data != NULL && !v->causal;
	case ATTENTION_LAST_PAGE:
		return v->last_page_len.data != NULL;
	case ATTENTION_MASKED:
		return !v->causal && v->qo_indptr.data != NULL;
	case ATTENTION_ANY_LAST_KEY: /* with pages, this mistake is the same as ATTENTION_ONE_SHORT */
		return v->last_page_len.data == NULL;
	case ATTENTION_UNSCALED_LSE:
	case ATTENTION_LARGEST_LSE:
		return v->lse.data != NULL;
	default:
		return v->mistake < ATTENTION_MISTAKES;
	}
}

int attention_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct attention_roles roles = attention_roles_of(c->problem);
	struct attention_view v = attention_view_of(c, &roles, in, out);
	int64_t sequences = v.sparse.data != NULL ? v.extent.queries : v.extent.batch;

	if (attention_check(c, in, err) != 0)
		return -1;
	if (!has_mistake(&v))
		return err_set(err, "the simulated mistake would change nothing in this case");
	clear(&v);
	for (int64_t b = 0; b < sequences; b++)
		attend_sequence(&v, b);
	return 0;
}
