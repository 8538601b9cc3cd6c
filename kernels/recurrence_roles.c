/* Which tensor plays which part in a recurrence (kernels/recurrence.h): by name, rank, dtype; then held to shapes. */
#include "kernels/recurrence.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "kernels/fit.h"

static const struct recurrence_roles no_roles = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static bool is(const struct op_arg *arg, const char *a, const char *b)
{
	return strcmp(arg->name, a) == 0 || strcmp(arg->name, b) == 0;
}

static int *scalar_place(struct recurrence_roles *roles, const struct op_arg *input)
{
	if (fit_holds(input->name, "l2norm"))
		return &roles->l2norm;
	if (fit_holds(input->name, "beta_sigmoid"))
		return &roles->sigmoid;
	if (fit_holds(input->name, "neg_eigval"))
		return &roles->doubled;
	if (!dtype_is_float(input->dtype))
		return NULL;
	return fit_holds(input->name, "lower_bound") ? &roles->lower_bound
	       : fit_holds(input->name, "scale")     ? &roles->scale
						     : NULL;
}

/* The place of an input, by its name, and by its rank where that is told by the output's. */
static int *place_of(struct recurrence_roles *roles, const struct op_arg *input, int rank)
{
	const char first = (char)tolower((unsigned char)input->name[0]);

	if (input->rank == OP_SCALAR)
		return scalar_place(roles, input);
	if (!fit_is_float(input)) {
		bool offsets = fit_holds(input->name, "seqlens") || fit_holds(input->name, "indptr") ||
			       fit_holds(input->name, "offsets");

		return offsets && fit_is_index(input) ? &roles->cu_seqlens : NULL;
	}
	if (fit_holds(input->name, "state") || is(input, "h0", "h0"))
		return &roles->state;
	if (fit_holds(input->name, "a_log"))
		return &roles->a_log;
	if (fit_holds(input->name, "bias"))
		return &roles->dt_bias;
	if (fit_holds(input->name, "gamma"))
		return &roles->gamma;
	/* By whole names: what is called alpha or decay may be no logarithm. */
	if (is(input, "g", "gk"))
		return &roles->gate;
	if (is(input, "beta", "b"))
		return &roles->beta;
	if (input->rank != rank)
		return NULL;
	return first == 'q' ? &roles->q : first == 'k' ? &roles->k : first == 'v' ? &roles->v : NULL;
}

static int find_outputs(const char *family, const struct op_problem *problem, struct recurrence_roles *roles,
                        struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		const struct op_arg *output = &problem->outputs[i];
		bool state = fit_holds(output->name, "state") || is(output, "ht", "ht");
		int *place = state ? &roles->new_state : &roles->output;

		if (*place >= 0 || !fit_is_float(output))
			return fit_refuse(
			    family, problem, output,
			    "one output of tokens and one of states (with \"state\" in its name), of floats", why);
		*place = i;
	}
	if (roles->output < 0)
		return err_set(why, "%s: no output has a value for each token and head", family);
	if (problem->outputs[roles->output].rank != 3 && problem->outputs[roles->output].rank != 4)
		return fit_refuse(family, problem, &problem->outputs[roles->output],
				  "[batch, tokens, heads, dim], or [total tokens, heads, dim]", why);
	return 0;
}

