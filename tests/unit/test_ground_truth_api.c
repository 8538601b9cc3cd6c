/* test_ground_truth_api - the library from which other programs get the ground truth. The library computes the same
 * numbers as reftest itself, rejects invalid arguments, and never writes beyond a buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/core/ground_truth_api.h"

#define NORM(more)                                                                                                     \
	"{\"definition\": {\"name\": \"rmsnorm_x\", \"op_type\": \"rmsnorm\", " more                                   \
	"\"axes\": {\"b\": {\"type\": \"var\"},"                                                                       \
	" \"h\": {\"type\": \"const\", \"value\": 4}}, \"inputs\": {\"x\": {\"shape\": [\"b\", \"h\"], \"dtype\": "    \
	"\"float32\"},"                                                                                                \
	" \"w\": {\"shape\": [\"h\"], \"dtype\": \"float32\"}}, \"outputs\": {\"y\": {\"shape\": [\"b\", \"h\"],"      \
	" \"dtype\": \"float32\"}}}, \"axes\": {\"b\": 2}, \"seed\": 3}"

static const char norm[] = NORM("\"description\": \"Epsilon is 1e-6.\", ");
static const char unattested[] = NORM("");
static const char sampler[] =
    "{\"definition\": {\"name\": \"sampling\", \"op_type\": \"sampling\", \"axes\": {\"b\": {\"type\": \"var\"},"
    " \"v\": {\"type\": \"const\", \"value\": 64}}, \"inputs\": {\"probs\": {\"shape\": [\"b\", \"v\"], \"dtype\": "
    "\"float32\"}},"
    " \"outputs\": {\"samples\": {\"shape\": [\"b\"], \"dtype\": \"int64\"}}}, \"axes\": {\"b\": 1}, \"seed\": 0}";

static const char product[] =
    "{\"definition\": {\"name\": \"gemm_x\", \"op_type\": \"gemm\", \"axes\": {\"M\": {\"type\": \"var\"},"
    " \"N\": {\"type\": \"const\", \"value\": 8}, \"K\": {\"type\": \"const\", \"value\": 16}}, \"inputs\": "
    "{\"A\": {\"shape\": [\"M\", \"K\"], \"dtype\": \"float32\"}, \"B\": {\"shape\": [\"N\", \"K\"], \"dtype\": "
    "\"float32\"}},"
    " \"outputs\": {\"C\": {\"shape\": [\"M\", \"N\"], \"dtype\": \"float32\"}}}, \"axes\": {\"M\": 2}, \"seed\": 0}";
static const char filtered[] =
    "{\"definition\": {\"name\": \"top_k_sampling\", \"op_type\": \"sampling\", \"axes\": {\"b\": {\"type\": \"var\"},"
    " \"v\": {\"type\": \"const\", \"value\": 64}}, \"inputs\": {\"probs\": {\"shape\": [\"b\", \"v\"], \"dtype\": "
    "\"float32\"}, \"top_k\": {\"shape\": [\"b\"], \"dtype\": \"int32\"}},"
    " \"outputs\": {\"samples\": {\"shape\": [\"b\"], \"dtype\": \"int64\"}}}, \"axes\": {\"b\": 1}, \"seed\": 0}";

/* The JSON text of a sampling case. %d is the number of the set of input values, 0 or 1. */
static const char rows_of_sampler[] =
    "{\"definition\": {\"name\": \"sampling\", \"op_type\": \"sampling\", \"axes\": {\"b\": {\"type\": \"var\"},"
    " \"v\": {\"type\": \"const\", \"value\": 64}}, \"inputs\": {\"probs\": {\"shape\": [\"b\", \"v\"], \"dtype\": "
    "\"float32\"}},"
    " \"outputs\": {\"samples\": {\"shape\": [\"b\"], \"dtype\": \"int64\"}}}, \"axes\": {\"b\": 512}, \"seed\": 0, "
    "\"contents\": %d}";
