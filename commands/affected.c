/* affected - the definitions and generated tests that changed files touch (commands/touched.h): of the files named, or
 * of those that differ from where this branch began. Text is a name a line, for other commands to take. */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "commands/options.h"
#include "commands/sparse.h"
#include "commands/touched.h"
#include "git/objects.h"

enum { DIFF_BYTES = 1 << 30 };

struct affected_options {
	const char *root, *since;
	bool json, definitions, tests;
};

#define AT(member) offsetof(struct affected_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--since", OPTION_TEXT, AT(since), "BASE",
     "the files that differ from where this branch left BASE, committed or not, and new ones that git does not ignore"},
    {"--definitions", OPTION_FLAG, AT(definitions), NULL,
     "text: only definitions (op_type/name), for `reftest verify`"},
    {"--tests", OPTION_FLAG, AT(tests), NULL, "text: only test files, for pytest"},
    {"--json", OPTION_FLAG, AT(json), NULL, "one object, with the file by which each is touched"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

struct files {
	const char **list;
	int count;
};

/* "main" → where this branch left it, as a commit's name. */
static int find_base(const struct repository *repository, const char *since, struct arena *arena, const char **base,
		     struct err *err)
{
	const char *const words[] = {"merge-base", since, "HEAD", NULL};
	struct buf text = {0};
	int rc = since[0] == '-' ? -1 : git_output(repository, words, 256, &text, NULL);

	if (rc == 0)
		*base = arena_copy(arena, text.data, strcspn(text.data, "\n"));
	else
		err_set(
		    err,
		    "git knows no commit that '%s' and HEAD have in common; a shallow clone needs more of the history "
		    "(actions/checkout: fetch-depth: 0; else `git fetch --unshallow`)",
		    since);
	buf_free(&text);
	return rc;
}

/* The paths below the root among those that a git with these words prints, each ended by a NUL, are added. */
static int list_files(const struct repository *repository, const char *const *words, struct arena *arena,
		      struct files *out, struct err *err)
{
	size_t head = strlen(repository->prefix), room = (size_t)out->count;
	struct buf text = {0};
	int rc = git_output(repository, words, DIFF_BYTES, &text, err);

	if (rc == 0) {
		for (size_t i = 0; i < text.length; i++)
			room += text.data[i] == '\0';
		const char **list = arena_array(arena, room, sizeof *list);

		if (out->count > 0)
			memcpy(list, out->list, (size_t)out->count * sizeof *list);
		out->list = list;
		for (size_t at = 0; at < text.length; at += strlen(text.data + at) + 1)
			if (strncmp(text.data + at, repository->prefix, head) == 0)
				out->list[out->count++] = arena_string(arena, text.data + at + head);
	}
	buf_free(&text);
	return rc;
}

/* Of a renamed file both names; and what git has not been told of yet, which `verify` looks at too. */
static int files_since(const char *root, const char *since, struct arena *arena, struct files *out, struct err *err)
{
	struct repository repository;
	const char *base = NULL;

	if (repository_find(root, &repository, err) < 0 || find_base(&repository, since, arena, &base, err) < 0)
		return -1;
	const char *below = arena_printf(arena, ":(top,literal)%s", repository.prefix);
	const char *const changed[] = {"diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base, "--", NULL};
	const char *const untracked[] = {"ls-files", "--others", "--exclude-standard", "-z", "--", below, NULL};

	if (list_files(&repository, changed, arena, out, err) < 0)
		return -1;
	return list_files(&repository, untracked, arena, out, err);
}

/* Takes out of the definitions that are gone those that git has and does not want here, in a sparse checkout. */
static int set_aside(const struct dataset *dataset, struct touched *touched, struct files *aside, struct arena *arena,
		     struct err *err)
{
	struct sparse sparse = {.asked = false};
	int gone = 0;

	*aside = (struct files){.list = arena_array(arena, (size_t)touched->gone_count, sizeof *aside->list)};
	if (touched->gone_count > 0 && sparse_ask(&sparse, dataset, arena, err) < 0)
		return -1;
	for (int i = 0; i < touched->gone_count; i++)
		if (sparse_has_definition(&sparse, touched->gone[i]))
			aside->list[aside->count++] = touched->gone[i];
		else
			touched->gone[gone++] = touched->gone[i];
	touched->gone_count = gone;
	return 0;
}

static void print_text(const struct affected_options *o, const struct touched *touched, const struct files *aside)
{
	bool both = !o->definitions && !o->tests;

	for (int i = 0; (both || o->definitions) && i < touched->definition_count; i++)
		printf("%s/%s\n", touched->definitions[i].file->op_type, touched->definitions[i].file->name);
	for (int i = 0; (both || o->tests) && i < touched->test_count; i++)
		printf("%s\n", touched->tests[i]);
	for (int i = 0; i < touched->gone_count; i++)
		fprintf(stderr, "reftest: %s is gone\n", touched->gone[i]);
	for (int i = 0; i < aside->count; i++)
		fprintf(stderr, "reftest: %s is in git and not checked out here\n", aside->list[i]);
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

static void print_json(const char *root, const struct touched *touched, const struct files *aside)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, root);
	buf_text(&out, ",\n \"definitions\": [");
	for (int i = 0; i < touched->definition_count; i++) {
		const struct touched_definition *one = &touched->definitions[i];

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
	put_list(&out, "gone", touched->gone, touched->gone_count);
	put_list(&out, "not_checked_out", aside->list, aside->count);
	put_list(&out, "tests", touched->tests, touched->test_count);
	put_list(&out, "untouched", touched->others, touched->other_count);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int look(struct reftest *reftest, const struct affected_options *o, const struct files *files,
		struct arena *arena, struct err *err)
{
	struct dataset dataset;
	struct touched touched;
	struct files aside;
	int code = EXIT_INTERNAL;

	if (dataset_scan(reftest->root, arena, &dataset, err) < 0)
		return EXIT_INTERNAL;
	struct contents *contents = contents_open(NULL, &dataset, NULL, arena, err);

	if (contents != NULL &&
	    touched_by(reftest, &dataset, contents, files->list, files->count, arena, &touched, err) == 0 &&
	    set_aside(&dataset, &touched, &aside, arena, err) == 0) {
		if (o->json)
			print_json(reftest->root, &touched, &aside);
		else
			print_text(o, &touched, &aside);
		for (int i = 0; i < dataset.problem_count; i++)
			fprintf(stderr, "reftest: %s\n", dataset.problems[i]);
		code = dataset.problem_count > 0 ? EXIT_USAGE : EXIT_VERIFIED;
	}
	dataset_close(&dataset);
	return code;
}

static int run(struct reftest *reftest, const struct affected_options *o, const struct words *names,
	       struct arena *arena, struct err *err)
{
	struct files files = {0};

	if ((o->since == NULL) == (names->count == 0))
		return err_set(
			   err,
			   "affected takes the names of files, as in `reftest affected definitions/gemm/x.json`, or "
			   "--since BASE"),
		       EXIT_USAGE;
	if (o->root != NULL)
		reftest->root_given = o->root;
	if (reftest_root(reftest, err) < 0)
		return EXIT_USAGE;
	if (o->since != NULL && files_since(reftest->root, o->since, arena, &files, err) < 0)
		return EXIT_USAGE;
	if (o->since == NULL) {
		files = (struct files){arena_array(arena, (size_t)names->count, sizeof *files.list), names->count};
		for (int i = 0; i < names->count; i++)
			files.list[i] = touched_path(reftest->root, names->items[i], arena);
	}
	return look(reftest, o, &files, arena, err);
}

int command_affected(struct reftest *reftest, int argc, char **argv)
{
	struct affected_options o = {.root = NULL};
	struct told told;

	if (options_begin(&told, "affected [options] FILE… | --since BASE", rows, ROWS, argc, argv, &o))
		told.code = run(reftest, &o, &told.names, &told.arena, &told.err);
	return options_end(&told);
}
