#include "cli/hook_result.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/show.h"
#include "base/wrap.h"
#include "engine/ground_truths.h"
#include "engine/solution_truth.h"
#include "engine/staged_dataset.h"
#include "report/exit_status.h"
#include "report/totals.h"

/* ---- one definition ---------------------------------------------------------------------------------------------- */

static bool any_changes(struct staged *staged, const char *const *paths, int count)
{
	for (int i = 0; i < count; i++)
		if (staged_changes(staged, paths[i]))
			return true;
	return false;
}

/* Returns whether the commit adds, removes or changes a solution of the definition. */
static bool changes_solution(const struct result *result)
{
	struct arena arena = {0};
	char definition[PATH_MAX];
	const char **files;
	int count = staged_changed_files(result->run->staged, &arena, &files);
	bool found = false;

	for (int i = 0; i < count && !found; i++)
		found = solution_definition_path(files[i], definition, sizeof definition) &&
			strcmp(definition, result->file->path) == 0;
	arena_free(&arena);
	return found;
}

/* Returns whether the commit changes a file of the definition. `result` lists the tensor files. If `result` was read
 * from a stored summary, the table `files` of the cache lists them instead. */
static bool is_changed(const struct result *result)
{
	const struct run *run = result->run;
	const struct file_entry *entry = result->from_summary ? file_digests_entry(run->digests, result->file) : NULL;
	/* these paths are made from the definition's name, because a list of existing files lacks the files that the
	 * commit removes */
	char workload[sizeof "workloads//.jsonl" + 2 * NAME_MAX], truth[sizeof "truths//.py" + 2 * NAME_MAX],
	    approval[sizeof "approved//.json" + 2 * NAME_MAX];

	snprintf(workload, sizeof workload, "workloads/%s/%s.jsonl", result->file->op_type, result->file->name);
	snprintf(truth, sizeof truth, "truths/%s/%s.py", result->file->op_type, result->file->name);
	snprintf(approval, sizeof approval, "approved/%s/%s.json", result->file->op_type, result->file->name);
	if (staged_changes(run->staged, result->file->path) || staged_changes(run->staged, workload) ||
	    staged_changes(run->staged, truth) || staged_changes(run->staged, approval))
		return true;
	if (ground_truths_use_solutions(&run->machine.truths) && changes_solution(result))
		return true;
	for (int i = 0; i < result->blob_count; i++)
		if (staged_changes(run->staged, result->blobs[i].path))
			return true;
	return entry != NULL && any_changes(run->staged, entry->blobs, entry->blob_count);
}

/* Returns whether a tensor file of the definition is in the working tree or in HEAD, but not in the commit. */
static bool is_incomplete(const struct result *result)
{
	const struct run *run = result->run;

	for (int i = 0; i < result->blob_count; i++) {
		const char *path = result->blobs[i].path;
		struct object_name object;
		struct stat st;

		if (result->blobs[i].missing != NULL && staged_find(run->staged, path, &object, NULL) == STAGED_NOT &&
		    (fstatat(run->dataset.fd, path, &st, 0) == 0 || staged_changes(run->staged, path)))
			return true;
	}
	return false;
}

bool hook_result_counts(struct commit *commit, const struct result *result)
{
	if (!result->known || result->changed)
		commit->unknown++;
	if (!result->known || result->changed ||
	    exit_group_of_result(result) != GROUP_UNVERIFIED)
		return true;
	if (!is_changed(result)) {
		commit->left++;
		return false;
	}
	commit->changed++;
	commit->incomplete += is_incomplete(result);
	return true;
}

/* ---- the definitions that the commit does not change ------------------------------------------------------------- */

/* Removes from `rest` the definitions that `run` selected. `rest` and `run` list their definitions in the order of the
 * dataset. */
static void deselect(struct run *rest, const struct run *run)
{
	int kept = 0, at = 0;

	for (int i = 0; i < rest->selected_count; i++) {
		bool same = at < run->selected_count && strcmp(run->selected[at]->path, rest->selected[i]->path) == 0;

		if (same)
			at++;
		else
			rest->selected[kept++] = rest->selected[i];
	}
	rest->selected_count = kept;
}

