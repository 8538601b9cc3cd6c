/* lines - reads lines of bounded length from a file descriptor, for input that strangers may write. */
#ifndef REFTEST_FLEET_LINES_H
#define REFTEST_FLEET_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct lines {
	size_t most;    /* the largest number of bytes in a line, without its LF */
	struct buf buf; /* bytes that were read; lines_free frees them */
	size_t at;      /* where the next line begins in `buf` */
	int64_t number; /* number (from 1) of the line that lines_next returned last */
	bool skipping;  /* the line was too long; its rest is skipped */
	bool ended;     /* the end of the file was reached */
};

enum line_kind {
	LINE_NONE,    /* more bytes are needed */
	LINE_WHOLE,   /* a whole line is returned, without its LF; the last line of the input may lack the LF */
	LINE_TOO_LONG /* a line was longer than `most`; its text is not returned */
};

/* Reads once from `fd`. Returns 0, or -1 with errno set. The end of the file is not an error. A read that was
 * interrupted (EINTR) or would block (EAGAIN) is not an error, either. Lines that lines_next returned earlier become
 * invalid. */
int lines_fill(struct lines *lines, int fd);

/* Adds bytes as if lines_fill had read them. `ended` is true if these bytes are the last ones. */
void lines_add(struct lines *lines, const void *bytes, size_t length, bool ended);

/* Returns the next line. `line` points into `buf`, and is valid until the next lines_fill or lines_add. */
enum line_kind lines_next(struct lines *lines, const char **line, size_t *length);

void lines_free(struct lines *lines);

#endif
