/* test_options - the command line: options and operands are parsed, the message about a wrong word says what to do, and
 * the tables of options are complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/manual_page.h"
#include "engine/program.h"

struct sample {
	bool force, loud, workloads;
	const char *device, *format, *sizes, *only;
	int jobs;
	int64_t memory;
	double atol;
	uint64_t seed;
	struct words types;
};

#define AT(member) offsetof(struct sample, member)
static const struct option_row rows[] = {
    {"-f, --force", OPTION_FLAG, AT(force), NULL, NULL, "run all"},
    {"-l, --loud", OPTION_FLAG, AT(loud), NULL, NULL, "print all"},
    {"--no-workloads", OPTION_UNFLAG, AT(workloads), NULL, NULL, "run less"},
    {"--device", OPTION_CHOICE, AT(device), "D", "auto|cpu|cuda:N", "where"},
    {"--format", OPTION_CHOICE, AT(format), "F", "text|json|github", "how"},
    {"--sizes", OPTION_CHOICES, AT(sizes), "LIST", "small|large", "how large"},
    {"--only", OPTION_CHOICES, AT(only), "LIST", "left|right", "which sides"},
    {"--jobs", OPTION_INT, AT(jobs), "N", NULL, "how many"},
    {"--atol", OPTION_REAL, AT(atol), "X", NULL, "how near"},
    {"--seed", OPTION_SEED, AT(seed), "N", NULL, "which"},
    {"--memory", OPTION_SIZE, AT(memory), "SIZE", NULL, "how much"},
    {"--op-type", OPTION_OP_TYPES, AT(types), "T", NULL, "what"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

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

	r.answer = options_read(rows, ROWS, argc, argv, &r.arena, &r.into, &r.names, &r.err);
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

static void flags_may_be_given_by_their_letters(void **state)
{
	(void)state;
	struct reading r = READ("-lf", "gemm");

	assert_int_equal(r.answer, 0);
	assert_true(r.into.force && r.into.loud);
	assert_int_equal(r.names.count, 1);
	arena_free(&r.arena);
	r = READ("-f");
	assert_true(r.into.force && !r.into.loud);
	arena_free(&r.arena);
	r = READ("-fh");
	assert_int_equal(r.answer, 1);
	arena_free(&r.arena);
	r = READ("-fx");
	assert_int_equal(r.answer, -1);
	assert_non_null(strstr(r.err.text, "unknown option -fx"));
	arena_free(&r.arena);
}

static void sizes_are_bytes_or_have_a_unit(void **state)
{
	static const struct {
		char *text;
		int64_t bytes; /* the size in bytes; 0: the text is refused */
	} sizes[] = {
	    {"1", 1}, {"512M", (int64_t)512 << 20}, {"3K", 3072}, {"8G", (int64_t)8 << 30}, {"2T", (int64_t)2 << 40},
	    {"9223372036854775807", INT64_MAX}, {"9223372036854775808", 0}, {"99999999999999999999", 0}, {"8388608T", 0},
	    {"8388607T", INT64_MAX - ((int64_t)1 << 40) + 1}, {"0", 0}, {"0G", 0}, {"", 0}, {"G", 0}, {"-1G", 0},
	    {"1.5G", 0}, {"1 G", 0}, {"1GB", 0}, {"1g", 0}, {"0x10", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct reading r = READ("--memory", sizes[i].text);

		assert_int_equal(r.answer, sizes[i].bytes == 0 ? -1 : 0);
		assert_int_equal(r.into.memory, sizes[i].bytes);
		if (sizes[i].bytes == 0)
			assert_non_null(strstr(r.err.text, "--memory takes a number of bytes above 0"));
		arena_free(&r.arena);
	}
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
	expect_refusal(READ("--device"), "--device needs a value (D)");
	expect_refusal(READ("--force=yes"), "takes no value");
	expect_refusal(READ("--jobs", "-1"), "whole number");
	expect_refusal(READ("--jobs", "99999999999"), "whole number");
	expect_refusal(READ("--jobs", "3x"), "not '3x'");
	expect_refusal(READ("--atol", "nan"), "number of at least 0");
	expect_refusal(READ("--atol", "inf"), "number of at least 0");
	expect_refusal(READ("--seed", "18446744073709551616"), "whole number");
}

