/* roles - which tensor plays which part in a gated delta net, how large everything is, and what texts say of it. Host
 * only. */
#ifndef REFTEST_KERNELS_GDN_ROLES_H
#define REFTEST_KERNELS_GDN_ROLES_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* op.match's variant. */
enum { GDN_V_LAST = 1, GDN_L2NORM = 2 }; /* states are [K, V], not [V, K]; q and k are normalised inside */

enum { GDN_DIM_MOST = 256 }; /* of a head */

/* Indices into the problem's inputs (output, new_state: outputs); -1: there is none. H_v is a multiple of H_q and H_k;
 * T is [batch, tokens], or [total] where sequences are packed. */
struct gdn_roles {
	int q, k, v;	    /* [T, H_q, K], [T, H_k, K], [T, H_v, V] floats */
	int state;	    /* [slots, H_v, V, K] floats; may be absent: zeros */
	int a_log, dt_bias; /* [H_v] floats */
	int a, b;	    /* [T, H_v] floats */
	int cu_seqlens;	    /* [sequences + 1] integers: tokens of sequence n are [n] … [n + 1]. There: packed */
	int indices;	    /* [sequences] integers: slots; without them, sequence n has slot n */
	int buffer;	    /* [slots or batch, tokens, H_v, V, K] floats, for the state after each token */
	int scale, l2norm, frozen; /* Python scalars; frozen: true if the states are not to be updated */
	int output, new_state;
};

struct gdn_extent {
	int64_t sequences, tokens, total; /* tokens: of each sequence; packed: 0 */
	int64_t slots, q_heads, k_heads, v_heads, k_dim, v_dim;
};

/* As op.match: its variant, or -1 with the sentence. */
int gdn_match(const struct op_problem *problem, struct err *why);

/* For problems that op.match took. */
struct gdn_roles gdn_roles_of(const struct op_problem *problem);
struct gdn_extent gdn_extent_of(const struct op_case *c, const struct gdn_roles *roles);

/* Does the buffer of intermediate states have a place for each slot (or for each sequence)? */
bool gdn_buffer_by_slot(const struct op_problem *problem, const struct gdn_roles *roles);

/* The factor on outputs; 0 and none stand for 1 / sqrt(K). */
double gdn_scale(const struct op_case *c, const struct gdn_roles *roles);
bool gdn_l2norm(const struct op_case *c, const struct gdn_roles *roles);

/* Does the output of states hold those after the last token (or those that came in)? */
bool gdn_updates(const struct op_case *c, const struct gdn_roles *roles);

/* What the axes alone rule out: 0, or -1 with the sentence. */
int gdn_check_axes(const struct op_case *c, const struct gdn_roles *roles, const struct gdn_extent *e, struct err *err);

/* As op.constants: "updates_state", where only probing can tell. */
int gdn_constants(const struct op_problem *problem, int variant, struct op_constant *out);

#ifdef __cplusplus
}
#endif
#endif
