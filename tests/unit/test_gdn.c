/* test_gdn - gated delta nets: correct references in float32 pass for every seed, and references with common mistakes
 * fail. */
#include "tests/unit/trial.h"

#include "kernels/common/linear_attention/packed.h"
#include "kernels/gdn/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op gdn_op;

enum { SEEDS = MANY_SEEDS, DIM_MOST = 128 };

/* --- problems ----------------------------------------------------------------------------------------------------- */

enum { B, T, POOL, HQ, HK, HV, K, V };

#define AXES(tokens_var, tokens, q_heads, v_heads, k_dim, v_dim)                                                     \
	{                                                                                                            \
		{"batch_size", true, 0}, {"seq_len", tokens_var, tokens}, {"pool_size", true, 0},                    \
		{"num_q_heads", false, q_heads}, {"num_k_heads", false, q_heads}, {"num_v_heads", false, v_heads},   \
		{"head_size", false, k_dim}, {"value_size", false, v_dim}                                            \
	}

static const struct op_axis one_token[] = AXES(false, 1, 2, 4, 32, 32);
static const struct op_axis tokens[] = AXES(true, 0, 2, 4, 32, 32);
static const struct op_axis oblong[] = AXES(true, 0, 3, 3, 24, 40);
static const struct op_axis as_published[] = AXES(false, 1, 4, 8, 128, 128);

#define Q {"q", DTYPE_BFLOAT16, 4, {B, T, HQ, K}, false, NULL}
#define KEYS {"k", DTYPE_BFLOAT16, 4, {B, T, HK, K}, false, NULL}
#define VALUES {"v", DTYPE_BFLOAT16, 4, {B, T, HV, V}, false, NULL}
#define A_LOG {"A_log", DTYPE_FLOAT32, 1, {HV}, false, NULL}
#define GATE(name) {name, DTYPE_BFLOAT16, 3, {B, T, HV}, false, NULL}
#define DT_BIAS {"dt_bias", DTYPE_FLOAT32, 1, {HV}, false, NULL}
#define SCALAR(name, dtype) {name, dtype, OP_SCALAR, {0}, false, NULL}
#define SCALE SCALAR("scale", DTYPE_FLOAT32)
#define STATES {"initial_state", DTYPE_FLOAT32, 4, {POOL, HV, V, K}, false, NULL}
#define SLOTS {"initial_state_indices", DTYPE_INT32, 1, {B}, false, NULL}
#define BUFFER {"intermediate_states_buffer", DTYPE_FLOAT32, 5, {POOL, T, HV, V, K}, true, NULL}

static const struct op_arg decode_in[] = {Q, KEYS, VALUES, {"state", DTYPE_FLOAT32, 4, {B, HV, V, K}, true, NULL},
                                          A_LOG, GATE("a"), DT_BIAS, GATE("b"), SCALE};
static const struct op_arg pool_in[] = {Q, KEYS, VALUES, STATES, SLOTS, A_LOG, GATE("a"), DT_BIAS, GATE("b"), SCALE,
                                        BUFFER};
static const struct op_arg by_batch_in[] = {
    Q, KEYS, VALUES, STATES, SLOTS, A_LOG, GATE("a"), DT_BIAS, GATE("b"), SCALE,
    {"intermediate_states_buffer", DTYPE_BFLOAT16, 5, {B, T, HV, V, K}, true, NULL}};
static const struct op_arg switched_in[] = {Q, KEYS, VALUES, STATES, SLOTS, A_LOG, GATE("a"), DT_BIAS, GATE("b"), SCALE,
                                            SCALAR("use_qk_l2norm", DTYPE_BOOL),
                                            SCALAR("disable_state_update", DTYPE_BOOL)};
static const struct op_arg v_last_in[] = {Q, KEYS, VALUES, {"state", DTYPE_BFLOAT16, 4, {B, HV, K, V}, true, NULL},
                                          A_LOG, GATE("a"), DT_BIAS, GATE("b")};

#define OUTPUT {"output", DTYPE_BFLOAT16, 4, {B, T, HV, V}, false, NULL}
static const struct op_arg decode_out[] = {OUTPUT, {"new_state", DTYPE_FLOAT32, 4, {B, HV, V, K}, false, NULL}};
static const struct op_arg pool_out[] = {OUTPUT, {"final_state", DTYPE_FLOAT32, 4, {POOL, HV, V, K}, false, NULL}};
static const struct op_arg v_last_out[] = {{"final_state", DTYPE_BFLOAT16, 4, {B, HV, K, V}, false, NULL},
                                           {"output", DTYPE_FLOAT32, 4, {B, T, HV, V}, false, NULL}};

enum { TOTAL, SEQUENCES, OFFSETS, PHQ, PHK, PHV, PK };
static const struct op_axis packed[] = {
    {"total_seq_len", true, 0}, {"num_seqs", true, 0},     {"len_cu_seqlens", true, 0}, {"num_q_heads", false, 2},
    {"num_k_heads", false, 2},  {"num_v_heads", false, 4}, {"head_size", false, 32}};
