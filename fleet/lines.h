/* lines - reads lines of bounded length from a file descriptor, for input that strangers may write. */
#ifndef REFTEST_FLEET_LINES_H
#define REFTEST_FLEET_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct lines {
	size_t most;    /* the maximum length of a line in bytes, without its LF */
	struct buf buf; /* the bytes that were read; lines_free frees them */
	size_t at;      /* the offset in `buf` where the next line begins */
	int64_t number; /* the number of the line that lines_next returned last; the first line has number 1 */
	bool skipping;  /* whether the present line was too long, so that its rest is skipped */
	bool ended;     /* whether the end of the file was reached */
};

enum line_kind {
	LINE_NONE,    /* more bytes are needed */
	LINE_WHOLE,   /* a complete line, without its LF; the last line of the file needs no LF */
	LINE_TOO_LONG /* a line was longer than `most`; its text is not returned */
};

/* Reads once from `fd`. Returns 0, or -1 with errno set. Returns 0 also at the end of the file, and if the read was
 * interrupted or would have to wait (EINTR, EAGAIN). Lines that lines_next returned earlier become invalid. */
int lines_fill(struct lines *lines, int fd);

/* Adds bytes as if they had been read. `ended` says whether these bytes are the last ones. */
void lines_add(struct lines *lines, const void *bytes, size_t length, bool ended);

/* Returns the next line. `line` points into `buf`, and is valid until the next lines_fill or lines_add. */
enum line_kind lines_next(struct lines *lines, const char **line, size_t *length);

void lines_free(struct lines *lines);

#endif
