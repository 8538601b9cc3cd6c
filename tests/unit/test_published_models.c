/* test_published_models - the table of published model configurations is well-formed, and its numbers are found by
 * model and field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "kernels/core/published_models.h"

static void published_epsilons_are_found_by_model(void **state)
{
	double eps = 0;

	(void)state;
	assert_true(model_number("llama-3.1-8b", "rms_norm_eps", &eps) && eps == 1e-5);
	assert_true(model_number("deepseek-v3", "rms_norm_eps", &eps) && eps == 1e-6);
	assert_true(model_number("qwen3-30b-a3b", "rms_norm_eps", &eps) && eps == 1e-6);
}

static void unknown_models_and_fields_are_not_found(void **state)
{
	double value = 7;

	(void)state;
	assert_false(model_number("llama-3.1", "rms_norm_eps", &value));
	assert_false(model_number("", "rms_norm_eps", &value));
	assert_false(model_number("llama-3.1-8b", "no_such_field", &value));
	assert_false(model_number("llama-3.1-8b", "source", &value)); /* the field is a string, not a number */
	assert_true(value == 7);
}

static void an_alias_has_the_numbers_of_its_model(void **state)
{
	double value = 0;

	(void)state;
	assert_true(model_number("llama-3.1-8b-instruct", "hidden_size", &value) && value == 4096);
	/* rms_norm_eps is not in the row that lists the aliases of the model, because it comes from another source */
	assert_true(model_number("llama-3.1-8b-instruct", "rms_norm_eps", &value) && value == 1e-5);
	assert_true(model_number("qwen2.5-coder-32b", "vocab_size", &value) && value == 152064);
	/* the tags of definitions often write the name with these capitals */
	assert_true(model_number("Llama-3.1-8B", "rms_norm_eps", &value) && value == 1e-5);
	assert_true(model_number("Qwen/Qwen3-30B-A3B", "rms_norm_eps", &value) && value == 1e-6);
}

/* Returns true if both entries have a number for the same field of the same model. */
static int same_field(const cJSON *entry, const cJSON *other)
{
	const cJSON *field;
	int same = 0;

	cJSON_ArrayForEach(field, entry) same += cJSON_IsNumber(field) && json_member(other, field->string) != NULL;
	return same;
}

static int numbers_of(const cJSON *entry)
{
	return same_field(entry, entry);
}

/* Checks that the search by lines finds the same rows as the JSON parser, and that no two models have the same name. */
static void check_rows(const cJSON *models)
{
	const cJSON *entry, *other, *alias;
	const char *row = NULL;
	size_t length;
	int with_architecture = 0;

	cJSON_ArrayForEach(entry, models)
	{
		row = next_model_row(row, &length);
		assert_non_null(row);
		cJSON *parsed = cJSON_ParseWithLength(row, length);

		assert_true(cJSON_Compare(parsed, entry, 1));
		cJSON_Delete(parsed);
		with_architecture += json_text_of(entry, "architecture") != NULL;
		cJSON_ArrayForEach(alias, json_member(entry, "aliases"))
			cJSON_ArrayForEach(other, models)
				assert_string_not_equal(alias->valuestring, json_text_of(other, "model"));
	}
	assert_null(next_model_row(row, &length));
	assert_true(with_architecture >= 60);
}

/* Checks the table itself: every entry has a model, a source and numbers, and every epsilon is small. A model may have
 * several entries, because its fields come from several sources. Two entries of the same model must not have the same
 * field. */
static void every_entry_names_its_source_and_no_field_of_a_model_comes_twice(void **state)
{
	struct buf text = {0};
	struct err err = {""};
	cJSON *models;
	const cJSON *entry, *other;

	(void)state;
	assert_int_equal(file_read(AT_FDCWD, "models/models.json", 1 << 20, &text, NULL, &err), FILE_OK);
	models = json_parse(&(struct json_text){"models/models.json", text.data, text.length, 1}, &err);
	assert_string_equal(err.text, "");
	cJSON_ArrayForEach(entry, models)
	{
		const char *model = json_text_of(entry, "model");
		double eps = 0;

		assert_non_null(model);
		assert_non_null(json_text_of(entry, "source"));
		assert_true(numbers_of(entry) > 0);
		if (json_member(entry, "rms_norm_eps") != NULL)
			assert_true(model_number(model, "rms_norm_eps", &eps) && eps > 0 && eps < 1e-3);
		cJSON_ArrayForEach(other, models)
			if (other != entry && strcmp(model, json_text_of(other, "model")) == 0)
				assert_int_equal(same_field(entry, other), 0);
	}
	assert_true(cJSON_GetArraySize(models) > 0);
	check_rows(models);
	cJSON_Delete(models);
	buf_free(&text);
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* For a model without an epsilon, `extract` writes no definition of a norm. docs/models.md must list each model for
 * whose epsilon no source was found. */
static void every_model_but_those_in_the_manual_has_an_epsilon(void **state)
{
	static const char *const without[] = {"glm-4.7", "qwen2.5-coder-14b-instruct", "qwen2.5-coder-32b-instruct"},
				 *const weightless[] = {"olmo-1b", "olmo-7b"};
	struct buf text = {0}, manual = {0};
	struct err err = {""};
	const cJSON *entry;

	(void)state;
	assert_int_equal(file_read(AT_FDCWD, "models/models.json", 1 << 20, &text, NULL, &err), FILE_OK);
	assert_int_equal(file_read(AT_FDCWD, "docs/models.md", 1 << 20, &manual, NULL, &err), FILE_OK);
	cJSON *models = json_parse(&(struct json_text){"models/models.json", text.data, text.length, 1}, &err);

	cJSON_ArrayForEach(entry, models)
	{
		const char *model = json_text_of(entry, "model");
		double eps;
		bool has = model_number(model, "rms_norm_eps", &eps) || model_number(model, "layer_norm_epsilon", &eps);

		if (!is_one_of(model, weightless, sizeof weightless / sizeof *weightless) &&
		    has == is_one_of(model, without, sizeof without / sizeof *without))
			fail_msg("%s %s an epsilon", model, has ? "has" : "has not");
	}
	for (size_t i = 0; i < sizeof without / sizeof *without; i++)
		assert_non_null(strstr(manual.data, without[i]));
	cJSON_Delete(models);
	buf_free(&manual);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(published_epsilons_are_found_by_model),
	    cmocka_unit_test(unknown_models_and_fields_are_not_found),
	    cmocka_unit_test(an_alias_has_the_numbers_of_its_model),
	    cmocka_unit_test(every_model_but_those_in_the_manual_has_an_epsilon),
	    cmocka_unit_test(every_entry_names_its_source_and_no_field_of_a_model_comes_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
