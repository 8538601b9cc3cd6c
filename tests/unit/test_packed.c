/* Packed verdicts: each bit comes out again, what is no verdict of ours is not packed, and no octets that a stranger
 * brings are read beyond their end or make a verdict that verdict_parse would refuse. */
#include "dataset/packed.h"

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataset/definition.h"

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Of all kinds that figures are: small and large integers, bfloat16, float, double, denormals, what is none. */
static double number(void)
{
	static const double odd[] = {0,		-0.0,	  1,	    -1,		INFINITY, -INFINITY,
				     0x1p-1074, 0x1p-149, 0x1p-126, 0x1.fep127, 1e-9,	  123.456789};
	uint64_t bits = draw();
	float narrow;
	double wide;

	switch (draw() % 7) {
	case 0:
		return odd[draw() % (sizeof odd / sizeof *odd)];
	case 1:
		return (double)(draw() % 1000);
	case 2:
		bits &= 0xFFFF0000u;
		break;
	case 3:
		bits &= 0xFFFFFF00u;
		break;
	case 4:
		return (double)(draw() % 1000000000) / 1e9;
	case 5:
		memcpy(&wide, &bits, sizeof wide);
		return isnan(wide) ? NAN : wide;
	}
	uint32_t low = (uint32_t)bits;

	memcpy(&narrow, &low, sizeof narrow);
	return isnan(narrow) ? NAN : (double)narrow;
}

static const char *text(void)
{
	static const char *const texts[] = {"builtin", "", "first\nsecond \"third\" \xC3\xA9\xF0\x9F\x98\x80", "sm_90",
					    "a text that is longer than most of those that stand in a verdict"};

	return texts[draw() % (sizeof texts / sizeof *texts)];
}

static const char *text_or_null(void)
{
	return draw() % 3 == 0 ? NULL : text();
}

static void draw_output(struct output_verdict *output)
{
	struct metrics *m = &output->metrics;
	int64_t elements = 1;

	*output = (struct output_verdict){.name = text(),
					  .ground_truth = text_or_null(),
					  .status = (enum status)(draw() % STATUS_COUNT),
					  .reason = (enum reason)(draw() % REASON_COUNT),
					  .atol = number(),
					  .rtol = number(),
					  .hit_ratio = number(),
					  .rank = (int)(draw() % (RANK_MAX + 2)) - 1};
	for (int i = 0; i < output->rank; i++)
		elements *= output->shape[i] = (int64_t)(draw() % 40);
	m->elements = draw() % 4 == 0 ? (int64_t)(draw() % 100000) : elements;
	m->hits = draw() % 2 == 0 ? m->elements : (int64_t)(draw() % (uint64_t)(m->elements + 1));
	m->nan_reference = draw() % 4 == 0 ? (int64_t)(draw() % 1000) : 0;
	m->inf_ground_truth = draw() % 4 == 0 ? (int64_t)(draw() >> 11) : 0;
	m->max_abs = number();
	m->mean_abs = number();
	m->max_rel = number();
	m->mean_rel = number();
	m->cosine = number();
	m->mse = number();
	m->margin = number();
	m->zeros_would_pass = draw() % 2;
	m->passed = draw() % 2;
	m->worst_count = elements > 0 ? (int)(draw() % (METRICS_WORST + 1)) : 0;
	for (int i = 0; i < m->worst_count; i++) {
		struct worst *worst = &m->worst[i];

		*worst = (struct worst){(int64_t)(draw() % (uint64_t)elements), number(), number(), number()};
		if (draw() % 2 == 0)
			worst->diff = fabs(worst->reference - worst->ground_truth);
		if (draw() % 4 == 0)
			worst->ground_truth = worst->reference;
	}
}

/* A verdict of which any part may be any thing, as JSON. */
static void draw_verdict(struct buf *out)
{
	static const char *const findings[] = {"one", "two\xC3\xA9", ""};
	struct output_verdict outputs[3];
	struct witness witnesses[2];
	struct named_value constants[2] = {{"eps", "model:llama-3.1-8b", number()}, {"scale", "", number()}};
	struct verdict v = {.status = (enum status)(draw() % STATUS_COUNT),
			    .reason = (enum reason)(draw() % REASON_COUNT),
			    .message = text_or_null(),
			    .weak = draw() % 2,
			    .device_class = text_or_null(),
			    .device = text_or_null(),
			    .ground_truth = text_or_null(),
			    .ground_truth_version = text_or_null(),
			    .witnesses = witnesses,
			    .witness_count = (int)(draw() % 3),
			    .torch = text_or_null(),
			    .cuda = text_or_null(),
			    .seconds = number(),
			    .time = (int64_t)(draw() >> 11) - (INT64_C(1) << 51),
			    .reference_line = (int)(draw() % 3 * 1000),
			    .outputs = outputs,
			    .output_count = (int)(draw() % 4),
			    .constants = constants,
			    .constant_count = (int)(draw() % 3),
			    .findings = findings,
			    .finding_count = (int)(draw() % 4)};

	for (int i = 0; i < 2; i++)
		witnesses[i] = (struct witness){.name = text(),
						.version = text_or_null(),
						.passed_over = text_or_null(),
						.accident = draw() % 2,
						.coarse = draw() % 2,
						.seconds = number(),
						.prepared = number(),
						.margin = number()};
	for (int i = 0; i < v.witness_count; i++)
		v.all_witnesses = draw() % 2;
	for (int i = 0; i < v.output_count; i++) {
		draw_output(&outputs[i]);
		v.elements += outputs[i].metrics.elements;
	}
	v.elements = draw() % 3 == 0 ? (int64_t)(draw() % 1000) : v.elements;
	buf_clear(out);
	verdict_write(&v, out);
}

