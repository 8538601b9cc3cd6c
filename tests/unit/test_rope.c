/* test_rope - rotary embedding: correct references in float32 pass for every seed, and references with common mistakes
 * fail. */
#include "tests/unit/trial_second.h"

#include "kernels/rope/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op rope_op;

enum { SEEDS = MANY_SEEDS, T = 0, HQ, HK, D, MAX, R };

static const struct op_axis axes[] = {{"num_tokens", true, 0},   {"num_qo_heads", true, 0}, {"num_kv_heads", true, 0},
                                      {"head_size", false, 128}, {"max_seq_len", true, 0},  {"rotary_dim", false, 64}};
static const struct op_axis whole_axes[] = {
    {"nnz", true, 0}, {"num_q_heads", false, 4}, {"num_k_heads", false, 2}, {"head_dim", false, 64}};
static const struct op_axis flat_axes[] = {{"nnz", true, 0},           {"q_width", false, 4 * 64},
                                           {"k_width", false, 2 * 64}, {"head_size", false, 64},
                                           {"max_seq_len", true, 0},   {"rotary_dim", false, 64}};

#define Q {"q", DTYPE_BFLOAT16, 3, {T, HQ, D}, false, NULL}
#define K {"k", DTYPE_BFLOAT16, 3, {T, HK, D}, false, NULL}
#define CACHE {"cos_sin_cache", DTYPE_FLOAT32, 2, {MAX, R}, false, NULL}
#define POSITIONS {"positions", DTYPE_INT64, 1, {T}, false, NULL}
#define POS_IDS {"pos_ids", DTYPE_INT32, 1, {T}, false, NULL}
#define SCALAR(name, dtype) {name, dtype, OP_SCALAR, {0}, true, NULL}
static const struct op_arg outputs[] = {{"q_out", DTYPE_BFLOAT16, 3, {T, HQ, D}, false, NULL},
                                        {"k_out", DTYPE_BFLOAT16, 3, {T, HK, D}, false, NULL}};
static const struct op_arg wide_outputs[] = {{"q_out", DTYPE_FLOAT32, 3, {T, HQ, D}, false, NULL},
                                             {"k_out", DTYPE_FLOAT32, 3, {T, HK, D}, false, NULL}};
static const struct op_arg cached[] = {Q, K, CACHE, POSITIONS};
static const struct op_arg by_ids[] = {Q, K, POS_IDS};
static const struct op_arg by_ids_given[] = {Q,
                                             K,
                                             POS_IDS,
                                             SCALAR("rotary_dim", DTYPE_INT32),
                                             SCALAR("interleave", DTYPE_INT32),
                                             SCALAR("rope_scale", DTYPE_FLOAT32),
                                             SCALAR("rope_theta", DTYPE_FLOAT32)};
static const struct op_arg llama_given[] = {Q,
                                            K,
                                            POS_IDS,
                                            SCALAR("rope_scale", DTYPE_FLOAT32),
                                            SCALAR("rope_theta", DTYPE_FLOAT32),
                                            SCALAR("low_freq_factor", DTYPE_FLOAT32),
                                            SCALAR("high_freq_factor", DTYPE_FLOAT32),
                                            SCALAR("old_context_len", DTYPE_INT32)};
static const struct op_arg flat[] = {{"positions", DTYPE_INT64, 1, {T}, false, NULL},
                                     {"query", DTYPE_FLOAT16, 2, {T, HQ}, false, NULL},
                                     {"key", DTYPE_FLOAT16, 2, {T, HK}, false, NULL},
                                     SCALAR("head_size", DTYPE_INT32),
                                     CACHE,
                                     SCALAR("is_neox", DTYPE_BOOL)};
static const struct op_arg flat_outputs[] = {{"query", DTYPE_FLOAT16, 2, {T, HQ}, false, NULL},
                                             {"key", DTYPE_FLOAT16, 2, {T, HK}, false, NULL}};
static const char *const theta_tags[] = {"status:verified", "model:qwen3-8b"};

#define WITH_TAGS(name_, axes_, inputs_, outputs_, tags_, description_)                                              \
	{                                                                                                            \
		.name = name_, .op_type = "rope", .description = description_, .tags = tags_,                        \
		.tag_count = COUNT(tags_), .axes = axes_, .axis_count = COUNT(axes_), .inputs = inputs_,             \
		.input_count = COUNT(inputs_), .outputs = outputs_, .output_count = COUNT(outputs_)                  \
	}

