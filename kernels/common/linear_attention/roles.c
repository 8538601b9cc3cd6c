/* roles - finds the role of each tensor of a recurrence (kernels/common/linear_attention/recurrence.h) by name, rank
 * and dtype, then checks the shapes. */
#include "kernels/common/linear_attention/roles.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/shape_match.h"

static const struct recurrence_roles no_roles = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static bool is(const struct op_arg *arg, const char *a, const char *b)
{
	return strcmp(arg->name, a) == 0 || strcmp(arg->name, b) == 0;
}

static int *scalar_place(struct recurrence_roles *roles, const struct op_arg *input)
{
	if (match_contains(input->name, "l2norm"))
		return &roles->l2norm;
	if (match_contains(input->name, "beta_sigmoid"))
		return &roles->sigmoid;
	if (match_contains(input->name, "neg_eigval"))
		return &roles->doubled;
	if (!dtype_is_float(input->dtype))
		return NULL;
	return match_contains(input->name, "lower_bound") ? &roles->lower_bound
	       : match_contains(input->name, "scale")     ? &roles->scale
						     : NULL;
}

/* Returns a pointer to the member of `roles` to which an input belongs by its name. q, k and v must also have the rank
 * of the output. */
static int *place_of(struct recurrence_roles *roles, const struct op_arg *input, int rank)
{
	const char first = (char)tolower((unsigned char)input->name[0]);

	if (input->rank == OP_SCALAR)
		return scalar_place(roles, input);
	if (!match_is_float(input)) {
		bool offsets = match_contains(input->name, "seqlens") || match_contains(input->name, "indptr") ||
			       match_contains(input->name, "offsets");

		return offsets && match_is_index(input) ? &roles->cu_seqlens : NULL;
	}
	if (match_contains(input->name, "state") || is(input, "h0", "h0"))
		return &roles->state;
	if (match_contains(input->name, "a_log"))
		return &roles->a_log;
	if (match_contains(input->name, "bias"))
		return &roles->dt_bias;
	if (match_contains(input->name, "gamma"))
		return &roles->gamma;
	/* Only these names match. An input with another name, such as alpha or decay, may contain the decay itself, not
	 * its logarithm. */
	if (is(input, "g", "gk"))
		return &roles->gate;
	if (is(input, "beta", "b"))
		return &roles->beta;
	if (input->rank != rank)
		return NULL;
	return first == 'q' ? &roles->q : first == 'k' ? &roles->k : first == 'v' ? &roles->v : NULL;
}

static int find_outputs(const struct op_problem *problem, struct recurrence_roles *roles,
                        struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		const struct op_arg *output = &problem->outputs[i];
		bool state = match_contains(output->name, "state") || is(output, "ht", "ht");
		int *place = state ? &roles->new_state : &roles->output;

		if (*place >= 0 || !match_is_float(output))
			return match_refuse_unknown(problem, output,
						    "floats with a value for each token and, optionally, floats with "
						    "the final states (with \"state\" in the name)", why);
		*place = i;
	}
	if (roles->output < 0)
		return err_set(why, "no output has a value for each token and head");
	if (problem->outputs[roles->output].rank != 3 && problem->outputs[roles->output].rank != 4)
		return match_refuse(problem, &problem->outputs[roles->output],
				    "[batch, tokens, heads, dim], or [total tokens, heads, dim]", why);
	return 0;
}

