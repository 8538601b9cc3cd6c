#include "kernels/gdn/roles.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/linear_attention/shared_coverage.h"
#include "kernels/core/shape_match.h"

static const struct gdn_roles no_roles = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static int *scalar_place(struct gdn_roles *roles, const struct op_arg *input)
{
	if (match_contains(input->name, "l2norm"))
		return &roles->l2norm;
	if (match_contains(input->name, "disable_state_update"))
		return &roles->frozen;
	return match_contains(input->name, "scale") && dtype_is_float(input->dtype) ? &roles->scale : NULL;
}

static int *vector_place(struct gdn_roles *roles, const struct op_arg *input)
{
	if (match_is_index(input))
		return match_contains(input->name, "indices") ? &roles->indices
		       : match_contains(input->name, "seqlens") || match_contains(input->name, "indptr") ||
			       match_contains(input->name, "offsets")
			   ? &roles->cu_seqlens
			   : NULL;
	return match_contains(input->name, "log") ? &roles->a_log : match_contains(input->name, "bias") ? &roles->dt_bias : NULL;
}

/* Returns the member of `roles` for an input. The input's rank determines the role. If several roles have that rank,
 * the input's name selects one of these roles. `rank` is the rank of the output. */
static int *place_of(struct gdn_roles *roles, const struct op_arg *input, int rank)
{
	const char first = (char)tolower((unsigned char)input->name[0]);

	if (input->rank == OP_SCALAR)
		return scalar_place(roles, input);
	if (input->rank == 1)
		return vector_place(roles, input);
	if (!match_is_float(input))
		return NULL;
	if (match_contains(input->name, "state"))
		return input->rank == 5 ? &roles->buffer : &roles->state;
	if (input->rank == rank)
		return first == 'q' ? &roles->q : first == 'k' ? &roles->k : first == 'v' ? &roles->v : NULL;
	/* The name must be exactly "a" or "b", because an input with the name "alpha" or "beta" contains the results of
	 * softplus or of the sigmoid, not their arguments. */
	return strcmp(input->name, "a") == 0 ? &roles->a : strcmp(input->name, "b") == 0 ? &roles->b : NULL;
}

static int find_outputs(const struct op_problem *problem, struct gdn_roles *roles, struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		int *place = match_contains(problem->outputs[i].name, "state") ? &roles->new_state : &roles->output;

		if (*place >= 0 || !match_is_float(&problem->outputs[i]))
			return match_refuse_unknown(problem, &problem->outputs[i],
						    "floats with a value for each token, and floats with the new "
						    "states (with \"state\" in the name)", why);
		*place = i;
	}
	if (roles->output < 0)
		return err_set(why, "the definition needs an output with a value for each token and head");
	if (problem->outputs[roles->output].rank != 3 && problem->outputs[roles->output].rank != 4)
		return match_refuse(problem, &problem->outputs[roles->output],
				    "an output [batch, tokens, heads, dim] or [total tokens, heads, dim]", why);
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
			return match_refuse_unknown(problem, &problem->inputs[i],
						    "the floats q, k, v, a and b (with values per token), the floats "
						    "A_log and dt_bias (with values per head), a state, indices, "
						    "cu_seqlens, a buffer of intermediate states, and the scalars "
						    "scale, use_qk_l2norm and disable_state_update", why);
		*place = i;
		if (problem->inputs[i].optional && !may_be_absent(roles, i))
			return match_refuse(problem, &problem->inputs[i], "an input without \"optional\": true", why);
	}
	if (roles->q < 0 || roles->k < 0 || roles->v < 0 || roles->a < 0 || roles->b < 0 || roles->a_log < 0 ||
	    roles->dt_bias < 0)
		return err_set(why, "the inputs must include q, k, v, a, b, A_log and dt_bias");
	if ((rank == 3) != (roles->cu_seqlens >= 0))
		return err_set(why, rank == 3
					? "an output [total tokens, heads, dim] needs an input cu_seqlens, which "
					  "divides the tokens into sequences"
					: "an output [batch, tokens, heads, dim] does not allow an input cu_seqlens");
	return 0;
}

