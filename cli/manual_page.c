/* manual_page - writes the manual page in the macros of man(7). The hidden command `document` prints the manual page
 * and the shell completions. Options come from the tables of cli/command.h. Environment variables, files and examples
 * come from the tables below. Change these tables for a new environment variable REFTEST_…, for a new status (`watch
 * --exec` sets variables such as REFTEST_PASSED), and for a new address scheme of REFTEST_REMOTE. */
#include "cli/manual_page.h"

#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/help.h"

/* ---- lists that are kept by hand --------------------------------------------------------------------------------- */

struct entry {
	const char *name, *text;
};

static const char description[] =
	"A dataset contains definitions of GPU kernels (`definitions/op_type/name.json`), each with a reference in "
	"PyTorch, and workloads (`workloads/op_type/name.jsonl`). reftest runs the references and compares their "
	"outputs with ground truth: the outputs of its own kernels and of other libraries.\n\n"
	"Each verdict is stored under a fingerprint, which is a hash of everything that the verdict depends on. A "
	"case runs again only if its fingerprint changes.";

static const struct entry environment[] = {
    {"REFTEST_ROOT", "The root folder of the dataset, if --root is not given."},
    {"FIB_DATASET_PATH", "The root folder of the dataset, if neither --root nor REFTEST_ROOT is given."},
    {"REFTEST_PYTHON", "The Python interpreter that runs references, if --python is not given."},
    {"REFTEST_KERNELS",
     "The folder that contains the kernels libraries. The default is the folder of the program or, if reftest is "
     "installed, lib/reftest."},
    {"REFTEST_REMOTE", "The address of a cache that several machines share: redis://HOST, redis+unix:///PATH, http://HOST or "
                       "https://HOST. The options read-only and timeout=SECONDS follow a question mark."},
    {"REFTEST_CACHE_KEY",
     "The key that signs and checks the records of shared caches and exported files, or the path of a file with "
     "the key. `reftest key` creates a key."},
    {"REFTEST_PROVIDERS",
     "A folder with Python modules that call other libraries. reftest uses these modules instead of those in "
     "python/libraries."},
    {"REFTEST_CHECKOUTS",
     "reftest sets this variable for the process that calls other libraries. The variable lists the checkouts that "
     "reftest uses like installed libraries; they come from `--repos` or `repos_config.json`. A value that you set is "
     "ignored."},
    {"REFTEST_PROVIDER",
     "The Python script that computes ground truth with other libraries. It replaces reftest's provider.py."},
    {"REFTEST_RUNNER", "The Python script that runs references. It replaces reftest's runner.py."},
    {"REFTEST_KEPT_INPUTS",
     "A number of bytes (default: 1 GiB). While the reference runs, reftest keeps a private copy of the inputs only if "
     "they have at most this number of bytes."},
    {"REFTEST_TRACE",
     "If this variable is set and not empty, reftest prints its decisions and internal messages to standard error, "
     "one on each line."},
    {"REFTEST_NAMES",
     "`reftest watch --exec` sets this variable for its command: the definitions that were just verified "
     "(op_type/name), one on each line."},
    {"REFTEST_COUNT",
     "`reftest watch --exec` sets this variable for its command: the number of definitions that were just verified. "
     "REFTEST_PASSED, REFTEST_CHECKED, REFTEST_FAILED, REFTEST_ERROR, REFTEST_SKIPPED and REFTEST_INVALID are the "
     "numbers of definitions with each status."},
    {"CURL_CA_BUNDLE, SSL_CERT_FILE",
     "A file with certificate authorities. If the remote cache has an https address, reftest trusts these "
     "authorities."},
    {"CUDA_VISIBLE_DEVICES", "The GPUs that CUDA programs can use."},
    {"NO_COLOR", "If this variable is set and not empty, the output has no colours."},
    {"CLICOLOR_FORCE",
     "If this variable is set and neither empty nor 0, the output has colours even if it is not written to a terminal. "
     "NO_COLOR overrides it."},
    {"TERM", "If TERM is `dumb` or empty, reftest uses no colours and draws no progress."},
};