#define SOFTMAX(optional, more)                                                                                        \
	"{\"definition\": {\"name\": \"softmax_x\", \"op_type\": \"softmax\", \"axes\": {\"b\": {\"type\": \"var\"}, "       \
	"\"v\": {\"type\": \"const\", \"value\": 8}}, \"inputs\": {\"x\": {\"shape\": [\"b\", \"v\"], \"dtype\": "           \
	"\"float32\"}, \"temperature\": {\"shape\": null, \"dtype\": \"float32\", \"optional\": " optional "}}, \"outputs\": "          \
	"{\"y\": {\"shape\": [\"b\", \"v\"], \"dtype\": \"float32\"}}}, \"axes\": {\"b\": 2}, \"seed\": 0" more "}"

/* Draws a token for each row of probabilities. Other seeds give other draws. */
static void draw(const float *probs, int rows, int tokens, uint64_t seed, int64_t *out)
{
	for (int row = 0; row < rows; row++) {
		double left;

		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		left = (double)(seed >> 11) * 0x1p-53;
		for (out[row] = 0; out[row] < tokens - 1 && left >= (double)probs[row * tokens + out[row]]; out[row]++)
			left -= (double)probs[row * tokens + out[row]];
	}
}

static void the_truth_of_a_norm_is_computed(void **state)
{
	float x[8] = {1, 1, 1, 1, 2, -2, 2, -2}, w[4] = {1, 2, 3, 4}, y[8] = {0};
	struct truth_place in[2] = {{x, sizeof x}, {w, sizeof w}}, out[1] = {{y, sizeof y}};
	char why[256];
	double value;

	(void)state;
	assert_int_equal(reftest_truth(norm, in, out, why, sizeof why), TRUTH_OK);
	for (int i = 0; i < 8; i++)
		assert_true(fabsf(y[i] - w[i % 4] * (x[i] < 0 ? -1 : 1)) < 1e-5f);
	assert_int_equal(reftest_family(norm, why, sizeof why), TRUTH_OK);
	assert_string_equal(why, "rmsnorm");
	assert_int_equal(reftest_constant(norm, "eps", &value, why, sizeof why), TRUTH_OK);
	assert_true(value == 1e-6);
}

static void a_place_that_does_not_fit_is_refused_and_not_written(void **state)
{
	float x[8] = {1}, w[4] = {1}, y[8] = {-1};
	struct truth_place in[2] = {{x, sizeof x}, {w, sizeof w}}, out[1] = {{y, sizeof y - 4}};
	char why[256];

	(void)state;
	assert_int_equal(reftest_truth(norm, in, out, why, sizeof why), TRUTH_BAD);
	assert_non_null(strstr(why, "'y' needs 32 bytes, but the caller passed 28"));
	out[0].bytes = sizeof y;
	in[1].data = NULL;
	assert_int_equal(reftest_truth(norm, in, out, why, sizeof why), TRUTH_BAD);
	assert_true(y[0] == -1);
	assert_int_equal(reftest_fill(norm, 1, (struct truth_place){w, 8}, why, sizeof why), TRUTH_BAD);
	assert_int_equal(reftest_fill(norm, 2, (struct truth_place){w, sizeof w}, why, sizeof why), TRUTH_BAD);
	assert_int_equal(reftest_fill(norm, 1, (struct truth_place){w, sizeof w}, why, sizeof why), TRUTH_OK);
}

static void what_nothing_attests_is_not_computed(void **state)
{
	float x[8] = {1}, w[4] = {1}, y[8] = {0};
	struct truth_place in[2] = {{x, sizeof x}, {w, sizeof w}}, out[1] = {{y, sizeof y}};
	char why[256];
	double value;

	(void)state;
	assert_int_equal(reftest_truth(unattested, in, out, why, sizeof why), TRUTH_NONE);
	assert_non_null(strstr(why, "'eps'"));
	assert_int_equal(reftest_constant(unattested, "eps", &value, why, sizeof why), TRUTH_NONE);
}

/* Copies the text of a case, and adds `members` before its last brace. */
static void extend(const char *text, const char *members, char out[2048])
{
	snprintf(out, 2048, "%.*s, %s}", (int)strlen(text) - 1, text, members);
}

