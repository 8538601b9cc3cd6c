/* test_cascade - merging of attention states: correct references in float32 pass for every seed, and references with
 * common mistakes fail. */
#include "tests/unit/trial_second.h"

#include "kernels/cascade/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op cascade_op;

enum { SEEDS = MANY_SEEDS, T = 0, N, H, D };

static const struct op_axis axes[] = {
    {"seq_len", true, 0}, {"num_states", true, 0}, {"num_heads", false, 8}, {"head_dim", false, 64}};

#define V(name, dtype) {name, dtype, 3, {T, H, D}, false, NULL}
#define S(name) {name, DTYPE_FLOAT32, 2, {T, H}, false, NULL}
static const struct op_arg two[] = {V("v_a", DTYPE_BFLOAT16), S("s_a"), V("v_b", DTYPE_BFLOAT16), S("s_b")};
static const struct op_arg two_half[] = {V("v_a", DTYPE_FLOAT16), V("v_b", DTYPE_FLOAT16), S("s_a"), S("s_b")};
static const struct op_arg two_wide[] = {V("v_a", DTYPE_FLOAT32), S("s_a"), V("v_b", DTYPE_FLOAT32), S("s_b")};
static const struct op_arg masked[] = {
    V("v", DTYPE_BFLOAT16), S("s"), V("v_other", DTYPE_BFLOAT16), S("s_other"), {"mask", DTYPE_BOOL, 1, {T}, true, NULL}};
static const struct op_arg many[] = {{"v", DTYPE_BFLOAT16, 4, {T, N, H, D}, false, NULL},
                                     {"s", DTYPE_FLOAT32, 3, {T, N, H}, false, NULL}};
static const struct op_arg many_wide[] = {{"v", DTYPE_FLOAT32, 4, {T, N, H, D}, false, NULL},
                                          {"s", DTYPE_FLOAT32, 3, {T, N, H}, false, NULL}};
static const struct op_arg merged[] = {V("v_merged", DTYPE_BFLOAT16), S("s_merged")};
static const struct op_arg merged_half[] = {S("s_merged"), V("v_merged", DTYPE_FLOAT16)};
static const struct op_arg merged_wide[] = {V("v_merged", DTYPE_FLOAT32), S("s_merged")};
static const struct op_arg in_place[] = {V("v", DTYPE_BFLOAT16), S("s")};

static const struct op_problem problems[] = {
    PROBLEM("merge_state_h8_d64", "cascade", axes, two, merged),
    PROBLEM("merge_state_f16", "cascade_merge", axes, two_half, merged_half),
    PROBLEM("merge_state_f32", "cascade", axes, two_wide, merged_wide),
    PROBLEM("merge_state_in_place_h8_d64", "cascade", axes, masked, in_place),
    PROBLEM("merge_states_h8_d64", "cascade", axes, many, merged),
    PROBLEM("merge_states_f32", "cascade", axes, many_wide, merged_wide),
};
enum { MASKED = 3, MANY = 4, MOST = 300 }; /* MOST: more states than any case has */

enum mistake {
	NONE,
	NATURAL_THROUGHOUT,
	NATURAL_LOGARITHM_AT_THE_END,
	THROUGH_NATURAL, /* a correct way: s is multiplied by ln 2, and then exp is used instead of exp2 */
	NOT_NORMALISED,
	AVERAGED,
	MAX_KEPT,
	LARGEST_ALONE,
	LAST_STATE_LEFT_OUT,
	FIRST_COUNTED_TWICE,
	LOGSUMEXPS_ADDED,
	LARGEST_FOR_S,
	WEIGHTS_SWAPPED,
	WEIGHTS_OF_NEXT_HEAD,
	TWO_PERCENT_MORE,
	EMPTY_AS_ZERO,
	LARGEST_FROM_ZERO,   /* the search for the largest s starts at 0 */
	FAR_BELOW_AS_EMPTY,  /* a state with s below -30 counts as empty */
	EIGHT_STATES_AT_MOST,
	MASK_IGNORED,
	MASK_TURNED_ROUND,
	NAN_WHERE_ALL_IS_EMPTY,
	MEAN_WHERE_ALL_IS_EMPTY,
	SECOND_TAKEN_TO_BE_THERE,
	ALL_ZERO,
};

static int64_t place(const struct trial *t, int64_t token, int64_t head, int64_t i)
{
	struct cascade_extent e = cascade_extent_of(&t->c);

	return t->c.variant == CASCADE_MANY ? (token * e.states + i) * e.heads + head : token * e.heads + head;
}

