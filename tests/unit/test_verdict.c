/* test_verdict - a verdict that was written as text is the same after reading, bit by bit, and damaged text is
 * rejected. */
#include "dataset/verdict.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct output_verdict outputs[] = {
    {.name = "output",
     .ground_truth = "builtin",
     .status = STATUS_FAILED,
     .reason = REASON_NUMERIC,
     .atol = 0.008,
     .rtol = 0.01,
     .hit_ratio = 0.85,
     .rank = 3,
     .shape = {2, 3, 4},
     .metrics = {.elements = 24,
                 .hits = 18,
                 .nan_reference = 1,
                 .nan_ground_truth = 2,
                 .inf_reference = 3,
                 .inf_ground_truth = 4,
                 .max_abs = 0x1.fffffffffffffp-1,
                 .mean_abs = DBL_MIN / 8,
                 .max_rel = DBL_MAX,
                 .mean_rel = 0.1,
                 .cosine = -0.0,
                 .mse = 1e-300,
                 .margin = INFINITY,
                 .zeros_would_pass = true,
                 .worst_count = 2,
                 .worst = {{23, NAN, -INFINITY, NAN}, {6, 1.5, 1.25, 0.25}}}},
    {.name = "a \"scalar\"", .ground_truth = NULL, .status = STATUS_PASSED, .hit_ratio = 1, .rank = RANK_SCALAR,
     .metrics = {.passed = true, .elements = 1, .hits = 1, .worst_count = 1}},
};
static const struct named_value constants[] = {{"eps", "model:llama-3.1-8b", 1e-5}, {"scale", "unattested", NAN}};
static const char *const findings[] = {"one\nline", "\xC3\xA9"};
static const struct tried_truth tried[] = {
    {.name = "flashinfer", .version = "0.7.2 (table 1a2b3c4d)", .passed_over = "it does not compile:\n\"error\"",
     .accident = true, .coarse = true, .not_asked = true, .not_built = true, .seconds = 0.1, .prepared = 62.5, .margin = 0.3},
    {.name = "torch", .version = "2.13.0 (table 5e6f7a8b)", .seconds = 1e-3, .margin = 0.25},
};

static const struct verdict whole = {
    .tried = tried,
    .tried_count = 2,
    .all_tried = true,
    .status = STATUS_FAILED,
    .reason = REASON_NUMERIC,
    .message = "Traceback:\n\t\"x\"\x1b[0m",
    .second_set = true,
    .weak = true,
    .device_class = "sm_90",
    .device = "cuda:0",
    .ground_truth = "builtin",
    .ground_truth_version = "0123456789abcdef",
    .torch = "2.13.0+cpu",
    .cuda = "13.0",
    .python = "3.11.7",
    .after = "0123456789abcdef0123456789abcdef",
    .seconds = 0.002,
    .time = 1760000000,
    .elements = 9007199254740991,
    .reference_line = 17,
    .outputs = outputs,
    .output_count = 2,
    .constants = constants,
    .constant_count = 2,
    .findings = findings,
    .finding_count = 2,
};

