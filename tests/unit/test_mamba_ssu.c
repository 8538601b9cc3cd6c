/* test_mamba_ssu - selective state update: correct references in float32 pass for every seed, and references with
 * common mistakes fail. */
#include "tests/unit/trial.h"

#include "kernels/core/input_check.h"
#include "kernels/mamba_ssu/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op mamba_ssu_op;

enum { SEEDS = MANY_SEEDS, STATES_MOST = 128 };

/* --- problems ----------------------------------------------------------------------------------------------------- */

enum { BATCH, SLOTS, HEADS, DIM, STATES, GROUPS };

#define AXES(heads, dim, states, groups)                                                                             \
	{                                                                                                            \
		{"batch_size", true, 0}, {"state_cache_size", true, 0}, {"nheads", false, heads},                    \
		{"head_dim", false, dim}, {"dstate", false, states}, {"ngroups", false, groups}                      \
	}

static const struct op_axis axes[] = AXES(8, 12, 32, 2);
/* with equal sizes, a transposed weight has the same shape */
static const struct op_axis square[] = AXES(16, 16, 16, 4);
static const struct op_axis as_published[] = AXES(64, 64, 128, 4);

#define STATE(dtype) {"state", dtype, 4, {SLOTS, HEADS, DIM, STATES}, false, NULL}
#define TOKEN(name) {name, DTYPE_BFLOAT16, 3, {BATCH, HEADS, DIM}, false, NULL}
#define GATE {"z", DTYPE_BFLOAT16, 3, {BATCH, HEADS, DIM}, true, NULL}
#define GROUP(name) {name, DTYPE_BFLOAT16, 3, {BATCH, GROUPS, STATES}, false, NULL}
#define DECAYS {"A", DTYPE_FLOAT32, 3, {HEADS, DIM, STATES}, false, NULL}
#define WEIGHT(name) {name, DTYPE_BFLOAT16, 2, {HEADS, DIM}, true, NULL}
#define BY_HEAD(name) {name, DTYPE_FLOAT32, 1, {HEADS}, false, NULL}
#define SCALAR(name, dtype) {name, dtype, OP_SCALAR, {0}, false, NULL}

static const struct op_arg full_in[] = {STATE(DTYPE_BFLOAT16), TOKEN("x"), TOKEN("dt"), DECAYS, GROUP("B"), GROUP("C"),
                                        WEIGHT("D"), WEIGHT("dt_bias"),
                                        {"state_batch_indices", DTYPE_INT32, 1, {BATCH}, true, NULL}};
static const struct op_arg gated_in[] = {STATE(DTYPE_FLOAT32), TOKEN("x"),
                                         {"dt", DTYPE_BFLOAT16, 2, {BATCH, HEADS}, false, NULL},
                                         BY_HEAD("A"), GROUP("B"), GROUP("C"), BY_HEAD("D"), GATE, BY_HEAD("dt_bias"),
                                         {"slots", DTYPE_INT64, 1, {BATCH}, false, NULL},
                                         SCALAR("dt_softplus", DTYPE_BOOL), SCALAR("pad_slot_id", DTYPE_INT32)};
static const struct op_arg plain_in[] = {STATE(DTYPE_FLOAT16), TOKEN("x"), TOKEN("dt"), DECAYS, GROUP("B"), GROUP("C")};

static const struct op_arg full_out[] = {TOKEN("output"), STATE(DTYPE_BFLOAT16)};
static const struct op_arg gated_out[] = {STATE(DTYPE_FLOAT32), TOKEN("output")};
static const struct op_arg plain_out[] = {TOKEN("output")};

static const struct op_problem problems[] = {
    PROBLEM("mamba_ssu_decode_full", "mamba_ssu", axes, full_in, full_out),
    PROBLEM("mamba_ssu_decode_square", "mamba_ssu", square, full_in, full_out),
    PROBLEM("mamba_ssu_decode_gated", "mamba_ssu", axes, gated_in, gated_out),
    PROBLEM("mamba_ssu_decode_plain", "mamba_ssu", axes, plain_in, plain_out),
};
enum { FULL, SQUARE, GATED, PLAIN };

static const struct op_problem published = PROBLEM("mamba_ssu_decode_h64_d64_s128_ng4", "mamba_ssu", as_published,
                                                   full_in, full_out);

/* --- a reference in float32 --------------------------------------------------------------------------------------- */

