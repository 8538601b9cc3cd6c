/* checkout - clones one repository into a folder, or updates the checkout that is there.
 *
 * A clone is made in the folder `.NAME.partial` beside the final one, which is renamed when everything is checked out.
 * A folder with the final name is therefore never half a clone. If this process is killed, the next call continues in
 * the partial folder: a download that was complete is not repeated.
 *
 * An update never touches local changes. It happens only if HEAD is the branch that was cloned, has no commits of its
 * own, and no tracked file differs from it; git refuses to overwrite untracked files. While files are replaced, the
 * file `.git/reftest-update` names both commits. If this process is killed then, the next call finishes the update,
 * unless a file has contents that neither commit explains.
 *
 * The file `.NAME.lock` is locked meanwhile, also by git's own processes, which may live a moment longer than this
 * one. */
#ifndef REFTEST_REPOS_CHECKOUT_H
#define REFTEST_REPOS_CHECKOUT_H

#include <limits.h>
#include <stdbool.h>

#include "base/arena.h"

enum checkout_status {
	CHECKOUT_INCOMPLETE, /* not finished yet, or the process was killed */
	CHECKOUT_CLONED,
	CHECKOUT_UPDATED, /* the files are those of a newer commit */
	CHECKOUT_CURRENT, /* there was nothing newer */
	CHECKOUT_KEPT,	  /* left as it is: local changes, another branch, not a clone of reftest's */
	CHECKOUT_FAILED	  /* nothing was cloned or updated; an older checkout may be there, with its commit */
};

/* Names as repos_config.json has them. checkout_status_read returns CHECKOUT_INCOMPLETE for an unknown name. */
const char *checkout_status_name(enum checkout_status status);
enum checkout_status checkout_status_read(const char *name);

struct checkout_request {
	const char *name;   /* of the folder; contains no '/' */
	const char *url;
	const char *target; /* the folder that will contain it; an absolute path; created if it is missing */
	const char *retry;  /* the command that the user can enter again if the server cannot be reached */
	bool lfs;	    /* also fetch the contents that Git LFS stores */
};

struct checkout {
	enum checkout_status status;
	const char *path;    /* absolute */
	const char *commit;  /* the full name of the commit that is checked out; "" if there is none */
	const char *message; /* one sentence */
};

/* Does what the request asks. Everything in the result is allocated in `arena`. */
struct checkout checkout_bring(const struct checkout_request *request, struct arena *arena);

#endif