static int find(const struct op_problem *problem, struct recurrence_roles *roles, struct err *why)
{
	*roles = no_roles;
	if (find_outputs(problem, roles, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int *place = place_of(roles, input, problem->outputs[roles->output].rank);

		if (place == NULL || *place >= 0)
			return match_refuse_unknown(problem, input,
						    "q, k, v, the gate g or gk (or g_gamma; A_log and dt_bias), "
						    "beta, a state, cu_seqlens, and the scalars scale, "
						    "use_qk_l2norm_in_kernel, use_beta_sigmoid_in_kernel, "
						    "allow_neg_eigval and lower_bound", why);
		*place = i;
		if (input->optional && place != &roles->state && input->rank != OP_SCALAR)
			return match_refuse(problem, input, "an input without \"optional\": true", why);
	}
	if (roles->q < 0 || roles->k < 0 || roles->v < 0)
		return err_set(why, "q, k or v is missing among the inputs");
	return 0;
}

struct recurrence_roles recurrence_roles_of(const struct op_problem *problem)
{
	struct recurrence_roles roles;

	find(problem, &roles, NULL);
	return roles;
}

const struct op_role recurrence_role_names[] = {
    OP_ROLE("q", struct recurrence_roles, q),
    OP_ROLE("k", struct recurrence_roles, k),
    OP_ROLE("v", struct recurrence_roles, v),
    OP_ROLE("gate", struct recurrence_roles, gate),
    OP_ROLE("gamma", struct recurrence_roles, gamma),
    OP_ROLE("a_log", struct recurrence_roles, a_log),
    OP_ROLE("dt_bias", struct recurrence_roles, dt_bias),
    OP_ROLE("beta", struct recurrence_roles, beta),
    OP_ROLE("state", struct recurrence_roles, state),
    OP_ROLE("cu_seqlens", struct recurrence_roles, cu_seqlens),
    OP_ROLE("scale", struct recurrence_roles, scale),
    OP_ROLE("l2norm", struct recurrence_roles, l2norm),
    OP_ROLE("sigmoid", struct recurrence_roles, sigmoid),
    OP_ROLE("doubled", struct recurrence_roles, doubled),
    OP_ROLE("lower_bound", struct recurrence_roles, lower_bound),
    OP_ROLE_OUTPUT("output", struct recurrence_roles, output),
    OP_ROLE_OUTPUT("new_state", struct recurrence_roles, new_state),
    {NULL, 0, false},
};

void recurrence_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct recurrence_roles *)roles = recurrence_roles_of(problem);
}

const struct op_mode recurrence_mode_names[] = {
    {"v_first", RECURRENCE_V_FIRST, RECURRENCE_V_FIRST},
    {"l2norm", RECURRENCE_L2NORM, RECURRENCE_L2NORM},
    {"sigmoid", RECURRENCE_SIGMOID, RECURRENCE_SIGMOID},
    {"doubled", RECURRENCE_DOUBLED, RECURRENCE_DOUBLED},
    {NULL, 0, 0},
};

/* Returns 1 for states [V, K], 0 for [K, V], and NaN for a problem without states. */
double recurrence_state_layout(const struct coverage_view *view, const struct op_coverage *row)
{
	struct recurrence_roles roles = recurrence_roles_of(view->c->problem);

	(void)row;
	return roles.state < 0 && roles.new_state < 0 ? (double)NAN : (view->c->variant & RECURRENCE_V_FIRST) != 0;
}