static void same_bits(double a, double b)
{
	assert_true((isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0);
}

static void a_verdict_survives_its_text_bit_for_bit(void **state)
{
	struct arena arena = {0};
	struct buf text = {0}, again = {0};
	struct err err = {""};

	(void)state;
	verdict_write(&whole, &text);
	assert_null(memchr(text.data, '\n', text.length));
	const struct verdict *v = verdict_parse(text.data, text.length, &arena, &err);

	assert_string_equal(err.text, "");
	assert_non_null(v);
	verdict_write(v, &again);
	assert_string_equal(text.data, again.data);
	assert_int_equal(v->status, STATUS_FAILED);
	assert_int_equal(v->reason, REASON_NUMERIC);
	assert_string_equal(v->message, whole.message);
	assert_true(v->weak);
	assert_string_equal(v->torch, "2.13.0+cpu");
	assert_string_equal(v->python, "3.11.7");
	assert_string_equal(v->after, whole.after);
	assert_true(v->elements == whole.elements && v->time == whole.time && v->reference_line == 17);
	same_bits(v->seconds, 0.002);
	assert_int_equal(v->output_count, 2);
	const struct output_verdict *o = &v->outputs[0];
	const struct metrics *m = &o->metrics, *n = &outputs[0].metrics;

	assert_string_equal(o->name, "output");
	assert_true(o->rank == 3 && o->shape[2] == 4 && o->atol == 0.008 && o->rtol == 0.01 && o->hit_ratio == 0.85);
	assert_true(m->elements == 24 && m->hits == 18 && m->nan_reference == 1 && m->nan_ground_truth == 2);
	assert_true(m->inf_reference == 3 && m->inf_ground_truth == 4 && m->zeros_would_pass && !m->passed);
	same_bits(m->max_abs, n->max_abs);
	same_bits(m->mean_abs, n->mean_abs);
	same_bits(m->max_rel, n->max_rel);
	same_bits(m->mean_rel, n->mean_rel);
	same_bits(m->cosine, n->cosine);
	same_bits(m->mse, n->mse);
	same_bits(m->margin, n->margin);
	assert_int_equal(m->worst_count, 2);
	assert_int_equal(m->worst[0].index, 23);
	same_bits(m->worst[0].reference, NAN);
	same_bits(m->worst[0].ground_truth, -INFINITY);
	assert_true(v->outputs[1].rank == RANK_SCALAR && v->outputs[1].ground_truth == NULL &&
	            v->outputs[1].metrics.passed);
	same_bits(v->constants[0].value, 1e-5);
	assert_string_equal(v->constants[1].source, "unattested");
	assert_string_equal(v->findings[1], "\xC3\xA9");
	arena_free(&arena);
	buf_free(&text);
	buf_free(&again);
}

/* Writes the verdict as text and reads the head of this text with verdict_head. Returns NULL if verdict_head cannot
 * read the text, so that verdict_parse must read it. */
static const struct verdict *head_of(const struct verdict *v, struct arena *arena)
{
	struct buf text = {0};

	verdict_write(v, &text);
	const struct verdict *head = verdict_head(text.data, text.length, arena);

	buf_free(&text);
	return head;
}

static void the_head_of_a_plain_pass_is_what_the_whole_says(void **state)
{
	struct verdict plain = whole, other;
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	plain.status = STATUS_PASSED;
	plain.reason = REASON_NONE;
	plain.message = NULL;
	plain.second_set = plain.weak = false;
	plain.finding_count = 0;
	plain.tried_count = 0;
	plain.all_tried = false;
	plain.seconds = 1.25e-7;
	plain.time = -3;
	verdict_write(&plain, &text);
	const struct verdict *head = verdict_head(text.data, text.length, &arena);
	const struct verdict *v = verdict_parse(text.data, text.length, &arena, NULL);

	assert_non_null(head);
	assert_true(head->status == v->status && head->reason == v->reason && !head->weak && head->message == NULL);
	assert_string_equal(head->device_class, v->device_class);
	assert_string_equal(head->device, v->device);
	assert_string_equal(head->ground_truth, v->ground_truth);
	assert_string_equal(head->ground_truth_version, v->ground_truth_version);
	assert_string_equal(head->torch, v->torch);
	assert_true(head->cuda == NULL ? v->cuda == NULL : strcmp(head->cuda, v->cuda) == 0);
	assert_true(head->python == NULL ? v->python == NULL : strcmp(head->python, v->python) == 0);
	assert_string_equal(head->after, v->after);
	same_bits(head->seconds, v->seconds);
	assert_true(head->time == -3 && head->elements == v->elements && head->reference_line == v->reference_line);
	assert_true(head->output_count == 0 && head->constant_count == 0);
	for (size_t length = 0; length < text.length; length++)
		assert_null(verdict_head(text.data, length, &arena));

	/* verdict_head reads only plain verdicts whose text is exactly as the program writes it. All other verdicts are
	 * left to verdict_parse. */
	other = plain, other.status = STATUS_FAILED;
	assert_null(head_of(&other, &arena));
	other = plain, other.reason = REASON_NUMERIC;
	assert_null(head_of(&other, &arena));
	other = plain, other.weak = true;
	assert_null(head_of(&other, &arena));
	other = plain, other.message = "a sentence";
	assert_null(head_of(&other, &arena));
	other = plain, other.finding_count = 1;
	assert_null(head_of(&other, &arena));
	other = plain, other.tried_count = 2;
	assert_null(head_of(&other, &arena));
	other = plain, other.output_count = 0;
	assert_null(head_of(&other, &arena));
	other = plain, other.torch = "2.13\"";
	assert_null(head_of(&other, &arena));
	other = plain, other.seconds = INFINITY;
	assert_null(head_of(&other, &arena));
	char *status = strstr(text.data, "passed");

	memcpy(status, "failed", 6);
	assert_null(verdict_head(text.data, text.length, &arena));
	buf_free(&text);
	arena_free(&arena);
}

static const struct driver_margin drivers[] = {{"550.54.15", STATUS_PASSED, 100, 0.25}, {"570.86.10", STATUS_FAILED, 200, INFINITY}};

/* The drivers of a verdict are written and read. The verdict `whole` has no drivers, like the verdicts of earlier
 * versions of reftest. */
static void drivers_survive_in_the_whole_and_in_the_head(void **state)
{
	struct verdict v = whole;
	struct arena arena = {0};
	struct buf text = {0}, again = {0};

	(void)state;
	v.driver = "580.159.04";
	v.drivers = drivers;
	v.driver_count = 2;
	verdict_write(&v, &text);
	assert_int_equal(verdict_time(text.data, text.length), whole.time); /* the time of the verdict, not the time of
									     * a driver */
	const struct verdict *read = verdict_parse(text.data, text.length, &arena, NULL);

	assert_non_null(read);
	verdict_write(read, &again);
	assert_string_equal(text.data, again.data);
	assert_string_equal(read->driver, "580.159.04");
	assert_true(read->driver_count == 2 && read->drivers[1].status == STATUS_FAILED && read->drivers[1].time == 200);
	assert_string_equal(read->drivers[0].driver, "550.54.15");
	same_bits(read->drivers[0].margin, 0.25);
	v.status = STATUS_PASSED, v.reason = REASON_NONE, v.message = NULL, v.second_set = v.weak = false;
	v.finding_count = v.tried_count = 0;
	const struct verdict *head = head_of(&v, &arena);

	assert_non_null(head);
	assert_string_equal(head->driver, "580.159.04");
	assert_true(head->time == whole.time && head->elements == whole.elements);
	v.drivers = (const struct driver_margin[]){{"5]80", STATUS_PASSED, 1, 0}};
	v.driver_count = 1;
	assert_null(head_of(&v, &arena));
	buf_clear(&text);
	verdict_write(&v, &text);
	char *at = strstr(text.data, "\"time\": 1,");

	assert_non_null(at);
	memcpy(at, "\"time\": x,", 10);
	assert_null(verdict_parse(text.data, text.length, &arena, NULL));
	buf_free(&text);
	buf_free(&again);
	arena_free(&arena);
}

static void tried_ground_truths_survive_and_have_one_text(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};
	struct verdict one = whole;
	(void)state;

	verdict_write(&whole, &text);
	const struct verdict *v = verdict_parse(text.data, text.length, &arena, NULL);

	assert_non_null(v);
	assert_int_equal(v->tried_count, 2);
	assert_true(v->all_tried && v->tried[0].accident && !v->tried[1].accident);
	assert_true(v->tried[0].coarse && !v->tried[1].coarse);
	assert_true(v->tried[0].not_asked && !v->tried[1].not_asked);
	assert_true(v->tried[0].not_built && !v->tried[1].not_built);
	assert_true(v->second_set);
	assert_string_equal(v->tried[0].passed_over, tried[0].passed_over);
	assert_null(v->tried[1].passed_over);
	same_bits(v->tried[0].prepared, 62.5);
	same_bits(v->tried[1].margin, 0.25);
	assert_string_equal(verdict_truth_version(v, &arena),
	                    "all of flashinfer 0.7.2 (table 1a2b3c4d); torch 2.13.0 (table 5e6f7a8b)");
	one.all_tried = false;
	one.tried_count = 1;
	assert_string_equal(verdict_truth_version(&one, &arena), whole.ground_truth_version);
	one.tried_count = 0;
	assert_string_equal(verdict_truth_version(&one, &arena), whole.ground_truth_version);
	arena_free(&arena);
	buf_free(&text);
}