static const struct op_arg packed_in[] = {
    {"q", DTYPE_BFLOAT16, 3, {TOTAL, PHQ, PK}, false, NULL}, {"k", DTYPE_BFLOAT16, 3, {TOTAL, PHK, PK}, false, NULL},
    {"v", DTYPE_BFLOAT16, 3, {TOTAL, PHV, PK}, false, NULL}, {"state", DTYPE_FLOAT32, 4, {SEQUENCES, PHV, PK, PK}, true, NULL},
    {"A_log", DTYPE_FLOAT32, 1, {PHV}, false, NULL},         {"a", DTYPE_BFLOAT16, 2, {TOTAL, PHV}, false, NULL},
    {"dt_bias", DTYPE_FLOAT32, 1, {PHV}, false, NULL},       {"b", DTYPE_BFLOAT16, 2, {TOTAL, PHV}, false, NULL},
    {"cu_seqlens", DTYPE_INT64, 1, {OFFSETS}, false, NULL},  SCALAR("scale", DTYPE_FLOAT32)};
static const struct op_arg packed_out[] = {{"output", DTYPE_BFLOAT16, 3, {TOTAL, PHV, PK}, false, NULL},
                                           {"new_state", DTYPE_FLOAT32, 4, {SEQUENCES, PHV, PK, PK}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("gdn_decode_qk2_v4_k_last", "gdn", one_token, decode_in, decode_out),
    PROBLEM("gdn_mtp_qk2_v4_k_last", "gdn", tokens, pool_in, pool_out),
    PROBLEM("gdn_mtp_switched", "gdn", tokens, switched_in, pool_out),
    PROBLEM("gdn_prefill_qk2_v4_k_last", "gdn", packed, packed_in, packed_out),
    PROBLEM("gdn_l2norm_oblong", "gdn", oblong, v_last_in, v_last_out),
    PROBLEM("gdn_mtp_by_batch", "gdn", tokens, by_batch_in, pool_out),
};
enum { DECODE, POOLED, SWITCHED, PREFILL, OBLONG, BY_BATCH };

static const struct op_problem published =
    PROBLEM("gdn_decode_qk4_v8_d128_k_last", "gdn", as_published, decode_in,
                                                   decode_out);

/* --- a reference in float32 --------------------------------------------------------------------------------------- */

enum mistake {
	NONE,
	DECAY_LEFT_OUT,
	A_LOG_FOR_ITS_EXPONENTIAL,
	SOFTPLUS_LEFT_OUT,
	SOFTPLUS_OVERFLOWS,
	BIAS_LEFT_OUT,
	GATES_SWAPPED,
	SIGMOID_LEFT_OUT,
	STRENGTH_2_PERCENT,
	NOTHING_ERASED,
	RECALLED_BEFORE_DECAY,
	ANSWERED_BEFORE_CORRECTION,
	STATE_TRANSPOSED,
	HEADS_TILED,
	SCALE_2_PERCENT,
	SCALE_LEFT_OUT,
	INITIAL_STATE_IGNORED,
	ALL_ZERO,
	ONE_NAN,
	STATE_NOT_WRITTEN,
	SLOTS_IGNORED,
	WRITTEN_TO_PLACE_IN_BATCH,
	UPDATED_IN_ANY_CASE,
	NORM_IN_ANY_CASE,
	NORM_LEFT_OUT,
	OFFSETS_IGNORED,
	LAST_TOKEN_LEFT_OUT,
	NOTHING_KEPT,
	KEPT_BEFORE_THE_TOKEN,
	KEPT_ONE_TOKEN_LATE,
	KEPT_TRANSPOSED,
	KEPT_BY_PLACE_IN_BATCH,
	KEPT_FOR_LAST_TOKEN_ALONE,
	KEPT_ONTO_WHAT_WAS_THERE,
	KEPT_IN_EVERY_SLOT,
};

struct emulation {
	struct trial *t;
	struct gdn_roles roles;
	struct gdn_extent e;
	enum mistake mistake;
	bool updates, norm, v_last;
	float scale;
};

static int64_t whole(const struct tensor *tensor, int64_t index)
{
	return (int64_t)dtype_load(tensor->data, tensor->dtype, index);
}

static void read_head(const struct emulation *m, int input, int64_t token, int64_t heads, int64_t h, float *out)
{
	int64_t from = m->e.v_heads / heads, head = m->mistake == HEADS_TILED ? h % heads : h / from, dim = m->e.k_dim;
	float square = 0;

	for (int64_t i = 0; i < dim; i++) {
		out[i] = get(&m->t->in[input], (token * heads + head) * dim + i);
		square += out[i] * out[i];
	}
	for (int64_t i = 0; i < dim && m->norm; i++)
		out[i] *= 1 / sqrtf(square);
}

static float decay_of(const struct emulation *m, int64_t place, int64_t h)
{
	const struct tensor *in = m->t->in;
	float rate = get(&in[m->roles.a_log], h);
	float x = get(&in[m->mistake == GATES_SWAPPED ? m->roles.b : m->roles.a], place);
	float bias = m->mistake == BIAS_LEFT_OUT ? 0 : get(&in[m->roles.dt_bias], h);

	x += bias;
	if (m->mistake == DECAY_LEFT_OUT)
		return 1;
	if (m->mistake == SOFTPLUS_OVERFLOWS)
		x = logf(1 + expf(x));
	else if (m->mistake != SOFTPLUS_LEFT_OUT)
		x = x > 20 ? x : log1pf(expf(x));
	return expf(-(m->mistake == A_LOG_FOR_ITS_EXPONENTIAL ? rate : expf(rate)) * x);
}

static float strength_of(const struct emulation *m, int64_t place)
{
	float b = get(&m->t->in[m->mistake == GATES_SWAPPED ? m->roles.a : m->roles.b], place);
	float beta = m->mistake == SIGMOID_LEFT_OUT ? b : 1 / (1 + expf(-b));

	return m->mistake == STRENGTH_2_PERCENT ? 1.02f * beta : beta;
}

/* Updates `state` with one token. `state` is [K][V], as in many references. */
static void emulate_token(const struct emulation *m, int64_t token, int64_t h, float *state)
{
	const struct gdn_extent *e = &m->e;
	float q[DIM_MOST], k[DIM_MOST];
	int64_t place = token * e->v_heads + h;
	float g = decay_of(m, place, h), beta = strength_of(m, place);

	read_head(m, m->roles.q, token, e->q_heads, h, q);
	read_head(m, m->roles.k, token, e->k_heads, h, k);
	for (int64_t j = 0; j < e->v_dim; j++) {
		float recalled = 0, before = 0, after = 0, correction;

		for (int64_t i = 0; i < e->k_dim; i++) {
			float *s = &state[i * e->v_dim + j];

			recalled += k[i] * (m->mistake == RECALLED_BEFORE_DECAY ? *s : g * *s);
			*s *= g;
			before += q[i] * *s;
		}
		if (m->mistake == NOTHING_ERASED)
			recalled = 0;
		correction = beta * (get(&m->t->in[m->roles.v], place * e->v_dim + j) - recalled);
		for (int64_t i = 0; i < e->k_dim; i++) {
			state[i * e->v_dim + j] += k[i] * correction;
			after += q[i] * state[i * e->v_dim + j];
		}
		set(&m->t->out[m->roles.output], place * e->v_dim + j,
		    m->scale * (m->mistake == ANSWERED_BEFORE_CORRECTION ? before : after));
	}
}

/* The states of one head are a matrix, stored by rows or by columns. Returns the index of the state for key element i
 * and value element j. */
static int64_t stored(const struct emulation *m, int64_t i, int64_t j)
{
	return m->v_last != (m->mistake == STATE_TRANSPOSED) ? i * m->e.v_dim + j : j * m->e.k_dim + i;
}

static void tokens_of(const struct emulation *m, int64_t n, int64_t *first, int64_t *end)
{
	const struct tensor *offsets;

	*first = n * m->e.tokens;
	*end = *first + m->e.tokens;
	if (m->roles.cu_seqlens >= 0) {
		offsets = &m->t->in[m->roles.cu_seqlens];
		*first = m->mistake == OFFSETS_IGNORED ? n * m->e.total / m->e.sequences : whole(offsets, n);
		*end = m->mistake == OFFSETS_IGNORED ? (n + 1) * m->e.total / m->e.sequences : whole(offsets, n + 1);
	}
	*end -= m->mistake == LAST_TOKEN_LEFT_OUT;
}

/* Stores the state after token `i` in the buffer of intermediate states. */
static void emulate_keeping(const struct emulation *m, int64_t n, int64_t i, int64_t h, const float *state)
{
	const struct gdn_extent *e = &m->e;
	struct tensor *to = &m->t->out[op_own_place(m->t->problem, m->roles.buffer)];
	bool by_slot = gdn_buffer_by_slot(m->t->problem, &m->roles) && m->mistake != KEPT_BY_PLACE_IN_BATCH;
	int64_t row = by_slot ? whole(&m->t->in[m->roles.indices], n) : n, size = e->k_dim * e->v_dim;
	int64_t token = m->mistake == KEPT_ONE_TOKEN_LATE ? (i + 1) % e->tokens : i;

	if (m->mistake == NOTHING_KEPT || (m->mistake == KEPT_FOR_LAST_TOKEN_ALONE && i < e->tokens - 1))
		return;
	for (int64_t s = 0; s < (m->mistake == KEPT_IN_EVERY_SLOT ? to->shape[0] : 1); s++)
		for (int64_t j = 0; j < size; j++) {
			int64_t place = m->mistake == KEPT_TRANSPOSED ? j : stored(m, j / e->v_dim, j % e->v_dim);
			int64_t at = (((row + s) % to->shape[0] * e->tokens + token) * e->v_heads + h) * size + place;

			set(to, at, state[j] + (m->mistake == KEPT_ONTO_WHAT_WAS_THERE ? get(to, at) : 0));
		}
}

static void emulate_head(const struct emulation *m, int64_t n, int64_t h)
{
	const struct gdn_extent *e = &m->e;
	const struct tensor *from = &m->t->in[m->roles.state];
	struct tensor *to = &m->t->out[m->roles.new_state];
	bool indexed = m->roles.indices >= 0 && m->mistake != SLOTS_IGNORED;
	int64_t slot = indexed ? whole(&m->t->in[m->roles.indices], n) : n, size = e->k_dim * e->v_dim, first, end;
	int64_t target = m->mistake == WRITTEN_TO_PLACE_IN_BATCH ? n : slot;
	float *state = calloc((size_t)size, sizeof *state);

	assert_non_null(state);
	for (int64_t i = 0; i < e->k_dim && from->data != NULL && m->mistake != INITIAL_STATE_IGNORED; i++)
		for (int64_t j = 0; j < e->v_dim; j++)
			state[i * e->v_dim + j] = get(from, (slot * e->v_heads + h) * size + stored(m, i, j));
	tokens_of(m, n, &first, &end);
	for (int64_t t = first; t < end; t++) {
		if (m->roles.buffer >= 0 && m->mistake == KEPT_BEFORE_THE_TOKEN)
			emulate_keeping(m, n, t - first, h, state);
		emulate_token(m, t, h, state);
		if (m->roles.buffer >= 0 && m->mistake != KEPT_BEFORE_THE_TOKEN)
			emulate_keeping(m, n, t - first, h, state);
	}
	for (int64_t i = 0; i < e->k_dim && m->updates; i++)
		for (int64_t j = 0; j < e->v_dim; j++)
			set(to, (target * e->v_heads + h) * size + stored(m, i, j), state[i * e->v_dim + j]);
	free(state);
}

static void emulate(struct trial *t, int mistake)
{
	struct emulation m = {
	    .t = t, .roles = gdn_roles_of(t->problem), .mistake = (enum mistake)mistake, .v_last = t->problem == &problems[OBLONG]};
	struct tensor *to = &t->out[m.roles.new_state];

	m.e = gdn_extent_of(&t->c, &m.roles);
	m.norm = m.roles.l2norm >= 0 ? t->c.scalar[m.roles.l2norm] != 0 : t->problem == &problems[OBLONG];
	m.norm = (m.norm || mistake == NORM_IN_ANY_CASE) && mistake != NORM_LEFT_OUT;
	m.updates = m.roles.frozen < 0 || t->c.scalar[m.roles.frozen] == 0 || mistake == UPDATED_IN_ANY_CASE;
	m.updates =
	    m.updates && mistake != STATE_NOT_WRITTEN && !(t->c.constant_count > 0 && t->c.constants[0].value == 0);
	m.scale = m.roles.scale >= 0 && mistake != SCALE_LEFT_OUT ? (float)t->c.scalar[m.roles.scale] : 0;
	m.scale = m.scale != 0 || mistake == SCALE_LEFT_OUT ? m.scale : 1 / sqrtf((float)m.e.k_dim);
	m.scale = mistake == SCALE_LEFT_OUT ? 1 : mistake == SCALE_2_PERCENT ? 1.02f * m.scale : m.scale;
	for (int64_t i = 0; i < to->elements; i++)
		set(to, i, t->in[m.roles.state].data != NULL ? get(&t->in[m.roles.state], i) : 0);
	for (int64_t n = 0; n < m.e.sequences; n++)
		for (int64_t h = 0; h < m.e.v_heads; h++)
			emulate_head(&m, n, h);
	trial_spoil(t, mistake == ALL_ZERO, mistake == ONE_NAN);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void correct_references_pass_for_every_seed(void **state)
{
	static const int right[] = {NONE, TRIAL_END};
	struct trial t;

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&gdn_op, &problems[p], SEEDS, emulate, right);
	assert_true(trial_open_size(&t, &gdn_op, &published, SIZE_SMALL, 1, 0));
	emulate(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
}

static void every_mistake_is_caught(void **state)
{
	static const struct {
		int problem;
		enum mistake mistake;
	} own[] = {
	    {DECODE, STATE_NOT_WRITTEN},         {POOLED, STATE_NOT_WRITTEN},     {POOLED, SLOTS_IGNORED},
	    {POOLED, WRITTEN_TO_PLACE_IN_BATCH}, {POOLED, LAST_TOKEN_LEFT_OUT},   {SWITCHED, STATE_NOT_WRITTEN},
	    {SWITCHED, SLOTS_IGNORED},           {SWITCHED, UPDATED_IN_ANY_CASE}, {SWITCHED, NORM_IN_ANY_CASE},
	    {SWITCHED, NORM_LEFT_OUT},           {PREFILL, OFFSETS_IGNORED},      {PREFILL, LAST_TOKEN_LEFT_OUT},
	    {PREFILL, STATE_NOT_WRITTEN},        {OBLONG, NORM_LEFT_OUT},         {POOLED, NOTHING_KEPT},
	    {POOLED, KEPT_BEFORE_THE_TOKEN},     {POOLED, KEPT_ONE_TOKEN_LATE},   {POOLED, KEPT_TRANSPOSED},
	    {POOLED, KEPT_BY_PLACE_IN_BATCH},    {POOLED, KEPT_FOR_LAST_TOKEN_ALONE},
	    {POOLED, KEPT_ONTO_WHAT_WAS_THERE},  {POOLED, KEPT_IN_EVERY_SLOT},    {BY_BATCH, NOTHING_KEPT},
	    {BY_BATCH, KEPT_ONE_TOKEN_LATE},
	};

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++) {
		for (int p = DECODE; p <= PREFILL; p++)
			for (int mistake = NONE + 1; mistake <= ONE_NAN; mistake += MISTAKE_STEP)
				assert_mistake_caught(&gdn_op, &problems[p], seed, emulate, mistake);
		for (int i = 0; i < COUNT(own); i++)
			assert_mistake_caught(&gdn_op, &problems[own[i].problem], seed, emulate, (int)own[i].mistake);
	}
}

static void optional_inputs_may_be_absent(void **state)
{
	struct trial t;
	struct gdn_roles roles = gdn_roles_of(&problems[PREFILL]);
	struct err err = {""};

	(void)state;
	assert_true(trial_open_size(&t, &gdn_op, &problems[PREFILL], SIZE_SMALL, 1, 0));
	free(t.in[roles.state].data);
	t.in[roles.state].data = NULL;
	t.c.scalar[roles.scale] = 0;
	assert_int_equal(gdn_op.oracle(&t.c, t.in, t.truth, &err), 0);
	emulate(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
}

static void offsets_and_slots_are_valid_and_ragged(void **state)
{
	struct trial t;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct gdn_roles roles = gdn_roles_of(&problems[PREFILL]);
		struct err err = {""};
		const int64_t *at;

		assert_true(trial_open_size(&t, &gdn_op, &problems[PREFILL], SIZE_MEDIUM, 0, seed));
		at = t.in[roles.cu_seqlens].data;
		assert_int_equal(gdn_op.check(&t.c, t.in, &err), 0);
		assert_true(at[0] == 0 && at[1] == 1024 && at[2] == 1025 && at[3] == 1089 && at[4] == 1105 && at[65] == 1281);
		trial_close(&t);
		roles = gdn_roles_of(&problems[POOLED]);
		assert_true(trial_open_size(&t, &gdn_op, &problems[POOLED], SIZE_MEDIUM, 0, seed));
		assert_int_equal(gdn_op.check(&t.c, t.in, &err), 0);
		assert_true(fabsf(get(&t.in[roles.buffer], 5)) >= 64);
		trial_close(&t);
	}
}

/* There are slot numbers on both sides of 128 and of 256, so that an implementation that stores them in one byte reads
 * a wrong state. An implementation that loses any other bit of a slot number also reads a wrong state. */
static void slots_lie_where_bytes_end(void **state)
{
	static const int64_t ends[] = {127, 128, 255, 256};

	(void)state;
	for (int p = POOLED; p <= SWITCHED; p++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			int indices = gdn_roles_of(&problems[p]).indices, met = 0;
			struct trial t;

			assert_true(trial_open_size(&t, &gdn_op, &problems[p], SIZE_MEDIUM, 2, seed));
			for (int64_t n = 0; n < t.in[indices].elements; n++)
				for (int e = 0; e < COUNT(ends); e++)
					met += get(&t.in[indices], n) == (float)ends[e];
			assert_int_equal(met, COUNT(ends));
			trial_close(&t);
		}
}

/* A pool with small states has so many slots that a slot number needs more than one byte. Pools with large states have
 * only a few unused slots. */
static void pools_are_large_where_states_are_small(void **state)
{
	(void)state;
	assert_int_equal(recurrence_pool(33, 4 * 128 * 128), 264);
	assert_int_equal(recurrence_pool(33, 2 * 4 * 128 * 128), 40);
	assert_int_equal(recurrence_pool(320, 64), 327);
}

/* The norm of a key is near 1, 1/2 or 5/4. */
static void keys_have_a_norm_near_one(void **state)
{
	struct gdn_roles roles = gdn_roles_of(&published);
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &gdn_op, &published, SIZE_MEDIUM, 0, 0));
	for (int64_t row = 0; row < t.in[roles.k].elements / 128; row++) {
		double square = 0;

		for (int64_t i = 0; i < 128; i++)
			square += pow((double)get(&t.in[roles.k], row * 128 + i), 2);
		assert_true(square > 0.6 / 4 && square < 1.5 * 25 / 16);
	}
	trial_close(&t);
}