struct unchanged_counts hook_result_unchanged(struct program *program, const struct run_options *options, const struct run *run)
{
	struct run_options look = *options;
	struct unchanged_counts out = {0};
	struct err err = {""};
	struct run rest;

	look.dry_run = look.cached_only = look.from_index = true;
	look.force = look.details = look.each = look.share = false;
	look.watcher = NULL;
	if (run_open(&rest, program, &look, &err) == 0 && run_select(&rest, NULL, 0, NULL, 0, &err) == 0) {
		if (run != NULL)
			deselect(&rest, run);
		if (run_to_end(&rest, &err) == 0) {
			const struct totals totals = totals_of(&rest);

			out.definitions = totals.definitions;
			out.unknown = totals.unknown;
			for (int s = 0; s < STATUS_COUNT; s++) {
				enum status_group group = status_group((enum status)s);

				out.failed += group > GROUP_UNVERIFIED ? totals.by_status[s] : 0;
				out.unknown += group == GROUP_UNVERIFIED && s != STATUS_CHECKED ? totals.by_status[s] : 0;
			}
			for (int kind = 0; kind < CHECKED_KINDS; kind++)
				if (exit_group(STATUS_CHECKED, (enum checked_kind)kind, rest.options->accept_bits) == GROUP_UNVERIFIED)
					out.unknown += totals.checked[kind];
		}
	}
	run_close(&rest);
	return out;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static const char *plural(int64_t count)
{
	return count == 1 ? "" : "s";
}

/* Writes the number of unverified definitions that the commit does not change, and the command that verifies them. */
static void put_left(struct buf *out, const struct commit *commit, const char *root)
{
	const int64_t count = commit->all ? commit->left : commit->unchanged.failed + commit->unchanged.unknown;
	const char *end = commit->all ? "prints the reasons" : count == 1 ? "verifies it" : "verifies them";
	bool here = strcmp(root, ".") == 0;

	if (count == 0)
		return;
	buf_printf(out, "%" PRId64 " definition%s that this commit does not change ", count, plural(count));
	if (commit->all)
		buf_text(out, "could not be verified here");
	else
		buf_text(out, count == 1 ? "is not verified" : "are not verified");
	if (!commit->all && commit->unchanged.failed > 0)
		buf_printf(out, " (%" PRId64 " failed)", commit->unchanged.failed);
	buf_printf(out, "; `reftest verify%s%s%s --changed --staged` %s\n", here ? "" : " --root '", here ? "" : root,
		   here ? "" : "'", end);
}

static void put_changed(struct buf *out, const struct commit *commit, bool refused)
{
	buf_printf(out,
		   "NOT VERIFIED: %d definition%s that this commit changes could not be verified here, for the reasons " "above",
		   commit->changed, plural(commit->changed));
	if (commit->strict)
		buf_text(out, "; because of --strict, the commit is rejected; git commit --no-verify skips this check\n");
	else
		buf_text(out, refused ? "\n" : "; the commit is allowed, so verify its changes on another machine\n");
}

int hook_result_exit_code(const struct commit *commit, const struct run *run, int code, int width)
{
	bool refused = code != EXIT_UNVERIFIED || commit->unknown > 0 || commit->incomplete > 0 ||
		       (commit->strict && commit->changed > 0);
	struct buf text = {0}, lines = {0};

	put_left(&text, commit, run->program->root);
	if (commit->changed > 0)
		put_changed(&text, commit, refused);
	if (commit->incomplete > 0)
		buf_printf(&text,
			   "for %d of these definitions, tensor files are missing from the commit: `git add` these files; if you "
			   "distribute the files in another way, let git ignore them\n",
			   commit->incomplete);
	if (run->dataset.definition_count == 0)
		buf_text(&text, "the commit contains no definitions, so there is nothing to verify\n");
	if (text.length > 0) {
		wrap_text(text.data, text.length, (size_t)width, "reftest", &lines);
		show_print(stdout, "%s", lines.data);
		fflush(stdout);
	}
	buf_free(&text);
	buf_free(&lines);
	return refused ? code : EXIT_VERIFIED;
}
