#include "base/screen.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/unsafe_character.h"

int screen_columns(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int screen_rows(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

bool screen_in_background(int fd)
{
	pid_t foreground = tcgetpgrp(fd);

	return foreground > 0 && foreground != getpgrp();
}

void screen_line_add(struct screen_line *line, const char *text)
{
	char escape[ESCAPE_MAX];

	for (size_t left = strlen(text), step; left > 0 && line->used < line->room; text += step, left -= step) {
		step = character_escape(text, left, escape);
		size_t width = escape[0] != '\0' ? strlen(escape) : step, columns = escape[0] != '\0' ? width : 1;

		if (line->length + width + 16 > sizeof line->text || line->used + (int)columns > line->room)
			return;
		memcpy(line->text + line->length, escape[0] != '\0' ? escape : text, width);
		line->length += width;
		line->used += (int)columns;
	}
}

void screen_line_colour(struct screen_line *line, const char *escape_sequence)
{
	size_t length = strlen(escape_sequence);

	if (line->length + length + 16 <= sizeof line->text) {
		memcpy(line->text + line->length, escape_sequence, length);
		line->length += length;
	}
}

/* Erases the rows one by one. A single "erase to the end of the screen" would be shorter, but some terminals then keep
 * a copy of the rows in their scrollback. */
void screen_erase(const int *drawn, int count, int columns, struct buf *out)
{
	int rows = 0;

	for (int i = 0; i < count; i++)
		rows += drawn[i] > columns ? (drawn[i] + columns - 1) / columns : 1;
	for (int i = 1; i < rows; i++)
		buf_text(out, "\033[2K\033[A");
	if (rows > 0)
		buf_text(out, "\r\033[2K");
}
