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

static void round_row(double *s, int64_t dim, bool bfloat16, bool float16)
{
	for (int64_t j = 0; j < dim && bfloat16; j++)
		s[j] = (double)float_from_bf16(bf16_from_float((float)s[j]));
	for (int64_t j = 0; j < dim && float16; j++)
		s[j] = (double)float_from_f16(f16_from_float((float)s[j]));
}

double recurrence_sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

double recurrence_softplus(double x)
{
	return x > 40 ? x : log1p(exp(x));
}

/* Returns g, the logarithm of the decay. `place` is the index of an element of the gate input, `h` is its head, and
 * `weight` is the index of the element of dt_bias that is added to it. */
static double gate(const struct recurrence_work *w, int64_t place, int64_t h, int64_t weight)
{
	const struct recurrence_roles *roles = &w->roles;

	if (w->modes.gate == RECURRENCE_GATE_NONE)
		return 0;
	if (w->modes.gate == RECURRENCE_GATE_LOG)
		return roles->gamma >= 0 ? number(w, roles->gamma, h) : number(w, roles->gate, place);
	double bias = roles->dt_bias >= 0 ? number(w, roles->dt_bias, weight) : 0, x = number(w, roles->gate, place);
	double a_log = roles->a_log >= 0 ? number(w, roles->a_log, h) : 0;

	if (w->modes.gate == RECURRENCE_GATE_SOFTPLUS || w->mistake == RECURRENCE_BOUND_SOFTPLUS)
		return recurrence_gate_by_softplus(w, x, bias, a_log);
	double rate = w->mistake == RECURRENCE_NO_A_EXP && roles->a_log >= 0 ? a_log : exp(a_log);

	return w->modes.lower_bound * recurrence_sigmoid(w->mistake == RECURRENCE_A_ON_GATE ? rate * x + bias : rate * (x + bias));
}

double recurrence_gate_by_softplus(const struct recurrence_work *w, double x, double bias, double a_log)
{
	double rate = exp(a_log), sum = x + bias;

	if (w->mistake == RECURRENCE_NO_A_EXP || w->mistake == RECURRENCE_A_AS_IT_IS)
		rate = w->mistake == RECURRENCE_NO_A_EXP ? a_log : -a_log;

	switch (w->mistake) {
	case RECURRENCE_SOFTPLUS:
		return -rate * sum;
	case RECURRENCE_RELU:
		return -rate * fmax(sum, 0);
	case RECURRENCE_SOFTPLUS_UP_TO:
		return -rate * (sum > w->by ? sum : recurrence_softplus(sum));
	case RECURRENCE_BIAS_LAST:
		return -rate * (recurrence_softplus(x) + bias);
	default:
		return -rate * recurrence_softplus(sum);
	}
}

double recurrence_decay(const struct recurrence_work *w, double g)
{
	switch (w->mistake) {
	case RECURRENCE_NO_EXP:
		return g;
	case RECURRENCE_NO_DECAY:
		return 1;
	case RECURRENCE_BASE_2:
		return exp2(g);
	case RECURRENCE_SIGMOID_GATE:
		return recurrence_sigmoid(g);
	case RECURRENCE_LEAST_GATE:
		return exp(fmax(g, w->by));
	default:
		return exp(g);
	}
}

/* Returns the kind of mistake that the case has in the normalisation of q or k, or RECURRENCE_NORM_KINDS if it has
 * none. */
static enum recurrence_norm norm_mistake(const struct recurrence_work *w, bool is_query)
{
	int mistake = w->mistake - RECURRENCE_NORMS;
	bool has = mistake >= 0 && (mistake % 4 & (is_query ? RECURRENCE_OF_Q : RECURRENCE_OF_K)) != 0;

	return has ? (enum recurrence_norm)(mistake / 4) : RECURRENCE_NORM_KINDS;
}

static bool normalises(const struct recurrence_work *w, bool is_query)
{
	if (w->mistake == (is_query ? RECURRENCE_Q_NOT_NORMALISED : RECURRENCE_K_NOT_NORMALISED))
		return false;
	return w->modes.l2norm || w->mistake == (is_query ? RECURRENCE_Q_NORMALISED : RECURRENCE_K_NORMALISED);
}

