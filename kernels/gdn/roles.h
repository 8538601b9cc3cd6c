/* roles - finds the role of each tensor of a gated delta net, the sizes of a case, and the options that are given in
 * the definition's name, tags and description. Host only. */
#ifndef REFTEST_KERNELS_GDN_ROLES_H
#define REFTEST_KERNELS_GDN_ROLES_H

#include "kernels/core/coverage.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bits of the variant that op.match returns. */
enum { GDN_V_LAST = 1, GDN_L2NORM = 2 }; /* GDN_V_LAST: states are [K, V] instead of [V, K]. GDN_L2NORM: q and k are
					  * normalised. */

enum { GDN_DIM_MOST = 256 }; /* the largest K and the largest V of a definition */

/* For each role, the index of the input that has the role, or -1 if no input has the role. The members output and
 * new_state are indices of outputs. H_v is a multiple of H_q and H_k. T is [batch, tokens], or [total] if sequences are
 * packed. */
struct gdn_roles {
	int q, k, v;	    /* q: [T, H_q, K], k: [T, H_k, K], v: [T, H_v, V]; floats */
	int state;	    /* [slots, H_v, V, K] floats; if absent, states start as zeros */
	int a_log, dt_bias; /* [H_v] floats */
	int a, b;	    /* [T, H_v] floats */
	/* [sequences + 1] integers: sequence n has the tokens cu_seqlens[n] … cu_seqlens[n + 1] - 1. Sequences are
	 * packed if and only if this input is present. */
	int cu_seqlens;
	int indices;	    /* [sequences] integers: the slot of each sequence; if absent, sequence n has slot n */
	int buffer;	    /* [slots or batch, tokens, H_v, V, K] floats; receives the state after each token */
	int scale, l2norm, frozen; /* Python scalars; frozen is the scalar disable_state_update */
	int output, new_state;
};

struct gdn_extent {
	int64_t sequences, tokens, total; /* tokens: the number of tokens in each sequence, or 0 if sequences are
					   * packed; total: the number of all tokens */
	int64_t slots, q_heads, k_heads, v_heads, k_dim, v_dim;
};

extern const struct op_role gdn_role_names[];
extern const struct op_mode gdn_mode_names[];
/* Implements op.coverage. */
extern const struct op_coverage gdn_coverage[];
void gdn_bind(const struct op_problem *problem, int variant, void *roles);

/* Implements op.match: returns the variant, or -1 with a message in `why`. */
int gdn_match(const struct op_problem *problem, struct err *why);

/* op.match must have accepted the problem that is passed to gdn_roles_of or gdn_extent_of. */
struct gdn_roles gdn_roles_of(const struct op_problem *problem);
struct gdn_extent gdn_extent_of(const struct op_case *c, const struct gdn_roles *roles);

/* Returns true if the buffer of intermediate states has one entry for each slot, and false if it has one for each
 * sequence. */
bool gdn_buffer_by_slot(const struct op_problem *problem, const struct gdn_roles *roles);

/* Returns the factor by which outputs are multiplied: the case's scale, or 1 / sqrt(K) if the scale is 0 or absent. */
double gdn_scale(const struct op_case *c, const struct gdn_roles *roles);
bool gdn_l2norm(const struct op_case *c, const struct gdn_roles *roles);

/* Returns true if the output of states contains the states after the last token, and false if it contains the input
 * states. */
bool gdn_updates(const struct op_case *c, const struct gdn_roles *roles);

/* Checks the axes of a case. Returns 0, or -1 with a message in `err` if the axes make the case invalid. */
int gdn_check_axes(const struct op_case *c, const struct gdn_roles *roles, const struct gdn_extent *e, struct err *err);

/* Implements op.constants: writes "updates_state" if the problem's inputs and outputs do not show whether the reference
 * updates the states. */
int gdn_constants(const struct op_problem *problem, int variant, struct op_constant *out);

#ifdef __cplusplus
}
#endif
#endif
