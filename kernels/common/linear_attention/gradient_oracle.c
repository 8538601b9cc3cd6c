#include "kernels/common/linear_attention/gradient_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence_work.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

enum { KEPT_EVERY = 64 }; /* the number of tokens between two saved states */

/* The working data of a gradient case. of[i] is the gradient of input i of the definition, or NULL if it is not
 * requested. If all sequences share an input, such as A_log, `of` has one gradient for each sequence, so that threads
 * do not write to the same memory. */
struct reverse {
	struct recurrence_work w;
	const struct tensor *output, *new_state; /* the given gradients of the outputs; new_state: NULL if there is no
						  * final state */
	double *of[OP_ARGS];
};

/* The values of one token of one head, and the gradients with respect to these values. */
struct turned {
	struct recurrence_token token;
	double *given;		   /* the given gradient of the output [V] */
	double *q, *k, *v, *stays; /* the gradients of q, k, v and e^g */
	double beta;
};

static double *buffer(const struct reverse *r, int role)
{
	return role >= 0 ? r->of[role] : NULL;
}

static void add(double *to, int64_t index, double value)
{
	if (to != NULL)
		to[index] += value;
}

static double raw(const struct reverse *r, int input, int64_t index)
{
	return dtype_load(r->w.in[input].data, r->w.in[input].dtype, index);
}

/* --- gradients through one token ---------------------------------------------------------------------------------- */

/* Propagates the gradient through one token, for row i of the state. `before` and `after` are row i of the state before
 * and after the token. On entry, `d` is the gradient of `after`; on return, it is the gradient of `before`. */
static inline void reverse_row(const struct recurrence_work *w, int64_t i, const double *before, const double *after,
			       double *d, struct turned *x)
{
	const double *q = x->token.q, *k = x->token.k, *stays = x->token.stays, given = w->modes.scale * x->given[i];
	int64_t dim = w->e.k_dim;
	double held = 0, learning = 0;

	for (int64_t j = 0; j < dim; j++) {
		x->q[j] += given * after[j];
		d[j] += given * q[j];
		held += stays[j] * before[j] * k[j];
		learning += d[j] * k[j];
	}
	double unknown = w->delta ? x->token.v[i] - held : x->token.v[i];
	double strength = w->delta ? x->token.beta : 1, correcting = w->delta ? strength * learning : 0;

	x->beta += learning * unknown;
	x->v[i] = strength * learning;
	for (int64_t j = 0; j < dim; j++) {
		x->k[j] += d[j] * strength * unknown - correcting * stays[j] * before[j];
		d[j] -= correcting * k[j];
		x->stays[j] += d[j] * before[j];
		d[j] *= stays[j];
	}
}

WIDE static void reverse_token(const struct recurrence_work *w, const double *before, const double *after, double *d,
			       struct turned *x)
{
	for (int64_t j = 0; j < w->e.k_dim; j++)
		x->q[j] = x->k[j] = x->stays[j] = 0;
	x->beta = 0;
	for (int64_t i = 0; i < w->e.v_dim; i++)
		reverse_row(w, i, before + i * w->e.k_dim, after + i * w->e.k_dim, d + i * w->e.k_dim, x);
}

/* --- gradients through the preprocessing of the inputs ------------------------------------------------------------ */

/* Adds the gradient of a row of q or k. The gradient of y = x / |x| is dx = (dy - y (y . dy)) / |x|. */
static void give_row(const struct reverse *r, int input, int64_t row, const double *y, const double *dy)
{
	int64_t dim = r->w.e.k_dim;
	double *to = buffer(r, input), square = 0, along = 0;

	if (to == NULL)
		return;
	for (int64_t j = 0; j < dim && r->w.modes.l2norm; j++) {
		square += raw(r, input, row * dim + j) * raw(r, input, row * dim + j);
		along += y[j] * dy[j];
	}
	for (int64_t j = 0; j < dim; j++)
		to[row * dim + j] += !r->w.modes.l2norm ? dy[j]
				     : square > 0	? (dy[j] - y[j] * along) / sqrt(square)
							: 0;
}

