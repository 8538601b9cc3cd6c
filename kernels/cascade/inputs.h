/* cascade inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * Attention outputs v are uniform on [-2, 2). The logsumexps s that go with them, in base 2, by (token + head) % 16,
 * noise being uniform on [-1, 1), and one of the states chosen, the first, the last or one between:
 *
 *   0, 7    10 noise
 *   1, 2    one state 50 above the others: it alone counts
 *   3, 4    one state empty, -infinity: it counts nothing
 *   5       3 + noise / 16: states of nearly the same weight
 *   6       200 + 4 noise: powers of two overflow unless the largest is taken off first
 *   8       -200 + 4 noise: and underflow
 *   9       24 noise: from what counts to what float32 does not see
 *   10      all states but one empty
 *   11      4, all of them: a tie
 *   12      one state 8 above the others, which count a little
 *   13      one state 400 above the others
 *   14      every second state empty, one of the others 2 above
 *   15      one state 30 below the others
 *
 * In the second contents it is (token + head + 8) % 16, so that few tokens show both halves of the list. Every state being
 * empty is left out: implementations differ (0 and -infinity, or NaN). */
#ifndef REFTEST_KERNELS_CASCADE_INPUTS_H
#define REFTEST_KERNELS_CASCADE_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants: two states, each a tensor of its own; or any number, in one tensor. */
enum { CASCADE_TWO, CASCADE_MANY };

/* Indices into the problem's inputs and outputs; -1: the problem has none. */
struct cascade_roles {
	int v[2], s[2]; /* CASCADE_MANY: the first of each alone */
	int mask;       /* [tokens]: where it is false, the first state is left as it is */
	int v_out, s_out;
};

/* By rank and dtype; two of a kind in their order. Complete for what op.match takes. Host only. */
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

/* Host only. */
static inline struct cascade_extent cascade_extent_of(const struct op_case *c)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	const struct op_arg *v = &c->problem->inputs[roles.v[0]];
	int many = c->variant == CASCADE_MANY;
	struct cascade_extent e = {c->axis[v->axis[0]], many ? c->axis[v->axis[1]] : 2, c->axis[v->axis[1 + many]],
	                           c->axis[v->axis[2 + many]]};

	return e;
}

/* Everything an element depends on; plain data, given to the GPU by value. */
struct cascade_fill {
	uint64_t key;
	int is_s;
	int64_t states, heads;
	int64_t turn; /* which kind of s the first head of the first token has */
	int state; /* of a tensor that holds one alone; -1: all are in it */
};

/* Of v or s. Host only. */
static inline struct cascade_fill cascade_fill_of(const struct op_case *c, int input)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	struct cascade_fill f = {input_key(c, input), input == roles.s[0] || input == roles.s[1], e.states, e.heads,
	                         c->contents == CONTENTS_SECOND ? 8 : 0,
	                         c->variant == CASCADE_MANY ? -1 : input == roles.s[1]};

	return f;
}

/* s of a state from noise, by the kind that its head of its token has. */
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
		return -200 + 4 * noise;
	case 9:
		return 24 * noise;
	case 10:
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

/* Element `index` from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float cascade_element(const struct cascade_fill *f, int64_t index, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	if (!f->is_s)
		return 2 * noise;
	int64_t head = index % f->heads, state = f->state >= 0 ? f->state : index / f->heads % f->states;
	int64_t token = index / f->heads / (f->state >= 0 ? 1 : f->states), turn = token + head + f->turn;
	int64_t last = f->states - 1, choices[4] = {last, 0, last / 2, token % f->states};

	return cascade_s(turn % 16, state == choices[(turn % 2 + turn / 16 * 2) % 4], state, f->states, noise);
}

/* Is the token merged? The first is in the first contents alone; of the others, three in four. */
HOST_DEVICE static inline int cascade_mask(enum op_contents contents, int64_t token, uint32_t random)
{
	return token == 0 ? contents == CONTENTS_FIRST : random % 4 != 0;
}

#endif
