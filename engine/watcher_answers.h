/* watcher_answers - the interface through which a run asks a running watcher for the definitions that are verified. The
 * run need not check the files of the definitions that the watcher lists.
 *
 * The engine does not depend on the watcher. The command that opens a run passes an implementation of this interface
 * (watcher/client.h). */
#ifndef REFTEST_ENGINE_WATCHER_ANSWERS_H
#define REFTEST_ENGINE_WATCHER_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"

struct up_to_date_row {
	const char *path; /* the path of a verified definition */
	int cases;	  /* the number of cases of this definition, all of which passed */
};

struct up_to_date {
	/* The number of verified definitions. Before the watcher counts them, it processes all file changes that
	 * happened before the query. */
	int definitions;
	int64_t cases;
	uint64_t elements;
	const char **paths; /* the sorted paths of the definitions that are not verified; the run must check these
			     * definitions */
	int path_count;
	/* One element for each verified definition, sorted by path; NULL if not requested. */
	struct up_to_date_row *rows;
	int row_count;
};

/* Both functions return false if no watcher runs at `root`, or if the watcher and the run have different options. The
 * results are allocated in `arena`. */
struct up_to_date_calls {
	/* Asks the watcher for the definitions that are verified. `context` is the digest of everything that verdicts
	 * depend on, except files. `context` must be equal to the watcher's own digest. */
	bool (*verified)(const char *root, const struct digest *context, bool rows, struct arena *arena,
			 struct up_to_date *out);
	/* Asks the watcher for the paths of the definitions with these names ("rmsnorm_h4096",
	 * "rmsnorm/rmsnorm_h4096"). Also returns false if one of the names is unknown to the watcher. Sets only
	 * `out->paths` and `out->path_count`. */
	bool (*paths)(const char *root, const char *const *names, int count, struct arena *arena,
		      struct up_to_date *out);
};

#endif