/* Opens the last small case of a problem. */
static void open_last(struct trial *t, const struct op_problem *problem)
{
	if (!trial_open_size(t, &gdn_op, problem, SIZE_SMALL, 2, 0))
		assert_true(trial_open_size(t, &gdn_op, problem, SIZE_SMALL, 1, 0));
}

/* Sets element `at` of an input to `value`, and expects a message that contains `part`. */
static void expect_invalid(const struct op_problem *problem, int input, int64_t at, double value, const char *part)
{
	struct err err = {""};
	struct trial t;

	open_last(&t, problem);
	dtype_store(t.in[input].data, t.in[input].dtype, at, value);
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), -1);
	if (strstr(err.text, part) == NULL)
		fail_msg("'%s' does not mention '%s'", err.text, part);
	assert_int_equal(gdn_op.oracle(&t.c, t.in, t.truth, &err), -1);
	trial_close(&t);
}

static void offsets_and_slots_that_lead_nowhere_are_refused(void **state)
{
	int offsets = gdn_roles_of(&problems[PREFILL]).cu_seqlens, slots = gdn_roles_of(&problems[POOLED]).indices;
	int64_t axis[TRIAL_AXES * TRIAL_ROWS];
	struct err err = {""};
	struct trial t;

	(void)state;
	expect_invalid(&problems[PREFILL], offsets, 0, 1, "does not start with 0");
	expect_invalid(&problems[PREFILL], offsets, 2, 1e6, "cu_seqlens[2] is 1000000");
	expect_invalid(&problems[PREFILL], offsets, 2, 3, "cu_seqlens[2] is 3: it must be at least cu_seqlens[1]");
	expect_invalid(&problems[PREFILL], offsets, 2, -1, "cu_seqlens[2] is -1");
	expect_invalid(&problems[PREFILL], offsets, 1, 130, "gives sequence 1 no token");
	expect_invalid(&problems[PREFILL], offsets, 2, 129, "ends with 129, but there are 130 tokens");
	expect_invalid(&problems[POOLED], slots, 1, 3, "initial_state_indices[1] is 3, but must be at least 0 and "
						       "less than 3 (the number of states)");
	expect_invalid(&problems[POOLED], slots, 2, -1, "initial_state_indices[2] is -1, but must be at least 0 "
							"and less than 3 (the number of states)");
	expect_invalid(&problems[POOLED], slots, 0, 2147483647, "initial_state_indices[0] is 2147483647");

	/* Two sequences have the same slot. This is invalid if the pool is updated, and valid if the pool is only
	 * read. */
	open_last(&t, &problems[POOLED]);
	dtype_store(t.in[slots].data, DTYPE_INT32, 0, dtype_load(t.in[slots].data, DTYPE_INT32, 2));
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "which sequence 0 also updates"));
	/* invalid, because both sequences would store to the same place in the buffer of intermediate states */
	t.c.constants[0].value = 0;
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), -1);
	trial_close(&t);
	open_last(&t, &problems[BY_BATCH]);
	dtype_store(t.in[slots].data, DTYPE_INT32, 0, dtype_load(t.in[slots].data, DTYPE_INT32, 2));
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), -1);
	t.c.constants[0].value = 0;
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), 0);
	assert_int_equal(gdn_op.oracle(&t.c, t.in, t.truth, &err), 0);
	trial_close(&t);

	/* The lengths of the axes contradict the offsets. The oracle rejects the case and reads nothing beyond the end
	 * of a tensor. */
	assert_true(trial_open_size(&t, &gdn_op, &problems[PREFILL], SIZE_SMALL, 1, 0));
	t.axis[SEQUENCES] = 1;
	assert_int_equal(gdn_op.oracle(&t.c, t.in, t.truth, &err), -1);
	assert_non_null(strstr(err.text, "1 states for 2 sequences"));
	t.axis[SEQUENCES] = 2;
	t.axis[TOTAL] = 1;
	assert_int_equal(gdn_op.fill(&t.c, offsets, &t.in[offsets], &err), -1);
	assert_non_null(strstr(err.text, "1 tokens cannot be distributed over 2 sequences"));
	trial_close(&t);
	open_last(&t, &problems[POOLED]);
	t.axis[POOL] = 2;
	assert_int_equal(gdn_op.fill(&t.c, slots, &t.in[slots], &err), -1);
	assert_non_null(strstr(err.text, "2 states for 3 sequences"));
	trial_close(&t);
	assert_int_equal(gdn_op.sizes(&problems[POOLED], 0, SIZE_SMALL, axis, 1), -1);
}