/* Returns the norm by which element i of a row is divided. `square` is the sum of the squares of the row. */
static double norm_of(const struct recurrence_work *w, enum recurrence_norm kind, const double *row, double square)
{
	double sum = 0;

	switch (kind) {
	case RECURRENCE_NORM_SQUARED:
		return square;
	case RECURRENCE_NORM_MEAN:
		return sqrt(square / (double)w->e.k_dim);
	case RECURRENCE_NORM_1:
		for (int64_t i = 0; i < w->e.k_dim; i++)
			sum += fabs(row[i]);
		return sum;
	case RECURRENCE_NORM_INSIDE:
		return sqrt(square + w->by);
	case RECURRENCE_NORM_OUTSIDE:
		return sqrt(square) + w->by;
	default:
		return sqrt(square);
	}
}

/* Divides each element of a row by a norm over the heads of the token. The norm of element i is the root of a sum over
 * all heads: the sum of the squares of element i. */
static void normalise_over_heads(const struct tensor *rows, int64_t heads, int64_t first, int64_t dim, double *out)
{
	for (int64_t i = 0; i < dim; i++) {
		double square = 0;

		for (int64_t h = 0; h < heads; h++) {
			double x = dtype_load(rows->data, rows->dtype, (first + h) * dim + i);

			square += x * x;
		}
		out[i] = square > 0 ? out[i] / sqrt(square) : 0;
	}
}

void recurrence_read_row(const struct recurrence_work *w, const struct tensor *rows, bool is_query, int64_t heads,
                         int64_t row, double *out)
{
	int64_t dim = w->e.k_dim;
	enum recurrence_norm kind = norm_mistake(w, is_query);
	double square = 0, norm;

	dtype_load_run(rows->data, rows->dtype, row * dim, dim, out);
	if (!normalises(w, is_query))
		return;
	if (kind == RECURRENCE_NORM_HEADS) {
		normalise_over_heads(rows, heads, row - row % heads, dim, out);
		return;
	}
	for (int64_t i = 0; i < dim; i++)
		square += out[i] * out[i];
	norm = norm_of(w, kind, out, square);
	for (int64_t i = 0; i < dim && square > 0; i++)
		out[i] /= norm;
	if (kind == RECURRENCE_NORM_ROUNDED)
		round_row(out, dim, (enum dtype)w->by == DTYPE_BFLOAT16, (enum dtype)w->by == DTYPE_FLOAT16);
}

/* Replaces the decay of each key by e^(mean of the gates of all keys). */
static void mean_decay(double *stays, int64_t keys)
{
	double sum = 0;

	for (int64_t j = 0; j < keys; j++)
		sum += log(stays[j]);
	for (int64_t j = 0; j < keys; j++)
		stays[j] = exp(sum / (double)keys);
}

int64_t recurrence_row(const struct recurrence_work *w, bool is_query, int64_t heads, int64_t t, int64_t h)
{
	bool tiled = w->mistake == RECURRENCE_TILED || w->mistake == (is_query ? RECURRENCE_TILED_Q : RECURRENCE_TILED_K);

	return t * heads + (tiled ? h % heads : h / (w->e.v_heads / heads));
}

/* Reads the decays of the keys of value head h. `place` is the index of the token and the head. */
static void read_decays(const struct recurrence_work *w, int64_t place, int64_t h, double *stays)
{
	int64_t keys = w->e.k_dim;

	if (!w->by_key)
		stays[0] = recurrence_decay(w, gate(w, place, h, h));
	for (int64_t j = 0; j < keys; j++)
		stays[j] = w->by_key ? recurrence_decay(w, gate(w, place * keys + j, h, h * keys + j)) : stays[0];
	round_row(stays, keys, w->mistake == RECURRENCE_ROUNDED_STAYS, w->mistake == RECURRENCE_HALF_STAYS);
	if (w->mistake == RECURRENCE_MEAN_GATE)
		mean_decay(stays, keys);
	for (int64_t j = 0; j < keys && w->mistake == RECURRENCE_FIRST_GATE; j++)
		stays[j] = stays[0];
}

bool recurrence_looks_raw(const struct tensor *beta)
{
	for (int64_t i = 0; i < beta->elements; i++) {
		double x = dtype_load(beta->data, beta->dtype, i);

		if (x < 0 || x > 1)
			return true;
	}
	return false;
}