enum mistake {
	NONE,
	DECAY_LEFT_OUT,
	DECAY_WITHOUT_STEP,
	A_FOR_A_LOGARITHM,
	SOFTPLUS_LEFT_OUT,
	STEP_LEFT_OUT_OF_INPUT,
	B_AND_C_SWAPPED,
	GROUPS_TILED,
	READ_BEFORE_INPUT,
	INITIAL_STATE_IGNORED,
	OUTPUT_2_PERCENT,
	ALL_ZERO,
	ONE_NAN,
	BIAS_LEFT_OUT,
	D_LEFT_OUT,
	D_TRANSPOSED,
	STATE_NOT_WRITTEN,
	SLOTS_IGNORED,
	WRITTEN_TO_PLACE_IN_BATCH,
	PADDING_NOT_SKIPPED,
	OTHER_SLOTS_CLEARED,
	SOFTPLUS_OVERFLOWS,
	GATE_LEFT_OUT,
	GATE_WITHOUT_SILU,
	SOFTPLUS_IN_ANY_CASE,
	PAD_IS_MINUS_ONE,
};

struct emulation {
	struct trial *t;
	struct ssu_roles roles;
	struct ssu_extent e;
	enum mistake mistake;
};

static float value(const struct emulation *m, int input, int64_t index)
{
	return input < 0 || m->t->in[input].data == NULL ? 0 : get(&m->t->in[input], index);
}

/* Returns the weight of element i of a head. A weight of rank 1 has one value for all elements of a head. */
static float weight(const struct emulation *m, int input, int64_t h, int64_t i, bool transposed)
{
	bool by_head = input >= 0 && m->t->in[input].rank == 1;

	return value(m, input, by_head ? h : transposed ? i * m->e.heads + h : h * m->e.dim + i);
}

static float step_of(const struct emulation *m, int64_t n, int64_t h, int64_t i)
{
	int64_t row = n * m->e.heads + h;
	float step = value(m, m->roles.dt, m->t->in[m->roles.dt].rank == 2 ? row : row * m->e.dim + i);
	bool softplus = m->roles.softplus < 0 || m->t->c.scalar[m->roles.softplus] != 0;

	if (m->mistake != BIAS_LEFT_OUT)
		step += weight(m, m->roles.dt_bias, h, i, false);
	if (m->mistake == SOFTPLUS_OVERFLOWS)
		return logf(1 + expf(step));
	if (m->mistake == SOFTPLUS_LEFT_OUT || (!softplus && m->mistake != SOFTPLUS_IN_ANY_CASE))
		return step;
	return step > 20 ? step : log1pf(expf(step));
}

static float decay_of(const struct emulation *m, int64_t h, int64_t i, int64_t j, float step)
{
	bool by_head = m->t->in[m->roles.a].rank == 1;
	float a = value(m, m->roles.a, by_head ? h : (h * m->e.dim + i) * m->e.states + j);

	a = m->mistake == A_FOR_A_LOGARITHM ? -expf(a) : a;
	return m->mistake == DECAY_LEFT_OUT ? 1 : expf(m->mistake == DECAY_WITHOUT_STEP ? a : a * step);
}

/* Computes one element of one head. Reads the state with index `from`. Writes the state with index `to`, or no state if
 * `to` is negative. */
static float emulate_row(const struct emulation *m, int64_t n, int64_t h, int64_t i, int64_t from, int64_t to)
{
	const struct ssu_extent *e = &m->e;
	int64_t group = m->mistake == GROUPS_TILED ? h % e->groups : h / (e->heads / e->groups);
	int b = m->mistake == B_AND_C_SWAPPED ? m->roles.c : m->roles.b;
	int c = m->mistake == B_AND_C_SWAPPED ? m->roles.b : m->roles.c;
	float step = step_of(m, n, h, i), x = value(m, m->roles.x, (n * e->heads + h) * e->dim + i), y = 0;

	for (int64_t j = 0; j < e->states; j++) {
		int64_t at = (n * e->groups + group) * e->states + j;
		float held = m->mistake == INITIAL_STATE_IGNORED ? 0 : value(m, m->roles.state, from + j), input;

		held *= decay_of(m, h, i, j, step);
		input = (m->mistake == STEP_LEFT_OUT_OF_INPUT ? 1 : step) * x * value(m, b, at);
		y += (m->mistake == READ_BEFORE_INPUT ? held : held + input) * value(m, c, at);
		if (to >= 0 && m->mistake != STATE_NOT_WRITTEN)
			set(&m->t->out[ssu_states_place(m->t->problem, &m->roles)], to + j, held + input);
	}
	if (m->mistake != D_LEFT_OUT)
		y += weight(m, m->roles.d, h, i, m->mistake == D_TRANSPOSED) * x;
	return m->mistake == OUTPUT_2_PERCENT ? 1.02f * y : y;
}

