/* recurrence_work - computes the steps of the recurrence (kernels/common/linear_attention/recurrence.h) in double. The
 * oracle (recurrence.c) and the oracle of the gradients (gradient_oracle.c) use these steps. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_WORK_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_WORK_H

#include "kernels/common/linear_attention/roles.h"

/* The mistakes that the oracle simulates. The mistakes before RECURRENCE_SOFTPLUS change the step of the recurrence.
 * RECURRENCE_SOFTPLUS and all later mistakes change how the values of a token are computed from the inputs. */
enum recurrence_mistake {
	RECURRENCE_NO_MISTAKE,
	RECURRENCE_RECALL_FIRST,   /* the delta rule reads the state before the decay */
	RECURRENCE_ANSWER_FIRST,
	RECURRENCE_NOT_ERASED,
	RECURRENCE_DECAY_LAST,
	RECURRENCE_DECAY_TWICE,    /* the state decays before and after the token's update */
	RECURRENCE_ROUNDED_STATE,
	RECURRENCE_HALF_STATE,
	RECURRENCE_LAST_TOKEN,
	RECURRENCE_ADDED_NOTHING,
	RECURRENCE_ROUNDED_DECAYED, /* the state is rounded to bfloat16 after the decay */
	RECURRENCE_HALF_DECAYED,
	RECURRENCE_ROUNDED_BEFORE,  /* the state is rounded before each token, and the final state is not rounded */
	RECURRENCE_HALF_BEFORE,
	RECURRENCE_VALUE_STRENGTH,  /* the update is beta v - recalled, not beta (v - recalled) */
	RECURRENCE_RECALL_QUERY,
	RECURRENCE_BACKWARDS,       /* the tokens are processed in reverse order */
	RECURRENCE_NO_STATE,        /* the initial state is zeros; states in a pool that no sequence uses stay
				     * unchanged */
	RECURRENCE_STATE_AGAIN,     /* only gdn: every token starts from the initial state */
	RECURRENCE_LAST_DECAY,      /* the final state is decayed once more */
	RECURRENCE_SWAPPED_VALUES,  /* only gdn: the computed decay and the computed beta are swapped */
	RECURRENCE_RUNS_ON,         /* a sequence begins with the final state of the previous sequence */
	RECURRENCE_STATE_LOST,      /* the state becomes 0 after every mistake_by tokens */
	RECURRENCE_ONE_SEQUENCE,    /* the offsets are ignored: the last sequence has all tokens */
	RECURRENCE_EQUAL_SEQUENCES, /* the offsets are ignored: sequences have equal lengths */
	RECURRENCE_DECAY_BEFORE,    /* a token uses the decay of the previous token */
	RECURRENCE_BETA_TWICE,
	RECURRENCE_RECALL_TURNED,   /* the state is transposed where it is read with k */
	RECURRENCE_LEARN_TURNED,    /* the state is transposed where it is updated */
	RECURRENCE_ANSWER_TURNED,   /* the state is transposed where it is read with q */
	RECURRENCE_SOFTPLUS,
	RECURRENCE_RELU,            /* relu instead of softplus */
	RECURRENCE_SOFTPLUS_UP_TO,  /* softplus(x) is x for x above mistake_by */
	RECURRENCE_BIAS_LAST,       /* dt_bias is added after the softplus */
	RECURRENCE_LEAST_GATE,      /* the logarithm of the decay is at least mistake_by */
	RECURRENCE_MEAN_GATE,
	RECURRENCE_ROUNDED_STAYS,  /* decays are rounded to bfloat16 */
	RECURRENCE_HALF_STAYS,
	RECURRENCE_BOUND_SOFTPLUS, /* the formula without lower_bound is used */
	RECURRENCE_A_ON_GATE,      /* exp(A_log) g + dt_bias is used instead of exp(A_log) (g + dt_bias) */
	RECURRENCE_TILED,
	RECURRENCE_TILED_Q,
	RECURRENCE_TILED_K,
	RECURRENCE_NO_EXP,
	RECURRENCE_BASE_2,
	RECURRENCE_SIGMOID_GATE,
	RECURRENCE_FIRST_GATE,
	RECURRENCE_NO_A_EXP,
	RECURRENCE_A_AS_IT_IS, /* A_log, which may be above 0, is used instead of -exp(A_log) */
	RECURRENCE_NO_DECAY,   /* only gdn */
	RECURRENCE_Q_NOT_NORMALISED,
	RECURRENCE_K_NOT_NORMALISED,
	RECURRENCE_Q_NORMALISED, /* q is normalised although the operation does not normalise it */
	RECURRENCE_K_NORMALISED,
	RECURRENCE_BETA_1,
	RECURRENCE_SWAPPED,
	/* Each of the next three mistakes changes one step: the normalisation of q and k, the sigmoid of beta, or the
	 * doubling of beta. The mistake omits the step if the operation includes it, and adds the step otherwise. */
	RECURRENCE_OTHER_L2NORM,
	RECURRENCE_OTHER_SIGMOID,
	RECURRENCE_OTHER_DOUBLED,
	RECURRENCE_DOUBLED_FIRST, /* beta is doubled before the sigmoid */
	RECURRENCE_BETA_BY_VALUE, /* a sigmoid is applied to beta if any beta is outside [0, 1] */
	RECURRENCE_RAW_BETA, /* only gdn */
	/* From here on, the numbers are RECURRENCE_NORM(kind, rows): mistakes in the normalisation of q, of k, or of
	 * both. */
	RECURRENCE_NORMS
};
enum recurrence_norm {
	RECURRENCE_NORM_SQUARED, /* the row is divided by the square of the norm */
	RECURRENCE_NORM_MEAN,    /* the row is divided by the root of the mean of squares */
	RECURRENCE_NORM_1,       /* the row is divided by the sum of the magnitudes */
	RECURRENCE_NORM_HEADS,   /* the norm is over the heads, not over the elements of a head */
	RECURRENCE_NORM_INSIDE,  /* mistake_by is added to the sum of squares */
	RECURRENCE_NORM_OUTSIDE, /* mistake_by is added to the norm */
	RECURRENCE_NORM_ROUNDED, /* the normalised row is rounded to the dtype mistake_by */
	RECURRENCE_NORM_KINDS
};
enum recurrence_rows { RECURRENCE_OF_Q = 1, RECURRENCE_OF_K, RECURRENCE_OF_BOTH };
#define RECURRENCE_NORM(kind, rows) (RECURRENCE_NORMS + 4 * (kind) + (rows))