static double read_beta(const struct recurrence_work *w, int64_t place)
{
	double beta = number(w, w->roles.beta, place);
	bool first = w->mistake == RECURRENCE_DOUBLED_FIRST;

	if (w->mistake == RECURRENCE_BETA_1)
		return 1;
	if (first && w->modes.doubled)
		beta *= 2;
	if (w->modes.sigmoid)
		beta = recurrence_sigmoid(beta);
	return w->modes.doubled && !first ? 2 * beta : beta;
}

void recurrence_read(const struct recurrence_work *w, int64_t t, int64_t h, struct recurrence_token *token)
{
	const struct recurrence_extent *e = &w->e;
	int64_t place = t * e->v_heads + h;
	bool swapped = w->mistake == RECURRENCE_SWAPPED;

	recurrence_read_row(w, &w->in[w->roles.q], true, e->q_heads, recurrence_row(w, true, e->q_heads, t, h), swapped ? token->k : token->q);
	recurrence_read_row(w, &w->in[w->roles.k], false, e->q_heads, recurrence_row(w, false, e->q_heads, t, h), swapped ? token->q : token->k);
	dtype_load_run(w->in[w->roles.v].data, w->in[w->roles.v].dtype, place * e->v_dim, e->v_dim, token->v);
	read_decays(w, place, h, token->stays);
	token->beta = w->delta ? read_beta(w, place) : 0;
}

/* Multiplies a row of the state by the decays, and returns the row's dot product with k. */
static inline double recall(const double *stays, const double *k, int64_t dim, double *s)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < dim; j++) {
		s[j] *= stays[j];
		sum += s[j] * k[j];
	}
	return sum;
}

/* Adds k times `learnt` to a row of the state, and returns the row's dot product with q. */
static inline double learn(double learnt, const double *k, const double *q, int64_t dim, double *s)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < dim; j++) {
		s[j] += learnt * k[j];
		sum += s[j] * q[j];
	}
	return sum;
}

/* Computes one step of the recurrence. `state` is [V][K]; its rows are independent. */
WIDE void recurrence_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	int64_t dim = w->e.k_dim;

	for (int64_t i = 0; i < w->e.v_dim; i++) {
		double *s = state + i * dim, recalled = recall(token->stays, token->k, dim, s);
		double learnt = w->delta ? token->beta * (token->v[i] - recalled) : token->v[i];

		token->output[i] = w->modes.scale * learn(learnt, token->k, token->q, dim, s);
	}
}

/* Copies a state. If `back` is false, copies `from`, which may be [K][V], to `to` as [V][K]. If `back` is true, `from`
 * is [V][K], and `to` may be [K][V]. */
void recurrence_turn(const struct recurrence_work *w, const double *from, double *to, bool back)
{
	int64_t rows = w->e.v_dim, columns = w->e.k_dim;

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			int64_t ours = i * columns + j, theirs = w->modes.v_first ? ours : j * rows + i;

			to[back ? theirs : ours] = from[back ? ours : theirs];
		}
}

/* Returns the dot product of `other` with row i of the state or, if `turned` is true, with column i. */
static double read_state(const struct recurrence_work *w, const double *state, int64_t i, bool turned, const double *other)
{
	int64_t dim = w->e.k_dim;
	double sum = 0;

	for (int64_t j = 0; j < dim; j++)
		sum += state[turned ? j * dim + i : i * dim + j] * other[j];
	return sum;
}

/* Returns the factor of k in the update of one value, as a reference with the mistake computes it. `recalled` is S^T k,
 * the value that the state stores for the key. */
static double mistaken_learnt(const struct recurrence_work *w, const struct recurrence_token *token, double value,
			      double recalled)
{
	double beta = w->mistake == RECURRENCE_BETA_TWICE ? token->beta * token->beta : token->beta;

	if (!w->delta)
		return value;
	if (w->mistake == RECURRENCE_VALUE_STRENGTH)
		return beta * value - recalled;
	return beta * (value - (w->mistake == RECURRENCE_NOT_ERASED ? 0 : recalled));
}

static void round_state(const struct recurrence_work *w, double *state, int bfloat16, int float16)
{
	round_row(state, w->e.v_dim * w->e.k_dim, w->mistake == bfloat16, w->mistake == float16);
}

static void decay_state(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	for (int64_t i = 0; i < w->e.v_dim; i++)
		for (int64_t j = 0; j < w->e.k_dim; j++)
			state[i * w->e.k_dim + j] *= token->stays[j];
}