/* Inputs without a defined result are rejected: NaN in any input, and zeros in a whole row that the operation
 * normalises. */
static void numbers_that_nothing_follows_from_are_refused(void **state)
{
	struct gdn_roles roles = gdn_roles_of(&problems[OBLONG]);
	struct err err = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &gdn_op, &problems[OBLONG], SIZE_SMALL, 1, 0));
	t.c.given = UINT32_MAX;
	set(&t.in[roles.dt_bias], 1, NAN);
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "input 'dt_bias' holds NaN at [1]"));
	set(&t.in[roles.dt_bias], 1, 0);
	for (int64_t i = 0; i < 24; i++)
		set(&t.in[roles.k], 24 + i, 0);
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "input 'k' has a row of zeros at [0, 0, 1, 0]"));
	t.c.given = 0;
	assert_int_equal(gdn_op.check(&t.c, t.in, &err), 0);
	trial_close(&t);
}

static struct op_constant constant_of(const struct op_problem *problem)
{
	struct op_constant constants[OP_CONSTANTS];

	assert_int_equal(gdn_op.constants(problem, 0, constants), 1);
	return constants[0];
}

/* The tags or the description of a definition may say whether an operation on several tokens updates the pool of
 * states. If neither the tags nor the description say so, reftest runs the reference once to find out. */
