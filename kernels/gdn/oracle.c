#include "kernels/gdn/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/linear_attention/packed.h"
#include "kernels/common/linear_attention/recurrence_work.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/take.h"
#include "kernels/gdn/roles.h"

/* Checks that every sequence of a workload has at least one token. */
static int check_no_sequence_empty(const char *name, const struct tensor *offsets, struct err *err)
{
	for (int64_t n = 1; n < offsets->elements; n++)
		if (check_integer(offsets, n) == check_integer(offsets, n - 1))
			return err_set(
			    err,
			    "%s gives sequence %lld no tokens, and implementations disagree on the new state of a "
			    "sequence without tokens; remove this sequence",
			    name, (long long)n - 1);
	return 0;
}

static int check_offsets(const struct op_case *c, int input, const struct gdn_extent *e, const struct tensor *offsets,
			 struct err *err)
{
	const char *name = c->problem->inputs[input].name;

	if (recurrence_check_offsets(name, e->total, offsets, err) != 0)
		return -1;
	return c->edge != 0 ? 0 : check_no_sequence_empty(name, offsets, err);
}

/* Checks the slots of all sequences. If `writes` is true, sequences write to their slots, so no two sequences may have
 * the same slot. */
static int check_indices(const char *name, const struct gdn_extent *e, bool writes, const struct tensor *indices,
			 struct err *err)
{
	int64_t *owner = take(e->slots, sizeof *owner); /* for each slot, 1 + the number of the sequence that uses it,
							 * or 0 if no sequence uses it */
	int rc = 0;

	for (int64_t n = 0; n < indices->elements && rc == 0; n++) {
		int64_t slot = check_integer(indices, n);

		if (slot < 0 || slot >= e->slots)
			rc = err_set(err, "%s[%lld] is %lld, but must be at least 0 and less than %lld (the number "
					  "of states)", name, (long long)n,
				     (long long)slot, (long long)e->slots);
		else if (writes && owner[slot] != 0)
			rc = err_set(err, "%s[%lld] is slot %lld, which sequence %lld also updates", name, (long long)n,
				     (long long)slot, (long long)owner[slot] - 1);
		else
			owner[slot] = n + 1;
	}
	free(owner);
	return rc;
}

bool gdn_writes_slots(const struct op_case *c, const struct gdn_roles *roles)
{
	return (roles->new_state >= 0 && gdn_updates(c, roles)) ||
	       (roles->buffer >= 0 && gdn_buffer_by_slot(c->problem, roles));
}

/* Returns true if all elements of row `row` of q or k are zero. */
static bool is_zero_row(const struct tensor *tensor, int64_t row, int64_t dim)
{
	for (int64_t i = 0; i < dim; i++)
		if (dtype_load(tensor->data, tensor->dtype, row * dim + i) != 0)
			return false;
	return true;
}

/* If q and k are normalised, checks that no row of a workload's q or k consists of zeros. */
static int check_directions(const struct op_case *c, const struct gdn_roles *roles, const struct gdn_extent *e,
			    const struct tensor *in, struct err *err)
{
	const int both[] = {roles->q, roles->k};
	char place[160];

	for (int i = 0; i < 2 && gdn_l2norm(c, roles); i++) {
		const struct tensor *rows = &in[both[i]];

		for (int64_t row = 0; check_brought(c, in, both[i]) && row < rows->elements / e->k_dim; row++)
			if (is_zero_row(rows, row, e->k_dim))
				return err_set(
				    err,
				    "input '%s' has a row of zeros at %s, which cannot be normalised",
				    c->problem->inputs[both[i]].name,
				    check_place(rows, row * e->k_dim, place, sizeof place));
	}
	return 0;
}

/* Checks that no float input is NaN. If the states are not an output, a state may be NaN, because its slot may be
 * unused. */
