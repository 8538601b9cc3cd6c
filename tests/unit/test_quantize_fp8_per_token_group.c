/* test_quantize_fp8_per_token_group - quantisation by groups: correct references in float32 pass for every seed,
 * whatever correct way they use to compute the scale and the quotient. References with common mistakes fail. */
#include "tests/unit/trial.h"

#include "kernels/quantize_fp8_per_token_group/input_values.h"
#include "tests/unit/seeds.h"

#define OP (&quantize_fp8_per_token_group_op)
extern const struct op quantize_fp8_per_token_group_op;

#define AXES(hidden, groups) {{"num_tokens", true, 0}, {"hidden_size", false, hidden}, {"num_groups", false, groups}}
static const struct op_axis axes64[] = AXES(256, 4), axes128[] = AXES(256, 2), odd[] = AXES(100, 3);
/* with rows of this length, a case of 4097 rows would take long, so there is none */
static const struct op_axis wide64[] = AXES(320, 5), wide160[] = AXES(320, 2), one[] = AXES(320, 1);
#define X(dtype) {"x", dtype, 2, {0, 1}, false, NULL}
#define Q {"q", DTYPE_FLOAT8_E4M3FN, 2, {0, 1}, false, NULL}
#define S {"s", DTYPE_FLOAT32, 2, {0, 2}, false, NULL}
static const struct op_arg bf16[] = {X(DTYPE_BFLOAT16)}, f16[] = {X(DTYPE_FLOAT16)}, f32[] = {X(DTYPE_FLOAT32)};
static const struct op_arg given[] = {{"eps", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}, X(DTYPE_BFLOAT16)};
static const struct op_arg out[] = {Q, S}, turned[] = {S, Q};

#define FLOORED(axes_, inputs_, outputs_, text)                                                                        \
	{                                                                                                              \
		.name = "quantize", .op_type = "quantize_fp8_per_token_group", .description = text, .axes = axes_,     \
		.axis_count = 3, .inputs = inputs_, .input_count = COUNT(inputs_), .outputs = outputs_,                \
		.output_count = COUNT(outputs_)                                                                        \
	}

static const struct op_problem problems[] = {
    FLOORED(wide160, bf16, out, "eps is 1e-10"), FLOORED(wide64, f16, turned, "eps is 1e-10"),
    FLOORED(one, f32, out, "eps is 1e-4"),       FLOORED(wide64, given, out, ""),
    FLOORED(wide64, f32, out, "eps is 1e-12"),
};

enum way {
	BY_SCALE,      /* the usual way: x / s */
	BY_FACTOR,     /* a correct way: x * (448 / amax) */
	BY_RECIPROCAL, /* a correct way: x * (1 / s) */
	BY_CONSTANT,   /* a correct way: s = amax * (1 / 448), then x / s */
	/* an accepted way: unless s is a power of two, s is wrong by one unit in the last place, and the quotient by
	 * two units */
	BY_LOOSE,
	NEGATIVE_ZERO, /* a correct way: a zero may be negative */
	OF_THE_ROW,
	OF_THE_TENSOR, /* one scale for the whole tensor; to save time, computed from at most 2^14 elements */
	WITHOUT_SIGN,
	LIMIT_240,
	INVERTED,
	E5M2,
	TRUNCATED,
	TIES_AWAY,
	ONE_LATER,
	NEIGHBOUR,
	FIRST_HALF,
	FLOOR_LARGER,
	FLOOR_SMALLER,
	FLOOR_ADDED,
	BF16_SCALE,
	BF16_DIVISOR,
	BF16_QUOTIENT,
	F16_QUOTIENT,
	NOT_SATURATED,
	SCALE_OFF,
	QUOTIENT_OFF,
	ONE_ELEMENT,
	ONE_NAN,
	ALL_ZERO,
};

static float bf16_of(float x)
{
	return float_from_bf16(bf16_from_float(x));
}