static void whether_a_pool_is_updated_is_attested_or_probed(void **state)
{
	static const char *const tags[] = {"stage:mtp", "disable_state_update=false"};
	struct op_constant constant = constant_of(&problems[POOLED]), none[OP_CONSTANTS];
	struct op_problem problem = problems[POOLED];
	struct err err = {""};
	struct trial t;

	(void)state;
	assert_true(isnan(constant.value));
	assert_string_equal(constant.source, "unattested");
	problem.tags = tags;
	problem.tag_count = 2;
	assert_true(constant_of(&problem).value == 1);
	problem.description = "Drafts, with disable_state_update=True.";
	assert_true(constant_of(&problem).value == 0);
	assert_string_equal(constant_of(&problem).source, "description");
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(gdn_op.constants(&problems[p], 0, none), p == POOLED || p == BY_BATCH);

	for (int updated = 0; updated < 2; updated++) {
		int64_t axis[TRIAL_AXES];

		gdn_op.probe_axes(&problems[POOLED], 0, axis);
		trial_open(&t, &gdn_op, &problems[POOLED], axis, 0);
		emulate(&t, updated ? NONE : STATE_NOT_WRITTEN);
		assert_int_equal(gdn_op.probe(&t.c, t.in, t.out, &constant, &err), 0);
		assert_true(constant.value == updated);
		trial_close(&t);
	}
}

