/* annotate - verdicts as GitHub workflow commands: a remark at the line of a file. GitHub shows ten errors and ten
 * warnings of a step and drops the rest, so the tenth says how many more there are. */
#ifndef REFTEST_ARTIFACTS_ANNOTATE_H
#define REFTEST_ARTIFACTS_ANNOTATE_H

#include <stdbool.h>

#include "base/buf.h"

enum { ANNOTATIONS = 10 };

struct annotation {
	bool error;	  /* else a warning */
	const char *path; /* from the root of the repository */
	int line;	  /* 0: unknown */
	const char *title, *message;
};

/* Appends a line for each, at most ANNOTATIONS of errors and as many of warnings. No text can begin a command of its
 * own. */
void annotate_write(const struct annotation *annotations, int count, struct buf *out);

#endif
