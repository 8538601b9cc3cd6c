#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/fold_output.h"
#include "base/show_wrapped.h"
#include "cli/help.h"
#include "engine/program.h"

bool command_line_begin(struct command_line *line, const struct command *command, int argc, char **argv, void *into)
{
	*line = (struct command_line){.command = command, .code = EXIT_USAGE};
	int rc = options_read(command->rows, command->row_count, argc, argv, &line->arena, into, &line->names, &line->err);

	if (rc > 0) {
		fold_output();
		help_command(command, stdout);
		line->code = EXIT_VERIFIED;
	}
	if (rc == 0 && command->operands == OPERANDS_NONE && command->subcommand_count == 0 && line->names.count > 0)
		rc = err_set(&line->err, "%s takes no names, but '%s' was given", command->name, line->names.items[0]);
	return rc == 0;
}

int command_line_end(struct command_line *line)
{
	if (line->err.text[0] != '\0')
		show_wrapped(stderr, arena_printf(&line->arena, "reftest: %s\n", line->err.text));
	arena_free(&line->arena);
	return line->code;
}

/* Returns the names of the subcommands: "stats, export or gc". */
static const char *list_subcommands(const struct command *command, struct arena *arena)
{
	const char *all = "";

	for (int i = 0; i < command->subcommand_count; i++)
		all = arena_printf(arena, "%s%s%s", all, i > 0 ? "|" : "", command->subcommands[i].name);
	return options_choices(all, "or", arena);
}

static const struct subcommand *find_subcommand(struct command_line *line)
{
	const struct command *command = line->command;
	const char *word = line->names.count > 0 ? line->names.items[0] : NULL;

	for (int i = 0; word != NULL && i < command->subcommand_count; i++)
		if (strcmp(command->subcommands[i].name, word) == 0)
			return &command->subcommands[i];
	const char *all = list_subcommands(command, &line->arena);

	if (word == NULL)
		err_set(&line->err, "%s needs a subcommand (%s); `reftest %s --help` describes them", command->name, all,
			command->name);
	else
		err_set(&line->err, "unknown subcommand '%s' of %s; expected %s", err_show(word).text, command->name,
			all);
	return NULL;
}

const struct subcommand *command_line_subcommand(struct command_line *line)
{
	const struct subcommand *sub = find_subcommand(line);

	if (sub == NULL)
		return NULL;
	line->names.items++;
	line->names.count--;
	if (line->names.count >= sub->least && line->names.count <= sub->most)
		return sub;
	err_set(&line->err, "the command is `reftest %s %s%s%s`", line->command->name, sub->name,
		*sub->operands != '\0' ? " " : "", sub->operands);
	return NULL;
}