static void emulate_sequence(const struct emulation *m, int64_t n)
{
	const struct ssu_extent *e = &m->e;
	bool indexed = m->roles.indices >= 0 && m->t->in[m->roles.indices].data != NULL && m->mistake != SLOTS_IGNORED;
	int64_t slot = indexed ? (int64_t)value(m, m->roles.indices, n) : n;
	int64_t pad = m->roles.pad < 0 || m->mistake == PAD_IS_MINUS_ONE ? -1 : (int64_t)m->t->c.scalar[m->roles.pad];
	bool skipped = indexed && slot == pad && m->mistake != PADDING_NOT_SKIPPED;

	slot = slot < 0 ? e->slots - 1 : slot; /* as in Python, the index -1 means the last slot */
	for (int64_t row = 0; row < e->heads * e->dim; row++) {
		int64_t size = e->heads * e->dim * e->states, at = n * e->heads * e->dim + row;
		int64_t target = m->mistake == WRITTEN_TO_PLACE_IN_BATCH ? n : slot;
		float y = skipped ? 0
		                  : emulate_row(m, n, row / e->dim, row % e->dim, slot * size + row * e->states,
		                                target * size + row * e->states);

		if (m->roles.z >= 0 && m->t->in[m->roles.z].data != NULL && m->mistake != GATE_LEFT_OUT) {
			float z = value(m, m->roles.z, at);

			y *= m->mistake == GATE_WITHOUT_SILU ? z : z / (1 + expf(-z));
		}
		set(&m->t->out[m->roles.output], at, y);
	}
}

static void emulate(struct trial *t, int mistake)
{
	struct emulation m = {.t = t, .roles = ssu_roles_of(t->problem), .mistake = (enum mistake)mistake};

	m.e = ssu_extent_of(&t->c, &m.roles);
	for (int64_t i = 0; i < t->in[m.roles.state].elements; i++)
		set(&t->out[ssu_states_place(t->problem, &m.roles)], i, mistake == OTHER_SLOTS_CLEARED ? 0 : value(&m, m.roles.state, i));
	for (int64_t n = 0; n < m.e.batch; n++)
		emulate_sequence(&m, n);
	trial_spoil(t, mistake == ALL_ZERO, mistake == ONE_NAN);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void correct_references_pass_for_every_seed(void **state)
{
	static const int right[] = {NONE, TRIAL_END};
	struct trial t;

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&mamba_ssu_op, &problems[p], SEEDS, emulate, right);
	assert_true(trial_open_size(&t, &mamba_ssu_op, &published, SIZE_SMALL, 0, 0));
	emulate(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
}

static void every_mistake_is_caught(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS_OR_ONE(5); seed++) {
		for (int p = 0; p < COUNT(problems); p++)
			for (int mistake = NONE + 1; mistake <= ONE_NAN; mistake += MISTAKE_STEP)
				assert_mistake_caught(&mamba_ssu_op, &problems[p], seed, emulate, mistake);
		for (int mistake = BIAS_LEFT_OUT; mistake <= SOFTPLUS_OVERFLOWS; mistake += MISTAKE_STEP)
			assert_mistake_caught(&mamba_ssu_op, &problems[SQUARE], seed, emulate, mistake);
		for (int mistake = GATE_LEFT_OUT; mistake <= PAD_IS_MINUS_ONE; mistake += MISTAKE_STEP)
			assert_mistake_caught(&mamba_ssu_op, &problems[GATED], seed, emulate, mistake);
		assert_mistake_caught(&mamba_ssu_op, &problems[GATED], seed, emulate, STATE_NOT_WRITTEN);
		assert_mistake_caught(&mamba_ssu_op, &problems[GATED], seed, emulate, PADDING_NOT_SKIPPED);
	}
}

