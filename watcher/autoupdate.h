/* autoupdate - updates the generated pytest files while a watcher runs: after each batch, and after a generated file
 * changes. If the dataset has no generated files, the module does nothing.
 *
 * After a change, the module waits AUTOUPDATE_REST_MS before it checks the files, for two reasons:
 * - One check is then enough for several saves in quick succession, and for the events that the watcher's own writes
 *   cause.
 * - A file's stat proves that the file is unchanged only if the stat is read some time after the last save. Without
 *   this proof, the check would have to generate all test classes of the file and compare them with the file. */
#ifndef REFTEST_WATCHER_AUTOUPDATE_H
#define REFTEST_WATCHER_AUTOUPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "dataset/dataset.h"
#include "engine/program.h"
#include "watcher/watch_output.h"

enum { AUTOUPDATE_REST_MS = 150 }; /* more than 100 ms, because testgen/update_file.c does not rely on the stat of a
				    * file that was written in the last 100 ms */

struct autoupdate {	    /* {0}: no check was made yet */
	int64_t due_ms;     /* the time of the next check; 0: no check is due, because no file changed */
	bool there;         /* whether the dataset had generated files at the last check */
	bool failed;        /* the last update failed or printed a warning */
	int unreported;	    /* the number of files that were replaced or removed since the last report of a batch */
	struct digest said; /* digest of the last check's messages; the same messages are not printed again */
};

/* Call this for each changed path, relative to the root. Returns true if the path is below tests/, so that the change
 * affects no definition. */
bool autoupdate_path_changed(struct autoupdate *autoupdate, const char *path, int64_t now_ms);

/* Returns the time of the next check, or INT64_MAX if no check is due. */
int64_t autoupdate_deadline(const struct autoupdate *autoupdate);

/* Updates the generated files for `dataset`. If `dataset` is NULL, scans the dataset first. Errors are printed. Files
 * that were replaced or removed are counted in `unreported`. */
void autoupdate_update(struct autoupdate *autoupdate, struct program *program, const struct dataset *dataset,
		       const struct watch_output *output);

/* Returns the number of files that were replaced or removed since the last call. Call this once for each batch, so that
 * the report of the batch includes the updates since the previous batch. */
int autoupdate_written(struct autoupdate *autoupdate);

/* Returns whether a check of the generated files is due, now or at autoupdate_deadline. */
bool autoupdate_is_due(const struct autoupdate *autoupdate, const char *root);

#endif
