/* flight - the subjects that are being run right now: a case whose subject is in the air already waits for that answer
 * instead of running again (a definition copied under another name, a workload line with the axes of a size). */
#ifndef REFTEST_COMMANDS_FLIGHT_H
#define REFTEST_COMMANDS_FLIGHT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/hash.h"

struct outcome;

struct passenger {
	struct outcome *outcome;
	int case_index;
	struct passenger *next; /* who waits for the same subject; NULL: nobody more */
};

struct flight {
	struct digest subject;
	struct passenger first; /* the case that runs; the others hang behind it */
	struct flight *next;
};

enum { FLIGHT_BUCKETS = 1024 };

struct flights {
	struct flight *bucket[FLIGHT_BUCKETS]; /* {0}: none in the air */
};

/* true: nobody runs this subject yet, so this case is to. false: it now waits behind the one that does. */
bool flight_board(struct flights *flights, const struct digest *subject, struct outcome *outcome, int case_index,
                  struct arena *arena);

/* Takes a case out of its flight. Was it the one that runs, the next who waits has its place and is returned: it is to
 * run now. NULL: nobody has to. */
const struct passenger *flight_leave(struct flights *flights, const struct digest *subject,
                                     const struct outcome *outcome, int case_index);

/* The subject has landed: gives its passengers, the one that ran first; NULL if it was not in the air. */
const struct passenger *flight_land(struct flights *flights, const struct digest *subject);

#endif