/* Returns the largest absolute value of a group, computed in the way `way`. */
static float amax_of(const struct trial *t, int64_t number, enum way way)
{
	struct quantize_roles roles = quantize_roles_of(t->problem);
	const struct tensor *x = &t->in[roles.x];
	struct quantize_extent e = quantize_extent_of(t->problem);
	int64_t first = number * e.group, count = way == FIRST_HALF ? e.group / 2 : e.group;
	double eps = quantize_eps(&t->c) * (way == FLOOR_LARGER ? 8 : way == FLOOR_SMALLER ? 0.125 : 1);
	float most = 0;

	if (way == OF_THE_ROW || way == OF_THE_TENSOR) {
		first = way == OF_THE_ROW ? number / e.groups * e.columns : 0;
		count = way == OF_THE_ROW ? e.columns : x->elements < 1 << 14 ? x->elements : 1 << 14;
	}
	if (way == ONE_LATER && first + 1 + count <= x->elements)
		first++;
	for (int64_t i = first; i < first + count; i++) {
		float value = get(x, i);

		most = fmaxf(most, way == WITHOUT_SIGN ? value : fabsf(value));
	}
	return way == FLOOR_ADDED ? most + (float)eps : fmaxf(most, (float)eps);
}

static float nudged(float x, int units)
{
	return float_from_bits(float_bits(x) + (uint32_t)units);
}

/* Returns true if the number is a power of two. For such a scale, all correct ways give the same result. */
static bool is_power(float scale)
{
	return (float_bits(scale) & 0x7fffff) == 0;
}

static float e4m3_of(float x, enum way way)
{
	float limit = way == LIMIT_240 ? 240 : 448;

	if (way == NOT_SATURATED)
		return float_from_e4m3(e4m3_from_float(x * 1.05f));
	x = fmaxf(-limit, fminf(limit, x));
	if (way == E5M2)
		x = float_from_e5m2(e5m2_from_float(x));
	if (way == TRUNCATED || way == TIES_AWAY) {
		int exponent;
		double step = (frexp((double)fabsf(x), &exponent), ldexp(1, (exponent < -5 ? -5 : exponent) - 4));
		double steps = fabs((double)x) / step;

		return (float)copysign((way == TRUNCATED ? trunc(steps) : floor(steps + 0.5)) * step, (double)x);
	}
	x = way == BF16_QUOTIENT ? bf16_of(x) : way == F16_QUOTIENT ? float_from_f16(f16_from_float(x)) : x;
	return float_from_e4m3(e4m3_from_float(x));
}

static void run_group(struct trial *t, int64_t number, enum way way)
{
	struct quantize_roles roles = quantize_roles_of(t->problem);
	const struct tensor *x = &t->in[roles.x];
	int64_t group = quantize_extent_of(t->problem).group, groups = t->out[roles.scale].elements;
	float amax = amax_of(t, number, way), limit = way == LIMIT_240 ? 240 : 448, scale = amax / limit;

	scale = way == BY_CONSTANT ? amax * (1 / 448.0f) : way == BF16_SCALE ? bf16_of(scale) : scale;
	scale = way == BY_LOOSE && !is_power(scale) ? nudged(scale, 1) : scale;
	float divisor = way == BF16_DIVISOR ? bf16_of(scale) : scale;

	for (int64_t i = number * group; i < (number + 1) * group; i++) {
		float value = get(x, i), y = value / divisor;

		y = way == BY_FACTOR ? value * (448 / amax) : way == BY_RECIPROCAL ? value * (1 / scale) : y;
		y = way == BY_LOOSE && !is_power(scale) && y != 0 ? nudged(y, -2) : y;
		y = e4m3_of(way == QUOTIENT_OFF ? y * 1.0001f : y, way);
		set(&t->out[roles.quantized], i, y == 0 && way == NEGATIVE_ZERO ? -0.0f : y);
	}
	scale = way == INVERTED ? 1 / scale : way == SCALE_OFF ? scale * 1.00001f : scale;
	set(&t->out[roles.scale], way == NEIGHBOUR ? (number + 1) % groups : number, scale);
}

