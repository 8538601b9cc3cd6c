/* lmdb_page_check - checks whether data.mdb is intact enough for LMDB to open it.
 *
 * LMDB does not check the file that it opens. If a page has wrong contents, LMDB may abort the program or follow a wild
 * pointer. The contents may be wrong for several reasons: the file was restored from CI storage or from a backup, it
 * was written to a full disk, or another program changed it. Before LMDB maps a file that may have changed, this module
 * therefore reads every reachable page with its own code, which checks bounds.
 *
 * The check detects truncated files, garbage, pages of zeros, pages of other files, and pages that are used twice. The
 * check does not detect changed bytes in keys and values. Changed bytes in keys and values cannot crash LMDB, and the
 * checksums of the records reveal them. An attacker can construct a file that passes the check and crashes LMDB.
 *
 * Instead of this check, a child process could let LMDB copy the file (mdb_env_copy2 with MDB_CP_COMPACT). But
 * mdb_env_copy2 does not look inside leaf pages and does not read the free list, so it accepts files on which a later
 * read or write crashes. mdb_env_copy2 is also no faster than this check. */
#ifndef REFTEST_CACHE_LMDB_PAGE_CHECK_H
#define REFTEST_CACHE_LMDB_PAGE_CHECK_H

#include "base/err.h"

enum lmdb_page_check_answer {
	LMDB_PAGE_CHECK_ERROR = -1,   /* the file could not be read; the message says why */
	/* The file is intact, or it has an unknown layout, which LMDB will report when it opens the file. */
	LMDB_PAGE_CHECK_SOUND = 0,
	LMDB_PAGE_CHECK_DAMAGED = 1,  /* the file is damaged; the message says where and how */
};

/* Reads the open file with pread; no process may write to the file during the call. An empty file counts as intact,
 * because LMDB initialises it. */
enum lmdb_page_check_answer lmdb_page_check(int fd, struct err *why);

#endif
