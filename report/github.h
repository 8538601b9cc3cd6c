/* github - writes GitHub workflow commands, which annotate a line of a file with a verdict. GitHub shows only ten
 * errors and ten warnings for each step of a workflow. If there are more, the tenth annotation gives the number of
 * omitted ones. */
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

/* Appends a line for each annotation, at most ANNOTATIONS errors and ANNOTATIONS warnings. The texts are escaped, so
 * that they cannot start other workflow commands. */
void annotate_write(const struct annotation *annotations, int count, struct buf *out);

#endif