/* Emulates the reference, in one of the ways above. */
static void run(struct trial *t, int way)
{
	struct tensor *q = &t->out[quantize_roles_of(t->problem).quantized];
	int64_t groups = t->out[quantize_roles_of(t->problem).scale].elements;

	for (int64_t number = 0; number < groups; number++)
		run_group(t, number, (enum way)way);
	if (way == ONE_ELEMENT && q->elements > 0)
		((uint8_t *)q->data)[q->elements / 2] ^= 1;
	trial_spoil(t, way == ALL_ZERO, way == ONE_NAN);
}

static void every_way_of_computing_it_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {BY_SCALE, BY_FACTOR, BY_RECIPROCAL, BY_CONSTANT, BY_LOOSE, NEGATIVE_ZERO, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(OP, &problems[p], MANY_SEEDS, run, ways);
}

/* Returns true if the way is correct in this problem. The scale of the whole row is correct if the row is one group.
 * Adding the floor to the largest magnitude of a group is correct in problem 1 (float16 with a floor of 1e-10): this
 * magnitude is 0, or so large that the floor changes the scale by less than the tolerance. */
static bool is_harmless(int way, int problem)
{
	return (way == OF_THE_ROW && quantize_extent_of(&problems[problem]).groups == 1) ||
	       (way == FLOOR_ADDED && problem == 1);
}

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++) {
		struct trial first, t;

		assert_true(trial_open_size(&first, OP, &problems[p], SIZE_MEDIUM, 0, 1));
		for (int way = OF_THE_ROW; way <= ALL_ZERO; way++) {
			if (is_harmless(way, p))
				continue;
			trial_open_again(&t, &first);
			run(&t, way);
			if (trial_passes(&t))
				fail_msg("problem %d: mistake %d passes", p, way);
			trial_close(&t);
		}
		trial_close(&first);
	}
}

/* If a quotient is so near the middle of two codes that rounding errors decide which code is nearer, both codes pass.
 * If scale and quotient are exact, only the correctly rounded code passes. */
static void either_neighbour_of_a_tie_passes_where_the_scale_is_rounded(void **state)
{
	static const struct {
		float amax, x;
		float codes[2];
	} cases[] = {
	    {448, 17, {16, 0}},        {448, 19, {20, 0}},      {448, 0x1p-10f, {0, 0}}, {448, 17.00001f, {18, 0}},
	    {449, 17, {16, 0}},        {441, 441.0f * 17 / 448, {16, 18}},
	    {447, 447.0f * 19 / 448, {18, 20}}, {447, 447.0f * 19 / 448 * 1.00001f, {20, 0}},
	};

	struct trial first;

	(void)state;
	assert_true(trial_open_size(&first, OP, &problems[2], SIZE_SMALL, 0, 1));
	for (int i = 0; i < COUNT(cases); i++)
		for (int code = 0; code < 0x7f; code++) {
			struct trial t;
			struct err err = {""};
			float y = float_from_e4m3((uint8_t)code);
			bool right = y == cases[i].codes[0] || (cases[i].codes[1] != 0 && y == cases[i].codes[1]);

			trial_open_again(&t, &first);
			memset(t.in[0].data, 0, 320 * sizeof(float));
			set(&t.in[0], 7, cases[i].x);
			set(&t.in[0], 100, -cases[i].amax);
			assert_int_equal(OP->oracle(&t.c, t.in, t.truth, &err), 0);
			run(&t, BY_SCALE);
			set(&t.out[0], 7, y);
			if (trial_passes(&t) != right)
				fail_msg("%g of %g: %g %s", (double)cases[i].x, (double)cases[i].amax, (double)y,
				         right ? "fails" : "passes");
			trial_close(&t);
		}
	trial_close(&first);
}

