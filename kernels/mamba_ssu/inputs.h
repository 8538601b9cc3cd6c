/* mamba_ssu inputs - which tensor plays which part in a selective state update, and the value of every element, the
 * same on CPU and GPU.
 *
 * What the second contents (op_case.contents) hold stands after a bar where more than its seed is another:
 *   state, x   uniform on [-1, 1) | [-4, 4), the state in every slot, whether a sequence has it or not: all of them are in
 *              the output
 *   B, C       uniform on [-1, 1)
 *   dt, bias   uniform on [-2, 2), where softplus bends | bias on [-7, -2), as models have it. Of (7 sequence + 3 head +
 *              element) % 64, dt is -24 for 5 (the state stays), 96 | 48 for 21 (exp(96) is no float32, and softplus must be),
 *              for 37 such that with the bias it lies on both sides of 20, from where on softplus may be left out, and for
 *              13, 29 and 45 near 12 and -12, and 0. Without softplus, a negative step would make states grow: both uniform
 *              on [0, 1) then, and dt 12 for 21
 *   A          uniform on (-2.0625, -0.0625] | eight times that, each element by itself: kernels want one value a head,
 *              definitions declare one for each element of the state, and only so a transposed or wrongly spread A shows
 *   D, z       uniform on [-4, 4) | z on [-16, 16): the skipped x is half as large as what the state answers
 * Slots are distinct and in random order; of a batch, sequences 3, 11, 19 … are padding. */
#ifndef REFTEST_KERNELS_MAMBA_SSU_INPUTS_H
#define REFTEST_KERNELS_MAMBA_SSU_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices into the problem's inputs (output, new_state: outputs); -1: there is none. */
struct ssu_roles {
	int state;             /* [slots, heads, dim, S] floats, like all that follow but the last three */
	int x, z;              /* [batch, heads, dim]; z may be absent: no gate */
	int dt;                /* [batch, heads, dim], or [batch, heads] */
	int a;                 /* [heads, dim, S], or [heads] */
	int b, c;              /* [batch, groups, S]; heads are a multiple of groups */
	int d, dt_bias;        /* [heads, dim], or [heads]; either may be absent: 0 */
	int indices;           /* [batch] integers: slots; without them, sequence n has slot n */
	int softplus, pad;     /* Python scalars; without them, true and -1 */
	int output, new_state; /* [batch, heads, dim]; like state, may be absent */
};

struct ssu_extent {
	int64_t batch, slots, heads, dim, groups, states; /* states: S */
};

/* For problems that op.match took. Host only. */
struct ssu_roles ssu_roles_of(const struct op_problem *problem);
struct ssu_extent ssu_extent_of(const struct op_case *c, const struct ssu_roles *roles);

/* Where the truth of the states lies: that of their output or, without one, the input's own. Host only. */
static inline int ssu_states_place(const struct op_problem *problem, const struct ssu_roles *roles)
{
	return roles->new_state >= 0 ? roles->new_state : op_own_place(problem, roles->state);
}

bool ssu_softplus(const struct op_case *c, const struct ssu_roles *roles);
int64_t ssu_pad(const struct op_case *c, const struct ssu_roles *roles); /* the slot that stands for no sequence */

/* Are slots in order, as far as they are at hand? 0, or -1 with the sentence. Host only. */
int ssu_check(const struct op_case *c, const struct tensor *in, struct err *err);

enum ssu_part { SSU_PLAIN, SSU_LINEAR, SSU_DT, SSU_DT_BIAS, SSU_A, SSU_D, SSU_Z };

/* The second contents' x and states are so many times the first's. All that comes out is linear in them: so are bounds. */
enum { SSU_LARGER = 4 };

/* Everything a float element depends on; plain data, given to the GPU by value. */
struct ssu_fill {
	uint64_t key;
	int part; /* enum ssu_part */
	int softplus;
	bool second;        /* contents */
	int64_t heads, dim; /* of dt */
};

struct ssu_fill ssu_fill_of(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

HOST_DEVICE static inline float ssu_step_size(const struct ssu_fill *f, int64_t index, float value)
{
	int64_t sequence = index / f->dim / f->heads, head = index / f->dim % f->heads;
	int64_t kind = (7 * sequence + 3 * head + index % f->dim) % 64;

	if (!f->softplus)
		return kind == 21 ? 12.0f : (value + 1) * 0.5f;
	switch (kind) {
	case 5:
		return -24.0f;
	case 21:
		return f->second ? 48.0f : 96.0f;
	case 37:
		return f->second ? 24.5f : 20.0f;
	case 13:
		return 4 * value + 12;
	case 29:
		return 4 * value - 12;
	case 45:
		return 0.0f;
	default:
		return 2 * value;
	}
}

HOST_DEVICE static inline float ssu_linear(const struct ssu_fill *f, float value)
{
	return f->second ? value * SSU_LARGER : value;
}

HOST_DEVICE static inline float ssu_bias(const struct ssu_fill *f, float value)
{
	if (!f->softplus)
		return (value + 1) * 0.5f;
	return f->second ? value * 2.5f - 4.5f : value * 2;
}

/* Element `index` of the input that `f` was made for, from its random bits: to be rounded with number_store. */
HOST_DEVICE static inline float ssu_element(const struct ssu_fill *f, int64_t index, uint32_t random)
{
	float value = uniform_signed(random, 20);

	switch (f->part) {
	case SSU_LINEAR:
		return ssu_linear(f, value);
	case SSU_DT:
		return ssu_step_size(f, index, value);
	case SSU_DT_BIAS:
		return ssu_bias(f, value);
	case SSU_A:
		return -(value + 1.0625f) * (f->second ? 8 : 1); /* exact: 22 bits */
	case SSU_D:
		return value * 4;
	case SSU_Z:
		return value * (f->second ? 16 : 4);
	default:
		return value;
	}
}

#endif
