/* constraint - evaluates the Python-like expressions under "constraints" in a definition: `len_indptr == batch_size +
 * 1`, `num_kv_indices == kv_indptr[-1].item()`.
 *
 * The language is a subset of Python, with Python's precedence. Operators, from the loosest to the tightest: `or`;
 * `and`; `not`; comparisons (== != < <= > >=, which may be chained, and `in` or `not in` with a tuple, list or set); |;
 * &; + and -; * / // %; unary + and -; **. Operands: integers, floats, True, False, names of axes and inputs, and
 * parentheses. Functions: len(x), max(a, b, …), min(a, b, …), abs, int, math.ceil, math.floor. For each tensor x among
 * the inputs: x.numel() and x.shape[i]. If the dtype of x is an integer dtype, also x[i], x.item(), x.max(), x.min()
 * and x.sum(). An index may be negative. Any other text is an error; the message gives the column. Integers have 64
 * bits, and an overflow is an error. The result of / is a float. */
#ifndef REFTEST_DATASET_CONSTRAINT_H
#define REFTEST_DATASET_CONSTRAINT_H

#include "dataset/constraint_values.h"

enum constraint_answer {
	CONSTRAINT_HOLDS,
	/* `why` shows the values, for example "len_indptr == batch_size + 1: 9 == 9 + 1 is false". */
	CONSTRAINT_BROKEN,
	CONSTRAINT_UNKNOWN,  /* the constraint needs an unknown value (a tensor, an unset axis) */
	/* The constraint cannot be parsed (`why` gives the column in the text) or cannot be evaluated: index out of
	 * range, division by zero, overflow. */
	CONSTRAINT_ERROR
};

/* Evaluates a constraint. `axis` has one value for each axis of the definition; a negative value means unknown. If
 * `axis` is NULL, all axes are unknown. If `tensors` is NULL, the contents of all tensors are unknown. The function
 * reads only the axes and inputs of `definition`. */
enum constraint_answer constraint_evaluate(const struct definition *definition, const char *text, const int64_t *axis,
                                           const struct constraint_tensor *tensors, struct err *why);

/* Evaluates an expression over axes (sums, products, powers and parentheses). The value of the expression is the length
 * of an axis: an integer from 0 to 2^53 - 1. Returns CONSTRAINT_HOLDS and writes the value. Returns CONSTRAINT_UNKNOWN
 * if an axis is unknown. Returns CONSTRAINT_ERROR with a message if the text is another kind of expression, or if the
 * value is out of range. */
enum constraint_answer constraint_length(const struct definition *definition, const char *text, const int64_t *axis,
					 int64_t *value, struct err *why);

/* Computes unknown axes from their expressions, and from constraints of the form `axis == expression` or `expression ==
 * axis`. Also solves other equations that are linear in their only unknown axis, such as `hidden == 2 * half`.
 * Evaluates the expressions and constraints again and again until no further axis gets a value. Writes the values to
 * `axis`, and returns the number of computed axes. */
int constraint_solve(const struct definition *definition, int64_t *axis);

#endif