/* Computes the updates for all values, with the mistake. token->output, which does not contain the output yet, is used
 * as memory for the updates. */
static void mistaken_recall(const struct recurrence_work *w, const struct recurrence_token *token, const double *state)
{
	const double *key = w->mistake == RECURRENCE_RECALL_QUERY ? token->q : token->k;

	for (int64_t i = 0; i < w->e.v_dim; i++)
		token->output[i] = mistaken_learnt(w, token, token->v[i],
						   read_state(w, state, i, w->mistake == RECURRENCE_RECALL_TURNED, key));
}

static void mistaken_update(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	int64_t dim = w->e.k_dim;
	bool turned = w->mistake == RECURRENCE_LEARN_TURNED;

	for (int64_t i = 0; i < w->e.v_dim; i++)
		for (int64_t j = 0; j < dim; j++) {
			double *s = &state[i * dim + j];

			*s = (w->mistake == RECURRENCE_ADDED_NOTHING ? 0 : *s) +
			     (turned ? token->output[j] * token->k[i] : token->output[i] * token->k[j]);
		}
}

static void mistaken_answer(const struct recurrence_work *w, const struct recurrence_token *token, const double *state)
{
	for (int64_t i = 0; i < w->e.v_dim; i++)
		token->output[i] = w->modes.scale * read_state(w, state, i, w->mistake == RECURRENCE_ANSWER_TURNED, token->q);
}

static void mistaken_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	bool early = w->mistake == RECURRENCE_RECALL_FIRST;

	round_state(w, state, RECURRENCE_ROUNDED_BEFORE, RECURRENCE_HALF_BEFORE);
	if (early)
		mistaken_recall(w, token, state);
	if (w->mistake != RECURRENCE_DECAY_LAST)
		decay_state(w, token, state);
	round_state(w, state, RECURRENCE_ROUNDED_DECAYED, RECURRENCE_HALF_DECAYED);
	if (!early)
		mistaken_recall(w, token, state);
	double *before = w->mistake == RECURRENCE_ANSWER_FIRST ? take(w->e.v_dim, sizeof *before) : NULL;

	for (int64_t i = 0; before != NULL && i < w->e.v_dim; i++)
		before[i] = w->modes.scale * read_state(w, state, i, false, token->q);
	mistaken_update(w, token, state);
	if (w->mistake == RECURRENCE_DECAY_LAST || w->mistake == RECURRENCE_DECAY_TWICE)
		decay_state(w, token, state);
	mistaken_answer(w, token, state);
	if (before != NULL)
		memcpy(token->output, before, (size_t)w->e.v_dim * sizeof *before);
	free(before);
	round_state(w, state, RECURRENCE_ROUNDED_STATE, RECURRENCE_HALF_STATE);
}

void recurrence_any_step(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	if (w->mistake == RECURRENCE_NO_MISTAKE || w->mistake >= RECURRENCE_SOFTPLUS)
		recurrence_step(w, token, state);
	else
		mistaken_step(w, token, state);
}

void recurrence_decay_state(const struct recurrence_work *w, const struct recurrence_token *token, double *state)
{
	for (int64_t i = 0; i < w->e.v_dim * w->e.k_dim; i++)
		state[i] *= token->stays[i % w->e.k_dim];
}

void recurrence_token_range(const struct recurrence_work *w, const struct tensor *offsets, int64_t n, int64_t sequences,
                      int64_t tokens, int64_t *first, int64_t *end)
{
	bool packed = offsets != NULL;

	*first = packed ? check_integer(offsets, n) : n * tokens;
	*end = packed ? check_integer(offsets, n + 1) : (n + 1) * tokens;
	if (packed && w->mistake == RECURRENCE_ONE_SEQUENCE) {
		*first = 0;
		*end = n + 1 < sequences ? 0 : w->e.total;
	} else if (packed && w->mistake == RECURRENCE_EQUAL_SEQUENCES) {
		*first = w->e.total * n / sequences;
		*end = w->e.total * (n + 1) / sequences;
	}
	*end -= w->mistake == RECURRENCE_LAST_TOKEN && *end > *first;
}

void recurrence_tokens(const struct recurrence_work *w, int64_t n, int64_t *first, int64_t *end)
{
	recurrence_token_range(w, w->roles.cu_seqlens < 0 ? NULL : &w->in[w->roles.cu_seqlens], n, w->e.sequences, w->e.tokens, first, end);
}

