/* completions - lists the words that can complete a command line (`reftest complete`). Also contains the scripts with
 * which bash, zsh and fish ask for these words.
 *
 * `reftest complete WORD…` gets the words after "reftest" up to the cursor; the last word is to be completed and may be
 * empty. The command prints one line for each possible word. A TAB and a description may follow the word. If the only
 * line is ":files" or ":folders", the shell completes a path. The shell offers only the words that begin with the text
 * before the cursor. Words come from the tables of commands and options (cli/command.h), and from the dataset that the
 * command line names. */
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "cli/command.h"
#include "cli/manual_page.h"
#include "dataset/dataset.h"

/* The part of a command line before the cursor. */
struct line {
	const char *word; /* the word to complete; if this word is "--name=value", only the value */
	int head;	  /* number of bytes of "--name=" before `word`; 0 for other words */
	const struct command *command;
	const char *operand;		/* the first operand; NULL: none yet */
	const char *root;		/* value of --root; NULL: none */
	const struct option_row *row;	/* the option whose value is to be completed; NULL: none */
	bool unknown;			/* the command line names an unknown command */
};

static void put(const struct line *line, size_t list, const char *word, size_t length, const char *description)
{
	show_print(stdout, "%.*s%.*s%s%s\n", line->head + (int)list, line->word - line->head, (int)length, word,
		   *description != '\0' ? "\t" : "", description);
}

static void put_word(const struct line *line, const char *word, const char *description)
{
	put(line, 0, word, strlen(word), description);
}

/* ---- the line before the cursor --------------------------------------------------------------------------------- */

/* If the word is an option that takes a value ("--name" or "--name=value"), returns the option, otherwise NULL. */
static const struct option_row *valued_row(const struct command *command, const char *word)
{
	const struct option_row *rows = command != NULL ? command->rows : global_rows;
	int count = command != NULL ? command->row_count : global_row_count;
	size_t length = strcspn(word, "=");

	for (int i = 0; i < count; i++)
		if (rows[i].value != NULL && strlen(option_word(&rows[i])) == length &&
		    memcmp(option_word(&rows[i]), word, length) == 0)
			return &rows[i];
	return NULL;
}

static void take_value(struct line *line, const char *value)
{
	if (strcmp(option_word(line->row), "--root") == 0)
		line->root = value;
	line->row = NULL;
}

static void take_operand(struct line *line, const char *word)
{
	if (line->command != NULL) {
		line->operand = line->operand != NULL ? line->operand : word;
		return;
	}
	for (int i = 0; i < command_shown(); i++)
		if (strcmp(word, commands[i]->name) == 0)
			line->command = commands[i];
	line->unknown = line->command == NULL;
}

/* Parses a word before the cursor. bash passes "--name=value" as three words. */
static void take_word(struct line *line, const char *word)
{
	const char *equals = strchr(word, '=');

	if (strcmp(word, "=") == 0)
		return;
	if (line->row != NULL) {
		take_value(line, word);
	} else if (*word != '-') {
		take_operand(line, word);
	} else {
		line->row = valued_row(line->command, word);
		if (line->row != NULL && equals != NULL)
			take_value(line, equals + 1);
	}
}

static struct line read_line(int count, char **words)
{
	struct line line = {.word = ""};

	for (int i = 0; i + 1 < count; i++)
		take_word(&line, words[i]);
	if (count == 0 || strcmp(words[count - 1], "=") == 0)
		return line;
	line.word = words[count - 1];
	const char *equals = *line.word == '-' && line.row == NULL ? strchr(line.word, '=') : NULL;

	if (equals != NULL && (line.row = valued_row(line.command, line.word)) != NULL) {
		line.head = (int)(equals + 1 - line.word);
		line.word = equals + 1;
	}
	return line;
}

/* ---- the words that can complete the line ----------------------------------------------------------------------- */

/* Lists the definitions of the dataset as "NAME", or as "OP_TYPE/NAME" if the word to complete has a slash. If
 * `op_types` is true, lists the op_types instead. */
static void list_definitions(const struct line *line, bool op_types)
{
	bool home = line->root != NULL && line->root[0] == '~';
	struct arena arena = {0};
	struct dataset dataset;
	const char *given =
	    home && getenv("HOME") != NULL ? arena_printf(&arena, "%s%s", getenv("HOME"), line->root + 1) : line->root;
	char root[4096];
	struct err err;

	if (dataset_find_root(given, root, sizeof root, &err) == 0 && dataset_scan(root, &arena, &dataset, &err) == 0) {
		for (int i = 0; i < dataset.definition_count; i++) {
			const struct dataset_file *file = &dataset.definitions[i];

			if (!op_types && strchr(line->word, '/') != NULL)
				put_word(line, arena_printf(&arena, "%s/%s", file->op_type, file->name), "");
			else if (!op_types)
				put_word(line, file->name, "");
			else if (i == 0 || strcmp(file->op_type, file[-1].op_type) != 0)
				put_word(line, file->op_type, "");
		}
		dataset_close(&dataset);
	}
	arena_free(&arena);
}

/* Lists the choices of the option, except choices with a placeholder ("cuda:N"). If the word is a list, completes its
 * last item. */
static void list_choices(const struct line *line)
{
	const char *comma = line->row->kind == OPTION_CHOICE ? NULL : strrchr(line->word, ',');
	size_t list = comma != NULL ? (size_t)(comma + 1 - line->word) : 0;

	for (const char *at = line->row->choices; *at != '\0';) {
		size_t length = strcspn(at, "|");

		if (length < 2 || memcmp(at + length - 2, ":N", 2) != 0)
			put(line, list, at, length, "");
		at += length + (at[length] == '|');
	}
}

