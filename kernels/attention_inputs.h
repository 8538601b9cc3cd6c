/* attention_inputs - sequences, pages and values that make mistakes in attention show.
 *
 * Sequences (attention_plan). Most default cases have the lengths of a list (kernels/attention_lengths.h). Whatever other axes
 * there are: lengths are ragged; sequence b % 8 has a part of its own:
 *
 *   0, 4  plain: keys before the first query (so that a mask must be aligned at the end). 4: its last page is full
 *   1     one query, one key
 *   2     as many keys as queries
 *   3     no key at all: output 0, lse -infinity            (in decode, where every sequence has one query, all but
 *   5     keys, but no query                                 1 and 3 are plain)
 *   6     one query, many keys
 *   7     neither
 *
 * A last page is partly filled but for sequences b % 8 == 4. Sequences 2 and 4 (and every eighth after) share the first
 * pages of sequence 0; pages come in random order, and some are used by nobody. If the axes leave no room for these
 * parts, all sequences are plain; if they force queries to outnumber keys, so it is (a workload may want that; the
 * presets never do: definitions disagree on causal rows that see no key).
 *
 * Sparse rows: query 0 has all; 1: one; 2: all but one in the middle; 3: none; 4: a hundred at the front; 5: half of them,
 * scattered; 6: all; 7: two at the end; 8 to 22: 15, 16, 17, 31, 32, 33, … 257 at the front; of those after them, so that many
 * are cheap, each one, two or none. One key row in eight is in no query's list.
 *
 * Values. Keys and values are uniform on [-1, 1), queries on [-2^e, 2^e) with e such that the logits' standard
 * deviation is near 2.5 whatever the scale: a few keys then hold most of the weight, so leaving out any one key moves
 * some head's output by far more than the bound, and sums of many values do not vanish. Of (query + head) % 16, 5 is 16
 * times as large and 13 is 32 times (their softmax overflows if the maximum is not subtracted; those that see one key have all
 * their logits far below 0 as often as far above), 9 is zero (the plain mean of equal logits; lse is log2 of the number of
 * keys). Rows that nobody uses, and what follows the last key in a last page, are NaN.
 *
 * Left out, because correct implementations differ: causal rows that see no key though their sequence has some, page
 * numbers or sparse rows that occur twice in one sequence, last page lengths of 0 where there is a page. */
#ifndef REFTEST_KERNELS_ATTENTION_INPUTS_H
#define REFTEST_KERNELS_ATTENTION_INPUTS_H

#include "kernels/attention_lengths.h"
#include "kernels/attention_roles.h"
#include "kernels/inputs.h"

/* Everything a float element depends on; plain data, given to the GPU by value. */
struct attention_recipe {
	uint64_t key;
	int64_t row; /* elements of a row of keys, of a query's heads */
	int64_t dim; /* elements of a head */
	int is_query;
	int exponent, most;  /* of a query's scale; the most that its dtype has room for */
	int bits;            /* fraction bits: exact in the dtype */
	const uint8_t *used; /* [rows] 0: this row is NaN; NULL: every row is used. Where the elements are made */
};

/* An element of one head of row `row`, from its random bits: to be rounded with number_store. */
HOST_DEVICE static inline float attention_value(const struct attention_recipe *f, int64_t row, int64_t head,
                                                uint32_t random)
{
	float value = uniform_signed(random, f->bits);

	if (f->is_query) {
		int64_t kind = (row + head) % 16;

		int exponent = f->exponent + (kind == 5 ? 4 : kind == 13 ? 5 : 0);

		return kind == 9 ? 0 : value * float_power(exponent < f->most ? exponent : f->most);
	}
	return f->used != NULL && f->used[row] == 0 ? float_from_bits(0x7fc00000u) : value;
}

/* Element `index` of the input that `f` was made for. */
HOST_DEVICE static inline float attention_element(const struct attention_recipe *f, int64_t index, uint32_t random)
{
	return attention_value(f, index / f->row, index % f->row / f->dim, random);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Is this input made on the host (indices and offsets), rather than element by element? */
bool attention_is_structure(const struct op_case *c, int input);

/* For an input of floats. `used` is NULL. Host only. */
struct attention_recipe attention_recipe_of(const struct op_case *c, const struct attention_roles *roles, int input);

/* A byte a key row, 1 where a query may look, from malloc; NULL where every row is used: keys without pages, queries,
 * or indices that the caller brings. 0, or -1 when the axes are impossible. */
int attention_used(const struct op_case *c, const struct attention_roles *roles, int input, uint8_t **used,
                   struct err *err);

/* op.fill for the family with these roles. */
int attention_fill(const struct op_case *c, const struct attention_roles *roles, int input, struct tensor *out,
                   struct err *err);

/* op.scalar: in the first contents the scale that models have. In the second 0.65 times it, which is no common fraction of it
 * (1 / sqrt 2, ln 2, 1 / sqrt 3); where there is one sequence (sparse: one query) 1.25, as of models whose queries and keys
 * are normalised. */
double attention_scale(const struct op_case *c, const struct attention_roles *roles, double canonical);

/* The bounds of an output: see attention_inputs.c. */
struct rule attention_rule(const struct op_case *c, const struct attention_roles *roles, int output);

/* Pages that the caches of a case of MANY have at least: their numbers need more than 8 bits. */
enum { ATTENTION_POOL = 321 };

/* One case of a size preset: so many sequences, queries (decode: one a sequence) and keys, in all; with a list, where the axes
 * are free, what that says. */
struct attention_preset {
	int64_t batch, queries, keys;
	enum attention_list list;
};

/* op.sizes for problems with sequences: one row of axis values for each preset; -1: `room` is too small. */
int attention_sizes(const struct op_problem *problem, const struct attention_roles *roles,
                    const struct attention_preset *presets, int count, int64_t *axis, int room);

/* op.sizes of prefill. */
int attention_prefill_sizes(const struct op_problem *problem, const struct attention_roles *roles, enum op_size size,
                            int64_t *axis, int room);

/* op.range and op.reach. */
bool attention_range(const struct op_problem *problem, const struct attention_roles *roles, int input, struct op_range *out);
int64_t attention_reach(const struct op_problem *problem, const struct attention_roles *roles, int axis);

/* op.edges of every attention family (dsa_paged has more of its own behind them), and op.edge_axes for the problem with these
 * roles. */
#define ATTENTION_EDGES                                                                                                \
	{"no_queries", "no queries in, no queries out"},                                                               \
	    {"no_keys", "where there is no key, a query has output 0 and log-sum-exp -infinity"},                      \
	    {"blind_queries", "masks are aligned at the end of the keys, and a query before the first key has output " \
			      "0 and log-sum-exp -infinity"},                                                                     \
	{                                                                                                              \
		"one_of_each", "one query and one key: the output is the key's value"                                  \
	}
enum { ATTENTION_EDGE_COUNT = 4 };
extern const struct op_edge attention_edges[];
bool attention_edge_axes(const struct op_problem *problem, const struct attention_roles *roles, int edge, int64_t *axis);

/* The sequences of a case, from malloc. Given to tests. */
struct attention_plan {
	int64_t batch;
	int64_t *queries, *entries; /* [batch + 1] offsets; entries: pages, without pages: keys */
	int64_t *last;              /* [batch] keys in the last page; 0: no page */
	int64_t longest;            /* keys of the longest sequence */
};

struct attention_plan attention_plan_of(const struct op_case *c, const struct attention_roles *roles);
void attention_plan_free(struct attention_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