static const struct op_problem problems[] = {
    PROBLEM("rope_with_cos_sin_cache_neox_style_d128_rd64", "rope", axes, cached, outputs),
    PROBLEM("rope_with_cos_sin_cache_interleaved_d128_rd64", "rope", axes, cached, wide_outputs),
    PROBLEM("rope_pos_ids_theta10000_h4_kv2_d64", "rope", whole_axes, by_ids, outputs),
    PROBLEM("rope_pos_ids_h4_kv2_d64", "rope", whole_axes, by_ids_given, wide_outputs),
    PROBLEM("llama31_rope_pos_ids_h4_kv2_d64", "rope", whole_axes, by_ids, outputs),
    PROBLEM("llama31_rope_pos_ids_given", "rope", whole_axes, llama_given, outputs),
    PROBLEM("rope_cos_sin_cache_flat_d64", "rope", flat_axes, flat, flat_outputs),
    WITH_TAGS("rope_interleave_pos_ids_qwen", whole_axes, by_ids, wide_outputs, theta_tags, ""),
};
enum { CACHED, CACHED_INTERLEAVED, THETA, GIVEN, LLAMA, LLAMA_GIVEN, FLAT, QWEN };

enum mistake {
	NONE,
	OTHER_PAIRS,
	SINE_NEGATED,
	HALVES_OF_CACHE_SWAPPED,
	NEXT_POSITION,
	PLACE_FOR_POSITION,
	POSITIONS_IGNORED,
	K_LEFT_ALONE,
	WHOLE_HEAD,
	REST_ZERO,
	REST_SCALED,
	SECOND_OF_PAIR_UNCHANGED,
	SECOND_FROM_ROTATED_FIRST,
	TWO_PERCENT_MORE,
	CACHE_ROUNDED,
	LAST_PAIR_LEFT_OUT,
	THETA_WRONG,
	SCALE_LEFT_OUT,
	SCALE_TWO_PERCENT,
	LINEAR_SCALING,
	NO_SCALING,
	SMOOTH_SWAPPED,
	OLD_CONTEXT_WRONG,
	FULL_DIMENSION_IN_EXPONENT,
	ALL_ZERO,
};

static float parameter(const struct trial *t, int n, float hidden)
{
	int input = rope_roles_of(t->problem).number[n];

	return input >= 0 ? (float)t->c.scalar[input] : hidden;
}

/* Returns the frequency of the rotation with index i, as a reference in float32 computes it. */
static float frequency(const struct trial *t, int64_t i, int64_t rotary_dim, enum mistake mistake)
{
	bool llama = (t->c.variant & ROPE_LLAMA31) != 0, qwen = t->problem == &problems[QWEN];
	float theta = parameter(t, ROPE_THETA, llama ? 500000.0f : qwen ? 1000000.0f : 10000.0f);
	float scale = parameter(t, ROPE_SCALE, llama ? 8 : 1);
	float low = parameter(t, ROPE_LOW, 1), high = parameter(t, ROPE_HIGH, 4),
	      old = parameter(t, ROPE_OLD_CONTEXT, 8192);

	theta = mistake == THETA_WRONG ? theta * 1.05f : theta;
	old = mistake == OLD_CONTEXT_WRONG ? old / 2 : old;
	scale = mistake == SCALE_LEFT_OUT ? 1 : mistake == SCALE_TWO_PERCENT ? scale * 1.02f : scale;
	int64_t dimension = mistake == FULL_DIMENSION_IN_EXPONENT ? 2 * rotary_dim : rotary_dim;
	float plain = 1.0f / powf(theta, (float)(2 * i) / (float)dimension), slow = plain / scale;

	if (!llama || mistake == LINEAR_SCALING)
		return slow;
	float wavelength = 6.2831853071795864769f / plain, smooth = (old / wavelength - low) / (high - low);

	if (wavelength < old / high || mistake == NO_SCALING)
		return plain;
	if (wavelength > old / low)
		return slow;
	smooth = mistake == SMOOTH_SWAPPED ? 1 - smooth : smooth;
	return (1 - smooth) * slow + smooth * plain;
}

