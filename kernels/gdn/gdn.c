/* gdn - the gated delta net: linear attention whose state forgets, and corrects what it holds under a key.
 *
 * A head's state S [V, K] meets the tokens of its sequence in order:
 *
 *   g = exp(-exp(A_log) softplus(a + dt_bias)),  beta = sigmoid(b)
 *   S <- g S;   S <- S + beta (v - S k) k^T;   output = scale S q
 *
 * S k is read after the decay, the output after the correction. Value head h has q and k of heads h / (H_v / H_q) and
 * h / (H_v / H_k). Nothing is normalised unless the name, a tag or a Python scalar says "l2norm": then q / |q| and
 * k / |k|. Scale 0, or none, is 1 / sqrt(K). softplus(x) = log(1 + e^x).
 *
 * Three forms, told apart by their tensors (inputs.h has the shapes):
 *   decode, multi-token   q [batch, tokens, …]: each sequence has as many tokens
 *   prefill               q [total, …] and cu_seqlens
 * States lie by sequence, or, with indices, in slots of a pool. They are [V, K] (k last); where V = K, so that shapes
 * do not tell, they are [K, V] if the name, a tag or the description says "v-last" or "k-major".
 *
 * A multi-token pass over a pool serves verification of drafts: its output of states is the pool as it came in, if
 * nothing is to be updated, else with the new states in the slots of its sequences. Both are in use for one schema. A
 * scalar `disable_state_update` decides, else "disable_state_update=True" (or False) in a tag or the description; if
 * nothing speaks, the hidden constant updates_state is found by probing: is the pool that the reference answers the
 * one it got? All other forms update.
 *
 * A buffer of intermediate states takes the state after each token, at [slot, token] or, where its first axis is the
 * batch's, at [sequence, token]; the rest of it stays as it was. A reference that got one has to fill it: it is
 * compared like an output, by the rule of states, whether the pool is updated or not.
 *
 * Bounds. An output is scale |q| times a projection of the state, whose rows are around 1/2 in every direction that is
 * read: atol is 2^-12 scale sqrt(K / 3) (of a normalised q: 2^-12 scale), about a thousandth of a typical output;
 * rtol is one place of bfloat16 with room for what float32 sums lose (1e-6). States are float32 in most definitions: a
 * recurrence that contracts does not grow its roundings, so that they stay near 1e-7 for each token's decay, which a
 * state remembers: rtol 2^-12 is good for 4000 tokens, atol 2^-16 is 2^-14 of a typical element. A pool that is not
 * updated is the same bits.
 *
 * Sequences without tokens keep their state, but implementations differ (the old one, zero, or not written?): --edge
 * alone has such. Left out for the same reason: slots below 0, slots that two sequences update or whose intermediate states both write. Workloads that
 * bring them are invalid. */
#include "kernels/gdn/inputs.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/check.h"
#include "kernels/gdn/gradient.h"
#include "kernels/wide.h"

static const struct gdn_roles no_roles = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

/* --- which problem it is ------------------------------------------------------------------------------------------ */

static bool is_float(const struct op_arg *arg)
{
	return arg->rank != OP_SCALAR &&
	       (arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_BFLOAT16 || arg->dtype == DTYPE_FLOAT16);
}

static bool is_index(const struct op_arg *arg)
{
	return arg->rank == 1 && (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64);
}

/* Does `text` hold `word`, upper or lower case? */
static bool holds(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (; text != NULL && *text != '\0'; text++) {
		size_t i = 0;

		while (i < length && text[i] != '\0' && tolower((unsigned char)text[i]) == word[i])
			i++;
		if (i == length)
			return true;
	}
	return false;
}

static bool name_or_tag_holds(const struct op_problem *problem, const char *word)
{
	for (int i = 0; i < problem->tag_count; i++)
		if (holds(problem->tags[i], word))
			return true;
	return holds(problem->name, word);
}

static int refuse(const struct op_problem *problem, const struct op_arg *arg, const char *expected, struct err *why)
{
	char shape[512];

	return err_set(why, "gdn: '%s' is %s of %s; expected %s", arg->name,
	               op_shape_text(problem, arg, shape, sizeof shape), dtype_name(arg->dtype), expected);
}

static int *scalar_place(struct gdn_roles *roles, const struct op_arg *input)
{
	if (holds(input->name, "l2norm"))
		return &roles->l2norm;
	if (holds(input->name, "disable_state_update"))
		return &roles->frozen;
	return holds(input->name, "scale") && dtype_is_float(input->dtype) ? &roles->scale : NULL;
}