static int find(const char *family, const struct op_problem *problem, struct recurrence_roles *roles, struct err *why)
{
	*roles = no_roles;
	if (find_outputs(family, problem, roles, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int *place = place_of(roles, input, problem->outputs[roles->output].rank);

		if (place == NULL || *place >= 0)
			return fit_refuse(
			    family, problem, input,
			    "one each of q, k, v, the gate g or gk (or g_gamma; A_log and dt_bias), beta, a"
			    " state, cu_seqlens, and the scalars scale, use_qk_l2norm_in_kernel,"
			    " use_beta_sigmoid_in_kernel, allow_neg_eigval and lower_bound",
			    why);
		*place = i;
		if (input->optional && place != &roles->state && input->rank != OP_SCALAR)
			return fit_refuse(family, problem, input, "it not to be optional", why);
	}
	if (roles->q < 0 || roles->k < 0 || roles->v < 0)
		return err_set(why, "%s: expected q, k and v among the inputs", family);
	return 0;
}

struct recurrence_roles recurrence_roles_of(const struct op_problem *problem)
{
	struct recurrence_roles roles;

	find("", problem, &roles, NULL);
	return roles;
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

/* A problem while it is matched. */
struct matching {
	const char *family;
	const struct op_problem *problem;
	struct recurrence_roles roles;
	const struct op_arg *q, *k, *v, *output;
	int last; /* of q's axes: K; those before `last - 1` are the tokens' */
	struct err *why;
};

static int match_heads(const struct matching *m)
{
	const struct op_problem *problem = m->problem;
	int64_t k_dim = fit_fixed(problem, m->q, m->last), v_dim = fit_fixed(problem, m->v, m->last);
	int64_t heads = fit_fixed(problem, m->v, m->last - 1), shared = fit_fixed(problem, m->q, m->last - 1);

	if (!fit_same_axes(problem, m->q, 0, m->k, 0, m->last + 1) || k_dim < 1 || k_dim > RECURRENCE_DIM_MOST)
		return fit_refuse(m->family, problem, m->k, "the axes of q; the last one const, at most 512", m->why);
	if (!fit_same_axes(problem, m->v, 0, m->q, 0, m->last - 1) || heads < 1 || v_dim < 1 ||
	    v_dim > RECURRENCE_DIM_MOST)
		return fit_refuse(m->family, problem, m->v,
				  "the tokens of q, const heads, and a const last axis of at most 512", m->why);
	if (shared < 1 || heads % shared != 0)
		return fit_refuse(m->family, problem, m->q, "a const number of heads that divides that of v", m->why);
	if (!fit_same_axes(problem, m->output, 0, m->v, 0, m->output->rank))
		return fit_refuse(m->family, problem, m->output, "the shape of v", m->why);
	return 0;
}

static int match_tokens(const struct matching *m)
{
	bool packed = m->roles.cu_seqlens >= 0;

	if (m->output->rank == 3 && !packed)
		return err_set(m->why, "%s: tokens [total, heads, dim] need cu_seqlens to tell their sequences",
		               m->family);
	if (m->output->rank == 4 && packed && fit_fixed(m->problem, m->q, 0) != 1)
		return fit_refuse(m->family, m->problem, m->q,
				  "with cu_seqlens, [total, heads, dim] or a batch axis of 1", m->why);
	return 0;
}

/* One of the inputs that belong to gates, in a family that has gates like `does`. */
static int match_gate(const struct matching *m, int does)
{
	const struct op_problem *problem = m->problem;
	const struct recurrence_roles *roles = &m->roles;
	bool by_key = (does & RECURRENCE_KEY_GATE) != 0;

	if (roles->gate < 0)
		return roles->a_log < 0 && roles->dt_bias < 0 && roles->lower_bound < 0
		           ? 0
		           : err_set(m->why, "%s: A_log, dt_bias and lower_bound are nothing without a gate g",
		                     m->family);
	const struct op_arg *gate = &problem->inputs[roles->gate];

	if (gate->rank != m->last + by_key || !fit_same_axes(problem, gate, 0, m->v, 0, m->last) ||
	    (by_key && !fit_same_axes(problem, gate, m->last, m->q, m->last, 1)))
		return fit_refuse(m->family, problem, gate,
				  by_key ? "the tokens and heads of v, then the last axis of q"
					 : "the shape of v without its last axis",
				  m->why);
	if (roles->gamma >= 0)
		return err_set(m->why, "%s: there are two gates, '%s' and '%s'", m->family, gate->name,
		               problem->inputs[roles->gamma].name);
	if (roles->dt_bias >= 0 && roles->a_log < 0 && roles->lower_bound < 0)
		return err_set(m->why, "%s: dt_bias without A_log or lower_bound: which gate is it of?", m->family);
	return 0;
}

static int match_gate_weights(const struct matching *m, int does)
{
	const struct op_problem *problem = m->problem;
	bool by_key = (does & RECURRENCE_KEY_GATE) != 0;
	const int by_head[] = {m->roles.gamma, m->roles.a_log};
	int64_t heads = fit_fixed(problem, m->v, m->last - 1);

	for (int i = 0; i < 2; i++)
		if (by_head[i] >= 0 && (problem->inputs[by_head[i]].rank != 1 ||
					!fit_same_axes(problem, &problem->inputs[by_head[i]], 0, m->v, m->last - 1, 1)))
			return fit_refuse(m->family, problem, &problem->inputs[by_head[i]], "one for each head of v",
					  m->why);
	if (m->roles.dt_bias < 0)
		return 0;
	const struct op_arg *bias = &problem->inputs[m->roles.dt_bias];
	bool flat =
	    bias->rank == 1 && fit_fixed(problem, bias, 0) == heads * (by_key ? fit_fixed(problem, m->q, m->last) : 1);
	bool square = by_key && bias->rank == 2 && fit_same_axes(problem, bias, 0, m->v, m->last - 1, 1) &&
		      fit_same_axes(problem, bias, 1, m->q, m->last, 1);

	if (!flat && !square)
		return fit_refuse(m->family, problem, bias,
				  by_key ? "[heads of v, last axis of q], or that flat" : "one for each head of v",
				  m->why);
	return 0;
}

/* Gates and strengths are there if the family has them, and only then. */
static int match_parts(const struct matching *m, int does)
{
	const struct recurrence_roles *roles = &m->roles;
	const struct op_arg *beta = roles->beta >= 0 ? &m->problem->inputs[roles->beta] : NULL;
	bool delta = (does & RECURRENCE_DELTA) != 0, gated = (does & ~RECURRENCE_DELTA) != 0;

	if (delta != (roles->beta >= 0))
		return err_set(m->why, delta ? "%s: expected beta among the inputs" : "%s: it has no use for a beta",
		               m->family);
	if (delta && (beta->rank != m->last || !fit_same_axes(m->problem, beta, 0, m->v, 0, m->last)))
		return fit_refuse(m->family, m->problem, beta, "the shape of v without its last axis", m->why);
	if (!delta && (roles->sigmoid >= 0 || roles->doubled >= 0))
		return err_set(m->why, "%s: a switch for beta, and no beta", m->family);
	if (!gated && (roles->gate >= 0 || roles->gamma >= 0))
		return err_set(m->why, "%s: it has no use for a gate", m->family);
	if (gated && roles->gate < 0 && (roles->gamma < 0 || (does & RECURRENCE_KEY_GATE) != 0))
		return err_set(m->why, "%s: expected a gate g among the inputs", m->family);
	return match_gate(m, does) != 0 || match_gate_weights(m, does) != 0 ? -1 : 0;
}

/* 1: [.., K, V] fits and [.., V, K] does not; 2: the other way about; 3: both do; 0: none. */
static int layouts(const struct matching *m, const struct op_arg *state)
{
	const struct op_problem *problem = m->problem;

	if (state->rank != 4 || !fit_is_float(state) || !fit_same_axes(problem, state, 1, m->v, m->last - 1, 1))
		return 0;
	return (fit_same_axes(problem, state, 2, m->q, m->last, 1) &&
		fit_same_axes(problem, state, 3, m->v, m->last, 1)) |
	       (fit_same_axes(problem, state, 2, m->v, m->last, 1) &&
		fit_same_axes(problem, state, 3, m->q, m->last, 1))
		   << 1;
}

/* V_FIRST, 0, or -1. */
static int match_states(const struct matching *m)
{
	const struct op_problem *problem = m->problem;
	const struct op_arg *const states[] = {
	    m->roles.state >= 0 ? &problem->inputs[m->roles.state] : NULL,
	    m->roles.new_state >= 0 ? &problem->outputs[m->roles.new_state] : NULL,
	};
	bool first = fit_said(problem, "v_first") || fit_said(problem, "k_last") ||
		     fit_holds(problem->description, "v_first") || fit_holds(problem->description, "k_last");
	int fitting = 3;

	for (int i = 0; i < 2; i++) {
		if (states[i] == NULL)
			continue;
		fitting &= layouts(m, states[i]);
		if (fitting == 0)
			return fit_refuse(m->family, problem, states[i],
					  "states [sequences, heads of v, K, V] (or all of them [V, K]) of floats",
					  m->why);
		if (m->roles.cu_seqlens < 0 && !fit_same_axes(problem, states[i], 0, m->q, 0, 1))
			return fit_refuse(m->family, problem, states[i], "a state for each sequence of the batch",
					  m->why);
	}
	if (states[0] != NULL && states[1] != NULL && !fit_same_axes(problem, states[0], 0, states[1], 0, 4))
		return fit_refuse(m->family, problem, states[1], "the shape of the states that come in", m->why);
	return (fitting == 3 ? first : fitting == 2) ? RECURRENCE_V_FIRST : 0;
}

static int said_flags(const struct matching *m, int does)
{
	const struct op_problem *problem = m->problem;
	bool delta = (does & RECURRENCE_DELTA) != 0;
	bool raw =
	    delta && (strcmp(problem->inputs[m->roles.beta].name, "b") == 0 || fit_said(problem, "beta_sigmoid"));

	return (fit_said(problem, "l2norm") ? RECURRENCE_L2NORM : 0) | (raw ? RECURRENCE_SIGMOID : 0) |
	       (delta && fit_said(problem, "neg_eigval") ? RECURRENCE_DOUBLED : 0);
}

int recurrence_match(const char *name, int does, const struct op_problem *problem, struct err *why)
{
	struct matching m = {.family = name, .problem = problem, .why = why};
	int v_first;

	if (find(name, problem, &m.roles, why) != 0)
		return -1;
	m.q = &problem->inputs[m.roles.q];
	m.k = &problem->inputs[m.roles.k];
	m.v = &problem->inputs[m.roles.v];
	m.output = &problem->outputs[m.roles.output];
	m.last = m.output->rank - 1;
	if (match_heads(&m) != 0 || match_tokens(&m) != 0 || match_parts(&m, does) != 0 ||
	    (v_first = match_states(&m)) < 0)
		return -1;
	return does | v_first | said_flags(&m, does);
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

struct recurrence_extent recurrence_extent_of(const struct op_case *c, const struct recurrence_roles *roles)
{
	const struct op_problem *problem = c->problem;
	const struct op_arg *q = &problem->inputs[roles->q], *v = &problem->inputs[roles->v];
	int last = q->rank - 1;
	struct recurrence_extent e = {
	    .q_heads = c->axis[q->axis[last - 1]],
	    .v_heads = c->axis[v->axis[last - 1]],
	    .k_dim = c->axis[q->axis[last]],
	    .v_dim = c->axis[v->axis[last]],
	};

	if (roles->cu_seqlens >= 0) {
		int64_t offsets = c->axis[problem->inputs[roles->cu_seqlens].axis[0]];

		e.sequences = offsets > 0 ? offsets - 1 : 0;
		e.total = c->axis[q->axis[last - 2]];
	} else {
		e.sequences = c->axis[q->axis[0]];
		e.tokens = c->axis[q->axis[1]];
		e.total = e.sequences * e.tokens;
	}
	return e;
}

static bool switched(const struct op_case *c, int scalar, int flag)
{
	return scalar >= 0 ? c->scalar[scalar] != 0 : (c->variant & flag) != 0;
}

/* A bound of None bounds nothing. */
enum recurrence_gate recurrence_gate_of(const struct op_case *c, const struct recurrence_roles *roles)
{
	bool bounded = roles->lower_bound >= 0 && (c->absent >> roles->lower_bound & 1) == 0;

	if (roles->gate < 0)
		return roles->gamma < 0 ? RECURRENCE_GATE_NONE : RECURRENCE_GATE_LOG;
	return bounded             ? RECURRENCE_GATE_BOUNDED
	       : roles->a_log >= 0 ? RECURRENCE_GATE_SOFTPLUS
	                           : RECURRENCE_GATE_LOG;
}

struct recurrence_modes recurrence_modes_of(const struct op_case *c, const struct recurrence_roles *roles)
{
	double scale = roles->scale >= 0 ? c->scalar[roles->scale] : 0;

	return (struct recurrence_modes){
	    .gate = recurrence_gate_of(c, roles),
	    .l2norm = switched(c, roles->l2norm, RECURRENCE_L2NORM),
	    .sigmoid = switched(c, roles->sigmoid, RECURRENCE_SIGMOID),
	    .doubled = switched(c, roles->doubled, RECURRENCE_DOUBLED),
	    .v_first = (c->variant & RECURRENCE_V_FIRST) != 0,
	    .scale = scale != 0 ? scale : 1 / sqrt((double)recurrence_extent_of(c, roles).k_dim),
	    .lower_bound = roles->lower_bound >= 0 ? c->scalar[roles->lower_bound] : 0,
	};
}
