/* generate - writes, checks or prints the dataset's pytest files (testgen/update.h). */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/fold_output.h"
#include "base/shell_word.h"
#include "base/show.h"
#include "cli/shared_options.h"
#include "engine/run.h"
#include "engine/tolerance_text.h"
#include "testgen/replace_vacuous.h"
#include "testgen/update.h"
#include "testgen/vacuous_tests.h"

struct generate_options {
	struct shared_options shared;
	const char *layout, *print;
	bool all, check, force, audit, hook, replace_vacuous;
	struct words tolerances;
};

#define AT(member) offsetof(struct generate_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    {"--all", OPTION_FLAG, AT(all), NULL, NULL, "select every definition (the default without a NAME)"},
    ROW_OP_TYPE,
    {"--layout", OPTION_CHOICE, AT(layout), "L", "op-type|definition",
     "write one file for each op_type (test_{op_type}.py) or one for each definition (test_{name}.py) (default: the "
     "layout of the last `reftest generate`, else op-type)"},
    {"--check", OPTION_FLAG, AT(check), NULL, NULL,
     "write nothing; list the files that are out of date, and exit with 1 if there are any"},
    {"--hook", OPTION_FLAG, AT(hook), NULL, NULL,
     "run as a git hook: exit with 1 if a file was written, and print the `git add` command for it"},
    {"--force", OPTION_FLAG, AT(force), NULL, NULL, "also replace files that were written or edited by hand"},
    {"--audit", OPTION_FLAG, AT(audit), NULL, NULL,
     "list hand-written tests that cannot fail, with file, line and reason, and exit with 1 if there are any"},
    {"--replace-vacuous", OPTION_FLAG, AT(replace_vacuous), NULL, NULL,
     "replace hand-written files in which no test can fail, and print the reason for each file; files that are not "
     "committed to git are left unchanged"},
    {"--tolerance", OPTION_LIST, AT(tolerances), "[DTYPE=]ATOL[,RTOL[,HIT]]", NULL,
     "tolerance of every output, or of the outputs of one dtype, in the tests of the selected definitions; later updates "
     "of the files keep this tolerance, and `none` removes it (repeatable)"},
    {"--python", OPTION_FILE, SHARED(python), "PATH", NULL,
     "Python interpreter that parses the files for --audit and --replace-vacuous (default: $REFTEST_PYTHON, then .venv, then python3)"},
    {"--print", OPTION_TEXT, AT(print), "FILE", NULL,
     "print the generated file FILE, such as test_gemm.py, to standard output, and write nothing"},
};

enum { ROWS = sizeof rows / sizeof rows[0], FILES_NAMED = 8 };

static enum layout choose_layout(const struct generate_options *o, const char *root)
{
	enum layout layout = LAYOUT_OP_TYPE;

	if (o->layout == NULL)
		generated_before(root, &layout);
	else if (strcmp(o->layout, "definition") == 0)
		layout = LAYOUT_DEFINITION;
	return layout;
}

/* `not_audited`: this run did not examine whether the hand-written tests can fail. */
static void print_summary(const struct generate_options *o, const struct update_result *g, bool not_audited)
{
	for (int i = 0; i < g->message_count; i++)
		show_print(stdout, "%s\n", g->messages[i]);
	show_print(stdout, "%d definition%s: %d with a test that can fail (%d hand-written%s), %d without, %d stale; ", g->definitions,
	       g->definitions == 1 ? "" : "s", g->with_test, g->hand_written, not_audited ? ", not examined" : "",
	       g->without, g->stale);
	show_print(stdout, "%d file%s: %d %s, %d removed, %d current\n", g->files, g->files == 1 ? "" : "s", g->written,
	       o->check ? "out of date" : "written", g->removed, g->current);
}

/* Prints the `git add` command that the user must run before the commit is repeated. If many files have changed, the
 * command adds the whole folder. */
