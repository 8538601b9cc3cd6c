/* pages - is this data.mdb whole enough to be handed to LMDB?
 *
 * LMDB trusts its file: a page that holds anything but what LMDB wrote can make it abort the program, or read through a
 * wild pointer. A cache comes back from CI storage, backups and full disks, so before LMDB maps a file that it did not
 * itself leave behind, every page that can be reached is looked at here, from the outside and with bounds.
 *
 * Found: files cut short, garbage, pages of zeros or of other files, pages used twice. Not found: changed bytes in keys
 * and values, which cannot hurt LMDB and which the records' checksums show; and damage made on purpose by somebody who
 * knows this check. */
#ifndef REFTEST_CACHE_PAGES_H
#define REFTEST_CACHE_PAGES_H

#include "base/err.h"

enum pages_answer {
	PAGES_ERROR = -1,   /* could not be read; the sentence says why */
	PAGES_SOUND = 0,    /* also: a layout that this check does not know, and LMDB must judge */
	PAGES_DAMAGED = 1,  /* the sentence says what was found */
};

/* Reads by pread from the open file; nobody may write to it meanwhile. An empty file is sound: LMDB begins it. */
enum pages_answer pages_check(int fd, struct err *why);

#endif
