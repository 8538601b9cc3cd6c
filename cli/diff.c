/* diff - compares references with their versions in a commit (engine/base_references.h). The two versions of a
 * reference run on the same inputs. Nothing is stored. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdlib.h>
#include <string.h>

#include "cli/shared_options.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "engine/base_references.h"
#include "engine/file_digests.h"
#include "engine/run.h"
#include "report/behaviour_diff.h"

static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_DEVICE,
    ROW_PYTHON,
    ROW_SIZES,
    ROW_NO_WORKLOADS,
    ROW_SEED,
    ROW_JOBS,
    ROW_TIMEOUT,
    ROW_MEMORY,
    ROW_REQUIRE_CONTAINMENT,
    {"--format", OPTION_CHOICE, SHARED(format), "F", "text|json|github", "output format (default: text)"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

struct diff {
	struct repository repository;
	const char *commit;
	struct git_files changed; /* paths of definitions that differ from the commit */
	struct base_references base;
	struct differences found;
	struct arena *arena;
};

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Removes all paths except the paths of definitions. Sorts the paths and removes duplicates. */
static void keep_definitions(struct git_files *files)
{
	int count = 0, kept = 0;

	for (int i = 0; i < files->count; i++) {
		const char *path = files->list[i], *dot = strrchr(path, '.');

		if (strncmp(path, "definitions/", strlen("definitions/")) == 0 && dot != NULL && strcmp(dot, ".json") == 0)
			files->list[count++] = path;
	}
	qsort(files->list, (size_t)count, sizeof *files->list, compare_paths);
	for (int i = 0; i < count; i++)
		if (kept == 0 || strcmp(files->list[kept - 1], files->list[i]) != 0)
			files->list[kept++] = files->list[i];
	files->count = kept;
}

/* Finds the commit, the definitions that have changed since the commit, and their references in the commit. */
static int find_base(struct program *program, const char *base, struct diff *diff, struct err *err)
{
	if (repository_find(program->root, &diff->repository, err) < 0 ||
	    git_merge_base(&diff->repository, base, diff->arena, &diff->commit, err) < 0 ||
	    git_changed_files(&diff->repository, diff->commit, diff->arena, &diff->changed, err) < 0)
		return -1;
	keep_definitions(&diff->changed);
	return base_references_read(&diff->repository, diff->commit, &diff->changed, diff->arena, &diff->base, err);
}

static void add(struct diff *diff, enum behaviour behaviour, const char *path, const struct result *result, const char *why)
{
	diff->found.items[diff->found.count++] = (struct difference){behaviour, path, result, why};
}

/* Adds a difference for the definition of `result`. */
static void add_result(struct diff *diff, const struct result *result)
{
	const struct base_reference *base = base_reference_find(&diff->base, result->file->path);

	if (base == NULL)
		add(diff, BEHAVIOUR_ADDED, result->file->path, NULL, NULL);
	else if (base->trouble != NULL)
		add(diff, BEHAVIOUR_UNKNOWN, result->file->path, NULL,
		    arena_printf(diff->arena, "the earlier version of the definition cannot run: %s", base->trouble));
	else
		add(diff, behaviour_of(result), result->file->path, result, NULL);
}

static bool is_selected(const struct run *run, const char *path)
{
	for (int i = 0; i < run->selected_count; i++)
		if (strcmp(run->selected[i]->path, path) == 0)
			return true;
	return false;
}

/* Returns whether the definition on the disk has the same schema and code as in the commit. If other members differ,
 * sets `*what` to a list of these members; otherwise sets it to NULL. */
static bool same_code(const struct run *run, const struct dataset_file *file, const struct base_reference *base,
		      const char **what, struct arena *arena)
{
	struct file_digests *digests = run->digests;
	struct stat_check check = {.read = false};
	struct buf bytes = {0};
	struct err why = {""};
	const struct definition *now = NULL;

	if (base->trouble == NULL &&
	    file_digests_check(digests, file, DEFINITION_BYTES, true, &bytes, &check, &why) == 0)
		now = definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, arena, &why);
	buf_free(&bytes);
	*what = NULL;
	if (now == NULL || now->entry_point == NULL || !base_reference_same_code(now, base->definition, arena))
		return false;
	const char *members = base_reference_other_members(now, base->definition, arena);

	if (*members != '\0')
		*what = arena_printf(arena, "%s changed", members);
	return true;
}

