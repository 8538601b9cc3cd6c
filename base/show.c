#include "base/show.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unsafe_character.h"

void show_add(struct buf *out, const char *text, size_t length)
{
	char escape[ESCAPE_MAX];

	for (size_t i = 0, step; i < length; i += step) {
		bool kept = text[i] == '\n' || text[i] == '\t';

		step = character_escape(text + i, length - i, escape);
		if (text_is_command(text, text + i, length - i))
			snprintf(escape, sizeof escape, "\\x%02x", (unsigned)(unsigned char)text[i]);
		if (escape[0] != '\0' && !kept)
			buf_text(out, escape);
		else
			buf_add(out, text + i, step);
	}
}

void show_print(FILE *out, const char *format, ...)
{
	struct buf text = {0}, shown = {0};
	va_list args;

	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	if (text.length > 0) {
		show_add(&shown, text.data, text.length);
		fwrite(shown.data, 1, shown.length, out);
	}
	buf_free(&text);
	buf_free(&shown);
}

bool show_reader_gone(FILE *out)
{
	struct pollfd pipe_end = {.fd = fileno(out)};

	return ferror(out) && poll(&pipe_end, 1, 0) == 1 && (pipe_end.revents & (POLLERR | POLLHUP)) != 0;
}

bool show_is_screen(int fd)
{
	const char *terminal = getenv("TERM");

	return isatty(fd) && terminal != NULL && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}
