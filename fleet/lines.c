#include "fleet/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 1 << 16 };

static void drop_used(struct lines *lines)
{
	buf_drop(&lines->buf, lines->at);
	lines->at = 0;
}

void lines_add(struct lines *lines, const void *bytes, size_t length, bool ended)
{
	drop_used(lines);
	buf_add(&lines->buf, bytes, length);
	lines->ended = lines->ended || ended;
}

int lines_fill(struct lines *lines, int fd)
{
	drop_used(lines);
	buf_reserve(&lines->buf, STEP);
	ssize_t n = read(fd, lines->buf.data + lines->buf.length, STEP);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -1;
	lines->buf.length += (size_t)n;
	lines->ended = n == 0;
	return 0;
}

/* Sets `line` to the next line of the buffer and `out` to its length. Returns LINE_TOO_LONG if the line has more than
 * `most` bytes, otherwise LINE_WHOLE. */
static enum line_kind take(struct lines *lines, size_t length, const char **line, size_t *out)
{
	bool fits = !lines->skipping && length <= lines->most;

	*line = lines->buf.data + lines->at;
	*out = length;
	lines->number += !lines->skipping;
	return fits ? LINE_WHOLE : LINE_TOO_LONG;
}

enum line_kind lines_next(struct lines *lines, const char **line, size_t *length)
{
	while (lines->at < lines->buf.length) {
		size_t left = lines->buf.length - lines->at;
		const char *from = lines->buf.data + lines->at, *feed = memchr(from, '\n', left);
		bool whole = feed != NULL || lines->ended, skipped = lines->skipping;
		size_t size = feed != NULL ? (size_t)(feed - from) : left;

		if (!whole && !skipped && size <= lines->most)
			return LINE_NONE;
		enum line_kind kind = take(lines, size, line, length);

		lines->skipping = !whole;
		lines->at += size + (feed != NULL);
		if (!skipped) /* a line that is too long is reported only once, when its first part arrives */
			return kind;
	}
	return LINE_NONE;
}

void lines_free(struct lines *lines)
{
	buf_free(&lines->buf);
}
