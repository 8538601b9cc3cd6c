/* python_normal_form - computes the normal form of Python source from its tokens.
 *
 * The normal form begins with 'T'. The text of each token follows, each with a NUL after it. One-byte marks represent
 * the end of a logical line, an INDENT and a DEDENT. Tokens never contain a NUL and never start with a mark, so there
 * is only one way to divide a normal form into tokens.
 *
 * Two sources with the same normal form have the same meaning, because Python's compiler sees only the tokens, and not
 * the space between them. If different versions of Python (from 3.8 on) may find different tokens in a text, the
 * tokeniser of this file rejects the text. The normal form is then the text itself (a "raw" form). A text is accepted
 * under these conditions:
 *   - a name directly before a quote must be a string prefix, and a number must not be followed directly by a letter,
 *     a digit or a quote;
 *   - bytes above 127 are accepted only in strings and comments, and must be valid UTF-8, because Python rejects a file
 *     that is not UTF-8;
 *   - the braces of an f-string must balance. There must be no quote, backslash or '#' between the braces, because an
 *     f-string with one of these characters may end elsewhere in Python 3.12 than in earlier versions;
 *   - a line that continues after a backslash must not be empty, and a backslash must not begin a line;
 *   - a text must not declare its encoding ("coding:").
 *
 * Docstrings: a docstring is the first statement of a module, or of the block of a def or class, and consists only of
 * plain strings. A docstring generates no code except the value of __doc__, so the normal form omits it. A dataclass
 * without a docstring executes more code, which makes one from the defaults of its fields; therefore a text that uses
 * dataclasses has a raw form. A docstring with an escape is kept, because a malformed escape is a syntax error. Other
 * strings are kept, even if they have no effect. If a string is kept although it is at the position of a docstring, a
 * special mark ends its line. Without the mark, two texts with different docstrings would have the same form: a text
 * with only the line ("a"), and a text with the lines "b" and ("a"). The docstring of the first text is "a". The
 * docstring of the second text is "b", which the form omits.
 *
 * Introspection: comments, docstrings and line numbers matter to code that can read them. Such code uses inspect,
 * frames, tracebacks, __doc__, code objects, a compiler that reads source (torch.jit, triton), or a name computed at
 * run time (getattr, vars, exec). The lists in python_dependencies.c contain names that give code no access to its own
 * comments, docstrings or line numbers. A text with any other name has a raw form. */
#include "cache/python_normal_form.h"

#include <string.h>

#include "base/utf8.h"
#include "cache/python_dependencies.h"

/* CPython rejects deeper nesting (tokenizer.c: MAXLEVEL, MAXINDENT). */
enum { BRACKETS_MAX = 200, INDENTS_MAX = 100 };

enum {
	MARK_INDENT = 1,
	MARK_DEDENT = 2,
	MARK_FIRST = 3, /* ends a line of strings that was not omitted, although it is at the position of a docstring */
	MARK_LINE = '\n',
};

struct scan {
	const char *at, *end;
	struct buf *out;
	char closing[BRACKETS_MAX]; /* for each open bracket, the character that must close it */
	int open;
	size_t indent[INDENTS_MAX]; /* widths; indent[0] is 0 */
	int level;
	bool in_line; /* true after the first token of a logical line */

	/* State of the logical line that is being read. */
	size_t line_start;  /* position in `out` where the line starts */
	int tokens;         /* number of tokens in the line */
	bool maybe_doc;     /* the line starts with a string or a parenthesis */
	bool only_strings;  /* all tokens are plain strings without escapes, so the line has no effect */
	bool defines;       /* the line starts with def, class or async def */
	bool after_async;   /* the only token of the line is `async` */
	bool after_colon;   /* the last token of the line is ':' */

	bool block_next; /* if the next line is indented, it opens the block of a def or class */
	bool doc_place;  /* a docstring may come next: a line that consists only of strings */
};

struct span {
	const char *text;
	size_t length;
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool span_is(struct span span, const char *word)
{
	return strlen(word) == span.length && memcmp(word, span.text, span.length) == 0;
}

/* --- Characters -------------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
	return is_name_start(c) || is_digit(c);
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

static char peek(const struct scan *s, size_t ahead)
{
	return ahead < (size_t)(s->end - s->at) ? s->at[ahead] : '\0';
}

/* Returns true if the source is valid UTF-8 and contains no control characters other than newline and tab. */
static bool text_is_plain(const char *source, size_t length)
{
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)source[i];
		size_t step = utf8_length(source + i, length - i);