/* Checks that the shapes of q, k and v are consistent with each other and with the output. */
static int match_heads(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *q = &problem->inputs[roles->q], *k = &problem->inputs[roles->k];
	const struct op_arg *v = &problem->inputs[roles->v], *output = &problem->outputs[roles->output];
	int last = output->rank - 1;
	int64_t heads = match_fixed_length(problem, v, last - 1);

	if (!match_same_axes(problem, q, 0, k, 0, last - 1) || !match_same_axes(problem, q, last, k, last, 1) ||
	    match_fixed_length(problem, q, last) < 1 || match_fixed_length(problem, q, last) > GDN_DIM_MOST)
		return match_refuse(problem, k,
				    "the axes of q, except that the number of heads may differ; the last axis must "
				    "be const and at most 256",
				    why);
	if (!match_same_axes(problem, v, 0, q, 0, last - 1) || heads < 1 || match_fixed_length(problem, v, last) < 1 ||
	    match_fixed_length(problem, v, last) > GDN_DIM_MOST)
		return match_refuse(problem, v,
				    "the token axes of q, followed by the const axes heads and V, where V is at most "
				    "256", why);
	for (int i = 0; i < 2; i++) {
		const struct op_arg *x = i == 0 ? q : k;
		int64_t own = match_fixed_length(problem, x, last - 1);

		if (own < 1 || heads % own != 0)
			return match_refuse(problem, x,
					    "a const number of heads that divides the number of heads of v", why);
	}
	if (!match_same_axes(problem, output, 0, v, 0, output->rank))
		return match_refuse(problem, output, "an output of the same shape as v", why);
	return 0;
}

static int match_gates(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *v = &problem->inputs[roles->v];
	const int by_token[] = {roles->a, roles->b}, by_head[] = {roles->a_log, roles->dt_bias};

	for (int i = 0; i < 2; i++) {
		const struct op_arg *gate = &problem->inputs[by_token[i]], *weight = &problem->inputs[by_head[i]];

		if (gate->rank != v->rank - 1 || !match_same_axes(problem, gate, 0, v, 0, gate->rank))
			return match_refuse(problem, gate, "the shape of v without its last axis", why);
		if (!match_is_float(weight) || !match_same_axes(problem, weight, 0, v, v->rank - 2, 1))
			return match_refuse(problem, weight,
					    "a float vector with one element per head of v", why);
	}
	return 0;
}

/* Returns the layouts that fit the shape of the state: bit 0 is set if [.., V, K] fits, bit 1 if [.., K, V] fits. */
static int layouts(const struct op_problem *problem, const struct gdn_roles *roles, const struct op_arg *state)
{
	const struct op_arg *v = &problem->inputs[roles->v], *q = &problem->inputs[roles->q];
	int last = v->rank - 1, at = state->rank - 1;

	if (state->rank < 4 || !match_is_float(state) || !match_same_axes(problem, state, at - 2, v, last - 1, 1))
		return 0;
	return (match_same_axes(problem, state, at - 1, v, last, 1) && match_same_axes(problem, state, at, q, last, 1)) |
	       (match_same_axes(problem, state, at - 1, q, last, 1) && match_same_axes(problem, state, at, v, last, 1))
		   << 1;
}

bool gdn_buffer_by_slot(const struct op_problem *problem, const struct gdn_roles *roles)
{
	return roles->state >= 0 &&
	       match_same_axis(problem, problem->inputs[roles->buffer].axis[0], problem->inputs[roles->state].axis[0]);
}

