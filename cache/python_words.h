/* python_words - divides a Python text into words, and answers questions about a word and its place in the text. */
#ifndef REFTEST_CACHE_PYTHON_WORDS_H
#define REFTEST_CACHE_PYTHON_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum word_kind { WORD_END, WORD_LINE, WORD_NAME, WORD_STRING, WORD_NUMBER, WORD_OP };

struct span {
	const char *text;
	size_t length;
};

struct word {
	enum word_kind kind;
	struct span span; /* the text of the word; each character of an operator is a word of its own */
	int line;         /* line of the source, from 1 */
	bool plain;       /* the word is a string without a prefix and without escapes */
};

struct python_words {
	const struct word *first; /* the words; a few words of the kind WORD_END follow the last word of the text */
	const char *source;       /* the whole text, which the words point to */
	int last_line;            /* the line where the tokeniser stopped */
	struct buf memory;        /* the memory of the words */
};

/* Divides a text into words. Returns false if the words may lack a name of the text. `source` must stay valid while the
 * words are used. Call python_words_free in both cases. */
bool python_words_read(struct python_words *words, const char *source, size_t length);

void python_words_free(struct python_words *words);

/* Returns whether `c` can be a part of a name. */
bool is_name_character(char c);

bool span_is(struct span span, const char *word);

/* Returns whether the word is the operator character `c`. */
bool is_op(const struct word *word, char c);

/* These functions return whether the word is this name (and not a string with the same text). */
bool is_word(const struct word *word, const char *name);
bool same_name(const struct word *word, struct span name);

/* Returns whether the word directly follows a dot that stands for an attribute, and not for `...`. */
bool behind_dot(const struct python_words *words, const struct word *word);

/* Returns true if a statement begins at `word`. A `from` that does not begin a statement belongs to `yield from` or
 * `raise … from`. */
bool begins_statement(const struct python_words *words, const struct word *word);

/* Returns the number of characters before `word` in its line. */
ptrdiff_t indentation(const struct python_words *words, const struct word *word);

/* Returns whether `word` belongs to the body of a class, and not to a function in this body. The body may be in the same
 * line as `class`. The keyword and the name of a `def` or `class` belong to the block around it. */
bool in_class(const struct python_words *words, const struct word *word);

#endif
