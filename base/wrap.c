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

/* Returns the length in bytes of the text in backticks that begins at `text`, including both backticks. Returns 0 if no
 * such text begins there. */
static size_t in_backticks(const char *text, size_t length)
{
	const char *end = text[0] == '`' ? memchr(text + 1, '`', length - 1) : NULL;

	return end != NULL ? (size_t)(end - text) + 1 : 0;
}

static size_t blanks_at(const char *text, size_t length)
{
	size_t count = 0;

	while (count < length && text[count] == ' ')
		count++;
	return count;
}

/* Returns the width in columns of the text before its first two adjacent blanks. */
static size_t column_width(const char *text, size_t length)
{
	size_t columns = 0, wide;

	for (size_t at = 0; at < length && blanks_at(text + at, length - at) < 2; columns += wide)
		at += step(text + at, length - at, &wide);
	return columns;
}

/* A word of a line. Text in backticks and the characters that touch it form one word. */
struct word {
	size_t at;     /* where the search for the next word begins */
	size_t gap;    /* number of blanks before the word */
	size_t begins; /* the column where the word begins */
	size_t columns;
};

/* Before the first call, `word` must be {0}. Returns false after the last word. */
static bool next_word(const char *line, size_t length, struct word *word)
{
	size_t whole_until = 0, wide;

	word->begins += word->columns;
	word->gap = word->columns = 0;
	while (word->at < length) {
		if (word->at >= whole_until)
			whole_until = word->at + in_backticks(line + word->at, length - word->at);
		bool blank = line[word->at] == ' ' && word->at >= whole_until;

		if (blank && word->columns > 0)
			return true;
		word->at += step(line + word->at, length - word->at, &wide);
		word->gap += blank;
		word->begins += blank;
		word->columns += blank ? 0 : wide;
	}
	return word->columns > 0;
}

/* Returns the indentation of continuation lines. Two or more blanks separate the columns of a table. In a row of a
 * table, continuation lines begin below a column of the row: the last column that begins in the left two fifths of
 * `width` and leaves enough room for the longest word of the row. */
static size_t continuation_indent(const char *line, size_t length, size_t indent, size_t width)
{
	size_t longest = 0, hang = 0;

	for (struct word word = {0}; next_word(line, length, &word);)
		longest = word.columns > longest ? word.columns : longest;
	for (struct word word = {0}; next_word(line, length, &word);)
		if (word.gap > 1 && word.begins > indent && word.begins <= width * 2 / 5 && word.begins + longest <= width)
			hang = word.begins;
	return hang > 0 ? hang : indent + 2;
}

/* Returns the number of bytes before the line break. If the whole line fits, returns `length`. Otherwise the line
 * breaks at the last blank before `width`. A row of a table breaks before the last column that begins before `width`,
 * if the text of this column fits into one line. If there is no blank before `width`, the line breaks at the first
 * blank after `width`. The line never breaks between two backticks or before the column `indent`. */
static size_t fitting(const char *line, size_t length, size_t skip, size_t width, size_t indent)
{
	size_t columns = skip, blank = 0, column = 0, whole_until = 0, wide;

	for (size_t at = 0; at < length;) {
		size_t blanks = at > 0 && line[at - 1] != ' ' ? blanks_at(line + at, length - at) : 0;

		if (at >= whole_until)
			whole_until = at + in_backticks(line + at, length - at);
		if (blanks > 0 && at >= whole_until && columns + blanks > indent) {
			blank = at;
			column = blanks > 1 ? at : column;
		}
		size_t bytes = step(line + at, length - at, &wide);

		columns += wide;
		if (columns > width && blank > 0) {
			const char *next = line + column + blanks_at(line + column, length - column);

			return column > 0 && indent + column_width(next, (size_t)(line + length - next)) <= width ? column : blank;
		}
		at += bytes;
	}
	return length;
}

static void wrap_line(const char *line, size_t length, size_t width, const char *command, struct buf *out)
{
	size_t indent = blanks_at(line, length);
	const char *at = line + indent;
	size_t rest = length - indent, name = strlen(command), skip = indent;
	bool pasted = rest > name && strncmp(at, command, name) == 0 && at[name] == ' ';
	size_t next = pasted ? indent + 2 : continuation_indent(line, length, indent, width);

	buf_printf(out, "%*s", (int)indent, "");
	for (;;) {
		size_t fits = fitting(at, rest, skip, width - (pasted ? 2 : 0), next);

		buf_add(out, at, fits);
		at += fits;
		rest -= fits;
		size_t blanks = blanks_at(at, rest);

		at += blanks;
		rest -= blanks;
		if (rest == 0)
			break;
		skip = next;
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