static void what_is_optional_may_be_absent(void **state)
{
	struct ssu_roles roles = ssu_roles_of(&problems[FULL]), gated = ssu_roles_of(&problems[GATED]);
	const int absent[] = {roles.d, roles.dt_bias, roles.indices};
	struct err err = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[FULL], SIZE_SMALL, 1, 0));
	for (int i = 0; i < COUNT(absent); i++) {
		free(t.in[absent[i]].data);
		t.in[absent[i]].data = NULL;
		t.c.absent |= UINT64_C(1) << absent[i];
	}
	for (int i = 0; i < t.problem->input_count; i++) /* fills again, because without slots no sequence is padding */
		if (t.in[i].data != NULL)
			assert_int_equal(mamba_ssu_op.fill(&t.c, i, &t.in[i], &err), 0);
	assert_int_equal(mamba_ssu_op.oracle(&t.c, t.in, t.truth, &err), 0);
	emulate(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
	assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[GATED], SIZE_SMALL, 1, 0));
	free(t.in[gated.z].data);
	t.in[gated.z].data = NULL;
	assert_int_equal(mamba_ssu_op.oracle(&t.c, t.in, t.truth, &err), 0);
	emulate(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
}

static bool some_sequence_has(struct trial *t, int64_t slot)
{
	const struct tensor *slots = &t->in[ssu_roles_of(t->c.problem).indices];

	for (int64_t n = 0; n < slots->elements; n++)
		if ((int64_t)get(slots, n) == slot)
			return true;
	return false;
}

static void slots_are_distinct_and_some_are_padding(void **state)
{
	struct ssu_roles roles = ssu_roles_of(&problems[FULL]);

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct err err = {""};
		struct trial t;

		assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[FULL], SIZE_MEDIUM, 0, seed));
		for (int64_t n = 0; n < 16; n++)
			assert_int_equal(get(&t.in[roles.indices], n) == -1, n % 8 == 3);
		assert_true(some_sequence_has(&t, 0) && some_sequence_has(&t, t.in[roles.state].shape[0] - 1));
		assert_int_equal(mamba_ssu_op.check(&t.c, t.in, &err), 0);
		trial_close(&t);
	}
}

/* If there are more sequences than slots, the remaining sequences are padding. */
static void sequences_without_a_slot_are_padding(void **state)
{
	struct ssu_roles roles = ssu_roles_of(&problems[FULL]);
	const int64_t axis[] = {6, 2, 8, 12, 32, 2};
	struct trial t;

	(void)state;
	trial_open(&t, &mamba_ssu_op, &problems[FULL], axis, 0);
	for (int64_t n = 2; n < 6; n++)
		assert_true(get(&t.in[roles.indices], n) == -1);
	emulate(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
}

static void expect_invalid(const struct op_problem *problem, int64_t at, double slot, const char *part)
{
	struct tensor *slots;
	struct err err = {""};
	struct trial t;

	assert_true(trial_open_size(&t, &mamba_ssu_op, problem, SIZE_SMALL, 1, 0));
	slots = &t.in[ssu_roles_of(problem).indices];
	dtype_store(slots->data, slots->dtype, at, slot);
	assert_int_equal(mamba_ssu_op.check(&t.c, t.in, &err), -1);
	if (strstr(err.text, part) == NULL)
		fail_msg("'%s' does not mention '%s'", err.text, part);
	assert_int_equal(mamba_ssu_op.oracle(&t.c, t.in, t.truth, &err), -1);
	trial_close(&t);
}

static void slots_that_lead_nowhere_are_refused(void **state)
{
	struct ssu_roles roles = ssu_roles_of(&problems[FULL]);
	struct err err = {""};
	struct trial t;

	(void)state;
	expect_invalid(&problems[FULL], 1, 8, "state_batch_indices[1] is 8, but must be at least 0 and less than 8 "
					      "(the number of slots)");
	expect_invalid(&problems[FULL], 0, -2, "state_batch_indices[0] is -2, but must be at least 0 and less than "
					       "8 (the number of slots)");
	expect_invalid(&problems[FULL], 4, 2147483647, "state_batch_indices[4] is 2147483647");
	expect_invalid(&problems[GATED], 4, -0x1p62, "slots[4] is -4611686018427387904");

	assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[FULL], SIZE_SMALL, 1, 0));
	dtype_store(t.in[roles.indices].data, DTYPE_INT32, 4, dtype_load(t.in[roles.indices].data, DTYPE_INT32, 2));
	assert_int_equal(mamba_ssu_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "which sequence 2 also updates"));
	trial_close(&t);

	/* without slot indices, each sequence needs a state of its own */
	assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[PLAIN], SIZE_SMALL, 1, 0));
	t.axis[SLOTS] = 2;
	assert_int_equal(mamba_ssu_op.oracle(&t.c, t.in, t.truth, &err), -1);
	assert_non_null(strstr(err.text, "2 states for 5 sequences"));
	trial_close(&t);
}

