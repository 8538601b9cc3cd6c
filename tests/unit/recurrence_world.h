/* recurrence_world - problems of gla, simple_gla, delta_rule, gated_delta_rule and kda, and emulations of their
 * references in float32. An emulation is recurrent or chunked, and can contain a planted mistake. recurrence_family.h
 * has the expected results. */
#ifndef REFTEST_TESTS_RECURRENCE_WORLD_H
#define REFTEST_TESTS_RECURRENCE_WORLD_H

#include "tests/unit/trial.h"

#include "kernels/common/linear_attention/input_values.h"

enum { CHUNK = 64, DIM_MOST = 64 };

/* --- problems ----------------------------------------------------------------------------------------------------- */

/* Axes of dense problems (B, T) and of packed problems (FLAT). */
enum { B, T, HQ, HV, K, V, FLAT };
enum { TOTAL = B, N = FLAT + 1, OFFSETS, ONE };

#define AXES(q_heads, v_heads, k_dim, v_dim)                                                                         \
	{                                                                                                            \
		{"first", true, 0}, {"seq_len", true, 0}, {"num_heads", false, q_heads},                             \
		{"num_v_heads", false, v_heads}, {"key_size", false, k_dim}, {"value_size", false, v_dim},           \
		{"all_keys", false, (v_heads) * (k_dim)}, {"num_seqs", true, 0}, {"len_cu_seqlens", true, 0},        \
		{"one", false, 1}                                                                                    \
	}

#define QUERY {"q", DTYPE_BFLOAT16, 4, {B, T, HQ, K}, false, NULL}
#define KEY {"k", DTYPE_BFLOAT16, 4, {B, T, HQ, K}, false, NULL}
#define VALUE {"v", DTYPE_BFLOAT16, 4, {B, T, HV, V}, false, NULL}
#define STATE {"initial_state", DTYPE_FLOAT32, 4, {B, HV, K, V}, false, NULL}
#define OUTPUT {"output", DTYPE_BFLOAT16, 4, {B, T, HV, V}, false, NULL}
#define LAST {"final_state", DTYPE_FLOAT32, 4, {B, HV, K, V}, false, NULL}
#define PACKED_QUERY {"q", DTYPE_BFLOAT16, 3, {TOTAL, HQ, K}, false, NULL}
#define PACKED_KEY {"k", DTYPE_BFLOAT16, 3, {TOTAL, HQ, K}, false, NULL}
#define PACKED_VALUE {"v", DTYPE_BFLOAT16, 3, {TOTAL, HV, V}, false, NULL}
#define PACKED_STATE {"initial_state", DTYPE_FLOAT32, 4, {N, HV, K, V}, true, NULL}
#define PACKED_OUTPUT {"output", DTYPE_FLOAT32, 3, {TOTAL, HV, V}, false, NULL}
#define PACKED_LAST {"final_state", DTYPE_FLOAT32, 4, {N, HV, K, V}, false, NULL}
#define CU_SEQLENS {"cu_seqlens", DTYPE_INT64, 1, {OFFSETS}, false, NULL}
#define HEAD_GATE {"g", DTYPE_FLOAT32, 3, {B, T, HV}, false, NULL}
#define KEY_GATE {"g", DTYPE_FLOAT32, 4, {B, T, HV, K}, false, NULL}
#define BETA {"beta", DTYPE_BFLOAT16, 3, {B, T, HV}, false, NULL}
#define A_LOG {"A_log", DTYPE_FLOAT32, 1, {HV}, false, NULL}
#define HEAD_BIAS {"dt_bias", DTYPE_FLOAT32, 1, {HV}, false, NULL}
#define SCALAR(name, dtype) {name, dtype, OP_SCALAR, {0}, false, NULL}
#define SCALE SCALAR("scale", DTYPE_FLOAT32)

/* --- references --------------------------------------------------------------------------------------------------- */

