#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unsafe_character.h"

enum { SHOWN_BYTES = 80 };

/* Removes an incomplete UTF-8 character at the end of the text. vsnprintf leaves such a character if it cuts the
 * text. */
static void trim_partial_character(char *text, size_t length)
{
	size_t start = length;

	while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
		start--;
	if (start == 0)
		return;
	unsigned char lead = (unsigned char)text[start - 1];
	size_t need = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;

	if (length - (start - 1) < need)
		text[start - 1] = '\0';
}

/* Copies a text. Replaces unsafe characters, except newlines and tabs, by escapes. Copies at most `size` bytes. */
static void copy_safely(char *to, size_t size, const char *text)
{
	char escape[ESCAPE_MAX];
	size_t length = 0;

	for (size_t left = strlen(text), step; left > 0; text += step, left -= step) {
		step = character_escape(text, left, escape);
		bool escaped = escape[0] != '\0' && *text != '\n' && *text != '\t';
		size_t width = escaped ? strlen(escape) : step;

		if (length + width >= size)
			break;
		memcpy(to + length, escaped ? escape : text, width);
		length += width;
	}
	to[length] = '\0';
}

static void write_sentence(struct err *err, const char *format, va_list args)
{
	char text[sizeof err->text];
	int length = vsnprintf(text, sizeof text, format, args);

	if (length >= (int)sizeof text)
		trim_partial_character(text, sizeof text - 1);
	copy_safely(err->text, sizeof err->text, text);
}

int err_set(struct err *err, const char *format, ...)
{
	va_list args;

	if (err == NULL)
		return -1;
	va_start(args, format);
	write_sentence(err, format, args);
	va_end(args);
	return -1;
}

int err_errno(struct err *err, const char *format, ...)
{
	int number = errno;
	va_list args;

	if (err == NULL)
		return -1;
	va_start(args, format);
	write_sentence(err, format, args);
	va_end(args);
	size_t length = strlen(err->text);

	snprintf(err->text + length, sizeof err->text - length, ": %s", strerror(number));
	return -1;
}

struct err_shown err_show(const char *text)
{
	struct err_shown shown = {""};
	char escape[ESCAPE_MAX];

	for (size_t left = strlen(text), length = 0, step; left > 0; text += step, left -= step) {
		step = character_escape(text, left, escape);
		const char *put = escape[0] != '\0' ? escape : text;
		size_t width = escape[0] != '\0' ? strlen(escape) : step;

		if (length + width > SHOWN_BYTES) {
			memcpy(shown.text + length, "...", sizeof "...");
			break;
		}
		memcpy(shown.text + length, put, width);
		length += width;
	}
	return shown;
}

void die_no_memory(void)
{
	fputs("reftest: out of memory\n", stderr);
	exit(4);
}
