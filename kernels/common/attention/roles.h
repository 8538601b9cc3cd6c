/* roles - finds the role of each input of an attention problem, and the sizes of a case.
 *
 * The attention families (gqa_paged, gqa_ragged, mla_paged, mla_ragged, dsa_paged) compute the same operation: for each
 * query and head, softmax(scale * q . k) over the keys that the query sees, times the values of these keys. The
 * families differ in how the keys are stored. A family finds the roles of its inputs by shape, and by name where shapes
 * are ambiguous. attention_validate then checks that the shapes of all tensors are consistent. The code that computes
 * inputs, bounds and truth (input_values.h, attention.h, attention_cuda.h in the same folder) uses only the roles, and
 * no names.
 *
 *   query[0]   [queries, heads, dim]                        query[1], key[1]: a second part; its dot product is added
 *   key[0]     [rows, kv heads, dim], or in pages           (the rotary part of MLA), or -1
 *   value      [rows, kv heads, value dim], or in pages     the same input as key[0] in MLA
 *   output     [queries, heads, value dim];  lse [queries, heads] float32, base 2, may be absent
 *
 * Paged keys have [pages, page size] in place of [rows]. If the keys have no head axis, there is one kv head. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_ROLES_H
#define REFTEST_KERNELS_COMMON_ATTENTION_ROLES_H

#include "kernels/core/coverage.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ATTENTION_PAGE is the maximum page size. A tensor has at most 2^48 bytes, so kv_indices has fewer than 2^47 elements,
 * and the number of keys fits in 64 bits. */
enum { ATTENTION_PARTS = 2, ATTENTION_PAGE = 65536 };

/* The variants that op.match of every attention family can return. dsa_paged has a third variant. */
enum { ATTENTION_FULL = 0, ATTENTION_CAUSAL = 1 };

/* For each role, the index of the problem's input with this role. `output` and `lse` are indices of the problem's
 * outputs. -1 means that no input or output has the role. */
struct attention_roles {
	int query[ATTENTION_PARTS], key[ATTENTION_PARTS], value;
	int scale;         /* a Python scalar */
	int qo_indptr;     /* offsets of each sequence's queries; -1: each sequence has one query */
	int kv_indptr;     /* offsets of each sequence's entries in kv_indices; without pages, offsets of key rows */
	int kv_indices;    /* page numbers; -1: the keys of a sequence are in consecutive rows */
	int last_page_len; /* number of keys in each sequence's last page; -1: every page is full */
	int sparse;        /* [queries, keys per query] row numbers of keys; an element of -1 is no key; cases with this
			    * input have no sequences */
	int output, lse;
};

/* The tables to which op.roles and op.modes point. Latent attention has no role "v", because the keys are also the
 * values. */
extern const struct op_role attention_role_names[], attention_latent_role_names[];
extern const struct op_mode attention_mode_names[];

/* Rows of op.coverage. */
#define ATTENTION_COVERAGE_QUERIES                                                                                        \
	COVERAGE_OPTION("queries", "qo_indptr", "prefill", "has several queries in a sequence (prefill)", "decode",       \
			"has one query in each sequence (decode)")
#define ATTENTION_COVERAGE                                                                                                \
	{"mask", coverage_switch, .other = "causal",                                                                      \
	 .values = {{"causal", 1, 1, "has a causal mask"}, {"none", 0, 0, "has no mask"}}},                               \
	    COVERAGE_OPTION("log-sum-exp", "lse", "returned", "returns the log-sum-exp", "none", "returns no log-sum-exp"), \
	    COVERAGE_DTYPES("q")
#define ATTENTION_COVERAGE_PAGES                                                                                          \
	{"page size", coverage_length, .role = "k", .axis = 1,                                                            \
	 .values = {{"1", 1, 1, "has pages of size 1"}, {"16", 16, 16, "has pages of size 16"},                           \
		    {"32", 32, 32, "has pages of size 32"}, {"64", 64, 64, "has pages of size 64"},                       \
		    {"other", 2, 0x1p62, NULL}}},                                                                         \
	    COVERAGE_OPTION("last pages", "last_page_len", "partly filled", "has partly filled last pages", "full",       \
			    "has only full pages"),                                                                       \
	    {"cache dtype", coverage_dtype, .role = "k",                                                                  \
	     .values = {{"16 bits", DTYPE_FLOAT16, DTYPE_BFLOAT16, "has a cache of 16-bit floats"},                       \
			{"float8", DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E5M2, "has a cache of float8"},                      \
			{"other", 0, DTYPE_COUNT, NULL}}}
#define ATTENTION_COVERAGE_DIM                                                                                            \
	{"D", coverage_length, .role = "q", .axis = -1,                                                                   \
	 .values = {{"64", 64, 64, "has heads of size 64"}, {"128", 128, 128, "has heads of size 128"},                   \
		    {"256", 256, 256, "has heads of size 256"}, {"other", 1, 0x1p62, NULL}}}
/* A row of op.coverage: the ratio of query heads to kv heads. `kv_heads` is the index of the head axis in the keys. */
#define ATTENTION_COVERAGE_HEADS(kv_heads)                                                                                \
	{"heads", coverage_ratio, .role = "q", .axis = 1, .other = "k", .other_axis = kv_heads,                           \
	 .values = {{"as many keys", 1, 1, "has as many heads of keys as of queries (MHA)"},                              \
		    {"grouped", 1.0001, 0x1p62, "has several heads of queries for each of keys (GQA)"}}}

/* Returns a struct whose members are all -1. */
struct attention_roles attention_no_roles(void);

/* Finds the roles that do not depend on the family: the scale, the index vectors (integers of rank 1, which differ only
 * in their names) and lse. Returns 0, or -1 with a message in `why` if an input has no role in attention. */
int attention_find_indices(const struct op_problem *problem, struct attention_roles *roles, struct err *why);

/* Checks that the shapes of all tensors are consistent and that every input has a role. Returns 0, or -1 with a message
 * in `why`. */
int attention_validate(const struct op_problem *problem, const struct attention_roles *roles, struct err *why);

/* Returns true if a causal mask hides the keys after a query's own position. The definition's name, tags and
 * description are searched in this order for "causal" and "not causal", and the first match determines the result.
 * Without a match, there is no mask. Returns false for decode, where a causal mask hides no key. */
bool attention_is_causal(const struct op_problem *problem, const struct attention_roles *roles);

/* Returns true if the axes `from` … `to` - 1 of both tensors agree: two axes agree if they are the same axis, or if
 * both are const and have equal lengths. */
bool attention_same_axes(const struct op_problem *problem, const struct op_arg *a, const struct op_arg *b, int from,
                         int to);
bool attention_is_float(const struct op_arg *arg);
bool attention_is_integer(const struct op_arg *arg);

/* The sizes of one case. */
struct attention_extent {
	/* Head h reads kv head h / (heads / kv_heads); heads is a multiple of kv_heads. */
	int64_t queries, heads, kv_heads;
	int64_t dim[ATTENTION_PARTS];     /* dim[1] is 0 if there is no second part */
	int64_t value_dim;
	int64_t pages, page_size, rows; /* without pages, every row counts as a page */
	int64_t batch;                  /* number of sequences; 0 in sparse attention */
	/* The length of kv_indices; without pages, the number of rows; in sparse attention, the length of each query's
	 * list. */
	int64_t entries;
};

struct attention_extent attention_extent_of(const struct op_case *c, const struct attention_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
