/* recurrence_work - the steps of the recurrence of kernels/common/linear_attention/recurrence.h in double. The oracle
 * (recurrence.c) and the oracle of the gradients (gradient_oracle.c) use these steps. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_WORK_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_WORK_H

#include "kernels/common/linear_attention/roles.h"

/* The mistakes that the oracle computes itself. From RECURRENCE_SOFTPLUS on, they are mistakes of reading a token; before
 * it, of a step. */
enum recurrence_mistake {
	RECURRENCE_NO_MISTAKE,
	RECURRENCE_RECALL_FIRST,   /* the delta rule reads the state before the decay */
	RECURRENCE_ANSWER_FIRST,
	RECURRENCE_NOT_ERASED,
	RECURRENCE_DECAY_LAST,
	RECURRENCE_ROUNDED_STATE,
	RECURRENCE_HALF_STATE,
	RECURRENCE_LAST_TOKEN,
	RECURRENCE_ADDED_NOTHING,
	RECURRENCE_ROUNDED_DECAYED, /* the state is rounded to bfloat16 after the decay */
	RECURRENCE_HALF_DECAYED,
	RECURRENCE_ROUNDED_BEFORE,  /* the state is rounded before each token, so that the final one is not */
	RECURRENCE_HALF_BEFORE,
	RECURRENCE_VALUE_STRENGTH,  /* beta v - recalled */
	RECURRENCE_RECALL_QUERY,
	RECURRENCE_BACKWARDS,       /* tokens in reverse */
	RECURRENCE_RUNS_ON,         /* a sequence begins with the final state of the one before */
	RECURRENCE_CHUNKS_16,       /* the state is lost after so many tokens */
	RECURRENCE_CHUNKS_32,
	RECURRENCE_CHUNKS_64,
	RECURRENCE_CHUNKS_128,
	RECURRENCE_SOFTPLUS,
	RECURRENCE_MEAN_GATE,
	RECURRENCE_ROUNDED_STAYS,  /* decays are rounded to bfloat16 */
	RECURRENCE_HALF_STAYS,
	RECURRENCE_BOUND_SOFTPLUS, /* the formula without lower_bound */
	RECURRENCE_A_ON_GATE,      /* exp(A_log) g + dt_bias */
	RECURRENCE_TILED,
	RECURRENCE_NO_EXP,
	RECURRENCE_BASE_2,
	RECURRENCE_SIGMOID_GATE,
	RECURRENCE_FIRST_GATE,
	RECURRENCE_NO_A_EXP,
	RECURRENCE_Q_NORM,
	RECURRENCE_K_NORM,
	RECURRENCE_BETA_1,
	RECURRENCE_SWAPPED,
	RECURRENCE_RAW_BETA, /* only gdn */
};
/* The mistakes that people make in all families of linear attention. */
extern const struct op_confusion recurrence_confusions[];

/* The case whose truth is computed: its roles, sizes and tensors. */
struct recurrence_work {
	struct recurrence_roles roles;
	struct recurrence_extent e;
	struct recurrence_modes modes;
	bool delta, by_key;
	int mistake; /* op_case.mistake: one of enum recurrence_mistake */
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
/* Does the same, or the step with the mistake of `w`. */
void recurrence_any_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state);
/* Copies a state and converts its layout. If `back` is false, copies from the tensors' layout ([K][V] or [V][K]) to
 * [V][K]. If `back` is true, copies from [V][K] to the tensors' layout. */
void recurrence_turn(const struct recurrence_work *w, const double *from, double *to, bool back);

double recurrence_sigmoid(double x);
double recurrence_softplus(double x);

#endif