static void choices_are_the_only_values(void **state)
{
	(void)state;
	expect_refusal(READ("--format", "JSON"), "unknown format 'JSON' (expected text, json or github)");
	expect_refusal(READ("--format="), "unknown format ''");
	expect_refusal(READ("--format", "tex"), "unknown format 'tex'");
	expect_refusal(READ("--device", "cuda:"), "unknown device 'cuda:' (expected auto, cpu or cuda:N)");
	expect_refusal(READ("--device", "cuda:1x"), "unknown device");
	expect_refusal(READ("--device", "cuda:N"), "unknown device");
	expect_refusal(READ("--sizes", "small,tiny"),
	               "unknown size 'tiny' (expected any of small and large, separated by commas)");
	expect_refusal(READ("--sizes", ",small"), "unknown size ''");
	expect_refusal(READ("--only", "up"), "unknown value 'up' of --only (expected any of left and right, separated by commas)");
	struct reading r = READ("--format=json", "--device", "cuda:12", "--sizes", "large,small");

	assert_int_equal(r.answer, 0);
	assert_string_equal(r.into.format, "json");
	assert_string_equal(r.into.device, "cuda:12");
	assert_string_equal(r.into.sizes, "large,small");
	arena_free(&r.arena);
}

static void help_is_neither_success_nor_failure(void **state)
{
	(void)state;
	struct reading r = READ("--force", "-h");

	assert_int_equal(r.answer, 1);
	arena_free(&r.arena);
}

static struct command sample(void)
{
	return (struct command){.name = "x", .synopsis = "[options]", .description = "", .operands = OPERANDS_FILES,
				.rows = rows, .row_count = ROWS};
}

static void wrong_words_end_a_command_as_a_wrong_use(void **state)
{
	struct sample into = {.force = false};
	struct command command = sample();
	struct command_line line;
	char *wrong[] = {"x", "--divice", "cpu"}, *right[] = {"x", "name", "--force"};

	(void)state;
	assert_false(command_line_begin(&line, &command, 3, wrong, &into));
	assert_non_null(strstr(line.err.text, "did you mean"));
	assert_int_equal(command_line_end(&line), EXIT_USAGE);
	assert_true(command_line_begin(&line, &command, 3, right, &into));
	assert_true(into.force && line.names.count == 1);
	assert_string_equal(line.err.text, "");
	line.code = EXIT_VERIFIED;
	assert_int_equal(command_line_end(&line), EXIT_VERIFIED);
	command.operands = OPERANDS_NONE;
	assert_false(command_line_begin(&line, &command, 3, right, &into));
	assert_string_equal(line.err.text, "x takes no names, but 'name' was given");
	assert_int_equal(command_line_end(&line), EXIT_USAGE);
}

static int find_nothing(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)program, (void)options, (void)names, (void)err;
	return EXIT_VERIFIED;
}

/* Parses argv with command_line_subcommand, and checks the subcommand and the message. "" means that there is no
 * message. */
static void expect_subcommand(int argc, char **argv, const char *name, const char *sentence)
{
	static const struct subcommand subcommands[] = {
	    {"in", "FILE…", "", 1, 9, find_nothing}, {"out", "FILE", "", 1, 1, find_nothing}, {"look", "", "", 0, 0, find_nothing}};
	struct command command = sample();
	struct sample into;
	struct command_line line;

	command.subcommands = subcommands;
	command.subcommand_count = 3;
	assert_true(command_line_begin(&line, &command, argc, argv, &into));
	const struct subcommand *sub = command_line_subcommand(&line);

	assert_true((sub == NULL) == (name == NULL));
	if (sub != NULL) {
		assert_string_equal(sub->name, name);
		assert_int_equal(line.names.count, argc - 2);
	}
	assert_string_equal(line.err.text, sentence);
	arena_free(&line.arena);
}

#define SUBCOMMAND(name, sentence, ...)                                                                       \
	expect_subcommand((int)(sizeof(char *[]){"x", __VA_ARGS__} / sizeof(char *)), (char *[]){"x", __VA_ARGS__}, name, sentence)

static void a_subcommand_gets_the_operands_it_takes(void **state)
{
	char *nothing[] = {"x"};

	(void)state;
	SUBCOMMAND("in", "", "in", "a", "b");
	SUBCOMMAND("look", "", "look");
	SUBCOMMAND(NULL, "the command is `reftest x out FILE`", "out");
	SUBCOMMAND(NULL, "the command is `reftest x out FILE`", "out", "a", "b");
	SUBCOMMAND(NULL, "the command is `reftest x look`", "look", "a");
	SUBCOMMAND(NULL, "unknown subcommand 'over' of x; expected in, out or look", "over");
	expect_subcommand(1, nothing, NULL, "x needs a subcommand (in, out or look); `reftest x --help` describes them");
}

