#include "kernels/gdn/roles.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "kernels/fit.h"

static const struct gdn_roles no_roles = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static int *scalar_place(struct gdn_roles *roles, const struct op_arg *input)
{
	if (fit_holds(input->name, "l2norm"))
		return &roles->l2norm;
	if (fit_holds(input->name, "disable_state_update"))
		return &roles->frozen;
	return fit_holds(input->name, "scale") && dtype_is_float(input->dtype) ? &roles->scale : NULL;
}

static int *vector_place(struct gdn_roles *roles, const struct op_arg *input)
{
	if (fit_is_index(input))
		return fit_holds(input->name, "indices") ? &roles->indices
		       : fit_holds(input->name, "seqlens") || fit_holds(input->name, "indptr") ||
			       fit_holds(input->name, "offsets")
			   ? &roles->cu_seqlens
			   : NULL;
	return fit_holds(input->name, "log") ? &roles->a_log : fit_holds(input->name, "bias") ? &roles->dt_bias : NULL;
}

/* The place of an input, by its rank (`rank` is that of the output) and, where several have the same, by its name. */
static int *place_of(struct gdn_roles *roles, const struct op_arg *input, int rank)
{
	const char first = (char)tolower((unsigned char)input->name[0]);

	if (input->rank == OP_SCALAR)
		return scalar_place(roles, input);
	if (input->rank == 1)
		return vector_place(roles, input);
	if (!fit_is_float(input))
		return NULL;
	if (fit_holds(input->name, "state"))
		return input->rank == 5 ? &roles->buffer : &roles->state;
	if (input->rank == rank)
		return first == 'q' ? &roles->q : first == 'k' ? &roles->k : first == 'v' ? &roles->v : NULL;
	/* By the whole name: an "alpha" or a "beta" went through its gate already. */
	return strcmp(input->name, "a") == 0 ? &roles->a : strcmp(input->name, "b") == 0 ? &roles->b : NULL;
}

static int find_outputs(const struct op_problem *problem, struct gdn_roles *roles, struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		int *place = fit_holds(problem->outputs[i].name, "state") ? &roles->new_state : &roles->output;

		if (*place >= 0 || !fit_is_float(&problem->outputs[i]))
			return fit_refuse(
			    "gdn", problem, &problem->outputs[i],
			    "one output of tokens and one of states (with \"state\" in its name), of floats", why);
		*place = i;
	}
	if (roles->output < 0)
		return err_set(why, "gdn: no output has a value for each token and head");
	if (problem->outputs[roles->output].rank != 3 && problem->outputs[roles->output].rank != 4)
		return fit_refuse("gdn", problem, &problem->outputs[roles->output],
				  "[batch, tokens, heads, dim], or [total tokens, heads, dim]", why);
	return 0;
}

static bool may_be_absent(const struct gdn_roles *roles, int input)
{
	return input == roles->state || input == roles->buffer || input == roles->indices || input == roles->scale ||
	       input == roles->l2norm || input == roles->frozen;
}

static int find_inputs(const struct op_problem *problem, struct gdn_roles *roles, struct err *why)
{
	int rank = problem->outputs[roles->output].rank;

	for (int i = 0; i < problem->input_count; i++) {
		int *place = place_of(roles, &problem->inputs[i], rank);

		if (place == NULL || *place >= 0)
			return fit_refuse(
			    "gdn", problem, &problem->inputs[i],
			    "one each of q, k, v, a, b of floats for each token, A_log and dt_bias of floats for each"
			    " head, a state, indices, cu_seqlens, a buffer of intermediate states, and the scalars"
			    " scale, use_qk_l2norm and disable_state_update",
			    why);
		*place = i;
		if (problem->inputs[i].optional && !may_be_absent(roles, i))
			return fit_refuse("gdn", problem, &problem->inputs[i], "it not to be optional", why);
	}
	if (roles->q < 0 || roles->k < 0 || roles->v < 0 || roles->a < 0 || roles->b < 0 || roles->a_log < 0 ||
	    roles->dt_bias < 0)
		return err_set(why, "gdn: expected q, k, v, a, b, A_log and dt_bias among the inputs");
	if ((rank == 3) != (roles->cu_seqlens >= 0))
		return err_set(why, rank == 3
					? "gdn: tokens [total, heads, dim] need cu_seqlens to tell their sequences"
					: "gdn: tokens [batch, tokens, heads, dim] have no use for cu_seqlens");
	return 0;
}

