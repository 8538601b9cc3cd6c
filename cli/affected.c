/* affected - lists the definitions and generated tests that depend on changed files (engine/affected.h). The user names
 * the changed files, or --since selects the files that changed since the merge base of HEAD and a given commit. The
 * text output has one name on each line, so that other commands can read it. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/show.h"
#include "cli/shared_options.h"
#include "engine/affected.h"
#include "engine/disk_files.h"
#include "engine/sparse_checkout.h"
#include "git/changes.h"

struct affected_options {
	struct shared_options shared;
	const char *since;
	bool json, definitions, tests;
};

#define AT(member) offsetof(struct affected_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    {"--since", OPTION_TEXT, AT(since), "BASE", NULL,
     "use the files that changed since the merge base of BASE and HEAD: committed, uncommitted and untracked files, "
     "but not files that git ignores"},
    {"--definitions", OPTION_FLAG, AT(definitions), NULL, NULL,
     "in text format, print only definitions (op_type/name), as arguments of `reftest verify`"},
    {"--tests", OPTION_FLAG, AT(tests), NULL, NULL, "in text format, print only test files, as arguments of pytest"},
    {"--json", OPTION_FLAG, AT(json), NULL, NULL,
     "print one JSON object, which contains, for each definition, the name of a changed file on which the definition depends"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Lists the files that differ between the working tree and the merge base with `since`. The list includes untracked
 * files, because `verify` reads them. */
static int files_since(const char *root, const char *since, struct arena *arena, struct git_files *out, struct err *err)
{
	struct repository repository;
	const char *base = NULL;

	if (repository_find(root, &repository, err) < 0 || git_merge_base(&repository, since, arena, &base, err) < 0)
		return -1;
	return git_changed_files(&repository, base, arena, out, err);
}

/* A definition that git's sparse checkout excludes is not in the working tree, but is not deleted either. Moves such
 * definitions from the list of deleted definitions to `aside`. */
static int remove_excluded(const struct dataset *dataset, struct affected *affected, struct git_files *aside, struct arena *arena,
		     struct err *err)
{
	struct sparse sparse = {.asked = false};
	int gone = 0;

	*aside = (struct git_files){.list = arena_array(arena, (size_t)affected->gone_count, sizeof *aside->list)};
	if (affected->gone_count > 0 && sparse_ask(&sparse, dataset, arena, err) < 0)
		return -1;
	for (int i = 0; i < affected->gone_count; i++)
		if (sparse_lacks_definition(&sparse, affected->gone[i]))
			aside->list[aside->count++] = affected->gone[i];
		else
			affected->gone[gone++] = affected->gone[i];
	affected->gone_count = gone;
	return 0;
}

static void print_text(const struct affected_options *o, const struct affected *affected, const struct git_files *aside)
{
	bool both = !o->definitions && !o->tests;

	for (int i = 0; (both || o->definitions) && i < affected->definition_count; i++)
		show_print(stdout, "%s/%s\n", affected->definitions[i].file->op_type, affected->definitions[i].file->name);
	for (int i = 0; (both || o->tests) && i < affected->test_count; i++)
		show_print(stdout, "%s\n", affected->tests[i]);
	for (int i = 0; i < affected->gone_count; i++)
		show_print(stderr, "reftest: %s was deleted\n", affected->gone[i]);
	for (int i = 0; i < aside->count; i++)
		show_print(stderr, "reftest: %s is in git but not checked out here\n", aside->list[i]);
}

static void put_list(struct buf *out, const char *key, const char *const *texts, int count)
{
	buf_printf(out, ",\n \"%s\": [", key);
	for (int i = 0; i < count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, texts[i]);
	}
	buf_text(out, "]");
}

static void print_json(const char *root, const struct affected *affected, const struct git_files *aside)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, root);
	buf_text(&out, ",\n \"definitions\": [");
	for (int i = 0; i < affected->definition_count; i++) {
		const struct affected_definition *one = &affected->definitions[i];

		buf_text(&out, i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
		buf_json_string(&out, one->file->name);
		buf_text(&out, ", \"op_type\": ");
		buf_json_string(&out, one->file->op_type);
		buf_text(&out, ", \"path\": ");
		buf_json_string(&out, one->file->path);
		buf_text(&out, ", \"because\": ");
		buf_json_string(&out, one->because);
		buf_text(&out, "}");
	}
	buf_text(&out, "]");
	put_list(&out, "gone", affected->gone, affected->gone_count);
	put_list(&out, "not_checked_out", aside->list, aside->count);
	put_list(&out, "tests", affected->tests, affected->test_count);
	put_list(&out, "untouched", affected->others, affected->other_count);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int stat_check(struct program *program, const struct affected_options *o, const struct git_files *files,
		      struct arena *arena, struct err *err)
{
	struct dataset dataset;
	struct affected affected;
	struct git_files aside;
	int code = EXIT_INTERNAL;

	if (dataset_scan(program->root, arena, &dataset, err) < 0)
		return EXIT_INTERNAL;
	struct file_digests *digests =
	    file_digests_open((struct run_store){NULL, NULL}, &dataset, disk_files(&dataset), arena, err);

	if (digests != NULL &&
	    affected_by(program, &dataset, digests, files->list, files->count, arena, &affected, err) == 0 &&
	    remove_excluded(&dataset, &affected, &aside, arena, err) == 0) {
		if (o->json)
			print_json(program->root, &affected, &aside);
		else
			print_text(o, &affected, &aside);
		for (int i = 0; i < dataset.problem_count; i++)
			show_print(stderr, "reftest: %s\n", dataset.problems[i]);
		code = dataset.problem_count > 0 ? EXIT_USAGE : EXIT_VERIFIED;
	}
	dataset_close(&dataset);
	return code;
}

static int run(struct program *program, const struct affected_options *o, const struct words *names,
	       struct arena *arena, struct err *err)
{
	struct git_files files = {0};

	if ((o->since == NULL) == (names->count == 0))
		return err_set(
			   err,
			   "affected needs file names, as in `reftest affected definitions/gemm/x.json`, or "
			   "--since BASE"),
		       EXIT_USAGE;
	shared_options_root(&o->shared, program);
	if (program_root(program, err) < 0)
		return EXIT_USAGE;
	if (o->since != NULL && files_since(program->root, o->since, arena, &files, err) < 0)
		return EXIT_USAGE;
	if (o->since == NULL) {
		files = (struct git_files){arena_array(arena, (size_t)names->count, sizeof *files.list), names->count};
		for (int i = 0; i < names->count; i++)
			files.list[i] = affected_path(program->root, names->items[i], arena);
	}
	return stat_check(program, o, &files, arena, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct affected_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_affected, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.arena, &line.err);
	return command_line_end(&line);
}

const struct command command_affected = {
    .name = "affected",
    .summary = "list the definitions and tests that depend on changed files",
    .synopsis = "[options] FILE… | --since BASE",
    .description =
	"Prints one name on each line: first the definitions that depend on a changed file, then the generated test "
	"files. The changed files are the ones named on the command line or, with --since, the files that changed "
	"since the merge base of BASE and HEAD.",
    .operands = OPERANDS_FILES,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