static const char *const heat[] = {"0h", "v1"};
static const struct difference_map differences[] = {
    {.output = "output", .row_axis = "n", .column_axis = "width", .row_length = 70, .column_length = 2, .heat = heat, .rows = 2,
     .histogram = {[0] = 60, [17] = 79, [31] = 1}},
    {.output = "\"lse\"", .row_length = 1, .column_length = 1, .heat = heat, .rows = 1},
};

/* Pictures of differences are written and read. Older verdicts, such as `whole`, have no pictures. */
static void pictures_of_differences_survive(void **state)
{
	struct verdict v = whole;
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	v.differences = differences;
	v.difference_count = 2;
	verdict_write(&v, &text);
	const struct verdict *again = verdict_parse(text.data, text.length, &arena, NULL);

	assert_non_null(again);
	assert_int_equal(again->difference_count, 2);
	assert_string_equal(again->differences[0].output, "output");
	assert_string_equal(again->differences[0].row_axis, "n");
	assert_string_equal(again->differences[0].column_axis, "width");
	assert_int_equal(again->differences[0].row_length, 70);
	assert_int_equal(again->differences[0].column_length, 2);
	assert_int_equal(again->differences[0].rows, 2);
	assert_string_equal(again->differences[0].heat[1], "v1");
	assert_memory_equal(again->differences[0].histogram, differences[0].histogram, sizeof differences[0].histogram);
	assert_string_equal(again->differences[1].output, "\"lse\"");
	assert_null(again->differences[1].row_axis);
	arena_free(&arena);
	buf_free(&text);
}