static void what_nothing_attests_can_be_given_and_what_is_attested_stays(void **state)
{
	float x[8] = {1, 1, 1, 1}, w[4] = {1, 1, 1, 1}, y[8] = {0};
	struct truth_place in[2] = {{x, sizeof x}, {w, sizeof w}}, out[1] = {{y, sizeof y}};
	char why[256], text[2048];
	double value;

	(void)state;
	extend(unattested, "\"constants\": {\"eps\": 3.0}", text);
	assert_int_equal(reftest_truth(text, in, out, why, sizeof why), TRUTH_OK);
	assert_true(y[0] == 0.5f);
	extend(norm, "\"constants\": {\"eps\": 3.0}", text);
	assert_int_equal(reftest_constant(text, "eps", &value, why, sizeof why), TRUTH_OK);
	assert_true(value < 1);
	extend(unattested, "\"constants\": {\"eps\": \"3\"}", text);
	assert_int_equal(reftest_truth(text, in, out, why, sizeof why), TRUTH_NONE);
}

/* The inputs of a probing case make the epsilon visible: from the outputs, the library computes the epsilon of the
 * reference. */
static void a_constant_is_recovered_from_what_a_reference_returns(void **state)
{
	float x[8] = {0}, w[4] = {0}, y[8] = {0};
	struct truth_place in[2] = {{x, sizeof x}, {w, sizeof w}}, out[1] = {{y, sizeof y}};
	char why[256], text[2048];

	(void)state;
	assert_int_equal(reftest_fill(unattested, 0, in[0], why, sizeof why), TRUTH_NONE);
	extend(unattested, "\"probe\": true", text);
	for (int i = 0; i < 2; i++)
		assert_int_equal(reftest_fill(text, i, in[i], why, sizeof why), TRUTH_OK);
	for (int row = 0; row < 2; row++) {
		double squares = 0;

		for (int i = 0; i < 4; i++)
			squares += x[row * 4 + i] * x[row * 4 + i];
		for (int i = 0; i < 4; i++)
			y[row * 4 + i] = (float)(x[row * 4 + i] / sqrt(squares / 4 + 1e-5) * w[i]);
	}
	assert_int_equal(reftest_probe(text, in, out, why, sizeof why), TRUTH_OK);
	assert_string_equal(why, "{\"eps\":1e-05}");
	assert_int_equal(reftest_probe(unattested, in, out, why, sizeof why), TRUTH_BAD);
	extend(norm, "\"probe\": true", text);
	assert_int_equal(reftest_probe(text, in, out, why, sizeof why), TRUTH_OK);
	assert_string_equal(why, "{}");
	memset(y, 0, sizeof y);
	extend(unattested, "\"probe\": true", text);
	assert_int_equal(reftest_probe(text, in, out, why, sizeof why), TRUTH_REFUSED);
	out[0].bytes = 4;
	assert_int_equal(reftest_probe(text, in, out, why, sizeof why), TRUTH_BAD);
	extend(sampler, "\"probe\": true", text);
	assert_int_equal(reftest_probe(text, in, out, why, sizeof why), TRUTH_NONE);
}

/* In the edge case "certain", one token of a row has probability 1. */
static void an_edge_case_has_inputs_of_its_own(void **state)
{
	float probs[64] = {0}, largest = 0;
	struct truth_place place = {probs, sizeof probs};
	char why[256], text[2048];

	(void)state;
	extend(filtered, "\"edge\": \"certain\"", text);
	assert_int_equal(reftest_fill(text, 0, place, why, sizeof why), TRUTH_OK);
	for (int i = 0; i < 64; i++)
		largest = probs[i] > largest ? probs[i] : largest;
	assert_true(largest == 1);
	assert_int_equal(reftest_fill(filtered, 0, place, why, sizeof why), TRUTH_OK);
	assert_true(probs[0] < 1);
	extend(filtered, "\"edge\": \"nosuch\"", text);
	assert_int_equal(reftest_fill(text, 0, place, why, sizeof why), TRUTH_BAD);
	assert_non_null(strstr(why, "no edge case 'nosuch'"));
}

/* With the second set of input values, each product of a gemm is exact, unless a workload provides one of the two
 * matrices. */
