/* input_values - computes the inputs of attention (offsets, page numbers, values) such that mistakes become visible. The
 * lengths of the sequences are in sequence_plan.h, and the axes of the cases in sizes.h.
 *
 * Sparse rows. The index of a query determines which key rows it selects:
 *
 *   0 and 6    all rows
 *   1          one row, which no other query selects (row 7, if there are more than 8 rows)
 *   2          all rows except one in the middle
 *   3          none
 *   4          a hundred rows, or half of all rows if that is fewer
 *   5          half of the rows, scattered
 *   7          the last two rows
 *   8 to 22    15, 16, 17, 31, 32, 33, … 257 rows
 *   others     none; but the last query, and queries with an index near a power of two, select one row or two
 *
 * In the second set of values, queries 0 and 4 are exchanged, so that the first query sees fewer rows than others. No
 * query selects row 7, 15, 23, …, except that query 1 selects row 7. In the table, "all rows" means all rows except
 * these.
 *
 * Values. Keys and values are uniform on [-1, 1), queries on [-2^e, 2^e). The exponent e is such that the standard
 * deviation of the logits is about 2.5 for any scale. A few keys then have most of the weight. If a reference omits any
 * single key, the output of some head then changes by far more than the bound. If many keys had equal weights, outputs
 * would be averages near 0, and one omitted key could change them by less than the bound.
 *
 * Three kinds of queries have other values. If (query + head) % 16 is 5, the query is 16 times as large as other
 * queries; if (query + head) % 16 is 13, the query is 32 times as large. The softmax of large queries overflows if the
 * maximum is not subtracted. Some large queries see only one key. For about half of these queries, the logit of this
 * key is far below 0. If (query + head) % 16 is 9, the query is zero: the output is the mean of the values, and lse is
 * log2 of the number of keys. Key and value rows that no query uses are NaN. These include the rows of a sequence's
 * last page that follow its last key.
 *
 * Deep queries. In the second set, if (query + head) % 16 is 1, all elements of the query except the first are 0. The
 * first element of every key is a multiple of 1/128 from 1/2 to 1. The first element of the query is so far below 0
 * that every logit is at most -65536. A reference may use -10000 as the logit of masked keys or as the initial maximum.
 * As -10000 exceeds every logit of a deep query, the output of such a reference is wrong. The logits of two keys are
 * equal or differ by at least 512, so only the keys with the largest logit have a weight. The rounding errors of a
 * reference that scales the query instead of the logits therefore do not change the weights. If the dtype of the
 * queries cannot represent a first element so far below 0, there are no deep queries.
 *
 * Lone keys. If a sequence has only one key, this key is "lone", and the output is its value. In sparse attention, row
 * 7 is the lone key of query 1. The values of lone keys are uniform on [-2^18, 2^18), and most of them overflow
 * float16; in a tensor of float16, they are uniform on [-2^14, 2^14). The values of other keys are not so large,
 * because the rounding errors of their sums would exceed the bound of the output. In the lone key itself, only the
 * element with index 1 is so large (up to 2^10 in float16). A dot product then has only one large term, and no large
 * terms cancel. For the same reason, if keys have two parts, only one part has a large element: the first part in the
 * first set of values, the second part in the second set. If the first part of the keys is also the value, the element
 * of the output with index 1 is then large, too.
 *
 * The default cases contain no input for which correct implementations give different outputs. Such inputs are: a query
 * from which a causal mask hides every key of its sequence, a page number or sparse row that occurs twice in one
 * sequence, and a last page length of 0 for a sequence with a page. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_INPUT_VALUES_H
#define REFTEST_KERNELS_COMMON_ATTENTION_INPUT_VALUES_H

#include "kernels/common/attention/roles.h"
#include "kernels/core/random_inputs.h"

/* The parameters from which the float elements of an input are computed. Kernels take this struct by value. */
struct attention_recipe {
	uint64_t key;
	int64_t row; /* number of elements in a row: all heads of one key or query */
	int64_t dim; /* number of elements in a head */
	int is_query;
	int exponent, most;  /* queries are scaled by 2^exponent; most: the largest exponent for the dtype */
	int deep;            /* exponent of the first element of a deep query; ATTENTION_NO_DEEP: no deep queries */
	int part;            /* 0: first part of queries or keys; 1: second part, or values */
	int bits;            /* number of fraction bits of an element; the dtype represents this many bits exactly */
	int loud;    /* lone keys and their values are multiplied by 2^loud */
	int is_key;  /* is this a tensor of keys? In a lone key, only the element with index 1 is multiplied. */
	/* One byte per row, an enum attention_use, in the memory of the device that computes the elements. If the
	 * pointer is NULL, every row is used. */
	const uint8_t *used;
};

