/* github - writes GitHub workflow commands, which annotate a line of a file with a verdict. GitHub shows only ten
 * errors and ten warnings for each step of a workflow, so the tenth annotation gives the number of omitted
 * annotations. */
#ifndef REFTEST_REPORT_GITHUB_H
#define REFTEST_REPORT_GITHUB_H

#include <stdbool.h>

#include "base/buf.h"

enum { ANNOTATIONS = 10 };

struct annotation {
	bool error;	  /* false: a warning */
	const char *path; /* path of the file, relative to the root of the repository */
	int line;	  /* 0: unknown */
	const char *title, *message;
};

/* Appends one line for each annotation: at most ANNOTATIONS errors and ANNOTATIONS warnings. The text of an annotation
 * is escaped, so that it cannot start another workflow command. */
void annotate_write(const struct annotation *annotations, int count, struct buf *out);

#endif