static void list_values(const struct line *line)
{
	if (line->row->kind == OPTION_FILE || line->row->kind == OPTION_FOLDER)
		show_print(stdout, line->row->kind == OPTION_FILE ? ":files\n" : ":folders\n");
	else if (line->row->kind == OPTION_OP_TYPES)
		list_definitions(line, true);
	else if (line->row->choices != NULL)
		list_choices(line);
}

static void list_options(const struct line *line)
{
	const struct option_row *rows = line->command != NULL ? line->command->rows : global_rows;
	int count = line->command != NULL ? line->command->row_count : global_row_count;

	for (int i = 0; i < count; i++)
		put_word(line, option_word(&rows[i]), rows[i].help);
	put_word(line, option_word(&options_help), options_help.help);
}

static void list_subcommands(const struct line *line)
{
	for (int i = 0; i < line->command->subcommand_count; i++) {
		const struct subcommand *sub = &line->command->subcommands[i];

		if (line->operand == NULL)
			put_word(line, sub->name, sub->summary);
		else if (strcmp(line->operand, sub->name) == 0 && sub->most > 0)
			show_print(stdout, ":files\n");
	}
}

static void list_operands(const struct line *line)
{
	bool wanted = line->command == NULL || line->command->operands == OPERANDS_COMMANDS;

	for (int i = 0; wanted && i < command_shown(); i++)
		put_word(line, commands[i]->name, commands[i]->summary);
	if (line->command == NULL)
		return;
	if (line->command->subcommand_count > 0)
		list_subcommands(line);
	else if (line->command->operands == OPERANDS_DEFINITIONS)
		list_definitions(line, false);
	else if (line->command->operands == OPERANDS_FILES)
		show_print(stdout, ":files\n");
}

static int run(struct program *program, int argc, char **argv)
{
	const struct line line = read_line(argc - 1, argv + 1);

	(void)program;
	if (line.unknown)
		return EXIT_VERIFIED;
	if (line.row != NULL)
		list_values(&line);
	else if (line.word[0] == '-')
		list_options(&line);
	else
		list_operands(&line);
	return EXIT_VERIFIED;
}

const struct command command_complete = {
    .name = "complete",
    .summary = "list the words that can complete a command line",
    .synopsis = "WORD…",
    .description = "The completions of the shells run this command.",
    .hidden = true,
    .run = run,
};

/* ---- the scripts of the shells ---------------------------------------------------------------------------------- */

const char completions_bash[] =
	"# Completions of reftest for bash. `reftest complete` lists the words.\n"
	"_reftest() {\n"
	"\tlocal word=${COMP_WORDS[COMP_CWORD]} line lines\n"
	"\t[[ $word != = ]] || word=\n"
	"\tCOMPREPLY=()\n"
	"\tmapfile -t lines < <(\"${COMP_WORDS[0]/#'~'/$HOME}\" complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"\tcase ${lines[0]-} in\n"
	"\t:files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
	"\t:folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;\n"
	"\t*)\n"
	"\t\tfor line in \"${lines[@]%%$'\\t'*}\"; do\n"
	"\t\t\t[[ $line != \"$word\"* ]] || COMPREPLY+=(\"$line\")\n"
	"\t\tdone\n"
	"\t\t;;\n"
	"\tesac\n"
	"}\n\n"
	"complete -F _reftest reftest\n";

/* zsh runs an autoloaded file as the body of _reftest on the first call, so in this case the file must define _reftest
 * and call it. If the file is sourced instead, it must only define _reftest. */
const char completions_zsh[] =
	"#compdef reftest\n"
	"# Completions of reftest for zsh. `reftest complete` lists the words.\n"
	"_reftest() {\n"
	"\tlocal line word\n"
	"\tlocal -a lines found\n"
	"\tlines=(${(f)\"$(${~words[1]} complete \"${(@)words[2,CURRENT-1]}\" \"$PREFIX\" 2>/dev/null)\"})\n"
	"\tcase $lines[1] in\n"
	"\t:files) compset -P '--*='; _files ;;\n"
	"\t:folders) compset -P '--*='; _files -/ ;;\n"
	"\t*)\n"
	"\t\tfor line in $lines; do\n"
	"\t\t\tword=${line%%$'\\t'*}\n"
	"\t\t\tfound+=(\"${word//:/\\\\:}${${line#$word}/$'\\t'/:}\")\n"
	"\t\tdone\n"
	"\t\t_describe 'reftest' found\n"
	"\t\t;;\n"
	"\tesac\n"
	"}\n\n"
	"if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
	"\t_reftest \"$@\"\n"
	"else\n"
	"\tcompdef _reftest reftest\n"
	"fi\n";

const char completions_fish[] =
	"# Completions of reftest for fish. `reftest complete` lists the words.\n"
	"function __reftest_complete\n"
	"    set -l words (commandline -opc)\n"
	"    set -l word (commandline -ct)\n"
	"    set -l head (string match -r -- '^--[^=]*=' \"$word\")\n"
	"    set -l path (string replace -- \"$head\" '' \"$word\")\n"
	"    set -l program (string replace -r '^~' $HOME -- $words[1])\n"
	"    set -l lines ($program complete $words[2..-1] \"$word\" 2>/dev/null)\n"
	"    switch \"$lines[1]\"\n"
	"        case ':files'\n"
	"            __fish_complete_path \"$path\" | string replace -r -- '^' \"$head\"\n"
	"        case ':folders'\n"
	"            __fish_complete_directories \"$path\" | string replace -r -- '^' \"$head\"\n"
	"        case '*'\n"
	"            printf '%s\\n' $lines\n"
	"    end\n"
	"end\n\n"
	"complete -c reftest -f -a '(__reftest_complete)'\n";