static void what_a_workload_provides_is_known(void **state)
{
	double exact[3], rounded[3];
	char why[256], text[2048], provided[2048];

	(void)state;
	extend(product, "\"contents\": 1", text);
	extend(text, "\"given\": [\"A\"]", provided);
	assert_int_equal(reftest_bounds(text, 0, exact, why, sizeof why), TRUTH_OK);
	assert_int_equal(reftest_bounds(provided, 0, rounded, why, sizeof why), TRUTH_OK);
	assert_true(exact[0] < rounded[0]);
	extend(product, "\"given\": [\"nosuch\"]", text);
	assert_int_equal(reftest_bounds(text, 0, exact, why, sizeof why), TRUTH_BAD);
	extend(product, "\"given\": 3", text);
	assert_int_equal(reftest_bounds(text, 0, exact, why, sizeof why), TRUTH_BAD);
}

static void bounds_are_the_familys(void **state)
{
	double rule[3];
	char why[256];

	(void)state;
	assert_int_equal(reftest_rule(norm, 0, rule, why, sizeof why), TRUTH_OK);
	assert_true(rule[1] == 1e-5 && rule[2] == 1);
	assert_int_equal(reftest_rule(norm, 1, rule, why, sizeof why), TRUTH_BAD);
}

/* A member "tolerance" is added to the definition of a norm, and another "tolerance" to the output of this
 * definition. */
static void bounds_are_first_the_definitions_own(void **state)
{
	static const char top[] = "\"tolerance\": {\"atol\": 0.5, \"rtol\": 0.25}, \"outputs\": ";
	const char *outputs = strstr(norm, "\"outputs\": "), *dtype;
	char text[2048], both[2048], why[256];
	double rule[3];

	(void)state;
	assert_int_equal(reftest_bounds(norm, 0, rule, why, sizeof why), TRUTH_OK);
	assert_true(rule[1] == 1e-5 && rule[2] == 1);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(outputs - norm), norm, top, outputs + strlen("\"outputs\": "));
	assert_int_equal(reftest_bounds(text, 0, rule, why, sizeof why), TRUTH_OK);
	assert_true(rule[0] == 0.5 && rule[1] == 0.25 && rule[2] == 1);
	dtype = strstr(strstr(text, "\"outputs\": "), "\"dtype\"");
	snprintf(both, sizeof both, "%.*s\"tolerance\": {\"rtol\": 0, \"hit_ratio\": 0.75, \"atol\": -1}, %s",
		 (int)(dtype - text), text, dtype);
	assert_int_equal(reftest_bounds(both, 0, rule, why, sizeof why), TRUTH_OK);
	assert_true(rule[0] == 0.5 && rule[1] == 0 && rule[2] == 0.75);
	assert_int_equal(reftest_rule(both, 0, rule, why, sizeof why), TRUTH_OK);
	assert_true(rule[1] == 1e-5 && rule[2] == 1);
	assert_int_equal(reftest_bounds(both, 1, rule, why, sizeof why), TRUTH_BAD);
}

static void second_contents_are_others(void **state)
{
	float first[8], second[8];
	char text[2048], why[256];

	(void)state;
	extend(norm, "\"contents\": 1", text);
	assert_int_equal(reftest_fill(norm, 0, (struct truth_place){first, sizeof first}, why, sizeof why), TRUTH_OK);
	assert_int_equal(reftest_fill(text, 0, (struct truth_place){second, sizeof second}, why, sizeof why), TRUTH_OK);
	assert_memory_not_equal(first, second, sizeof first);
	extend(norm, "\"contents\": 0", text);
	assert_int_equal(reftest_fill(text, 0, (struct truth_place){second, sizeof second}, why, sizeof why), TRUTH_OK);
	assert_memory_equal(first, second, sizeof first);
}

/* A definition with one head, one element and one state. The states are updated in place, and no output returns
 * them. */