static void angle_of(const struct trial *t, int64_t token, int64_t i, int64_t half, enum mistake mistake, float *cosine,
                     float *sine)
{
	struct rope_roles roles = rope_roles_of(t->problem);
	const struct tensor *at = &t->in[roles.positions];
	int64_t position = (int64_t)dtype_load(at->data, at->dtype, token);

	position = mistake == PLACE_FOR_POSITION ? token : mistake == POSITIONS_IGNORED ? 0 : position;
	if (roles.cache >= 0) {
		int64_t rows = t->in[roles.cache].shape[0], width = t->in[roles.cache].shape[1];
		int64_t row = (mistake == NEXT_POSITION ? position + 1 : position) % rows * width;
		bool swapped = mistake == HALVES_OF_CACHE_SWAPPED;

		i %= width / 2;
		*cosine = get(&t->in[roles.cache], row + i + (swapped ? width / 2 : 0));
		*sine = get(&t->in[roles.cache], row + i + (swapped ? 0 : width / 2));
	} else {
		float angle =
		    (float)(mistake == NEXT_POSITION ? position + 1 : position) * frequency(t, i, 2 * half, mistake);

		*cosine = cosf(angle);
		*sine = sinf(angle);
	}
	if (mistake == CACHE_ROUNDED) {
		*cosine = float_from_bf16(bf16_from_float(*cosine));
		*sine = float_from_bf16(bf16_from_float(*sine));
	}
}

enum { HEAD_MOST = 128 };

static void run_head(struct trial *t, int r, int64_t first, const float *cosine, const float *sine,
                     enum mistake mistake)
{
	struct rope_roles roles = rope_roles_of(t->problem);
	struct rope_extent e = rope_extent_of(&t->c);
	const struct tensor *in = &t->in[roles.rotated[r]];
	int64_t half = (mistake == WHOLE_HEAD ? e.head_size : e.rotary_dim) / 2;
	bool interleaved = (rope_interleaved(&t->c) != 0) != (mistake == OTHER_PAIRS);
	double x[HEAD_MOST], y[HEAD_MOST];
	float more = mistake == TWO_PERCENT_MORE ? 1.02f : 1;

	dtype_load_run(in->data, in->dtype, first, e.head_size, x);
	for (int64_t i = 0; i < e.head_size; i++)
		y[i] = mistake == ALL_ZERO || mistake == REST_ZERO ? 0 : x[i] * (mistake == REST_SCALED ? 1.02 : 1);
	if (mistake == K_LEFT_ALONE && r == 1)
		half = 0;
	for (int64_t i = 0; i < half - (mistake == LAST_PAIR_LEFT_OUT) && mistake != ALL_ZERO; i++) {
		int64_t left = interleaved ? 2 * i : i, right = interleaved ? 2 * i + 1 : i + half;
		float a = (float)x[left], b = (float)x[right], one = (a * cosine[i] - b * sine[i]) * more;

		y[left] = (double)one;
		if (mistake != SECOND_OF_PAIR_UNCHANGED)
			y[right] =
			    (double)((b * cosine[i] + (mistake == SECOND_FROM_ROTATED_FIRST ? one : a) * sine[i]) *
			             more);
	}
	dtype_store_run(t->out[r].data, t->out[r].dtype, first, e.head_size, y);
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	struct rope_extent e = rope_extent_of(&t->c);
	int64_t half = (mistake == WHOLE_HEAD ? e.head_size : e.rotary_dim) / 2;
	float cosine[HEAD_MOST], sine[HEAD_MOST];

	for (int64_t token = 0; token < e.tokens; token++) {
		for (int64_t i = 0; i < half; i++) {
			angle_of(t, token, i, half, mistake, &cosine[i], &sine[i]);
			sine[i] = mistake == SINE_NEGATED ? -sine[i] : sine[i];
		}
		for (int r = 0; r < rope_roles_of(t->problem).count; r++)
			for (int64_t head = 0; head < e.heads[r]; head++)
				run_head(t, r, (token * e.heads[r] + head) * e.head_size, cosine, sine, mistake);
	}
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&rope_op, &problems[p], SEEDS, run, ways);
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes_second(&rope_op, &problems[p], 3, run, NONE);
}

