/* python - texts of strangers as Python source: literals that say exactly the same, and that nothing in the text can
 * end early. What comes out is ASCII, as `ruff format` leaves it. */
#ifndef REFTEST_ARTIFACTS_PYTHON_H
#define REFTEST_ARTIFACTS_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* "…" on one line. */
void python_string(struct buf *out, const char *text);

/* """\…""" over as many lines as the text has, so that code stays readable. A line that begins with `guard` (which
 * begins with '#') is written otherwise, so that no text can play that line; NULL: no guard. */
void python_text(struct buf *out, const char *text, size_t length, const char *guard);

/* A number; NaN as None. */
void python_number(struct buf *out, double value);

/* Text behind a '#': what does not print, and what is not ASCII, becomes '?'. */
void python_comment(struct buf *out, const char *text);

/* Can files and classes be named after it: ASCII letters, digits, '_' and '-', the first no '-'. */
bool python_nameable(const char *name);

/* "rmsnorm_h4096" as "RmsnormH4096". */
void python_class_name(struct buf *out, const char *name);

#endif
