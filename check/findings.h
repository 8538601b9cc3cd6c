/* findings - collects the errors and notes that `reftest check` reports. */
#ifndef REFTEST_CHECK_FINDINGS_H
#define REFTEST_CHECK_FINDINGS_H

#include "base/arena.h"

enum severity {
	SEVERITY_ERROR, /* the dataset is invalid */
	SEVERITY_NOTE	/* useful to know; the dataset is valid */
};

enum topic {
	TOPIC_LAYOUT,
	TOPIC_DEFINITION,
	TOPIC_DESCRIPTION, /* something has no description */
	TOPIC_WORKLOAD,
	TOPIC_BLOB,
	TOPIC_SOLUTION,
	TOPIC_TRACE,
	TOPIC_BASELINE
};

struct finding {
	enum severity severity;
	enum topic topic;
	const char *path;    /* path of the file or folder, relative to the root */
	int line, column;    /* both count from 1; 0 stands for the whole file */
	const char *message; /* one sentence; the position is not part of it */
};

struct findings {
	struct arena *arena; /* owns the messages; set by the caller */
	struct finding *list; /* findings_free frees it */
	int count, room;
	int errors, notes;
};

/* How many files were read; `workloads` and `traces` count the lines of the files. */
struct check_counts {
	int definitions, workload_files, workloads, solutions, traces;
};

const char *severity_name(enum severity severity);
const char *topic_name(enum topic topic);

/* Adds a finding about a file as a whole (`line` 0) or about one of its lines. Copies `path` and the message. */
void findings_add(struct findings *findings, enum severity severity, enum topic topic, const char *path, int line,
		  const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Adds a message from a loader in dataset/. If the message begins with "PATH:LINE:COLUMN: " or "PATH: ", this becomes
 * the position of the finding. */
void findings_add_message(struct findings *findings, enum severity severity, enum topic topic, const char *path,
			  const char *message);

/* Removes the findings whose number is `from` or higher, except those whose path is one of `paths` or is below one of
 * them. "." stands for the whole dataset. */
void findings_keep(struct findings *findings, int from, const char *const *paths, int count);

/* Puts a folder before the path of each finding whose number is `from` or higher. */
void findings_prefix(struct findings *findings, int from, const char *folder);

/* Of the findings whose number is `from` or higher, changes each whose path is a symbolic link below `root`: replaces
 * the path by the path of the link's target. */
void findings_follow_links(struct findings *findings, int from, const char *root);

/* Sorts by severity, path, line, column and message. */
void findings_sort(struct findings *findings);
void findings_free(struct findings *findings);

#endif
