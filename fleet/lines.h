/* lines - reads lines of bounded length from a file descriptor, for input that strangers may write. */
#ifndef REFTEST_FLEET_LINES_H
#define REFTEST_FLEET_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct lines {
	size_t most;    /* the most bytes of a line, without its LF */
	struct buf buf; /* bytes that were read; lines_free frees them */
	size_t at;      /* where the next line begins in `buf` */
	int64_t number; /* number of the line that lines_next returned last, from 1 */
	bool skipping;  /* the line was too long; its rest is skipped */
	bool ended;     /* the end of the file was reached */
};

enum line_kind {
	LINE_NONE,    /* more bytes are needed */
	LINE_WHOLE,   /* a line without its LF; a last line needs no LF */
	LINE_TOO_LONG /* a line was longer than `most`; its text is not returned */
};

/* Reads once from `fd`. Returns 0, or -1 with errno set. The end of the file is no error. A read that was interrupted,
 * or that would have to wait, is no error, either. Lines that lines_next returned earlier become invalid. */
int lines_fill(struct lines *lines, int fd);

/* Adds bytes as if they had been read. `ended`: these are the last bytes. */
void lines_add(struct lines *lines, const void *bytes, size_t length, bool ended);

/* Returns the next line. `line` points into `buf`, and is valid until the next lines_fill or lines_add. */
enum line_kind lines_next(struct lines *lines, const char **line, size_t *length);

void lines_free(struct lines *lines);

#endif
