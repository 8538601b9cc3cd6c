/* trust - may LMDB be handed this data.mdb as it is?
 *
 * It may if it is as a process like this one left it: `clean`, a file beside it, holds its stat. It may if another
 * process has the environment open right now: that one asked the same question. Otherwise every page is looked at
 * (cache/pages.h), some milliseconds for a large store. What is at stake is a crash, never a wrong verdict: records
 * have checksums. */
#ifndef REFTEST_CACHE_TRUST_H
#define REFTEST_CACHE_TRUST_H

#include <stdbool.h>

#include "base/err.h"

enum trust_answer {
	TRUST_ERROR = -1,   /* it cannot be read; the sentence says why */
	TRUST_NOTHING = 0,  /* there is none, or an empty file */
	TRUST_KNOWN = 1,    /* as it was left, or in use */
	TRUST_CHECKED = 2,  /* every page was looked at */
	TRUST_DAMAGED = 3,  /* the sentence says what was found */
};

/* `folder`: the environment's. Not while this process has it open: closing any descriptor of lock.mdb would drop the
 * locks that LMDB holds for the whole process. */
enum trust_answer trust_data(const char *folder, struct err *why);

/* Has a process the environment open? Under the same condition. */
bool trust_in_use(const char *folder);

/* Writes `clean`, after this process has committed or checked, and closed. Best effort: without it the next process
 * looks at every page. */
void trust_leave(const char *folder);

#endif