/* If a reference must not update the pool, every bit of the pool must stay the same. */
static void a_pool_that_is_not_updated_is_the_same_bits(void **state)
{
	struct gdn_roles roles = gdn_roles_of(&problems[POOLED]);
	struct err err = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &gdn_op, &problems[POOLED], SIZE_SMALL, 1, 0));
	t.c.constants[0].value = 0;
	assert_int_equal(gdn_op.oracle(&t.c, t.in, t.truth, &err), 0);
	emulate(&t, NONE);
	trial_assert_passes(&t);
	set(&t.out[roles.new_state], 77, nextafterf(get(&t.out[roles.new_state], 77), 1));
	assert_false(trial_passes(&t));
	trial_close(&t);
}

static void only_the_buffer_is_written(void **state)
{
	struct gdn_roles roles = gdn_roles_of(&problems[POOLED]);
	struct op_case c = {.problem = &problems[POOLED]};

	(void)state;
	for (int i = 0; i < problems[POOLED].input_count; i++)
		assert_int_equal(gdn_op.in_place(&c, i).place, i == roles.buffer ? 2 + i : OP_KEPT);
	assert_false(gdn_op.in_place(&c, roles.buffer).may_keep);
	c.problem = &problems[DECODE];
	for (int i = 0; i < problems[DECODE].input_count; i++)
		assert_int_equal(gdn_op.in_place(&c, i).place, OP_KEPT);
}

