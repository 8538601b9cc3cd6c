#include "repos/checkout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/show.h"
#include "base/unsafe_character.h"
#include "git/command.h"
#include "repos/interrupted_update.h"
#include "repos/remove_tree.h"

/* The git ref that names the fetched commit. git writes it only after it has fetched all objects of the commit. */
#define FETCHED "refs/reftest/fetched"

static const char *const status_names[] = {
    [CHECKOUT_INCOMPLETE] = "incomplete", [CHECKOUT_CLONED] = "cloned", [CHECKOUT_UPDATED] = "updated",
    [CHECKOUT_CURRENT] = "current",	  [CHECKOUT_KEPT] = "kept",	[CHECKOUT_FAILED] = "failed",
};

const char *checkout_status_name(enum checkout_status status)
{
	return status_names[status];
}

enum checkout_status checkout_status_read(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof status_names / sizeof *status_names; i++)
		if (strcmp(status_names[i], name) == 0)
			return (enum checkout_status)i;
	return CHECKOUT_INCOMPLETE;
}

/* The data that all steps share. */
struct work {
	const struct checkout_request *request;
	struct git_command git;	 /* git.folder: during a clone, the partial folder; otherwise the checkout */
	const char *path, *partial;
	int lock;		 /* the locked descriptor */
	struct arena *arena;
	struct err err;		 /* why a step failed */
	bool unreachable;	 /* the repository could not be fetched */
};

/* ---- steps ------------------------------------------------------------------------------------------------------- */

#define STEP(work, ...) step(work, (const char *const[]){__VA_ARGS__, NULL})

/* Runs git. Returns 0, or -1 and sets work->err to git's message. */
static int step(struct work *work, const char *const *words)
{
	int status = git_run(&work->git, words, &work->err);

	if (status <= 0)
		return status;
	return err_set(&work->err, "git %s: %s", words[0], git_said(&work->git));
}

/* Returns the first line that git printed, allocated in the arena. */
static const char *printed(struct work *work)
{
	return arena_copy(work->arena, work->git.out.data, strcspn(work->git.out.data, "\n"));
}

/* Returns the hash of the commit that `name` refers to, or NULL. */
static const char *commit_of(struct work *work, const char *name)
{
	const char *const words[] = {"rev-parse", "--verify", "--quiet", arena_printf(work->arena, "%s^{commit}", name), NULL};

	return git_run(&work->git, words, NULL) == 0 ? printed(work) : NULL;
}

static bool has_local_changes(struct work *work)
{
	static const char *const words[] = {"status", "--porcelain", "--untracked-files=no", NULL};

	return git_run(&work->git, words, NULL) != 0 || work->git.out.length > 0;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Removes the files that a killed git process left: its locks, and unfinished packs. Call this only if reftest was
 * killed while it worked in this repository. The locks then belong to a git process that the killed reftest started.
 * That git process has ended: otherwise it would hold work->lock, and this process could not have taken the lock. */
static void remove_leftovers(struct work *work, const char *branch)
{
	static const char *const locks[] = {"index", "HEAD", "ORIG_HEAD", "config", "shallow", "packed-refs", "FETCH_HEAD", FETCHED};
	const char *packs = arena_printf(work->arena, "%s/.git/objects/pack", work->git.folder);
	DIR *folder = opendir(packs);

	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
		unlink(arena_printf(work->arena, "%s/.git/%s.lock", work->git.folder, locks[i]));
	if (branch != NULL) {
		unlink(arena_printf(work->arena, "%s/.git/refs/heads/%s.lock", work->git.folder, branch));
		unlink(arena_printf(work->arena, "%s/.git/refs/remotes/origin/%s.lock", work->git.folder, branch));
	}
	for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
		if (strncmp(entry->d_name, "tmp_", 4) == 0)
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder != NULL)
		closedir(folder);
}

/* If --lfs is given, checks before the fetch that git-lfs is installed. (git-lfs is not part of git.) */
static int check_lfs(struct work *work)
{
	static const char *const words[] = {"lfs", "version", NULL};

	if (!work->request->lfs || git_run(&work->git, words, &work->err) == 0)
		return 0;
	return err_set(&work->err, "--lfs needs the program git-lfs, which is not installed; install it and retry with `%s`", work->request->retry);
}

static int fetch_lfs(struct work *work)
{
	if (!work->request->lfs)
		return 0;
	work->git.lfs = true;
	int rc = STEP(work, "lfs", "install", "--local", "--skip-repo") < 0 || STEP(work, "lfs", "pull") < 0 ? -1 : 0;

	work->git.lfs = false;
	return rc;
}

