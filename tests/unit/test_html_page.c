/* test_html_page - the page has the data of the run, and no text of the dataset becomes markup. A definition without a
 * valid verdict has no margin, and has the status that `reftest status` prints. */
#include "tests/unit/engine_world.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "report/html_page.h"

#define FIRST "definitions/rmsnorm/first.json"
#define TEXT  WORLD_DEFINITION("first", "return hidden_states * weight")

static const char hostile[] = "</script><script>alert(1)</script><!--&lt;";

static void run_with(struct world *w, bool dry)
{
	w->options.dry_run = w->options.cached_only = dry;
	w->options.thorough = true;
	world_run(w);
}

static void page_of(const struct world *w, struct buf *page)
{
	const struct html_page about = {"0.1.0", 1700000000};
	struct arena arena = {0};
	struct buf data = {0};
	const struct coverage coverage = coverage_of_run(&w->run, &arena);

	html_page_data(&about, &w->run, &coverage, &data);
	html_page_write(&data, page);
	buf_free(&data);
	arena_free(&arena);
}

static int count_of(const char *text, const char *word)
{
	int count = 0;

	for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
		count++;
	return count;
}

/* Returns the data that the page's script reads: the content of the script element with the data, up to the first
 * "</script>". */
static cJSON *data_of(const struct buf *page)
{
	static const char begins[] = "type=\"application/json\">";
	const char *from = strstr(page->data, begins);

	assert_non_null(from);
	from += strlen(begins);
	cJSON *json = cJSON_ParseWithLength(from, (size_t)(strstr(from, "</script>") - from));

	assert_non_null(json);
	return json;
}

static const cJSON *first_of(const cJSON *json)
{
	return cJSON_GetArrayItem(cJSON_GetObjectItem(json, "definitions"), 0);
}

static const char *text_of(const cJSON *json, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(json, key));
}

static void no_text_becomes_markup(void **state)
{
	struct world *w = *state;
	struct buf page = {0};

	world_write(w, FIRST, "first", TEXT);
	world_run(w);
	struct dataset_file named = *world_result(w, "first")->file;

	named.name = hostile;
	w->run.results[0]->file = &named;
	w->run.results[0]->message = hostile;
	page_of(w, &page);
	assert_int_equal(count_of(page.data, "</script>"), 2);
	assert_int_equal(count_of(page.data, "<script"), 2);
	assert_null(strstr(page.data, "<!--"));
	cJSON *json = data_of(&page);

	assert_string_equal(text_of(first_of(json), "name"), hostile);
	assert_string_equal(text_of(first_of(json), "message"), hostile);
	cJSON_Delete(json);
	buf_free(&page);
	world_end(w);
}

/* A character that reorders or hides text is shown by its number. */
static void unsafe_characters_are_shown_escaped(void **state)
{
	struct world *w = *state;
	struct buf page = {0};

	world_write(w, FIRST, "first", TEXT);
	world_run(w);
	w->run.results[0]->message = "a\xE2\x80\xAE" "b \"c\" \\u202e\td";
	page_of(w, &page);
	cJSON *json = data_of(&page);

	assert_string_equal(text_of(first_of(json), "message"), "a\\u202eb \"c\" \\u202e\td");
	cJSON_Delete(json);
	buf_free(&page);
	world_end(w);
}

/* Checks that the page shows its only definition with the status `status`, and counts this definition once. */
static void expect_page(const struct world *w, const char *status)
{
	struct buf page = {0};

	page_of(w, &page);
	cJSON *json = data_of(&page);
	const cJSON *first = first_of(json);

	assert_string_equal(text_of(first, "status"), status);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "totals"), status)), 1);
	cJSON_Delete(json);
	buf_free(&page);
}

static void what_has_no_valid_verdict_is_not_called_verified(void **state)
{
	struct world *w = *state;

	world_write(w, FIRST, "first", TEXT);
	run_with(w, true);
	expect_page(w, "unknown");
	world_end(w);
	run_with(w, false);
	world_end(w);
	world_write(w, FIRST, "first", WORLD_DEFINITION("first", "return weight * hidden_states"));
	run_with(w, true);
	expect_page(w, "stale");
	world_end(w);
}

/* Returns the definition `const NAME = ...` of a list or table in the page's script, up to the end of the line. */
static const char *list_of(const struct buf *page, const char *name, struct arena *arena)
{
	const char *from = strstr(page->data, arena_printf(arena, "\nconst %s = ", name));

	assert_non_null(from);
	return arena_printf(arena, "%.*s", (int)strcspn(from + 1, "\n") + 1, from);
}

/* Returns a pointer to the name of a status in a list of the page's script. Fails if the status is missing from the
 * list, or is in the list twice. */
static const char *place_of(const char *list, const char *name, struct arena *arena)
{
	const char *word = arena_printf(arena, "\"%s\"", name);

	if (count_of(list, word) != 1)
		fail_msg("report/page.html has %d times %s in:%s", count_of(list, word), word, list);
	return strstr(list, word);
}

