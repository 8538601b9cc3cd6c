#include "testgen/python_text.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* Returns the code point at `text`, which is a UTF-8 sequence of `step` bytes. */
static uint32_t code_point(const char *text, size_t step)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)text[0] & first[step];

	for (size_t i = 1; i < step; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

/* Appends the escape sequence of the character at `text`. Returns the number of bytes of this character in the text.
 * Writes invalid UTF-8, which no JSON text contains, as U+FFFD. */
static size_t escape(struct buf *out, const char *text, size_t left)
{
	size_t step = utf8_length(text, left);
	uint32_t code = step > 0 ? code_point(text, step) : 0xfffd;

	if (code == '\\')
		buf_text(out, "\\\\");
	else if (code == '\n' || code == '\r' || code == '\t')
		buf_text(out, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
	else if (code < 0x100)
		buf_printf(out, "\\x%02x", (unsigned)code);
	else if (code < 0x10000)
		buf_printf(out, "\\u%04x", (unsigned)code);
	else
		buf_printf(out, "\\U%08x", (unsigned)code);
	return step > 0 ? step : 1;
}

static bool plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '\\';
}

/* A '"' is written as a numeric escape, because `ruff format` would change "a\"b" to 'a"b'. */
void python_string(struct buf *out, const char *text)
{
	size_t length = strlen(text);

	buf_text(out, "\"");
	for (size_t i = 0; i < length;)
		if (plain(text[i]) && text[i] != '"')
			buf_add(out, text + i++, 1);
		else
			i += escape(out, text + i, length - i);
	buf_text(out, "\"");
}

/* Returns whether the quote at position i must be escaped: quotes must be escaped if three or more are in a row, or if
 * the text ends with them. */
static bool ends_literal(const char *text, size_t length, size_t i)
{
	size_t begin = i, end = i;

	while (begin > 0 && text[begin - 1] == '"')
		begin--;
	while (end < length && text[end] == '"')
		end++;
	return end - begin >= 3 || end == length;
}

static void put_quotes(struct buf *out, const char *text, size_t length, size_t *i)
{
	bool escaped = ends_literal(text, length, *i);

	for (; *i < length && text[*i] == '"'; (*i)++)
		buf_text(out, escaped ? "\\\"" : "\"");
}

void python_text(struct buf *out, const char *text, size_t length, const char *guard)
{
	size_t guarded = guard != NULL ? strlen(guard) : 0;

	buf_text(out, "\"\"\"\\\n");
	for (size_t i = 0; i < length;) {
		bool line_begins = i == 0 || text[i - 1] == '\n';

		if (guarded > 0 && line_begins && length - i >= guarded && memcmp(text + i, guard, guarded) == 0)
			i += escape(out, text + i, length - i);
		else if (text[i] == '"')
			put_quotes(out, text, length, &i);
		else if (text[i] == ' ' && (i + 1 == length || text[i + 1] == '\n'))
			i += escape(out, text + i, length - i); /* escapes a space at the end of a line, because editors
								 * remove such spaces */
		else if (text[i] == '\n' || plain(text[i]))
			buf_add(out, text + i++, 1);
		else
			i += escape(out, text + i, length - i);
	}
	buf_text(out, "\"\"\"");
}

void python_number(struct buf *out, double value)
{
	if (isnan(value)) {
		buf_text(out, "None");
	} else if (isinf(value)) {
		buf_text(out, value > 0 ? "float(\"inf\")" : "float(\"-inf\")");
	} else {
		struct buf text = {0};
		char *plus;

		buf_json_number(&text, value);
		plus = memchr(text.data, '+', text.length); /* ruff format turns 1e+06 into 1e06 */
		if (plus != NULL)
			memmove(plus, plus + 1, (size_t)(text.data + text.length - plus)); /* also moves the NUL */
		buf_text(out, text.data);
		buf_free(&text);
	}
}

void python_comment(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_add(out, *text >= 0x20 && *text < 0x7f ? text : "?", 1);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool python_nameable(const char *name)
{
	if (*name == '\0' || *name == '-')
		return false;
	for (; *name != '\0'; name++)
		if (!is_letter(*name) && !is_digit(*name) && *name != '_' && *name != '-')
			return false;
	return true;
}

void python_class_name(struct buf *out, const char *name)
{
	bool begins = true;

	for (; *name != '\0'; name++) {
		char upper = (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);

		if (is_letter(*name) || is_digit(*name))
			buf_add(out, begins ? &upper : name, 1);
		begins = !is_letter(*name) && !is_digit(*name);
	}
}