/* ---- clone ------------------------------------------------------------------------------------------------------- */

/* Asks the server for its default branch. Returns the name without "refs/heads/", or NULL and sets work->err. */
static const char *default_branch(struct work *work)
{
	struct git_command git = {.inherited = work->lock};
	const char *const words[] = {"ls-remote", "--symref", "--", work->request->url, "HEAD", NULL};
	static const char head[] = "ref: refs/heads/";
	const char *branch = NULL;
	int status = git_run(&git, words, &work->err);

	work->unreachable = status > 0;
	if (status > 0)
		err_set(&work->err, "%s", git_said(&git));
	else if (status == 0 && strncmp(git.out.data, head, strlen(head)) == 0)
		branch = arena_copy(work->arena, git.out.data + strlen(head), strcspn(git.out.data + strlen(head), "\t\n"));
	if (status == 0 && (branch == NULL || !text_is_safe(branch))) {
		branch = NULL;
		err_set(&work->err, "the repository has no default branch");
	}
	git_command_free(&git);
	return branch;
}

static int fetch(struct work *work, const char *refspec)
{
	int rc = STEP(work, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--",
		      work->request->url, refspec);

	work->unreachable = rc < 0;
	return rc;
}

/* Configures the repository like `git clone --depth 1 --single-branch`. */
static int configure(struct work *work, const char *branch)
{
	struct arena *a = work->arena;
	const char *local = arena_printf(a, "refs/heads/%s", branch), *remote = arena_printf(a, "refs/remotes/origin/%s", branch);

	return STEP(work, "config", "remote.origin.url", work->request->url) < 0 ||
			       STEP(work, "config", "remote.origin.fetch", arena_printf(a, "+%s:%s", local, remote)) < 0 ||
			       STEP(work, "config", arena_printf(a, "branch.%s.remote", branch), "origin") < 0 ||
			       STEP(work, "config", arena_printf(a, "branch.%s.merge", branch), local) < 0 ||
			       STEP(work, "update-ref", local, FETCHED) < 0 || STEP(work, "update-ref", remote, FETCHED) < 0 ||
			       STEP(work, "symbolic-ref", "refs/remotes/origin/HEAD", remote) < 0 ||
			       STEP(work, "symbolic-ref", "HEAD", local) < 0
		       ? -1
		       : 0;
}

/* Clones into the partial folder, which may contain files of a killed process. */
static int fill_partial(struct work *work, const char *branch)
{
	struct git_command outside = {.inherited = work->lock};
	const char *const init[] = {"init", "--quiet", "--template=", "--", work->partial, NULL};
	int rc = git_run(&outside, init, &work->err);

	if (rc > 0)
		rc = err_set(&work->err, "git init: %s", git_said(&outside));
	git_command_free(&outside);
	remove_leftovers(work, branch);
	if (rc < 0 || fetch(work, arena_printf(work->arena, "+refs/heads/%s:" FETCHED, branch)) < 0 ||
	    configure(work, branch) < 0 || STEP(work, "reset", "--quiet", "--hard", FETCHED) < 0)
		return -1;
	return fetch_lfs(work);
}

/* Renames the partial folder, which is complete now, to its final name. */
static int publish(struct work *work)
{
	rmdir(work->path); /* the clone may replace an empty folder */
	if (renameat2(AT_FDCWD, work->partial, AT_FDCWD, work->path, RENAME_NOREPLACE) == 0)
		return 0;
	return err_errno(&work->err, "cannot rename %s to %s", work->partial, work->path);
}

static int clone(struct work *work, struct checkout *out)
{
	bool resumed = exists(work->partial);
	const char *branch = default_branch(work);

	work->git.folder = work->partial;
	if (branch == NULL)
		return -1;
	int rc = fill_partial(work, branch);

	/* The files that a killed process left may be damaged, so the clone starts again without them. */
	if (rc < 0 && resumed && remove_tree(work->partial, &work->err) == 0) {
		work->unreachable = false;
		rc = fill_partial(work, branch);
	}
	if (rc < 0)
		return -1;
	out->commit = commit_of(work, "HEAD");
	if (out->commit == NULL)
		return err_set(&work->err, "git finds no commit in %s", work->partial);
	out->status = CHECKOUT_CLONED;
	out->message = arena_printf(work->arena, "cloned branch %s", branch);
	return publish(work);
}

/* ---- update ------------------------------------------------------------------------------------------------------ */

