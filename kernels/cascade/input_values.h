/* cascade inputs - finds the role of each tensor, and computes the inputs. The CPU and the GPU compute the same values.
 *
 * Attention outputs v are uniform on [-2, 2), except in row 10 below. Noise is uniform on [-1, 1). For each token and
 * head, one state is "chosen": the first state, the last state or one between them. The log-sum-exps s (in base 2)
 * depend on (token + head) % 16:
 *
 *   0, 7    all states: 10 * noise.
 *   1, 2    the chosen state is 50 above the others; the output is its v.
 *   3, 4    the chosen state is empty: -infinity, weight 0.
 *   5       all states: 3 + noise / 16, so that all weights are nearly equal.
 *   6       all states: 200 + 4 * noise; powers of two overflow unless the maximum is subtracted first.
 *   8       the chosen state is -40960, and each other state is 512 * j below it, with a random j from 1 to 8; powers
 *           of two underflow, even if a reference subtracts max(-10000, the largest s).
 *   9       all states: 24 * noise; some weights are below the precision of float32.
 *   10      all states except the chosen one are empty. v is uniform on [-2^18, 2^18) ([-2^15, 2^15) if v is float16):
 *           the output is the chosen state's v, which is large.
 *   11      all states: 4, so that all weights are equal.
 *   12      the chosen state is 8 above the others, whose weights are small.
 *   13      the chosen state is 400 above the others.
 *   14      every second state is empty, and the chosen state is 2 above the rest.
 *   15      the chosen state is 30 below the others.
 *
 * The second set of values uses (token + head + 8) % 16. The two sets together thus use both halves of the table even
 * if there are few tokens. If the mask of a token is false, v and s of its second state are not read. This v and this s
 * are NaN if the index of the token is odd and above 16. No token has only empty states, because implementations return
 * different results for such a token (v = 0 and s = -infinity, or NaN). */
#ifndef REFTEST_KERNELS_CASCADE_INPUT_VALUES_H
#define REFTEST_KERNELS_CASCADE_INPUT_VALUES_H

#include <stdint.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The variants that op.match returns: two states in separate tensors, or any number of states in one tensor. */
enum { CASCADE_TWO, CASCADE_MANY };

/* The index of each input and output by its role; -1 if the problem has no such tensor. */
struct cascade_roles {
	int v[2], s[2]; /* CASCADE_MANY uses only v[0] and s[0] */
	int mask;       /* [tokens]; if the mask of a token is false, the output is the token's first state */
	int v_out, s_out;
};

/* Finds the roles by rank and dtype. Of two tensors with the same rank, the first belongs to the first state. op.match
 * must have accepted the problem. Host only. */
static inline struct cascade_roles cascade_roles_of(const struct op_problem *problem)
{
	struct cascade_roles roles = {{-1, -1}, {-1, -1}, -1, -1, -1};
	int widest = 0;

	for (int i = 0; i < problem->input_count; i++)
		widest = problem->inputs[i].rank > widest ? problem->inputs[i].rank : widest;
	for (int i = 0; i < problem->input_count; i++) {
		int rank = problem->inputs[i].rank;

		if (rank == widest)
			roles.v[roles.v[0] >= 0] = i;
		else if (rank == widest - 1)
			roles.s[roles.s[0] >= 0] = i;
		else
			roles.mask = i;
	}
	for (int i = 0; i < problem->output_count; i++)
		*(problem->outputs[i].rank == 3 ? &roles.v_out : &roles.s_out) = i;
	return roles;
}

struct cascade_extent {
	int64_t tokens, states, heads, width;
};

static inline struct cascade_extent cascade_extent_of(const struct op_case *c)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	const struct op_arg *v = &c->problem->inputs[roles.v[0]];
	int many = c->variant == CASCADE_MANY;
	struct cascade_extent e = {c->axis[v->axis[0]], many ? c->axis[v->axis[1]] : 2, c->axis[v->axis[1 + many]],
	                           c->axis[v->axis[2 + many]]};

	return e;
}

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct cascade_fill {
	uint64_t key;
	int is_s;
	int64_t states, heads, width;
	int loud;     /* v is multiplied by 2^loud if all states except one are empty (row 10 of the table) */
	int64_t turn; /* the row of the table at the head of this file that applies to token 0, head 0 */
	int state; /* the number of the state that the tensor contains; -1: the tensor contains all states */
	int masked; /* are elements NaN where the mask is false? */
	int second; /* is this the second set of values? */
	uint64_t mask_key;
};