/* A damaged picture is refused, because it may come from strangers through a shared cache. */
static void damaged_pictures_are_refused(void **state)
{
	static const char *const bad[][2] = {{"0h", "v"}, {"0h", "w1"}, {"", ""}, {"<b", "00"}};
	char wide[DIFFERENCE_SIDE + 2];

	(void)state;
	memset(wide, '0', sizeof wide - 1);
	wide[sizeof wide - 1] = '\0';
	for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
		const char *rows[2] = {i < 4 ? bad[i][0] : wide, i < 4 ? bad[i][1] : wide};
		struct difference_map map = differences[0];
		struct verdict v = whole;
		struct arena arena = {0};
		struct buf text = {0};
		struct err err = {""};

		map.heat = rows;
		v.differences = &map;
		v.difference_count = 1;
		verdict_write(&v, &text);
		assert_null(verdict_parse(text.data, text.length, &arena, &err));
		assert_non_null(strstr(err.text, "heat"));
		arena_free(&arena);
		buf_free(&text);
	}
}

static void an_empty_verdict_survives_too(void **state)
{
	const struct verdict skipped = {.status = STATUS_SKIPPED, .reason = REASON_MEMORY};
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	verdict_write(&skipped, &text);
	const struct verdict *v = verdict_parse(text.data, text.length, &arena, NULL);

	assert_non_null(v);
	assert_true(v->status == STATUS_SKIPPED && v->reason == REASON_MEMORY && v->message == NULL &&
	            v->device == NULL);
	assert_true(v->output_count == 0 && v->constant_count == 0 && v->finding_count == 0);
	arena_free(&arena);
	buf_free(&text);
}

static void random_doubles_keep_every_bit(void **state)
{
	struct verdict v = {.status = STATUS_PASSED};
	struct arena arena = {0};
	struct buf text = {0};
	uint64_t bits = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
		memcpy(&v.seconds, &bits, sizeof bits);
		buf_clear(&text);
		verdict_write(&v, &text);
		same_bits(verdict_parse(text.data, text.length, &arena, NULL)->seconds, v.seconds);
		arena_free(&arena);
	}
	buf_free(&text);
}