/* NaN is rejected in every value on which a result depends. The tokens of a padding sequence may have any value. */
static void numbers_that_are_none_are_refused_unless_nobody_looks(void **state)
{
	struct ssu_roles roles = ssu_roles_of(&problems[GATED]);
	struct err err = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[GATED], SIZE_SMALL, 1, 0));
	t.c.given = UINT32_MAX;
	struct ssu_extent e = ssu_extent_of(&t.c, &roles);
	const struct tensor *slots = &t.in[roles.indices];
	int64_t size = t.in[roles.x].elements / e.batch, padding = 0, other = 0;

	while (check_integer(slots, padding) != ssu_pad(&t.c, &roles))
		padding++;
	while (check_integer(slots, other) == ssu_pad(&t.c, &roles))
		other++;
	assert_true(padding < e.batch && other < e.batch);
	set(&t.in[roles.x], padding * size + 3, NAN);
	assert_int_equal(mamba_ssu_op.check(&t.c, t.in, &err), 0);
	assert_int_equal(mamba_ssu_op.oracle(&t.c, t.in, t.truth, &err), 0);
	assert_true(get(&t.truth[roles.output], padding * size + 3) == 0);
	set(&t.in[roles.x], other * size + 3, NAN);
	assert_int_equal(mamba_ssu_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "holds NaN at ["));
	set(&t.in[roles.x], other * size + 3, 1);
	set(&t.in[roles.z], padding * size, INFINITY);
	assert_int_equal(mamba_ssu_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "infinity"));
	trial_close(&t);
}

static void only_the_state_may_be_written(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++) {
		struct ssu_roles roles = ssu_roles_of(&problems[p]);
		struct op_case c = {.problem = &problems[p]};

		for (int i = 0; i < problems[p].input_count; i++) {
			assert_int_equal(mamba_ssu_op.in_place(&c, i).place,
			                 i == roles.state ? ssu_states_place(&problems[p], &roles) : OP_KEPT);
			assert_true(mamba_ssu_op.in_place(&c, i).may_keep);
		}
	}
}

/* If no output returns the states, the judge compares the states in the input after the call. They must be either
 * updated correctly or unchanged. */
static void states_without_an_output_are_left_or_updated(void **state)
{
	struct trial t;
	int place;

	(void)state;
	assert_true(trial_open_size(&t, &mamba_ssu_op, &problems[PLAIN], SIZE_MEDIUM, 0, 3));
	place = ssu_states_place(t.problem, &(struct ssu_roles){.state = ssu_roles_of(t.problem).state, .new_state = -1});
	assert_true(place >= t.problem->output_count && ssu_roles_of(t.problem).new_state < 0);
	emulate(&t, NONE);
	trial_assert_passes(&t);
	set(&t.out[place], 9, get(&t.out[place], 9) + 0.25f);
	assert_false(trial_passes(&t));
	memcpy(t.out[place].data, t.in[place - t.problem->output_count].data,
	       (size_t)dtype_bytes(t.out[place].dtype, t.out[place].elements));
	trial_assert_passes(&t);
	trial_close(&t);
}