		if (step == 0 || c == 0x7F || (c < 0x20 && c != '\n' && c != '\t'))
			return false;
		i += step;
	}
	return true;
}

/* Returns true if one of the first two lines contains "coding:" or "coding=" (PEP 263). */
static bool declares_coding(const char *source, size_t length)
{
	const char *end = source + length, *line = source;

	for (int i = 0; i < 2 && line < end; i++) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t size = (size_t)((stop != NULL ? stop : end) - line);

		if (memmem(line, size, "coding:", 7) != NULL || memmem(line, size, "coding=", 7) != NULL)
			return true;
		line += size + 1;
	}
	return false;
}

/* --- Lines ------------------------------------------------------------------------------------------------------- */

static void mark(struct scan *s, char which)
{
	buf_add(s->out, &which, 1);
}

/* Appends a token to the form. */
static void emit(struct scan *s, struct span token, bool plain_string)
{
	static const char nul;

	if (s->tokens == 0)
		s->maybe_doc = token.text[0] == '(' || is_quote(token.text[token.length - 1]);
	s->only_strings = plain_string && (s->tokens == 0 || s->only_strings);
	s->after_colon = token.length == 1 && token.text[0] == ':';
	s->defines = s->tokens == 0 ? span_is(token, "def") || span_is(token, "class")
	                            : s->defines || (s->tokens == 1 && s->after_async && span_is(token, "def"));
	s->after_async = s->tokens == 0 && span_is(token, "async");
	s->tokens++;
	buf_add(s->out, token.text, token.length);
	buf_add(s->out, &nul, 1);
}

static void line_begin(struct scan *s)
{
	s->in_line = true;
	s->line_start = s->out->length;
	s->tokens = 0;
	s->maybe_doc = s->only_strings = false;
	s->defines = s->after_async = s->after_colon = false;
}

/* Ends the logical line at a newline outside brackets, or at the end of the text. */
static void line_end(struct scan *s)
{
	if (s->doc_place && s->only_strings)
		s->out->length = s->line_start;
	else
		mark(s, s->doc_place && s->maybe_doc ? MARK_FIRST : MARK_LINE);
	s->block_next = s->defines && s->after_colon;
	s->doc_place = false;
	s->in_line = false;
}

/* Updates the stack of open indentations for a line that is indented by `width`. */
static bool indent_to(struct scan *s, size_t width)
{
	if (width > s->indent[s->level]) {
		if (s->level + 1 == INDENTS_MAX)
			return false;
		s->indent[++s->level] = width;
		mark(s, MARK_INDENT);
		s->doc_place = s->block_next;
	}
	s->block_next = false;
	while (width < s->indent[s->level]) {
		s->level--;
		mark(s, MARK_DEDENT);
	}
	return width == s->indent[s->level];
}

static void skip_comment(struct scan *s)
{
	const char *stop = memchr(s->at, '\n', (size_t)(s->end - s->at));

	s->at = stop != NULL ? stop : s->end;
}

/* Reads the indentation at the first column: skips a blank line, or begins a logical line. */
static bool scan_indentation(struct scan *s)
{
	size_t width = 0;

	while (peek(s, width) == ' ')
		width++;
	s->at += width;
	if (peek(s, 0) == '#')
		skip_comment(s);
	if (s->at == s->end)
		return true;
	if (*s->at == '\n') {
		s->at++;
		return true;
	}
	if (*s->at == '\t' || *s->at == '\\' || !indent_to(s, width))
		return false;
	line_begin(s);
	return true;
}

/* Reads a backslash. The backslash must end its line, and the next line must not be empty. */
static bool scan_continuation(struct scan *s)
{
	if (peek(s, 1) != '\n')
		return false;
	s->at += 2;
	while (peek(s, 0) == ' ' || peek(s, 0) == '\t')
		s->at++;
	return s->at < s->end && *s->at != '\n' && *s->at != '#';
}

/* --- Strings ----------------------------------------------------------------------------------------------------- */

struct string {
	char quote;
	bool triple, raw, bytes, braces; /* braces: the string is an f-string or a t-string */
	bool escapes;                    /* the string contains a backslash and is not raw */
	int depth;                       /* depth of nested braces */
};

/* Reads the letters before a quote. Returns false if no version of Python 3 accepts these letters as a string
 * prefix. */