enum mistake {
	NONE,
	/* the mistakes above occur in all five families */
	ANSWERED_BEFORE_LEARNING,
	STATE_TRANSPOSED_AT_THE_END,
	HEADS_TILED,
	SCALE_2_PERCENT,
	KEY_AND_QUERY_SWAPPED,
	LAST_TOKEN_LEFT_OUT,
	STATE_ROUNDED,
	ALL_ZERO,
	ONE_NAN,
	/* the mistakes below need an initial state, packed sequences, or normalised q and k */
	INITIAL_STATE_IGNORED,
	OFFSETS_IGNORED,
	RUNS_ON,
	NORM_LEFT_OUT,
	NORM_IN_ANY_CASE,
	NORM_OF_QUERY_LEFT_OUT,
	/* the mistakes below need gates */
	DECAY_LEFT_OUT,
	DECAY_NO_EXPONENTIAL,
	DECAY_BY_2,
	DECAY_2_PERCENT,
	DECAY_AFTER_LEARNING,
	DECAY_OF_THE_FIRST_KEY,
	DECAY_OF_THE_FIRST_HEAD,
	DECAY_OF_THE_TOKEN_BEFORE,
	SOFTPLUS_LEFT_OUT,
	SOFTPLUS_OVERFLOWS,
	BIAS_LEFT_OUT,
	RATE_LEFT_OUT,
	RATE_WITHOUT_EXPONENTIAL,
	BOUND_IGNORED,
	/* the mistakes below need the delta rule */
	NOTHING_ERASED,
	STRENGTH_LEFT_OUT,
	STRENGTH_2_PERCENT,
	STRENGTH_ON_VALUE_ALONE,
	RECALLED_BEFORE_DECAY,
	RECALLED_UNDER_QUERY,
	SIGMOID_LEFT_OUT,
	SIGMOID_IN_ANY_CASE,
	NOT_DOUBLED,
	DOUBLED_IN_ANY_CASE,
};

struct emulation {
	struct trial *t;
	struct recurrence_roles roles;
	struct recurrence_extent e;
	struct recurrence_modes modes;
	enum mistake mistake;
	bool delta, by_key;
};

static inline float part(const struct emulation *m, int input, int64_t index)
{
	return get(&m->t->in[input], index);
}

static inline void read_row(const struct emulation *m, int input, int64_t token, int64_t h, float *out)
{
	int64_t heads = m->e.q_heads, head = m->mistake == HEADS_TILED ? h % heads : h / (m->e.v_heads / heads);
	bool norm = (m->modes.l2norm || m->mistake == NORM_IN_ANY_CASE) && m->mistake != NORM_LEFT_OUT &&
	            !(m->mistake == NORM_OF_QUERY_LEFT_OUT && input == m->roles.q);
	float square = 1e-6f;

	if (m->mistake == KEY_AND_QUERY_SWAPPED)
		input = input == m->roles.q ? m->roles.k : m->roles.q;
	for (int64_t i = 0; i < m->e.k_dim; i++) {
		out[i] = part(m, input, (token * heads + head) * m->e.k_dim + i);
		square += out[i] * out[i];
	}
	for (int64_t i = 0; i < m->e.k_dim && norm; i++)
		out[i] /= sqrtf(square);
}

static inline float activated(const struct emulation *m, int64_t place, int64_t h, int64_t weight)
{
	const struct recurrence_roles *roles = &m->roles;
	float x = part(m, roles->gate, place), rate = 1, log_rate;

	if (roles->dt_bias >= 0 && m->mistake != BIAS_LEFT_OUT)
		x += part(m, roles->dt_bias, weight);
	if (roles->a_log >= 0 && m->mistake != RATE_LEFT_OUT) {
		log_rate = part(m, roles->a_log, h);
		rate = m->mistake == RATE_WITHOUT_EXPONENTIAL ? log_rate : expf(log_rate);
	}
	if (roles->lower_bound >= 0 && m->mistake != BOUND_IGNORED)
		return (float)m->modes.lower_bound / (1 + expf(-rate * x));
	if (m->mistake == SOFTPLUS_OVERFLOWS)
		x = logf(1 + expf(x));
	else if (m->mistake != SOFTPLUS_LEFT_OUT)
		x = x > 20 ? x : log1pf(expf(x));
	return -rate * x;
}

/* A token multiplies key element j of the state of value head h by a decay factor. Returns the logarithm of this
 * factor. */
