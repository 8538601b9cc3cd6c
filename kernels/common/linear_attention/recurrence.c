/* recurrence - the CPU oracle of linear attention, in double. The oracle computes each head of each sequence
 * separately, token after token, and rounds only when it stores an output. */
#include "kernels/common/linear_attention/recurrence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence_work.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

static double number(const struct recurrence_work *w, int input, int64_t index)
{
	return dtype_load(w->in[input].data, w->in[input].dtype, index);
}

double recurrence_sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

double recurrence_softplus(double x)
{
	return x > 40 ? x : log1p(exp(x));
}

/* Returns g, the logarithm of the decay. `place` is the index of the element of the gate input, h is its head, and
 * `weight` is the index of its element of dt_bias. */
static double gate(const struct recurrence_work *w, int64_t place, int64_t h, int64_t weight)
{
	const struct recurrence_roles *roles = &w->roles;

	if (w->modes.gate == RECURRENCE_GATE_NONE)
		return 0;
	if (w->modes.gate == RECURRENCE_GATE_LOG)
		return roles->gamma >= 0 ? number(w, roles->gamma, h) : number(w, roles->gate, place);
	double bias = roles->dt_bias >= 0 ? number(w, roles->dt_bias, weight) : 0, x = number(w, roles->gate, place) + bias;
	double rate = roles->a_log >= 0 ? exp(number(w, roles->a_log, h)) : 1;

	if (w->mistake == RECURRENCE_NO_A_EXP && roles->a_log >= 0)
		rate = number(w, roles->a_log, h);
	if (w->mistake == RECURRENCE_SOFTPLUS && w->modes.gate == RECURRENCE_GATE_SOFTPLUS)
		return -rate * x;
	if (w->mistake == RECURRENCE_BOUND_SOFTPLUS)
		return -rate * recurrence_softplus(x);
	if (w->mistake == RECURRENCE_A_ON_GATE && w->modes.gate != RECURRENCE_GATE_SOFTPLUS)
		return w->modes.lower_bound * recurrence_sigmoid(rate * (x - bias) + bias);
	return w->modes.gate == RECURRENCE_GATE_SOFTPLUS ? -rate * recurrence_softplus(x)
	                                                 : w->modes.lower_bound * recurrence_sigmoid(rate * x);
}

static bool normalises(const struct recurrence_work *w, int input)
{
	bool other = (w->mistake == RECURRENCE_Q_NORM && input == w->roles.q) ||
		     (w->mistake == RECURRENCE_K_NORM && input == w->roles.k);

	return w->modes.l2norm != other;
}

/* Returns the decay of gate g. */
static double decay_of(const struct recurrence_work *w, double g)
{
	switch (w->mistake) {
	case RECURRENCE_NO_EXP:
		return g;
	case RECURRENCE_BASE_2:
		return exp2(g);
	case RECURRENCE_SIGMOID_GATE:
		return recurrence_sigmoid(g);
	default:
		return exp(g);
	}
}

/* Reads a row of q or k, and normalises it if requested. A row of zeros remains zeros. */
static void read_row(const struct recurrence_work *w, int input, int64_t row, double *out)
{
	int64_t dim = w->e.k_dim;
	double square = 0;

	dtype_load_run(w->in[input].data, w->in[input].dtype, row * dim, dim, out);
	for (int64_t i = 0; i < dim; i++)
		square += out[i] * out[i];
	for (int64_t i = 0; i < dim && normalises(w, input) && square > 0; i++)
		out[i] /= sqrt(square);
}

/* Rounds numbers. */
static void round_row(double *s, int64_t dim, bool bfloat16, bool float16)
{
	for (int64_t j = 0; j < dim && bfloat16; j++)
		s[j] = (double)float_from_bf16(bf16_from_float((float)s[j]));
	for (int64_t j = 0; j < dim && float16; j++)
		s[j] = (double)float_from_f16(f16_from_float((float)s[j]));
}

/* Gives every key the decay of the mean gate. */
static void mean_decay(double *stays, int64_t keys)
{
	double sum = 0;

	for (int64_t j = 0; j < keys; j++)
		sum += log(stays[j]);
	for (int64_t j = 0; j < keys; j++)
		stays[j] = exp(sum / (double)keys);
}