static void give_beta(const struct reverse *r, int64_t place, double gradient)
{
	double *to = buffer(r, r->w.roles.beta);

	if (to == NULL)
		return;
	if (r->w.modes.doubled)
		gradient *= 2;
	if (r->w.modes.sigmoid) {
		double s = recurrence_sigmoid(raw(r, r->w.roles.beta, place));

		gradient *= s * (1 - s);
	}
	to[place] += gradient;
}

/* Adds the gradients of the inputs from which the gate is computed. `log` is the gradient of g, the logarithm of the
 * decay, and n is the sequence. `place` and `weight` have the same meaning as the parameters of the function `gate` in
 * recurrence.c. */
static void give_gate(const struct reverse *r, int64_t n, int64_t place, int64_t h, int64_t weight, double log)
{
	const struct recurrence_roles *roles = &r->w.roles;
	int64_t heads = r->w.e.v_heads, biases = heads * (r->w.by_key ? r->w.e.k_dim : 1);

	if (r->w.modes.gate == RECURRENCE_GATE_NONE)
		return;
	if (r->w.modes.gate == RECURRENCE_GATE_LOG) {
		if (roles->gamma >= 0)
			add(buffer(r, roles->gamma), n * heads + h, log);
		else
			add(buffer(r, roles->gate), place, log);
		return;
	}
	double x = raw(r, roles->gate, place) + (roles->dt_bias >= 0 ? raw(r, roles->dt_bias, weight) : 0);
	double rate = roles->a_log >= 0 ? exp(raw(r, roles->a_log, h)) : 1, of_x, of_rate;

	if (r->w.modes.gate == RECURRENCE_GATE_SOFTPLUS) {
		of_x = -rate * recurrence_sigmoid(x) * log;
		of_rate = -recurrence_softplus(x) * log;
	} else {
		double s = recurrence_sigmoid(rate * x), of_product = r->w.modes.lower_bound * s * (1 - s) * log;

		of_x = rate * of_product;
		of_rate = x * of_product;
	}
	add(buffer(r, roles->gate), place, of_x);
	add(buffer(r, roles->dt_bias), n * biases + weight, of_x);
	add(buffer(r, roles->a_log), n * heads + h, rate * of_rate);
}

static void give_back(const struct reverse *r, int64_t n, int64_t t, int64_t h, const struct turned *x)
{
	const struct recurrence_extent *e = &r->w.e;
	int64_t place = t * e->v_heads + h, row = t * e->q_heads + h / (e->v_heads / e->q_heads);
	double *v = buffer(r, r->w.roles.v), all = 0;

	give_row(r, r->w.roles.q, row, x->token.q, x->q);
	give_row(r, r->w.roles.k, row, x->token.k, x->k);
	for (int64_t i = 0; i < e->v_dim; i++)
		add(v, place * e->v_dim + i, x->v[i]);
	give_beta(r, place, x->beta);
	for (int64_t j = 0; j < e->k_dim; j++) {
		double log = x->stays[j] * x->token.stays[j];

		all += log;
		if (r->w.by_key)
			give_gate(r, n, place * e->k_dim + j, h, h * e->k_dim + j, log);
	}
	if (!r->w.by_key)
		give_gate(r, n, place, h, h, all);
}

/* --- gradients through a sequence --------------------------------------------------------------------------------- */

/* Reads the [V][K] state of one head of sequence n from a tensor of states. Writes zeros if there is no such tensor. */
static void read_state(const struct reverse *r, const struct tensor *states, int64_t n, int64_t h, double *out)
{
	int64_t size = r->w.e.v_dim * r->w.e.k_dim;
	double *stored = take(size, sizeof *stored);

	if (states != NULL && states->data != NULL)
		dtype_load_run(states->data, states->dtype, (n * r->w.e.v_heads + h) * size, size, stored);
	recurrence_turn(&r->w, stored, out, false);
	free(stored);
}

