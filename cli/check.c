/* check - checks definitions, workloads, tensor files, solutions and traces, without running anything. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "check/check.h"
#include "check/tree.h"
#include "cli/shared_options.h"
#include "dataset/dataset.h"
#include "dataset/linked_dataset.h"
#include "report/exit_status.h"

struct check_options {
	struct shared_options shared;
	bool verbose;
};

#define AT(member) offsetof(struct check_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_TEXT_OR_JSON,
    {"-v, --verbose", OPTION_FLAG, AT(verbose), NULL, NULL,
     "list every file that lacks descriptions, even if there are more than three"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* If more than DESCRIPTIONS_LISTED definitions lack descriptions, the text output gives only their number. */
enum { DESCRIPTIONS_LISTED = 3 };

/* A dataset, and the paths in the dataset that are checked. */
struct target {
	const char *root;   /* NULL: `paths` are files outside any dataset */
	const char *prefix; /* shown before each path; NULL: none */
	bool linked;        /* the dataset consists of links; messages name the files that the links point to */
	struct string_list paths;
};

struct targets {
	struct arena *arena;
	struct target *list; /* at most one for each operand */
	int count;
};

/* --- the operands -------------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Adds `path` to the target whose root is `root`. */
static void add_path(struct targets *targets, const char *root, const char *prefix, const char *path)
{
	struct target *target = NULL;

	for (int i = 0; i < targets->count; i++)
		if ((root == NULL) == (targets->list[i].root == NULL) &&
		    (root == NULL || strcmp(root, targets->list[i].root) == 0))
			target = &targets->list[i];
	if (target == NULL) {
		target = &targets->list[targets->count++];
		*target = (struct target){.root = root, .prefix = prefix, .paths = {.arena = targets->arena}};
	}
	string_list_add(&target->paths, path);
}

/* Returns whether the check of a dataset reads the file `below`, a path relative to the root of the dataset. */
static bool is_read(const char *below)
{
	static const char *const folders[] = {"definitions", "workloads", "truths", "approved", "solutions", "traces"};

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		size_t length = strlen(folders[i]);

		if (strncmp(below, folders[i], length) == 0 && (below[length] == '/' || below[length] == '\0'))
			return true;
	}
	return strcmp(below, ".") == 0;
}

/* Adds a folder that is in no dataset. If the folder contains problems (dataset/linked_dataset.h), adds a dataset of
 * links to these problems. Otherwise, the files of the folder are added one by one. */
static int add_folder(struct targets *targets, const char *path, struct err *err)
{
	char root[PATH_MAX];

	if (linked_dataset_has_problems(path)) {
		if (linked_dataset_make(&path, 1, root, sizeof root, err) < 0)
			return -1;
		add_path(targets, arena_string(targets->arena, root), NULL, ".");
		targets->list[targets->count - 1].linked = true;
		return 0;
	}
	struct findings unused = {.arena = targets->arena};
	struct string_list files = tree_files(AT_FDCWD, path, NULL, &unused);

	for (int i = 0; i < files.count; i++)
		add_path(targets, NULL, NULL, files.items[i]);
	findings_free(&unused);
	return files.count > 0 ? 0 : err_set(err, "%s: the folder has no file that ends in .json or .jsonl", path);
}

/* Adds a file or folder that the user named. */
static int add_operand(struct targets *targets, const char *path, struct err *err)
{
	struct arena *arena = targets->arena;
	char full[PATH_MAX], here[PATH_MAX];
	const char *below = NULL;

	if (realpath(path, full) == NULL)
		return err_errno(err, "%s: cannot check it", path);
	const char *root = dataset_around(full, &below, arena);
	bool folder = is_folder(full);

	if (!folder && tree_stem(full, ".json", arena) == NULL && tree_stem(full, ".jsonl", arena) == NULL)
		return err_set(err, "%s: expected a folder, or a file that ends in .json or .jsonl", path);
	if (root != NULL && is_read(below)) {
		bool at_root = realpath(".", here) != NULL && strcmp(here, root) == 0;

		add_path(targets, root, at_root ? NULL : strcmp(below, ".") == 0 ? path : root,
			 arena_string(arena, below));
		return 0;
	}
	const char *parent = arena_copy(arena, full, (size_t)(strrchr(full, '/') - full));

	if (!folder && linked_dataset_is_problem(parent))
		return add_folder(targets, parent, err); /* definition.json and workload.jsonl are checked together */
	if (!folder) {
		add_path(targets, NULL, NULL, path);
		return 0;
	}
	return add_folder(targets, path, err);
}

/* Finds what to check: the operands or, if there are none, the dataset that other commands would use. */
static int find_targets(struct program *program, const struct words *names, struct targets *targets, struct err *err)
{
	targets->list = arena_array(targets->arena, (size_t)names->count + 1, sizeof *targets->list);
	for (int i = 0; i < names->count; i++)
		if (add_operand(targets, names->items[i], err) != 0)
			return -1;
	if (names->count > 0)
		return 0;
	if (program_root(program, err) != 0)
		return -1;
	add_path(targets, program->root, NULL, ".");
	return 0;
}

static int check_target(const struct target *target, struct findings *findings, struct check_counts *counts,
			struct err *err)
{
	int from = findings->count;

	if (target->root == NULL) {
		for (int i = 0; i < target->paths.count; i++)
			check_file(target->paths.items[i], findings, counts);
		return 0;
	}
	if (check_dataset(target->root, findings, counts, err) != 0)
		return -1;
	findings_keep(findings, from, target->paths.items, target->paths.count);
	if (target->linked)
		findings_follow_links(findings, from, target->root);
	if (target->prefix != NULL)
		findings_prefix(findings, from, target->prefix);
	return 0;
}

