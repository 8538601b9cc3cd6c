/* python_form - the lexical normal form of Python source: what a fingerprint hashes instead of the text.
 *
 * Two sources with the same form compile to the same code, line numbers apart: comments, blank lines, trailing space,
 * spacing between tokens, the width of indentation, CRLF and docstrings leave no trace; every token does. Whatever this
 * small tokeniser is not certain of (lone carriage returns, tabs in indentation, form feeds, an f-string whose braces
 * hold quotes, an unterminated string), and any text with a word in it that is not known to see nothing of its
 * own source (python_words.h: a whitelist of modules, attributes and names), is its own form, byte for byte: then a comment
 * costs one more run, never a wrong answer. */
#ifndef REFTEST_CACHE_PYTHON_FORM_H
#define REFTEST_CACHE_PYTHON_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the form. The first byte says which: 'T' tokens, 'R' raw text. true: tokens. */
bool python_form(const char *source, size_t length, struct buf *out);

#endif