static void right(struct trial *t)
{
	emulate(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	struct trial t;

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(assert_edges_pass(&mamba_ssu_op, &problems[p], right),
		                 ssu_roles_of(&problems[p]).indices >= 0 ? 3 : 1);
	assert_true(trial_open_edge(&t, &mamba_ssu_op, &problems[FULL], "all_padding", 1));
	for (int64_t i = 0; i < t.in[ssu_roles_of(t.problem).indices].elements; i++)
		assert_true(get(&t.in[ssu_roles_of(t.problem).indices], i) < 0);
	trial_close(&t);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct op_axis changed[COUNT(axes)];
	struct op_arg inputs[COUNT(gated_in)];
	struct op_problem p = problems[GATED];

	(void)state;
	p.axes = changed;
	p.inputs = inputs;
#define AGAIN                                                                                                        \
	memcpy(changed, axes, sizeof axes);                                                                          \
	memcpy(inputs, gated_in, sizeof gated_in);                                                                   \
	p.input_count = COUNT(gated_in)
	AGAIN;
	changed[GROUPS].value = 3;
	assert_refused(&mamba_ssu_op, &p, "this number must divide the number of heads");
	AGAIN;
	inputs[1].name = "u";
	assert_refused(&mamba_ssu_op, &p, "'u'");
	AGAIN;
	inputs[2].axis[1] = DIM;
	assert_refused(&mamba_ssu_op, &p, "'dt'");
	AGAIN;
	inputs[3].rank = 2;
	assert_refused(&mamba_ssu_op, &p, "'A'");
	AGAIN;
	inputs[0].rank = 3;
	assert_refused(&mamba_ssu_op, &p, "'state'");
	AGAIN;
	inputs[5].dtype = DTYPE_INT8;
	assert_refused(&mamba_ssu_op, &p, "'C'");
	AGAIN;
	inputs[11].optional = true;
	assert_refused(&mamba_ssu_op, &p, "'pad_slot_id'");
	AGAIN;
	changed[HEADS].var = true;
	assert_refused(&mamba_ssu_op, &p, "only slots may be var");
	AGAIN;
	p.input_count = 5;
	assert_refused(&mamba_ssu_op, &p, "must include a state, x, dt, A, B and C");
	AGAIN;
	p.outputs = plain_in;
	p.output_count = 1;
	assert_refused(&mamba_ssu_op, &p, "needs an output with the shape of x");
}

/* The states may be written if the description of a tensor says so, and must be written if the description of the
 * definition says so. */
static void states_may_be_written_if_the_definition_says_so(void **state)
{
	struct op_arg in[COUNT(full_in)], out[COUNT(full_out)];
	struct op_problem p = problems[FULL];
	struct op_case c = {.problem = &p};

	(void)state;
	memcpy(in, full_in, sizeof in);
	memcpy(out, full_out, sizeof out);
	p.inputs = in;
	p.outputs = out;
	assert_int_equal(mamba_ssu_op.in_place(&c, 0).place, 1); /* the input and the output both have the name
								  * "state" */
	out[1].name = "new_state";
	assert_int_equal(mamba_ssu_op.in_place(&c, 0).place, OP_KEPT);
	out[1].description = "The same tensor, modified in-place.";
	assert_int_equal(mamba_ssu_op.in_place(&c, 0).place, 1);
	assert_true(mamba_ssu_op.in_place(&c, 0).may_keep);
	p.description = "States are updated in place.";
	assert_int_equal(mamba_ssu_op.in_place(&c, 0).place, 1);
	assert_false(mamba_ssu_op.in_place(&c, 0).may_keep);
}

/* If no output returns the states, a description may say that they are updated in place. A reference that updates only
 * a copy of the states then fails. */
static void states_that_are_updated_in_place_must_be_written(void **state)
{
	struct op_arg in[COUNT(plain_in)];
	struct op_problem p = problems[PLAIN];
	struct op_case c = {.problem = &p};

	(void)state;
	memcpy(in, plain_in, sizeof in);
	p.inputs = in;
	c.variant = mamba_ssu_op.match(&p, NULL);
	assert_true(mamba_ssu_op.in_place(&c, 0).may_keep);
	in[0].description = "All states. Updated in-place.";
	c.variant = mamba_ssu_op.match(&p, NULL);
	assert_false(mamba_ssu_op.in_place(&c, 0).may_keep);
	p.outputs = full_out;
	p.output_count = COUNT(full_out);
	c.variant = mamba_ssu_op.match(&p, NULL);
	assert_true(c.variant >= 0 && mamba_ssu_op.in_place(&c, 0).may_keep);
}

static void inputs_follow_the_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_inputs_follow_the_seed(&mamba_ssu_op, &problems[p], SIZE_SMALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(correct_references_pass_for_every_seed),
	    cmocka_unit_test(every_mistake_is_caught),
	    cmocka_unit_test(what_is_optional_may_be_absent),
	    cmocka_unit_test(slots_are_distinct_and_some_are_padding),
	    cmocka_unit_test(sequences_without_a_slot_are_padding),
	    cmocka_unit_test(slots_that_lead_nowhere_are_refused),
	    cmocka_unit_test(numbers_that_are_none_are_refused_unless_nobody_looks),
	    cmocka_unit_test(only_the_state_may_be_written),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(states_without_an_output_are_left_or_updated),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(states_may_be_written_if_the_definition_says_so),
	    cmocka_unit_test(states_that_are_updated_in_place_must_be_written),
	    cmocka_unit_test(inputs_follow_the_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
