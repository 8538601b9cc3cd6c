#include "commands/commit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fold.h"
#include "commands/staged.h"

/* ---- one definition -------------------------------------------------------------------------------------------------
 */

/* Are any of these paths other ones than in HEAD? */
static bool any_changes(struct staged *staged, const char *const *paths, int count)
{
	for (int i = 0; i < count; i++)
		if (staged_changes(staged, paths[i]))
			return true;
	return false;
}

/* Its files, as the outcome knows them; of one that a summary answered the table of files knows the tensors. */
static bool is_changed(const struct outcome *outcome)
{
	const struct pass *pass = outcome->pass;
	const struct file_entry *entry = outcome->from_summary ? contents_entry(pass->contents, outcome->file) : NULL;
	char workload[sizeof "workloads//.jsonl" + 2 * NAME_MAX]; /* which the commit may remove */

	snprintf(workload, sizeof workload, "workloads/%s/%s.jsonl", outcome->file->op_type, outcome->file->name);
	if (staged_changes(pass->staged, outcome->file->path) || staged_changes(pass->staged, workload))
		return true;
	for (int i = 0; i < outcome->blob_count; i++)
		if (staged_changes(pass->staged, outcome->blobs[i].path))
			return true;
	return entry != NULL && any_changes(pass->staged, entry->blobs, entry->blob_count);
}

/* Would the commit be without a tensor that it could have? */
static bool is_incomplete(const struct outcome *outcome)
{
	const struct pass *pass = outcome->pass;

	for (int i = 0; i < outcome->blob_count; i++) {
		const char *path = outcome->blobs[i].path;
		struct object_name object;
		struct stat st;

		if (outcome->blobs[i].missing != NULL && staged_find(pass->staged, path, &object, NULL) == STAGED_NOT &&
		    (fstatat(pass->dataset.fd, path, &st, 0) == 0 || staged_changes(pass->staged, path)))
			return true;
	}
	return false;
}

bool commit_counts(struct commit *commit, const struct outcome *outcome)
{
	if (!outcome->known || outcome->changed)
		commit->unknown++;
	if (!outcome->known || outcome->changed || outcome->status != STATUS_SKIPPED)
		return true;
	if (!is_changed(outcome)) {
		commit->left++;
		return false;
	}
	commit->changed++;
	commit->incomplete += is_incomplete(outcome);
	return true;
}

/* ---- all of them ----------------------------------------------------------------------------------------------------
 */

static const char *plural(int count)
{
	return count == 1 ? "" : "s";
}

/* The command that tells what is only counted here. */
static void put_left(struct buf *out, const struct commit *commit, const char *root)
{
	bool here = strcmp(root, ".") == 0;

	buf_printf(out,
		   "%d definition%s that this commit leaves as %s could not be verified here; `reftest verify%s%s%s "
		   "--changed --staged` says why\n",
		   commit->left, plural(commit->left), commit->left == 1 ? "it is" : "they are", here ? "" : " --root '",
		   here ? "" : root, here ? "" : "'");
}

static void put_changed(struct buf *out, const struct commit *commit, bool refused)
{
	buf_printf(out,
		   "NOT VERIFIED: %d definition%s that this commit changes could not be verified here, for the reasons "
		   "above",
		   commit->changed, plural(commit->changed));
	if (commit->strict)
		buf_text(out, "; --strict refuses that, and git commit --no-verify goes past it\n");
	else
		buf_text(out, refused ? "\n" : "; the commit goes through, so verify elsewhere what it brings\n");
}

int commit_exit_code(const struct commit *commit, const struct pass *pass, int code, int width)
{
	bool refused = code != EXIT_UNVERIFIED || commit->unknown > 0 || commit->incomplete > 0 ||
		       (commit->strict && commit->changed > 0);
	struct buf text = {0}, lines = {0};

	if (commit->left > 0)
		put_left(&text, commit, pass->reftest->root);
	if (commit->changed > 0)
		put_changed(&text, commit, refused);
	if (commit->incomplete > 0)
		buf_printf(&text,
			   "of %d of them the commit would be without tensors that could be in it: `git add` them, or let "
			   "git ignore them if they travel by other ways\n",
			   commit->incomplete);
	if (code == EXIT_UNVERIFIED && pass->selected_count == 0)
		buf_text(&text, "the commit holds no definition, so there is nothing to verify\n");
	if (text.length > 0) {
		fold_text(text.data, text.length, (size_t)width, "reftest", &lines);
		fwrite(lines.data, 1, lines.length, stdout);
		fflush(stdout);
	}
	buf_free(&text);
	buf_free(&lines);
	return refused ? code : EXIT_VERIFIED;
}