static void print_remedy(const struct generate_options *o, const struct update_result *g, const char *root)
{
	const char *head = strcmp(root, ".") == 0 ? "" : root, *slash = *head != '\0' ? "/" : "";
	static const char *const folder[] = {"tests/references"};
	bool many = g->changed_count > FILES_NAMED;
	const char *const *paths = many ? folder : g->changed;
	struct arena arena = {0};

	if (g->changed_count == 0 || (!o->check && !o->hook))
		return;
	show_print(stdout, "next step: %sgit add", o->check ? "reftest generate && " : "");
	for (int i = 0; i < (many ? 1 : g->changed_count); i++)
		show_print(stdout, " %s", arena_shell_word(&arena, arena_printf(&arena, "%s%s%s", head, slash, paths[i])));
	show_print(stdout, "\n");
	arena_free(&arena);
}

static int exit_code(const struct generate_options *o, const struct update_result *g)
{
	if (g->refused > 0 || ((o->check || o->hook) && g->written + g->removed > 0))
		return EXIT_FAILED;
	return g->invalid > 0 ? EXIT_USAGE : EXIT_VERIFIED;
}

/* Prints notes about the hand-written tests that cannot fail, and about the tests that pytest cannot collect. */
static void print_hindered(const struct generate_options *o, const struct vacuous_tests *found)
{
	if (found->vacuous_count > 0 && !o->replace_vacuous)
		show_print(stdout,
			   "note: %d hand-written file%s without a test that checks a definition; `reftest generate --audit` says why, and "
			   "`reftest generate --replace-vacuous` replaces %s\n",
			   found->vacuous_count, found->vacuous_count == 1 ? "" : "s", found->vacuous_count == 1 ? "it" : "them");
	if (found->uncollected > 0)
		show_print(stdout,
			   "note: pytest cannot collect %d hand-written file%s, because %s lacks modules that they "
			   "import, such as %s; `pytest tests/references --continue-on-collection-errors` runs all "
			   "other tests\n",
			   found->uncollected, found->uncollected == 1 ? "" : "s", found->python, found->missing);
}

static int count_without_vacuous(struct run *run, const struct update_options *options, const char *python,
				 struct vacuous_tests *found, struct update_result *generated)
{
	struct update_options again = *options;
	struct update_result counted;

	if (vacuous_tests_find(&run->dataset, run->program->root, python, &run->arena, found, NULL) < 0)
		return -1;
	again.check = again.quiet = true;
	again.vacuous = found->vacuous;
	again.vacuous_count = found->vacuous_count;
	if (found->vacuous_count > 0) {
		if (update_tests(run->program, &run->dataset, &again, &run->arena, &counted, NULL) < 0)
			return -1;
		generated->with_test = counted.with_test;
		generated->hand_written = counted.hand_written;
		generated->without = counted.without;
	}
	return 0;
}

/* Reads --tolerance. For the value `none`, all bounds are negative, which removes the bounds from the files. Returns 0,
 * or -1 and sets `err`. */
static int read_tolerances(const struct words *words, struct tolerance out[DTYPE_COUNT], struct err *err)
{
	for (int i = 0; i < DTYPE_COUNT; i++)
		out[i] = (struct tolerance){-1, -1, -1};
	if (words->count == 1 && strcmp(words->items[0], "none") == 0)
		return 0;
	return tolerance_texts_read(words->items, words->count, "--tolerance", out, err);
}

/* Selects definitions and updates their test files. `run` contains the dataset and the selected definitions; no case is
 * executed. */
static int update(struct run *run, const struct generate_options *o, const struct words *names,
		  const struct replaced *replaced, struct err *err)
{
	bool every = names->count == 0 && o->shared.op_types.count == 0;
	struct update_options options = {.check = o->check, .force = o->force, .print = o->print};
	struct tolerance tolerances[DTYPE_COUNT];
	struct update_result generated;

	if (o->check) {
		options.removed = replaced->removed;
		options.removed_count = replaced->removed_count;
	}
	if (read_tolerances(&o->tolerances, tolerances, err) < 0)
		return EXIT_USAGE;
	options.tolerances = o->tolerances.count > 0 ? tolerances : NULL;
	options.layout = choose_layout(o, run->program->root);
	if (run_select(run, names->items, names->count, o->shared.op_types.items, o->shared.op_types.count, err) < 0)
		return EXIT_USAGE;
	if (!every) {
		options.selected = run->selected;
		options.selected_count = run->selected_count;
	}
	if (update_tests(run->program, &run->dataset, &options, &run->arena, &generated, err) < 0)
		return EXIT_INTERNAL;
	if (o->print != NULL) {
		if (!generated.printed)
			err_set(err,
				"unknown file '%s' (`reftest generate --check` lists the generated files)",
				o->print);
		return generated.printed ? EXIT_VERIFIED : EXIT_USAGE;
	}
	struct vacuous_tests found = {0};
	const bool audited = count_without_vacuous(run, &options, o->shared.python, &found, &generated) == 0;

	print_summary(o, &generated, !audited && generated.hand_written > 0);
	if (audited)
		print_hindered(o, &found);
	print_remedy(o, &generated, run->program->root);
	return exit_code(o, &generated);
}