static const struct {
	enum mistake mistake;
	const char *name;
	int problems[9]; /* the problems in which this is a mistake; -1: the end */
} mistakes[] = {
    {OTHER_PAIRS,
     "neox for interleaved, or the reverse",
     {CACHED, CACHED_INTERLEAVED, THETA, LLAMA, GIVEN, FLAT, QWEN, -1}},
    {SINE_NEGATED, "rotated the other way", {CACHED, CACHED_INTERLEAVED, THETA, LLAMA, FLAT, -1}},
    {HALVES_OF_CACHE_SWAPPED, "sin for cos", {CACHED, CACHED_INTERLEAVED, FLAT, -1}},
    {NEXT_POSITION, "position off by one", {CACHED, THETA, LLAMA, FLAT, -1}},
    {PLACE_FOR_POSITION, "place in the batch for position", {CACHED, THETA, LLAMA, FLAT, -1}},
    {POSITIONS_IGNORED, "position 0 for all", {CACHED, THETA, LLAMA, FLAT, -1}},
    {K_LEFT_ALONE, "k not rotated", {CACHED, THETA, LLAMA, FLAT, -1}},
    {WHOLE_HEAD, "the whole head rotated", {CACHED, CACHED_INTERLEAVED, GIVEN, -1}},
    {REST_ZERO, "the rest not copied", {CACHED, CACHED_INTERLEAVED, GIVEN, -1}},
    {REST_SCALED, "the rest scaled", {CACHED, CACHED_INTERLEAVED, GIVEN, -1}},
    {SECOND_OF_PAIR_UNCHANGED, "half of each pair only", {CACHED, THETA, LLAMA, FLAT, -1}},
    {SECOND_FROM_ROTATED_FIRST, "second element from the rotated first", {CACHED, THETA, LLAMA, FLAT, -1}},
    {TWO_PERCENT_MORE, "2 % too large", {CACHED, CACHED_INTERLEAVED, THETA, GIVEN, LLAMA, FLAT, -1}},
    {CACHE_ROUNDED, "cache rounded to bfloat16", {CACHED, CACHED_INTERLEAVED, FLAT, -1}},
    {LAST_PAIR_LEFT_OUT, "last pair left out", {CACHED, CACHED_INTERLEAVED, THETA, FLAT, -1}},
    {THETA_WRONG, "theta 5 % off", {THETA, GIVEN, LLAMA, LLAMA_GIVEN, QWEN, -1}},
    {SCALE_LEFT_OUT, "scale left out", {GIVEN, LLAMA, LLAMA_GIVEN, -1}},
    {SCALE_TWO_PERCENT, "scale 2 % off", {GIVEN, LLAMA, LLAMA_GIVEN, -1}},
    {LINEAR_SCALING, "every frequency scaled", {LLAMA, LLAMA_GIVEN, -1}},
    {NO_SCALING, "no frequency scaled", {LLAMA, LLAMA_GIVEN, -1}},
    {SMOOTH_SWAPPED, "smooth factor the wrong way", {LLAMA, LLAMA_GIVEN, -1}},
    {OLD_CONTEXT_WRONG, "half the old context", {LLAMA, LLAMA_GIVEN, -1}},
    {FULL_DIMENSION_IN_EXPONENT, "exponent over twice the dimension", {THETA, GIVEN, LLAMA, -1}},
    {ALL_ZERO, "zeros", {CACHED, THETA, LLAMA, FLAT, -1}},
};

/* Returns true if a reference with the mistake fails with one of the sets of input values. */
static bool is_caught(const struct trial first[CONTENTS_COUNT], int mistake)
{
	bool caught = false;

	for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
		struct trial t;

		trial_open_again(&t, &first[contents]);
		run(&t, mistake);
		caught |= !trial_passes(&t);
		trial_close(&t);
	}
	return caught;
}

static bool is_mistake_in(int m, int problem)
{
	for (const int *p = mistakes[m].problems; *p >= 0; p++)
		if (*p == problem)
			return true;
	return false;
}

static void every_planted_mistake_fails_at_the_default_sizes(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		for (uint64_t seed = 1; seed <= SEEDS_OR_ONE(2); seed++) {
			struct trial first[CONTENTS_COUNT];

			for (int contents = 0; contents < CONTENTS_COUNT; contents++)
				assert_true(
				    trial_open_size(&first[contents], &rope_op, &problems[p], SIZE_MEDIUM, 0, seed));
			trial_take_second(&first[CONTENTS_SECOND]);
			for (int m = 0; m < COUNT(mistakes); m += MISTAKE_STEP)
				if (is_mistake_in(m, p) && !is_caught(first, mistakes[m].mistake))
					fail_msg("%s: '%s' passes with seed %llu", problems[p].name, mistakes[m].name,
					         (unsigned long long)seed);
			for (int contents = 0; contents < CONTENTS_COUNT; contents++)
				trial_close(&first[contents]);
		}
}

