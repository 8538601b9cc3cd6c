/* roles - finds the role of each tensor and Python scalar of a selective state update, and the sizes of a case. Host
 * only. */
#ifndef REFTEST_KERNELS_MAMBA_SSU_ROLES_H
#define REFTEST_KERNELS_MAMBA_SSU_ROLES_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bits of the variant that op.match returns. */
enum { SSU_IN_PLACE = 1 }; /* new states are not an output, so a reference must write them to the input state */

/* The index of each input by its role; output and new_state are indices of outputs. The index is -1 if the problem has
 * no such tensor. Tensors are floats unless their comment says otherwise. */
struct ssu_roles {
	int state;       /* [slots, heads, dim, S], where S is the number of states of an element */
	int x, z;        /* [batch, heads, dim]; if z is absent, y is not multiplied by a gate */
	int dt;          /* [batch, heads, dim], or [batch, heads] */
	int a;           /* [heads, dim, S], or [heads] */
	int b, c;        /* [batch, groups, S]; heads is a multiple of groups */
	int d, dt_bias;  /* [heads, dim], or [heads]; an absent D or dt_bias is 0 */
	int indices;     /* [batch] integers: the slot of each sequence; if absent, sequence n has slot n */
	int softplus;    /* the Python scalar dt_softplus; softplus is applied if the problem has no such scalar */
	int pad;         /* the Python scalar pad_slot_id; the value is -1 if the problem has no such scalar */
	int output;      /* [batch, heads, dim] */
	int new_state;   /* has the shape of `state`; may be absent */
};

struct ssu_extent {
	int64_t batch, slots, heads, dim, groups, states; /* states: the axis S */
};

/* op.match must have accepted the problem that is passed to ssu_roles_of or ssu_extent_of. */
struct ssu_roles ssu_roles_of(const struct op_problem *problem);
struct ssu_extent ssu_extent_of(const struct op_case *c, const struct ssu_roles *roles);

/* op.oracle writes the ground truth of the states to one of the tensors in its array `out`. Returns the index of this
 * tensor: the index of the state output or, if there is none, op_own_place of the state input. */
static inline int ssu_states_place(const struct op_problem *problem, const struct ssu_roles *roles)
{
	return roles->new_state >= 0 ? roles->new_state : op_own_place(problem, roles->state);
}

bool ssu_softplus(const struct op_case *c, const struct ssu_roles *roles);
int64_t ssu_pad(const struct op_case *c, const struct ssu_roles *roles); /* returns the slot number that marks padding
									  * sequences */

extern const struct op_role ssu_role_names[];
void ssu_bind(const struct op_problem *problem, int variant, void *roles);

/* Implements op.match: returns the variant, or -1 with a message in `why`. */
int ssu_match(const struct op_problem *problem, struct err *why);

#ifdef __cplusplus
}
#endif
#endif
