#include "dataset/entry_point.h"

#include <ctype.h>
#include <string.h>

static const char run_name[] = "run", reference_suffix[] = "_reference";

/* --- statements at top level --------------------------------------------------------------------------------- */

struct scanner {
	const char *at, *end;
	int line, depth; /* depth: the number of open brackets */
	int unclosed_line;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_newline(char c)
{
	return c == '\n' || c == '\r';
}

/* Skips a newline: "\n", "\r\n" or "\r". */
static void skip_newline(struct scanner *s)
{
	s->at += s->at[0] == '\r' && s->end - s->at > 1 && s->at[1] == '\n' ? 2 : 1;
	s->line++;
}

/* Skips a string from its first quote to its last. A string in single quotes ends at the end of its line, as Python
 * would report it, so that the scan finds what follows. */
static void skip_string(struct scanner *s)
{
	char quote = *s->at;
	bool triple = s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote;
	int line = s->line;

	s->at += triple ? 3 : 1;
	while (s->at < s->end) {
		if (*s->at == '\\' && s->end - s->at > 1 && !is_newline(s->at[1])) {
			s->at += 2;
		} else if (*s->at == '\\' && s->end - s->at > 1) {
			s->at++;
			skip_newline(s);
		} else if (is_newline(*s->at) && !triple) {
			return;
		} else if (is_newline(*s->at)) {
			skip_newline(s);
		} else if (*s->at == quote && (!triple || (s->end - s->at >= 3 && s->at[1] == quote && s->at[2] == quote))) {
			s->at += triple ? 3 : 1;
			return;
		} else {
			s->at++;
		}
	}
	if (triple)
		s->unclosed_line = line;
}

/* If the text begins with the whole word `word`, returns the position after the word and the blanks that follow it;
 * otherwise returns NULL. */
static const char *after_word(const char *at, const char *end, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(end - at) < length || memcmp(at, word, length) != 0)
		return NULL;
	at += length;
	if (at < end && is_word(*at))
		return NULL;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* Returns true if the text begins with a word that never begins a line within brackets. A bracket before it has no
 * partner, and Python reports that later. */
static bool begins_definition(const char *at, const char *end)
{
	return after_word(at, end, "def") != NULL || after_word(at, end, "class") != NULL || (at < end && *at == '@');
}

/* Skips the rest of a statement with its newline, and continued lines. */
static void skip_statement(struct scanner *s)
{
	while (s->at < s->end) {
		char c = *s->at;

		if (c == '"' || c == '\'') {
			skip_string(s);
			continue;
		}
		if (is_newline(c)) {
			skip_newline(s);
			if (s->depth == 0 || begins_definition(s->at, s->end))
				break;
			continue;
		}
		if (c == '#') {
			while (s->at < s->end && !is_newline(*s->at))
				s->at++;
			continue;
		}
		s->depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
		s->depth = s->depth < 0 ? 0 : s->depth;
		s->at++;
		if (c == '\\' && s->at < s->end && is_newline(*s->at))
			skip_newline(s);
	}
	s->depth = 0;
}

/* Returns the next statement that begins at column 0, up to the end of its first line, or NULL at the end. */
static const char *next_statement(struct scanner *s, const char **line_end)
{
	while (s->at < s->end) {
		const char *begin = s->at, *end = begin;
		bool statement = is_word(*begin) || *begin == '@';

		while (end < s->end && !is_newline(*end))
			end++;
		skip_statement(s);
		*line_end = end;
		if (statement)
			return begin;
	}
	return NULL;
}

/* --- what a statement defines -------------------------------------------------------------------------------- */

/* Returns true if the line contains the whole word "run". `assigned` says whether a '=' follows the word. */
static bool has_run(const char *line, const char *end, bool *assigned)
{
	size_t length = (size_t)(end - line);

	for (size_t i = 0; i + 3 <= length; i++)
		if (memcmp(line + i, run_name, 3) == 0 && (i == 0 || !is_word(line[i - 1])) &&
		    (i + 3 == length || !is_word(line[i + 3]))) {
			*assigned = memchr(line + i, '=', length - i) != NULL;
			return true;
		}
	return false;
}

/* Returns true if the statement may define `run` in the module. If in doubt, returns true: if run() is then missing,
 * running the reference reports it. */
static bool defines_run(const char *line, const char *end)
{
	const char *async = after_word(line, end, "async"), *start = async != NULL ? async : line;
	const char *def = after_word(start, end, "def"), *class = after_word(start, end, "class"),
		   *name = def != NULL ? def : class;
	bool assigned = false, run = has_run(line, end, &assigned);

	if (name != NULL)
		return after_word(name, end, run_name) != NULL;
	if (after_word(line, end, "from") != NULL || after_word(line, end, "import") != NULL)
		return run || memchr(line, '*', (size_t)(end - line)) != NULL ||
		       memchr(line, '(', (size_t)(end - line)) != NULL;
	return run && assigned;
}

static size_t word_length(const char *at, const char *end)
{
	size_t length = 0;

	while (at + length < end && is_word(at[length]))
		length++;
	return length;
}

/* Returns true for a name of ASCII characters that ends with "_reference". */
static bool is_reference_name(const char *name, size_t length)
{
	size_t suffix = sizeof reference_suffix - 1;

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] >= 0x80)
			return false;
	return length > suffix && !isdigit((unsigned char)*name) &&
	       memcmp(name + length - suffix, reference_suffix, suffix) == 0;
}

bool definition_entry_point(const char *source, size_t size, struct entry_point *out)
{
	struct scanner scanner = {.at = source, .end = source + size, .line = 1};
	struct entry_point first = {0}, reference = {0};
	const char *statement, *end;

	while ((statement = next_statement(&scanner, &end)) != NULL) {
		const char *name = after_word(statement, end, "def");
		size_t length = name != NULL ? word_length(name, end) : 0;

		if (defines_run(statement, end)) {
			*out = (struct entry_point){.name = run_name, .length = strlen(run_name)};
			return true;
		}
		if (length > 0 && first.name == NULL)
			first = (struct entry_point){.name = name, .length = length};
		if (length > 0 && is_reference_name(name, length))
			reference = (struct entry_point){.name = name, .length = length};
	}
	*out = reference.name != NULL ? reference : first;
	out->unclosed_line = scanner.unclosed_line;
	return reference.name != NULL;
}