static inline float log_gate(const struct emulation *m, int64_t token, int64_t first, int64_t h, int64_t j)
{
	const struct recurrence_roles *roles = &m->roles;
	int64_t dim = m->by_key ? m->e.k_dim : 1, k = m->by_key && m->mistake != DECAY_OF_THE_FIRST_KEY ? j : 0;

	if (m->modes.gate == RECURRENCE_GATE_NONE || m->mistake == DECAY_LEFT_OUT)
		return 0;
	if (m->mistake == DECAY_OF_THE_FIRST_HEAD)
		h = 0;
	if (m->mistake == DECAY_OF_THE_TOKEN_BEFORE && token > first)
		token--;
	if (roles->gamma >= 0)
		return part(m, roles->gamma, h);
	int64_t place = (token * m->e.v_heads + h) * dim + k;

	return m->modes.gate == RECURRENCE_GATE_LOG ? part(m, roles->gate, place)
	                                            : activated(m, place, h, h * dim + k);
}

static inline float stays(const struct emulation *m, float gate)
{
	switch (m->mistake) {
	case DECAY_NO_EXPONENTIAL:
		return gate;
	case DECAY_BY_2:
		return exp2f(gate);
	case DECAY_2_PERCENT:
		return expf(1.02f * gate);
	default:
		return expf(gate);
	}
}

static inline float strength(const struct emulation *m, int64_t token, int64_t h)
{
	float beta = part(m, m->roles.beta, token * m->e.v_heads + h);
	bool raw = (m->modes.sigmoid || m->mistake == SIGMOID_IN_ANY_CASE) && m->mistake != SIGMOID_LEFT_OUT;
	bool doubled = (m->modes.doubled || m->mistake == DOUBLED_IN_ANY_CASE) && m->mistake != NOT_DOUBLED;

	beta = raw ? 1 / (1 + expf(-beta)) : beta;
	beta = m->mistake == STRENGTH_LEFT_OUT ? 1 : m->mistake == STRENGTH_2_PERCENT ? 1.02f * beta : beta;
	return doubled ? 2 * beta : beta;
}

static inline float scale_of(const struct emulation *m)
{
	return (float)m->modes.scale * (m->mistake == SCALE_2_PERCENT ? 1.02f : 1);
}

/* Updates column v of the state with one token, and returns element v of the output. The column has K elements. */
NOT_INSTRUMENTED
static inline float learn(const struct emulation *m, int64_t token, int64_t h, int64_t v, const float *left,
                          const float *q, const float *k, float *s)
{
	float value = part(m, m->roles.v, (token * m->e.v_heads + h) * m->e.v_dim + v), held = 0, before = 0, after = 0;
	float beta = m->delta ? strength(m, token, h) : 0;

	for (int64_t j = 0; j < m->e.k_dim; j++) {
		held += s[j] * (m->mistake == RECALLED_BEFORE_DECAY ? 1 : left[j]) *
		        (m->mistake == RECALLED_UNDER_QUERY ? q[j] : k[j]);
		s[j] *= m->mistake == DECAY_AFTER_LEARNING ? 1 : left[j];
		before += s[j] * q[j];
	}
	held = m->mistake == NOTHING_ERASED ? 0 : held;
	if (m->delta)
		value = m->mistake == STRENGTH_ON_VALUE_ALONE ? beta * value - held : beta * (value - held);
	for (int64_t j = 0; j < m->e.k_dim; j++) {
		s[j] += k[j] * value;
		s[j] *= m->mistake == DECAY_AFTER_LEARNING ? left[j] : 1;
		if (m->mistake == STATE_ROUNDED)
			s[j] = float_from_bf16(bf16_from_float(s[j]));
		after += s[j] * q[j];
	}
	return scale_of(m) * (m->mistake == ANSWERED_BEFORE_LEARNING ? before : after);
}

static inline int64_t whole(const struct tensor *tensor, int64_t index)
{
	return (int64_t)dtype_load(tensor->data, tensor->dtype, index);
}

static inline void tokens_of(const struct emulation *m, int64_t n, int64_t *first, int64_t *end)
{
	*first = n * m->e.tokens;
	*end = *first + m->e.tokens;
	if (m->roles.cu_seqlens >= 0) {
		const struct tensor *offsets = &m->t->in[m->roles.cu_seqlens];
		bool ignored = m->mistake == OFFSETS_IGNORED;

		*first = ignored ? n * m->e.total / m->e.sequences : whole(offsets, n);
		*end = ignored ? (n + 1) * m->e.total / m->e.sequences : whole(offsets, n + 1);
	}
	*end -= m->mistake == LAST_TOKEN_LEFT_OUT && *end > *first;
}