static void layouts_are_recognised_by_shape_then_by_name(void **state)
{
	struct op_problem square = problems[DECODE];

	(void)state;
	assert_int_equal(gdn_op.match(&problems[OBLONG], NULL), GDN_V_LAST | GDN_L2NORM);
	assert_int_equal(gdn_op.match(&square, NULL), 0);
	square.name = "gdn_decode_v_last";
	assert_int_equal(gdn_op.match(&square, NULL), GDN_V_LAST);
	square.name = "gdn_decode";
	square.description = "States are K-major.";
	assert_int_equal(gdn_op.match(&square, NULL), GDN_V_LAST);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct op_arg inputs[OP_ARGS], outputs[2];
	struct op_axis axes[COUNT(one_token)];
	struct op_problem p = problems[DECODE];

	(void)state;
#define AGAIN                                                                                                          \
	memcpy(inputs, decode_in, sizeof decode_in);                                                                   \
	memcpy(outputs, decode_out, sizeof decode_out);                                                                \
	memcpy(axes, one_token, sizeof one_token);                                                                     \
	p.inputs = inputs;                                                                                             \
	p.outputs = outputs;                                                                                           \
	p.axes = axes;                                                                                                 \
	p.input_count = COUNT(decode_in)
	AGAIN;
	inputs[5].name = "alpha"; /* the input alpha is the decay itself, so the decay is not computed from other
				   * inputs */
	assert_refused(&gdn_op, &p, "'alpha'");
	AGAIN;
	inputs[0].dtype = DTYPE_INT32;
	assert_refused(&gdn_op, &p, "'q'");
	AGAIN;
	axes[HV].value = 5;
	assert_refused(&gdn_op, &p, "a const number of heads that divides the number of heads of v");
	AGAIN;
	axes[K].value = axes[V].value = 512;
	assert_refused(&gdn_op, &p, "at most 256");
	AGAIN;
	inputs[3].axis[3] = HV;
	assert_refused(&gdn_op, &p, "'state'");
	AGAIN;
	outputs[1].axis[0] = POOL;
	assert_refused(&gdn_op, &p, "'new_state'");
	AGAIN;
	inputs[4].axis[0] = HQ;
	assert_refused(&gdn_op, &p, "'A_log'");
	AGAIN;
	p.input_count = 5;
	assert_refused(&gdn_op, &p, "must include q, k, v, a, b, A_log and dt_bias");
	AGAIN;
	outputs[0].rank = 2;
	assert_refused(&gdn_op, &p, "'output'");
	p = problems[POOLED];
	p.inputs = inputs;
	memcpy(inputs, pool_in, sizeof pool_in);
	inputs[10].axis[1] = B;
	assert_refused(&gdn_op, &p, "'intermediate_states_buffer'");
	inputs[10].axis[0] = inputs[10].axis[1] = T;
	assert_refused(&gdn_op, &p, "'intermediate_states_buffer'");
	p = problems[PREFILL];
	p.inputs = inputs;
	memcpy(inputs, packed_in, sizeof packed_in);
	inputs[8] = inputs[9];
	p.input_count = 9;
	assert_refused(&gdn_op, &p, "cu_seqlens, which divides the tokens into sequences");
}