static void give_state(const struct reverse *r, int64_t n, int64_t h, const double *d)
{
	double *to = buffer(r, r->w.roles.state);
	int64_t size = r->w.e.v_dim * r->w.e.k_dim;

	if (to != NULL)
		recurrence_turn(&r->w, d, to + (n * r->w.e.v_heads + h) * size, true);
}

/* Recomputes states. On entry, states[0] is the state before token t. Writes the states after token t, token t + 1 and
 * so on to states[1], states[2], … */
static void go_forward(const struct reverse *r, int64_t t, int64_t count, int64_t h, struct turned *x, double *states)
{
	int64_t size = r->w.e.v_dim * r->w.e.k_dim;

	for (int64_t i = 0; i < count; i++) {
		memcpy(states + (i + 1) * size, states + i * size, (size_t)size * sizeof *states);
		recurrence_read(&r->w, t + i, h, &x->token);
		recurrence_step(&r->w, &x->token, states + (i + 1) * size);
	}
}

static void go_back(const struct reverse *r, int64_t n, int64_t t, int64_t count, int64_t h, struct turned *x,
		    const double *states, double *d)
{
	int64_t size = r->w.e.v_dim * r->w.e.k_dim;

	for (int64_t i = count - 1; i >= 0; i--) {
		int64_t place = (t + i) * r->w.e.v_heads + h;

		recurrence_read(&r->w, t + i, h, &x->token);
		dtype_load_run(r->output->data, r->output->dtype, place * r->w.e.v_dim, r->w.e.v_dim, x->given);
		reverse_token(&r->w, states + i * size, states + (i + 1) * size, d, x);
		give_back(r, n, t + i, h, x);
	}
}

static void point_into(struct turned *x, double *room, int64_t k_dim, int64_t v_dim)
{
	double **const of_keys[] = {&x->token.q, &x->token.k, &x->token.stays, &x->q, &x->k, &x->stays};
	double **const of_values[] = {&x->token.v, &x->token.output, &x->given, &x->v};

	for (int i = 0; i < 6; i++, room += k_dim)
		*of_keys[i] = room;
	for (int i = 0; i < 4; i++, room += v_dim)
		*of_values[i] = room;
}

static void reverse_head(const struct reverse *r, int64_t n, int64_t h)
{
	const struct recurrence_extent *e = &r->w.e;
	int64_t size = e->v_dim * e->k_dim, first, end, stretch = KEPT_EVERY * size;
	struct turned x = {0};

	recurrence_tokens(&r->w, n, &first, &end);
	int64_t stretches = (end - first + KEPT_EVERY - 1) / KEPT_EVERY;
	double *kept = take((stretches + 1) * size, sizeof *kept), *states = take(stretch + size, sizeof *states);
	double *d = take(size, sizeof *d), *room = take(6 * e->k_dim + 4 * e->v_dim, sizeof *room);

	point_into(&x, room, e->k_dim, e->v_dim);
	read_state(r, r->w.roles.state >= 0 ? &r->w.in[r->w.roles.state] : NULL, n, h, kept);
	read_state(r, r->new_state, n, h, d);
	for (int64_t s = 0; s + 1 < stretches; s++) {
		memcpy(states, kept + s * size, (size_t)size * sizeof *states);
		go_forward(r, first + s * KEPT_EVERY, KEPT_EVERY, h, &x, states);
		memcpy(kept + (s + 1) * size, states + stretch, (size_t)size * sizeof *states);
	}
	for (int64_t s = stretches - 1; s >= 0; s--) {
		int64_t t = first + s * KEPT_EVERY, count = end - t < KEPT_EVERY ? end - t : KEPT_EVERY;

		memcpy(states, kept + s * size, (size_t)size * sizeof *states);
		go_forward(r, t, count, h, &x, states);
		go_back(r, n, t, count, h, &x, states, d);
	}
	give_state(r, n, h, d);
	free(room);
	free(d);
	free(states);
	free(kept);
}