extern const struct op_mistake recurrence_mistakes[];

/* The case whose truth is computed: its roles, sizes and tensors. */
struct recurrence_work {
	struct recurrence_roles roles;
	struct recurrence_extent e;
	struct recurrence_modes modes;
	bool delta, by_key;
	int mistake; /* op_case.mistake: a value of enum recurrence_mistake, or a RECURRENCE_NORM */
	double by;   /* op_case.mistake_by */
	bool may_sigmoid; /* whether a sigmoid is applied to beta in some case of the definition */
	const struct tensor *in;
	struct tensor *out;
};

/* The values of one token in one head, and the output of the token. stays[j] is the decay e^g of key j. */
struct recurrence_token {
	double *q, *k, *v, *stays, *output;
	double beta;
};

/* Returns a token whose arrays are in one block of memory. The caller must free the member q, which points to this
 * block. */
struct recurrence_token recurrence_token_of(int64_t k_dim, int64_t v_dim);

struct recurrence_work recurrence_work_of(const struct op_case *c, const struct tensor *in, struct tensor *out);

/* Returns true if the mistake can change the result for some values of the definition's scalars. If it cannot, the
 * oracle does not simulate the mistake. */
bool recurrence_has(const struct recurrence_work *w);

/* Returns g, the logarithm of the decay, for the gate x with its bias and the element a_log of A_log: -e^a_log
 * softplus(x + bias). */
double recurrence_gate_by_softplus(const struct recurrence_work *w, double x, double bias, double a_log);
/* Returns the decay e^g, or what a reference with the mistake computes instead. */
double recurrence_decay(const struct recurrence_work *w, double g);

/* Returns the row that value head h uses for token t. This is a row of q if `is_query` is true, else of k. The tensor
 * has `heads` rows per token. */
int64_t recurrence_row(const struct recurrence_work *w, bool is_query, int64_t heads, int64_t t, int64_t h);
/* Reads row `row` of q if `is_query` is true, else of k, and normalises the row if the case requires it. The tensor has
 * `heads` rows per token. A row of zeros is not changed. */
void recurrence_read_row(const struct recurrence_work *w, const struct tensor *rows, bool is_query, int64_t heads,
                         int64_t row, double *out);

/* Writes the range of tokens of sequence n: *first … *end - 1. There are `sequences` sequences. Without offsets, each
 * sequence has `tokens` tokens. If the case has a mistake, writes the range that a reference with the mistake reads. */
void recurrence_token_range(const struct recurrence_work *w, const struct tensor *offsets, int64_t n, int64_t sequences,
                      int64_t tokens, int64_t *first, int64_t *end);

/* Writes the range of tokens of sequence n: *first … *end - 1. */
void recurrence_tokens(const struct recurrence_work *w, int64_t n, int64_t *first, int64_t *end);
/* Reads token t for value head h: q and k (normalised if the case requires it), v, the decay, and beta after its
 * preprocessing. */
void recurrence_read(const struct recurrence_work *w, int64_t t, int64_t h, struct recurrence_token *token);
/* Updates `state` [V][K] by one token and computes the token's output. This function and recurrence_turn read only
 * these members of `w`: the two dims, `delta`, the scale and the layout of states. */
void recurrence_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state);
/* Like recurrence_step, but with the mistake of `w`, if `w` has one. */
void recurrence_any_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state);
/* Multiplies `state` [V][K] by the decays of a token. */
void recurrence_decay_state(const struct recurrence_work *w, const struct recurrence_token *token, double *state);
/* Copies a state and converts its layout. If `back` is false, copies from the tensors' layout ([K][V] or [V][K]) to
 * [V][K]. If `back` is true, copies from [V][K] to the tensors' layout. */
void recurrence_turn(const struct recurrence_work *w, const double *from, double *to, bool back);

/* Returns true if any element is outside [0, 1]. */
bool recurrence_looks_raw(const struct tensor *beta);

double recurrence_sigmoid(double x);
double recurrence_softplus(double x);

#endif
