/* help_command - prints the help text of the program or of a command (`reftest help`). */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/fold_output.h"
#include "base/suggest.h"
#include "cli/help.h"

const struct command *command_named(const char *name, struct arena *arena, struct err *err)
{
	const char **names = arena_array(arena, (size_t)command_shown(), sizeof *names);

	for (int i = 0; i < command_count; i++)
		if (strcmp(name, commands[i]->name) == 0)
			return commands[i];
	for (int i = 0; i < command_shown(); i++)
		names[i] = commands[i]->name;
	const char *near = suggest_word(name, names, command_shown());

	if (near != NULL)
		err_set(err, "there is no command '%s'; did you mean '%s'?", name, near);
	else
		err_set(err, "there is no command '%s'; `reftest --help` lists them", name);
	return NULL;
}

static int start(struct program *program, int argc, char **argv)
{
	struct command_line line;
	char unused;

	(void)program;
	if (!command_line_begin(&line, &command_help, argc, argv, &unused))
		return command_line_end(&line);
	line.code = EXIT_VERIFIED;
	fold_output();
	if (line.names.count == 0)
		help_program(stdout);
	for (int i = 0; i < line.names.count && line.code == EXIT_VERIFIED; i++) {
		const struct command *command = command_named(line.names.items[i], &line.arena, &line.err);

		if (command != NULL)
			help_command(command, stdout);
		else
			line.code = EXIT_USAGE;
	}
	return command_line_end(&line);
}

const struct command command_help = {
    .name = "help",
    .summary = "print what a command does, and its options",
    .synopsis = "[COMMAND]",
    .description = "Prints what `reftest COMMAND --help` prints. Without COMMAND, lists the commands.",
    .operands = OPERANDS_COMMANDS,
    .run = start,
};
