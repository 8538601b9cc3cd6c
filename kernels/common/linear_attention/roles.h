/* roles - finds the role of each input and output of a recurrence, the sizes of a case, and how its inputs are
 * preprocessed. recurrence.h describes the operation. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_ROLES_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_ROLES_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/common/linear_attention/shared_coverage.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The flags of a variant, which op.match returns. The first three flags are properties of the family. The shapes, names
 * and tags of the definition determine the other flags. */
enum {
	RECURRENCE_DELTA = 1,     /* the state is updated by the delta rule; otherwise, k v^T is added */
	RECURRENCE_HEAD_GATE = 2, /* one gate per head */
	RECURRENCE_KEY_GATE = 4,  /* one gate per head and key */
	RECURRENCE_V_FIRST = 8,   /* states are [V, K] */
	RECURRENCE_L2NORM = 16,
	RECURRENCE_SIGMOID = 32, /* a sigmoid is applied to beta */
	RECURRENCE_DOUBLED = 64, /* beta is doubled after the sigmoid */
	RECURRENCE_DOUBLED_ALONE = 128, /* beta is doubled even without a sigmoid, because the description of a scalar
					 * says so */
};

enum { RECURRENCE_DIM_MOST = 512 }; /* the maximum of K and V */

/* For each role, the index of the problem's input with this role. `output` and `new_state` are indices of outputs. -1:
 * no input or output has the role. T is [batch, tokens], [total] or [1, total]. All tensors are floats, except the
 * integer offsets and the Python scalars. */
struct recurrence_roles {
	int q, k, v;        /* q and k: [T, H_q, K]; v: [T, H_v, V] */
	int gate;           /* [T, H_v], or [T, H_v, K] */
	int gamma;          /* [H_v] */
	int a_log, dt_bias; /* a_log: [H_v]; dt_bias: [H_v]; if the gate is [T, H_v, K]: [H_v, K] or [H_v * K] */
	int beta;           /* [T, H_v] */
	int state;          /* [sequences, H_v, K, V]; an absent state is zeros */
	int cu_seqlens;     /* [sequences + 1] offsets of each sequence's tokens */
	int scale, l2norm, sigmoid, doubled, lower_bound; /* Python scalars */
	int output, new_state;                            /* output: [T, H_v, V]; new_state: [sequences, H_v, K, V] */
};

struct recurrence_extent {
	int64_t sequences, tokens, total; /* tokens: the number of tokens in each sequence, or 0 if sequences are
					   * packed; total: the number of tokens of all sequences */
	int64_t q_heads, v_heads, k_dim, v_dim;
};

/* How the decay is computed from the gate inputs (recurrence.h). */
enum recurrence_gate { RECURRENCE_GATE_NONE, RECURRENCE_GATE_LOG, RECURRENCE_GATE_SOFTPLUS, RECURRENCE_GATE_BOUNDED };
struct recurrence_modes {
	enum recurrence_gate gate;
	bool l2norm, sigmoid, doubled, v_first;
	double scale, lower_bound;
};

/* Implements op.match. `does` has the flags of the family (DELTA, HEAD_GATE and KEY_GATE). */
int recurrence_match(int does, const struct op_problem *problem, struct err *why);

/* Implement op.roles, op.bind and op.modes. */
extern const struct op_role recurrence_role_names[];
void recurrence_bind(const struct op_problem *problem, int variant, void *roles);
extern const struct op_mode recurrence_mode_names[];

/* Rows of op.coverage for the families of recurrence.h. */
#define RECURRENCE_COVERAGE                                                                                               \
	COVERAGE_OPTION("sequences", "cu_seqlens", "packed", "has packed sequences", "in a batch",                        \
			"has sequences in a batch"),                                                                      \
	    {"state layout", recurrence_state_layout,                                                                     \
	     .values = {{"[K, V]", 0, 0, "has states [K, V]"}, {"[V, K]", 1, 1, "has states [V, K]"}}},                   \
	    LINEAR_ATTENTION_COVERAGE,                                                                                    \
	    COVERAGE_DTYPES("q")
/* The row of op.coverage about the kind of gate. `bounded` is the text in coverage_value.says for the value "bounded",
 * or NULL. */
#define RECURRENCE_COVERAGE_GATE(bounded)                                                                                 \
	{"gate", recurrence_gate_kind,                                                                                    \
	 .values = {{"logarithm", RECURRENCE_GATE_LOG, RECURRENCE_GATE_LOG, "has the logarithm of the decay as its gate"}, \
		    {"softplus", RECURRENCE_GATE_SOFTPLUS, RECURRENCE_GATE_SOFTPLUS, "computes its gate with A_log"},     \
		    {"bounded", RECURRENCE_GATE_BOUNDED, RECURRENCE_GATE_BOUNDED, bounded}}}
#define RECURRENCE_COVERAGE_BETA                                                                                          \
	{"beta", coverage_switch, .role = "sigmoid", .other = "sigmoid",                                                  \
	 .values = {{"as it is", 0, 0, "has a beta that is used as it is"},                                               \
		    {"sigmoid", 1, 1, "has a beta that goes through a sigmoid"}}},                                        \
	    {"doubled beta", coverage_switch, .role = "doubled", .other = "doubled",                                      \
	     .values = {{"yes", 1, 1, "doubles beta"}, {"no", 0, 0, "has a beta that is not doubled"}}}
double recurrence_state_layout(const struct coverage_view *view, const struct op_coverage *row);
double recurrence_gate_kind(const struct coverage_view *view, const struct op_coverage *row);

/* Returns the roles of a problem that `op.match` accepted. Host only. */
struct recurrence_roles recurrence_roles_of(const struct op_problem *problem);
struct recurrence_extent recurrence_extent_of(const struct op_case *c, const struct recurrence_roles *roles);
struct recurrence_modes recurrence_modes_of(const struct op_case *c, const struct recurrence_roles *roles);
enum recurrence_gate recurrence_gate_of(const struct op_case *c, const struct recurrence_roles *roles);

#ifdef __cplusplus
}
#endif
#endif