static const char states[] =
    "{\"definition\": {\"name\": \"mamba_ssu\", \"op_type\": \"mamba_ssu\", \"axes\": {\"b\": {\"type\": \"var\"},"
    " \"slots\": {\"type\": \"var\"}, \"h\": {\"type\": \"const\", \"value\": 1},"
    " \"d\": {\"type\": \"const\", \"value\": 1}, \"g\": {\"type\": \"const\", \"value\": 1},"
    " \"s\": {\"type\": \"const\", \"value\": 1}}, \"inputs\": {"
    "\"state\": {\"shape\": [\"slots\", \"h\", \"d\", \"s\"], \"dtype\": \"float32\"},"
    " \"x\": {\"shape\": [\"b\", \"h\", \"d\"], \"dtype\": \"float32\"},"
    " \"dt\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"float32\"},"
    " \"A\": {\"shape\": [\"h\"], \"dtype\": \"float32\"},"
    " \"B\": {\"shape\": [\"b\", \"g\", \"s\"], \"dtype\": \"float32\"},"
    " \"C\": {\"shape\": [\"b\", \"g\", \"s\"], \"dtype\": \"float32\"}}, \"outputs\": {"
    "\"y\": {\"shape\": [\"b\", \"h\", \"d\"], \"dtype\": \"float32\"}}}, \"axes\": {\"b\": 1, \"slots\": 2},"
    " \"seed\": 0}";

/* With A = -1, a step of the length softplus(0) = ln 2 halves a state. */
static void what_an_operation_leaves_in_its_input_is_returned(void **state)
{
	float held[2] = {4, 5}, x = 0, dt = 0, a = -1, b = 1, c = 3, y = 0, after[2] = {-1, -1};
	struct truth_place in[6] = {{held, sizeof held}, {&x, 4}, {&dt, 4}, {&a, 4}, {&b, 4}, {&c, 4}},
			   out[1] = {{&y, 4}}, left[6] = {{after, sizeof after}};
	double rule[3];
	char why[256];

	(void)state;
	assert_int_equal(reftest_truth_left(states, in, out, left, why, sizeof why), TRUTH_OK);
	assert_true(fabsf(y - 6) < 1e-5f && fabsf(after[0] - 2) < 1e-5f && after[1] == 5);
	assert_true(held[0] == 4);
	assert_int_equal(reftest_rule(states, 1 + 0, rule, why, sizeof why), TRUTH_OK);
	assert_true(rule[2] == 1 && rule[1] < 1e-3);
	assert_int_equal(reftest_rule(states, 1 + 1, rule, why, sizeof why), TRUTH_BAD);
	left[0].bytes = 4;
	assert_int_equal(reftest_truth_left(states, in, out, left, why, sizeof why), TRUTH_BAD);
	left[0].data = NULL;
	assert_int_equal(reftest_truth_left(states, in, out, left, why, sizeof why), TRUTH_OK);
	left[1] = (struct truth_place){after, 4};
	assert_int_equal(reftest_truth_left(states, in, out, left, why, sizeof why), TRUTH_BAD);
	assert_non_null(strstr(why, "so it has no ground truth of its own"));
}

/* The outputs are 64 rows of 64 numbers with magnitudes from 1 to 2 and both signs. The output that is truncated to
 * bfloat16 is refused. The output that is rounded to nearest, and the output with magnitudes one step larger than the
 * truncated ones, are accepted. */
static void a_truncated_output_is_refused(void **state)
{
	enum { ELEMENTS = 64 * 64 };
	static const char halves[] =
	    "{\"definition\": {\"name\": \"rmsnorm_x\", \"op_type\": \"rmsnorm\", \"description\": \"Epsilon is 1e-6.\", "
	    "\"axes\": {\"b\": {\"type\": \"var\"}, \"h\": {\"type\": \"const\", \"value\": 64}}, \"inputs\": {"
	    "\"x\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"bfloat16\"}, \"w\": {\"shape\": [\"h\"], \"dtype\": \"bfloat16\"}}, "
	    "\"outputs\": {\"y\": {\"shape\": [\"b\", \"h\"], \"dtype\": \"bfloat16\"}}}, \"axes\": {\"b\": 64}, \"seed\": 3}";
	static uint16_t rounded[ELEMENTS], truncated[ELEMENTS], above[ELEMENTS];
	struct truth_place truth = {rounded, sizeof rounded}, low = {truncated, sizeof truncated},
			   high = {above, sizeof above}, small = {above, 4};
	char why[512];

	(void)state;
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		float value = (i % 2 == 0 ? 1.0f : -1.0f) * (1 + (float)(i * 2654435761U >> 9) * 0x1p-23f);
		uint32_t bits;

		memcpy(&bits, &value, sizeof bits);
		truncated[i] = (uint16_t)(bits >> 16);
		rounded[i] = (uint16_t)((bits + 0x8000) >> 16);
		above[i] = (uint16_t)(truncated[i] + 1);
	}
	assert_int_equal(reftest_rounding(halves, 0, &truth, &truth, why, sizeof why), TRUTH_OK);
	assert_int_equal(reftest_rounding(halves, 0, &high, &truth, why, sizeof why), TRUTH_OK);
	assert_int_equal(reftest_rounding(halves, 0, &low, &truth, why, sizeof why), TRUTH_REFUSED);
	assert_non_null(strstr(why, "output 'y' is truncated to bfloat16 instead of rounded"));
	assert_int_equal(reftest_rounding(halves, 0, &small, &truth, why, sizeof why), TRUTH_BAD);
	assert_int_equal(reftest_rounding(halves, 1, &truth, &truth, why, sizeof why), TRUTH_BAD);
}

