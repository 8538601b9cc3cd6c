/* limits - finds the inotify limit that applies to the user, and the name of the sysctl that sets it. Messages show
 * both.
 *
 * The kernel has one limit for each user namespace (user.max_inotify_*) and one outside all namespaces
 * (fs.inotify.max_user_*). The smallest limit applies. A process in a user namespace can read fs.inotify.max_user_* but
 * cannot change it. */
#ifndef REFTEST_WATCHER_FS_LIMITS_H
#define REFTEST_WATCHER_FS_LIMITS_H

#include <stdbool.h>

enum { LIMIT_NAME = 64 };

struct limit {
	char name[LIMIT_NAME]; /* the name of the sysctl, such as "fs.inotify.max_user_watches" */
	long value;	       /* the limit; 0: unknown */
	bool outside;	       /* true if the limit cannot be changed inside this process's user namespace */
};

/* Returns the inotify limit that applies to this process. `what` is "watches" or "instances". `proc` is "/proc", or
 * another directory in tests. */
struct limit limit_of(const char *what, const char *proc);

#endif