static int *vector_place(struct gdn_roles *roles, const struct op_arg *input)
{
	if (is_index(input))
		return holds(input->name, "indices") ? &roles->indices
		       : holds(input->name, "seqlens") || holds(input->name, "indptr") || holds(input->name, "offsets")
		           ? &roles->cu_seqlens
		           : NULL;
	return holds(input->name, "log") ? &roles->a_log : holds(input->name, "bias") ? &roles->dt_bias : NULL;
}

/* The place of an input, by its rank (`rank` is that of the output) and, where several have the same, by its name. */
static int *place_of(struct gdn_roles *roles, const struct op_arg *input, int rank)
{
	const char first = (char)tolower((unsigned char)input->name[0]);

	if (input->rank == OP_SCALAR)
		return scalar_place(roles, input);
	if (input->rank == 1)
		return vector_place(roles, input);
	if (!is_float(input))
		return NULL;
	if (holds(input->name, "state"))
		return input->rank == 5 ? &roles->buffer : &roles->state;
	if (input->rank == rank)
		return first == 'q' ? &roles->q : first == 'k' ? &roles->k : first == 'v' ? &roles->v : NULL;
	/* By the whole name: an "alpha" or a "beta" went through its gate already. */
	return strcmp(input->name, "a") == 0 ? &roles->a : strcmp(input->name, "b") == 0 ? &roles->b : NULL;
}