/* --- the output ---------------------------------------------------------------------------------------------- */

static void print_severity(enum severity severity, bool colour)
{
	const char *on = severity == SEVERITY_ERROR ? "\033[31m" : "\033[33m";

	fputs(colour ? on : "", stdout);
	show_print(stdout, "%-5s", severity_name(severity));
	fputs(colour ? "\033[0m" : "", stdout);
}

static void print_finding(const struct finding *f, bool colour)
{
	char place[32] = "";

	if (f->column > 0)
		snprintf(place, sizeof place, ":%d:%d", f->line, f->column);
	else if (f->line > 0)
		snprintf(place, sizeof place, ":%d", f->line);
	print_severity(f->severity, colour);
	show_print(stdout, "  %s%s: %s\n", f->path, place, f->message);
}

static int count_topic(const struct findings *findings, enum topic topic)
{
	int count = 0;

	for (int i = 0; i < findings->count; i++)
		count += findings->list[i].topic == topic;
	return count;
}

static void print_text(const struct findings *findings, const struct check_counts *counts, bool verbose, bool colour)
{
	int descriptions = count_topic(findings, TOPIC_DESCRIPTION);
	bool in_one_line = !verbose && descriptions > DESCRIPTIONS_LISTED;

	for (int i = 0; i < findings->count; i++)
		if (!in_one_line || findings->list[i].topic != TOPIC_DESCRIPTION)
			print_finding(&findings->list[i], colour);
	if (in_one_line) {
		print_severity(SEVERITY_NOTE, colour);
		show_print(stdout, "  %d definitions lack descriptions of axes, inputs or outputs (-v lists them)\n", descriptions);
	}
	show_print(stdout,
		   "%d definition%s, %d workload file%s with %d line%s, %d solution%s, %d trace%s: %d error%s, %d note%s\n",
		   counts->definitions, counts->definitions == 1 ? "" : "s", counts->workload_files,
		   counts->workload_files == 1 ? "" : "s", counts->workloads, counts->workloads == 1 ? "" : "s",
		   counts->solutions, counts->solutions == 1 ? "" : "s", counts->traces, counts->traces == 1 ? "" : "s",
		   findings->errors, findings->errors == 1 ? "" : "s", findings->notes, findings->notes == 1 ? "" : "s");
}

static void put_position(struct buf *out, const char *key, int number)
{
	if (number > 0)
		buf_printf(out, ", \"%s\": %d", key, number);
	else
		buf_printf(out, ", \"%s\": null", key);
}

static void print_json(const struct findings *findings, const struct check_counts *counts, int code)
{
	struct buf out = {0};

	buf_printf(&out,
		   "{\"schema\": 1, \"summary\": {\"definitions\": %d, \"workload_files\": %d, \"workloads\": %d, "
		   "\"solutions\": %d, \"traces\": %d, \"errors\": %d, \"notes\": %d, \"exit\": %d},\n \"findings\": [",
		   counts->definitions, counts->workload_files, counts->workloads, counts->solutions, counts->traces,
		   findings->errors, findings->notes, code);
	for (int i = 0; i < findings->count; i++) {
		const struct finding *f = &findings->list[i];

		buf_printf(&out, "%s\n  {\"severity\": \"%s\", \"topic\": \"%s\", \"path\": ", i > 0 ? "," : "",
			   severity_name(f->severity), topic_name(f->topic));
		buf_json_string(&out, f->path);
		put_position(&out, "line", f->line);
		put_position(&out, "column", f->column);
		buf_text(&out, ", \"message\": ");
		buf_json_string(&out, f->message);
		buf_text(&out, "}");
	}
	buf_text(&out, "]}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

/* --- the command --------------------------------------------------------------------------------------------- */

static int exit_status(const struct findings *findings, const struct check_counts *counts)
{
	bool nothing = counts->definitions + counts->workload_files + counts->solutions + counts->traces == 0;

	return exit_status_of_group(findings->errors > 0 ? GROUP_INVALID : nothing ? GROUP_UNVERIFIED : GROUP_VERIFIED);
}

static int run(struct program *program, const struct check_options *o, const struct words *names, struct arena *arena,
	       struct err *err)
{
	struct targets targets = {.arena = arena};
	struct findings findings = {.arena = arena};
	struct check_counts counts = {0};
	int rc, code = EXIT_USAGE;

	shared_options_root(&o->shared, program);
	rc = find_targets(program, names, &targets, err);
	for (int i = 0; rc == 0 && i < targets.count; i++)
		rc = check_target(&targets.list[i], &findings, &counts, err);
	if (rc == 0) {
		findings_sort(&findings);
		code = exit_status(&findings, &counts);
		if (strcmp(o->shared.format, "json") == 0)
			print_json(&findings, &counts, code);
		else
			print_text(&findings, &counts, o->verbose, program->colour);
	}
	findings_free(&findings);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct check_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_check, argc, argv, &o)) {
		if (strcmp(o.shared.format, "text") == 0)
			fold_output();
		line.code = run(program, &o, &line.names, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_check = {
    .name = "check",
    .summary = "check files without running anything: schema, layout, tensor files, solutions, traces",
    .synopsis = "[options] [PATH…]",
    .description =
	"Checks that definitions, workloads, tensor files, solutions and traces are valid and belong together. Nothing "
	"runs, no Python is needed, and nothing is written.\n\n"
	"Each PATH is a folder, or a file that ends in .json or .jsonl, in a dataset or elsewhere. Without a PATH, the whole "
	"dataset is checked.\n\n"
	"Errors are listed before notes. A dataset without errors is valid, even if there are notes.",
    .operands = OPERANDS_FILES,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