/* q, k and v against each other and the output. */
static int match_heads(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *q = &problem->inputs[roles->q], *k = &problem->inputs[roles->k];
	const struct op_arg *v = &problem->inputs[roles->v], *output = &problem->outputs[roles->output];
	int last = output->rank - 1;
	int64_t heads = fit_fixed(problem, v, last - 1);

	if (!fit_same_axes(problem, q, 0, k, 0, last - 1) || !fit_same_axes(problem, q, last, k, last, 1) ||
	    fit_fixed(problem, q, last) < 1 || fit_fixed(problem, q, last) > GDN_DIM_MOST)
		return fit_refuse("gdn", problem, k, "the axes of q but for the heads; the last one const, at most 256",
				  why);
	if (!fit_same_axes(problem, v, 0, q, 0, last - 1) || heads < 1 || fit_fixed(problem, v, last) < 1 ||
	    fit_fixed(problem, v, last) > GDN_DIM_MOST)
		return fit_refuse("gdn", problem, v,
				  "the tokens of q, const heads, and a const last axis of at most 256", why);
	for (int i = 0; i < 2; i++) {
		const struct op_arg *x = i == 0 ? q : k;
		int64_t own = fit_fixed(problem, x, last - 1);

		if (own < 1 || heads % own != 0)
			return fit_refuse("gdn", problem, x, "a const number of heads that divides that of v", why);
	}
	if (!fit_same_axes(problem, output, 0, v, 0, output->rank))
		return fit_refuse("gdn", problem, output, "the shape of v", why);
	return 0;
}

static int match_gates(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *v = &problem->inputs[roles->v];
	const int by_token[] = {roles->a, roles->b}, by_head[] = {roles->a_log, roles->dt_bias};

	for (int i = 0; i < 2; i++) {
		const struct op_arg *gate = &problem->inputs[by_token[i]], *weight = &problem->inputs[by_head[i]];

		if (gate->rank != v->rank - 1 || !fit_same_axes(problem, gate, 0, v, 0, gate->rank))
			return fit_refuse("gdn", problem, gate, "the shape of v without its last axis", why);
		if (!fit_is_float(weight) || !fit_same_axes(problem, weight, 0, v, v->rank - 2, 1))
			return fit_refuse("gdn", problem, weight, "floats, one for each head of v", why);
	}
	return 0;
}

/* 1: [.., V, K] fits and [.., K, V] does not; 2: the other way about; 3: both do; 0: none. */
static int layouts(const struct op_problem *problem, const struct gdn_roles *roles, const struct op_arg *state)
{
	const struct op_arg *v = &problem->inputs[roles->v], *q = &problem->inputs[roles->q];
	int last = v->rank - 1, at = state->rank - 1;

	if (state->rank < 4 || !fit_is_float(state) || !fit_same_axes(problem, state, at - 2, v, last - 1, 1))
		return 0;
	return (fit_same_axes(problem, state, at - 1, v, last, 1) && fit_same_axes(problem, state, at, q, last, 1)) |
	       (fit_same_axes(problem, state, at - 1, q, last, 1) && fit_same_axes(problem, state, at, v, last, 1))
		   << 1;
}

bool gdn_buffer_by_slot(const struct op_problem *problem, const struct gdn_roles *roles)
{
	return roles->state >= 0 &&
	       fit_same_axis(problem, problem->inputs[roles->buffer].axis[0], problem->inputs[roles->state].axis[0]);
}

/* A place for each token of each sequence or slot. */
static int match_buffer(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *buffer = &problem->inputs[roles->buffer], *q = &problem->inputs[roles->q];
	bool by_sequence = fit_same_axis(problem, buffer->axis[0], q->axis[0]);

	if (roles->cu_seqlens < 0 && fit_same_axis(problem, buffer->axis[1], q->axis[1]) &&
	    (by_sequence || gdn_buffer_by_slot(problem, roles)))
		return 0;
	return fit_refuse("gdn", problem, buffer,
			  "[slots, tokens, heads of v, V, K], or [batch, tokens, …], beside q [batch, tokens, …]", why);
}

/* GDN_V_LAST, 0, or -1. */
static int match_states(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *const states[] = {
	    roles->state >= 0 ? &problem->inputs[roles->state] : NULL,
	    roles->new_state >= 0 ? &problem->outputs[roles->new_state] : NULL,
	    roles->buffer >= 0 ? &problem->inputs[roles->buffer] : NULL,
	};
	bool v_last = fit_said(problem, "v_last") || fit_said(problem, "k_major") ||
		      fit_holds(problem->description, "v_last") || fit_holds(problem->description, "k_major");
	int fitting = 3;

	for (int i = 0; i < 3; i++) {
		if (states[i] == NULL)
			continue;
		fitting &= layouts(problem, roles, states[i]);
		if (fitting == 0 || (i < 2 && states[i]->rank != 4))
			return fit_refuse("gdn", problem, states[i],
					  "states [slots, heads of v, V, K] (or all of them [K, V]) of floats", why);
	}
	if (roles->buffer >= 0 && match_buffer(problem, roles, why) != 0)
		return -1;
	if (states[0] != NULL && states[1] != NULL && !fit_same_axes(problem, states[0], 0, states[1], 0, 4))
		return fit_refuse("gdn", problem, states[1], "the shape of the states that come in", why);
	return fitting == 3 ? v_last : fitting == 2;
}

static int find(const struct op_problem *problem, struct gdn_roles *roles, struct err *why)
{
	*roles = no_roles;
	if (find_outputs(problem, roles, why) != 0 || find_inputs(problem, roles, why) != 0)
		return -1;
	if (roles->indices >= 0 && roles->state < 0)
		return err_set(why, "gdn: indices without a pool of states that they lead into");
	return 0;
}

