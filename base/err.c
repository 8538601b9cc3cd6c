#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { SHOWN_BYTES = 80 };

/* Removes a UTF-8 character that vsnprintf cut in the middle, because vsnprintf cuts at any byte. */
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

static void write_sentence(struct err *err, const char *format, va_list args)
{
	int length = vsnprintf(err->text, sizeof err->text, format, args);

	if (length >= (int)sizeof err->text)
		trim_partial_character(err->text, sizeof err->text - 1);
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

/* Returns true for C0, DEL and C1 (U+0080 to U+009F), the characters that a terminal may interpret. */
static bool is_control(const char *character, size_t length)
{
	unsigned char c = (unsigned char)character[0];

	return c < 0x20 || c == 0x7F || (length == 2 && c == 0xC2 && (unsigned char)character[1] < 0xA0);
}

struct err_shown err_show(const char *text)
{
	struct err_shown shown = {""};
	size_t left = strlen(text), length = 0;

	while (left > 0) {
		size_t step = utf8_length(text, left), width = step == 0 ? 1 : step;

		if (length + width > SHOWN_BYTES) {
			memcpy(shown.text + length, "...", sizeof "...");
			break;
		}
		if (step == 0 || is_control(text, step)) {
			shown.text[length++] = '?';
		} else {
			memcpy(shown.text + length, text, step);
			length += step;
		}
		text += width;
		left -= width;
	}
	return shown;
}

void die_no_memory(void)
{
	fputs("reftest: out of memory\n", stderr);
	exit(4);
}