static void samples_are_judged(void **state)
{
	float probs[64] = {[5] = 1};
	int64_t right = 5, wrong = 6, most = 0;
	struct truth_place in = {probs, sizeof probs}, truth = {&most, sizeof most}, good = {&right, sizeof right},
			   bad = {&wrong, sizeof wrong};
	char why[512];

	(void)state;
	assert_int_equal(reftest_truth(sampler, &in, &truth, why, sizeof why), TRUTH_OK);
	assert_int_equal(most, 5);
	assert_int_equal(reftest_judge(sampler, 0, &in, &good, &truth, why, sizeof why), TRUTH_OK);
	assert_int_equal(reftest_judge(sampler, 0, &in, &bad, &truth, why, sizeof why), TRUTH_REFUSED);
	assert_non_null(strstr(why, "token 6"));
	float x[8] = {0}, w[4] = {0};
	struct truth_place norms[2] = {{x, sizeof x}, {w, sizeof w}}, y = {x, sizeof x};

	assert_int_equal(reftest_judge(norm, 0, norms, &y, &y, why, sizeof why), TRUTH_NONE);
	assert_non_null(strstr(why, "has no check of its own for this output"));
	assert_int_equal(reftest_judge(norm, 1, norms, &y, &y, why, sizeof why), TRUTH_BAD);
	assert_non_null(strstr(why, "there is no output 1"));
}

/* This reference does not use torch's generators, so it draws the same samples under every seed. */
static void samples_of_both_sets_are_judged_together(void **state)
{
	enum { ROWS = 512, TOKENS = 64 };
	static float probs[2][ROWS * TOKENS];
	static int64_t drawn[2][ROWS], most[2][ROWS];
	static char texts[2][sizeof rows_of_sampler + 32];
	struct truth_place in[2], reference[2], truth[2];
	struct truth_judged sets[2];
	char why[512];

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(texts[i], sizeof texts[i], rows_of_sampler, i);
		in[i] = (struct truth_place){probs[i], sizeof probs[i]};
		reference[i] = (struct truth_place){drawn[i], sizeof drawn[i]};
		truth[i] = (struct truth_place){most[i], sizeof most[i]};
		sets[i] = (struct truth_judged){texts[i], &in[i], &reference[i], &truth[i]};
		assert_int_equal(reftest_fill(texts[i], 0, in[i], why, sizeof why), TRUTH_OK);
		assert_int_equal(reftest_truth(texts[i], &in[i], &truth[i], why, sizeof why), TRUTH_OK);
		draw(probs[i], ROWS, TOKENS, 7, drawn[i]);
		assert_int_equal(reftest_judge(texts[i], 0, &in[i], &reference[i], &truth[i], why, sizeof why), TRUTH_OK);
	}
	assert_int_equal(reftest_judge_both(sets, 0, why, sizeof why), TRUTH_REFUSED);
	assert_non_null(strstr(why, "the same with a different seed"));
	draw(probs[1], ROWS, TOKENS, 8, drawn[1]);
	assert_int_equal(reftest_judge_both(sets, 0, why, sizeof why), TRUTH_OK);
	drawn[1][0] = TOKENS;
	assert_int_equal(reftest_judge_both(sets, 0, why, sizeof why), TRUTH_REFUSED);
	assert_int_equal(reftest_judge_both(sets, 1, why, sizeof why), TRUTH_BAD);
	sets[1].text = norm;
	assert_int_equal(reftest_judge_both(sets, 0, why, sizeof why), TRUTH_BAD);
}