static bool string_prefix(struct span prefix, struct string *string)
{
	static const char *const prefixes[] = {"", "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt"};
	char lower[2];

	if (prefix.length > sizeof lower)
		return false;
	for (size_t i = 0; i < prefix.length; i++)
		lower[i] = (char)(prefix.text[i] | 0x20);
	for (size_t i = 0; i < COUNT(prefixes); i++) {
		const char *known = prefixes[i];

		if (strlen(known) == prefix.length && memcmp(known, lower, prefix.length) == 0) {
			string->raw = strchr(known, 'r') != NULL;
			string->bytes = strchr(known, 'b') != NULL;
			string->braces = strpbrk(known, "ft") != NULL;
			return true;
		}
	}
	return false;
}

/* Reads a brace of an f-string, or one character between its braces. */
static bool scan_brace(struct scan *s, struct string *string)
{
	char c = *s->at;

	if (string->depth == 0 && peek(s, 1) == c) { /* {{ and }} are literal braces */
		s->at += 2;
		return true;
	}
	s->at++;
	if (c == '{')
		string->depth++;
	else if (c == '}')
		string->depth--;
	return string->depth >= 0 && !is_quote(c) && c != '\\' && c != '#' && (c != '\n' || string->triple);
}

/* In a string, a backslash escapes the next character, even a quote. */
static bool scan_escape(struct scan *s, struct string *string)
{
	char next = peek(s, 1);

	if (s->end - s->at < 2 || (string->braces && (next == '{' || next == '}')))
		return false;
	string->escapes = !string->raw;
	s->at += 2;
	return true;
}

static bool at_closing(const struct scan *s, const struct string *string)
{
	char quote = string->quote;

	return *s->at == quote && (!string->triple || (peek(s, 1) == quote && peek(s, 2) == quote));
}

/* Reads a string from its opening quote to its closing quote. */
static bool scan_quoted(struct scan *s, struct string *string)
{
	string->quote = *s->at;
	string->triple = peek(s, 1) == string->quote && peek(s, 2) == string->quote;
	s->at += string->triple ? 3 : 1;
	while (s->at < s->end) {
		char c = *s->at;

		if (string->braces && (string->depth > 0 || c == '{' || c == '}')) {
			if (!scan_brace(s, string))
				return false;
		} else if (c == '\\') {
			if (!scan_escape(s, string))
				return false;
		} else if (at_closing(s, string)) {
			s->at += string->triple ? 3 : 1;
			return true;
		} else if (c == '\n' && !string->triple) {
			return false;
		} else {
			s->at++;
		}
	}
	return false;
}

/* Reads a string whose prefix begins at `start`; s->at is at the opening quote. */
static bool scan_string(struct scan *s, const char *start)
{
	struct string string = {0};

	if (!string_prefix((struct span){start, (size_t)(s->at - start)}, &string) ||
	    !scan_quoted(s, &string))
		return false;
	struct span token = {start, (size_t)(s->at - start)};

	emit(s, token, !string.bytes && !string.braces && !string.escapes);
	return true;
}

/* --- Names, numbers, operators ----------------------------------------------------------------------------------- */

static bool scan_name(struct scan *s)
{
	const char *start = s->at;

	while (s->at < s->end && is_name(*s->at))
		s->at++;
	struct span name = {start, (size_t)(s->at - start)};

	if (is_quote(peek(s, 0)))
		return scan_string(s, start);
	emit(s, name, false);
	return true;
}

static bool is_digit_of(char c, int base)
{
	char lower = (char)(c | 0x20);

	return base == 16 ? is_digit(c) || (lower >= 'a' && lower <= 'f') : c >= '0' && c < '0' + base;
}

/* Skips digits, which may have single underscores between them. If `underscore_first` is true, an underscore may also
 * precede the first digit. */
static const char *skip_digits(const char *at, const char *end, int base, bool underscore_first)
{
	bool may_underscore = underscore_first;

	while (at < end) {
		if (may_underscore && *at == '_' && at + 1 < end && is_digit_of(at[1], base))
			at++;
		if (!is_digit_of(*at, base))
			break;
		at++;
		may_underscore = true;
	}
	return at;
}

static void skip_decimal(struct scan *s)
{
	s->at = skip_digits(s->at, s->end, 10, false);
	if (peek(s, 0) == '.')
		s->at = skip_digits(s->at + 1, s->end, 10, false);
	if ((peek(s, 0) | 0x20) == 'e') {
		size_t sign = peek(s, 1) == '+' || peek(s, 1) == '-';

		if (is_digit(peek(s, 1 + sign)))
			s->at = skip_digits(s->at + 1 + sign, s->end, 10, false);
	}
	if ((peek(s, 0) | 0x20) == 'j')
		s->at++;
}

