/* The table of published configurations parses, and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "kernels/models.h"

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
	assert_false(model_number("llama-3.1-8b", "source", &value)); /* a string is no number */
	assert_true(value == 7);
}

/* The file as it lies in the tree: every entry has a name of its own, a number and a source. */
static void every_entry_names_its_source_and_no_model_comes_twice(void **state)
{
	struct buf text = {0};
	struct err err = {""};
	cJSON *models;
	const cJSON *entry, *other;

	(void)state;
	assert_int_equal(file_read(AT_FDCWD, "kernels/models.json", 1 << 20, &text, NULL, &err), FILE_OK);
	models = json_parse(&(struct json_text){"kernels/models.json", text.data, text.length, 1}, &err);
	assert_string_equal(err.text, "");
	cJSON_ArrayForEach(entry, models)
	{
		double eps = 0;
		int same = 0;

		assert_non_null(json_text_of(entry, "model"));
		assert_non_null(json_text_of(entry, "source"));
		assert_true(model_number(json_text_of(entry, "model"), "rms_norm_eps", &eps) && eps > 0 && eps < 1e-3);
		cJSON_ArrayForEach(other, models) same +=
		    strcmp(json_text_of(entry, "model"), json_text_of(other, "model")) == 0;
		assert_int_equal(same, 1);
	}
	cJSON_Delete(models);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(published_epsilons_are_found_by_model),
	    cmocka_unit_test(unknown_models_and_fields_are_not_found),
	    cmocka_unit_test(every_entry_names_its_source_and_no_model_comes_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