static int find_outputs(const struct op_problem *problem, struct gdn_roles *roles, struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		int *place = holds(problem->outputs[i].name, "state") ? &roles->new_state : &roles->output;

		if (*place >= 0 || !is_float(&problem->outputs[i]))
			return refuse(problem, &problem->outputs[i],
			              "one output of tokens and one of states (with \"state\" in its name), of floats",
			              why);
		*place = i;
	}
	if (roles->output < 0)
		return err_set(why, "gdn: no output has a value for each token and head");
	if (problem->outputs[roles->output].rank != 3 && problem->outputs[roles->output].rank != 4)
		return refuse(problem, &problem->outputs[roles->output],
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
			return refuse(
			    problem, &problem->inputs[i],
			    "one each of q, k, v, a, b of floats for each token, A_log and dt_bias of floats for each"
			    " head, a state, indices, cu_seqlens, a buffer of intermediate states, and the scalars"
			    " scale, use_qk_l2norm and disable_state_update",
			    why);
		*place = i;
		if (problem->inputs[i].optional && !may_be_absent(roles, i))
			return refuse(problem, &problem->inputs[i], "it not to be optional", why);
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

static bool same_axis(const struct op_problem *problem, int a, int b)
{
	const struct op_axis *x = &problem->axes[a], *y = &problem->axes[b];

	return a == b || (!x->var && !y->var && x->value == y->value);
}

/* `count` axes of a, from `from` on, are those of b from `b_from` on. */
static bool same_axes(const struct op_problem *problem, const struct op_arg *a, int from, const struct op_arg *b,
                      int b_from, int count)
{
	if (a->rank < from + count || b->rank < b_from + count)
		return false;
	for (int d = 0; d < count; d++)
		if (!same_axis(problem, a->axis[from + d], b->axis[b_from + d]))
			return false;
	return true;
}

/* 0 for a var axis. */
static int64_t fixed(const struct op_problem *problem, const struct op_arg *arg, int dimension)
{
	const struct op_axis *axis = &problem->axes[arg->axis[dimension]];

	return axis->var ? 0 : axis->value;
}

/* q, k and v against each other and the output. */
static int match_heads(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *q = &problem->inputs[roles->q], *k = &problem->inputs[roles->k];
	const struct op_arg *v = &problem->inputs[roles->v], *output = &problem->outputs[roles->output];
	int last = output->rank - 1;
	int64_t heads = fixed(problem, v, last - 1);

	if (!same_axes(problem, q, 0, k, 0, last - 1) || !same_axes(problem, q, last, k, last, 1) ||
	    fixed(problem, q, last) < 1 || fixed(problem, q, last) > GDN_DIM_MOST)
		return refuse(problem, k, "the axes of q but for the heads; the last one const, at most 256", why);
	if (!same_axes(problem, v, 0, q, 0, last - 1) || heads < 1 || fixed(problem, v, last) < 1 ||
	    fixed(problem, v, last) > GDN_DIM_MOST)
		return refuse(problem, v, "the tokens of q, const heads, and a const last axis of at most 256", why);
	for (int i = 0; i < 2; i++) {
		const struct op_arg *x = i == 0 ? q : k;
		int64_t own = fixed(problem, x, last - 1);

		if (own < 1 || heads % own != 0)
			return refuse(problem, x, "a const number of heads that divides that of v", why);
	}
	if (!same_axes(problem, output, 0, v, 0, output->rank))
		return refuse(problem, output, "the shape of v", why);
	return 0;
}

static int match_gates(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *v = &problem->inputs[roles->v];
	const int by_token[] = {roles->a, roles->b}, by_head[] = {roles->a_log, roles->dt_bias};

	for (int i = 0; i < 2; i++) {
		const struct op_arg *gate = &problem->inputs[by_token[i]], *weight = &problem->inputs[by_head[i]];

		if (gate->rank != v->rank - 1 || !same_axes(problem, gate, 0, v, 0, gate->rank))
			return refuse(problem, gate, "the shape of v without its last axis", why);
		if (!is_float(weight) || !same_axes(problem, weight, 0, v, v->rank - 2, 1))
			return refuse(problem, weight, "floats, one for each head of v", why);
	}
	return 0;
}

/* 1: [.., V, K] fits and [.., K, V] does not; 2: the other way about; 3: both do; 0: none. */
static int layouts(const struct op_problem *problem, const struct gdn_roles *roles, const struct op_arg *state)
{
	const struct op_arg *v = &problem->inputs[roles->v], *q = &problem->inputs[roles->q];
	int last = v->rank - 1, at = state->rank - 1;

	if (state->rank < 4 || !is_float(state) || !same_axes(problem, state, at - 2, v, last - 1, 1))
		return 0;
	return (same_axes(problem, state, at - 1, v, last, 1) && same_axes(problem, state, at, q, last, 1)) |
	       (same_axes(problem, state, at - 1, q, last, 1) && same_axes(problem, state, at, v, last, 1)) << 1;
}

bool gdn_buffer_by_slot(const struct op_problem *problem, const struct gdn_roles *roles)
{
	return roles->state >= 0 &&
	       same_axis(problem, problem->inputs[roles->buffer].axis[0], problem->inputs[roles->state].axis[0]);
}

/* A place for each token of each sequence or slot. */
static int match_buffer(const struct op_problem *problem, const struct gdn_roles *roles, struct err *why)
{
	const struct op_arg *buffer = &problem->inputs[roles->buffer], *q = &problem->inputs[roles->q];
	bool by_sequence = same_axis(problem, buffer->axis[0], q->axis[0]);

	if (roles->cu_seqlens < 0 && same_axis(problem, buffer->axis[1], q->axis[1]) &&
	    (by_sequence || gdn_buffer_by_slot(problem, roles)))
		return 0;
	return refuse(problem, buffer,
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
	bool v_last = name_or_tag_holds(problem, "v_last") || name_or_tag_holds(problem, "v-last") ||
	              name_or_tag_holds(problem, "k_major") || name_or_tag_holds(problem, "k-major") ||
	              holds(problem->description, "v-last") || holds(problem->description, "k-major");
	int fitting = 3;

	for (int i = 0; i < 3; i++) {
		if (states[i] == NULL)
			continue;
		fitting &= layouts(problem, roles, states[i]);
		if (fitting == 0 || (i < 2 && states[i]->rank != 4))
			return refuse(problem, states[i],
			              "states [slots, heads of v, V, K] (or all of them [K, V]) of floats", why);
	}
	if (roles->buffer >= 0 && match_buffer(problem, roles, why) != 0)
		return -1;
	if (states[0] != NULL && states[1] != NULL && !same_axes(problem, states[0], 0, states[1], 0, 4))
		return refuse(problem, states[1], "the shape of the states that come in", why);
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

static int match(const struct op_problem *problem, struct err *why)
{
	struct gdn_roles roles;
	int v_last;

	if (find(problem, &roles, why) != 0 || match_heads(problem, &roles, why) != 0 ||
	    match_gates(problem, &roles, why) != 0 || (v_last = match_states(problem, &roles, why)) < 0)
		return -1;
	return (v_last ? GDN_V_LAST : 0) | (name_or_tag_holds(problem, "l2norm") ? GDN_L2NORM : 0);
}

struct gdn_roles gdn_roles_of(const struct op_problem *problem)
{
	struct gdn_roles roles;

	find(problem, &roles, NULL);
	return roles;
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

struct gdn_extent gdn_extent_of(const struct op_case *c, const struct gdn_roles *roles)
{
	const struct op_problem *problem = c->problem;
	const struct op_arg *q = &problem->inputs[roles->q], *v = &problem->inputs[roles->v];
	const struct op_arg *k = &problem->inputs[roles->k];
	const struct op_arg *state = roles->state >= 0       ? &problem->inputs[roles->state]
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
	       fixed(problem, q, 1) != 1;
}

bool gdn_updates(const struct op_case *c, const struct gdn_roles *roles)
{
	if (roles->frozen >= 0)
		return c->scalar[roles->frozen] == 0;
	return !may_be_frozen(c->problem, roles) || c->constant_count == 0 || c->constants[0].value != 0;
}

/* What the axes alone rule out. */
static int check_axes(const struct op_case *c, const struct gdn_roles *roles, const struct gdn_extent *e,
                      struct err *err)
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
	return holds(text, "disable_state_update=true") ? 0 : holds(text, "disable_state_update=false") ? 1 : -1;
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
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

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out,
                 struct op_constant *constants, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	const struct tensor *before = &in[roles.state], *after = &out[roles.new_state];
	bool same = true;

	(void)err;
	for (int64_t i = 0; i < after->elements && same; i++)
		same = number_get(before->data, before->dtype, i) == number_get(after->data, after->dtype, i);
	constants[0].value = same ? 0 : 1;
	return 0;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* Sequences, tokens of each (packed: in all), slots. */
static const struct preset {
	int64_t sequences, tokens, slots;
} by_batch[SIZE_COUNT][2] = {{{1, 2, 3}, {3, 5, 8}}, {{8, 6, 12}}, {{64, 8, 96}}},
  one_token[SIZE_COUNT][2] = {{{1, 1, 3}, {3, 1, 8}}, {{32, 1, 40}}, {{512, 1, 640}}},
  packed[SIZE_COUNT][2] = {{{1, 5, 3}, {4, 40, 7}}, {{5, 202, 7}}, {{8, 16384, 12}}};

static void set_axis(const struct op_problem *problem, int64_t *row, const struct op_arg *arg, int dimension,
                     int64_t value)
{
	if (problem->axes[arg->axis[dimension]].var)
		row[arg->axis[dimension]] = value;
}

static void preset_axes(const struct op_problem *problem, const struct gdn_roles *roles, const struct preset *preset,
                        int64_t *row)
{
	const struct op_arg *q = &problem->inputs[roles->q];

	for (int a = 0; a < problem->axis_count; a++)
		row[a] = problem->axes[a].var ? preset->sequences : problem->axes[a].value;
	if (roles->buffer >= 0)
		set_axis(problem, row, &problem->inputs[roles->buffer], 0, preset->slots);
	if (roles->state >= 0)
		set_axis(problem, row, &problem->inputs[roles->state], 0,
		         roles->indices >= 0 ? preset->slots : preset->sequences);
	if (roles->cu_seqlens >= 0) {
		set_axis(problem, row, &problem->inputs[roles->cu_seqlens], 0, preset->sequences + 1);
		set_axis(problem, row, q, 0, preset->tokens);
		return;
	}
	set_axis(problem, row, q, 0, preset->sequences);
	set_axis(problem, row, q, 1, preset->tokens);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct preset *presets = roles.cu_seqlens >= 0                               ? packed[size]
	                               : fixed(problem, &problem->inputs[roles.q], 1) == 1 ? one_token[size]
	                                                                                   : by_batch[size];
	int count = 0;

	(void)variant;
	for (; count < 2 && presets[count].sequences > 0; count++) {
		if (count == room)
			return -1;
		preset_axes(problem, &roles, &presets[count], axis + (int64_t)count * problem->axis_count);
	}
	return count;
}

/* The cases of --edge; op_case.edge is one of these. */
enum { EDGE_NO_SEQUENCES = 1, EDGE_EMPTY_SEQUENCE };

static const struct op_edge edges[] = {
    {"no_sequences", "where there is no sequence, nothing comes out, and a pool of states stays as it is"},
    {"empty_sequence", "a sequence without tokens has for its new state the one that it had"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	static const struct preset none = {0, 0, 3}, none_by_batch = {0, 2, 3}, middle = {3, 5, 5};
	struct gdn_roles roles = gdn_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q];
	bool packs = roles.cu_seqlens >= 0;

	(void)variant;
	if (!problem->axes[q->axis[0]].var || (packs && !problem->axes[problem->inputs[roles.cu_seqlens].axis[0]].var) ||
	    (edge == EDGE_EMPTY_SEQUENCE && !packs))
		return false;
	preset_axes(problem, &roles, edge == EDGE_EMPTY_SEQUENCE ? &middle : packs ? &none : &none_by_batch, axis);
	return true;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	struct gdn_roles roles = gdn_roles_of(problem);

	(void)variant;
	preset_axes(problem, &roles, &by_batch[SIZE_SMALL][0], axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	bool buffer = roles.buffer >= 0 && output == op_own_place(c->problem, roles.buffer);
	enum dtype dtype = buffer ? c->problem->inputs[roles.buffer].dtype : c->problem->outputs[output].dtype;
	double place = dtype == DTYPE_BFLOAT16 ? 1e-2 : dtype == DTYPE_FLOAT16 ? 0x1p-9 : 0x1p-12, size;

	if (buffer)
		return (struct rule){0x1p-16, place, 1};
	if (output == roles.new_state)
		return gdn_updates(c, &roles) ? (struct rule){0x1p-16, place, 1} : (struct rule){0, 0, 1};
	size = gdn_l2norm(c, &roles) ? 1 : sqrt((double)gdn_extent_of(c, &roles).k_dim / 3);
	return (struct rule){0x1p-12 * fabs(gdn_scale(c, &roles)) * size, place, 1};
}

static struct op_leaves leaves(const struct op_case *c, int input)
{
	bool buffer = input == gdn_roles_of(c->problem).buffer;

	return (struct op_leaves){buffer ? op_own_place(c->problem, input) : OP_KEPT, false};
}

/* The scale is not the one that references take when given none. The presets have both values of each switch. */
static double scalar(const struct op_case *c, int input)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);

	if (input == roles.scale)
		return 1.25 / sqrt((double)e.k_dim);
	return input == roles.l2norm ? e.sequences % 8 != 0 : e.sequences % 3 == 0;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* k's element has standard deviation 1 / sqrt(K): uniform on +-sqrt(3 / K), to three bits. */
static void size_keys(struct gdn_fill *f, int64_t k_dim)
{
	double wanted = sqrt(3 / (double)k_dim);

	while (f->exponent > -8 && wanted * ldexp(1, -f->exponent) < 0.5)
		f->exponent--;
	while (wanted * ldexp(1, -f->exponent) >= 1)
		f->exponent++;
	f->eighths = (int)lround(wanted * ldexp(8, -f->exponent));
}

struct gdn_fill gdn_fill_of(const struct op_case *c, int input)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	const struct {
		int role;
		enum gdn_part part;
		int64_t heads, dim;
	} parts[] = {
	    {roles.q, GDN_Q, e.q_heads, e.k_dim}, {roles.k, GDN_K, e.k_heads, e.k_dim},
	    {roles.v, GDN_V, e.v_heads, e.v_dim}, {roles.state, GDN_STATE, 1, 1},
	    {roles.a_log, GDN_A_LOG, 1, 1},       {roles.a, GDN_A, e.v_heads, 1},
	    {roles.dt_bias, GDN_DT_BIAS, 1, 1},   {roles.b, GDN_B, e.v_heads, 1},
	    {roles.buffer, GDN_BUFFER, 1, 1},
	};
	struct gdn_fill f = {.key = input_key(c, input), .k_key = input_key(c, roles.k), .heads = 1, .dim = 1};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].role == input) {
			f.part = parts[i].part;
			f.heads = parts[i].heads;
			f.dim = parts[i].dim;
		}
	f.follows = e.q_heads == e.k_heads;
	f.l2norm = gdn_l2norm(c, &roles);
	size_keys(&f, e.k_dim);
	return f;
}

/* Sequences have 65, 1, 64, … tokens; if the batch has not so many, in proportion, and one each at the least; if it
 * has more, the last has the rest. */
static void fill_offsets(const struct gdn_extent *e, struct tensor *out)
{
	static const int64_t wanted[] = {65, 1, 64, 9, 63, 128};
	int64_t spare = e->total - e->sequences, weights = 0, at = 0;

	for (int64_t n = 0; n < e->sequences; n++)
		weights += wanted[n % 6] - 1;
	if (out->elements > 0)
		number_set(out->data, out->dtype, 0, 0);
	for (int64_t n = 0; n < e->sequences; n++) {
		int64_t more = wanted[n % 6] - 1;

		at += 1 + (weights <= spare ? more : more * spare / weights);
		number_set(out->data, out->dtype, n + 1, (double)(n == e->sequences - 1 ? e->total : at));
	}
}

/* All tokens are those of the middle sequence of three. */
static void fill_empty(const struct gdn_extent *e, struct tensor *out)
{
	for (int64_t n = 0; n < out->elements; n++)
		number_set(out->data, out->dtype, n, n < 2 ? 0 : (double)e->total);
}

/* Slots in random order: the first so many of a shuffled pool, so that sequences have distinct ones. */
static void fill_indices(const struct gdn_extent *e, uint64_t key, struct tensor *out)
{
	int64_t *order = calloc((size_t)e->slots + 1, sizeof *order);

	if (order == NULL)
		die_no_memory();
	for (int64_t i = 0; i < e->slots; i++) {
		int64_t j = philox_bits(key, i) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (int64_t i = 0; i < out->elements; i++)
		number_set(out->data, out->dtype, i, (double)order[e->slots > 0 ? i % e->slots : 0]);
	free(order);
}

static void fill_floats(const struct gdn_fill *f, struct tensor *out)
{
#pragma omp parallel for
	for (int64_t b = 0; b < (out->elements + 3) / 4; b++) {
		struct philox random = philox_block(f->key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < out->elements; i++)
			number_store(out->data, out->dtype, 4 * b + i, gdn_element(f, 4 * b + i, random.word[i]));
	}
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	struct gdn_fill f = gdn_fill_of(c, input);

	if (check_axes(c, &roles, &e, err) != 0)
		return -1;
	if (input == roles.cu_seqlens && c->edge == EDGE_EMPTY_SEQUENCE)
		fill_empty(&e, out);
	else if (input == roles.cu_seqlens)
		fill_offsets(&e, out);
	else if (input == roles.indices)
		fill_indices(&e, f.key, out);
	else
		fill_floats(&f, out);
	return 0;
}
/* --- are offsets and slots in order? ------------------------------------------------------------------------------ */

static int64_t integer(const struct tensor *tensor, int64_t index)
{
	return tensor->dtype == DTYPE_INT64 ? ((const int64_t *)tensor->data)[index]
	                                    : ((const int32_t *)tensor->data)[index];
}

/* `empty`: a sequence may have no token. */
static int check_offsets(const char *name, const struct gdn_extent *e, bool empty, const struct tensor *offsets,
                         struct err *err)
{
	int64_t count = offsets->elements;

	if (count < 1 || integer(offsets, 0) != 0)
		return err_set(err, "%s does not begin with 0", name);
	for (int64_t n = 1; n < count; n++)
		if (integer(offsets, n) < integer(offsets, n - 1) || integer(offsets, n) > e->total)
			return err_set(
			    err, "%s[%lld] is %lld: it must not be below %s[%lld] = %lld, nor above the %lld tokens",
			    name, (long long)n, (long long)integer(offsets, n), name, (long long)n - 1,
			    (long long)integer(offsets, n - 1), (long long)e->total);
		else if (!empty && integer(offsets, n) == integer(offsets, n - 1))
			return err_set(
			    err,
			    "%s gives sequence %lld no token: implementations differ in what its new state is, so"
			    " leave it out",
			    name, (long long)n - 1);
	if (integer(offsets, count - 1) != e->total)
		return err_set(err, "%s ends with %lld, and there are %lld tokens", name,
		               (long long)integer(offsets, count - 1), (long long)e->total);
	return 0;
}

/* `writes`: something is written to the slots. */
static int check_indices(const char *name, const struct gdn_extent *e, bool writes, const struct tensor *indices,
                         struct err *err)
{
	int64_t *owner =
	    calloc((size_t)e->slots + 1, sizeof *owner); /* of a slot: the sequence that has it, from 1 on */
	int rc = 0;

	if (owner == NULL)
		die_no_memory();
	for (int64_t n = 0; n < indices->elements && rc == 0; n++) {
		int64_t slot = integer(indices, n);

		if (slot < 0 || slot >= e->slots)
			rc = err_set(err, "%s[%lld] is %lld; there are %lld states, counted from 0", name, (long long)n,
			             (long long)slot, (long long)e->slots);
		else if (writes && owner[slot] != 0)
			rc = err_set(err, "%s[%lld] is %lld, which sequence %lld updates too", name, (long long)n,
			             (long long)slot, (long long)owner[slot] - 1);
		else
			owner[slot] = n + 1;
	}
	free(owner);
	return rc;
}

static bool writes_slots(const struct op_case *c, const struct gdn_roles *roles)
{
	return (roles->new_state >= 0 && gdn_updates(c, roles)) ||
	       (roles->buffer >= 0 && gdn_buffer_by_slot(c->problem, roles));
}

int gdn_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	const struct op_arg *inputs = c->problem->inputs;

	if (check_axes(c, &roles, &e, err) != 0)
		return -1;
	if (roles.cu_seqlens >= 0 && in[roles.cu_seqlens].data != NULL &&
	    check_offsets(inputs[roles.cu_seqlens].name, &e, c->edge != 0, &in[roles.cu_seqlens], err) != 0)
		return -1;
	if (check_numbers(c, in, roles.buffer, false, "the whole buffer is compared, and NaN equals nothing", err) != 0)
		return -1;
	if (roles.indices >= 0 && in[roles.indices].data != NULL)
		return check_indices(inputs[roles.indices].name, &e, writes_slots(c, &roles), &in[roles.indices], err);
	return 0;
}

/* --- the truth ---------------------------------------------------------------------------------------------------- */

/* A case while its truth is computed. */
struct work {
	struct gdn_roles roles;
	struct gdn_extent e;
	const struct tensor *in;
	struct tensor *out;
	struct tensor *buffer; /* NULL: not asked for */
	double scale;
	bool v_last, l2norm, updates, buffer_by_slot;
};

static double *take(int64_t count)
{
	double *memory = calloc((size_t)count + 1, sizeof *memory);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

static int64_t slot_of(const struct work *w, int64_t n)
{
	bool indexed = w->roles.indices >= 0 && w->in[w->roles.indices].data != NULL;

	return indexed ? integer(&w->in[w->roles.indices], n) : n;
}

static void tokens_of(const struct work *w, int64_t n, int64_t *first, int64_t *end)
{
	int offsets = w->roles.cu_seqlens;

	*first = offsets >= 0 ? integer(&w->in[offsets], n) : n * w->e.tokens;
	*end = offsets >= 0 ? integer(&w->in[offsets], n + 1) : (n + 1) * w->e.tokens;
}

static double softplus(double x)
{
	return x > 40 ? x : log1p(exp(x));
}

/* A row of q or k, divided by its norm if that is wanted. */
static void read_row(const struct work *w, int input, int64_t row, double *out)
{
	int64_t dim = w->e.k_dim;
	double square = 0;

	number_read(w->in[input].data, w->in[input].dtype, row * dim, dim, out);
	for (int64_t i = 0; i < dim; i++)
		square += out[i] * out[i];
	for (int64_t i = 0; i < dim && w->l2norm; i++)
		out[i] /= sqrt(square);
}

static inline double dot(const double *a, const double *b, int64_t count)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

static double weight_of(const struct work *w, int input, int64_t index)
{
	return number_get(w->in[input].data, w->in[input].dtype, index);
}

/* One token of value head h; `state` is [V][K]. */
WIDE static void step(const struct work *w, int64_t token, int64_t h, double *state, double *row)
{
	const struct gdn_extent *e = &w->e;
	int64_t place = token * e->v_heads + h, dim = e->k_dim;
	double *q = row, *k = row + dim, *v = row + 2 * dim, *output = v + e->v_dim;
	double x = weight_of(w, w->roles.a, place) + weight_of(w, w->roles.dt_bias, h);
	double g = exp(-exp(weight_of(w, w->roles.a_log, h)) * softplus(x));
	double beta = 1 / (1 + exp(-weight_of(w, w->roles.b, place)));

	read_row(w, w->roles.q, token * e->q_heads + h / (e->v_heads / e->q_heads), q);
	read_row(w, w->roles.k, token * e->k_heads + h / (e->v_heads / e->k_heads), k);
	number_read(w->in[w->roles.v].data, w->in[w->roles.v].dtype, place * e->v_dim, e->v_dim, v);
	for (int64_t i = 0; i < e->v_dim; i++) {
		double *s = state + i * dim;

		for (int64_t j = 0; j < dim; j++)
			s[j] *= g;
		double correction = beta * (v[i] - dot(s, k, dim));

		for (int64_t j = 0; j < dim; j++)
			s[j] += correction * k[j];
		output[i] = w->scale * dot(s, q, dim);
	}
	number_write(w->out[w->roles.output].data, w->out[w->roles.output].dtype, place * e->v_dim, e->v_dim, output);
}

/* [V][K] from `from`, which may be [K][V]; or back, into `to`. */
static void turn(const struct work *w, const double *from, double *to, bool back)
{
	int64_t rows = w->e.v_dim, columns = w->e.k_dim;

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			int64_t ours = i * columns + j, theirs = w->v_last ? j * rows + i : ours;

			to[back ? theirs : ours] = from[back ? ours : theirs];
		}
}

/* A state into the buffer of intermediate ones. `stored` is room for one. */
static void keep(const struct work *w, int64_t n, int64_t token, int64_t h, const double *state, double *stored)
{
	const struct gdn_extent *e = &w->e;
	int64_t row = w->buffer_by_slot ? slot_of(w, n) : n, size = e->v_dim * e->k_dim;

	turn(w, state, stored, true);
	number_write(w->buffer->data, w->buffer->dtype, ((row * e->tokens + token) * e->v_heads + h) * size, size,
		     stored);
}

static void run_head(const struct work *w, int64_t n, int64_t h)
{
	const struct gdn_extent *e = &w->e;
	int64_t size = e->v_dim * e->k_dim, place = (slot_of(w, n) * e->v_heads + h) * size, first, end;
	double *state = take(size), *stored = take(size), *row = take(2 * e->k_dim + 2 * e->v_dim);

	if (w->roles.state >= 0 && w->in[w->roles.state].data != NULL)
		number_read(w->in[w->roles.state].data, w->in[w->roles.state].dtype, place, size, stored);
	turn(w, stored, state, false);
	tokens_of(w, n, &first, &end);
	for (int64_t t = first; t < end; t++) {
		step(w, t, h, state, row);
		if (w->buffer != NULL)
			keep(w, n, t - first, h, state, stored);
	}
	turn(w, state, stored, true);
	if (w->roles.new_state >= 0 && w->updates)
		number_write(w->out[w->roles.new_state].data, w->out[w->roles.new_state].dtype, place, size, stored);
	free(row);
	free(stored);
	free(state);
}

/* The pool as it came in; no state came in: zeros. */
static void copy_states(const struct work *w)
{
	struct tensor *to = &w->out[w->roles.new_state];
	const struct tensor *from = w->roles.state >= 0 ? &w->in[w->roles.state] : NULL;
	bool present = from != NULL && from->data != NULL;

	if (present && from->dtype == to->dtype)
		memcpy(to->data, from->data, (size_t)dtype_bytes(to->dtype, to->elements));
	else
		for (int64_t i = 0; i < to->elements; i++)
			number_set(to->data, to->dtype, i, present ? number_get(from->data, from->dtype, i) : 0);
}

/* The buffer as it came in, to be written to; NULL: it is absent, or not asked for. */
static struct tensor *buffer_of(const struct op_case *c, const struct gdn_roles *roles, const struct tensor *in,
				struct tensor *out)
{
	struct tensor *buffer = roles->buffer >= 0 ? &out[op_own_place(c->problem, roles->buffer)] : NULL;

	if (buffer == NULL || buffer->data == NULL || in[roles->buffer].data == NULL)
		return NULL;
	memcpy(buffer->data, in[roles->buffer].data, (size_t)dtype_bytes(buffer->dtype, buffer->elements));
	return buffer;
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct work w = {
	    .roles = roles,
	    .e = gdn_extent_of(c, &roles),
	    .in = in,
	    .out = out,
	    .scale = gdn_scale(c, &roles),
	    .v_last = (c->variant & GDN_V_LAST) != 0,
	    .l2norm = gdn_l2norm(c, &roles),
	    .updates = gdn_updates(c, &roles),
	};

	if (gdn_check(c, in, err) != 0)
		return -1;
	w.buffer = buffer_of(c, &roles, in, out);
	w.buffer_by_slot = w.buffer != NULL && gdn_buffer_by_slot(c->problem, &roles);
	if (roles.new_state >= 0)
		copy_states(&w);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < w.e.sequences * w.e.v_heads; i++)
		run_head(&w, i / w.e.v_heads, i % w.e.v_heads);
	return 0;
}

static const char *const op_types[] = {"gdn", NULL};

const struct op gdn_op = {
    .name = "gdn",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .leaves = leaves,
    .scalar = scalar,
    .fill = fill,
    .check = gdn_check,
    .oracle = oracle,
    .gradient = &gdn_gradient,
    .probe = probe,
    .probe_axes = probe_axes,
};