void recurrence_read(const struct recurrence_work *w, int64_t t, int64_t h, struct recurrence_token *token)
{
	const struct recurrence_extent *e = &w->e;
	int64_t place = t * e->v_heads + h, row = t * e->q_heads + (w->mistake == RECURRENCE_TILED ? h % e->q_heads : h / (e->v_heads / e->q_heads));
	bool swapped = w->mistake == RECURRENCE_SWAPPED;

	read_row(w, w->roles.q, row, swapped ? token->k : token->q);
	read_row(w, w->roles.k, row, swapped ? token->q : token->k);
	dtype_load_run(w->in[w->roles.v].data, w->in[w->roles.v].dtype, place * e->v_dim, e->v_dim, token->v);
	if (!w->by_key)
		token->stays[0] = decay_of(w, gate(w, place, h, h));
	for (int64_t j = 0; j < e->k_dim; j++)
		token->stays[j] = w->by_key ? decay_of(w, gate(w, place * e->k_dim + j, h, h * e->k_dim + j)) : token->stays[0];
	round_row(token->stays, e->k_dim, w->mistake == RECURRENCE_ROUNDED_STAYS, w->mistake == RECURRENCE_HALF_STAYS);
	if (w->mistake == RECURRENCE_MEAN_GATE)
		mean_decay(token->stays, e->k_dim);
	for (int64_t j = 0; j < e->k_dim && w->mistake == RECURRENCE_FIRST_GATE; j++)
		token->stays[j] = token->stays[0];
	token->beta = w->delta ? number(w, w->roles.beta, place) : 0;
	if (w->modes.sigmoid)
		token->beta = recurrence_sigmoid(token->beta);
	if (w->modes.doubled)
		token->beta *= 2;
	if (w->mistake == RECURRENCE_BETA_1)
		token->beta = 1;
}

static inline double dot(const double *a, const double *b, int64_t count)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Computes one step of the recurrence. `state` is [V][K]; its rows are independent. */
WIDE void recurrence_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	int64_t dim = w->e.k_dim;

	for (int64_t i = 0; i < w->e.v_dim; i++) {
		double *s = state + i * dim;

		for (int64_t j = 0; j < dim; j++)
			s[j] *= token->stays[j];
		double learnt = w->delta ? token->beta * (token->v[i] - dot(s, token->k, dim)) : token->v[i];

		for (int64_t j = 0; j < dim; j++)
			s[j] += learnt * token->k[j];
		token->output[i] = w->modes.scale * dot(s, token->q, dim);
	}
}

/* Copies the state `from`, which may be [K][V], to [V][K]; if `back`, copies a [V][K] state to the layout of `to`. */
void recurrence_turn(const struct recurrence_work *w, const double *from, double *to, bool back)
{
	int64_t rows = w->e.v_dim, columns = w->e.k_dim;

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			int64_t ours = i * columns + j, theirs = w->modes.v_first ? ours : j * rows + i;

			to[back ? theirs : ours] = from[back ? ours : theirs];
		}
}

/* Returns what is learnt for a value, from the value that the state had for the key. */
static double mistaken_learnt(const struct recurrence_work *w, const struct recurrence_token *token, double value,
			      double recalled)
{
	if (!w->delta)
		return value;
	if (w->mistake == RECURRENCE_VALUE_STRENGTH)
		return token->beta * value - recalled;
	return token->beta * (value - (w->mistake == RECURRENCE_NOT_ERASED ? 0 : recalled));
}

/* Computes one step with a mistake. */
static void mistaken_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	int64_t dim = w->e.k_dim;
	const double *key = w->mistake == RECURRENCE_RECALL_QUERY ? token->q : token->k;

	for (int64_t i = 0; i < w->e.v_dim; i++) {
		double *s = state + i * dim, recalled;

		round_row(s, dim, w->mistake == RECURRENCE_ROUNDED_BEFORE, w->mistake == RECURRENCE_HALF_BEFORE);
		recalled = dot(s, key, dim);
		for (int64_t j = 0; j < dim && w->mistake != RECURRENCE_DECAY_LAST; j++)
			s[j] *= token->stays[j];
		round_row(s, dim, w->mistake == RECURRENCE_ROUNDED_DECAYED, w->mistake == RECURRENCE_HALF_DECAYED);
		if (w->mistake != RECURRENCE_RECALL_FIRST)
			recalled = dot(s, key, dim);
		double before = dot(s, token->q, dim), learnt = mistaken_learnt(w, token, token->v[i], recalled);

		for (int64_t j = 0; j < dim; j++)
			s[j] = (w->mistake == RECURRENCE_ADDED_NOTHING ? 0 : s[j]) + learnt * token->k[j];
		for (int64_t j = 0; j < dim && w->mistake == RECURRENCE_DECAY_LAST; j++)
			s[j] *= token->stays[j];
		token->output[i] = w->modes.scale * (w->mistake == RECURRENCE_ANSWER_FIRST ? before : dot(s, token->q, dim));
		round_row(s, dim, w->mistake == RECURRENCE_ROUNDED_STATE, w->mistake == RECURRENCE_HALF_STATE);
	}
}

