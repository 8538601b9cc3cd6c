/* values - what the parts of a constraint come to: Python's numbers, on exact 64-bit integers and floats, and tensors,
 * of which the contents may be known.
 *
 * A value may be unknown (it then makes what it touches unknown) or wrong (an index out of range, a division by zero);
 * the first name that was missing and the first reason are kept, for whoever needs the value in the end. */
#ifndef REFTEST_DATASET_VALUES_H
#define REFTEST_DATASET_VALUES_H

#include "dataset/constraint.h"

enum state { KNOWN, UNKNOWN, WRONG };
enum kind { INTEGER, FLOAT, TENSOR };

/* A tensor value is a view: the input `input` with its first `dim` dimensions indexed away, beginning at `offset`. Its
 * state says whether that place is known; whether the contents are is another question (value_contents). */
struct value {
	enum state state;
	enum kind kind;
	int64_t integer;
	double number;
	int input, dim;
	int64_t offset; /* in elements; meaningful when place and contents are known */
	int axis;	/* >= 0: just the name of this axis, nothing else */
};

/* What is known while a constraint is evaluated. */
struct known {
	const struct definition *definition;
	const int64_t *axis;			 /* NULL: none is known */
	const struct constraint_tensor *tensors; /* NULL: none is known */
	const char *text;			 /* of the constraint, for sentences */
	bool live;				 /* false: behind an `or` that is decided; parsed, not evaluated */
	struct err wrong;			 /* the first thing that went wrong while evaluating */
	const char *unknown;			 /* the first name whose value was missing; NULL: none */
};

struct value value_integer(int64_t number);
struct value value_real(double number);

/* A value that `name` would have to give; one that cannot be told, and why. */
struct value value_unknown(struct known *k, const char *name);
struct value value_wrong(struct known *k, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Of a known number. Long double holds every int64 and every double on the machines this runs on, or rounds alike on
 * both sides. */
long double value_number(struct value v);
bool value_is_true(struct value v);

/* "+", "-", "*", "/", "//", "%", "**" as Python has them, on known numbers. */
struct value value_arithmetic(struct known *k, const char *sign, struct value a, struct value b);

/* Of a tensor: its input; how many dimensions it has left; the size of one of them, -1 if it is not known. */
const struct tensor_spec *value_spec(const struct known *k, struct value v);
int value_rank(const struct known *k, struct value v);
int64_t value_size(const struct known *k, struct value v, int i);

/* Contents of input `input`; NULL: they are not known. Elements of a view, -1 if not known or beyond counting. */
const struct constraint_tensor *value_contents(const struct known *k, int input);
int64_t value_elements(const struct known *k, struct value v);

/* Can a constraint read such elements? Integers, and floats where they are a Python scalar. */
bool value_readable(enum dtype dtype, bool scalar);

/* The number at a view's place; its only one; how many there are; the sum ('s'), the largest ('a'), the smallest ('i').
 */
struct value value_element(struct known *k, struct value view);
struct value value_item(struct known *k, struct value view);
struct value value_count(struct known *k, struct value view);
struct value value_reduce(struct known *k, struct value view, char which);

/* An index into `what` of that size, counted from the end where it is negative. */
struct value value_index(struct known *k, int64_t size, struct value index, const char *what);

#endif
