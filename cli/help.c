#include "cli/help.h"

#include <string.h>

enum { WIDTH = 80, LEFT = 28, NAMES_LEFT = 10 };

static int columns(const char *text, size_t length)
{
	int count = 0;

	for (size_t i = 0; i < length; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Prints a text, starting at column `at`. Long texts are wrapped at blanks, and continuation lines are indented. */
static void put_line(FILE *out, const char *text, size_t length, int at, int indent)
{
	for (const char *end = text + length; text < end;) {
		const char *blank = memchr(text, ' ', (size_t)(end - text));
		size_t word = (size_t)((blank != NULL ? blank : end) - text);
		int wide = columns(text, word);

		if (at > indent && at + 1 + wide > WIDTH)
			at = fprintf(out, "\n%*s", indent, "") - 1;
		else if (at > indent)
			at += fprintf(out, " ");
		fwrite(text, 1, word, out);
		at += wide;
		text += word + (blank != NULL);
	}
	fputc('\n', out);
}

static void put_paragraphs(FILE *out, const char *text)
{
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");

		put_line(out, text, length, 0, 0);
		text += length + (text[length] == '\n');
	}
}

/* Prints `left` (an option or a command) and its description. The description starts on the next line if `left` is too
 * long. */
static void put_entry(FILE *out, const char *left, const char *text, int width)
{
	int wide = columns(left, strlen(left));

	fprintf(out, "  %s", left);
	if (wide > width)
		fprintf(out, "\n%*s", width + 3, "");
	else
		fprintf(out, "%*s", width - wide + 1, "");
	put_line(out, text, strlen(text), width + 3, width + 3);
}

const char *help_of_row(const struct option_row *row, struct arena *arena)
{
	if (row->kind == OPTION_CHOICE)
		return arena_printf(arena, "%s; %s is %s", row->help, row->value, options_choices(row->choices, "or", arena));
	if (row->kind == OPTION_CHOICES)
		return arena_printf(arena, "%s; %s is one or more of %s, separated by commas", row->help, row->value,
				    options_choices(row->choices, "and", arena));
	return row->help;
}

static void put_rows(FILE *out, const struct option_row *rows, int count)
{
	struct arena arena = {0};

	for (int i = 0; i <= count; i++) {
		const struct option_row *row = i < count ? &rows[i] : &options_help;
		const char *left = row->value == NULL ? row->name : arena_printf(&arena, "%s %s", row->name, row->value);

		put_entry(out, left, help_of_row(row, &arena), LEFT);
	}
	arena_free(&arena);
}

static void put_subcommands(FILE *out, const struct command *command)
{
	struct arena arena = {0};

	for (int i = 0; i < command->subcommand_count; i++) {
		const struct subcommand *sub = &command->subcommands[i];

		put_entry(out, arena_printf(&arena, "%s %s", sub->name, sub->operands), sub->summary, LEFT);
	}
	if (command->subcommand_count > 0)
		fputc('\n', out);
	arena_free(&arena);
}

void help_command(const struct command *command, FILE *out)
{
	fprintf(out, "usage: reftest %s %s\n\n", command->name, command->synopsis);
	put_paragraphs(out, command->description);
	fputc('\n', out);
	put_subcommands(out, command);
	put_rows(out, command->rows, command->row_count);
}

static void put_exit_codes(FILE *out)
{
	struct arena arena = {0};
	const char *text = "Exit codes:";

	for (int i = 0; i < exit_row_count; i++)
		text = arena_printf(&arena, "%s%s %d %s", text, i > 0 ? "," : "", exit_rows[i].code, exit_rows[i].word);
	put_line(out, text, strlen(text), 0, 0);
	arena_free(&arena);
}

void help_program(FILE *out)
{
	fprintf(out, "usage: reftest %s\n\n", global_synopsis);
	for (int i = 0; i < command_shown(); i++)
		put_entry(out, commands[i]->name, commands[i]->summary, NAMES_LEFT);
	fputc('\n', out);
	put_rows(out, global_rows, global_row_count);
	fprintf(out, "\n`reftest COMMAND --help` lists the options of a command.\n");
	put_exit_codes(out);
}