static float s_of(const struct trial *t, int64_t token, int64_t head, int64_t i, enum mistake mistake)
{
	struct cascade_roles roles = cascade_roles_of(t->problem);
	struct cascade_extent e = cascade_extent_of(&t->c);
	int64_t at = mistake == WEIGHTS_OF_NEXT_HEAD ? (head + 1) % e.heads : head;
	float s = ((const float *)t->in[roles.s[t->c.variant == CASCADE_MANY ? 0 : i]].data)[place(t, token, at, i)];

	if (mistake == FAR_BELOW_AS_EMPTY && s < -30)
		return -INFINITY;
	return mistake == EMPTY_AS_ZERO && s < -1e30f ? 0 : mistake == THROUGH_NATURAL ? s * 0.69314718f : s;
}

static float power(float x, enum mistake mistake)
{
	return mistake == NATURAL_THROUGHOUT || mistake == THROUGH_NATURAL ? expf(x) : exp2f(x);
}

static bool is_merged(const struct trial *t, int64_t token, enum mistake mistake)
{
	struct cascade_roles roles = cascade_roles_of(t->problem);
	bool merge = roles.mask < 0 || ((const uint8_t *)t->in[roles.mask].data)[token] != 0;

	return merge != (mistake == MASK_TURNED_ROUND) || mistake == MASK_IGNORED;
}

/* Sets the answer for token `at` to the token's first state, as if nothing were merged. */
static void keep_head(struct trial *t, int64_t at)
{
	struct cascade_roles roles = cascade_roles_of(t->problem);
	int64_t width = cascade_extent_of(&t->c).width;

	for (int64_t d = at * width; d < (at + 1) * width; d++)
		set(&t->out[roles.v_out], d, get(&t->in[roles.v[0]], d));
	set(&t->out[roles.s_out], at, get(&t->in[roles.s[0]], at));
}

static void run_head(struct trial *t, int64_t token, int64_t head, enum mistake mistake)
{
	struct cascade_roles roles = cascade_roles_of(t->problem);
	struct cascade_extent e = cascade_extent_of(&t->c);
	int64_t states = mistake == EIGHT_STATES_AT_MOST && e.states > 8 ? 8 : e.states - (mistake == LAST_STATE_LEFT_OUT), at = token * e.heads + head;
	float most = mistake == LARGEST_FROM_ZERO ? 0 : -INFINITY, sum = 0, total = 0, weight[MOST];

	for (int64_t i = 0; i < states; i++)
		most = fmaxf(most, s_of(t, token, head, i, mistake));
	for (int64_t i = 0; i < states; i++) {
		float s = s_of(t, token, head, mistake == WEIGHTS_SWAPPED ? states - 1 - i : i, mistake);

		weight[i] = power(s - (mistake == MAX_KEPT ? 0 : most), mistake);
		if (most == -INFINITY && mistake != NAN_WHERE_ALL_IS_EMPTY)
			weight[i] = mistake == MEAN_WHERE_ALL_IS_EMPTY;
		weight[i] *= mistake == FIRST_COUNTED_TWICE && i == 0 ? 2 : 1;
		weight[i] = mistake == LARGEST_ALONE && s < most ? 0 : mistake == AVERAGED ? 1 : weight[i];
		sum += weight[i];
		total += s_of(t, token, head, i, mistake);
	}
	for (int64_t d = 0; d < e.width; d++) {
		float v = 0;

		for (int64_t i = 0; i < states; i++)
			v += weight[i] * get(&t->in[roles.v[t->c.variant == CASCADE_MANY ? 0 : i]],
			                     place(t, token, head, i) * e.width + d);
		v /= mistake == NOT_NORMALISED || sum == 0 ? 1 : sum;
		v *= mistake == SECOND_TAKEN_TO_BE_THERE && states == 1 ? 0.5f : 1;
		set(&t->out[roles.v_out], at * e.width + d,
		    mistake == ALL_ZERO           ? 0
		    : mistake == TWO_PERCENT_MORE ? 1.02f * v
		                                  : v);
	}
	bool natural =
	    mistake == NATURAL_THROUGHOUT || mistake == NATURAL_LOGARITHM_AT_THE_END || mistake == THROUGH_NATURAL;
	float s = (mistake == MAX_KEPT ? 0 : most) + (natural ? logf(sum) : log2f(sum));

	s = mistake == THROUGH_NATURAL ? s / 0.69314718f : mistake == LOGSUMEXPS_ADDED ? total : s;
	s = mistake == LARGEST_FOR_S ? most : mistake == ALL_ZERO ? 0 : s;
	set(&t->out[roles.s_out], at, s);
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	struct cascade_extent e = cascade_extent_of(&t->c);

	for (int64_t token = 0; token < e.tokens; token++)
		for (int64_t head = 0; head < e.heads; head++)
			if (is_merged(t, token, mistake))
				run_head(t, token, head, mistake);
			else
				keep_head(t, token * e.heads + head);
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, THROUGH_NATURAL, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&cascade_op, &problems[p], SEEDS, run, ways);
	for (int p = 0; p < COUNT(problems); p++)
		for (int way = 0; ways[way] != TRIAL_END; way++)
			assert_right_passes_second(&cascade_op, &problems[p], 3, run, ways[way]);
}

