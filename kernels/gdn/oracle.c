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
			    "%s gives sequence %lld no token, and implementations differ in the new state of such a "
			    "sequence; remove the sequence",
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

/* Checks the slots of all sequences. If `writes` is set, sequences write to their slots, and no two sequences may have
 * the same slot. */
static int check_indices(const char *name, const struct gdn_extent *e, bool writes, const struct tensor *indices,
			 struct err *err)
{
	int64_t *owner = take(e->slots, sizeof *owner); /* for each slot, 1 + its sequence, or 0 */
	int rc = 0;

	for (int64_t n = 0; n < indices->elements && rc == 0; n++) {
		int64_t slot = check_integer(indices, n);

		if (slot < 0 || slot >= e->slots)
			rc = err_set(err, "%s[%lld] is %lld, but the %lld states are numbered from "
					  "0", name, (long long)n,
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

/* Are all elements of row `row` of q or k zero? */
static bool is_zero_row(const struct tensor *tensor, int64_t row, int64_t dim)
{
	for (int64_t i = 0; i < dim; i++)
		if (dtype_load(tensor->data, tensor->dtype, row * dim + i) != 0)
			return false;
	return true;
}

/* If q and k are normalised, checks that no row of q or k that a workload provides is all zeros. */
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

/* Checks that no float input is NaN. If the states are not part of the output, a state may be NaN, because its slot may
 * be unused. */
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

/* A case for which the truth is being computed. */
struct computation {
	struct gdn_roles roles;
	struct gdn_extent e;
	const struct tensor *in;
	struct tensor *out;
	struct tensor *buffer; /* NULL if the case does not request this output */
	struct recurrence_work step; /* the delta rule with a gate, for recurrence_step and recurrence_turn */
	bool l2norm, updates, buffer_by_slot;
};

static int64_t slot_of(const struct computation *w, int64_t n)
{
	bool indexed = w->roles.indices >= 0 && w->in[w->roles.indices].data != NULL;

	return indexed ? check_integer(&w->in[w->roles.indices], n) : n;
}

static void tokens_of(const struct computation *w, int64_t n, int64_t *first, int64_t *end)
{
	int offsets = w->roles.cu_seqlens;

	*first = offsets >= 0 ? check_integer(&w->in[offsets], n) : n * w->e.tokens;
	*end = offsets >= 0 ? check_integer(&w->in[offsets], n + 1) : (n + 1) * w->e.tokens;
}

/* Reads a row of q or k, and normalises it if the case has the l2norm option. */
static void read_row(const struct computation *w, int input, int64_t row, double *out)
{
	int64_t dim = w->e.k_dim;
	double square = 0;

	dtype_load_run(w->in[input].data, w->in[input].dtype, row * dim, dim, out);
	for (int64_t i = 0; i < dim; i++)
		square += out[i] * out[i];
	for (int64_t i = 0; i < dim && w->l2norm != ((w->step.mistake == RECURRENCE_Q_NORM && input == w->roles.q) ||
					      (w->step.mistake == RECURRENCE_K_NORM && input == w->roles.k));
	     i++)
		out[i] /= sqrt(square);
}

static double weight_of(const struct computation *w, int input, int64_t index)
{
	return dtype_load(w->in[input].data, w->in[input].dtype, index);
}

/* Processes one token of value head h. `state` is [V][K]. */
static void step(const struct computation *w, int64_t token, int64_t h, double *state, struct recurrence_token *values)
{
	const struct gdn_extent *e = &w->e;
	int64_t place = token * e->v_heads + h;
	double x = weight_of(w, w->roles.a, place) + weight_of(w, w->roles.dt_bias, h);
	double rate = weight_of(w, w->roles.a_log, h), soft = w->step.mistake == RECURRENCE_SOFTPLUS ? x : recurrence_softplus(x);
	double log_decay = -(w->step.mistake == RECURRENCE_NO_A_EXP ? rate : exp(rate)) * soft;
	double g = w->step.mistake == RECURRENCE_NO_EXP ? log_decay : exp(log_decay);
	bool tiled = w->step.mistake == RECURRENCE_TILED;
	const struct tensor *v = &w->in[w->roles.v], *output = &w->out[w->roles.output];

	read_row(w, w->roles.q, token * e->q_heads + (tiled ? h % e->q_heads : h / (e->v_heads / e->q_heads)), values->q);
	read_row(w, w->roles.k, token * e->k_heads + (tiled ? h % e->k_heads : h / (e->v_heads / e->k_heads)), values->k);
	dtype_load_run(v->data, v->dtype, place * e->v_dim, e->v_dim, values->v);
	for (int64_t j = 0; j < e->k_dim; j++)
		values->stays[j] = g;
	values->beta = recurrence_sigmoid(weight_of(w, w->roles.b, place));
	if (w->step.mistake == RECURRENCE_BETA_1)
		values->beta = 1;
	if (w->step.mistake == RECURRENCE_RAW_BETA)
		values->beta = weight_of(w, w->roles.b, place);
	recurrence_any_step(&w->step, values, state);
	dtype_store_run(output->data, output->dtype, place * e->v_dim, e->v_dim, values->output);
}

/* Stores a state in the buffer of intermediate states. `stored` has space for one state. */
static void keep(const struct computation *w, int64_t n, int64_t token, int64_t h, const double *state, double *stored)
{
	const struct gdn_extent *e = &w->e;
	int64_t row = w->buffer_by_slot ? slot_of(w, n) : n, size = e->v_dim * e->k_dim;

	recurrence_turn(&w->step, state, stored, true);
	dtype_store_run(w->buffer->data, w->buffer->dtype, ((row * e->tokens + token) * e->v_heads + h) * size, size,
		        stored);
}

static void run_head(const struct computation *w, int64_t n, int64_t h)
{
	const struct gdn_extent *e = &w->e;
	int64_t size = e->v_dim * e->k_dim, place = (slot_of(w, n) * e->v_heads + h) * size, first, end;
	double *state = take(size, sizeof *state), *stored = take(size, sizeof *stored);
	struct recurrence_token token = recurrence_token_of(e->k_dim, e->v_dim);

	if (w->roles.state >= 0 && w->in[w->roles.state].data != NULL)
		dtype_load_run(w->in[w->roles.state].data, w->in[w->roles.state].dtype, place, size, stored);
	recurrence_turn(&w->step, stored, state, false);
	tokens_of(w, n, &first, &end);
	end -= w->step.mistake == RECURRENCE_LAST_TOKEN && end > first;
	for (int64_t t = first; t < end; t++) {
		step(w, t, h, state, &token);
		if (w->buffer != NULL)
			keep(w, n, t - first, h, state, stored);
	}
	recurrence_turn(&w->step, state, stored, true);
	if (w->roles.new_state >= 0 && w->updates)
		dtype_store_run(w->out[w->roles.new_state].data, w->out[w->roles.new_state].dtype, place, size, stored);
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
 * no buffer or its output is not requested. */
static struct tensor *buffer_of(const struct op_case *c, const struct gdn_roles *roles, const struct tensor *in,
				struct tensor *out)
{
	struct tensor *buffer = roles->buffer >= 0 ? &out[op_own_place(c->problem, roles->buffer)] : NULL;

	if (buffer == NULL || buffer->data == NULL || in[roles->buffer].data == NULL)
		return NULL;
	memcpy(buffer->data, in[roles->buffer].data, (size_t)dtype_bytes(buffer->dtype, buffer->elements));
	return buffer;
}

int gdn_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct computation w = {
	    .roles = roles,
	    .e = gdn_extent_of(c, &roles),
	    .in = in,
	    .out = out,
	    .l2norm = gdn_l2norm(c, &roles),
	    .updates = gdn_updates(c, &roles),
	};

	if (gdn_check(c, in, err) != 0)
		return -1;
	w.step.delta = true;
	w.step.mistake = c->mistake;
	w.step.e.k_dim = w.e.k_dim;
	w.step.e.v_dim = w.e.v_dim;
	w.step.modes.scale = gdn_scale(c, &roles);
	w.step.modes.v_first = (c->variant & GDN_V_LAST) == 0;
	w.buffer = buffer_of(c, &roles, in, out);
	w.buffer_by_slot = w.buffer != NULL && gdn_buffer_by_slot(c->problem, &roles);
	if (roles.new_state >= 0)
		copy_states(&w);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < w.e.sequences * w.e.v_heads; i++)
		run_head(&w, i / w.e.v_heads, i % w.e.v_heads);
	return 0;
}
