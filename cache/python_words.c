/* python_words - the tokeniser, and the questions about words.
 *
 * The tokeniser of this file is more lenient than the tokeniser of python_normal_form. It may find other tokens than
 * Python's tokeniser does, but it must find every name that the tokeniser of any Python version finds. If the tokeniser
 * may miss a name of a text, it rejects the text. */
#include "cache/python_words.h"

#include <string.h>

enum { NESTED_MAX = 4, LOOKAHEAD = 4 };

struct lexer {
	const char *at, *end;
	/* depth: number of open brackets; the end of a line inside brackets does not end a statement. */
	int line, depth;
	int nested;      /* number of enclosing f-strings */
	struct buf out;  /* struct word … */
};

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool is_name_character(char c)
{
	return is_name_start(c) || is_digit(c);
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

static char peek(const struct lexer *l, size_t ahead)
{
	return ahead < (size_t)(l->end - l->at) ? l->at[ahead] : '\0';
}

static void add(struct lexer *l, enum word_kind kind, const char *from, size_t length, int line, bool plain)
{
	struct word word = {kind, {from, length}, line, plain};

	buf_add(&l->out, &word, sizeof word);
}

static bool cut(struct lexer *l);

/* Divides a replacement field of an f-string into words, from its opening brace to its closing brace. Adds a "(" before
 * the first word of the field and a ")" after its last word, to separate these words from the code around the f-string.
 * Returns false if the f-string does not end, or if quotes inside the field may end the f-string. */
static bool cut_braces(struct lexer *l, char quote)
{
	int depth = 0;
	const char *start = ++l->at, *code_end = NULL;

	for (;; l->at++) {
		char c = peek(l, 0);

		if (c == '\0' || c == quote || c == '\\' || c == '#')
			return false;
		if (depth == 0 && (c == '}' || c == ':' || (c == '!' && peek(l, 1) != '='))) {
			code_end = l->at;
			break;
		}
		/* A quote that differs from the quote of the f-string begins a nested string, which ends at the next
		 * such quote. */
		if (is_quote(c)) {
			for (l->at++; peek(l, 0) != c; l->at++)
				if (peek(l, 0) == '\0' || peek(l, 0) == quote || peek(l, 0) == '\\' || peek(l, 0) == '\n')
					return false;
		} else if (c == '(' || c == '[' || c == '{') {
			depth++;
		} else if (c == ')' || c == ']' || c == '}') {
			if (depth-- == 0)
				return false;
		}
	}
	struct lexer inner = {
	    .at = start, .end = code_end, .line = l->line, .depth = 1, .nested = l->nested + 1, .out = l->out};

	add(&inner, WORD_OP, "(", 1, l->line, false);
	bool good = cut(&inner);

	add(&inner, WORD_OP, ")", 1, l->line, false);
	l->out = inner.out;
	/* Skips the rest of the field, up to the closing brace: the conversion after `!` and the format after the
	 * colon. */
	for (bool format = true; good && format; l->at++) {
		char c = peek(l, 0);

		if (c == '\0' || c == quote || c == '\n' || c == '\\')
			return false;
		if (c == '{') {
			good = cut_braces(l, quote);
			l->at--;
		}
		format = c != '}';
	}
	return good;
}

static bool at_closing(const struct lexer *l, char quote, bool triple)
{
	return peek(l, 0) == quote && (!triple || (peek(l, 1) == quote && peek(l, 2) == quote));
}

/* Reads a string whose prefix is the `prefix` characters before l->at. */
static bool cut_string(struct lexer *l, size_t prefix)
{
	const char *start = l->at - prefix;
	char quote = *l->at;
	bool triple = peek(l, 1) == quote && peek(l, 2) == quote, braces = false, escapes = false;
	int line = l->line;
	struct lexer inner = {.line = l->line, .nested = l->nested};

	if (prefix > 2 || l->nested > NESTED_MAX)
		return false;
	for (size_t i = 0; i < prefix; i++) {
		char letter = (char)(start[i] | 0x20);

		if (strchr("rbuft", letter) == NULL)
			return false;
		braces = braces || letter == 'f' || letter == 't';
	}
	l->at += triple ? 3 : 1;
	while (!at_closing(l, quote, triple)) {
		char c = peek(l, 0);

		if (l->at == l->end || c == '\0' || (c == '\n' && !triple))
			goto uncertain;
		if (c == '\\') {
			escapes = true;
			if (braces && (peek(l, 1) == '{' || peek(l, 1) == 'N'))
				goto uncertain;
			l->line += peek(l, 1) == '\n';
			l->at += l->end - l->at > 1 ? 2 : 1;
		} else if (braces && c == '{' && peek(l, 1) != '{') {
			inner.at = l->at;
			inner.end = l->end;
			inner.line = l->line;
			if (!cut_braces(&inner, quote))
				goto uncertain;
			l->at = inner.at;
		} else {
			l->line += c == '\n';
			l->at += braces && (c == '{' || c == '}') && peek(l, 1) == c ? 2 : 1;
		}
	}
	l->at += triple ? 3 : 1;
	add(l, WORD_STRING, start, (size_t)(l->at - start), line, prefix == 0 && !escapes);
	if (inner.out.length > 0)
		buf_add(&l->out, inner.out.data, inner.out.length);
	buf_free(&inner.out);
	return true;
uncertain:
	buf_free(&inner.out);
	return false;
}

static bool cut_name(struct lexer *l)
{
	const char *start = l->at;

	while (is_name_character(peek(l, 0)))
		l->at++;
	if (is_quote(peek(l, 0)))
		return cut_string(l, (size_t)(l->at - start));
	add(l, WORD_NAME, start, (size_t)(l->at - start), l->line, false);
	return (unsigned char)peek(l, 0) < 0x80;
}

static void skip_digits(struct lexer *l)
{
	while (is_digit(peek(l, 0)) || peek(l, 0) == '_')
		l->at++;
}

/* Skips a number such as 1, 1.5 or 1e-5. Of 0x1f and 2j, skips only 0 and 2; x1f and j then count as names. */
static void cut_number(struct lexer *l)
{
	const char *start = l->at;

	skip_digits(l);
	if (peek(l, 0) == '.') {
		l->at++;
		skip_digits(l);
	}
	bool sign = peek(l, 1) == '-' || peek(l, 1) == '+';

	if ((peek(l, 0) | 0x20) == 'e' && is_digit(peek(l, sign ? 2 : 1))) {
		l->at += 2;
		skip_digits(l);
	}
	add(l, WORD_NUMBER, start, (size_t)(l->at - start), l->line, false);
}

static void cut_newline(struct lexer *l)
{
	if (l->depth == 0)
		add(l, WORD_LINE, l->at, 1, l->line, false);
	l->line++;
	l->at++;
}

static void cut_operator(struct lexer *l)
{
	char c = *l->at;

	l->depth += c == '(' || c == '[' || c == '{';
	l->depth -= (c == ')' || c == ']' || c == '}') && l->depth > 0;
	add(l, WORD_OP, l->at, 1, l->line, false);
	l->at++;
}

/* Returns true at the first character of a logical line, apart from spaces. */
static bool at_line_start(const struct lexer *l)
{
	const struct word *next = (const struct word *)(const void *)(l->out.data + l->out.length);

	return l->out.length == 0 || next[-1].kind == WORD_LINE;
}

/* Skips a backslash at the end of a line. A line must not begin with a backslash: its indentation would be uncertain. */
static bool cut_continuation(struct lexer *l)
{
	if (at_line_start(l))
		return false;
	l->at += peek(l, 1) == '\r' ? 2 : 1;
	if (peek(l, 0) != '\n')
		return false;
	l->line++;
	l->at++;
	return true;
}

/* Divides a text into words. Rejects form feeds and carriage returns without a newline, because Python ends an
 * indentation or a line there. */
static bool cut(struct lexer *l)
{
	while (l->at < l->end) {
		char c = *l->at;

		if (c == '\0' || c == '\f' || (unsigned char)c >= 0x80 || (c == '\r' && peek(l, 1) != '\n'))
			return false;
		if (c == '#') {
			while (l->at < l->end && *l->at != '\n' && *l->at != '\r')
				l->at++;
		} else if (c == '\n') {
			cut_newline(l);
		} else if (c == ' ' || c == '\t' || c == '\r') {
			l->at++;
		} else if (c == '\\') {
			if (!cut_continuation(l))
				return false;
		} else if (is_quote(c)) {
			if (!cut_string(l, 0))
				return false;
		} else if (is_name_start(c)) {
			if (!cut_name(l))
				return false;
		} else if (is_digit(c)) {
			cut_number(l);
		} else {
			cut_operator(l);
		}
	}
	return true;
}

bool python_words_read(struct python_words *words, const char *source, size_t length)
{
	struct lexer lexer = {.at = source, .end = source + length, .line = 1};
	bool good = cut(&lexer);

	for (int i = 0; i < LOOKAHEAD; i++)
		add(&lexer, WORD_END, lexer.end, 0, lexer.line, false);
	*words = (struct python_words){.first = (const struct word *)(const void *)lexer.out.data,
				       .source = source,
				       .last_line = lexer.line,
				       .memory = lexer.out};
	return good;
}

void python_words_free(struct python_words *words)
{
	buf_free(&words->memory);
}

/* ---- questions about a word ---- */

bool span_is(struct span span, const char *word)
{
	return strlen(word) == span.length && memcmp(word, span.text, span.length) == 0;
}

bool is_op(const struct word *word, char c)
{
	return word->kind == WORD_OP && *word->span.text == c;
}

bool is_word(const struct word *word, const char *name)
{
	return word->kind == WORD_NAME && span_is(word->span, name);
}

bool same_name(const struct word *word, struct span name)
{
	return word->kind == WORD_NAME && word->span.length == name.length &&
	       memcmp(word->span.text, name.text, name.length) == 0;
}

/* ---- where a word stands ---- */

bool behind_dot(const struct python_words *words, const struct word *word)
{
	return word > words->first && is_op(word - 1, '.') && !(word - 1 > words->first && is_op(word - 2, '.'));
}

bool begins_statement(const struct python_words *words, const struct word *word)
{
	return word == words->first || word[-1].kind == WORD_LINE || is_op(word - 1, ';') || is_op(word - 1, ':');
}

ptrdiff_t indentation(const struct python_words *words, const struct word *word)
{
	const char *at = word->span.text;

	while (at > words->source && at[-1] != '\n')
		at--;
	return word->span.text - at;
}

/* Returns the first word of the logical line that contains `word`. */
static const struct word *line_of(const struct python_words *words, const struct word *word)
{
	while (word > words->first && word[-1].kind != WORD_LINE)
		word--;
	return word;
}

static bool defines_function(const struct word *word)
{
	return is_word(word, "def") || (is_word(word, "async") && is_word(word + 1, "def"));
}

bool in_class(const struct python_words *words, const struct word *word)
{
	const struct word *line = line_of(words, word);
	ptrdiff_t inside = indentation(words, line) + (word > line + 1 + is_word(line, "async"));

	for (;; line = line_of(words, line - 1)) {
		if (line->kind != WORD_LINE && indentation(words, line) < inside) {
			inside = indentation(words, line);
			if (is_word(line, "class") || defines_function(line))
				return is_word(line, "class");
		}
		if (line == words->first)
			return false;
	}
}