static int audit(struct run *run, const char *python, struct err *err)
{
	struct vacuous_tests audit_result;

	if (vacuous_tests_find(&run->dataset, run->program->root, python, &run->arena, &audit_result, err) < 0)
		return audit_result.no_python ? EXIT_UNVERIFIED : EXIT_INTERNAL;
	for (int i = 0; i < audit_result.message_count; i++)
		show_print(stdout, "%s\n", audit_result.messages[i]);
	show_print(stdout, "%d hand-written test file%s, %d finding%s\n", audit_result.files, audit_result.files == 1 ? "" : "s",
	       audit_result.message_count, audit_result.message_count == 1 ? "" : "s");
	return audit_result.message_count > 0 ? EXIT_FAILED : EXIT_VERIFIED;
}

/* Removes the files in which no test can fail. With --check, only finds these files. Returns an exit status. */
static int remove_vacuous(struct run *run, const struct generate_options *o, struct replaced *replaced, struct err *err)
{
	struct vacuous_tests found;

	if (vacuous_tests_find(&run->dataset, run->program->root, o->shared.python, &run->arena, &found, err) < 0)
		return found.no_python ? EXIT_UNVERIFIED : EXIT_INTERNAL;
	if (replace_vacuous(run->dataset.fd, run->program->root, &found, o->check, &run->arena, replaced, err) < 0)
		return EXIT_INTERNAL;
	for (int i = 0; i < replaced->message_count; i++)
		show_print(stdout, "%s\n", replaced->messages[i]);
	return replaced->left > 0 || (o->check && replaced->removed_count > 0) ? EXIT_FAILED : EXIT_VERIFIED;
}

static int act(struct run *run, const struct generate_options *o, const struct words *names, struct err *err)
{
	struct replaced replaced = {0};

	if (dataset_scan(run->program->root, &run->arena, &run->dataset, err) < 0)
		return EXIT_INTERNAL;
	if (o->replace_vacuous) {
		int left = remove_vacuous(run, o, &replaced, err),
		    code = left > EXIT_FAILED ? left : update(run, o, names, &replaced, err);

		return code == EXIT_VERIFIED ? left : code;
	}
	return o->audit ? audit(run, o->shared.python, err) : update(run, o, names, &replaced, err);
}

static int run(struct program *program, const struct generate_options *o, const struct words *names, struct err *err)
{
	struct run run = {.program = program};
	int code = EXIT_USAGE;

	run.dataset.fd = -1;
	shared_options_root(&o->shared, program);
	if (o->all && names->count > 0) {
		err_set(err, "--all and the name '%s' contradict each other; give only one of them", names->items[0]);
		return EXIT_USAGE;
	}
	if (o->audit && o->replace_vacuous) {
		err_set(err, "--audit only lists tests, and --replace-vacuous replaces their files; give only one of the two "
			     "options");
		return EXIT_USAGE;
	}
	if (o->replace_vacuous && (names->count > 0 || o->shared.op_types.count > 0 || o->print != NULL)) {
		err_set(err, "--replace-vacuous always examines all test files, so it cannot be combined with names, --op-type or "
			     "--print");
		return EXIT_USAGE;
	}
	if (program_root(program, err) == 0)
		code = act(&run, o, names, err);
	run_close(&run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct generate_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_generate, argc, argv, &o)) {
		fold_output();
		line.code = run(program, &o, &line.names, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_generate = {
    .name = "generate",
    .summary = "write the pytest files of the dataset to tests/references",
    .synopsis = "[options] [NAME…]",
    .description =
	"Writes a conftest.py and the tests of the selected definitions. The files need pytest and torch, and do "
	"not need reftest. A file that was written or edited by hand is left unchanged.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