static bool scan_number(struct scan *s)
{
	const char *start = s->at;
	char kind = (char)(peek(s, 1) | 0x20);
	int base = *start != '0' ? 10 : kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;

	if (base == 10)
		skip_decimal(s);
	else
		s->at = skip_digits(start + 2, s->end, base, true);
	if (is_name(peek(s, 0)) || is_quote(peek(s, 0)))
		return false;
	emit(s, (struct span){start, (size_t)(s->at - start)}, false);
	return true;
}

/* Returns true if `c` is in `set` and is not NUL. */
static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* Returns the length of the longest operator that begins here by Python's rules, or 0 if no operator begins here. */
static size_t operator_length(const struct scan *s)
{
	char first = *s->at, second = peek(s, 1), third = peek(s, 2);

	if (first == '.' && second == '.' && third == '.')
		return 3;
	if (first == second && is_one_of(first, "*/<>"))
		return third == '=' ? 3 : 2;
	if ((second == '=' && is_one_of(first, "+-*/%@&|^<>=!:")) || (second == '>' && is_one_of(first, "-<")))
		return 2;
	return is_one_of(first, "()[]{},:;.=+-*/%@&|^~<>");
}

/* Opens or closes a bracket. Returns false if the brackets do not match, or are nested too deeply. */
static bool bracket(struct scan *s, char c)
{
	char closing = c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '\0';

	if (closing != '\0') {
		if (s->open == BRACKETS_MAX)
			return false;
		s->closing[s->open++] = closing;
		return true;
	}
	if (c == ')' || c == ']' || c == '}')
		return s->open > 0 && s->closing[--s->open] == c;
	return true;
}

static bool scan_operator(struct scan *s)
{
	size_t length = operator_length(s);

	if (length == 0 || !bracket(s, *s->at))
		return false;
	emit(s, (struct span){s->at, length}, false);
	s->at += length;
	return true;
}

/* --- The text ---------------------------------------------------------------------------------------------------- */

static bool scan_newline(struct scan *s)
{
	s->at++;
	if (s->open == 0)
		line_end(s);
	return true;
}

/* Reads one token, or the space between two tokens. */
static bool scan_inside_line(struct scan *s)
{
	char c = *s->at;

	if (c == ' ' || c == '\t') {
		s->at++;
		return true;
	}
	if (c == '\n')
		return scan_newline(s);
	if (c == '#') {
		skip_comment(s);
		return true;
	}
	if (c == '\\')
		return scan_continuation(s);
	if (is_quote(c))
		return scan_string(s, s->at);
	if (is_name_start(c))
		return scan_name(s);
	if (is_digit(c) || (c == '.' && is_digit(peek(s, 1))))
		return scan_number(s);
	return scan_operator(s);
}

/* Writes the tokens of the text. Returns false if Python's tokeniser may find other tokens; the form is then the source
 * text itself. */
static bool scan_text(const char *source, size_t length, struct buf *out)
{
	struct scan s = {.at = source, .end = source + length, .out = out, .doc_place = true};

	if (!text_is_plain(source, length) || declares_coding(source, length))
		return false;
	while (s.at < s.end)
		if (!(s.in_line ? scan_inside_line(&s) : scan_indentation(&s)))
			return false;
	if (s.open > 0)
		return false;
	if (s.in_line)
		line_end(&s);
	return indent_to(&s, 0);
}

/* Replaces "\r\n" with "\n", also inside strings. Python also replaces "\r\n" before it divides a text into tokens.
 * Does not replace any other '\r'; the tokeniser then rejects the text, so the form is raw. */
static void unix_lines(const char *source, size_t length, struct buf *out)
{
	const char *end = source + length, *stop;

	while ((stop = memmem(source, (size_t)(end - source), "\r\n", 2)) != NULL) {
		buf_add(out, source, (size_t)(stop - source));
		source = stop + 1;
	}
	buf_add(out, source, (size_t)(end - source));
}

bool python_normal_form(const char *source, size_t length, struct buf *out)
{
	size_t start = out->length;
	struct buf lines = {0};

	unix_lines(source, length, &lines);
	buf_add(out, "T", 1);
	bool certain = scan_text(lines.data, lines.length, out) &&
	               python_dependencies(lines.data, lines.length).access == ACCESS_NOTHING;

	buf_free(&lines);
	if (certain)
		return true;
	out->length = start;
	buf_add(out, "R", 1);
	buf_add(out, source, length);
	return false;
}
