#include "cli/hook_result.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/show.h"
#include "base/wrap.h"
#include "engine/staged_dataset.h"
#include "report/exit_status.h"

/* ---- one definition ---------------------------------------------------------------------------------------------- */

/* Returns whether the commit changes any of these paths. */
static bool any_changes(struct staged *staged, const char *const *paths, int count)
{
	for (int i = 0; i < count; i++)
		if (staged_changes(staged, paths[i]))
			return true;
	return false;
}

/* Returns whether the commit changes files of the definition. `result` lists these files; if the result comes from a
 * stored summary, the files table of the cache lists the tensors. */
static bool is_changed(const struct result *result)
{
	const struct run *run = result->run;
	const struct file_entry *entry = result->from_summary ? file_state(run->states, result->file) : NULL;
	/* may be files that the commit removes */
	char workload[sizeof "workloads//.jsonl" + 2 * NAME_MAX], truth[sizeof "truths//.py" + 2 * NAME_MAX];

	snprintf(workload, sizeof workload, "workloads/%s/%s.jsonl", result->file->op_type, result->file->name);
	snprintf(truth, sizeof truth, "truths/%s/%s.py", result->file->op_type, result->file->name);
	if (staged_changes(run->staged, result->file->path) || staged_changes(run->staged, workload) ||
	    staged_changes(run->staged, truth))
		return true;
	for (int i = 0; i < result->blob_count; i++)
		if (staged_changes(run->staged, result->blobs[i].path))
			return true;
	return entry != NULL && any_changes(run->staged, entry->blobs, entry->blob_count);
}

/* Returns whether the commit lacks a tensor file of the definition that is in the working tree or in HEAD. */
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
	    exit_group(result->status, result->run->options->accept_checked) != GROUP_UNVERIFIED)
		return true;
	if (!is_changed(result)) {
		commit->left++;
		return false;
	}
	commit->changed++;
	commit->incomplete += is_incomplete(result);
	return true;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static const char *plural(int count)
{
	return count == 1 ? "" : "s";
}

/* Writes the number of unverified definitions that the commit does not change, and the command that lists them. */
static void put_left(struct buf *out, const struct commit *commit, const char *root)
{
	bool here = strcmp(root, ".") == 0;

	buf_printf(out,
		   "%d definition%s that this commit does not change could not be verified here; `reftest "
		   "verify%s%s%s --changed --staged` prints the reasons\n",
		   commit->left, plural(commit->left), here ? "" : " --root '",
		   here ? "" : root, here ? "" : "'");
}

static void put_changed(struct buf *out, const struct commit *commit, bool refused)
{
	buf_printf(out,
		   "NOT VERIFIED: %d definition%s that this commit changes could not be verified here, for the reasons " "above",
		   commit->changed, plural(commit->changed));
	if (commit->strict)
		buf_text(out, "; --strict rejects the commit, and git commit --no-verify skips this check\n");
	else
		buf_text(out, refused ? "\n" : "; the commit is allowed, so verify its changes on another machine\n");
}

int hook_result_exit_code(const struct commit *commit, const struct run *run, int code, int width)
{
	bool refused = code != EXIT_UNVERIFIED || commit->unknown > 0 || commit->incomplete > 0 ||
		       (commit->strict && commit->changed > 0);
	struct buf text = {0}, lines = {0};

	if (commit->left > 0)
		put_left(&text, commit, run->program->root);
	if (commit->changed > 0)
		put_changed(&text, commit, refused);
	if (commit->incomplete > 0)
		buf_printf(&text,
			   "for %d of them, tensor files are missing from the commit: `git add` these files, or let "
			   "git ignore them if you distribute them in another way\n",
			   commit->incomplete);
	if (code == EXIT_UNVERIFIED && run->selected_count == 0)
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