double recurrence_gate_kind(const struct coverage_view *view, const struct op_coverage *row)
{
	struct recurrence_roles roles = recurrence_roles_of(view->c->problem);

	(void)row;
	return recurrence_gate_of(view->c, &roles);
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

struct matching {
	const struct op_problem *problem;
	struct recurrence_roles roles;
	const struct op_arg *q, *k, *v, *output;
	int last; /* the index of q's last axis (K); the last two axes are the head and K, and all axes before them are
		   * token axes */
	struct err *why;
};

static int match_heads(const struct matching *m)
{
	const struct op_problem *problem = m->problem;
	int64_t k_dim = match_fixed_length(problem, m->q, m->last), v_dim = match_fixed_length(problem, m->v, m->last);
	int64_t heads = match_fixed_length(problem, m->v, m->last - 1), shared = match_fixed_length(problem, m->q, m->last - 1);

	if (!match_same_axes(problem, m->q, 0, m->k, 0, m->last + 1) || k_dim < 1 || k_dim > RECURRENCE_DIM_MOST)
		return match_refuse(problem, m->k, "the axes of q; the last axis must be const and at most 512",
				    m->why);
	if (!match_same_axes(problem, m->v, 0, m->q, 0, m->last - 1) || heads < 1 || v_dim < 1 ||
	    v_dim > RECURRENCE_DIM_MOST)
		return match_refuse(problem, m->v,
				    "[tokens of q, heads, V], where heads and V are const and V is at most 512",
				    m->why);
	if (shared < 1 || heads % shared != 0)
		return match_refuse(problem, m->q,
				    "a const number of heads that divides the number of heads of v", m->why);
	if (!match_same_axes(problem, m->output, 0, m->v, 0, m->output->rank))
		return match_refuse(problem, m->output, "the shape of v", m->why);
	return 0;
}

static int match_tokens(const struct matching *m)
{
	bool packed = m->roles.cu_seqlens >= 0;

	if (m->output->rank == 3 && !packed)
		return err_set(m->why, "q, k and v of shape [total, heads, dim] need cu_seqlens, which divides the "
				       "tokens into sequences");
	if (m->output->rank == 4 && packed && match_fixed_length(m->problem, m->q, 0) != 1)
		return match_refuse(m->problem, m->q,
				    "[total, heads, dim] or [1, total, heads, dim], because the inputs include "
				    "cu_seqlens",
				    m->why);
	return 0;
}

/* Checks the inputs of the gate. `does` has flags of the family: RECURRENCE_HEAD_GATE, RECURRENCE_KEY_GATE. */
static int match_gate(const struct matching *m, int does)
{
	const struct op_problem *problem = m->problem;
	const struct recurrence_roles *roles = &m->roles;
	bool by_key = (does & RECURRENCE_KEY_GATE) != 0;

	if (roles->gate < 0)
		return roles->a_log < 0 && roles->dt_bias < 0 && roles->lower_bound < 0
		           ? 0
		           : err_set(m->why, "A_log, dt_bias and lower_bound need a gate g");
	const struct op_arg *gate = &problem->inputs[roles->gate];

	if (gate->rank != m->last + by_key || !match_same_axes(problem, gate, 0, m->v, 0, m->last) ||
	    (by_key && !match_same_axes(problem, gate, m->last, m->q, m->last, 1)))
		return match_refuse(problem, gate,
				    by_key ? "the axes tokens and heads of v, followed by the last axis of q"
					 : "the shape of v without its last axis",
				  m->why);
	if (roles->gamma >= 0)
		return err_set(m->why, "there are two gates, '%s' and '%s'", gate->name,
		               problem->inputs[roles->gamma].name);
	if (roles->dt_bias >= 0 && roles->a_log < 0 && roles->lower_bound < 0)
		return err_set(m->why,
			       "dt_bias needs A_log or lower_bound, which determine how the gate uses dt_bias");
	return 0;
}

static int match_gate_weights(const struct matching *m, int does)
{
	const struct op_problem *problem = m->problem;
	bool by_key = (does & RECURRENCE_KEY_GATE) != 0;
	const int by_head[] = {m->roles.gamma, m->roles.a_log};
	int64_t heads = match_fixed_length(problem, m->v, m->last - 1);

	for (int i = 0; i < 2; i++)
		if (by_head[i] >= 0 && (problem->inputs[by_head[i]].rank != 1 ||
					!match_same_axes(problem, &problem->inputs[by_head[i]], 0, m->v, m->last - 1, 1)))
			return match_refuse(problem, &problem->inputs[by_head[i]],
					    "one element for each head of v", m->why);
	if (m->roles.dt_bias < 0)
		return 0;
	const struct op_arg *bias = &problem->inputs[m->roles.dt_bias];
	bool flat =
	    bias->rank == 1 && match_fixed_length(problem, bias, 0) == heads * (by_key ? match_fixed_length(problem, m->q, m->last) : 1);
	bool square = by_key && bias->rank == 2 && match_same_axes(problem, bias, 0, m->v, m->last - 1, 1) &&
		      match_same_axes(problem, bias, 1, m->q, m->last, 1);

	if (!flat && !square)
		return match_refuse(problem, bias,
				    by_key ? "[heads of v, last axis of q], or the same elements in one axis"
					   : "one element for each head of v",
				    m->why);
	return 0;
}

/* Checks that the problem has a gate if the family uses one, and has none otherwise. Checks the same for beta. */
static int match_parts(const struct matching *m, int does)
{
	const struct recurrence_roles *roles = &m->roles;
	const struct op_arg *beta = roles->beta >= 0 ? &m->problem->inputs[roles->beta] : NULL;
	bool delta = (does & RECURRENCE_DELTA) != 0, gated = (does & ~RECURRENCE_DELTA) != 0;

	if (delta != (roles->beta >= 0))
		return err_set(m->why,
			       delta ? "beta is missing among the inputs" : "the inputs include beta, but this family does not use it");
	if (delta && (beta->rank != m->last || !match_same_axes(m->problem, beta, 0, m->v, 0, m->last)))
		return match_refuse(m->problem, beta, "the shape of v without its last axis", m->why);
	if (!delta && (roles->sigmoid >= 0 || roles->doubled >= 0))
		return err_set(m->why, "an input controls the sigmoid or the doubling of beta, but there is no input "
		    "beta");
	if (!gated && (roles->gate >= 0 || roles->gamma >= 0))
		return err_set(m->why, "the inputs include a gate, but this family does not use one");
	if (gated && roles->gate < 0 && (roles->gamma < 0 || (does & RECURRENCE_KEY_GATE) != 0))
		return err_set(m->why, "the gate g is missing among the inputs");
	return match_gate(m, does) != 0 || match_gate_weights(m, does) != 0 ? -1 : 0;
}

/* Returns which layouts fit the shape of a state: 1 if only [.., K, V] fits, 2 if only [.., V, K] fits, 3 if both fit,
 * and 0 if neither fits. */
static int layouts(const struct matching *m, const struct op_arg *state)
{
	const struct op_problem *problem = m->problem;

	if (state->rank != 4 || !match_is_float(state) || !match_same_axes(problem, state, 1, m->v, m->last - 1, 1))
		return 0;
	return (match_same_axes(problem, state, 2, m->q, m->last, 1) &&
		match_same_axes(problem, state, 3, m->v, m->last, 1)) |
	       (match_same_axes(problem, state, 2, m->v, m->last, 1) &&
		match_same_axes(problem, state, 3, m->q, m->last, 1))
		   << 1;
}

/* Checks the shapes of the states. Returns RECURRENCE_V_FIRST for [V, K]. Returns 0 for [K, V] or if there are no
 * states, and -1 if a shape does not match. */
static int match_states(const struct matching *m)
{
	const struct op_problem *problem = m->problem;
	const struct op_arg *const states[] = {
	    m->roles.state >= 0 ? &problem->inputs[m->roles.state] : NULL,
	    m->roles.new_state >= 0 ? &problem->outputs[m->roles.new_state] : NULL,
	};
	bool first = match_mentions(problem, "v_first") || match_mentions(problem, "k_last") ||
		     match_contains(problem->description, "v_first") || match_contains(problem->description, "k_last");
	int fitting = 3;

	for (int i = 0; i < 2; i++) {
		if (states[i] == NULL)
			continue;
		fitting &= layouts(m, states[i]);
		if (fitting == 0)
			return match_refuse(problem, states[i],
					    "floats [sequences, heads of v, K, V] or [sequences, heads of v, V, K]; "
					    "all states must have the same order of axes",
					    m->why);
		if (m->roles.cu_seqlens < 0 && !match_same_axes(problem, states[i], 0, m->q, 0, 1))
			return match_refuse(problem, states[i], "one state for each sequence of the batch",
					    m->why);
	}
	if (states[0] != NULL && states[1] != NULL && !match_same_axes(problem, states[0], 0, states[1], 0, 4))
		return match_refuse(problem, states[1], "the shape of the initial states", m->why);
	return (fitting == 3 ? first : fitting == 2) ? RECURRENCE_V_FIRST : 0;
}

/* Returns true if the description of the scalar says that the scalar doubles beta, and does not mention the sigmoid. */
static bool says_doubled(const struct op_arg *scalar)
{
	static const char *const words[] = {"twice", "double", "factor 2", "factor of 2", "times 2", "by 2"};
	bool doubles = false;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		doubles |= match_contains(scalar->description, words[i]);
	return doubles && !match_contains(scalar->description, "sigmoid") && !match_contains(scalar->description, "logit");
}

static int said_flags(const struct matching *m, int does)
{
	const struct op_problem *problem = m->problem;
	bool delta = (does & RECURRENCE_DELTA) != 0;
	bool raw =
	    delta && (strcmp(problem->inputs[m->roles.beta].name, "b") == 0 || match_mentions(problem, "beta_sigmoid"));

	return (match_mentions(problem, "l2norm") ? RECURRENCE_L2NORM : 0) | (raw ? RECURRENCE_SIGMOID : 0) |
	       (delta && match_mentions(problem, "neg_eigval") ? RECURRENCE_DOUBLED : 0) |
	       (m->roles.doubled >= 0 && says_doubled(&problem->inputs[m->roles.doubled]) ? RECURRENCE_DOUBLED_ALONE : 0);
}

int recurrence_match(int does, const struct op_problem *problem, struct err *why)
{
	struct matching m = {.problem = problem, .why = why};
	int v_first;

	if (find(problem, &m.roles, why) != 0)
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

/* Returns the kind of gate of a case. A lower bound of None means that there is no bound. */
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
