/* test_margin_drift - a case may have verdicts from different versions of torch, of the driver or of other software:
 * their margins are compared, separately for each device class. For each definition, the list has the case whose margin
 * (the largest error, divided by its bound) changed most. It states which versions changed, and how near the margin is
 * to 1. */
#include "tests/unit/engine_world.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "engine/margin_drift.h"
#include "report/drift_list.h"

static void plan(struct world *w)
{
	world_write(w, "definitions/rmsnorm/first.json", "first", WORLD_DEFINITION("first", "return hidden_states * weight"));
	world_write(w, "definitions/rmsnorm/second.json", "second", WORLD_DEFINITION("second", "return weight * hidden_states"));
	w->options.dry_run = w->options.cached_only = w->options.thorough = true;
	world_run(w);
	assert_int_equal(world_count(w, "run:"), 0);
}

struct stored {
	const char *torch, *version, *device_class;
	double margin;
	int64_t time;
	const char *ground_truth; /* NULL: the ground truth is builtin */
	const char *driver, *earlier_driver;
	double earlier_margin;
};

static void store(struct world *w, const char *name, int at, struct stored s)
{
	const struct case_result *c = &world_result(w, name)->cases[at];
	const struct output_verdict output = {
	    .name = "output", .ground_truth = "builtin", .metrics = {.elements = 1, .hits = 1, .margin = s.margin}};
	const struct driver_margin earlier = {s.earlier_driver, STATUS_PASSED, s.time - 1, s.earlier_margin};
	const struct verdict v = {.status = s.margin > 1 ? STATUS_FAILED : STATUS_PASSED,
				  .device_class = s.device_class,
				  .device = "cpu",
				  .ground_truth = s.ground_truth != NULL ? s.ground_truth : "builtin",
				  .ground_truth_version = s.version,
				  .torch = s.torch,
				  .driver = s.driver,
				  .drivers = &earlier,
				  .driver_count = s.earlier_driver != NULL,
				  .time = s.time,
				  .outputs = &output,
				  .output_count = 1};
	struct buf text = {0};
	struct err err;

	verdict_write(&v, &text);
	const struct store_put put = {.subject = c->test->subject,
				      .witness = digest_of(text.data, text.length),
				      .text = text.data,
				      .length = text.length,
				      .definition = strcmp(name, "first") == 0 ? "rmsnorm/first" : "rmsnorm/second",
				      .case_id = c->test->id,
				      .keep_verdict = true};

	assert_int_equal(w->run.records.calls->put(w->run.records.self, &put, 1, &err), 0);
	buf_free(&text);
}

static struct margin_drifts drifts_of(const struct world *w, bool each, struct arena *arena)
{
	return margin_drifts_of(&w->run, each, arena);
}

static void the_case_that_moved_most_stands_for_its_definition(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};

	plan(w);
	assert_true(world_result(w, "first")->case_count >= 2);
	store(w, "first", 0, (struct stored){"2.12", "1", "cpu", 0.5, 100, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.13", "1", "cpu", 0.6, 200, NULL, NULL, NULL, 0});
	store(w, "first", 1, (struct stored){"2.12", "1", "cpu", 0.1, 100, NULL, NULL, NULL, 0});
	store(w, "first", 1, (struct stored){"2.13", "1", "cpu", 0.4, 200, NULL, NULL, NULL, 0});
	struct margin_drifts drifts = drifts_of(w, false, &arena);

	assert_int_equal(drifts.count, 1);
	assert_int_equal(drifts.never_compared, 1);
	assert_ptr_equal(drifts.items[0].c, &world_result(w, "first")->cases[1]);
	assert_true(fabs(drifts.items[0].factor - 4) < 1e-9);
	assert_int_equal(margin_drift_kind(&drifts.items[0]), DRIFT_GREW);
	drifts = drifts_of(w, true, &arena);
	assert_int_equal(drifts.count, 2);
	assert_true(drifts.items[0].to.margin == 0.6); /* the margin nearest to the bound comes first */
	assert_int_equal(margin_drift_kind(&drifts.items[0]), DRIFT_STAYED);
	arena_free(&arena);
	world_end(w);
}

static void other_devices_and_ground_truths_are_not_compared(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};

	plan(w);
	store(w, "first", 0, (struct stored){"2.13", "1", "cpu", 0.1, 100, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.13", "1", "sm_90", 0.9, 200, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.13", "1", "cpu", 0.8, 300, "torch", NULL, NULL, 0});
	assert_int_equal(drifts_of(w, false, &arena).count, 0);
	assert_int_equal(drifts_of(w, false, &arena).never_compared, 2);
	arena_free(&arena);
	world_end(w);
}