static int check_floats(const struct op_case *c, const struct gdn_roles *roles, const struct tensor *in, struct err *err)
{
	for (int i = 0; i < c->problem->input_count; i++)
		if (dtype_is_float(c->problem->inputs[i].dtype) && (i != roles->state || roles->new_state >= 0) &&
		    check_numbers(c, in, i, false, "the result would be NaN, which is not comparable", err) != 0)
			return -1;
	return 0;
}

int gdn_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct gdn_extent e = gdn_extent_of(c, &roles);
	const struct op_arg *inputs = c->problem->inputs;

	if (gdn_check_axes(c, &roles, &e, err) != 0)
		return -1;
	if (roles.cu_seqlens >= 0 && in[roles.cu_seqlens].data != NULL &&
	    check_offsets(c, roles.cu_seqlens, &e, &in[roles.cu_seqlens], err) != 0)
		return -1;
	if (check_floats(c, &roles, in, err) != 0 || check_directions(c, &roles, &e, in, err) != 0)
		return -1;
	if (roles.indices >= 0 && in[roles.indices].data != NULL)
		return check_indices(inputs[roles.indices].name, &e, gdn_writes_slots(c, &roles), &in[roles.indices], err);
	return 0;
}

/* A case for which the ground truth is being computed. */
struct computation {
	struct gdn_roles roles;
	struct gdn_extent e;
	const struct tensor *in;
	struct tensor *out;
	struct tensor *buffer; /* NULL if the case has no buffer, or if the output buffer is not requested */
	struct recurrence_work step; /* the parameters of the gated delta rule for the functions in recurrence_work.h */
	bool updates, buffer_by_slot;
};

static int64_t slot_of(const struct computation *w, int64_t n)
{
	bool indexed = w->roles.indices >= 0 && w->in[w->roles.indices].data != NULL;

	return indexed ? check_integer(&w->in[w->roles.indices], n) : n;
}

static void tokens_of(const struct computation *w, int64_t n, int64_t *first, int64_t *end)
{
	recurrence_token_range(&w->step, w->roles.cu_seqlens < 0 ? NULL : &w->in[w->roles.cu_seqlens], n, w->e.sequences, w->e.tokens, first,
			 end);
}

static double weight_of(const struct computation *w, int input, int64_t index)
{
	return dtype_load(w->in[input].data, w->in[input].dtype, index);
}

/* Returns the decay factor of one token in value head h. */
static double decay_of(const struct computation *w, int64_t token, int64_t h)
{
	double x = weight_of(w, w->roles.a, token * w->e.v_heads + h);

	return recurrence_decay(&w->step, recurrence_gate_by_softplus(&w->step, x, weight_of(w, w->roles.dt_bias, h),
								   weight_of(w, w->roles.a_log, h)));
}

static double beta_of(const struct computation *w, int64_t place)
{
	double b = weight_of(w, w->roles.b, place);

	return w->step.mistake == RECURRENCE_BETA_1 ? 1 : w->step.modes.sigmoid ? recurrence_sigmoid(b) : b;
}

/* Processes one token of value head h with the decay of token `decayed`. `decayed` differs from `token` only if a
 * mistake uses another token's decay. `state` is [V][K]. */
static void step(const struct computation *w, int64_t token, int64_t decayed, int64_t h, double *state,
		 struct recurrence_token *values)
{
	const struct gdn_extent *e = &w->e;
	int64_t place = token * e->v_heads + h;
	double decay = decay_of(w, decayed, h);
	const struct tensor *v = &w->in[w->roles.v], *output = &w->out[w->roles.output];

