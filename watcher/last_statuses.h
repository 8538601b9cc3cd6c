/* last_statuses - the table of all definitions that a watcher knows, with the last status of each. From this table, the
 * watcher computes the answers to queries (watcher/query.c), the status line (watcher/tty.c) and its exit status. */
#ifndef REFTEST_WATCHER_LAST_STATUSES_H
#define REFTEST_WATCHER_LAST_STATUSES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/hash.h"
#include "dataset/verdict.h"

enum { STATUS_TABLE_BUCKETS = 4096 };

struct last_status {
	enum status status;
	enum reason reason;
	enum checked_kind checked; /* the kind of checked definition, if the status is STATUS_CHECKED */
	/* The watcher may answer a query with this status. False if the definition did not pass, if a run without the
	 * watcher would not take every verdict from the store, or if there are findings, which no answer lists. */
	bool answers;
	uint32_t cases;
	uint64_t elements;
	int64_t batch;	      /* the number of the batch that reported this status; 0: the status was never reported */
	struct digest inputs; /* digest of the verified file contents; zeros: unknown */
};

struct status_row {
	struct status_row *next;
	bool known; /* true if `last` is up to date; false while the definition is being verified */
	struct last_status last;
	char path[]; /* a path such as "definitions/rmsnorm/rmsnorm_h4096.json" */
};

struct last_statuses { /* {0}: an empty table */
	struct status_row *bucket[STATUS_TABLE_BUCKETS];
	int count, known;
	int by_status[STATUS_COUNT]; /* for each status, the number of entries whose status is known */
	int64_t checked[CHECKED_KINDS]; /* the number of definitions with STATUS_CHECKED, by kind */
	int answering;			/* the number of entries with last_status.answers, whose status is known */
	int64_t answered_cases;		/* the number of cases, summed over these entries */
	uint64_t answered_elements;
};

/* Returns the entry of the definition at `path`, or NULL if there is none. */
const struct status_row *last_statuses_find(struct last_statuses *table, const char *path);
void last_statuses_set(struct last_statuses *table, const char *path, const struct last_status *last);
/* Marks the status of the definition at `path` as not known. If the definition has no entry, adds one. */
void last_statuses_invalidate(struct last_statuses *table, const char *path);
/* Removes the entry of `path`. Returns false if there was no such entry. */
bool last_statuses_forget(struct last_statuses *table, const char *path);

/* Each of the following functions allocates a sorted list in `arena` and returns the number of its elements. */

/* Sets last_status.answers of all entries to false. */
void last_statuses_stop_answering(struct last_statuses *table);

/* Lists the paths of all entries except those that are known to have passed. */
int last_statuses_unverified(const struct last_statuses *table, struct arena *arena, const char ***paths);

/* Lists the paths of all entries except those with last_status.answers, whose status is known. */
int last_statuses_unanswered(const struct last_statuses *table, struct arena *arena, const char ***paths);

/* Lists the paths of the entries whose status is known to be failed, error or invalid. */
int last_statuses_failed(const struct last_statuses *table, struct arena *arena, const char ***paths);

/* Lists the entries with last_status.answers, whose status is known, in the order of their paths. The pointers are
 * valid until the table changes. */
int last_statuses_answering(const struct last_statuses *table, struct arena *arena, const struct status_row ***entries);

/* Lists the paths that start with `prefix`. */
int last_statuses_paths(const struct last_statuses *table, const char *prefix, struct arena *arena, const char ***paths);
void last_statuses_free(struct last_statuses *table);

#endif