/* The contents of the file .git/reftest-update, which exists during a fetch, and while the files of the commit `old`
 * are replaced by those of the commit `new`. */
struct update {
	const char *file;
	char old[80], new[80], branch[256]; /* during a fetch, `old`, `new` and `branch` are "" */
};

static int write_update(struct work *work, const struct update *update)
{
	const char *text = arena_printf(work->arena, "%s %s %s\n", update->old, update->new, update->branch);

	return file_replace(update->file, text, strlen(text), &work->err);
}

/* Returns whether reftest was killed during an update. */
static bool read_update(struct work *work, struct update *update)
{
	struct buf text = {0};
	bool killed = file_read(AT_FDCWD, update->file, 4096, &text, NULL, NULL) == FILE_OK;

	if (killed && (text.length == 0 || sscanf(text.data, "%79[0-9a-f] %79[0-9a-f] %255s", update->old, update->new, update->branch) != 3))
		update->old[0] = update->new[0] = update->branch[0] = '\0';
	buf_free(&text);
	(void)work;
	return killed;
}

/* Sets the branch, HEAD and the remote-tracking branch to the new commit, whose files are already checked out. */
static int move_branch(struct work *work, const struct update *update)
{
	const char *local = arena_printf(work->arena, "refs/heads/%s", update->branch);

	if (STEP(work, "update-ref", local, update->new) < 0 || STEP(work, "symbolic-ref", "HEAD", local) < 0 ||
	    STEP(work, "update-ref", arena_printf(work->arena, "refs/remotes/origin/%s", update->branch), update->new) < 0)
		return -1;
	return 0;
}

static bool is_one_of(const char *commit, const struct update *update)
{
	return commit != NULL && (strcmp(commit, update->old) == 0 || strcmp(commit, update->new) == 0);
}

/* Finishes an update that was interrupted because reftest was killed. Returns 0, or -1 and sets work->err if somebody
 * else changed the checkout. */
static int finish_update(struct work *work, const struct update *update)
{
	const char *local = arena_printf(work->arena, "refs/heads/%s", update->branch);

	remove_leftovers(work, update->branch[0] == '\0' ? NULL : update->branch);
	if (update->new[0] != '\0') {
		if (!is_one_of(commit_of(work, "HEAD"), update) || !is_one_of(commit_of(work, local), update))
			return err_set(&work->err, "an update was interrupted, and HEAD has moved since");
		const char *foreign = update_find_foreign_file(&work->git, update->old, update->new, work->arena);

		if (foreign != NULL)
			return err_set(&work->err, "an update was interrupted, and '%s' has changed since; undo the change, "
						   "or move the folder away",
				       foreign);
		if (STEP(work, "update-ref", local, update->new) < 0 || STEP(work, "symbolic-ref", "HEAD", local) < 0 ||
		    STEP(work, "reset", "--quiet", "--hard", update->new) < 0 || move_branch(work, update) < 0)
			return -1;
	}
	unlink(update->file);
	return 0;
}

/* Checks out the new commit. Returns -1 if git refuses this, for example because it would overwrite an untracked
 * file. */
static int replace_files(struct work *work, const struct update *update)
{
	if (write_update(work, update) < 0)
		return -1;
	if (STEP(work, "checkout", "--quiet", "--no-overwrite-ignore", "--detach", update->new) < 0) {
		if (!has_local_changes(work))
			unlink(update->file); /* git changed nothing */
		return -1;
	}
	if (move_branch(work, update) < 0 || fetch_lfs(work) < 0)
		return -1;
	unlink(update->file);
	return 0;
}

/* Returns the reason why the checkout must not be updated. If the checkout may be updated, returns NULL and sets
 * update->branch. */
static const char *why_kept(struct work *work, struct update *update)
{
	static const char *const words[] = {"symbolic-ref", "--quiet", "--short", "HEAD", NULL};

	if (git_run(&work->git, words, NULL) != 0)
		return "HEAD is detached";
	snprintf(update->branch, sizeof update->branch, "%s", printed(work));
	const char *origin = commit_of(work, arena_printf(work->arena, "refs/remotes/origin/%s", update->branch));

	if (origin == NULL || strcmp(origin, update->old) != 0)
		return arena_printf(work->arena, "the branch %s has commits of its own", update->branch);
	return has_local_changes(work) ? "it has local changes" : NULL;
}