/* Checks that the buffer has an entry for each token of each sequence, or an entry for each token of each slot. */
static int match_buffer(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *buffer = &problem->inputs[roles->buffer], *q = &problem->inputs[roles->q];
	bool by_sequence = match_same_axis(problem, buffer->axis[0], q->axis[0]);

	if (roles->cu_seqlens < 0 && match_same_axis(problem, buffer->axis[1], q->axis[1]) &&
	    (by_sequence || gdn_buffer_by_slot(problem, roles)))
		return 0;
	return match_refuse(problem, buffer,
			    "[slots, tokens, heads of v, V, K] or [batch, tokens, heads of v, V, K], where batch and "
			    "tokens are the same axes as in q", why);
}

/* Checks the shapes of the states. Returns GDN_V_LAST if states are [K, V], 0 if they are [V, K], and -1 if the shape
 * of a state fits neither. */
static int match_states(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *const states[] = {
	    roles->state >= 0 ? &problem->inputs[roles->state] : NULL,
	    roles->new_state >= 0 ? &problem->outputs[roles->new_state] : NULL,
	    roles->buffer >= 0 ? &problem->inputs[roles->buffer] : NULL,
	};
	bool v_last = match_mentions(problem, "v_last") || match_mentions(problem, "k_major") ||
		      match_contains(problem->description, "v_last") || match_contains(problem->description, "k_major");
	int fitting = 3;

	for (int i = 0; i < 3; i++) {
		if (states[i] == NULL)
			continue;
		fitting &= layouts(problem, roles, states[i]);
		if (fitting == 0 || (i < 2 && states[i]->rank != 4))
			return match_refuse(problem, states[i],
					    "floats [slots, heads of v, V, K] or [slots, heads of v, K, V]; all states "
					    "must have the same order of axes", why);
	}
	if (roles->buffer >= 0 && match_buffer(problem, roles, why) != 0)
		return -1;
	if (states[0] != NULL && states[1] != NULL && !match_same_axes(problem, states[0], 0, states[1], 0, 4))
		return match_refuse(problem, states[1], "the shape of the input states", why);
	return fitting == 3 ? v_last : fitting == 2;
}

static int find(const struct op_problem *problem, struct gdn_roles *roles, struct err *why)
{
	*roles = no_roles;
	if (find_outputs(problem, roles, why) != 0 || find_inputs(problem, roles, why) != 0)
		return -1;
	if (roles->indices >= 0 && roles->state < 0)
		return err_set(why, "the inputs include state indices, but no pool of states to which they refer");
	return 0;
}

int gdn_match(const struct op_problem *problem, struct err *why)
{
	struct gdn_roles roles;
	int v_last;

	if (find(problem, &roles, why) != 0 || match_heads(problem, &roles, why) != 0 ||
	    match_gates(problem, &roles, why) != 0 || (v_last = match_states(problem, &roles, why)) < 0)
		return -1;
	return (v_last ? GDN_V_LAST : 0) | (match_mentions(problem, "l2norm") ? GDN_L2NORM : 0);
}

struct gdn_roles gdn_roles_of(const struct op_problem *problem)
{
	struct gdn_roles roles;

	find(problem, &roles, NULL);
	return roles;
}

const struct op_role gdn_role_names[] = {
    OP_ROLE("q", struct gdn_roles, q),
    OP_ROLE("k", struct gdn_roles, k),
    OP_ROLE("v", struct gdn_roles, v),
    OP_ROLE("state", struct gdn_roles, state),
    OP_ROLE("a_log", struct gdn_roles, a_log),
    OP_ROLE("dt_bias", struct gdn_roles, dt_bias),
    OP_ROLE("a", struct gdn_roles, a),
    OP_ROLE("b", struct gdn_roles, b),
    OP_ROLE("cu_seqlens", struct gdn_roles, cu_seqlens),
    OP_ROLE("indices", struct gdn_roles, indices),
    OP_ROLE("buffer", struct gdn_roles, buffer),
    OP_ROLE("scale", struct gdn_roles, scale),
    OP_ROLE("l2norm", struct gdn_roles, l2norm),
    OP_ROLE("frozen", struct gdn_roles, frozen),
    OP_ROLE_OUTPUT("output", struct gdn_roles, output),
    OP_ROLE_OUTPUT("new_state", struct gdn_roles, new_state),
    {NULL, 0, false},
};