int gdn_match(const struct op_problem *problem, struct err *why)
{
	struct gdn_roles roles;
	int v_last;

	if (find(problem, &roles, why) != 0 || match_heads(problem, &roles, why) != 0 ||
	    match_gates(problem, &roles, why) != 0 || (v_last = match_states(problem, &roles, why)) < 0)
		return -1;
	return (v_last ? GDN_V_LAST : 0) | (fit_said(problem, "l2norm") ? GDN_L2NORM : 0);
}

struct gdn_roles gdn_roles_of(const struct op_problem *problem)
{
	struct gdn_roles roles;

	find(problem, &roles, NULL);
	return roles;
}

struct gdn_extent gdn_extent_of(const struct op_case *c, const struct gdn_roles *roles)
{
	const struct op_problem *problem = c->problem;
	const struct op_arg *q = &problem->inputs[roles->q], *v = &problem->inputs[roles->v];
	const struct op_arg *k = &problem->inputs[roles->k];
	const struct op_arg *state = roles->state >= 0	     ? &problem->inputs[roles->state]
				     : roles->new_state >= 0 ? &problem->outputs[roles->new_state]
							     : NULL;
	int last = q->rank - 1;
	struct gdn_extent e = {
	    .q_heads = c->axis[q->axis[last - 1]],
	    .k_heads = c->axis[k->axis[last - 1]],
	    .v_heads = c->axis[v->axis[last - 1]],
	    .k_dim = c->axis[q->axis[last]],
	    .v_dim = c->axis[v->axis[last]],
	};

	if (roles->cu_seqlens >= 0) {
		int64_t offsets = c->axis[problem->inputs[roles->cu_seqlens].axis[0]];

		e.sequences = offsets > 0 ? offsets - 1 : 0;
		e.total = c->axis[q->axis[0]];
	} else {
		e.sequences = c->axis[q->axis[0]];
		e.tokens = c->axis[q->axis[1]];
		e.total = e.sequences * e.tokens;
	}
	e.slots = state != NULL ? c->axis[state->axis[0]] : e.sequences;
	return e;
}

double gdn_scale(const struct op_case *c, const struct gdn_roles *roles)
{
	double given = roles->scale >= 0 ? c->scalar[roles->scale] : 0;

	return given != 0 ? given : 1 / sqrt((double)gdn_extent_of(c, roles).k_dim);
}

bool gdn_l2norm(const struct op_case *c, const struct gdn_roles *roles)
{
	return roles->l2norm >= 0 ? c->scalar[roles->l2norm] != 0 : (c->variant & GDN_L2NORM) != 0;
}

/* Is it a multi-token pass over a pool, of which nothing in the schema says whether it updates? */
static bool may_be_frozen(const struct op_problem *problem, const struct gdn_roles *roles)
{
	const struct op_arg *q = &problem->inputs[roles->q];

	return roles->indices >= 0 && roles->new_state >= 0 && roles->cu_seqlens < 0 && roles->frozen < 0 &&
	       fit_fixed(problem, q, 1) != 1;
}

bool gdn_updates(const struct op_case *c, const struct gdn_roles *roles)
{
	if (roles->frozen >= 0)
		return c->scalar[roles->frozen] == 0;
	return !may_be_frozen(c->problem, roles) || c->constant_count == 0 || c->constants[0].value != 0;
}

int gdn_check_axes(const struct op_case *c, const struct gdn_roles *roles, const struct gdn_extent *e, struct err *err)
{
	const struct op_arg *indices = roles->indices >= 0 ? &c->problem->inputs[roles->indices] : NULL;
	bool brought = indices != NULL && (c->given >> roles->indices & 1) != 0;

	if (e->slots < e->sequences && !brought)
		return err_set(err, "gdn: there are %lld states for %lld sequences", (long long)e->slots,
			       (long long)e->sequences);
	if (indices != NULL && c->axis[indices->axis[0]] < e->sequences)
		return err_set(err, "gdn: %s has %lld slots for %lld sequences", indices->name,
			       (long long)c->axis[indices->axis[0]], (long long)e->sequences);
	if ((e->total < e->sequences && c->edge == 0) || (e->sequences == 0 && e->total > 0))
		return err_set(err, "gdn: %lld tokens cannot be dealt to %lld sequences, each with one at the least",
			       (long long)e->total, (long long)e->sequences);
	return 0;
}

/* What a text says of it: 1 it updates, 0 it does not, -1 nothing. */
static int updates_in(const char *text)
{
	return fit_holds(text, "disable_state_update=true")    ? 0
	       : fit_holds(text, "disable_state_update=false") ? 1
							       : -1;
}

int gdn_constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	int said = updates_in(problem->description);
	const char *source = "description";

	(void)variant;
	if (!may_be_frozen(problem, &roles))
		return 0;
	for (int i = 0; i < problem->tag_count; i++)
		if (said < 0 && (said = updates_in(problem->tags[i])) >= 0)
			source = "tag";
	memset(out, 0, sizeof *out);
	strcpy(out->name, "updates_state");
	strcpy(out->source, said < 0 ? "unattested" : source);
	out->value = said < 0 ? (double)NAN : said;
	return 1;
}