static const struct planted_mistake mistakes[] = {
    {NATURAL_THROUGHOUT, "natural for base 2", 63},
    {NATURAL_LOGARITHM_AT_THE_END, "natural logarithm at the end", 63},
    {NOT_NORMALISED, "not normalised", 63},
    {AVERAGED, "averaged", 63},
    {MAX_KEPT, "largest not taken off", 63},
    {LARGEST_ALONE, "the largest alone", 63},
    {LAST_STATE_LEFT_OUT, "last state left out", 63},
    {FIRST_COUNTED_TWICE, "first state counted twice", 63},
    {LOGSUMEXPS_ADDED, "logsumexps added", 63},
    {LARGEST_FOR_S, "the largest for the logsumexp", 63},
    {WEIGHTS_SWAPPED, "weights swapped", 63},
    {WEIGHTS_OF_NEXT_HEAD, "weights of the next head", 63},
    {TWO_PERCENT_MORE, "2 % too large", 63},
    {EMPTY_AS_ZERO, "-infinity taken for 0", 63},
    {LARGEST_FROM_ZERO, "the largest from 0 on", 63},
    {FAR_BELOW_AS_EMPTY, "far below taken for empty", 63},
    {EIGHT_STATES_AT_MOST, "the first eight states alone", 3 << MANY},
    {MASK_IGNORED, "mask ignored", 1 << MASKED},
    {MASK_TURNED_ROUND, "mask the wrong way", 1 << MASKED},
    {ALL_ZERO, "zeros", 63},
};

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	assert_mistakes_fail(&cascade_op, problems, COUNT(problems), mistakes, COUNT(mistakes), SEEDS_OR_ONE(2), run);
}

/* Checks the defining property of the operation with real attention: attention over two parts of the keys, merged,
 * equals attention over all keys. */
static void merging_the_parts_of_a_softmax_gives_the_whole(void **state)
{
	struct trial t;
	double sum[2] = {0}, v[2] = {0};
	const int64_t axis[] = {1, 1, 8, 64};

	(void)state;
	trial_open(&t, &cascade_op, &problems[2], axis, 1);
	for (int i = 0; i < 12; i++) {
		double power = exp2(i % 5 - 1.5), value = cos(i);

		sum[i >= 7] += power;
		v[i >= 7] += power * value;
	}
	for (int i = 0; i < 2; i++) {
		set(&t.in[2 * i], 0, (float)(v[i] / sum[i]));
		set(&t.in[2 * i + 1], 0, (float)log2(sum[i]));
	}
	assert_int_equal(cascade_op.oracle(&t.c, t.in, t.truth, NULL), 0);
	assert_true(fabs((double)get(&t.truth[0], 0) - (v[0] + v[1]) / (sum[0] + sum[1])) < 1e-6);
	assert_true(fabs((double)get(&t.truth[1], 0) - log2(sum[0] + sum[1])) < 1e-6);
	trial_close(&t);
}

static void an_empty_state_leaves_the_other_exactly_as_it_is(void **state)
{
	(void)state;
	for (int empty = 0; empty < 2; empty++) {
		const int64_t axis[] = {1, 1, 8, 64};
		struct trial t;

		trial_open(&t, &cascade_op, &problems[0], axis, 4);
		for (int64_t h = 0; h < 8; h++) {
			set(&t.in[1], h, empty == 0 ? -INFINITY : 5);
			set(&t.in[3], h, empty == 1 ? -INFINITY : 5);
		}
		assert_int_equal(cascade_op.oracle(&t.c, t.in, t.truth, NULL), 0);
		assert_memory_equal(t.truth[0].data, t.in[empty == 0 ? 2 : 0].data, 8 * 64 * 2);
		assert_true(get(&t.truth[1], 3) == 5);
		trial_close(&t);
	}
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg three[] = {V("a", DTYPE_BFLOAT16), V("b", DTYPE_BFLOAT16), V("c", DTYPE_BFLOAT16),
	                                      S("s")};
	static const struct op_arg half_s[] = {
	    V("a", DTYPE_BFLOAT16), V("b", DTYPE_BFLOAT16), S("s_a"), {"s_b", DTYPE_FLOAT16, 2, {T, H}, false, NULL}};
	static const struct op_arg other[] = {
	    V("a", DTYPE_BFLOAT16), {"b", DTYPE_BFLOAT16, 3, {T, D, H}, false, NULL}, S("s_a"), S("s_b")};
	static const struct op_arg odd_mask[] = {
	    V("a", DTYPE_BFLOAT16), V("b", DTYPE_BFLOAT16), S("s_a"), S("s_b"), {"mask", DTYPE_FLOAT32, 1, {T}, false, NULL}};
	static const struct op_arg s_only[] = {S("s_merged")};
	const struct op_problem cases[] = {
	    PROBLEM("a", "cascade", axes, three, merged), PROBLEM("b", "cascade", axes, half_s, merged),
	    PROBLEM("c", "cascade", axes, other, merged), PROBLEM("d", "cascade", axes, odd_mask, merged),
	    PROBLEM("e", "cascade", axes, two, s_only),   PROBLEM("f", "cascade", axes, many, many),
	};
	static const char *const parts[] = {"two states", "float16", "first input state", "mask", "merged v", "one state"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&cascade_op, &cases[i], parts[i]);
}