	recurrence_read_row(&w->step, &w->in[w->roles.q], true, e->q_heads,
			    recurrence_row(&w->step, true, e->q_heads, token, h), values->q);
	recurrence_read_row(&w->step, &w->in[w->roles.k], false, e->k_heads,
			    recurrence_row(&w->step, false, e->k_heads, token, h), values->k);
	dtype_load_run(v->data, v->dtype, place * e->v_dim, e->v_dim, values->v);
	for (int64_t j = 0; j < e->k_dim; j++)
		values->stays[j] = decay;
	values->beta = beta_of(w, place);
	for (int64_t j = 0; j < e->k_dim && w->step.mistake == RECURRENCE_SWAPPED_VALUES; j++)
		values->stays[j] = values->beta;
	if (w->step.mistake == RECURRENCE_SWAPPED_VALUES)
		values->beta = decay;
	recurrence_any_step(&w->step, values, state);
	dtype_store_run(output->data, output->dtype, place * e->v_dim, e->v_dim, values->output);
}

/* Stores a state in the buffer of intermediate states. `stored` is working memory for one state. */
static void keep(const struct computation *w, int64_t n, int64_t token, int64_t h, const double *state, double *stored)
{
	const struct gdn_extent *e = &w->e;
	int64_t row = w->buffer_by_slot ? slot_of(w, n) : n, size = e->v_dim * e->k_dim;

	recurrence_turn(&w->step, state, stored, true);
	dtype_store_run(w->buffer->data, w->buffer->dtype, ((row * e->tokens + token) * e->v_heads + h) * size, size,
		        stored);
}

/* Reads the initial state of sequence n into `state`. With the mistake RECURRENCE_RUNS_ON, `state` keeps the final
 * state of the previous sequence instead. */
static void begin_state(const struct computation *w, int64_t n, int64_t place, double *stored, double *state)
{
	int64_t size = w->e.v_dim * w->e.k_dim;

	if (w->step.mistake == RECURRENCE_RUNS_ON && n > 0)
		return;
	memset(stored, 0, (size_t)size * sizeof *stored);
	if (w->roles.state >= 0 && w->in[w->roles.state].data != NULL && w->step.mistake != RECURRENCE_NO_STATE)
		dtype_load_run(w->in[w->roles.state].data, w->in[w->roles.state].dtype, place, size, stored);
	recurrence_turn(&w->step, stored, state, false);
}

static void run_sequence(const struct computation *w, int64_t n, int64_t h, double *stored, double *state,
			 struct recurrence_token *token)
{
	const struct gdn_extent *e = &w->e;
	int64_t size = e->v_dim * e->k_dim, place = (slot_of(w, n) * e->v_heads + h) * size, first, end;

	begin_state(w, n, place, stored, state);
	tokens_of(w, n, &first, &end);
	for (int64_t i = first; i < end; i++) {
		int64_t t = w->step.mistake == RECURRENCE_BACKWARDS ? first + end - 1 - i : i;

		if (w->step.mistake == RECURRENCE_STATE_AGAIN)
			begin_state(w, n, place, stored, state);
		step(w, t, w->step.mistake == RECURRENCE_DECAY_BEFORE && t > first ? t - 1 : t, h, state, token);
		if (w->buffer != NULL)
			keep(w, n, t - first, h, state, stored);
	}
	if (w->step.mistake == RECURRENCE_LAST_DECAY && end > first)
		recurrence_decay_state(&w->step, token, state);
	recurrence_turn(&w->step, state, stored, true);
	if (w->roles.new_state >= 0 && w->updates)
		dtype_store_run(w->out[w->roles.new_state].data, w->out[w->roles.new_state].dtype, place, size, stored);
}

/* Computes value head h of the sequences first … end - 1. */
static void run_head(const struct computation *w, int64_t first, int64_t end, int64_t h)
{
	int64_t size = w->e.v_dim * w->e.k_dim;
	double *state = take(size, sizeof *state), *stored = take(size, sizeof *stored);
	struct recurrence_token token = recurrence_token_of(w->e.k_dim, w->e.v_dim);

	for (int64_t n = first; n < end; n++)
		run_sequence(w, n, h, stored, state, &token);
	free(token.q);
	free(stored);
	free(state);
}