static int update_to_fetched(struct work *work, struct update *update, struct checkout *out)
{
	const struct update fetching = {.file = update->file};

	if (write_update(work, &fetching) < 0)
		return -1;
	int rc = fetch(work, arena_printf(work->arena, "+refs/heads/%s:" FETCHED, update->branch));
	const char *fetched = rc < 0 ? NULL : commit_of(work, FETCHED);

	unlink(update->file);
	if (fetched == NULL)
		return -1;
	snprintf(update->new, sizeof update->new, "%s", fetched);
	if (strcmp(update->old, update->new) == 0) {
		out->status = CHECKOUT_CURRENT;
		out->message = arena_printf(work->arena, "branch %s is up to date", update->branch);
		return fetch_lfs(work);
	}
	if (replace_files(work, update) < 0)
		return -1;
	out->status = CHECKOUT_UPDATED;
	out->commit = arena_string(work->arena, update->new);
	out->message = arena_printf(work->arena, "updated branch %s from %.12s", update->branch, update->old);
	return 0;
}

static int update(struct work *work, struct checkout *out)
{
	struct update update = {.file = arena_printf(work->arena, "%s/.git/reftest-update", work->path)};

	work->git.folder = work->path;
	if (!is_folder(arena_printf(work->arena, "%s/.git", work->path)))
		return err_set(&work->err, "the folder exists but is not a clone; move it away, or choose another --target-dir");
	if (read_update(work, &update) && finish_update(work, &update) < 0)
		return -1;
	out->commit = commit_of(work, "HEAD");
	if (out->commit == NULL)
		return err_set(&work->err, "HEAD of the checkout points to no commit; run `git fsck` in the folder, or "
					   "move the folder away");
	update = (struct update){.file = update.file};
	snprintf(update.old, sizeof update.old, "%s", out->commit);
	const char *why = why_kept(work, &update);

	if (why == NULL)
		return update_to_fetched(work, &update, out);
	out->status = CHECKOUT_KEPT;
	out->message = arena_printf(work->arena, "%s, so the checkout was left unchanged", why);
	return 0;
}

/* ---- one repository ---------------------------------------------------------------------------------------------- */

static bool is_empty(const char *path)
{
	DIR *folder = opendir(path);
	int entries = 0;

	while (folder != NULL && entries < 3 && readdir(folder) != NULL)
		entries++;
	if (folder != NULL)
		closedir(folder);
	return folder != NULL && entries == 2; /* only "." and ".." */
}

static int make_folders(const char *path, struct arena *arena, struct err *err)
{
	char *part = arena_string(arena, path);

	for (char *at = part + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
		*at = '\0';
		mkdir(part, 0777);
	}
	return mkdir(part, 0777) == 0 || errno == EEXIST ? 0 : err_errno(err, "cannot create the folder %s", path);
}

static int take_lock(struct work *work)
{
	const char *path = arena_printf(work->arena, "%s/.%s.lock", work->request->target, work->request->name);

	work->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (work->lock < 0)
		return err_errno(&work->err, "cannot open %s", path);
	if (flock(work->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	show_print(stderr, "reftest: %s: waiting for another process that clones it\n", work->request->name);
	while (flock(work->lock, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_errno(&work->err, "cannot lock %s", path);
	return 0;
}

static const char *why_failed(struct work *work)
{
	const struct checkout_request *r = work->request;

	if (!work->unreachable)
		return arena_string(work->arena, work->err.text);
	return arena_printf(work->arena, "cannot be fetched (%s); retry with `%s`", work->err.text, r->retry);
}

struct checkout checkout_bring(const struct checkout_request *request, struct arena *arena)
{
	struct work work = {.request = request,
			    .path = arena_printf(arena, "%s/%s", request->target, request->name),
			    .partial = arena_printf(arena, "%s/.%s.partial", request->target, request->name),
			    .lock = -1,
			    .arena = arena};
	struct checkout out = {CHECKOUT_FAILED, work.path, "", ""};
	int rc = make_folders(request->target, arena, &work.err);

	if (rc == 0)
		rc = take_lock(&work);
	work.git = (struct git_command){.inherited = work.lock};
	if (rc == 0)
		rc = check_lfs(&work);
	if (rc == 0)
		rc = exists(work.path) && !is_empty(work.path) ? update(&work, &out) : clone(&work, &out);
	if (rc < 0) {
		out.status = CHECKOUT_FAILED;
		out.message = why_failed(&work);
	}
	if (out.commit == NULL)
		out.commit = "";
	if (work.lock >= 0)
		close(work.lock);
	git_command_free(&work.git);
	return out;
}
