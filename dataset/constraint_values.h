/* constraint_values - the values of constraint expressions: 64-bit integers, floats, and tensors.
 *
 * A value is KNOWN, UNKNOWN or WRONG. A result that depends on an unknown value is also unknown. A value is wrong if an
 * error, such as an index out of range or a division by zero, prevents its computation. The message about a constraint
 * names the first missing value, or shows the first error. */
#ifndef REFTEST_DATASET_CONSTRAINT_VALUES_H
#define REFTEST_DATASET_CONSTRAINT_VALUES_H

#include "dataset/definition.h"

/* The contents of an integer tensor in host memory. Element i of an array of struct constraint_tensor belongs to input
 * i of the definition. If `data` is NULL, the contents are unknown. */
struct constraint_tensor {
	const void *data;
	enum dtype dtype;
	int rank;
	int64_t shape[RANK_MAX];
};

enum value_state { KNOWN, UNKNOWN, WRONG };
enum value_kind { INTEGER, FLOAT, TENSOR };

/* The value of a part of a constraint: a number or a tensor. A tensor value is a view of the input `input`. The view
 * lacks the first `dim` dimensions of the input, because indices have removed them. Its elements begin at `offset`.
 * `state` says whether the offset is known. Call value_contents to learn whether the contents of the input are
 * known. */
struct value {
	enum value_state state;
	enum value_kind kind;
	int64_t integer;
	double number;
	int input, dim;
	int64_t offset; /* the offset in elements, if the contents are known */
	int axis;	/* index of the axis if the whole expression is the name of an axis; otherwise negative */
};

/* The inputs and the messages of one evaluation. */
struct known {
	const struct definition *definition;
	const int64_t *axis;			 /* values of the axes; NULL if no value is known */
	const struct constraint_tensor *tensors; /* contents of the inputs; NULL if no contents are known */
	/* The constraint's text, which messages quote; NULL if the caller adds the text to the messages. */
	const char *text;
	/* If false, the parser is in an operand that cannot change the result, so it parses this operand, but does not
	 * evaluate it. An example is the right operand of `or` after a true left operand. */
	bool live;
	struct err wrong;			 /* message about the first error of the evaluation */
	const char *unknown;			 /* name of the first value that was missing, or NULL */
};

struct value value_integer(int64_t number);
struct value value_real(double number);

/* Returns an unknown value. `name` is the axis or input whose value is missing. */
struct value value_unknown(struct known *k, const char *name);

/* Returns a known value as a number. A long double represents every int64 and every double exactly. */
long double value_number(struct value v);
bool value_is_true(struct value v);

/* Applies "+", "-", "*", "/", "//", "%", "**", "&" or "|" to known numbers, with Python's semantics. */
struct value value_arithmetic(struct known *k, const char *sign, struct value a, struct value b);

/* Applies math.ceil ('c'), math.floor ('f'), int ('t', truncates) or abs ('a') to a known number. */
struct value value_rounded(struct known *k, char which, struct value v);

/* For a view of an input: value_spec returns the input, value_rank the number of dimensions of the view, and value_size
 * the size of its dimension `i` (-1 if the size is unknown). */
const struct tensor_spec *value_spec(const struct known *k, struct value v);
int value_rank(const struct known *k, struct value v);
int64_t value_size(const struct known *k, struct value v, int i);

/* value_contents returns the contents of an input, or NULL if the contents are unknown. value_elements returns the
 * number of elements of a view, or -1 if the number is unknown or too large. */
const struct constraint_tensor *value_contents(const struct known *k, int input);
int64_t value_elements(const struct known *k, struct value v);

/* Returns true if a constraint can read values of this dtype. Constraints can read integers from tensors, and integers
 * and floats from Python scalars (`scalar` is true). */
bool value_readable(enum dtype dtype, bool scalar);

/* These four functions compute a number from a view. value_element returns the first element, value_item the only
 * element, value_count the number of elements, and value_reduce the sum ('s'), the maximum ('a') or the minimum
 * ('i'). */
struct value value_element(struct known *k, struct value view);
struct value value_item(struct known *k, struct value view);
struct value value_count(struct known *k, struct value view);
struct value value_reduce(struct known *k, struct value view, char which);

/* Checks an index into `what`, which has `size` elements. A negative index counts from the end. */
struct value value_index(struct known *k, int64_t size, struct value index, const char *what);

#endif
