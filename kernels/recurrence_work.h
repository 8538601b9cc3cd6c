/* recurrence_work - the recurrence of kernels/recurrence.h step by step, in double: for its truth (recurrence.c) and
 * that of its gradients (recurrence_gradient.c). */
#ifndef REFTEST_KERNELS_RECURRENCE_WORK_H
#define REFTEST_KERNELS_RECURRENCE_WORK_H

#include "kernels/recurrence.h"

/* A case while its truth is computed. */
struct recurrence_work {
	struct recurrence_roles roles;
	struct recurrence_extent e;
	struct recurrence_modes modes;
	bool delta, by_key;
	const struct tensor *in;
	struct tensor *out;
};

/* What a token brings to one head, and its answer; `stays` is e^g for each key. */
struct recurrence_token {
	double *q, *k, *v, *stays, *output;
	double beta;
};

struct recurrence_work recurrence_work_of(const struct op_case *c, const struct tensor *in, struct tensor *out);

/* Tokens of sequence n: *first up to *end. */
void recurrence_tokens(const struct recurrence_work *w, int64_t n, int64_t *first, int64_t *end);
/* Token t as value head h has it: q and k normalised, the gate an exponential, beta a strength. */
void recurrence_read(const struct recurrence_work *w, int64_t t, int64_t h, struct recurrence_token *token);
/* `state` [V][K] from before the token to after it, and what is read of it. */
void recurrence_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state);
/* [V][K] from `from`, which may be [K][V]; or back, into `to`. */
void recurrence_turn(const struct recurrence_work *w, const double *from, double *to, bool back);

double recurrence_sigmoid(double x);
double recurrence_softplus(double x);
/* Zeros, at least one, to be freed; dies without memory. */
double *recurrence_take(int64_t count);

#endif
