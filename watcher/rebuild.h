/* rebuild - watches the sources below kernels/ in the checkout in which this program was built, and runs make when one
 * of them changes. If make builds a new program or library, `watch` must restart.
 *
 * A verdict is stored with a digest of the kernel sources, which is compiled into the kernels library. If this program
 * loaded the new library, it would store verdicts of its own old code with the digest of the new sources. Therefore
 * `watch` replaces its process by the new program. After the restart, only the cases of the changed op family run
 * again. */
#ifndef REFTEST_WATCHER_REBUILD_H
#define REFTEST_WATCHER_REBUILD_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "watcher/fs/watcher.h"
#include "workers/pool/process.h"

enum { REBUILD_PRODUCTS = 3 };

struct rebuild {
	struct watcher *watcher; /* watches the sources; NULL: this program is not in the build/ of a checkout */
	struct process make;
	int make_output;  /* a descriptor of the file to which make writes its output; -1: there is no file */
	bool wanted; /* a source changed after make was last started, so make must run again */
	char folder[4096];
	struct stat before[REBUILD_PRODUCTS]; /* the stats of the built files before make was started; zeros: there was
					       * no such file */
};

void rebuild_open(struct rebuild *rebuild);
void rebuild_close(struct rebuild *rebuild);

int rebuild_fd(const struct rebuild *rebuild);	    /* returns the watcher's descriptor; -1: there is none */
int rebuild_make_fd(const struct rebuild *rebuild); /* returns a descriptor that becomes readable when make ends; -1:
						     * make is not running */
int64_t rebuild_deadline(const struct rebuild *rebuild);

enum rebuild_news {
	REBUILD_NOTHING,
	REBUILD_MAKING, /* make has started */
	REBUILD_FAILED, /* make failed, and `err` contains the end of its output */
	REBUILD_SAME,	/* make has succeeded without a change of the program or a library */
	REBUILD_NEW	/* make has built a new program or library, so `watch` must restart */
};
enum rebuild_news rebuild_turn(struct rebuild *rebuild, int64_t now_ms, struct err *err);

#endif