static void groups_of_every_kind_are_among_the_inputs_of_both_contents(void **state)
{
	(void)state;
	for (int contents = 0; contents < CONTENTS_COUNT; contents++)
		for (int p = 0; p < COUNT(problems); p++) {
			struct trial t;
			int seen = 0, zeros = 0, exact = 0, below = 0;

			assert_true(trial_open_size(&t, OP, &problems[p], SIZE_MEDIUM, 0, 3));
			op_case_set_contents(&t.c, 3, (enum op_contents)contents);
			struct quantize_roles roles = quantize_roles_of(&problems[p]);
			struct quantize_fill f = quantize_fill_of(&t.c);

			assert_int_equal(OP->fill(&t.c, roles.x, &t.in[roles.x], NULL), 0);
			for (int64_t g = 0; g < t.out[roles.scale].elements; g++) {
				float amax = amax_of(&t, g, BY_SCALE), most = 0;

				for (int64_t i = g * f.group; i < (g + 1) * f.group; i++)
					most = fmaxf(most, fabsf(get(&t.in[roles.x], i)));
				seen |= 1 << quantize_kind(&f, g);
				zeros += most == 0;
				below += most > 0 && most < amax;
				exact += is_power(amax / 448);
			}
			assert_int_equal(seen, (1 << QUANTIZE_KINDS) - 1);
			assert_true(zeros > 0 && exact > 0);
			assert_true(below > 0 || p == 1); /* float16 has no positive number below 1e-10 */
			trial_close(&t);
		}
}

static void an_unattested_floor_is_seen_in_the_reference(void **state)
{
	static const struct op_problem silent[] = {FLOORED(axes64, f16, turned, ""), FLOORED(axes128, bf16, out, "")};
	static const double floors[] = {1e-10, 1e-4, 1e-12, 3e-7};
	struct op_constant found[OP_CONSTANTS];
	int64_t axis[TRIAL_AXES];

	(void)state;
	for (int p = 0; p < COUNT(silent); p++)
		for (int i = 0; i < COUNT(floors); i++) {
			struct trial t;

			assert_int_equal(OP->constants(&silent[p], 0, found), 1);
			assert_true(isnan(found[0].value));
			OP->probe_axes(&silent[p], 0, axis);
			trial_open(&t, OP, &silent[p], axis, 1);
			t.c.probe = 1;
			assert_int_equal(OP->fill(&t.c, 0, &t.in[0], NULL), 0);
			t.c.constants[0].value = floors[i];
			assert_int_equal(OP->oracle(&t.c, t.in, t.out, NULL), 0);
			assert_int_equal(OP->probe(&t.c, t.in, t.out, found, NULL), 0);
			assert_true(fabs(found[0].value - floors[i]) <= 1e-9 * floors[i]);
			/* Now all outputs are zeros, so a group of zeros has scale 0, as if the scale had no floor.
			 * op.probe accepts this only if no group of tiny numbers has a scale that contradicts it. */
			trial_spoil(&t, true, false);
			assert_int_equal(OP->probe(&t.c, t.in, t.out, found, NULL), p == 0 ? 0 : -1);
			t.c.constants[0].value = 1.234e-9;
			assert_int_equal(OP->oracle(&t.c, t.in, t.out, NULL), 0);
			assert_int_equal(OP->probe(&t.c, t.in, t.out, found, NULL), -1);
			trial_close(&t);
		}
}

