#include "base/buf.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/unsafe_character.h"
#include "base/utf8.h"

enum { SHORTEST_DIGITS = 6 }; /* the fewest digits that shortest_number tries */

void buf_reserve(struct buf *buf, size_t more)
{
	size_t need = buf->length + more + 1;

	if (need < more)
		die_no_memory();
	if (need <= buf->room)
		return;
	size_t room = buf->room < 64 ? 64 : buf->room;

	while (room < need)
		room = room > SIZE_MAX / 2 ? need : room * 2;
	char *data = realloc(buf->data, room);

	if (data == NULL)
		die_no_memory();
	buf->data = data;
	buf->room = room;
}

void buf_add(struct buf *buf, const void *bytes, size_t length)
{
	buf_reserve(buf, length);
	if (length > 0)
		memcpy(buf->data + buf->length, bytes, length);
	buf->length += length;
	buf->data[buf->length] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;

	va_copy(again, args);
	/* A short text fits in the free space, so the first call of vsnprintf often suffices. */
	size_t room = buf->room - buf->length;
	int length = vsnprintf(room > 0 ? buf->data + buf->length : NULL, room, format, args);

	if (length > 0 && (size_t)length >= room) {
		buf_reserve(buf, (size_t)length);
		vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
	}
	if (length > 0)
		buf->length += (size_t)length;
	va_end(again);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	buf_vprintf(buf, format, args);
	va_end(args);
}

static void json_character(struct buf *buf, unsigned char c)
{
	switch (c) {
	case '"':
		buf_text(buf, "\\\"");
		break;
	case '\\':
		buf_text(buf, "\\\\");
		break;
	case '\n':
		buf_text(buf, "\\n");
		break;
	case '\t':
		buf_text(buf, "\\t");
		break;
	case '\r':
		buf_text(buf, "\\r");
		break;
	default:
		if (c < 0x20 || c == 0x7f)
			buf_printf(buf, "\\u%04x", c);
		else
			buf_add(buf, &c, 1);
	}
}

/* Writes a character above U+FFFF as a pair of surrogates. */
static void json_escape(struct buf *buf, uint32_t code)
{
	if (code >= 0x10000)
		buf_printf(buf, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((code - 0x10000) >> 10)),
		           (unsigned)(0xDC00 + (code & 0x3FF)));
	else
		buf_printf(buf, "\\u%04x", (unsigned)code);
}

/* Counts the characters at the beginning of a text that need no escape in JSON. Stops at the first character that is
 * not printable ASCII, may need an escape, or may begin a command of a CI system. */
static size_t plain_length(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && text[i] >= ' ' && text[i] <= '~' && text[i] != '"' && text[i] != '\\' && text[i] != '#' && text[i] != ':')
		i++;
	return i;
}

void buf_json_bytes(struct buf *buf, const char *text, size_t length)
{
	buf_text(buf, "\"");
	for (size_t i = 0; i < length;) {
		size_t plain = plain_length(text + i, length - i);

		buf_add(buf, text + i, plain);
		i += plain;
		if (i == length)
			break;
		size_t step = utf8_length(text + i, length - i);

		if (step == 0) {
			buf_text(buf, "\xEF\xBF\xBD");
			i++;
			continue;
		}
		uint32_t unsafe = character_unsafe(text + i, step);

		if (unsafe >= 0x80 || text_is_command(text, text + i, length - i))
			json_escape(buf, unsafe >= 0x80 ? unsafe : (unsigned char)text[i]);
		else if (step == 1)
			json_character(buf, (unsigned char)text[i]);
		else
			buf_add(buf, text + i, step);
		i += step;
	}
	buf_text(buf, "\"");
}

void buf_json_string(struct buf *buf, const char *text)
{
	buf_json_bytes(buf, text, strlen(text));
}

void buf_json_member(struct buf *buf, const char *key, const char *text)
{
	buf_printf(buf, "\"%s\": ", key);
	if (text != NULL)
		buf_json_string(buf, text);
	else
		buf_text(buf, "null");
}

void buf_json_next_member(struct buf *buf, const char *key, const char *text)
{
	buf_text(buf, ", ");
	buf_json_member(buf, key, text);
}

void buf_json_strings(struct buf *buf, const char *const *list, int count)
{
	buf_text(buf, "[");
	for (int i = 0; i < count; i++) {
		buf_text(buf, i > 0 ? ", " : "");
		buf_json_string(buf, list[i]);
	}
	buf_text(buf, "]");
}

/* Returns the number of significant digits of a number: 3 for "10200", because zeros at the beginning and at the end do
 * not count. */
static int significant_digits(const char *text)
{
	int digits = 0, last = 0;

	for (const char *at = text; *at != '\0' && *at != 'e'; at++) {
		digits += (*at >= '1' && *at <= '9') || (*at == '0' && digits > 0);
		last = *at >= '1' && *at <= '9' ? digits : last;
	}
	return last;
}

static bool reads_back(const char *text, double value)
{
	return strtod(text, NULL) == value;
}

/* Writes a finite number with the fewest digits (6 to 17) that read back as the same number. Tries 15 digits first,
 * because a double keeps every decimal number of at most 15 digits. If 15 digits read back as the same number, the
 * fewest digits are these 15 without their trailing zeros. Starts with 6 digits for a subnormal number, because a
 * subnormal double does not always keep 15 digits. */
static void shortest_number(char *text, size_t room, double value)
{
	int digits = fpclassify(value) == FP_SUBNORMAL ? SHORTEST_DIGITS : DBL_DIG;

	snprintf(text, room, "%.*g", digits, value);
	if (digits == DBL_DIG && reads_back(text, value)) {
		digits = significant_digits(text);
		if (fabs(value) >= 1e6) /* %g writes an exponent if the integer part is longer than the precision */
			snprintf(text, room, "%.*g", digits > SHORTEST_DIGITS ? digits : SHORTEST_DIGITS, value);
		return;
	}
	while (digits < DBL_DECIMAL_DIG && !reads_back(text, value))
		snprintf(text, room, "%.*g", ++digits, value);
}

void buf_json_number(struct buf *buf, double value)
{
	char text[40];

	if (isnan(value)) {
		buf_text(buf, "\"nan\"");
		return;
	}
	if (isinf(value)) {
		buf_text(buf, value > 0 ? "\"inf\"" : "\"-inf\"");
		return;
	}
	shortest_number(text, sizeof text, value);
	buf_text(buf, text);
	if (strpbrk(text, ".e") == NULL)
		buf_text(buf, ".0"); /* makes the number a float for programs that distinguish floats from integers */
}

void buf_drop(struct buf *buf, size_t count)
{
	if (count >= buf->length) {
		buf_clear(buf);
		return;
	}
	memmove(buf->data, buf->data + count, buf->length - count + 1);
	buf->length -= count;
}

void buf_clear(struct buf *buf)
{
	buf->length = 0;
	if (buf->data != NULL)
		buf->data[0] = '\0';
}

void buf_free(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){0};
}