void recurrence_any_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	if (w->mistake == RECURRENCE_NO_MISTAKE || w->mistake >= RECURRENCE_SOFTPLUS)
		recurrence_step(w, token, state);
	else
		mistaken_step(w, token, state);
}

void recurrence_tokens(const struct recurrence_work *w, int64_t n, int64_t *first, int64_t *end)
{
	int offsets = w->roles.cu_seqlens;

	*first = offsets >= 0 ? check_integer(&w->in[offsets], n) : n * w->e.tokens;
	*end = offsets >= 0 ? check_integer(&w->in[offsets], n + 1) : (n + 1) * w->e.tokens;
}

struct recurrence_token recurrence_token_of(int64_t k_dim, int64_t v_dim)
{
	double *row = take(3 * k_dim + 2 * v_dim, sizeof *row), *v = row + 3 * k_dim;

	return (struct recurrence_token){.q = row, .k = row + k_dim, .stays = row + 2 * k_dim, .v = v, .output = v + v_dim};
}

/* Returns the number of tokens after which a reference with this mistake loses the state, or 0. */
static int64_t chunk_of(int mistake)
{
	return mistake >= RECURRENCE_CHUNKS_16 && mistake <= RECURRENCE_CHUNKS_128 ? INT64_C(16) << (mistake - RECURRENCE_CHUNKS_16) : 0;
}

/* Reads the initial state of sequence n. `state` has the final state of the sequence before, if the mistake needs it. */
static void begin_state(const struct recurrence_work *w, int64_t n, int64_t place, double *stored, double *state)
{
	int64_t size = w->e.v_dim * w->e.k_dim;

	if (w->mistake == RECURRENCE_RUNS_ON && n > 0)
		return;
	memset(stored, 0, (size_t)size * sizeof *stored);
	if (w->roles.state >= 0 && w->in[w->roles.state].data != NULL)
		dtype_load_run(w->in[w->roles.state].data, w->in[w->roles.state].dtype, place, size, stored);
	recurrence_turn(w, stored, state, false);
}

static void run_sequence(const struct recurrence_work *w, int64_t n, int64_t h, double *stored, double *state,
			 struct recurrence_token *token)
{
	const struct recurrence_extent *e = &w->e;
	const struct tensor *output = &w->out[w->roles.output];
	int64_t size = e->v_dim * e->k_dim, place = (n * e->v_heads + h) * size, first, end, chunk = chunk_of(w->mistake);

	begin_state(w, n, place, stored, state);
	recurrence_tokens(w, n, &first, &end);
	end -= w->mistake == RECURRENCE_LAST_TOKEN && end > first;
	for (int64_t i = first; i < end; i++) {
		int64_t t = w->mistake == RECURRENCE_BACKWARDS ? first + end - 1 - i : i;

		if (chunk > 0 && i > first && (i - first) % chunk == 0)
			memset(state, 0, (size_t)size * sizeof *state);
		recurrence_read(w, t, h, token);
		recurrence_any_step(w, token, state);
		dtype_store_run(output->data, output->dtype, (t * e->v_heads + h) * e->v_dim, e->v_dim, token->output);
	}
	recurrence_turn(w, state, stored, true);
	if (w->roles.new_state >= 0)
		dtype_store_run(w->out[w->roles.new_state].data, w->out[w->roles.new_state].dtype, place, size, stored);
}

/* Runs the sequences first … end - 1 of head h. */
static void run_head(const struct recurrence_work *w, int64_t first, int64_t end, int64_t h)
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

struct recurrence_work recurrence_work_of(const struct op_case *c, const struct tensor *in, struct tensor *out)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);

	return (struct recurrence_work){
	    .roles = roles,
	    .e = recurrence_extent_of(c, &roles),
	    .modes = recurrence_modes_of(c, &roles),
	    .delta = (c->variant & RECURRENCE_DELTA) != 0,
	    .by_key = (c->variant & RECURRENCE_KEY_GATE) != 0,
	    .mistake = c->mistake,
	    .in = in,
	    .out = out,
	};
}

int recurrence_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct recurrence_work w = recurrence_work_of(c, in, out);

	if (recurrence_check(c, in, err) != 0)
		return -1;
	if (w.mistake == RECURRENCE_RUNS_ON)
		for (int64_t h = 0; h < w.e.v_heads; h++)
			run_head(&w, 0, w.e.sequences, h);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < (w.mistake == RECURRENCE_RUNS_ON ? 0 : w.e.sequences * w.e.v_heads); i++)
		run_head(&w, i / w.e.v_heads, i / w.e.v_heads + 1, i % w.e.v_heads);
	return 0;
}