/* Returns the index of an element in the state tensors. n: sequence, h: value head, j: key element, v: value
 * element. */
static inline int64_t stored(const struct emulation *m, int64_t n, int64_t h, int64_t j, int64_t v)
{
	int64_t size = m->e.k_dim * m->e.v_dim;

	return (n * m->e.v_heads + h) * size + (m->modes.v_first ? v * m->e.k_dim + j : j * m->e.v_dim + v);
}

/* Reads the state of a head into `state`, which is [V][K]. */
static inline void read_state(const struct emulation *m, int64_t n, int64_t h, float *state)
{
	bool there = m->roles.state >= 0 && m->t->in[m->roles.state].data != NULL;

	for (int64_t v = 0; v < m->e.v_dim; v++)
		for (int64_t j = 0; j < m->e.k_dim; j++)
			state[v * m->e.k_dim + j] = there && m->mistake != INITIAL_STATE_IGNORED
			                                ? part(m, m->roles.state, stored(m, n, h, j, v))
			                                : 0;
}

static inline void write_state(const struct emulation *m, int64_t n, int64_t h, const float *state)
{
	bool turned = m->mistake == STATE_TRANSPOSED_AT_THE_END;
	int64_t dim = m->e.k_dim, columns = m->e.v_dim;

	if (m->roles.new_state < 0)
		return;
	for (int64_t v = 0; v < columns; v++)
		for (int64_t j = 0; j < dim; j++) {
			int64_t flat = turned ? j * columns + v : v * dim + j;

			set(&m->t->out[m->roles.new_state], stored(m, n, h, j, v), state[flat]);
		}
}

static inline void recur_head(const struct emulation *m, int64_t n, int64_t h, float *state)
{
	struct tensor *output = &m->t->out[m->roles.output];
	float q[DIM_MOST], k[DIM_MOST], left[DIM_MOST];
	int64_t first, end;

	if (n == 0 || m->mistake != RUNS_ON)
		read_state(m, n, h, state);
	tokens_of(m, n, &first, &end);
	for (int64_t t = first; t < end; t++) {
		read_row(m, m->roles.q, t, h, q);
		read_row(m, m->roles.k, t, h, k);
		for (int64_t j = 0; j < m->e.k_dim; j++)
			left[j] = stays(m, log_gate(m, t, first, h, j));
		for (int64_t v = 0; v < m->e.v_dim; v++)
			set(output, (t * m->e.v_heads + h) * m->e.v_dim + v,
			    learn(m, t, h, v, left, q, k, state + v * m->e.k_dim));
	}
	write_state(m, n, h, state);
}

/* A chunk of tokens of one head. q, k, sum and learnt are [CHUNK][dim]. `sum` is the cumulative sum of the logarithms
 * of the gates, and `learnt` is the value that each token writes. */
struct chunk {
	int64_t first, count;
	float q[CHUNK][DIM_MOST], k[CHUNK][DIM_MOST], sum[CHUNK][DIM_MOST], since[CHUNK][DIM_MOST];
	/* [i][j]: the dot product of k (or q) of token i with k of token j, decayed from token j to token i */
	float kk[CHUNK][CHUNK], qk[CHUNK][CHUNK];
	float learnt[CHUNK][DIM_MOST];
};

NOT_INSTRUMENTED
static inline void pair(const struct emulation *m, struct chunk *c, int64_t i, int64_t j)
{
	c->kk[i][j] = c->qk[i][j] = 0;
	for (int64_t d = 0; d < m->e.k_dim; d++) {
		float left = expf(c->sum[i][d] - c->sum[j][d]);

		c->kk[i][j] += c->k[i][d] * left * c->k[j][d];
		c->qk[i][j] += c->q[i][d] * left * c->k[j][d];
	}
}

/* `state` is the state before the chunk. Decays this state up to token i, multiplies it by the vector `a` of token i,
 * and returns element v of the product. */
NOT_INSTRUMENTED
static inline float earlier(const struct emulation *m, const struct chunk *c, const float *a, int64_t i, int64_t v,
                            const float *state)
{
	float sum = 0;

	for (int64_t d = 0; d < m->e.k_dim; d++)
		sum += a[d] * c->since[i][d] * state[v * m->e.k_dim + d];
	return sum;
}