/* Deselects the definitions that need not run: unchanged definitions, added definitions, and definitions whose code is
 * the same in the commit. Adds a difference for each added definition, and for each changed definition whose code is
 * the same as in the commit. */
static void drop_those_that_need_not_run(struct run *run, struct diff *diff)
{
	int kept = 0;

	for (int i = 0; i < run->selected_count; i++) {
		const struct dataset_file *file = run->selected[i];
		const char *const path = file->path;
		const struct base_reference *base = base_reference_find(&diff->base, path);
		const char *what;

		if (bsearch(&path, diff->changed.list, (size_t)diff->changed.count, sizeof *diff->changed.list,
			    compare_paths) == NULL)
			continue;
		if (base == NULL)
			add(diff, BEHAVIOUR_ADDED, path, NULL, NULL);
		else if (same_code(run, file, base, &what, diff->arena))
			add(diff, BEHAVIOUR_TEXT, path, NULL, what);
		else
			run->selected[kept++] = file;
	}
	run->selected_count = kept;
}

/* Adds a difference for each definition that exists only in the commit. The caller calls this function only if the user
 * named no definitions. */
static void add_deleted(const struct run *run, struct diff *diff)
{
	for (int i = 0; i < diff->base.count; i++)
		if (!is_selected(run, diff->base.items[i].path))
			add(diff, BEHAVIOUR_DELETED, diff->base.items[i].path, NULL, NULL);
}

static int compare_differences(const void *a, const void *b)
{
	const struct difference *one = a, *other = b;

	return one->behaviour != other->behaviour ? (int)one->behaviour - (int)other->behaviour
						  : strcmp(one->path, other->path);
}

static int run_and_report(struct run *run, const struct shared_options *o, const struct words *names, struct diff *diff,
			  struct err *err)
{
	struct differences *found = &diff->found;

	if (run_select(run, names->items, names->count, NULL, 0, err) < 0)
		return EXIT_USAGE;
	*found = (struct differences){run->program->root, diff->commit, diff->repository.prefix,
				      arena_array(diff->arena, (size_t)(run->selected_count + diff->base.count),
						  sizeof *found->items), 0};
	if (names->count == 0)
		add_deleted(run, diff);
	drop_those_that_need_not_run(run, diff);
	if (run_to_end(run, err) < 0)
		return EXIT_INTERNAL;
	for (int i = 0; i < run->count; i++)
		add_result(diff, run->results[i]);
	qsort(found->items, (size_t)found->count, sizeof *found->items, compare_differences);
	if (strcmp(o->format, "json") == 0)
		behaviour_print_json(found);
	else if (strcmp(o->format, "github") == 0)
		behaviour_print_github(found);
	else
		behaviour_print(found);
	return run->interrupted ? EXIT_INTERRUPTED : behaviour_exit_status(found);
}

/* The first operand is the commit; the others are names of definitions. */
static int run(struct program *program, const struct shared_options *o, const struct words *operands, struct arena *arena,
	       struct err *err)
{
	struct diff diff = {.arena = arena};
	struct run_options options;
	struct words names = {.items = operands->count > 1 ? operands->items + 1 : NULL,
			      .count = operands->count > 1 ? operands->count - 1 : 0};
	struct run run;

	if (shared_options_read(o, program, &options, err) < 0)
		return EXIT_USAGE;
	options.force = options.details = options.each = true;
	options.base = &diff.base;
	options.ground_truth = "builtin";
	if (program_root(program, err) < 0 ||
	    find_base(program, operands->count > 0 ? operands->items[0] : "HEAD", &diff, err) < 0)
		return EXIT_USAGE;
	int code = run_open(&run, program, &options, err);

	if (code == 0)
		code = run_and_report(&run, o, &names, &diff, err);
	run_close(&run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (command_line_begin(&line, &command_diff, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.arena, &line.err);
	return command_line_end(&line);
}

const struct command command_diff = {
    .name = "diff",
    .summary = "compare the outputs of references before and after a change",
    .synopsis = "[options] [BASE [NAME…]]",
    .description =
	"For each changed definition, runs two references on the same inputs: the current reference, and the reference in the "
	"merge base of BASE and HEAD. Prints whether their outputs differ. BASE is a commit or a branch (default: HEAD). NAME "
	"is the name of a definition, `op_type/name`, or a pattern with `*`.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
