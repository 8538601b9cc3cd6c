/* limits - how much of inotify a user may have, and which sysctl says so: the kernel counts in each user namespace by
 * its own user.max_inotify_*, and outside of all by fs.inotify.max_user_*; the smallest counts. Within a namespace the
 * latter can be read, but not changed. */
#ifndef REFTEST_WATCHER_LIMITS_H
#define REFTEST_WATCHER_LIMITS_H

#include <stdbool.h>

enum { LIMIT_NAME = 64 };

struct limit {
	char name[LIMIT_NAME]; /* "fs.inotify.max_user_watches" */
	long value;	       /* 0: nobody says */
	bool outside;	       /* it is changed outside of the user namespace that we are in */
};

/* `what`: "watches" or "instances". `proc`: "/proc". */
struct limit limit_of(const char *what, const char *proc);

#endif
