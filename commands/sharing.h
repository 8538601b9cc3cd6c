/* sharing - verdicts that other machines made, through the remote of $REFTEST_REMOTE (remote/place.h).
 *
 * A pass asks for what its own store does not have, for many definitions in one batch, and hands new verdicts to a
 * courier, which writes them while references run. What a remote says is believed as little as anything from outside:
 * a record must check out, be of the subject that was asked for, agree with itself, fit what was asked, and be signed
 * where $REFTEST_CACHE_KEY asks for that; then it is one stored verdict more, and the same policy decides whether it
 * counts. Whatever goes wrong is said once on standard error and changes neither a verdict nor an exit code. */
#ifndef REFTEST_COMMANDS_SHARING_H
#define REFTEST_COMMANDS_SHARING_H

#include "commands/pass.h"

struct sharing; /* opaque */

/* NULL: no remote is asked for, or it cannot be used, which has been said. Starts nothing yet. */
struct sharing *sharing_open(const struct reftest *reftest);
/* Waits, unless the run was interrupted, until new verdicts are written, within the remote's time. NULL: nothing. */
void sharing_close(struct sharing *sharing, bool interrupted);

/* Is there a case that no stored verdict decides, so that the remote is to be asked? Then the outcome waits for
 * sharing_next. */
bool sharing_defers(struct outcome *outcome);

/* The next outcome that the remote has been asked about; asks when enough of them wait or, with `all`, when any does.
 * NULL: none. */
struct outcome *sharing_next(struct pass *pass, bool all);

/* What the remote has on a subject, one after the other: begin with `after` NULL; NULL: no more. */
struct shared_verdict {
	struct digest subject;
	const struct verdict *verdict;
	struct shared_verdict *next; /* of its bucket */
};
const struct shared_verdict *sharing_verdict(const struct sharing *sharing, const struct digest *subject,
					     const struct shared_verdict *after);

/* "redis://cache.example:6379", for sentences. */
const char *sharing_shown(const struct sharing *sharing);

/* Hands the outcome's new verdicts to the remote. */
void sharing_put(struct outcome *outcome);

#endif