const struct op_mode gdn_mode_names[] = {
    {"v_last", GDN_V_LAST, GDN_V_LAST},
    {"l2norm", GDN_L2NORM, GDN_L2NORM},
    {NULL, 0, 0},
};

/* Returns NaN for a problem without states, which has no layout. */
static double state_layout(const struct coverage_view *view, const struct op_coverage *row)
{
	struct gdn_roles roles = gdn_roles_of(view->c->problem);

	(void)row;
	return roles.state < 0 && roles.new_state < 0 ? (double)NAN : (view->c->variant & GDN_V_LAST) != 0;
}

/* Returns the number of tokens in each sequence of a batch, or NaN for packed sequences. */
static double tokens(const struct coverage_view *view, const struct op_coverage *row)
{
	struct gdn_roles roles = gdn_roles_of(view->c->problem);

	(void)row;
	return roles.cu_seqlens >= 0 ? (double)NAN : (double)gdn_extent_of(view->c, &roles).tokens;
}

const struct op_coverage gdn_coverage[] = {
    COVERAGE_OPTION("sequences", "cu_seqlens", "packed", "has packed sequences", "in a batch", "has sequences in a batch"),
    {"tokens", tokens,
     .values = {{"one", 1, 1, "has a case with one token in each sequence (decode)"},
		{"several", 2, 0x1p62, "has a case with several tokens in each sequence of a batch"}}},
    {"state layout", state_layout,
     .values = {{"[V, K]", 0, 0, "has states [V, K]"}, {"[K, V]", 1, 1, "has states [K, V]"}}},
    LINEAR_ATTENTION_COVERAGE,
    COVERAGE_OPTION("slots", "indices", "given", "has slot indices", "none", "has a state for each sequence"),
    COVERAGE_OPTION("states after each token", "buffer", "kept", "keeps the states after each token", "none",
		    "keeps no states after each token"),
    COVERAGE_DTYPES("q"),
    {"state dtype", coverage_dtype, .role = "state",
     .values = {{"float32", DTYPE_FLOAT32, DTYPE_FLOAT32, "has float32 states"},
		{"bfloat16", DTYPE_BFLOAT16, DTYPE_BFLOAT16, "has bfloat16 states"}, {"other", 0, DTYPE_COUNT, NULL}}},
    {.name = NULL},
};

void gdn_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct gdn_roles *)roles = gdn_roles_of(problem);
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

/* Returns true if the problem processes several tokens per sequence with a pool of states, and its inputs and outputs
 * do not show whether the pool is updated. */
static bool may_be_frozen(const struct op_problem *problem, const struct gdn_roles *roles)
{
	const struct op_arg *q = &problem->inputs[roles->q];

	return roles->indices >= 0 && roles->new_state >= 0 && roles->cu_seqlens < 0 && roles->frozen < 0 &&
	       match_fixed_length(problem, q, 1) != 1;
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
		return err_set(err, "there are only %lld states for %lld sequences; each sequence needs a state of its "
				    "own", (long long)e->slots, (long long)e->sequences);
	if (indices != NULL && c->axis[indices->axis[0]] < e->sequences)
		return err_set(err, "%s has %lld slots for %lld sequences", indices->name,
			       (long long)c->axis[indices->axis[0]], (long long)e->sequences);
	if ((e->total < e->sequences && c->edge == 0) || (e->sequences == 0 && e->total > 0))
		return err_set(err, "%lld tokens cannot be distributed over %lld sequences with at least one "
				    "token each",
			       (long long)e->total, (long long)e->sequences);
	return 0;
}

/* Returns 1 if the text says that the pool is updated, 0 if it says that the pool stays unchanged, and -1 if it says
 * neither. */
static int updates_in(const char *text)
{
	return match_contains(text, "disable_state_update=true")    ? 0
	       : match_contains(text, "disable_state_update=false") ? 1
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
