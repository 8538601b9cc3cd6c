/* attention - the truth of all attention families: softmax(scale * q . k) over the keys that a query sees, times their
 * values, and the log-sum-exp of the scaled logits.
 *
 *   logit[j] = scale * (sum over parts of query[part][t][h] . key[part][row j][h / group])
 *   lse[t][h] = log2(sum over j of e^logit[j]);  output[t][h] = sum over j of e^(logit[j] - ln(2) lse) value[row j]
 *
 * Sequence b has the queries qo_indptr[b] … qo_indptr[b + 1] (without qo_indptr: query b alone) and so many keys as its
 * pages hold, the last one only last_page_len[b]. Causal: the masks are aligned at the end, query i of n sees the keys
 * 0 … keys - n + i. A query that sees no key, or belongs to no sequence, has output 0 and lse -infinity.
 * Sparse: a query sees the rows that its line of `sparse` names; -1 names none, a row named twice counts twice. */
#ifndef REFTEST_KERNELS_ATTENTION_H
#define REFTEST_KERNELS_ATTENTION_H

#include "kernels/attention_roles.h"
#include "kernels/number.h"

/* One case with its tensors by their parts; plain data, given to the GPU by value. `data` NULL: there is no such part.
 */
struct attention_view {
	struct attention_extent extent;
	struct tensor query[ATTENTION_PARTS], key[ATTENTION_PARTS], value;
	struct tensor qo_indptr, kv_indptr, kv_indices, last_page_len, sparse, output, lse;
	double scale;
	int causal;
};

/* One sequence: where its queries and its keys are. Sparse: one query. */
struct attention_span {
	int64_t first_query, queries;
	int64_t first_entry, keys; /* into kv_indices (without pages: rows; sparse: flat into `sparse`) */
};

HOST_DEVICE static inline int64_t attention_integer(const struct tensor *tensor, int64_t index)
{
	return tensor->dtype == DTYPE_INT64 ? ((const int64_t *)tensor->data)[index]
	                                    : ((const int32_t *)tensor->data)[index];
}

/* Sequence b (sparse: query b) of a view whose index tensors are in order. */
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

/* The row in which key j of a sequence lies; -1: no key (sparse). */
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

/* How many of a sequence's keys its query i sees: the first so many. */
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

/* Do the axes leave room for sequences at all, and are the index tensors in order: nothing outside the tensors they point
 * into, nothing that decreases, no last page of no or too many keys? As far as they are at hand (data != NULL), on the
 * host. Offsets may end before what they count does: the rest belongs to nobody. 0, or -1 with the sentence. */
int attention_check(const struct op_case *c, const struct attention_roles *roles, const struct tensor *in,
                    struct err *err);

/* op.oracle for the family with these roles. -1 when attention_check refuses. */
int attention_oracle(const struct op_case *c, const struct attention_roles *roles, const struct tensor *in,
                     struct tensor *out, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
