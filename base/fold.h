/* fold - lines of text, none wider than a terminal. */
#ifndef REFTEST_BASE_FOLD_H
#define REFTEST_BASE_FOLD_H

#include <stddef.h>

#include "base/buf.h"

/* Appends `text` with each line broken at blanks so that it takes at most `width` columns; what follows a break is
 * indented like its line and two more. A line that is a command (its first word is `command`) gets a backslash at each
 * break, so that it can still be pasted. A word wider than a line stays whole. UTF-8 of one column a character; colours
 * take none. */
void fold_text(const char *text, size_t length, size_t width, const char *command, struct buf *out);

#endif
