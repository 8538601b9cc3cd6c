/* attention - the attention oracle, in double. The oracle gathers the keys and values of a sequence, then computes
 * every query and head separately, in two passes over the logits. It rounds each result once, at the end. */
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
			               "%s[%lld] is %lld: it must not be below %s[%lld] = %lld, nor above the %lld %s",
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
			return err_set(err, "%s has %lld at flat index %lld; there are %lld %s, counted from 0%s",
			               name_of(c, input), (long long)number, (long long)i, (long long)limit, unit,
			               least < 0 ? ", and -1 means no entry" : "");
	}
	return 0;
}

/* Checks that every last page has at least one key and at most as many keys as a page can have. For a sequence without
 * pages, any length is valid, because the length is not used. */
static int check_last(const struct op_case *c, int input, const struct attention_view *v, struct err *err)
{
	const char *name = name_of(c, input);

	for (int64_t b = 0; b < v->extent.batch; b++) {
		int64_t length = attention_integer(&v->last_page_len, b);
		bool empty = v->kv_indptr.data != NULL &&
		             attention_integer(&v->kv_indptr, b) == attention_integer(&v->kv_indptr, b + 1);

		if (!empty && (length < 1 || length > v->extent.page_size))
			return err_set(err, "%s[%lld] is %lld: a last page holds 1 to %lld keys", name, (long long)b,
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
		return err_set(err, "%s is empty; an offset vector has one element more than there are sequences",
		               name_of(c, roles->kv_indptr));
	if (roles->qo_indptr < 0 && e->batch > e->queries)
		return err_set(err, "%s has offsets of %lld sequences, but there are %lld queries",
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

/* A sequence that needs at least this many multiplications is computed by several threads; for a smaller one, starting
 * threads takes longer than the computation. */
enum { PARALLEL_FROM = 1 << 20 };

/* The keys and values of one sequence, copied to contiguous memory. */
struct gathered {
	int64_t count;
	double *key[ATTENTION_PARTS], *value; /* [count][kv heads][dim]; `value` may equal key[0] */
};

static struct gathered gather(const struct attention_view *v, const struct attention_span *span)
{
	const struct attention_extent *e = &v->extent;
	int64_t row_size[ATTENTION_PARTS] = {e->kv_heads * e->dim[0], e->kv_heads * e->dim[1]};
	int64_t value_size = e->kv_heads * e->value_dim;
	bool shared = v->value.data == v->key[0].data;
	struct gathered g = {0};

	for (int p = 0; p < ATTENTION_PARTS; p++)
		g.key[p] = take(span->keys * row_size[p], sizeof *g.key[p]);
	g.value = shared ? g.key[0] : take(span->keys * value_size, sizeof *g.value);
	for (int64_t j = 0; j < span->keys; j++) {
		int64_t row = attention_row(v, span, j);

		if (row < 0)
			continue;
		for (int p = 0; p < ATTENTION_PARTS && row_size[p] > 0; p++)
			dtype_load_run(v->key[p].data, v->key[p].dtype, row * row_size[p], row_size[p],
			               g.key[p] + g.count * row_size[p]);
		if (!shared)
			dtype_load_run(v->value.data, v->value.dtype, row * value_size, value_size,
			               g.value + g.count * value_size);
		g.count++;
	}
	return g;
}

static void let_go(struct gathered *g)
{
	if (g->value != g->key[0])
		free(g->value);
	for (int p = 0; p < ATTENTION_PARTS; p++)
		free(g->key[p]);
}

/* Queries and heads that read the same keys and values are processed together, KEYS keys at a time, so that each key is
 * loaded from the caches once for all of them. */
enum { TOGETHER = 8, KEYS = 8, DOTS = 4 };

struct looker {
	int64_t place, seen;     /* place: t * heads + h for query t and head h; seen: number of visible keys */
	double *query, *output;  /* query: both parts; output: the sum of the weighted values */
	double *weight;          /* first the scaled logit of each key, then the key's weight */
	double largest, sum;
};

struct lookers {
	int64_t count, most; /* most: the largest value of `seen` in the array `of` */
	int64_t kv_head;
	struct looker of[TOGETHER];
};

/* Computes the dot products out[i] = a . b[i] for i = 0 … DOTS - 1. */
FUSED static inline void dots(const double *a, const double *const *b, int64_t count, double *out)
{
	const double *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
	double s0 = 0, s1 = 0, s2 = 0, s3 = 0;

#pragma omp simd reduction(+ : s0, s1, s2, s3)
	for (int64_t d = 0; d < count; d++) {
		s0 += a[d] * b0[d];
		s1 += a[d] * b1[d];
		s2 += a[d] * b2[d];
		s3 += a[d] * b3[d];
	}
	out[0] = s0;
	out[1] = s1;
	out[2] = s2;
	out[3] = s3;
}

/* Writes the scaled logits of the keys j … j + DOTS - 1 to looker->weight. If fewer than DOTS visible keys remain, the
 * loop reads the last visible key again in place of the missing keys. */
WIDE FUSED static void scale_logits(const struct attention_view *v, const struct gathered *g, int64_t kv_head, int64_t j,
                                const struct looker *looker)
{
	const struct attention_extent *e = &v->extent;
	double sum[ATTENTION_PARTS][DOTS] = {{0}};

	for (int p = 0; p < ATTENTION_PARTS && e->dim[p] > 0; p++) {
		const double *key[DOTS];

		for (int64_t i = 0; i < DOTS; i++) {
			int64_t seen = j + i < looker->seen ? j + i : looker->seen - 1;

			key[i] = g->key[p] + (seen * e->kv_heads + kv_head) * e->dim[p];
		}
		dots(looker->query + (p > 0 ? e->dim[0] : 0), key, e->dim[p], sum[p]);
	}
	for (int64_t i = 0; i < DOTS && j + i < looker->seen; i++)
		looker->weight[j + i] = v->scale * (e->dim[1] > 0 ? sum[0][i] + sum[1][i] : sum[0][i]);
}

static inline void find_weights(struct looker *looker)
{
	double largest = -INFINITY, sum = 0;

	for (int64_t j = 0; j < looker->seen; j++)
		if (!(looker->weight[j] <= largest)) /* also true for a NaN logit, which makes `largest` NaN */
			largest = looker->weight[j];
	for (int64_t j = 0; j < looker->seen; j++) {
		looker->weight[j] = exp(looker->weight[j] - largest);
		sum += looker->weight[j];
	}
	for (int64_t j = 0; j < looker->seen; j++)
		looker->weight[j] /= sum;
	looker->largest = largest;
	looker->sum = sum;
}

/* Adds weight[j] * value[j] to `output` for the keys j = 0 … count - 1, DOTS keys at a time. */
static inline void add_values(const double *weight, const double *value, int64_t stride, int64_t count, int64_t dim,
                              double *output)
{
	int64_t j = 0;

	for (; j + DOTS <= count; j += DOTS) {
		const double *v0 = value + j * stride, *v1 = v0 + stride, *v2 = v1 + stride, *v3 = v2 + stride;

#pragma omp simd
		for (int64_t d = 0; d < dim; d++)
			output[d] = output[d] + weight[j] * v0[d] + weight[j + 1] * v1[d] + weight[j + 2] * v2[d] +
			            weight[j + 3] * v3[d];
	}
	for (; j < count; j++)
		for (int64_t d = 0; d < dim; d++)
			output[d] += weight[j] * value[j * stride + d];
}

/* Computes the weighted sum of the values, the largest logit and the sum of the weights for each of `lookers`. */
WIDE static void attend(const struct attention_view *v, const struct gathered *g, struct lookers *lookers)
{
	const struct attention_extent *e = &v->extent;
	int64_t stride = e->kv_heads * e->value_dim;

	for (int64_t from = 0; from < lookers->most; from += KEYS)
		for (int64_t i = 0; i < lookers->count; i++)
			for (int64_t j = from; j < from + KEYS && j < lookers->of[i].seen; j += DOTS)
				scale_logits(v, g, lookers->kv_head, j, &lookers->of[i]);
	for (int64_t i = 0; i < lookers->count; i++)
		find_weights(&lookers->of[i]);
	for (int64_t from = 0; from < lookers->most; from += KEYS)
		for (int64_t i = 0; i < lookers->count; i++) {
			int64_t left = lookers->of[i].seen - from;

			add_values(lookers->of[i].weight + from, g->value + from * stride + lookers->kv_head * e->value_dim, stride,
			           left < KEYS ? left : KEYS, e->value_dim, lookers->of[i].output);
		}
}

/* Computes up to TOGETHER pairs of a query and a head, starting with pair `first`. All heads of the pairs read kv head
 * `kv_head`; they form a group of `group` heads. Pair i is query i / group with head i % group of the group. `room` is
 * memory for the working data of the pairs. */
static void attend_some(const struct attention_view *v, const struct attention_span *span, const struct gathered *g,
                        int64_t kv_head, int64_t first, double *room)
{
	const struct attention_extent *e = &v->extent;
	int64_t group = e->heads / e->kv_heads, left = span->queries * group - first;
	struct lookers lookers = {.count = left < TOGETHER ? left : TOGETHER, .kv_head = kv_head};

	for (int64_t i = 0; i < lookers.count; i++) {
		struct looker *looker = &lookers.of[i];
		int64_t query = (first + i) / group, seen = attention_seen(v, span, query);

		looker->seen = seen < g->count ? seen : g->count;
		looker->place = (span->first_query + query) * e->heads + kv_head * group + (first + i) % group;
		looker->query = room;
		looker->output = looker->query + e->dim[0] + e->dim[1];
		looker->weight = looker->output + e->value_dim;
		room = looker->weight + g->count;
		lookers.most = looker->seen > lookers.most ? looker->seen : lookers.most;
		for (int p = 0; p < ATTENTION_PARTS && e->dim[p] > 0; p++)
			dtype_load_run(v->query[p].data, v->query[p].dtype, looker->place * e->dim[p], e->dim[p],
			               looker->query + (p > 0 ? e->dim[0] : 0));
		memset(looker->output, 0, (size_t)e->value_dim * sizeof *looker->output);
	}
	attend(v, g, &lookers);
	for (int64_t i = 0; i < lookers.count; i++) {
		const struct looker *looker = &lookers.of[i];
		double lse = looker->seen > 0 ? (looker->largest + log(looker->sum)) / log(2) : -INFINITY;

		dtype_store_run(v->output.data, v->output.dtype, looker->place * e->value_dim, e->value_dim, looker->output);
		if (v->lse.data != NULL)
			dtype_store(v->lse.data, v->lse.dtype, looker->place, lse);
	}
}

static void attend_sequence(const struct attention_view *v, int64_t b)
{
	const struct attention_extent *e = &v->extent;
	struct attention_span span = attention_span_of(v, b);
	struct gathered g = gather(v, &span);
	int64_t across = (span.queries * (e->heads / e->kv_heads) + TOGETHER - 1) / TOGETHER;
	double products = (double)(span.queries * e->heads) * (double)g.count *
	                  (double)(e->dim[0] + e->dim[1] + e->value_dim);

#pragma omp parallel if (products >= PARALLEL_FROM)
	{
		double *room = take(TOGETHER * (e->dim[0] + e->dim[1] + e->value_dim + g.count), sizeof *room);

#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < across * e->kv_heads; i++)
			attend_some(v, &span, &g, i / across, i % across * TOGETHER, room);
		free(room);
	}
	let_go(&g);
}

/* Writes the output and the lse (log-sum-exp) of queries that see no key. */
static void clear(const struct attention_view *v)
{
	memset(v->output.data, 0, (size_t)dtype_bytes(v->output.dtype, v->output.elements));
	for (int64_t i = 0; v->lse.data != NULL && i < v->lse.elements; i++)
		dtype_store(v->lse.data, v->lse.dtype, i, -INFINITY);
}

int attention_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct attention_roles roles = attention_roles_of(c->problem);
	struct attention_view v = attention_view_of(c, &roles, in, out);
	int64_t sequences = v.sparse.data != NULL ? v.extent.queries : v.extent.batch;

	if (attention_check(c, in, err) != 0)
		return -1;
	clear(&v);
	for (int64_t b = 0; b < sequences; b++)
		attend_sequence(&v, b);
	return 0;
}
