#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "commands/options.h"
#include "reftest.h"

struct sample {
	bool force, workloads;
	const char *device;
	int jobs;
	double atol;
	uint64_t seed;
	struct words types;
};

#define AT(member) offsetof(struct sample, member)
static const struct option_row rows[] = {
    {"--force", OPTION_FLAG, AT(force), NULL, ""},          {"--no-workloads", OPTION_UNFLAG, AT(workloads), NULL, ""},
    {"--device", OPTION_TEXT, AT(device), "D", ""},         {"--jobs", OPTION_INT, AT(jobs), "N", ""},
    {"--atol", OPTION_REAL, AT(atol), "X", ""},             {"--seed", OPTION_SEED, AT(seed), "N", ""},
    {"--op-type", OPTION_LIST, AT(types), "T", ""},
};

struct reading {
	struct sample into;
	struct words names;
	struct err err;
	struct arena arena;
	int answer;
};

static struct reading read_words(int argc, char **argv)
{
	struct reading r = {.into = {.workloads = true}};

	r.answer = options_read(rows, sizeof rows / sizeof rows[0], argc, argv, &r.arena, &r.into, &r.names, &r.err);
	return r;
}

#define READ(...) read_words((int)(sizeof(char *[]){"verify", __VA_ARGS__} / sizeof(char *)), (char *[]){"verify", __VA_ARGS__})

static void options_and_names_may_stand_in_any_order(void **state)
{
	(void)state;
	struct reading r = READ("rmsnorm", "--device", "cpu", "--force", "gemm", "--jobs=3", "--op-type", "a", "--op-type=b");

	assert_int_equal(r.answer, 0);
	assert_int_equal(r.names.count, 2);
	assert_string_equal(r.names.items[1], "gemm");
	assert_true(r.into.force && r.into.workloads);
	assert_string_equal(r.into.device, "cpu");
	assert_int_equal(r.into.jobs, 3);
	assert_int_equal(r.into.types.count, 2);
	assert_string_equal(r.into.types.items[1], "b");
	arena_free(&r.arena);
}

static void a_double_dash_ends_the_options(void **state)
{
	(void)state;
	struct reading r = READ("--no-workloads", "--", "--force");

	assert_int_equal(r.answer, 0);
	assert_false(r.into.workloads);
	assert_false(r.into.force);
	assert_string_equal(r.names.items[0], "--force");
	arena_free(&r.arena);
}

static void expect_refusal(struct reading r, const char *part)
{
	assert_int_equal(r.answer, -1);
	assert_non_null(strstr(r.err.text, part));
	arena_free(&r.arena);
}

static void what_cannot_be_meant_is_refused_with_a_remedy(void **state)
{
	(void)state;
	expect_refusal(READ("--divice", "cpu"), "did you mean --device?");
	expect_refusal(READ("--xyzzyplugh"), "--help lists");
	expect_refusal(READ("--device"), "--device needs a value");
	expect_refusal(READ("--force=yes"), "takes no value");
	expect_refusal(READ("--jobs", "-1"), "whole number");
	expect_refusal(READ("--jobs", "99999999999"), "whole number");
	expect_refusal(READ("--jobs", "3x"), "not '3x'");
	expect_refusal(READ("--atol", "nan"), "number of at least 0");
	expect_refusal(READ("--atol", "inf"), "number of at least 0");
	expect_refusal(READ("--seed", "18446744073709551616"), "whole number");
}

static void help_is_neither_success_nor_failure(void **state)
{
	(void)state;
	struct reading r = READ("--force", "-h");

	assert_int_equal(r.answer, 1);
	arena_free(&r.arena);
}

static void wrong_words_end_a_command_as_a_wrong_use(void **state)
{
	struct sample into = {.force = false};
	struct told told;
	char *wrong[] = {"x", "--divice", "cpu"}, *right[] = {"x", "name", "--force"};

	(void)state;
	assert_false(options_begin(&told, "x", rows, sizeof rows / sizeof *rows, 3, wrong, &into));
	assert_non_null(strstr(told.err.text, "did you mean"));
	assert_int_equal(options_end(&told), EXIT_USAGE);
	assert_true(options_begin(&told, "x", rows, sizeof rows / sizeof *rows, 3, right, &into));
	assert_true(into.force && told.names.count == 1);
	assert_string_equal(told.err.text, "");
	assert_int_equal(options_json("text", &told.err), 0);
	assert_int_equal(options_json("json", &told.err), 1);
	assert_int_equal(options_json("JSON", &told.err), -1);
	assert_non_null(strstr(told.err.text, "'JSON' is no format"));
	told.code = EXIT_VERIFIED;
	assert_int_equal(options_end(&told), EXIT_VERIFIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(options_and_names_may_stand_in_any_order),
	    cmocka_unit_test(a_double_dash_ends_the_options),
	    cmocka_unit_test(what_cannot_be_meant_is_refused_with_a_remedy),
	    cmocka_unit_test(help_is_neither_success_nor_failure),
	    cmocka_unit_test(wrong_words_end_a_command_as_a_wrong_use),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