struct recurrence_token recurrence_token_of(int64_t k_dim, int64_t v_dim)
{
	double *row = take(3 * k_dim + 2 * v_dim, sizeof *row), *v = row + 3 * k_dim;

	return (struct recurrence_token){.q = row, .k = row + k_dim, .stays = row + 2 * k_dim, .v = v, .output = v + v_dim};
}

/* Reads the initial state of sequence n. With the mistake RECURRENCE_RUNS_ON, `state` keeps the final state of the
 * previous sequence. */
static void begin_state(const struct recurrence_work *w, int64_t n, int64_t place, double *stored, double *state)
{
	int64_t size = w->e.v_dim * w->e.k_dim;

	if (w->mistake == RECURRENCE_RUNS_ON && n > 0)
		return;
	memset(stored, 0, (size_t)size * sizeof *stored);
	if (w->roles.state >= 0 && w->in[w->roles.state].data != NULL && w->mistake != RECURRENCE_NO_STATE)
		dtype_load_run(w->in[w->roles.state].data, w->in[w->roles.state].dtype, place, size, stored);
	recurrence_turn(w, stored, state, false);
}

static void run_sequence(const struct recurrence_work *w, int64_t n, int64_t h, double *stored, double *state,
			 struct recurrence_token *token)
{
	const struct recurrence_extent *e = &w->e;
	const struct tensor *output = &w->out[w->roles.output];
	int64_t size = e->v_dim * e->k_dim, place = (n * e->v_heads + h) * size, first, end;
	int64_t lost = w->mistake == RECURRENCE_STATE_LOST ? (int64_t)w->by : 0;

	begin_state(w, n, place, stored, state);
	recurrence_tokens(w, n, &first, &end);
	for (int64_t i = first; i < end; i++) {
		int64_t t = w->mistake == RECURRENCE_BACKWARDS ? first + end - 1 - i : i;

		if (lost > 0 && i > first && (i - first) % lost == 0)
			memset(state, 0, (size_t)size * sizeof *state);
		recurrence_read(w, t, h, token);
		if (w->mistake == RECURRENCE_DECAY_BEFORE && t > first)
			read_decays(w, (t - 1) * e->v_heads + h, h, token->stays);
		recurrence_any_step(w, token, state);
		dtype_store_run(output->data, output->dtype, (t * e->v_heads + h) * e->v_dim, e->v_dim, token->output);
	}
	if (w->mistake == RECURRENCE_LAST_DECAY && end > first)
		recurrence_decay_state(w, token, state);
	recurrence_turn(w, state, stored, true);
	if (w->roles.new_state >= 0)
		dtype_store_run(w->out[w->roles.new_state].data, w->out[w->roles.new_state].dtype, place, size, stored);
}

/* Computes the sequences first … end - 1 of head h. */
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

/* Returns the options of the case, changed by the mistake if there is one. */
static struct recurrence_modes modes_of(const struct op_case *c, const struct recurrence_roles *roles, const struct tensor *in)
{
	struct recurrence_modes modes = recurrence_modes_of(c, roles);

	switch (c->mistake) {
	case RECURRENCE_OTHER_L2NORM:
		modes.l2norm = !modes.l2norm;
		break;
	case RECURRENCE_OTHER_SIGMOID:
		modes.sigmoid = !modes.sigmoid;
		break;
	case RECURRENCE_OTHER_DOUBLED:
		modes.doubled = !modes.doubled;
		break;
	case RECURRENCE_BETA_BY_VALUE:
		modes.sigmoid = roles->beta >= 0 && recurrence_looks_raw(&in[roles->beta]);
		break;
	default:
		break;
	}
	return modes;
}

struct recurrence_work recurrence_work_of(const struct op_case *c, const struct tensor *in, struct tensor *out)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);

	return (struct recurrence_work){
	    .roles = roles,
	    .e = recurrence_extent_of(c, &roles),
	    .modes = modes_of(c, &roles, in),
	    .delta = (c->variant & RECURRENCE_DELTA) != 0,
	    .by_key = (c->variant & RECURRENCE_KEY_GATE) != 0,
	    .mistake = c->mistake,
	    .by = c->mistake_by,
	    .may_sigmoid = roles.sigmoid >= 0 || recurrence_modes_of(c, &roles).sigmoid,
	    .in = in,
	    .out = out,
	};
}

