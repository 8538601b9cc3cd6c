/* constraint - the Python-like expressions under "constraints": `len_indptr == batch_size + 1`,
 * `num_kv_indices == kv_indptr[-1].item()`.
 *
 * Grammar (Python's precedence): or, and, not, comparisons (chained; == != < <= > >=), + - * / // %, unary -, **,
 * parentheses, integers, floats, True, False, axis and input names, and on an input of integer dtype: x[i] (i may be
 * negative), .item(), .max(), .min(), .sum(), .numel(), .shape[i], len(x), max(a, b), min(a, b). Anything else is a
 * sentence with the column. Integers are exact 64-bit with overflow detected; / gives a float. */
#ifndef REFTEST_DATASET_CONSTRAINT_H
#define REFTEST_DATASET_CONSTRAINT_H

#include "dataset/definition.h"

/* Does the text parse, and does it name only this definition's axes and inputs? 0, or -1 with the sentence (it has
 * the column inside the text). Needs axes and inputs filled, nothing else. */
int constraint_check(const struct definition *definition, const char *text, struct err *err);

enum constraint_answer {
	CONSTRAINT_HOLDS,
	CONSTRAINT_BROKEN,   /* `why` says with which values: "len_indptr == batch_size + 1: 9 == 9 + 1 is false" */
	CONSTRAINT_UNKNOWN,  /* needs a value that is not given (a tensor, an unset axis) */
	CONSTRAINT_ERROR     /* cannot be evaluated: index out of range, division by zero, overflow */
};

/* Tensor contents, by definition input index; data == NULL where unknown. Integer dtypes on the host. */
struct constraint_tensor {
	const void *data;
	enum dtype dtype;
	int rank;
	int64_t shape[RANK_MAX];
};

/* `axis` has one value per definition axis, negative = not known yet. `tensors` may be NULL: none is known. */
enum constraint_answer constraint_evaluate(const struct definition *definition, const char *text, const int64_t *axis,
                                           const struct constraint_tensor *tensors, struct err *why);

/* A constraint of the form `axis == expression` (either side) gives an unknown axis its value from known ones:
 * fills what it can in `axis` (repeatedly, until nothing changes) and returns how many it filled. */
int constraint_solve(const struct definition *definition, int64_t *axis);

#endif