static const struct entry files[] = {
    {"definitions/", "The definitions of the dataset. The parent folder of `definitions` is the root."},
    {"workloads/", "The recorded inputs of definitions."},
    {"truths/", "The dataset's own ground truths."},
    {"approved/", "The references that `reftest approve` recorded."},
    {"blob/", "The files with tensors that workloads use as inputs."},
    {"tests/references/", "The files that `reftest generate` writes."},
    {".reftest/",
     "The folder with the cache of verdicts, which reftest creates in the root. It can be deleted at any time."},
    {".reftest/cache/", "The stored verdicts."},
    {".venv/", "A virtual environment of Python with torch. It is in the root or beside the program's folder."},
};

static const struct entry examples[] = {
    {"reftest verify", "Verify every definition that has no valid verdict."},
    {"reftest verify --sizes small --device cpu rmsnorm_h4096",
     "Verify one definition on the CPU, with small inputs only."},
    {"reftest explain rmsnorm_h4096", "Find out why a definition is stale."},
    {"reftest watch --exec 'echo \"$REFTEST_NAMES\"'", "Verify after each save, and then run a command."},
    {"reftest affected --since origin/main --tests | xargs pytest",
     "Run the generated tests that depend on the files that a branch changed."},
    {"reftest hook install", "Install a git hook that verifies each commit."},
    {"reftest cache export - | ssh HOST reftest --root /data cache import -", "Copy the verdicts to another machine."},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

/* ---- man(7) ------------------------------------------------------------------------------------------------------ */

static const struct {
	const char *text, *roff;
} escapes[] = {
    {"\\", "\\e"}, {"-", "\\-"}, {"'", "\\(aq"}, {"…", "..."}, {"^", "\\(ha"}, {"~", "\\(ti"}, {"\n\n", "\n.PP\n"},
};

/* Writes a paragraph for roff, in which text between `backquotes` is bold. */
static void put_text(struct buf *out, const char *text)
{
	bool bold = false;

	if (*text == '.')
		buf_text(out, "\\&");
	while (*text != '\0') {
		size_t taken = 0;

		for (int i = 0; i < COUNT(escapes) && taken == 0; i++)
			if (strncmp(text, escapes[i].text, strlen(escapes[i].text)) == 0) {
				taken = strlen(escapes[i].text);
				buf_text(out, escapes[i].roff);
			}
		if (taken == 0 && *text == '`') {
			bold = !bold;
			buf_text(out, bold ? "\\fB" : "\\fR");
		} else if (taken == 0) {
			buf_add(out, text, 1);
		}
		text += taken > 0 ? taken : 1;
	}
}

static void put_line(struct buf *out, const char *before, const char *text, const char *after)
{
	buf_text(out, before);
	put_text(out, text);
	buf_text(out, after);
}

/* Writes a synopsis. Words in capitals are placeholders (italic); other words are typed literally (bold). */
static void put_synopsis(struct buf *out, const char *text)
{
	while (*text != '\0') {
		size_t capitals = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		struct buf word = {0};

		if (capitals > 0) {
			buf_add(&word, text, capitals);
			put_line(out, "\\fI", word.data, "\\fR");
		} else {
			capitals = strcspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
			buf_add(&word, text, capitals);
			put_text(out, word.data);
		}
		buf_free(&word);
		text += capitals;
	}
}

static void put_rows(struct buf *out, const struct option_row *rows, int count)
{
	struct arena arena = {0};

	for (int i = 0; i <= count; i++) {
		const struct option_row *row = i < count ? &rows[i] : &options_help;

		put_line(out, ".TP\n\\fB", row->name, "\\fR");
		if (row->value != NULL)
			put_line(out, " \\fI", row->value, "\\fR");
		put_line(out, "\n", help_of_row(row, &arena), "\n");
	}
	arena_free(&arena);
}

static void put_entries(struct buf *out, const struct entry *entries, int count)
{
	for (int i = 0; i < count; i++) {
		put_line(out, ".TP\n\\fB", entries[i].name, "\\fR\n");
		put_line(out, "", entries[i].text, "\n");
	}
}

static void put_command(struct buf *out, const struct command *command)
{
	put_line(out, ".SS ", command->name, "\n\\fBreftest ");
	put_line(out, "", command->name, "\\fR ");
	put_synopsis(out, command->synopsis);
	put_line(out, "\n.PP\n", command->description, "\n");
	for (int i = 0; i < command->subcommand_count; i++) {
		const struct subcommand *sub = &command->subcommands[i];

		put_line(out, ".TP\n\\fB", sub->name, "\\fR");
		put_line(out, *sub->operands != '\0' ? " \\fI" : "\\fI", sub->operands, "\\fR\n");
		put_line(out, "", sub->summary, "\n");
	}
	put_rows(out, command->rows, command->row_count);
}

static void put_exit_codes(struct buf *out)
{
	for (int i = 0; i < exit_row_count; i++) {
		buf_printf(out, ".TP\n\\fB%d\\fR\n", exit_rows[i].code);
		put_line(out, "", exit_rows[i].meaning, "\n");
	}
}

void document_man(struct buf *out)
{
	buf_text(out, ".\\\" Generated by reftest from the option tables in cli/. Edit the tables, not this file.\n");
	buf_text(out, ".TH REFTEST 1 " REFTEST_DATE " \"reftest " REFTEST_VERSION "\" \"User Commands\"\n.nh\n.ad l\n");
	put_line(out, ".SH NAME\nreftest \\- ", global_summary, "\n.SH SYNOPSIS\n\\fBreftest\\fR ");
	put_synopsis(out, global_synopsis);
	put_line(out, "\n.SH DESCRIPTION\n", description, "\n.SH OPTIONS\n");
	buf_text(out, "These options come before the command.\n");
	put_rows(out, global_rows, global_row_count);
	buf_text(out, ".SH COMMANDS\n");
	for (int i = 0; i < command_shown(); i++) {
		put_line(out, ".TP\n\\fB", commands[i]->name, "\\fR\n");
		put_line(out, "", commands[i]->summary, "\n");
	}
	for (int i = 0; i < command_shown(); i++)
		put_command(out, commands[i]);
	buf_text(out, ".SH EXIT STATUS\n");
	put_exit_codes(out);
	buf_text(out, ".SH ENVIRONMENT\n");
	put_entries(out, environment, COUNT(environment));
	buf_text(out, ".SH FILES\nPaths are below the root of the dataset.\n");
	put_entries(out, files, COUNT(files));
	buf_text(out, ".SH EXAMPLES\n");
	put_entries(out, examples, COUNT(examples));
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int run_man(struct program *program, const void *options, const struct words *names, struct err *err)
{
	struct buf out = {0};

	(void)program, (void)options, (void)names, (void)err;
	document_man(&out);
	show_print(stdout, "%s", out.data);
	buf_free(&out);
	return EXIT_VERIFIED;
}

static int run_bash(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)program, (void)options, (void)names, (void)err;
	show_print(stdout, "%s", completions_bash);
	return EXIT_VERIFIED;
}

static int run_zsh(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)program, (void)options, (void)names, (void)err;
	show_print(stdout, "%s", completions_zsh);
	return EXIT_VERIFIED;
}

static int run_fish(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)program, (void)options, (void)names, (void)err;
	show_print(stdout, "%s", completions_fish);
	return EXIT_VERIFIED;
}

static const struct subcommand subcommands[] = {
    {"man", "", "print the manual page", 0, 0, run_man},
    {"bash", "", "print the completions for bash", 0, 0, run_bash},
    {"zsh", "", "print the completions for zsh", 0, 0, run_zsh},
    {"fish", "", "print the completions for fish", 0, 0, run_fish},
};

static int start(struct program *program, int argc, char **argv)
{
	struct command_line line;
	const struct subcommand *sub = NULL;

	if (command_line_begin(&line, &command_document, argc, argv, NULL))
		sub = command_line_subcommand(&line);
	if (sub != NULL)
		line.code = sub->run(program, NULL, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_document = {
    .name = "document",
    .summary = "print the manual page or the completions of a shell",
    .synopsis = "man | bash | zsh | fish",
    .description = "Prints the files that `make install` installs, generated from the option tables.",
    .hidden = true,
    .subcommands = subcommands,
    .subcommand_count = COUNT(subcommands),
    .run = start,
};
