#include "base/wrap.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

/* Returns the number of bytes of the character or colour sequence at `text`. A colour sequence takes no column. */
static size_t step(const char *text, size_t length, size_t *columns)
{
	size_t bytes = utf8_length(text, length);

	*columns = 1;
	if (length > 1 && text[0] == '\033' && text[1] == '[') {
		bytes = 2;
		while (bytes < length && text[bytes - 1] != 'm')
			bytes++;
		*columns = 0;
	}
	return bytes > 0 ? bytes : 1;
}

/* Returns the number of bytes of the text in backticks that begins at `text`, including both backticks. Returns 0 if no
 * such text begins there. */
static size_t in_backticks(const char *text, size_t length)
{
	const char *end = text[0] == '`' ? memchr(text + 1, '`', length - 1) : NULL;

	return end != NULL ? (size_t)(end - text) + 1 : 0;
}

/* Returns the number of bytes before the line break: the whole line if it fits, otherwise the bytes up to the last
 * blank before `width`. If there is no such blank, the line breaks at the first blank after `width`. Blanks between
 * backticks do not count. */
static size_t fitting(const char *line, size_t length, size_t skip, size_t width)
{
	size_t columns = skip, blank = 0, whole_until = 0, wide;

	for (size_t at = 0; at < length;) {
		if (at >= whole_until)
			whole_until = at + in_backticks(line + at, length - at);
		if (line[at] == ' ' && at >= whole_until && at > 0 && line[at - 1] != ' ')
			blank = at;
		size_t bytes = step(line + at, length - at, &wide);

		columns += wide;
		if (columns > width && blank > 0)
			return blank;
		at += bytes;
	}
	return length;
}

static void wrap_line(const char *line, size_t length, size_t width, const char *command, struct buf *out)
{
	size_t indent = strspn(line, " ");

	if (indent >= length)
		indent = length;
	const char *at = line + indent;
	size_t rest = length - indent, name = strlen(command), skip = indent;
	bool pasted = rest > name && strncmp(at, command, name) == 0 && at[name] == ' ';

	buf_printf(out, "%*s", (int)indent, "");
	for (;;) {
		size_t fits = fitting(at, rest, skip, width - (pasted ? 2 : 0));

		buf_add(out, at, fits);
		at += fits;
		rest -= fits;
		while (rest > 0 && *at == ' ') {
			at++;
			rest--;
		}
		if (rest == 0)
			break;
		skip = indent + 2;
		buf_printf(out, "%s\n%*s", pasted ? " \\" : "", (int)skip, "");
	}
	buf_text(out, "\n");
}

void wrap_text(const char *text, size_t length, size_t width, const char *command, struct buf *out)
{
	for (size_t at = 0; at < length;) {
		const char *end = memchr(text + at, '\n', length - at);
		size_t line = end != NULL ? (size_t)(end - (text + at)) : length - at;

		wrap_line(text + at, line, width, command, out);
		at += line + 1;
	}
}