static void positions_are_within_the_cache_and_hold_the_first_and_the_last(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct trial t;
		int64_t most = 0, least = INT64_MAX;

		assert_true(trial_open_size(&t, &rope_op, &problems[CACHED], SIZE_MEDIUM, 0, seed));
		for (int64_t i = 0; i < t.in[3].elements; i++) {
			int64_t position = ((int64_t *)t.in[3].data)[i];

			most = position > most ? position : most;
			least = position < least ? position : least;
		}
		assert_int_equal(least, 0);
		assert_int_equal(most, t.axis[MAX] - 1);
		assert_int_equal(((int64_t *)t.in[3].data)[3], most);
		trial_close(&t);
	}
}

static void a_position_outside_the_cache_has_no_truth(void **state)
{
	static const int64_t outside[] = {-1, 40960, INT64_MAX, INT64_MIN};
	struct trial t;

	(void)state;
	for (int i = 0; i < COUNT(outside); i++) {
		assert_true(trial_open_size(&t, &rope_op, &problems[CACHED], SIZE_MEDIUM, 0, 1));
		assert_int_equal(t.axis[MAX], 40960);
		run(&t, NONE);
		((int64_t *)t.in[3].data)[2] = outside[i];
		assert_int_equal(rope_op.oracle(&t.c, t.in, t.truth, NULL), 0);
		assert_false(trial_passes(&t));
		trial_close(&t);
	}
}

static struct op_constant constant_of(const struct op_problem *problem, const char *name)
{
	struct op_constant found[OP_CONSTANTS];
	int count = rope_op.constants(problem, rope_op.match(problem, NULL), found);

	for (int i = 0; i < count; i++)
		if (strcmp(found[i].name, name) == 0)
			return found[i];
	fail_msg("%s has no constant %s", problem->name, name);
	return found[0];
}

static void theta_is_attested_by_name_model_description_and_llama_3_1s_publication(void **state)
{
	static const struct op_problem described =
	    WITH_TAGS("rope_a", whole_axes, by_ids, outputs, theta_tags, "Theta apart; theta is fixed at 500000.");
	static const struct op_axis with_axis[] = {{"nnz", true, 0},
	                                           {"num_q_heads", false, 4},
	                                           {"num_k_heads", false, 2},
	                                           {"head_dim", false, 64},
	                                           {"rope_theta", false, 20000}};
	static const struct op_problem by_axis = PROBLEM("rope_b", "rope", with_axis, by_ids, outputs);

	(void)state;
	assert_true(constant_of(&problems[THETA], "rope_theta").value == 10000);
	assert_string_equal(constant_of(&problems[THETA], "rope_theta").source, "name");
	assert_true(constant_of(&problems[QWEN], "rope_theta").value == 1e6);
	assert_string_equal(constant_of(&problems[QWEN], "rope_theta").source, "model:qwen3-8b");
	assert_true(constant_of(&problems[LLAMA], "rope_theta").value == 5e5);
	assert_true(constant_of(&problems[LLAMA], "rope_scale").value == 8);
	assert_true(constant_of(&problems[LLAMA], "old_context_len").value == 8192);
	assert_true(constant_of(&by_axis, "rope_theta").value == 20000);
	assert_true(constant_of(&described, "rope_theta").value == 1e6);
	assert_string_equal(constant_of(&described, "rope_theta").conflict,
	                    "rope_theta is 1e+06 according to model:qwen3-8b, but 500000 according to description");
}

