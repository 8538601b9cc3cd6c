/* python_normal_form - the lexical normal form of Python source, which a fingerprint hashes instead of the text.
 *
 * Two sources with the same form compile to the same code; only the line numbers may differ. The form depends on every
 * token. Comments, blank lines, trailing space, the space between tokens, the width of indentation, CRLF and docstrings
 * do not change the form. In two cases, the form is the text itself, byte for byte. The first case is a text whose
 * tokens this small tokeniser cannot determine with certainty: it has lone carriage returns, tabs in indentation, form
 * feeds, an f-string whose braces contain quotes, or an unterminated string. The second case is code that may be able
 * to read its own source, because it contains a word that is not in the lists of python_dependencies.c. In both cases,
 * a change of a comment changes the form, so the reference is verified again. */
#ifndef REFTEST_CACHE_PYTHON_NORMAL_FORM_H
#define REFTEST_CACHE_PYTHON_NORMAL_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the form to `out`. The first byte is 'T' for tokens and 'R' for raw text. Returns true for tokens. */
bool python_normal_form(const char *source, size_t length, struct buf *out);

#endif
