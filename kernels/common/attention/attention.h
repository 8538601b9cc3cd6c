/* attention - computes the expected outputs (the truth) of all attention families: softmax(scale * q . k) over the keys
 * that a query sees, times the values of these keys; and lse, the log-sum-exp of the scaled logits.
 *
 *   logit[j] = scale * (sum over parts of query[part][t][h] . key[part][row j][h / group])
 *   lse[t][h] = log2(sum over j of e^logit[j]);  output[t][h] = sum over j of e^(logit[j] - ln(2) lse) value[row j]
 *
 * Sequence b has the queries qo_indptr[b] … qo_indptr[b + 1] - 1; if there is no qo_indptr, sequence b has only query
 * b. The keys of a sequence are in its pages; the last page holds only last_page_len[b] keys. With a causal mask, the
 * last query sees all keys: if a sequence has n queries, query i (from 0) sees the keys 0 … keys - n + i. If a query
 * sees no key or belongs to no sequence, its output is 0 and its lse is -infinity.
 *
 * In sparse attention, query t sees the key rows whose numbers are in sparse[t]. Entries of -1 are ignored. If a key
 * row is listed twice, it counts as two keys. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_ATTENTION_H
#define REFTEST_KERNELS_COMMON_ATTENTION_ATTENTION_H

#include "kernels/common/attention/roles.h"
#include "kernels/core/dtype_convert.h"

/* The sizes and the tensors of one case. CUDA kernels take this struct by value. If a tensor's `data` is NULL, the case
 * has no such tensor. */
struct attention_view {
	struct attention_extent extent;
	struct tensor query[ATTENTION_PARTS], key[ATTENTION_PARTS], value;
	struct tensor qo_indptr, kv_indptr, kv_indices, last_page_len, sparse, output, lse;
	double scale;
	int causal;
	int mistake; /* op_case.mistake: an enum attention_mistake, which only the oracle uses */
	double mistake_by;
};

/* The mistakes in attention_mistakes that the oracle simulates. */
enum attention_mistake {
	ATTENTION_NO_MISTAKE,
	ATTENTION_MASK_LATE,
	ATTENTION_MASK_EARLY,
	ATTENTION_MASK_AT_START,
	ATTENTION_NO_MASK,
	ATTENTION_NO_MASK_IF_SEEN, /* a query that should see at least one key sees all keys of its sequence */
	ATTENTION_MASKED,
	ATTENTION_MASK_PAGES, /* a query also sees the later keys in the page of its own key */
	ATTENTION_LAST_KEY,
	ATTENTION_LAST_OF_MULTIPLE, /* the last key is left out if the number of keys is a multiple of mistake_by */
	ATTENTION_ANY_LAST_KEY, /* the last key is left out, even if it is the only one */
	ATTENTION_FIRST_KEY,
	ATTENTION_ONE_SHORT,  /* the last key of every sequence is left out */
	ATTENTION_LAST_PAGE,  /* the last page of every sequence is left out; a sequence keeps at least one key */
	ATTENTION_MOST_KEYS, /* keys after the first mistake_by are left out */
	ATTENTION_ROUNDED_WEIGHTS,
	ATTENTION_ROUNDED_LOGITS,
	ATTENTION_NOT_DIVIDED,
	ATTENTION_RAW_WEIGHTS,
	ATTENTION_BASE_2,
	ATTENTION_NO_MAXIMUM,   /* exponentials are computed in float32, without subtracting the largest logit */
	ATTENTION_UNSCALED_LSE, /* lse is computed from the unscaled logits */
	ATTENTION_LARGEST_LSE,  /* lse is the largest logit */
	ATTENTION_MISTAKES      /* mistakes of a single family have numbers from here on */
};

/* The range of queries and the range of keys of one sequence. In sparse attention, each query counts as a sequence. */
struct attention_span {
	int64_t first_query, queries;
	int64_t first_entry, keys; /* first_entry: an index into kv_indices, or a row of keys (ragged), or a flat index
				    * into `sparse` */
};

HOST_DEVICE static inline int64_t attention_integer(const struct tensor *tensor, int64_t index)
{
	return tensor->dtype == DTYPE_INT64 ? ((const int64_t *)tensor->data)[index]
	                                    : ((const int32_t *)tensor->data)[index];
}

/* Returns the ranges of sequence b or, in sparse attention, of query b. Call it only after attention_check has accepted
 * the index tensors. */
HOST_DEVICE static inline struct attention_span attention_span_of(const struct attention_view *v, int64_t b)
{
	struct attention_span span = {b, 1, b * v->extent.entries, v->extent.entries};

	if (v->sparse.data != NULL)
		return span;
	span.first_entry = attention_integer(&v->kv_indptr, b);
	span.keys = (attention_integer(&v->kv_indptr, b + 1) - span.first_entry) * v->extent.page_size;
	if (v->last_page_len.data != NULL && span.keys > 0)
		span.keys += attention_integer(&v->last_page_len, b) - v->extent.page_size;
	if (v->qo_indptr.data != NULL) {
		span.first_query = attention_integer(&v->qo_indptr, b);
		span.queries = attention_integer(&v->qo_indptr, b + 1) - span.first_query;
	}
	return span;
}

/* Returns the row of key j of a sequence, or -1 if a sparse entry lists no key. */
HOST_DEVICE static inline int64_t attention_row(const struct attention_view *v, const struct attention_span *span,
                                                int64_t j)
{
	if (v->sparse.data != NULL)
		return attention_integer(&v->sparse, span->first_entry + j);
	if (v->kv_indices.data == NULL)
		return span->first_entry + j;
	return attention_integer(&v->kv_indices, span->first_entry + j / v->extent.page_size) * v->extent.page_size +
	       j % v->extent.page_size;
}

/* Returns the number of keys that query i of a sequence sees. A query sees the first keys of its sequence. */
HOST_DEVICE static inline int64_t attention_seen(const struct attention_view *v, const struct attention_span *span,
                                                 int64_t i)
{
	int64_t seen = span->keys - span->queries + i + 1;

	if (!v->causal)
		return span->keys;
	return seen < 0 ? 0 : seen;
}

#ifdef __cplusplus
extern "C" {
#endif

struct attention_view attention_view_of(const struct op_case *c, const struct attention_roles *roles,
                                        const struct tensor *in, const struct tensor *out);

/* Checks that the axes are consistent and that the index tensors are valid: no index is out of bounds, offsets never
 * decrease, and every last page length is between 1 and the page size. The tensors must be on the host. A tensor whose
 * `data` is NULL is not checked. The last offset may be below the number of rows: the remaining rows then belong to no
 * sequence. Returns 0, or -1 with an error message in `err`. */
int attention_check(const struct op_case *c, const struct tensor *in, struct err *err);

extern const struct op_mistake attention_mistakes[];

/* Implements op.oracle for every attention family. Returns -1 if attention_check rejects the case. */
int attention_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
