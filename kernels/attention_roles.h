/* attention_roles - which input of an attention problem plays which part, and how large everything is.
 *
 * The attention families (gqa_paged, gqa_ragged, mla_paged, mla_ragged, dsa_paged) compute one thing: for each query
 * and head, softmax(scale * q . k) over the keys that the query sees, times their values. They differ in where a query
 * finds its keys. A family finds the parts of its problem among the inputs (by shape; by name where shapes leave a
 * choice) and hands the roles to attention_validate, which checks every shape against every other; what then makes
 * inputs, bounds and truth (kernels/attention_inputs.h, attention.h, attention_cuda.h) needs no names any more.
 *
 *   query[0]   [queries, heads, dim]                        query[1], key[1]: a second part whose dot product is added
 *   key[0]     [rows, kv heads, dim], or in pages           (the rotary part of MLA), or -1
 *   value      [rows, kv heads, value dim], or in pages     the same input as key[0] in MLA
 *   output     [queries, heads, value dim];  lse [queries, heads] float32, base 2, may be absent
 *
 * Keys in pages have [pages, page size] in place of [rows]. Key tensors without a head axis have one kv head. */
#ifndef REFTEST_KERNELS_ATTENTION_ROLES_H
#define REFTEST_KERNELS_ATTENTION_ROLES_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most keys of a page: with tensors of at most 2^48 bytes no count of keys then leaves 64 bits. */
enum { ATTENTION_PARTS = 2, ATTENTION_PAGE = 65536 };

/* op.match's variants of every attention family (dsa_paged has one more). */
enum { ATTENTION_FULL = 0, ATTENTION_CAUSAL = 1 };

/* Indices into the problem's inputs (output and lse: outputs); -1: there is none. */
struct attention_roles {
	int query[ATTENTION_PARTS], key[ATTENTION_PARTS], value;
	int scale;         /* Python scalar */
	int qo_indptr;     /* queries of sequence b: [b] … [b + 1]; -1: one query a sequence */
	int kv_indptr;     /* entries of kv_indices (without pages: rows of keys) of sequence b: [b] … [b + 1] */
	int kv_indices;    /* page numbers; -1: a sequence's keys lie in consecutive rows */
	int last_page_len; /* keys in each sequence's last page; -1: every page is full */
	int sparse;        /* [queries, most keys] row numbers, -1 = none; then there are no sequences */
	int output, lse;
};

/* Everything -1. */
struct attention_roles attention_no_roles(void);

/* Finds what does not depend on the family: the scale, the index vectors (integers of rank 1, all of one kind, so that
 * only their names tell them apart) and lse. -1 with the sentence for an input that has no part in attention. */
int attention_find_indices(const struct op_problem *problem, struct attention_roles *roles, struct err *why);

/* Checks that the roles fit together and that every input has one. 0, or -1 with the sentence. */
int attention_validate(const struct op_problem *problem, const struct attention_roles *roles, struct err *why);

/* Is a query blind to the keys after its own place? Only prefill knows the question; the name tells, else a tag, else
 * the description; if none speaks of it, every query sees every key. */
bool attention_is_causal(const struct op_problem *problem, const struct attention_roles *roles);

/* -1 with "input 'k' is [a, b] of int32; expected " and what was. */
int attention_refuse(const struct op_problem *problem, const struct op_arg *arg, const char *expected, struct err *why);

/* Axis by axis the same from `from` up to `to` (exclusive): the same axis, or const axes of one value. */
bool attention_same_axes(const struct op_problem *problem, const struct op_arg *a, const struct op_arg *b, int from,
                         int to);
bool attention_is_float(const struct op_arg *arg);
bool attention_is_integer(const struct op_arg *arg);

/* The sizes of one case. */
struct attention_extent {
	int64_t queries, heads, kv_heads; /* heads is a multiple of kv_heads: head h looks at h / (heads / kv_heads) */
	int64_t dim[ATTENTION_PARTS];     /* [1]: 0 without a second part */
	int64_t value_dim;
	int64_t pages, page_size, rows; /* of keys; without pages: rows, 1, rows */
	int64_t batch;                  /* sequences; sparse: 0 */
	int64_t entries;                /* of kv_indices; without pages: rows; sparse: of one query */
};

struct attention_extent attention_extent_of(const struct op_case *c, const struct attention_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