NOT_INSTRUMENTED
static inline void chunk_token(const struct emulation *m, struct chunk *c, int64_t i, int64_t h, const float *state)
{
	float beta = m->delta ? strength(m, c->first + i, h) : 1;

	for (int64_t v = 0; v < m->e.v_dim; v++) {
		int64_t place = ((c->first + i) * m->e.v_heads + h) * m->e.v_dim + v;
		float held = m->delta ? earlier(m, c, c->k[i], i, v, state) : 0, output;

		for (int64_t j = 0; j < i && m->delta; j++)
			held += c->kk[i][j] * c->learnt[j][v];
		c->learnt[i][v] = beta * (part(m, m->roles.v, place) - held);
		output = earlier(m, c, c->q[i], i, v, state);
		for (int64_t j = 0; j <= i; j++)
			output += c->qk[i][j] * c->learnt[j][v];
		set(&m->t->out[m->roles.output], place, scale_of(m) * output);
	}
}

static inline void chunk_step(const struct emulation *m, struct chunk *c, int64_t h, float *state)
{
	int64_t dim = m->e.k_dim, last = c->count - 1;

	for (int64_t i = 0; i < c->count; i++) {
		for (int64_t d = 0; d < dim; d++)
			c->since[i][d] = expf(c->sum[i][d]);
		for (int64_t j = 0; j <= i; j++)
			pair(m, c, i, j);
		chunk_token(m, c, i, h, state);
	}
	for (int64_t d = 0; d < dim; d++) {
		for (int64_t v = 0; v < m->e.v_dim; v++)
			state[v * dim + d] *= c->since[last][d];
		for (int64_t i = 0; i < c->count; i++) {
			float kept = expf(c->sum[last][d] - c->sum[i][d]) * c->k[i][d];

			for (int64_t v = 0; v < m->e.v_dim; v++)
				state[v * dim + d] += kept * c->learnt[i][v];
		}
	}
}

static inline void chunk_head(const struct emulation *m, int64_t n, int64_t h, float *state)
{
	struct chunk *c = calloc(1, sizeof *c);
	int64_t first, end;

	assert_non_null(c);
	read_state(m, n, h, state);
	tokens_of(m, n, &first, &end);
	for (c->first = first; c->first < end; c->first += CHUNK) {
		c->count = end - c->first < CHUNK ? end - c->first : CHUNK;
		for (int64_t i = 0; i < c->count; i++) {
			read_row(m, m->roles.q, c->first + i, h, c->q[i]);
			read_row(m, m->roles.k, c->first + i, h, c->k[i]);
			for (int64_t d = 0; d < m->e.k_dim; d++)
				c->sum[i][d] = (i > 0 ? c->sum[i - 1][d] : 0) + log_gate(m, c->first + i, first, h, d);
		}
		chunk_step(m, c, h, state);
	}
	write_state(m, n, h, state);
	free(c);
}

static inline void emulate(struct trial *t, enum mistake mistake,
                           void (*head)(const struct emulation *m, int64_t n, int64_t h, float *state))
{
	struct emulation m = {.t = t, .roles = recurrence_roles_of(t->problem), .mistake = mistake};
	float *state;

	m.e = recurrence_extent_of(&t->c, &m.roles);
	m.modes = recurrence_modes_of(&t->c, &m.roles);
	m.delta = (t->c.variant & RECURRENCE_DELTA) != 0;
	m.by_key = (t->c.variant & RECURRENCE_KEY_GATE) != 0;
	assert_true(m.e.k_dim <= DIM_MOST && m.e.v_dim <= DIM_MOST);
	state = calloc((size_t)(m.e.k_dim * m.e.v_dim), sizeof *state);
	assert_non_null(state);
	for (int64_t h = 0; h < m.e.v_heads; h++)
		for (int64_t n = 0; n < m.e.sequences; n++)
			head(&m, n, h, state);
	free(state);
	trial_spoil(t, mistake == ALL_ZERO, mistake == ONE_NAN);
}

/* Runs the recurrent emulation; the parameters are those of trial_play. */
static inline void play_recurrent(struct trial *t, int mistake)
{
	emulate(t, (enum mistake)mistake, recur_head);
}

static inline void play_chunked(struct trial *t, int mistake)
{
	emulate(t, (enum mistake)mistake, chunk_head);
}

#endif
