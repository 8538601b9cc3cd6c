/* coverage - declares the rows of the tables op.coverage. `reftest coverage` reads these tables, and lists what the
 * definitions and cases of a dataset cover, and what no definition covers.
 *
 * A row is about one property in which references of a family differ, such as the layout of the state. The row lists
 * the values of this property that a dataset should contain. Each value has a range of numbers. `measure` computes a
 * number from a case. If the range of a value contains this number, the case covers the value. The number depends on
 * roles, modes, dtypes, lengths and scalars, but not on the name of a definition. Verdicts do not depend on
 * coverage. */
#ifndef REFTEST_KERNELS_CORE_COVERAGE_H
#define REFTEST_KERNELS_CORE_COVERAGE_H

#include "kernels/core/op.h"
#include "kernels/core/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { COVERAGE_VALUES = 8, COVERAGE_AXES = 32 };

/* The case that the functions below measure. */
struct coverage_view {
	const struct op_case *c;
	struct op_names names;
};

struct coverage_value {
	const char *name;   /* for example "[V, K]" */
	double least, most; /* the smallest and the largest number that `measure` returns for this value */
	const char *says;   /* the end of the sentence "no definition of gdn …"; NULL: a dataset does not need this
			     * value */
};

struct op_coverage {
	const char *name; /* for example "state layout" */
	/* Computes a number from a case. Returns NaN if the property does not apply to the case. */
	double (*measure)(const struct coverage_view *view, const struct op_coverage *row);
	const char *role, *other; /* names of roles (op.roles) or of modes (op.modes) */
	int axis, other_axis;	  /* axes of the tensors `role` and `other`; a negative axis counts from the last */
	struct coverage_value values[COVERAGE_VALUES]; /* ends with an entry whose name is NULL */
};

/* Returns 1 if the case has the tensor or scalar that row->role names, and 0 if the definition lacks it or the case
 * omits it. */
double coverage_has(const struct coverage_view *view, const struct op_coverage *row);
/* If the definition has the Python scalar that row->role names, returns 1 if the scalar is not 0, else 0. If it has no
 * such scalar, returns 1 if the mode that row->other names is on, else 0. `role` may be NULL. */
double coverage_switch(const struct coverage_view *view, const struct op_coverage *row);
/* row->role lists modes, as in "silu|gelu". Returns 1 if the operation is in the first of these modes, 2 if it is in
 * the second, …, and 0 if it is in none. */
double coverage_mode(const struct coverage_view *view, const struct op_coverage *row);
/* These functions measure the tensor that row->role names: its dtype (a value of enum dtype), its number of dimensions,
 * and the length of its axis row->axis. */
double coverage_dtype(const struct coverage_view *view, const struct op_coverage *row);
double coverage_rank(const struct coverage_view *view, const struct op_coverage *row);
double coverage_length(const struct coverage_view *view, const struct op_coverage *row);
/* Returns the length of axis row->axis of the tensor that row->role names, divided by the length of axis
 * row->other_axis of the tensor that row->other names. */
double coverage_ratio(const struct coverage_view *view, const struct op_coverage *row);

/* Returns the index into row->values of the value that the case covers, or -1 if it covers none. */
int coverage_of(const struct coverage_view *view, const struct op_coverage *row);
struct coverage_view coverage_view_of(const struct op *op, const struct op_case *c);

/* Rows that several families use in their tables. */
#define COVERAGE_DTYPE(dtype, words) {words, dtype, dtype, "has " words " tensors"}
#define COVERAGE_DTYPES(of)                                                                                               \
	{"dtype", coverage_dtype, .role = of,                                                                             \
	 .values = {COVERAGE_DTYPE(DTYPE_BFLOAT16, "bfloat16"), COVERAGE_DTYPE(DTYPE_FLOAT16, "float16"),                 \
		    {"float32", DTYPE_FLOAT32, DTYPE_FLOAT32, NULL}, {"other", 0, DTYPE_COUNT, NULL}}}
/* The row of dtypes for families whose tensors are float32 in most models. */
#define COVERAGE_DTYPES_WIDE(of)                                                                                          \
	{"dtype", coverage_dtype, .role = of,                                                                             \
	 .values = {COVERAGE_DTYPE(DTYPE_FLOAT32, "float32"), {"bfloat16", DTYPE_BFLOAT16, DTYPE_BFLOAT16, NULL},         \
		    {"float16", DTYPE_FLOAT16, DTYPE_FLOAT16, NULL}, {"other", 0, DTYPE_COUNT, NULL}}}
#define COVERAGE_OPTION(title, of, given, says_given, absent, says_absent)                                                \
	{title, coverage_has, .role = of, .values = {{given, 1, 1, says_given}, {absent, 0, 0, says_absent}}}
#define COVERAGE_ROWS(of)                                                                                                 \
	{"rows", coverage_length, .role = of, .axis = 0,                                                                  \
	 .values = {{"one", 1, 1, "has a case with one row"}, {"several", 2, 0x1p62, "has a case with several rows"}}}

#ifdef __cplusplus
}
#endif
#endif