static void outputs_are_shown_with_indices_in_each_dimension(void **state)
{
	struct buf text = {0};

	(void)state;
	verdict_write_outputs(&whole, &text);
	assert_string_equal(
	    text.data,
	    "[{\"name\": \"output\", \"ground_truth\": \"builtin\", \"status\": \"failed\", \"reason\": \"numeric\", "
	    "\"elements\": 24, "
	    "\"atol\": 0.008, \"rtol\": 0.01, \"hit_ratio_needed\": 0.85, \"margin\": \"inf\", \"zeros_would_pass\": "
	    "true, "
	    "\"max_abs\": 0.9999999999999999, \"max_rel\": 1.7976931348623157e+308, \"mean_abs\": 2.781342323134e-309, "
	    "\"mean_rel\": 0.1, \"cosine\": -0.0, \"mse\": 1e-300, \"hit_ratio\": 0.75, \"nan_reference\": 1, "
	    "\"nan_ground_truth\": 2, \"inf_reference\": 3, \"inf_ground_truth\": 4, \"worst\": [{\"index\": [1, 2, "
	    "3], "
	    "\"reference\": \"nan\", \"ground_truth\": \"-inf\", \"diff\": \"nan\"}, {\"index\": [0, 1, 2], "
	    "\"reference\": 1.5, "
	    "\"ground_truth\": 1.25, \"diff\": 0.25}]}, {\"name\": \"a \\\"scalar\\\"\", \"ground_truth\": null, "
	    "\"status\": "
	    "\"passed\", \"reason\": null, \"elements\": 1, \"atol\": 0.0, \"rtol\": 0.0, \"hit_ratio_needed\": 1.0, "
	    "\"margin\": 0.0, "
	    "\"zeros_would_pass\": false, \"max_abs\": 0.0, \"max_rel\": 0.0, \"mean_abs\": 0.0, \"mean_rel\": 0.0, "
	    "\"cosine\": 0.0, "
	    "\"mse\": 0.0, \"hit_ratio\": 1.0, \"nan_reference\": 0, \"nan_ground_truth\": 0, \"inf_reference\": 0, "
	    "\"inf_ground_truth\": 0, \"worst\": [{\"index\": [], \"reference\": 0.0, \"ground_truth\": 0.0, \"diff\": "
	    "0.0}]}]");
	buf_free(&text);
}

static void names_are_fixed(void **state)
{
	static const char *const statuses[] = {"passed", "skipped", "error", "failed", "invalid", "checked"};
	static const char *const reasons[] = {
	    "shape", "dtype", "numeric", "nonfinite", "nondeterministic", "mutated_input", "ground_truths_disagree",
	    "no_ground_truth", "memory", "missing_blob", "unsupported_device", "weak", "raised", "crashed", "timeout",
	    "ground_truth", "out_of_bounds", "not_cached", "unsupported_dtype", "changed", "memory_limit",
	    "process_limit", "file_limit", "unknown_dtype", "no_reference", "inputs", "constants", "unsteady", "unattested"};
	enum status status;
	enum reason reason;

	(void)state;
	for (int i = 0; i < STATUS_COUNT; i++) {
		assert_string_equal(status_name((enum status)i), statuses[i]);
		assert_true(strlen(statuses[i]) <= STATUS_NAME_MAX);
		assert_true(status_parse(statuses[i], &status) && status == (enum status)i);
	}
	assert_null(reason_name(REASON_NONE));
	for (int i = 1; i < REASON_COUNT; i++) {
		assert_string_equal(reason_name((enum reason)i), reasons[i - 1]);
		assert_true(reason_parse(reasons[i - 1], &reason) && reason == (enum reason)i);
	}
	assert_false(status_parse("Passed", &status));
	assert_false(reason_parse("", &reason));
}

/* A verdict with a transient reason is not stored, because the next run of the same case may give another verdict. */
static void transient_reasons_are_known(void **state)
{
	static const enum reason transient[] = {REASON_MEMORY, REASON_MISSING_BLOB, REASON_UNSUPPORTED_DEVICE,
	                                        REASON_CRASHED, REASON_TIMEOUT, REASON_GROUND_TRUTH, REASON_CHANGED,
	                                        REASON_MEMORY_LIMIT, REASON_PROCESS_LIMIT, REASON_FILE_LIMIT};

	(void)state;
	for (int i = 0; i < REASON_COUNT; i++) {
		bool expected = false;

		for (size_t k = 0; k < sizeof transient / sizeof *transient; k++)
			expected |= transient[k] == (enum reason)i;
		if (reason_is_transient((enum reason)i) != expected)
			fail_msg("'%s' is %s", reason_name((enum reason)i), expected ? "not transient" : "transient");
	}
}