static void without_a_floor_no_group_is_zero(void **state)
{
	static const struct op_problem silent = FLOORED(axes128, bf16, out, "");
	int64_t axis[] = {300, 256, 2};
	struct err err = {""};
	struct trial t;

	(void)state;
	trial_open(&t, OP, &silent, axis, 1);
	t.c.constants[0].value = 0;
	assert_int_equal(OP->fill(&t.c, 0, &t.in[0], NULL), 0);
	assert_int_equal(OP->oracle(&t.c, t.in, t.truth, NULL), 0);
	for (int64_t g = 0; g < t.truth[1].elements; g++)
		assert_true(get(&t.truth[1], g) > 0);
	run(&t, BY_FACTOR);
	trial_assert_passes(&t);
	t.c.given = 1;
	assert_int_equal(OP->check(&t.c, t.in, &err), 0);
	memset((uint16_t *)t.in[0].data + 5 * 128, 0, 128 * sizeof(uint16_t));
	assert_int_equal(OP->check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "has a group of zeros at [2, 128]"));
	trial_close(&t);
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg ints[] = {X(DTYPE_INT32)}, two[] = {X(DTYPE_BFLOAT16), X(DTYPE_BFLOAT16)};
	static const struct op_arg size[] = {X(DTYPE_BFLOAT16), {"group_size", DTYPE_INT32, OP_SCALAR, {0}, false, NULL}};
	static const struct op_arg int8[] = {{"q", DTYPE_INT8, 2, {0, 1}, false, NULL}, S};
	static const struct op_arg bytes[] = {Q, {"s", DTYPE_UINT8, 2, {0, 2}, false, NULL}};
	static const struct op_arg columns[] = {Q, {"s", DTYPE_FLOAT32, 2, {2, 0}, false, NULL}};
	static const struct op_arg flat[] = {Q, {"s", DTYPE_FLOAT32, 1, {0}, false, NULL}};
	static const struct op_arg alone[] = {Q}, cut[] = {{"q", DTYPE_FLOAT8_E4M3FN, 2, {0, 2}, false, NULL}, S};
	static const struct op_axis open[] = {{"n", true, 0}, {"h", true, 0}, {"g", true, 0}};
	const struct op_problem cases[] = {
	    FLOORED(axes64, ints, out, ""),   FLOORED(axes64, two, out, ""),      FLOORED(axes64, size, out, ""),
	    FLOORED(axes64, bf16, int8, ""),  FLOORED(axes64, bf16, bytes, ""),   FLOORED(axes64, bf16, columns, ""),
	    FLOORED(axes64, bf16, flat, ""),  FLOORED(axes64, bf16, alone, ""),   FLOORED(axes64, bf16, cut, ""),
	    FLOORED(odd, bf16, out, ""),      FLOORED(open, bf16, out, ""),
	    FLOORED(axes64, bf16, out, "scales are UE8M0"),
	};
	static const char *const parts[] = {"int32", "2 inputs", "group_size",  "2 outputs", "uint8",    "[num_groups, num_tokens]",
	                                    "shape", "1 outputs", "shape",      "multiple",  "const", "powers of two"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(OP, &cases[i], parts[i]);
	assert_inputs_follow_the_seed(OP, &problems[0], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, BY_SCALE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(assert_edges_pass(OP, &problems[p], right), 1);
}

static void a_wrong_element_is_reported_with_its_place_and_quotient(void **state)
{
	struct metrics metrics;
	struct err why;
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, OP, &problems[0], SIZE_MEDIUM, 0, 1));
	run(&t, ONE_ELEMENT);
	assert_false(trial_judge(&t, 0, &metrics, &why));
	assert_int_equal(metrics.elements - metrics.hits, 1);
	if (strstr(why.text, "1 of 164160 elements") == NULL || strstr(why.text, "the first is at [256, 160]") == NULL)
		fail_msg("%s", why.text);
	trial_close(&t);
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(OP, &problems[0], 0, 2, (double)NAN, "holds NaN at [0, 2]");
	assert_brought(OP, &problems[0], 0, -1, -INFINITY, "-infinity");
	assert_brought(OP, &problems[0], 0, 0, 1e30, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_way_of_computing_it_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(either_neighbour_of_a_tie_passes_where_the_scale_is_rounded),
	    cmocka_unit_test(groups_of_every_kind_are_among_the_inputs_of_both_contents),
	    cmocka_unit_test(an_unattested_floor_is_seen_in_the_reference),
	    cmocka_unit_test(without_a_floor_no_group_is_zero),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(a_wrong_element_is_reported_with_its_place_and_quotient),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
