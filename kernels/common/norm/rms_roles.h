/* rms_roles - finds the role of each input and output of an RMS norm, its epsilon, and its numbers of rows and columns.
 * rms.h describes the operation. */
#ifndef REFTEST_KERNELS_COMMON_NORM_RMS_ROLES_H
#define REFTEST_KERNELS_COMMON_NORM_RMS_ROLES_H

#include "kernels/core/coverage.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices of the problem's inputs and outputs; -1: the problem has no such input or output. */
struct rms_roles {
	int hidden, residual, weight, eps; /* eps: the epsilon as a Python scalar */
	int output, updated;		   /* updated: hidden + residual, rounded to the dtype of this output */
};

/* Finds roles by shape. If shapes are ambiguous (two activations, two outputs, or activations of rank 1), names
 * determine the roles. In a problem that rms_match accepts, every input and output has a role. */
struct rms_roles rms_roles_of(const struct op_problem *problem);

extern const struct op_role rms_role_names[];
/* Implement op.coverage and op.bind. */
extern const struct op_coverage rms_coverage[];
void rms_bind(const struct op_problem *problem, int variant, void *roles);

/* Returns the epsilon of a case, or NaN if the definition and its case do not state it. The result is also NaN in a
 * probe case, from which epsilon is recovered. */
double rms_eps(const struct op_case *c);

/* Writes the number of rows and columns of the activations. The columns are the last axis, which is normalised. The
 * number of rows is the product of all other axes, capped at 2^62. */
void rms_extent(const struct op_case *c, int64_t *rows, int64_t *columns);

#ifdef __cplusplus
}
#endif
#endif
