/* python_tokens - splits Python source into tokens, and reports the lexical errors that every version of CPython 3
 * reports.
 *
 * The scanner supports the line ends CR, LF and CRLF, form feeds, a byte order mark, joined lines and all string
 * prefixes. An f-string (or t-string) is one token, which includes everything inside its braces. The scanner reports an
 * error only if every version of CPython from 3.8 on reports one. It stops without an error where it does not know what
 * CPython does, for example at a backslash inside indentation. */
#ifndef REFTEST_DATASET_PYTHON_TOKENS_H
#define REFTEST_DATASET_PYTHON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum python_token_kind {
	PYTHON_END, /* the end of the text; also every token after an error */
	PYTHON_NEWLINE,
	PYTHON_INDENT,
	PYTHON_DEDENT,
	PYTHON_NAME,
	PYTHON_KEYWORD,
	PYTHON_NUMBER,
	PYTHON_STRING,
	PYTHON_SIGN
};

struct python_token {
	enum python_token_kind kind;
	const char *at;
	size_t length;
};

enum {
	PYTHON_BRACKETS = 200, /* CPython's limits for open brackets and for indentation levels */
	PYTHON_INDENTS = 100
};

/* Why the scanner stopped before the end of the text. */
enum python_stop { PYTHON_READING, PYTHON_WRONG, PYTHON_UNSURE };

struct python_indent {
	size_t column, bytes; /* the width of the indentation in columns (a tab stop every 8 columns) and in bytes */
};

struct python_tokens {
	const char *text, *at, *end; /* the source, which the caller owns; `at` is the first unread byte */
	struct python_token token;   /* the current token */
	const char *bracket[PYTHON_BRACKETS]; /* the open brackets */
	int open;
	struct python_indent indent[PYTHON_INDENTS];
	int level, wanted; /* level: the current indentation level; wanted: the indentation level of the new line */
	bool line_begins, measured; /* line_begins: the next token is the first of its line; measured: the indentation
				     * of this line was read */
	enum python_stop stop;
	const char *wrong_at; /* the position of the error if `stop` is PYTHON_WRONG; the message is in `wrong` */
	struct err wrong;
};

/* Starts at the first token of the source. */
void python_tokens_begin(struct python_tokens *t, const char *source, size_t length);
void python_tokens_next(struct python_tokens *t);

/* Returns whether the current token is the sign or keyword `text`. */
bool python_tokens_is(const struct python_tokens *t, const char *text);

/* Stops at an error. If there was an error before, the first error is kept. */
void python_tokens_fail(struct python_tokens *t, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Stops without an error, because the scanner does not know what CPython does with the text. */
void python_tokens_give_up(struct python_tokens *t);

/* A position in the source. Lines and columns count from 1, and columns count characters. */
struct python_place {
	const char *at; /* NULL: before the first call of python_tokens_place */
	int line, column;
};

/* Moves a place forward to `at`, which must not be before the place. */
void python_tokens_place(const struct python_tokens *t, struct python_place *place, const char *at);

/* Returns false for words that are keywords in some positions only, such as `match`. */
bool python_is_keyword(const char *word, size_t length);
/* Returns whether an argument can have this name, which means that it is an identifier of ASCII characters and not a
 * keyword. */
bool python_is_argument(const char *name);

#endif