static void an_unattested_theta_is_seen_in_the_reference(void **state)
{
	static const struct op_problem silent = PROBLEM("rope_pos_ids", "rope", whole_axes, by_ids, outputs);
	static const double thetas[] = {10000, 500000, 1e6, 250000};
	struct op_constant found[OP_CONSTANTS];
	int64_t axis[TRIAL_AXES];

	(void)state;
	for (int i = 0; i < COUNT(thetas); i++) {
		struct trial t;

		assert_int_equal(rope_op.constants(&silent, 0, found), 1);
		assert_true(isnan(found[0].value));
		rope_op.probe_axes(&silent, 0, axis);
		trial_open(&t, &rope_op, &silent, axis, 1);
		t.c.probe = 1;
		for (int input = 0; input < 3; input++)
			assert_int_equal(rope_op.fill(&t.c, input, &t.in[input], NULL), 0);
		t.c.constants[0].value = thetas[i];
		assert_int_equal(rope_op.oracle(&t.c, t.in, t.out, NULL), 0);
		assert_int_equal(rope_op.probe(&t.c, t.in, t.out, found, NULL), 0);
		assert_true(fabs(found[0].value - thetas[i]) < 1e-6);
		run(&t, ALL_ZERO);
		assert_int_equal(rope_op.probe(&t.c, t.in, t.out, found, NULL), -1);
		trial_close(&t);
	}
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg no_positions[] = {Q, K, CACHE};
	static const struct op_arg odd_scalar[] = {Q, K, POS_IDS, SCALAR("mystery", DTYPE_FLOAT32)};
	static const struct op_arg twice[] = {Q, K, POS_IDS, SCALAR("is_neox", DTYPE_BOOL), SCALAR("interleave", DTYPE_BOOL)};
	static const struct op_arg ragged[] = {Q, K, {"indptr", DTYPE_INT32, 1, {MAX}, false, NULL}, POS_IDS};
	static const struct op_axis odd[] = {{"num_tokens", true, 0},   {"num_qo_heads", true, 0},
	                                     {"num_kv_heads", true, 0}, {"head_size", false, 32},
	                                     {"max_seq_len", true, 0},  {"rotary_dim", false, 64}};
	static const struct op_axis unknown_size[] = {{"nnz", true, 0},         {"a", false, 256},
	                                              {"b", false, 128},        {"c", false, 64},
	                                              {"max_seq_len", true, 0}, {"rotary_dim", false, 64}};
	const struct op_problem cases[] = {
	    PROBLEM("a", "rope", axes, no_positions, outputs),
	    PROBLEM("b", "rope", axes, odd_scalar, outputs),
	    PROBLEM("c", "rope", axes, ragged, outputs),
	    PROBLEM("d", "rope", odd, cached, outputs),
	    PROBLEM("e", "rope", unknown_size, flat, flat_outputs),
	    PROBLEM("f", "rope", axes, twice, outputs),
	};
	static const char *const parts[] = {"positions", "mystery", "indptr", "rotary dimension", "is flat", "both determine"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&rope_op, &cases[i], parts[i]);
}

static void only_what_is_updated_in_place_may_be_written(void **state)
{
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &rope_op, &problems[FLAT], SIZE_SMALL, 0, 1));
	assert_int_equal(rope_op.in_place(&t.c, 1).place, 0);
	assert_int_equal(rope_op.in_place(&t.c, 0).place, OP_KEPT);
	trial_close(&t);
	assert_inputs_follow_the_seed(&rope_op, &problems[CACHED], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {3, 3, 2, 2, 2, 2, 3, 2};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(assert_edges_pass(&rope_op, &problems[p], right), edges[p]);
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&rope_op, &problems[CACHED], 3, 0, 40960,
		       "input 'positions' holds 40960 at [0]; a position must be the index of a row of the cache, which has "
		       "40960 rows");
	assert_brought(&rope_op, &problems[CACHED], 3, 2, -1, "holds -1 at [2]");
	assert_brought(&rope_op, &problems[CACHED], 3, -1, 9e18, "a position must be the index of a row");
	assert_brought(&rope_op, &problems[CACHED], 3, 1, 40959, NULL);
	assert_brought(&rope_op, &problems[CACHED], 2, 0, (double)NAN, "NaN");
	assert_brought(&rope_op, &problems[THETA], 2, 0, -5, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_default_sizes),
	    cmocka_unit_test(positions_are_within_the_cache_and_hold_the_first_and_the_last),
	    cmocka_unit_test(a_position_outside_the_cache_has_no_truth),
	    cmocka_unit_test(theta_is_attested_by_name_model_description_and_llama_3_1s_publication),
	    cmocka_unit_test(an_unattested_theta_is_seen_in_the_reference),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(only_what_is_updated_in_place_may_be_written),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