/* Copies the input pool to the output. Without an input pool, the output is zeros. */
static void copy_states(const struct computation *w)
{
	struct tensor *to = &w->out[w->roles.new_state];
	const struct tensor *from = w->roles.state >= 0 ? &w->in[w->roles.state] : NULL;
	bool present = from != NULL && from->data != NULL;

	if (present && from->dtype == to->dtype)
		memcpy(to->data, from->data, (size_t)dtype_bytes(to->dtype, to->elements));
	else
		for (int64_t i = 0; i < to->elements; i++)
			dtype_store(to->data, to->dtype, i, present ? dtype_load(from->data, from->dtype, i) : 0);
}

/* Copies the input buffer of intermediate states to the output, and returns the output buffer. Returns NULL if there is
 * no buffer, or if the output buffer is not requested. */
static struct tensor *buffer_of(const struct op_case *c, const struct gdn_roles *roles, const struct tensor *in,
				struct tensor *out)
{
	struct tensor *buffer = roles->buffer >= 0 ? &out[op_own_place(c->problem, roles->buffer)] : NULL;

	if (buffer == NULL || buffer->data == NULL || in[roles->buffer].data == NULL)
		return NULL;
	memcpy(buffer->data, in[roles->buffer].data, (size_t)dtype_bytes(buffer->dtype, buffer->elements));
	return buffer;
}

/* Returns the gated delta rule of the case, changed by the mistake if there is one. */
static struct recurrence_work delta_rule_of(const struct op_case *c, const struct gdn_roles *roles, const struct gdn_extent *e,
					    const struct tensor *in)
{
	bool raw = c->mistake == RECURRENCE_RAW_BETA ||
		   (c->mistake == RECURRENCE_BETA_BY_VALUE && !recurrence_looks_raw(&in[roles->b]));

	return (struct recurrence_work){
	    .roles = {.a_log = roles->a_log, .dt_bias = roles->dt_bias, .cu_seqlens = roles->cu_seqlens,
		      .l2norm = roles->l2norm},
	    .e = {.sequences = e->sequences, .tokens = e->tokens, .total = e->total, .v_heads = e->v_heads,
		  .q_heads = e->q_heads < e->k_heads ? e->q_heads : e->k_heads, .k_dim = e->k_dim, .v_dim = e->v_dim},
	    .modes = {.gate = RECURRENCE_GATE_SOFTPLUS, .sigmoid = !raw, .scale = gdn_scale(c, roles),
		      .l2norm = gdn_l2norm(c, roles) != (c->mistake == RECURRENCE_OTHER_L2NORM),
		      .v_first = (c->variant & GDN_V_LAST) == 0},
	    .delta = true,
	    .may_sigmoid = true,
	    .mistake = c->mistake,
	    .by = c->mistake_by,
	};
}

int gdn_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct computation w = {
	    .roles = roles,
	    .e = gdn_extent_of(c, &roles),
	    .in = in,
	    .out = out,
	    .updates = gdn_updates(c, &roles),
	};

	if (gdn_check(c, in, err) != 0)
		return -1;
	w.step = delta_rule_of(c, &roles, &w.e, in);
	if (!recurrence_has(&w.step))
		return err_set(err, "this mistake would change nothing in this case");
	w.buffer = buffer_of(c, &roles, in, out);
	w.buffer_by_slot = w.buffer != NULL && gdn_buffer_by_slot(c->problem, &roles);
	if (roles.new_state >= 0)
		copy_states(&w);
	if (c->mistake == RECURRENCE_RUNS_ON)
		for (int64_t h = 0; h < w.e.v_heads; h++)
			run_head(&w, 0, w.e.sequences, h);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < (c->mistake == RECURRENCE_RUNS_ON ? 0 : w.e.sequences * w.e.v_heads); i++)
		run_head(&w, i / w.e.v_heads, i / w.e.v_heads + 1, i % w.e.v_heads);
	return 0;
}