bool recurrence_has(const struct recurrence_work *w)
{
	enum recurrence_gate gate = w->modes.gate;

	switch (w->mistake) {
	case RECURRENCE_RECALL_FIRST:
	case RECURRENCE_DECAY_LAST:
	case RECURRENCE_DECAY_TWICE:
	case RECURRENCE_LAST_DECAY:
	case RECURRENCE_DECAY_BEFORE:
	case RECURRENCE_NO_EXP:
	case RECURRENCE_BASE_2:
	case RECURRENCE_SIGMOID_GATE:
	case RECURRENCE_LEAST_GATE:
	case RECURRENCE_ROUNDED_STAYS:
	case RECURRENCE_HALF_STAYS:
	case RECURRENCE_ROUNDED_DECAYED: /* without a gate, these two equal ROUNDED_BEFORE and HALF_BEFORE */
	case RECURRENCE_HALF_DECAYED:
		return gate != RECURRENCE_GATE_NONE && (w->delta || w->mistake != RECURRENCE_RECALL_FIRST);
	case RECURRENCE_MEAN_GATE:
	case RECURRENCE_FIRST_GATE:
		return w->by_key;
	case RECURRENCE_SOFTPLUS:
	case RECURRENCE_RELU:
	case RECURRENCE_SOFTPLUS_UP_TO:
	case RECURRENCE_BIAS_LAST:
	case RECURRENCE_BOUND_SOFTPLUS:
	case RECURRENCE_A_ON_GATE: /* the value of the scalar lower_bound may determine whether the gate is SOFTPLUS or
				    * BOUNDED */
		return gate == RECURRENCE_GATE_SOFTPLUS || gate == RECURRENCE_GATE_BOUNDED;
	case RECURRENCE_NO_A_EXP:
		return w->roles.a_log >= 0;
	case RECURRENCE_A_AS_IT_IS:
		return w->roles.a_log >= 0 && gate == RECURRENCE_GATE_SOFTPLUS;
	case RECURRENCE_NOT_ERASED:
	case RECURRENCE_VALUE_STRENGTH:
	case RECURRENCE_RECALL_QUERY:
	case RECURRENCE_BETA_TWICE:
	case RECURRENCE_BETA_1:
	case RECURRENCE_OTHER_SIGMOID:
	case RECURRENCE_OTHER_DOUBLED:
	case RECURRENCE_DOUBLED_FIRST:
		return w->delta;
	case RECURRENCE_BETA_BY_VALUE: /* without a sigmoid, the same as OTHER_SIGMOID */
		return w->delta && w->may_sigmoid;
	case RECURRENCE_RECALL_TURNED:
	case RECURRENCE_LEARN_TURNED:
	case RECURRENCE_ANSWER_TURNED:
		return w->e.k_dim == w->e.v_dim && (w->delta || w->mistake != RECURRENCE_RECALL_TURNED);
	case RECURRENCE_ONE_SEQUENCE:
	case RECURRENCE_EQUAL_SEQUENCES:
		return w->roles.cu_seqlens >= 0;
	case RECURRENCE_RUNS_ON:
		return w->e.sequences > 1;
	case RECURRENCE_TILED:
	case RECURRENCE_TILED_Q:
	case RECURRENCE_TILED_K:
		return w->e.q_heads > 1 && w->e.q_heads < w->e.v_heads;
	default:
		return w->mistake < RECURRENCE_NORMS || w->modes.l2norm || w->roles.l2norm >= 0;
	}
}

int recurrence_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct recurrence_work w = recurrence_work_of(c, in, out);

	if (recurrence_check(c, in, err) != 0)
		return -1;
	if (!recurrence_has(&w))
		return err_set(err, "the simulated mistake would change nothing in this case");
	if (w.mistake == RECURRENCE_RUNS_ON)
		for (int64_t h = 0; h < w.e.v_heads; h++)
			run_head(&w, 0, w.e.sequences, h);
#pragma omp parallel for schedule(dynamic)
	for (int64_t i = 0; i < (w.mistake == RECURRENCE_RUNS_ON ? 0 : w.e.sequences * w.e.v_heads); i++)
		run_head(&w, i / w.e.v_heads, i / w.e.v_heads + 1, i % w.e.v_heads);
	return 0;
}