static void options_before_a_command_end_at_it(void **state)
{
	char *both[] = {"reftest", "--device", "cpu", "--force", "verify", "--xyzzyplugh"}, *none[] = {"reftest", "--force"},
	     *help[] = {"reftest", "--force", "--help"}, *wrong[] = {"reftest", "--forse", "verify"};
	struct sample into = {.force = false};
	struct err err = {""};

	(void)state;
	assert_int_equal(options_read_leading(rows, ROWS, 6, both, &into, &err), 4);
	assert_true(into.force);
	assert_string_equal(into.device, "cpu");
	assert_int_equal(options_read_leading(rows, ROWS, 2, none, &into, &err), 2);
	assert_int_equal(options_read_leading(rows, ROWS, 3, help, &into, &err), 0);
	assert_string_equal(err.text, "");
	assert_int_equal(options_read_leading(rows, ROWS, 3, wrong, &into, &err), -1);
	assert_non_null(strstr(err.text, "did you mean --force?"));
}

static bool takes_choices(const struct option_row *row)
{
	return row->kind == OPTION_CHOICE || row->kind == OPTION_CHOICES;
}

/* Checks the rules that each table must follow, so that the help texts, the manual page and the completions are
 * right. */
static void check_rows(const struct option_row *of, int count)
{
	for (int i = 0; i < count; i++) {
		bool flag = of[i].kind == OPTION_FLAG || of[i].kind == OPTION_UNFLAG;

		const char *word = option_word(&of[i]), *name = of[i].name;

		assert_true(strncmp(word, "--", 2) == 0 && strpbrk(word, " ='") == NULL);
		assert_true(word == name || (name[0] == '-' && name[1] != 'h' && strncmp(name + 2, ", --", 4) == 0 && flag));
		assert_string_not_equal(word, option_word(&options_help));
		assert_true((of[i].value == NULL) == flag);
		assert_true(!takes_choices(&of[i]) || of[i].choices != NULL);
		assert_true(of[i].choices == NULL || takes_choices(&of[i]) || of[i].kind == OPTION_TEXT);
		assert_true(of[i].choices == NULL || strpbrk(of[i].choices, " '\"") == NULL);
		assert_true(of[i].help[0] != '\0' && strchr(of[i].help, '\n') == NULL);
		for (int k = 0; k < i; k++)
			assert_true(strcmp(word, option_word(&of[k])) != 0 && (word == name || name[1] != of[k].name[1]));
	}
}

static void the_tables_of_all_commands_are_whole(void **state)
{
	(void)state;
	check_rows(global_rows, global_row_count);
	assert_true(command_shown() > 0 && command_shown() < command_count);
	for (int i = 0; i < command_count; i++) {
		const struct command *command = commands[i];

		check_rows(command->rows, command->row_count);
		assert_true(command->hidden == (i >= command_shown()));
		assert_true(command->summary[0] != '\0' && strchr(command->summary, '\n') == NULL);
		assert_true(command->synopsis[0] != '\0' && command->description[0] != '\0');
		assert_non_null(command->run);
		for (int k = 0; k < command->subcommand_count; k++)
			assert_true((command->subcommands[k].most > 0) == (command->subcommands[k].operands[0] != '\0'));
	}
}

static void the_manual_page_has_every_option(void **state)
{
	struct buf out = {0};

	(void)state;
	document_man(&out);
	for (int i = 0; i < command_shown(); i++)
		for (int k = 0; k < commands[i]->row_count; k++) {
			struct buf wanted = {0};

			buf_text(&wanted, ".TP\n\\fB");
			for (const char *name = commands[i]->rows[k].name; *name != '\0'; name++)
				buf_printf(&wanted, *name == '-' ? "\\%c" : "%c", *name);
			if (strstr(out.data, wanted.data) == NULL)
				fail_msg("%s of %s is not in the page", commands[i]->rows[k].name, commands[i]->name);
			buf_free(&wanted);
		}
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(options_and_names_may_stand_in_any_order),
	    cmocka_unit_test(flags_may_be_given_by_their_letters),
		cmocka_unit_test(sizes_are_bytes_or_have_a_unit),
	    cmocka_unit_test(a_double_dash_ends_the_options),
	    cmocka_unit_test(what_cannot_be_meant_is_refused_with_a_remedy),
	    cmocka_unit_test(help_is_neither_success_nor_failure),
	    cmocka_unit_test(choices_are_the_only_values),
	    cmocka_unit_test(wrong_words_end_a_command_as_a_wrong_use),
	    cmocka_unit_test(a_subcommand_gets_the_operands_it_takes),
	    cmocka_unit_test(options_before_a_command_end_at_it),
	    cmocka_unit_test(the_tables_of_all_commands_are_whole),
	    cmocka_unit_test(the_manual_page_has_every_option),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
