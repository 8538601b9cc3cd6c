/* recurrence_work - the steps of the recurrence of kernels/common/linear_attention/recurrence.h in double. The oracle
 * (recurrence.c) and the oracle of the gradients (gradient_oracle.c) use these steps. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_WORK_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_WORK_H

#include "kernels/common/linear_attention/roles.h"

/* The case whose truth is computed: its roles, sizes and tensors. */
struct recurrence_work {
	struct recurrence_roles roles;
	struct recurrence_extent e;
	struct recurrence_modes modes;
	bool delta, by_key;
	const struct tensor *in;
	struct tensor *out;
};

/* The values of one token in one head, and the token's output. stays[j] is the decay e^g of key j. */
struct recurrence_token {
	double *q, *k, *v, *stays, *output;
	double beta;
};

/* Returns a token whose arrays are one block of memory, which the caller must free by its pointer q. */
struct recurrence_token recurrence_token_of(int64_t k_dim, int64_t v_dim);

struct recurrence_work recurrence_work_of(const struct op_case *c, const struct tensor *in, struct tensor *out);

/* Writes the range of tokens that sequence n has: the tokens *first … *end - 1. */
void recurrence_tokens(const struct recurrence_work *w, int64_t n, int64_t *first, int64_t *end);
/* Reads token t for value head h: q and k (normalised if the case requests it), the exponential of the gate, and beta
 * after its preprocessing. */
void recurrence_read(const struct recurrence_work *w, int64_t t, int64_t h, struct recurrence_token *token);
/* Updates `state` [V][K] by one token and computes the token's output. Of `w`, recurrence_step and recurrence_turn read
 * only the two dims, `delta`, the scale and the layout of states. */
void recurrence_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state);
/* Copies a state and converts its layout. If `back` is false, copies from the tensors' layout ([K][V] or [V][K]) to
 * [V][K]. If `back` is true, copies from [V][K] to the tensors' layout. */
void recurrence_turn(const struct recurrence_work *w, const double *from, double *to, bool back);

double recurrence_sigmoid(double x);
double recurrence_softplus(double x);

#endif