/* --- the whole case ----------------------------------------------------------------------------------------------- */

static bool is_weight(const struct recurrence_roles *roles, int input)
{
	return input == roles->gamma || input == roles->a_log || input == roles->dt_bias;
}

static void sum_sequences(double *parts, int64_t elements, int64_t sequences)
{
	for (int64_t n = 1; n < sequences; n++)
		for (int64_t i = 0; i < elements; i++)
			parts[i] += parts[n * elements + i];
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct gradient_forward forward;
	const struct op_case *f = gradient_forward_of(c, &forward);
	struct reverse r = {.w = recurrence_work_of(f, in, NULL)};
	const struct recurrence_roles *roles = &r.w.roles;

	if (recurrence_check(f, in, err) != 0)
		return -1;
	r.output = &in[gradient_given_of(c->problem, roles->output)];
	r.new_state = roles->new_state >= 0 ? &in[gradient_given_of(c->problem, roles->new_state)] : NULL;
	for (int i = 0; i < c->problem->output_count; i++) {
		int input = gradient_input_of(c->problem, i);

		if (!gradient_is_slope(&c->problem->outputs[i]))
			r.of[input] = take(out[i].elements * (is_weight(roles, input) ? r.w.e.sequences + 1 : 1),
					   sizeof *r.of[input]);
	}
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < r.w.e.sequences * r.w.e.q_heads; i++) { /* one thread processes all value heads that
									 * share a head of q, because they add to the
									 * same gradients */
		int64_t sharing = r.w.e.v_heads / r.w.e.q_heads, h = i % r.w.e.q_heads * sharing;

		for (int64_t k = 0; k < sharing; k++)
			reverse_head(&r, i / r.w.e.q_heads, h + k);
	}
	for (int i = 0; i < c->problem->output_count; i++) {
		int input = gradient_input_of(c->problem, i);

		if (gradient_is_slope(&c->problem->outputs[i])) {
			dtype_store(out[i].data, out[i].dtype, 0, gradient_slope(c, in, input, r.of[input]));
			continue;
		}
		if (is_weight(roles, input))
			sum_sequences(r.of[input], out[i].elements, r.w.e.sequences);
		dtype_store_run(out[i].data, out[i].dtype, 0, out[i].elements, r.of[input]);
	}
	for (int i = 0; i < f->problem->input_count; i++)
		free(r.of[i]);
	return 0;
}

static struct rule rule(const struct op_case *c, int output)
{
	struct gradient_forward forward;
	const struct op_case *f = gradient_forward_of(c, &forward);
	struct recurrence_roles roles = recurrence_roles_of(f->problem);
	int input = gradient_input_of(c->problem, output);
	bool summed = input == roles.gate || input == roles.beta || is_weight(&roles, input);

	if (gradient_is_slope(&c->problem->outputs[output]))
		return (struct rule){0, 1e-2, 1};
	if (c->problem->outputs[output].dtype == DTYPE_FLOAT64)
		return (struct rule){0, 1e-4, 1};
	return (struct rule){0, summed ? 0.02 : 0.005, 1};
}

static double scalar(const struct op_case *c, int input)
{
	struct gradient_forward forward;

	return recurrence_scalar(gradient_forward_of(c, &forward), input);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return gradient_fill(c, input, out, recurrence_fill_for_gradients, err);
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct gradient_forward forward;

	return recurrence_check(gradient_forward_of(c, &forward), in, err);
}

const struct op recurrence_gradient = {
    .name = "recurrence_gradient",
    .on_host = true,
    .rule = rule,
    .scalar = scalar,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .weigh = gradient_weigh,
};