static void only_what_is_merged_in_place_may_be_written(void **state)
{
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &cascade_op, &problems[MASKED], SIZE_SMALL, 0, 1));
	for (int i = 0; i < 5; i++) {
		assert_int_equal(cascade_op.in_place(&t.c, i).place, i < 2 ? i : OP_KEPT);
		assert_true(cascade_op.in_place(&t.c, i).may_keep);
	}
	trial_close(&t);
	assert_inputs_follow_the_seed(&cascade_op, &problems[MASKED], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {2, 2, 2, 3, 3, 3};

	(void)state;
	assert_int_equal(COUNT(edges), COUNT(problems));
	assert_all_edges_pass(&cascade_op, problems, edges, COUNT(edges), right);
}

static void what_is_wrong_only_at_the_edge_fails_there(void **state)
{
	static const struct edge_mistake wrong[] = {
	    {NAN_WHERE_ALL_IS_EMPTY, "all_empty", 0},
	    {MEAN_WHERE_ALL_IS_EMPTY, "all_empty", 3},
	    {NAN_WHERE_ALL_IS_EMPTY, "all_empty", 4},
	    {SECOND_TAKEN_TO_BE_THERE, "one_state", 5},
	};

	(void)state;
	assert_each_wrong_there_alone(&cascade_op, problems, run, wrong, COUNT(wrong));
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&cascade_op, &problems[0], 1, 0, (double)NAN,
		       "input 's_a' holds NaN at [0, 0]; a logsumexp must be a number");
	assert_brought(&cascade_op, &problems[0], 3, 5, (double)INFINITY, "input 's_b' holds infinity");
	assert_brought(&cascade_op, &problems[0], 1, 3, -INFINITY, NULL);
	assert_brought(&cascade_op, &problems[0], 0, 7, (double)INFINITY, "the merged state would be NaN");
	assert_brought(&cascade_op, &problems[4], 0, 7, (double)NAN, "the merged state would be NaN");
}

static void a_workload_may_provide_anything_where_the_mask_is_false(void **state)
{
	struct cascade_roles roles = cascade_roles_of(&problems[MASKED]);
	struct err why;
	struct trial t;
	int read = 0, unread = 0;

	(void)state;
	assert_true(trial_open_size(&t, &cascade_op, &problems[MASKED], SIZE_MEDIUM, 0, 1));
	const uint8_t *mask = t.in[roles.mask].data;
	int64_t row = t.in[roles.v[1]].elements / t.in[roles.v[1]].shape[0];

	t.c.given = UINT32_MAX;
	assert_int_equal(cascade_op.check(&t.c, t.in, &why), 0); /* the inputs that the family fills have NaN where the
								  * mask is false */
	for (int64_t token = 0; token < 16; token++) {
		float v = get(&t.in[roles.v[1]], token * row);

		set(&t.in[roles.v[1]], token * row, NAN);
		assert_int_equal(cascade_op.check(&t.c, t.in, &why), mask[token] != 0 ? -1 : 0);
		set(&t.in[roles.v[1]], token * row, v);
		read += mask[token] != 0;
		unread += mask[token] == 0;
	}
	assert_true(read > 0 && unread > 0);
	trial_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(merging_the_parts_of_a_softmax_gives_the_whole),
	    cmocka_unit_test(an_empty_state_leaves_the_other_exactly_as_it_is),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(only_what_is_merged_in_place_may_be_written),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_is_wrong_only_at_the_edge_fails_there),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	    cmocka_unit_test(a_workload_may_provide_anything_where_the_mask_is_false),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
