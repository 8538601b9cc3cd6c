/* python_text - writes untrusted text as Python source. The value of each literal is exactly the text, and no character
 * in the text can end the literal. The output is ASCII, in the format of `ruff format`. */
#ifndef REFTEST_TESTGEN_PYTHON_TEXT_H
#define REFTEST_TESTGEN_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the text as a Python string literal on one line. */
void python_string(struct buf *out, const char *text);

/* Appends the text as a literal """\…""" that keeps the line breaks of the text, so that code stays readable. `guard`
 * is a string that begins with '#', such as "# definition: ". If a line of the text starts with `guard`, its '#' is
 * escaped, so that no line of the literal starts with `guard`. If `guard` is NULL, no line is escaped. */
void python_text(struct buf *out, const char *text, size_t length, const char *guard);

/* Appends a number; NaN becomes None. */
void python_number(struct buf *out, double value);

/* Appends the text for use in a comment: unprintable and non-ASCII characters become '?'. */
void python_comment(struct buf *out, const char *text);

/* Returns whether `name` can be part of file and class names: it has only ASCII letters, digits, '_' and '-', and does
 * not start with '-'. */
bool python_nameable(const char *name);

/* Appends a class name made from the name of a definition: "RmsnormH4096" for "rmsnorm_h4096". */
void python_class_name(struct buf *out, const char *name);

#endif