static void the_newest_is_compared_with_the_older_ones(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};

	plan(w);
	store(w, "first", 0, (struct stored){"2.13", "2", "cpu", 0.125, 300, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.11", "1", "cpu", 0.5, 100, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.12", "1", "cpu", 0.25, 200, NULL, NULL, NULL, 0});
	const struct margin_drifts drifts = drifts_of(w, false, &arena);

	assert_int_equal(drifts.count, 1);
	assert_string_equal(drifts.items[0].to.torch, "2.13");
	assert_string_equal(drifts.items[0].from.torch, "2.11");
	assert_int_equal(margin_drift_kind(&drifts.items[0]), DRIFT_FELL);
	arena_free(&arena);
	world_end(w);
}

static void tiny_and_infinite_margins_do_not_move(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};

	plan(w);
	store(w, "first", 0, (struct stored){"2.12", "1", "cpu", 0, 100, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.13", "1", "cpu", 1e-4, 200, NULL, NULL, NULL, 0});
	store(w, "second", 0, (struct stored){"2.12", "1", "cpu", (double)INFINITY, 100, NULL, NULL, NULL, 0});
	store(w, "second", 0, (struct stored){"2.13", "1", "cpu", (double)INFINITY, 200, NULL, NULL, NULL, 0});
	const struct margin_drifts drifts = drifts_of(w, false, &arena);

	assert_int_equal(drifts.count, 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(margin_drift_kind(&drifts.items[i]), DRIFT_STAYED);
	arena_free(&arena);
	world_end(w);
}

static void the_list_says_what_changed(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};
	struct buf text = {0}, json = {0};

	plan(w);
	store(w, "first", 0, (struct stored){"2.12", "1", "cpu", 0.25, 100, NULL, NULL, NULL, 0});
	store(w, "first", 0, (struct stored){"2.13", "2", "cpu", 0.75, 200, NULL, NULL, NULL, 0});
	store(w, "second", 0, (struct stored){"2.12", "1", "cpu", 0.5, 100, NULL, NULL, NULL, 0});
	store(w, "second", 0, (struct stored){"2.13", "1", "cpu", 4, 200, NULL, NULL, NULL, 0});
	const struct margin_drifts drifts = drifts_of(w, false, &arena);

	drift_list_text(&drifts, false, &text);
	assert_non_null(strstr(text.data, "grew     rmsnorm/second on cpu: margin 0.5 -> 4, above the bound\n"));
	assert_non_null(strstr(text.data, "grew     rmsnorm/first on cpu: margin 0.25 -> 0.75, 75 % of the bound\n"));
	assert_non_null(strstr(text.data, ": torch 2.12 -> 2.13, builtin 1 -> 2\n"));
	assert_non_null(strstr(text.data, "margins: 2 grew, 0 fell, 0 changed by at most a factor of two; "));
	buf_text(&json, "{");
	drift_list_json(&drifts, &json);
	buf_text(&json, "}");
	cJSON *tree = cJSON_Parse(json.data);
	const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(tree, "drifts"), 0);

	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "name")), "second");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(first, "to"), "status")), "failed");
	cJSON_Delete(tree);
	buf_free(&text);
	buf_free(&json);
	arena_free(&arena);
	world_end(w);
}

/* A verdict's key does not include the version of the driver, so one stored verdict has a margin for each of several
 * drivers. */
static void another_driver_is_compared(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};
	struct buf text = {0}, json = {0};

	plan(w);
	store(w, "first", 0, (struct stored){"2.13", "1", "sm_90", 0.75, 200, NULL, "580.159.04", "570.86.10", 0.25});
	store(w, "second", 0, (struct stored){"2.12", "1", "sm_90", 0.25, 100, NULL, NULL, NULL, 0});
	store(w, "second", 0, (struct stored){"2.13", "1", "sm_90", 0.75, 200, NULL, "580.159.04", NULL, 0});
	const struct margin_drifts drifts = drifts_of(w, false, &arena);

	drift_list_text(&drifts, false, &text);
	assert_int_equal(drifts.count, 2);
	assert_non_null(strstr(text.data, "grew     rmsnorm/first on sm_90: margin 0.25 -> 0.75, 75 % of the bound\n"));
	assert_non_null(strstr(text.data, ": driver 570.86.10 -> 580.159.04\n"));
	assert_non_null(strstr(text.data, ": torch 2.12 -> 2.13\n")); /* one driver is unknown */
	drift_list_json(&drifts, &json);
	assert_non_null(strstr(json.data, "\"driver\": \"570.86.10\""));
	assert_non_null(strstr(json.data, "\"driver\": \"\""));
	buf_free(&text);
	buf_free(&json);
	arena_free(&arena);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(the_case_that_moved_most_stands_for_its_definition, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(other_devices_and_ground_truths_are_not_compared, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(the_newest_is_compared_with_the_older_ones, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(tiny_and_infinite_margins_do_not_move, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(another_driver_is_compared, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(the_list_says_what_changed, world_set_up, world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