/* If a scalar is omitted, it has the default of the family. An input that is not optional cannot be omitted. */
static void a_case_omits_inputs(void **state)
{
	char why[256];
	double value;

	(void)state;
	assert_int_equal(reftest_scalar(SOFTMAX("true", ""), 1, &value, why, sizeof why), TRUTH_OK);
	assert_true(value != 1);
	assert_int_equal(reftest_scalar(SOFTMAX("true", ", \"absent\": [\"temperature\"]"), 1, &value, why, sizeof why), TRUTH_OK);
	assert_true(value == 1);
	assert_int_equal(reftest_scalar(SOFTMAX("false", ", \"absent\": [\"temperature\"]"), 1, &value, why, sizeof why), TRUTH_BAD);
	assert_non_null(strstr(why, "input 'temperature', which is not optional"));
	assert_int_equal(reftest_scalar(SOFTMAX("true", ", \"absent\": [\"u\"]"), 1, &value, why, sizeof why), TRUTH_BAD);
	assert_int_equal(reftest_scalar(SOFTMAX("true", ", \"absent\": 1"), 1, &value, why, sizeof why), TRUTH_BAD);
}

static void what_is_no_case_is_refused(void **state)
{
	static const char *const texts[] = {
	    "",
	    "{",
	    "[]",
	    "{}",
	    "{\"definition\": {}}",
	    "{\"definition\": {\"op_type\": \"y\", \"axes\": {}, \"inputs\": {}, \"outputs\": {}}}",
	    "{\"definition\": {\"name\": \"x\", \"op_type\": \"y\", \"axes\": {}}}",
	    "{\"definition\": {\"name\": \"x\", \"op_type\": \"y\", \"axes\": {\"a\": {\"type\": \"var\"}}, "
	    "\"inputs\": {}, \"outputs\": {}}}",
	    "{\"definition\": {\"name\": \"x\", \"op_type\": \"y\", \"axes\": {}, \"inputs\": {\"x\": {\"shape\": "
	    "[\"a\"], \"dtype\": \"int8\"}},"
	    " \"outputs\": {}}}",
	};
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(reftest_family(texts[i], why, sizeof why), TRUTH_BAD);
		assert_true(why[0] != '\0');
	}
	assert_int_equal(
	    reftest_family("{\"definition\": {\"name\": \"x\", \"op_type\": \"y\", \"axes\": {}, \"inputs\": {}, "
			   "\"outputs\": {}}}",
			   why, sizeof why),
	    TRUTH_NONE);
	assert_int_equal(reftest_family("{\"definition\": {\"name\": \"x\", \"op_type\": null, \"axes\": {}, "
					"\"inputs\": {}, \"outputs\": {}}}",
					why, sizeof why),
			 TRUTH_NONE);
	assert_string_equal(why, "the definition has no op_type");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_truth_of_a_norm_is_computed),
	    cmocka_unit_test(a_place_that_does_not_fit_is_refused_and_not_written),
	    cmocka_unit_test(what_nothing_attests_is_not_computed),
	    cmocka_unit_test(what_nothing_attests_can_be_given_and_what_is_attested_stays),
	    cmocka_unit_test(a_constant_is_recovered_from_what_a_reference_returns),
	    cmocka_unit_test(an_edge_case_has_inputs_of_its_own),
	    cmocka_unit_test(what_a_workload_provides_is_known),
	    cmocka_unit_test(bounds_are_the_familys),
	    cmocka_unit_test(bounds_are_first_the_definitions_own),
	    cmocka_unit_test(second_contents_are_others),
	    cmocka_unit_test(what_an_operation_leaves_in_its_input_is_returned),
	    cmocka_unit_test(a_truncated_output_is_refused),
	    cmocka_unit_test(samples_are_judged),
	    cmocka_unit_test(samples_of_both_sets_are_judged_together),
	    cmocka_unit_test(a_case_omits_inputs),
	    cmocka_unit_test(what_is_no_case_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