static void every_bit_comes_out_again(void **unused)
{
	struct buf json = {0}, packed = {0}, again = {0};

	(void)unused;
	for (int i = 0; i < 20000; i++) {
		struct arena arena = {0};
		struct err err = {""};

		draw_verdict(&json);
		buf_clear(&packed);
		buf_clear(&again);
		if (!verdict_pack(json.data, json.length, &packed))
			fail_msg("this is not packed: %s", json.data);
		assert_true(verdict_is_packed(packed.data, packed.length) &&
			    !verdict_is_packed(json.data, json.length));
		const struct verdict *v = verdict_parse(packed.data, packed.length, &arena, &err);

		assert_non_null(v);
		verdict_write(v, &again);
		assert_string_equal(again.data, json.data);
		arena_free(&arena);
	}
	buf_free(&json);
	buf_free(&packed);
	buf_free(&again);
}

static void what_is_no_verdict_of_ours_is_not_packed(void **unused)
{
	struct buf json = {0}, packed = {0};

	(void)unused;
	draw_verdict(&json);
	assert_false(verdict_pack("", 0, &packed));
	assert_false(verdict_pack("{}", 2, &packed));
	assert_false(verdict_pack(json.data, json.length - 1, &packed));
	buf_text(&json, " "); /* a verdict, but not as it is written */
	assert_false(verdict_pack(json.data, json.length, &packed));
	assert_int_equal(packed.length, 0);
	draw_verdict(&json);
	assert_true(verdict_pack(json.data, json.length, &packed));
	struct buf twice = {0};

	assert_false(verdict_pack(packed.data, packed.length, &twice));
	buf_free(&json);
	buf_free(&packed);
	buf_free(&twice);
}

/* Octets in memory of their own size, changed here and there: what is taken must survive being written as JSON and read
 * as that, for that is what the rest of the program takes. */
static void strangers_octets_do_no_harm(void **unused)
{
	struct buf json = {0}, packed = {0}, again = {0};
	int taken = 0, refused = 0;

	(void)unused;
	for (int i = 0; i < 60000; i++) {
		struct arena arena = {0};
		struct err err = {""};

		if (i % 20 == 0) {
			draw_verdict(&json);
			buf_clear(&packed);
			assert_true(verdict_pack(json.data, json.length, &packed));
		}
		size_t length = draw() % 8 == 0 ? draw() % (packed.length + 1) : packed.length;
		unsigned char *copy = malloc(length > 0 ? length : 1);

		memcpy(copy, packed.data, length);
		for (uint64_t k = draw() % 4; k > 0 && length > 1; k--)
			copy[1 + draw() % (length - 1)] = (unsigned char)(draw() % 3 == 0 ? 0xFF : draw());
		const struct verdict *v = verdict_unpack(copy, length, &arena);

		free(copy); /* nothing of the verdict lies there */
		if (v != NULL) {
			buf_clear(&again);
			verdict_write(v, &again);
			if (verdict_parse(again.data, again.length, &arena, &err) == NULL)
				fail_msg("verdict_parse does not take what was unpacked: %s", err.text);
			taken++;
		}
		refused += v == NULL;
		arena_free(&arena);
	}
	assert_true(taken > 1000 && refused > 1000);
	buf_free(&json);
	buf_free(&packed);
	buf_free(&again);
}

/* What stands in a verdict comes to be shown: it is UTF-8, and ends where it says. */
static void a_text_that_is_none_is_refused(void **unused)
{
	struct verdict v = {.device_class = "sm_90", .torch = "2.13.0"};
	struct buf json = {0}, packed = {0};
	struct arena arena = {0};

	(void)unused;
	verdict_write(&v, &json);
	assert_true(verdict_pack(json.data, json.length, &packed));
	char *at = memmem(packed.data, packed.length, "sm_90", 5);

	assert_non_null(at);
	for (int i = 0; i < 3; i++) {
		*at = i == 0 ? 'x' : i == 1 ? '\xFF' : '\0';
		assert_int_equal(verdict_unpack(packed.data, packed.length, &arena) != NULL, i == 0);
	}
	buf_free(&json);
	buf_free(&packed);
	arena_free(&arena);
}

static void parts_come_apart_and_together(void **unused)
{
	struct buf json = {0}, packed = {0}, again = {0};
	struct packed_parts parts;

	(void)unused;
	for (int i = 0; i < 100; i++) {
		draw_verdict(&json);
		buf_clear(&packed);
		buf_clear(&again);
		assert_true(verdict_pack(json.data, json.length, &packed));
		assert_true(packed_split(packed.data, packed.length, &parts));
		packed_join(&parts, &again);
		assert_int_equal(again.length, packed.length);
		assert_memory_equal(again.data, packed.data, packed.length);
	}
	assert_false(packed_split("{}", 2, &parts));
	assert_false(packed_split("", 0, &parts));
	assert_false(packed_split("\1\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1\0", 13, &parts));
	buf_free(&json);
	buf_free(&packed);
	buf_free(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_bit_comes_out_again),
	    cmocka_unit_test(what_is_no_verdict_of_ours_is_not_packed),
	    cmocka_unit_test(strangers_octets_do_no_harm),
	    cmocka_unit_test(a_text_that_is_none_is_refused),
	    cmocka_unit_test(parts_come_apart_and_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
