/* integrity - checks data.mdb before LMDB opens it, unless the file is known to be intact.
 *
 * LMDB may open data.mdb if the inode, size and timestamps of data.mdb are the ones recorded in the file `clean` in the
 * same folder. Each process of this program writes `clean` when it closes data.mdb. LMDB may also open data.mdb if
 * another process has data.mdb open, because that process has already checked the file. In all other cases, every page
 * is checked (cache/lmdb_page_check.h). For a large store, this check takes some milliseconds. Damage that the check
 * misses can crash the process. Such damage cannot give a wrong verdict, because every record has a checksum. */
#ifndef REFTEST_CACHE_INTEGRITY_H
#define REFTEST_CACHE_INTEGRITY_H

#include <stdbool.h>

#include "base/err.h"

enum integrity {
	INTEGRITY_ERROR = -1,   /* data.mdb cannot be read; the message says why */
	INTEGRITY_NOTHING = 0,  /* data.mdb does not exist, or is empty */
	INTEGRITY_KNOWN = 1,    /* no check was needed, because data.mdb is unchanged, or is open in another process */
	INTEGRITY_CHECKED = 2,  /* every page was checked */
	INTEGRITY_DAMAGED = 3,  /* data.mdb is damaged; the message says where and how */
};

/* Checks the environment in `folder`. This process must not have the environment open, because closing any descriptor
 * of lock.mdb releases the locks that LMDB holds for the whole process. */
enum integrity integrity_check(const char *folder, struct err *why);

/* Returns true if another process has the environment open. This process must not have the environment open (see
 * integrity_check). */
bool integrity_in_use(const char *folder);

/* Writes `clean`. If this process has written to data.mdb or checked its pages, it calls this function after it has
 * closed data.mdb. Ignores errors: without `clean`, the next process checks every page, which costs only time. */
void integrity_mark_clean(const char *folder);

#endif