/* The page's script must list all statuses by severity, and must give a colour to each status that does not count as
 * wrong. */
static void the_page_knows_every_status(void **state)
{
	struct world *w = *state;
	struct buf page = {0};
	struct arena arena = {0};

	world_write(w, FIRST, "first", TEXT);
	world_run(w);
	page_of(w, &page);
	const char *groups = list_of(&page, "GROUPS", &arena), *severity = list_of(&page, "SEVERITY", &arena);

	for (enum status s = 0; s < STATUS_COUNT; s++) {
		const bool verified = status_group(s) == GROUP_VERIFIED, wrong = status_group(s) >= GROUP_WRONG;
		const char *row = arena_printf(&arena, "%s: \"%s\"", status_name(s), verified ? "passed" : "unsure");

		if ((strstr(groups, row) == NULL) != wrong)
			fail_msg("report/page.html: the colour of %s is not that of its group in:%s", status_name(s), groups);
		for (enum status other = 0; other < STATUS_COUNT; other++)
			if (status_severity(s) > status_severity(other))
				assert_true(place_of(severity, status_name(s), &arena) <
					    place_of(severity, status_name(other), &arena));
	}
	buf_free(&page);
	arena_free(&arena);
	world_end(w);
}

/* Stores a verdict of case `c`, as if the reference had run with version `torch` of torch. */
static void store(struct world *w, const struct case_result *c, const char *torch, double margin, int64_t time)
{
	const struct output_verdict output = {
	    .name = "output", .ground_truth = "builtin", .metrics = {.elements = 1, .hits = 1, .margin = margin, .passed = true}};
	const struct verdict v = {.status = STATUS_PASSED,
				  .device_class = "cpu",
				  .device = "cpu",
				  .ground_truth = "builtin",
				  .ground_truth_version = "1",
				  .torch = torch,
				  .time = time,
				  .outputs = &output,
				  .output_count = 1};
	struct buf text = {0};

	verdict_write(&v, &text);
	const struct store_put put = {.subject = c->test->subject,
				      .witness = digest_of(torch, strlen(torch)),
				      .text = text.data,
				      .length = text.length,
				      .definition = "rmsnorm/first",
				      .case_id = c->test->id,
				      .keep_verdict = true};
	struct err err;

	assert_int_equal(w->run.records.calls->put(w->run.records.self, &put, 1, &err), 0);
	buf_free(&text);
}

static void margins_are_ordered_by_time_and_the_largest_counts(void **state)
{
	struct world *w = *state;
	struct buf page = {0};

	world_write(w, FIRST, "first", TEXT);
	run_with(w, true);
	const struct result *result = world_result(w, "first");

	assert_true(result->case_count >= 2);
	store(w, &result->cases[0], "2.13.0", 0.25, 200);
	store(w, &result->cases[0], "2.12.0", 0.125, 100);
	store(w, &result->cases[1], "2.13.0", 0.5, 201);
	page_of(w, &page);
	cJSON *json = data_of(&page);
	const cJSON *history = cJSON_GetObjectItem(first_of(json), "history");

	/* the stored verdicts come from other versions of torch than that of this run, so none is used */
	assert_false(cJSON_IsNumber(cJSON_GetObjectItem(first_of(json), "margin")));
	assert_string_not_equal(text_of(first_of(json), "status"), "passed");
	assert_int_equal(cJSON_GetArraySize(history), 2);
	assert_string_equal(text_of(cJSON_GetArrayItem(history, 0), "with"), "torch 2.12.0, builtin 1 on cpu");
	assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(history, 0), "margin")) == 0.125);
	assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(history, 1), "margin")) == 0.5);
	cJSON_Delete(json);
	buf_free(&page);
	world_end(w);
}

static void a_failure_is_shown_with_its_case(void **state)
{
	struct world *w = *state;
	struct buf page = {0};

	world_write(w, FIRST, "first", TEXT);
	w->fails = "first";
	world_run(w);
	page_of(w, &page);
	cJSON *json = data_of(&page);
	const cJSON *bad = cJSON_GetObjectItem(first_of(json), "bad");

	assert_string_equal(text_of(first_of(json), "status"), "failed");
	assert_int_equal(cJSON_GetArraySize(bad), world_count(w, "run:"));
	assert_string_equal(text_of(cJSON_GetArrayItem(bad, 0), "message"), "it is wrong");
	cJSON_Delete(json);
	buf_free(&page);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(no_text_becomes_markup, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(unsafe_characters_are_shown_escaped, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(what_has_no_valid_verdict_is_not_called_verified, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(the_page_knows_every_status, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(margins_are_ordered_by_time_and_the_largest_counts, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(a_failure_is_shown_with_its_case, world_set_up, world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
