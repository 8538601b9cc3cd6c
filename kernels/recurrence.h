/* recurrence - linear attention with a state, for the families that differ only in how the state forgets and learns:
 * gla, simple_gla, delta_rule, gated_delta_rule, kda.
 *
 * A head's state S [K, V] meets the tokens of its sequence in order. g is the logarithm of what stays:
 *
 *   S <- diag(e^g) S                     g of each head, of each head and key, or none (nothing is forgotten)
 *   S <- S + k v^T                       where the state only adds; or, by the delta rule,
 *   S <- S + beta k (v - S^T k)^T        where it corrects what it holds under k, read after the decay
 *   output = scale S^T q                 of the state after the token
 *
 * Value head h has q and k of head h / (H_v / H_q); g and beta are of value heads. Scale 0, or none, is 1 / sqrt(K).
 * The first state is zero if none is given, and the last one may be an output.
 *
 * What a schema says, and what its words do:
 *   g (or gk)         the gate. Alone it is the logarithm, as it is. With A_log [H_v], and dt_bias or not, it is
 *                     g = -exp(A_log) softplus(g + dt_bias), softplus(x) = log(1 + e^x); with a scalar lower_bound < 0,
 *                     and A_log or not, g = lower_bound sigmoid(exp(A_log) (g + dt_bias))
 *   g_gamma [H_v]     a head's constant gate, instead of g
 *   beta              as it is; sigmoid(beta) if it is called b, or the name, a tag or a Python scalar says so
 *                     ("beta_sigmoid"); twice that with "neg_eigval"
 *   "l2norm"          q / |q| and k / |k|. References may add up to 1e-5 to the squares: no row is so short that it
 *                     shows
 *   cu_seqlens        sequences one after the other: q [total, H, K], or [1, total, H, K]. Without: q [batch, tokens,
 *                     H, K]
 *   states            [sequences, H_v, K, V]. If shapes do not tell that they are [.., V, K], the name, a tag or the
 *                     description does: "v_first", "k_last", with a hyphen or an underline
 *
 * Sources of these formulas: Yang et al., "Gated linear attention transformers with hardware-efficient training", ICML
 * 2024 (gla); Schlag et al., "Linear transformers are secretly fast weight programmers", ICML 2021 (the delta rule);
 * Yang et al., "Gated delta networks", ICLR 2025; Kimi Team, "Kimi Linear", 2025 (kda and its gates). */
#ifndef REFTEST_KERNELS_RECURRENCE_H
#define REFTEST_KERNELS_RECURRENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* op.match's variant: what the family does, and what names and tags say. */
enum {
	RECURRENCE_DELTA = 1,     /* by the delta rule; else the state adds */
	RECURRENCE_HEAD_GATE = 2, /* a gate for each head */
	RECURRENCE_KEY_GATE = 4,  /* a gate for each head and key */
	RECURRENCE_V_FIRST = 8,   /* states are [V, K] */
	RECURRENCE_L2NORM = 16,
	RECURRENCE_SIGMOID = 32, /* of beta */
	RECURRENCE_DOUBLED = 64, /* beta, after that */
};

enum { RECURRENCE_DIM_MOST = 512 }; /* of a head */

/* Indices into the problem's inputs (output, new_state: outputs); -1: there is none. T is [batch, tokens], [total] or
 * [1, total]. All but the integers and the Python scalars are floats. */
struct recurrence_roles {
	int q, k, v;        /* [T, H_q, K], [T, H_q, K], [T, H_v, V] */
	int gate;           /* [T, H_v], or [T, H_v, K] */
	int gamma;          /* [H_v] */
	int a_log, dt_bias; /* [H_v]; the shape of the gate without T, or that flat */
	int beta;           /* [T, H_v] */
	int state;          /* [sequences, H_v, K, V]; may be absent: zeros */
	int cu_seqlens;     /* [sequences + 1] integers: tokens of sequence n are [n] … [n + 1] */
	int scale, l2norm, sigmoid, doubled, lower_bound; /* Python scalars */
	int output, new_state;                            /* [T, H_v, V], [sequences, H_v, K, V] */
};

struct recurrence_extent {
	int64_t sequences, tokens, total; /* tokens: of each sequence; packed: 0 */
	int64_t q_heads, v_heads, k_dim, v_dim;
};

/* What is done to the numbers of a case before the recurrence. */
enum recurrence_gate { RECURRENCE_GATE_NONE, RECURRENCE_GATE_LOG, RECURRENCE_GATE_SOFTPLUS, RECURRENCE_GATE_BOUNDED };
struct recurrence_modes {
	enum recurrence_gate gate;
	bool l2norm, sigmoid, doubled, v_first;
	double scale, lower_bound;
};

/* op.match for the family `name` with these of DELTA, HEAD_GATE and KEY_GATE. */
int recurrence_match(const char *name, int does, const struct op_problem *problem, struct err *why);

/* For problems that match took. Host only. */
struct recurrence_roles recurrence_roles_of(const struct op_problem *problem);
struct recurrence_extent recurrence_extent_of(const struct op_case *c, const struct recurrence_roles *roles);
struct recurrence_modes recurrence_modes_of(const struct op_case *c, const struct recurrence_roles *roles);
enum recurrence_gate recurrence_gate_of(const struct op_case *c, const struct recurrence_roles *roles);

/* op.oracle. */
int recurrence_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