/* Replaces `from` by `to` in the text of `whole`. The parser must reject the new text with the message `sentence`. */
static void refused(const char *from, const char *to, const char *sentence)
{
	struct arena arena = {0};
	struct buf text = {0}, bad = {0};
	struct err err = {""};

	verdict_write(&whole, &text);
	const char *at = strstr(text.data, from);

	assert_non_null(at);
	buf_add(&bad, text.data, (size_t)(at - text.data));
	buf_text(&bad, to);
	buf_text(&bad, at + strlen(from));
	assert_null(verdict_parse(bad.data, bad.length, &arena, &err));
	assert_string_equal(err.text, sentence);
	arena_free(&arena);
	buf_free(&text);
	buf_free(&bad);
}

static void damaged_text_is_no_verdict(void **state)
{
	static const char *const cases[][3] = {
	    {"\"status\": \"failed\"", "\"status\": \"fine\"", "\"status\" to be the name of a status"},
	    {"\"status\": \"failed\"", "\"status\": 3", "\"status\" to be the name of a status"},
	    {"\"reason\": \"numeric\"", "\"reason\": \"none\"", "\"reason\" to be the name of a reason or null"},
	    {"\"reason\": \"numeric\"", "\"why\": \"none\"", "\"reason\" to be the name of a reason or null"},
	    {"\"weak\": true", "\"weak\": 1", "\"weak\" to be true or false"},
	    {"\"device\": \"cuda:0\"", "\"device\": 0", "\"device\" to be a string or null"},
	    {"\"seconds\": 0.002", "\"seconds\": \"fast\"", "\"seconds\" to be a number"},
	    {"\"time\": 1760000000", "\"time\": 1.5", "\"time\" to be an integer within its bounds"},
	    {"\"elements\": 9007199254740991", "\"elements\": -1", "\"elements\" to be an integer within its bounds"},
	    {"\"reference_line\": 17", "\"reference_line\": 2147483648",
	     "\"reference_line\" to be an integer within its bounds"},
	    {"\"shape\": [2, 3, 4]", "\"shape\": [2, -3, 4]", "\"shape\" to be a list of sizes"},
	    {"\"shape\": [2, 3, 4]", "\"shape\": [4503599627370496, 4503599627370496]",
	     "\"shape\" to be a list of sizes"},
	    {"\"shape\": [2, 3, 4]", "\"shape\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,24]", "\"shape\" to be a list of bounded length"},
	    {"\"shape\": [2, 3, 4]", "\"shape\": [23]", "\"worst\" to be a list of indices and values"},
	    {"\"shape\": [2, 3, 4]", "\"shape\": [0]", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[-1, ", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[24, ", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[\"23\", ", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[23], [", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[], [", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[23, 1, 2, 3, ", "\"worst\" to be a list of indices and values"},
	    {"[[23, ", "[[23, null, ", "\"worst\" to be a number"},
	    {"\"hits\": 18", "\"hits\": 25", "\"hits\" to be no more than the number of elements"},
	    {"\"worst\": [", "\"worst\": [0,0,0,0,", "\"worst\" to be a list of bounded length"},
	    {"\"worst\": [", "\"worst\": [0,", "\"worst\" to be a list of indices and values"},
	    {"\"worst\": [", "\"worst\": [{\"index\": 1, \"reference\": 2},",
	     "\"worst\" to be a list of indices and values"},
	    {"\"margin\": \"inf\"", "\"margin\": \"infinity\"", "\"margin\" to be a number"},
	    {"\"name\": \"output\"", "\"name\": null", "\"name\" to be a string"},
	    {"\"constants\": [{", "\"constants\": 0, \"x\": [{", "\"constants\" to be a list of bounded length"},
	    {"\"source\": \"unattested\"", "\"source\": 0", "\"source\" to be a string"},
	    {"\"findings\": [", "\"findings\": [0, ", "\"findings\" to be a list of strings"},
	};
	char sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(sentence, sizeof sentence, "this is not a verdict, or it is damaged: expected %s", cases[i][2]);
		refused(cases[i][0], cases[i][1], sentence);
	}
	refused("{\"status\"", "[\"status\"", "verdict:1:10: expected ',' or ']', found ':'");
}

/* A number that follows from other numbers is not stored. When the verdict is read, the number is computed again, bit
 * for bit. */
static void worst_elements_come_out_again(void **state)
{
	static const double values[] = {0, -0.0, 1.5, -2.25, 0.1, 1e300, INFINITY, -INFINITY, NAN};
	enum { VALUES = sizeof values / sizeof *values };

	(void)state;
	for (int i = 0; i < VALUES * VALUES * 3; i++) {
		struct output_verdict output = {.name = "o", .rank = 1, .shape = {8}, .metrics = {.worst_count = 1}};
		struct verdict v = {.outputs = &output, .output_count = 1};
		struct worst *worst = output.metrics.worst;
		struct arena arena = {0};
		struct buf text = {0};

		*worst = (struct worst){7, values[i / 3 % VALUES], values[i / 3 / VALUES], 0};
		worst->diff = i % 3 == 0 ? fabs(worst->reference - worst->ground_truth) : i % 3 == 1 ? 0 : 0.75;
		verdict_write(&v, &text);
		const struct verdict *again = verdict_parse(text.data, text.length, &arena, NULL);

		assert_non_null(again);
		const struct worst *found = again->outputs[0].metrics.worst;

		assert_int_equal(found->index, 7);
		same_bits(found->reference, worst->reference);
		same_bits(found->ground_truth, worst->ground_truth);
		same_bits(found->diff, worst->diff);
		arena_free(&arena);
		buf_free(&text);
	}
}

static void every_truncation_is_noticed(void **state)
{
	struct buf text = {0};

	(void)state;
	verdict_write(&whole, &text);
	for (size_t length = 0; length < text.length; length++) {
		struct arena arena = {0};
		char *copy = malloc(length);

		if (length > 0)
			memcpy(copy, text.data, length);
		assert_null(verdict_parse(copy, length, &arena, NULL));
		free(copy);
		arena_free(&arena);
	}
	buf_free(&text);
}

static void long_lists_are_refused(void **state)
{
	struct buf text = {0};
	struct arena arena = {0};
	struct err err;

	(void)state;
	buf_text(&text, "\"outputs\": [0");
	for (int i = 0; i < 1024; i++)
		buf_text(&text, ", 0");
	buf_text(&text, "], \"x\": [{");
	refused("\"outputs\": [{", text.data,
	        "this is not a verdict, or it is damaged: expected \"outputs\" to be a list of bounded "
	        "length");
	buf_free(&text);
	char *large = calloc(1, (16 << 20) + 1);

	assert_null(verdict_parse(large, (16 << 20) + 1, &arena, &err));
	assert_string_equal(err.text,
	                    "this is not a verdict: the text has 16777217 bytes, more than the limit of 16777216");
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_verdict_survives_its_text_bit_for_bit),
	    cmocka_unit_test(the_head_of_a_plain_pass_is_what_the_whole_says),
	    cmocka_unit_test(drivers_survive_in_the_whole_and_in_the_head),
	    cmocka_unit_test(tried_ground_truths_survive_and_have_one_text),
	    cmocka_unit_test(pictures_of_differences_survive),
	    cmocka_unit_test(damaged_pictures_are_refused),
	    cmocka_unit_test(an_empty_verdict_survives_too),
	    cmocka_unit_test(random_doubles_keep_every_bit),
	    cmocka_unit_test(outputs_are_shown_with_indices_in_each_dimension),
	    cmocka_unit_test(names_are_fixed),
	    cmocka_unit_test(transient_reasons_are_known),
	    cmocka_unit_test(damaged_text_is_no_verdict),
	    cmocka_unit_test(worst_elements_come_out_again),
	    cmocka_unit_test(every_truncation_is_noticed),
	    cmocka_unit_test(long_lists_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
