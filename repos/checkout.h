/* checkout - clones one repository into a folder, or updates the checkout in this folder.
 *
 * A clone is made in the folder `.NAME.partial` beside the final folder. The folder is renamed when everything is
 * checked out, so that the final folder never contains an incomplete clone. If this process is killed, the next call
 * continues in the partial folder, and does not repeat a complete download.
 *
 * An update never touches local changes. A checkout is updated only if HEAD is on the cloned branch, the branch has no
 * local commits, and no tracked file differs from HEAD. Untracked files are safe, because git refuses to overwrite
 * them. While files are replaced, the file `.git/reftest-update` names the old and the new commit. If this process is
 * killed during that time, the next call finishes the update. The call fails if a file then differs from both its old
 * and its new version, because somebody else must have changed it.
 *
 * During a clone or an update, the file `.NAME.lock` is locked. The git processes also hold this lock, because they may
 * end a moment after this process. */
#ifndef REFTEST_REPOS_CHECKOUT_H
#define REFTEST_REPOS_CHECKOUT_H

#include <limits.h>
#include <stdbool.h>

#include "base/arena.h"

enum checkout_status {
	CHECKOUT_INCOMPLETE, /* the clone or update has not ended, or its process was killed */
	CHECKOUT_CLONED,
	CHECKOUT_UPDATED, /* the files come from a newer commit */
	CHECKOUT_CURRENT, /* there was nothing newer */
	CHECKOUT_KEPT,	  /* not updated: it has local changes, is on another branch, or was not cloned by reftest */
	CHECKOUT_FAILED	  /* nothing was cloned or updated; if there is an older checkout, `commit` is its commit */
};

/* The next two functions convert between a status and its name in repos_config.json. checkout_status_read returns
 * CHECKOUT_INCOMPLETE for an unknown name. */
const char *checkout_status_name(enum checkout_status status);
enum checkout_status checkout_status_read(const char *name);

struct checkout_request {
	const char *name;   /* name of the folder; contains no '/' */
	const char *url;
	const char *target; /* absolute path of the folder in which the checkout is made; created if it is missing */
	const char *retry;  /* the command that the user can repeat if the server cannot be reached */
	bool lfs;	    /* also fetch the contents that Git LFS stores */
};

struct checkout {
	enum checkout_status status;
	const char *path;    /* absolute */
	const char *commit;  /* the full name of the commit that is checked out; "" if there is none */
	const char *message; /* one sentence */
};

/* Clones the repository or updates its checkout. The strings in the result are allocated in `arena`. */
struct checkout checkout_bring(const struct checkout_request *request, struct arena *arena);

#endif
