#include "dataset/python_tokens.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { TAB = 8, STRINGS = 100 /* the deepest nesting of f-strings; CPython's limit is 150 */ };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* --- errors and positions ------------------------------------------------------------------------------------ */

static void stop(struct python_tokens *t, enum python_stop why)
{
	t->stop = why;
	t->token = (struct python_token){PYTHON_END, t->end, 0};
}

void python_tokens_fail(struct python_tokens *t, const char *at, const char *format, ...)
{
	char text[sizeof t->wrong.text];
	va_list args;

	if (t->stop != PYTHON_READING)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	err_set(&t->wrong, "%s", text);
	t->wrong_at = at;
	stop(t, PYTHON_WRONG);
}

void python_tokens_give_up(struct python_tokens *t)
{
	if (t->stop == PYTHON_READING)
		stop(t, PYTHON_UNSURE);
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

/* Returns the position after the line end (CR, LF or CRLF) at `at`. */
static const char *after_line_end(const struct python_tokens *t, const char *at)
{
	return at + (*at == '\r' && t->end - at > 1 && at[1] == '\n' ? 2 : 1);
}

void python_tokens_place(const struct python_tokens *t, struct python_place *place, const char *at)
{
	if (place->at == NULL)
		*place = (struct python_place){t->text, 1, 1};
	while (place->at < at) {
		size_t length = utf8_length(place->at, (size_t)(t->end - place->at));

		if (is_line_end(*place->at)) {
			place->at = after_line_end(t, place->at);
			place->line++;
			place->column = 1;
		} else {
			place->at += length > 0 ? length : 1;
			place->column++;
		}
	}
}

/* --- characters ---------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Counts all bytes above 127 as letters. scan_name later reports the characters for which is_punctuation returns
 * true. */
static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name(char c)
{
	return is_name_start(c) || is_digit(c);
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f';
}

/* Returns the byte that is `ahead` bytes after the current byte, or NUL after the end. No valid source has a NUL. */
static char peek(const struct python_tokens *t, size_t ahead)
{
	return ahead < (size_t)(t->end - t->at) ? t->at[ahead] : '\0';
}

static void skip_comment(struct python_tokens *t)
{
	while (t->at < t->end && !is_line_end(*t->at))
		t->at++;
}

/* Returns the code point of a character of 2 or 3 bytes. Returns 0 for other lengths. */
static uint32_t code_of(const char *text, size_t length)
{
	const unsigned char *c = (const unsigned char *)text;

	if (length == 2)
		return (uint32_t)(c[0] & 0x1F) << 6 | (uint32_t)(c[1] & 0x3F);
	if (length == 3)
		return (uint32_t)(c[0] & 0x0F) << 12 | (uint32_t)(c[1] & 0x3F) << 6 | (uint32_t)(c[2] & 0x3F);
	return 0;
}

/* Returns whether a character outside ASCII is punctuation or space, and therefore cannot be part of a name. Recognizes
 * only the characters that word processors and chat programs write instead of quotes, dashes and spaces. */
static bool is_punctuation(uint32_t code)
{
	return (code >= 0xA0 && code <= 0xA9) || (code >= 0x2000 && code <= 0x203E) ||
	       (code >= 0x3000 && code <= 0x3003) || code == 0xFEFF;
}

/* --- names and numbers --------------------------------------------------------------------------------------- */

bool python_is_keyword(const char *word, size_t length)
{
	static const char *const keywords[] = {
	    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
	    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
	    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
	    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

	for (size_t i = 0; i < COUNT(keywords); i++)
		if (*keywords[i] == *word && strlen(keywords[i]) == length && memcmp(keywords[i], word, length) == 0)
			return true;
	return false;
}

bool python_is_argument(const char *name)
{
	const size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");

	return length > 0 && name[length] == '\0' && !(*name >= '0' && *name <= '9') && !python_is_keyword(name, length);
}

static void set_token(struct python_tokens *t, enum python_token_kind kind, const char *from)
{
	t->token = (struct python_token){kind, from, (size_t)(t->at - from)};
}

/* Reads the letters of a name, or stops at a character that cannot be part of a name. */
static void scan_name(struct python_tokens *t)
{
	const char *from = t->at;

	while (t->at < t->end && is_name(*t->at)) {
		size_t length = utf8_length(t->at, (size_t)(t->end - t->at));

		if (is_punctuation(code_of(t->at, length))) {
			python_tokens_fail(t, t->at, "the character U+%04X is not valid outside strings and comments",
					   (unsigned)code_of(t->at, length));
			return;
		}
		t->at += length > 0 ? length : 1;
	}
	set_token(t, python_is_keyword(from, (size_t)(t->at - from)) ? PYTHON_KEYWORD : PYTHON_NAME, from);
}

static bool is_digit_of(char c, int base)
{
	char lower = (char)(c | 0x20);

	return c == '_' || (is_digit(c) && c - '0' < base) || (base == 16 && lower >= 'a' && lower <= 'f');
}

static void skip_digits(struct python_tokens *t, int base)
{
	while (is_digit_of(peek(t, 0), base))
		t->at++;
}

/* A keyword may follow a number directly, as in `1if x else 2`. */
static bool keyword_follows(const struct python_tokens *t)
{
	static const char *const words[] = {"and", "else", "for", "if", "in", "is", "or", "not"};

	for (size_t i = 0; i < COUNT(words); i++)
		if ((size_t)(t->end - t->at) >= strlen(words[i]) && memcmp(t->at, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static void skip_exponent(struct python_tokens *t)
{
	size_t sign = peek(t, 1) == '+' || peek(t, 1) == '-';

	if ((peek(t, 0) | 0x20) == 'e' && is_digit(peek(t, 1 + sign))) {
		t->at += 1 + sign;
		skip_digits(t, 10);
	}
}

static void scan_number(struct python_tokens *t)
{
	const char *from = t->at;
	char kind = (char)(peek(t, 1) | 0x20);
	int base = *from != '0' ? 10 : kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;

	t->at += base == 10 ? 0 : 2;
	skip_digits(t, base);
	if (base == 10) {
		if (peek(t, 0) == '.') {
			t->at++;
			skip_digits(t, 10);
		}
		skip_exponent(t);
		if ((peek(t, 0) | 0x20) == 'j')
			t->at++;
	}
	if (is_name(peek(t, 0)) && !keyword_follows(t))
		python_tokens_fail(t, t->at, "a number is directly followed by '%c'",
				   (unsigned char)*t->at < 0x80 ? *t->at : '?');
	else
		set_token(t, PYTHON_NUMBER, from);
}

/* --- strings ------------------------------------------------------------------------------------------------- */

struct string {
	const char *from; /* the first byte of the string's prefix, or of its opening quote if it has no prefix */
	char quote;
	bool triple, raw, bytes, braces; /* braces: the string is an f-string or a t-string */
};

/* Reads the letters before a quote. Returns false if the letters are not a valid prefix of a string. */
static bool string_prefix(const char *word, size_t length, struct string *string)
{
	static const char *const prefixes[] = {"", "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt"};
	char lower[3] = "";

	if (length > 2)
		return false;
	for (size_t i = 0; i < length; i++)
		lower[i] = (char)(word[i] | 0x20);
	for (size_t i = 0; i < COUNT(prefixes); i++)
		if (strcmp(prefixes[i], lower) == 0) {
			*string = (struct string){.from = word,
						  .raw = strchr(lower, 'r') != NULL,
						  .bytes = strchr(lower, 'b') != NULL,
						  .braces = strpbrk(lower, "ft") != NULL};
			return true;
		}
	return false;
}

static bool at_closing(const struct python_tokens *t, const struct string *string)
{
	char quote = string->quote;

	return peek(t, 0) == quote && (!string->triple || (peek(t, 1) == quote && peek(t, 2) == quote));
}

static void unterminated(struct python_tokens *t, const struct string *string)
{
	python_tokens_fail(t, string->from, "the string is not terminated");
}

/* Skips a backslash and the character after it, which may be a quote or the end of the line. In an f-string, a
 * backslash does not escape a brace. (The braces of \N{…} are skipped like a replacement field, because they look like
 * one.) */
static void skip_escape(struct python_tokens *t, const struct string *string)
{
	t->at++;
	if (t->at == t->end || (string->braces && (*t->at == '{' || *t->at == '}')))
		return;
	t->at = is_line_end(*t->at) ? after_line_end(t, t->at) : t->at + 1;
}

static void scan_quoted(struct python_tokens *t, struct string *string, int depth);

/* Skips a word inside a replacement field. If the word is the prefix of a string, also skips the string. */
static void skip_field_word(struct python_tokens *t, int depth)
{
	const char *from = t->at;
	struct string nested;

	while (is_name(peek(t, 0)))
		t->at++;
	if (is_quote(peek(t, 0)) && string_prefix(from, (size_t)(t->at - from), &nested))
		scan_quoted(t, &nested, depth + 1);
}

static void skip_field(struct python_tokens *t, const struct string *string, int depth);

/* Skips the text after the ':' of a replacement field. The text ends before the field's '}'. */
static void skip_format(struct python_tokens *t, const struct string *string, int depth)
{
	while (t->stop == PYTHON_READING) {
		if (t->at == t->end) {
			unterminated(t, string);
		} else if (*t->at == '}') {
			return;
		} else if (at_closing(t, string)) {
			python_tokens_fail(t, string->from, "a '{' of the f-string is never closed");
		} else if (*t->at == '{') {
			t->at++;
			skip_field(t, string, depth + 1);
		} else if (*t->at == '\\') {
			skip_escape(t, string);
		} else if (is_line_end(*t->at) && !string->triple) {
			python_tokens_give_up(t); /* some versions of CPython accept this */
		} else {
			t->at++;
		}
	}
}

/* Skips the rest of a replacement field, from the character after its '{' to its '}'. */
static void skip_field(struct python_tokens *t, const struct string *string, int depth)
{
	int open = 0;

	if (depth > STRINGS)
		python_tokens_give_up(t);
	while (t->stop == PYTHON_READING) {
		char c = peek(t, 0);

		if (t->at == t->end) {
			unterminated(t, string);
		} else if (is_name(c) || is_quote(c)) {
			skip_field_word(t, depth);
		} else if (c == '}' && open == 0) {
			t->at++;
			return;
		} else if (c == ':' && open == 0) {
			t->at++;
			skip_format(t, string, depth);
		} else if (c == '#') {
			skip_comment(t);
		} else {
			open += strchr("([{", c) != NULL;
			open -= strchr(")]}", c) != NULL && open > 0;
			t->at++;
		}
	}
}

/* {{ and }} stand for a brace in the text; any other '{' begins a replacement field. */
static void skip_brace(struct python_tokens *t, const struct string *string, int depth)
{
	char c = *t->at;
	bool twice = peek(t, 1) == c;

	t->at += twice ? 2 : 1;
	if (!twice && c == '{')
		skip_field(t, string, depth + 1);
	else if (!twice)
		python_tokens_fail(t, string->from, "a '}' of the f-string closes nothing");
}

/* Skips a string from its opening quote to its closing quote. `string` says which kind of string it is (raw, bytes,
 * f-string, …). */
static void scan_quoted(struct python_tokens *t, struct string *string, int depth)
{
	if (depth > STRINGS)
		python_tokens_give_up(t);
	string->quote = *t->at;
	string->triple = peek(t, 1) == string->quote && peek(t, 2) == string->quote;
	t->at += string->triple ? 3 : 1;
	while (t->stop == PYTHON_READING) {
		if (t->at == t->end || (is_line_end(*t->at) && !string->triple)) {
			unterminated(t, string);
		} else if (at_closing(t, string)) {
			t->at += string->triple ? 3 : 1;
			return;
		} else if (*t->at == '\\') {
			skip_escape(t, string);
		} else if (string->braces && (*t->at == '{' || *t->at == '}')) {
			skip_brace(t, string, depth);
		} else if (string->bytes && (unsigned char)*t->at >= 0x80) {
			python_tokens_fail(t, t->at, "a bytes literal contains a character that is not ASCII");
		} else {
			t->at++;
		}
	}
}

/* Reads a name, a keyword, or a string with its prefix. */
static void scan_word(struct python_tokens *t)
{
	const char *from = t->at, *word = from;
	struct string string;

	while (word < t->end && is_name(*word))
		word++;
	if (word == t->end || !is_quote(*word) || !string_prefix(from, (size_t)(word - from), &string)) {
		scan_name(t);
		return;
	}
	t->at = word;
	scan_quoted(t, &string, 0);
	if (t->stop == PYTHON_READING)
		set_token(t, PYTHON_STRING, from);
	else
		/* an error in a string inside an f-string is reported at the beginning of the f-string */
		t->wrong_at = from;
}

/* --- signs --------------------------------------------------------------------------------------------------- */

static void scan_opening(struct python_tokens *t)
{
	if (t->open == PYTHON_BRACKETS)
		python_tokens_give_up(t);
	else
		t->bracket[t->open++] = t->at;
}

static void scan_closing(struct python_tokens *t)
{
	char c = *t->at, opening = c == ')' ? '(' : c == ']' ? '[' : '{';

	if (t->open == 0) {
		python_tokens_fail(t, t->at, "'%c' closes nothing", c);
		return;
	}
	const char *bracket = t->bracket[--t->open];
	struct python_place place = {NULL, 0, 0};

	if (*bracket == opening)
		return;
	python_tokens_place(t, &place, bracket);
	python_tokens_fail(t, t->at, "'%c' does not close '%c' of line %d", c, *bracket, place.line);
}

static void scan_sign(struct python_tokens *t)
{
	/* longer signs first */
	static const char *const signs[] = {"**=", "//=", ">>=", "<<=", "...", "!=", "->", ":=", "==", "<=", ">=", "<>",
					    "<<",  ">>",  "**",  "//",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=",
					    "@=",  "+",   "-",   "*",   "/",   "%",  "@",  "&",  "|",  "^",  "~",  "<",
					    ">",   "=",   "(",   ")",   "[",   "]",  "{",  "}",  ",",  ":",  ".",  ";"};
	const char *from = t->at;

	for (size_t i = 0; i < COUNT(signs); i++) {
		if (*signs[i] != *from)
			continue;
		size_t length = strlen(signs[i]);

		if ((size_t)(t->end - from) < length || memcmp(from, signs[i], length) != 0)
			continue;
		if (length == 1 && strchr("([{", *from) != NULL)
			scan_opening(t);
		else if (length == 1 && strchr(")]}", *from) != NULL)
			scan_closing(t);
		if (t->stop != PYTHON_READING)
			return;
		t->at += length;
		set_token(t, PYTHON_SIGN, from);
		return;
	}
	if (*from > ' ' && *from < 0x7F)
		python_tokens_fail(t, from, "the character '%c' is not valid outside strings and comments", *from);
	else
		python_tokens_fail(t, from, "a control character is not valid outside strings and comments");
}

/* --- lines --------------------------------------------------------------------------------------------------- */

static bool inconsistent(struct python_tokens *t)
{
	python_tokens_fail(t, t->at, "the indentation mixes tabs and spaces, so its depth depends on the width of a tab");
	return false;
}

/* Compares the indentation of a line with that of the open blocks, and sets t->wanted to the indentation level of the
 * line. */
static bool set_level(struct python_tokens *t, struct python_indent width)
{
	const struct python_indent *now = &t->indent[t->level];

	t->wanted = t->level;
	if (width.column == now->column)
		return width.bytes == now->bytes || inconsistent(t);
	if (width.column > now->column) {
		if (width.bytes <= now->bytes)
			return inconsistent(t);
		if (t->level + 1 == PYTHON_INDENTS)
			return python_tokens_give_up(t), false;
		t->indent[++t->wanted] = width;
		return true;
	}
	while (t->wanted > 0 && width.column < t->indent[t->wanted].column)
		t->wanted--;
	if (width.column != t->indent[t->wanted].column) {
		python_tokens_fail(t, t->at, "the indentation matches no outer block");
		return false;
	}
	return width.bytes == t->indent[t->wanted].bytes || inconsistent(t);
}

/* Skips blank lines, and the indentation of the next line. Sets t->wanted to the level of the indentation of that line.
 * Returns false at an error. */
static bool begin_line(struct python_tokens *t)
{
	for (;;) {
		struct python_indent width = {0, 0};

		for (; is_blank(peek(t, 0)); t->at++)
			width = *t->at == '\f' ? (struct python_indent){0, 0}
				: *t->at == '\t'
				    ? (struct python_indent){(width.column / TAB + 1) * TAB, width.bytes + 1}
				    : (struct python_indent){width.column + 1, width.bytes + 1};
		if (peek(t, 0) == '#')
			skip_comment(t);
		if (t->at == t->end) {
			t->wanted = 0;
			return true;
		}
		if (*t->at == '\\')
			return python_tokens_give_up(t), false;
		if (!is_line_end(*t->at))
			return set_level(t, width);
		t->at = after_line_end(t, t->at);
	}
}

/* Skips blanks, comments and joined lines. Inside brackets, also skips ends of lines. Returns false at an error. */
static bool skip_space(struct python_tokens *t)
{
	while (t->at < t->end) {
		char c = *t->at;

		if (is_blank(c)) {
			t->at++;
		} else if (c == '#') {
			skip_comment(t);
		} else if (is_line_end(c) && t->open > 0) {
			t->at = after_line_end(t, t->at);
		} else if (c != '\\') {
			return true;
		} else if (t->end - t->at < 2 || !is_line_end(t->at[1])) {
			python_tokens_fail(t, t->at, "outside strings, a backslash must be the last character of its line");
			return false;
		} else {
			t->at = after_line_end(t, t->at + 1);
			if (t->at == t->end)
				python_tokens_fail(t, t->at, "the text ends after a backslash");
		}
	}
	return t->stop == PYTHON_READING;
}

/* Returns whether the text has ended. If so, also sets the token: PYTHON_NEWLINE after the last line, then PYTHON_END.
 * A bracket that is still open is an error. */
static bool scan_end(struct python_tokens *t)
{
	if (t->at < t->end)
		return false;
	if (t->open > 0) {
		const char *bracket = t->bracket[t->open - 1];

		python_tokens_fail(t, bracket, "'%c' is never closed", *bracket);
	} else if (!t->line_begins) {
		t->line_begins = true;
		t->measured = false;
		set_token(t, PYTHON_NEWLINE, t->end);
	} else {
		set_token(t, PYTHON_END, t->end);
	}
	return true;
}

/* If the line begins with an INDENT or DEDENT token, sets this token. Otherwise returns false. */
static bool scan_level(struct python_tokens *t)
{
	if (t->wanted == t->level)
		return false;
	set_token(t, t->wanted > t->level ? PYTHON_INDENT : PYTHON_DEDENT, t->at);
	t->level += t->wanted > t->level ? 1 : -1;
	return true;
}

void python_tokens_next(struct python_tokens *t)
{
	if (t->stop != PYTHON_READING)
		return;
	if (t->line_begins) {
		if (!t->measured && !begin_line(t))
			return;
		t->measured = true;
		if (scan_level(t))
			return;
	}
	if (!skip_space(t) || scan_end(t))
		return;
	t->line_begins = false;
	if (is_line_end(*t->at)) {
		const char *from = t->at;

		t->at = after_line_end(t, t->at);
		set_token(t, PYTHON_NEWLINE, from);
		t->line_begins = true;
		t->measured = false;
	} else if (is_name_start(*t->at) || is_quote(*t->at)) {
		scan_word(t);
	} else if (is_digit(*t->at) || (*t->at == '.' && is_digit(peek(t, 1)))) {
		scan_number(t);
	} else {
		scan_sign(t);
	}
}

/* Reports bytes that are not UTF-8. If the source may declare another encoding in its first lines, reports nothing. */
static void check_encoding(struct python_tokens *t)
{
	size_t length = (size_t)(t->end - t->at);

	if (memmem(t->at, length, "coding", 6) != NULL)
		return;
	for (const char *at = t->at; at < t->end;) {
		size_t step = utf8_length(at, (size_t)(t->end - at));

		if (step == 0) {
			python_tokens_fail(t, at, "the text is not UTF-8");
			return;
		}
		at += step;
	}
}

void python_tokens_begin(struct python_tokens *t, const char *source, size_t length)
{
	*t = (struct python_tokens){.text = source, .at = source, .end = source + length, .line_begins = true};
	if (length >= 3 && memcmp(source, "\xEF\xBB\xBF", 3) == 0)
		t->text = t->at = source + 3;
	check_encoding(t);
	if (memchr(t->at, '\0', (size_t)(t->end - t->at)) != NULL)
		python_tokens_fail(t, t->at, "the text contains a NUL character");
	python_tokens_next(t);
}

bool python_tokens_is(const struct python_tokens *t, const char *text)
{
	return (t->token.kind == PYTHON_SIGN || t->token.kind == PYTHON_KEYWORD) && *text == *t->token.at &&
	       strlen(text) == t->token.length && memcmp(text, t->token.at, t->token.length) == 0;
}