/* Returns the parameters of v or s. Host only. */
static inline struct cascade_fill cascade_fill_of(const struct op_case *c, int input)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	struct cascade_fill f = {input_key(c, input), input == roles.s[0] || input == roles.s[1], e.states, e.heads,
	                         e.width > 0 ? e.width : 1, c->problem->inputs[input].dtype == DTYPE_FLOAT16 ? 14 : 17,
	                         c->contents == CONTENTS_SECOND ? 8 : 0,
	                         c->variant == CASCADE_MANY ? -1 : input == roles.s[1], 0, 0, 0};

	f.masked = roles.mask >= 0 && (input == roles.v[1] || input == roles.s[1]) && (c->given >> roles.mask & 1) == 0;
	f.second = c->contents == CONTENTS_SECOND;
	f.mask_key = roles.mask >= 0 ? input_key(c, roles.mask) : 0;
	return f;
}

enum { CASCADE_LONE = 10 }; /* the row of the table at the head of this file in which all states except one are empty */

/* Returns the log-sum-exp s of a state, from noise and from row `kind` of the table at the head of this file. */
HOST_DEVICE static inline float cascade_s(int64_t kind, int chosen, int64_t state, int64_t states, float noise)
{
	float nothing = float_from_bits(0xff800000u); /* -infinity */

	switch (kind) {
	case 1:
	case 2:
		return chosen ? 50 + noise : 10 * noise;
	case 3:
	case 4:
		return chosen && states > 1 ? nothing : 10 * noise;
	case 5:
		return 3 + noise / 16;
	case 6:
		return 200 + 4 * noise;
	case 8:
		return chosen ? -40960 : -41472 - 512 * (float)((int)(4 * noise + 4));
	case 9:
		return 24 * noise;
	case CASCADE_LONE:
		return chosen ? 10 * noise : nothing;
	case 11:
		return 4;
	case 12:
		return chosen ? 8 + noise : noise;
	case 13:
		return chosen ? 200 + 4 * noise : -200 + 4 * noise;
	case 14:
		return chosen ? 7 + noise : state % 2 == 0 ? 5 + noise : nothing;
	case 15:
		return chosen ? -20 + noise : 10 + noise;
	default:
		return 10 * noise;
	}
}

/* Returns the mask of a token: 1 if the token's two states are merged. The states of token 0 are merged only in the
 * first set of values. Of the other tokens, three in four have a mask of 1. */
HOST_DEVICE static inline int cascade_mask(enum op_contents contents, int64_t token, uint32_t random)
{
	return token == 0 ? contents == CONTENTS_FIRST : random % 4 != 0;
}

/* Computes element `index` of v or s from its random bits. The element must be one that the operation reads. */
HOST_DEVICE static inline float cascade_read(const struct cascade_fill *f, int64_t index, uint32_t random)
{
	float noise = uniform_signed(random, 20);
	int64_t at = f->is_s ? index : index / f->width;
	int64_t head = at % f->heads, state = f->state >= 0 ? f->state : at / f->heads % f->states;
	int64_t token = at / f->heads / (f->state >= 0 ? 1 : f->states), turn = token + head + f->turn;

	if (!f->is_s)
		return 2 * noise * (turn % 16 == CASCADE_LONE ? float_power(f->loud) : 1);
	int64_t last = f->states - 1, choices[4] = {last, 0, last / 2, token % f->states};

	return cascade_s(turn % 16, state == choices[(turn % 2 + turn / 16 * 2) % 4], state, f->states, noise);
}

enum { CASCADE_HIDDEN_FROM = 16 };

/* Returns 1 if all elements of a token in this input are NaN, because the token's second state is not read. The first
 * 16 tokens have no NaN, so that the diagnosis of a small case can recognise a reference that uses the mask wrongly. */
HOST_DEVICE static inline int cascade_hidden(const struct cascade_fill *f, int64_t token)
{
	return f->masked && token >= CASCADE_HIDDEN_FROM && token % 2 == 1 &&
	       !cascade_mask(f->second ? CONTENTS_SECOND : CONTENTS_FIRST, token, philox_bits(f->mask_key, token));
}

/* Computes element `index` of v or s from its random bits. The caller converts the element to the input's dtype with
 * dtype_store_float. */
HOST_DEVICE static inline float cascade_element(const struct cascade_fill *f, int64_t index, uint32_t random)
{
	if (f->masked && cascade_hidden(f, index / f->heads / (f->is_s ? 1 : f->width)))
		return float_from_bits(0x7fc00000u);
	return cascade_read(f, index, random);
}

#endif