/* Whether a row of keys and values is used. All elements of a row that is not used are NaN. A lone key is the only key of
 * its sequence. */
enum attention_use { ATTENTION_UNUSED, ATTENTION_USED, ATTENTION_LONE };

enum { ATTENTION_NO_DEEP = -1000, ATTENTION_LOUD_COLUMN = 1 };

/* Returns an element of one head of row `row`, computed from its random bits. The caller converts the element to the
 * dtype with dtype_store_float. */
HOST_DEVICE static inline float attention_value(const struct attention_recipe *f, int64_t row, int64_t head,
                                                int64_t column, uint32_t random)
{
	float value = uniform_signed(random, f->bits);
	int first = f->deep != ATTENTION_NO_DEEP && f->part == 0 && column == 0;

	if (f->is_query) {
		int64_t kind = (row + head) % 16;

		if (kind == 1 && f->deep != ATTENTION_NO_DEEP)
			return first ? -float_power(f->deep) : 0;

		int exponent = f->exponent + (kind == 5 ? 4 : kind == 13 ? 5 : 0);

		return kind == 9 ? 0 : value * float_power(exponent < f->most ? exponent : f->most);
	}
	if (f->used != NULL && f->used[row] == ATTENTION_UNUSED)
		return float_from_bits(0x7fc00000u);
	if (f->loud != 0 && f->used != NULL && f->used[row] == ATTENTION_LONE) {
		if (!f->is_key)
			return value * float_power(f->loud);
		if (column == ATTENTION_LOUD_COLUMN)
			return (float)(64 + (random >> 26)) * float_power(f->loud - 7) * (random & 1 ? 1 : -1);
	}
	return first ? (float)(64 + (random >> 26)) * float_power(-7) : value;
}

/* Returns element `index` of the input that `f` describes. */
HOST_DEVICE static inline float attention_element(const struct attention_recipe *f, int64_t index, uint32_t random)
{
	return attention_value(f, index / f->row, index % f->row / f->dim, index % f->dim, random);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Returns true for an input of integers (indices, offsets or lengths). Such inputs are always computed on the host. */
bool attention_is_structure(const struct op_case *c, int input);

/* Returns the parameters of an input of floats, with `used` NULL. Host only. */
struct attention_recipe attention_recipe_of(const struct op_case *c, const struct attention_roles *roles, int input);

/* Sets *used to an array, allocated by malloc, with an enum attention_use per key row. If the input is a query, or if
 * the workload provides the indices, sets *used to NULL. Every row then counts as used, and no key as lone. Returns 0,
 * or -1 with a message in `err` if the axes are impossible, e.g. if the caches have no page. */
int attention_used(const struct op_case *c, const struct attention_roles *roles, int input, uint8_t **used,
                   struct err *err);

/* attention_fill, attention_scalar, attention_rule and attention_range implement the members of struct op for every
 * attention family. */
int attention_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);

/* Returns the scale of a case. In the first set of input values, this is the scale that models use, which is also the
 * default. In the second set, it is 0.65 times that scale; 0.65 differs from the factors of common mistakes (1 / sqrt
 * 2, ln 2, 1 / sqrt 3). In the second set of the small cases, the scale is one that models with normalised queries and
 * keys use: 1 in the first small case, and 1.25 in the second. A scale of 1 detects references that treat 1 as "no
 * scale is given". `sizes` is the family's op.sizes. */
typedef int attention_sizes_of(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
double attention_scale(const struct op_case *c, attention_sizes_of *sizes);
double attention_scalar(const struct op_case *c, int input);

/* The comment at the head of input_values.c derives the tolerance rules. */
struct rule attention_rule(const struct op_case *c, int output);

bool attention_range(const struct op_problem *problem, int variant, int input, struct op_range *out);

#ifdef __cplusplus
}
#endif
#endif