static void right(struct trial *t)
{
	emulate(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	struct gdn_roles roles = gdn_roles_of(&problems[PREFILL]);
	struct trial t;

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(assert_edges_pass(&gdn_op, &problems[p], right), p == PREFILL ? 2 : 1);
	assert_true(trial_open_edge(&t, &gdn_op, &problems[PREFILL], "empty_sequence", 1));
	emulate(&t, NONE);
	memset(t.out[roles.new_state].data, 0, (size_t)t.out[roles.new_state].elements / 3 * sizeof(float));
	assert_false(trial_passes(&t)); /* the state of the first sequence, which has no token, is lost */
	trial_close(&t);
}

static void inputs_follow_the_seed(void **state)
{
	static const char *const digests[COUNT(problems)] = {
	    "cacace35cb18abc9b8a534545120b107",
	    "437ac2858a88735d836b99fe5d7b5eac",
	    "dc9f72074b8a05b0f2f1537bfe8fecd7",
	    "db31db8d49faeb87e4988392010ac251",
	    "63d79b6772d78db68a24203ba1354d98",
	    "4d994f013fa3ca33c1c5309156f7ad2d",
	};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++) {
		assert_inputs_follow_the_seed(&gdn_op, &problems[p], SIZE_SMALL);
		assert_inputs_are(&gdn_op, &problems[p], digests[p]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(correct_references_pass_for_every_seed),
	    cmocka_unit_test(every_mistake_is_caught),
	    cmocka_unit_test(optional_inputs_may_be_absent),
	    cmocka_unit_test(offsets_and_slots_are_valid_and_ragged),
	    cmocka_unit_test(slots_lie_where_bytes_end),
	    cmocka_unit_test(pools_are_large_where_states_are_small),
	    cmocka_unit_test(keys_have_a_norm_near_one),
	    cmocka_unit_test(offsets_and_slots_that_lead_nowhere_are_refused),
	    cmocka_unit_test(numbers_that_nothing_follows_from_are_refused),
	    cmocka_unit_test(whether_a_pool_is_updated_is_attested_or_probed),
	    cmocka_unit_test(a_pool_that_is_not_updated_is_the_same_bits),
	    cmocka_unit_test(only_the_buffer_is_written),
	    cmocka_unit_test(layouts_are_recognised_by_shape_then_by_name),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(inputs_follow_the_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
