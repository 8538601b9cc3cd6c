/* wrap - wraps text at the width of the terminal. */
#ifndef REFTEST_BASE_WRAP_H
#define REFTEST_BASE_WRAP_H

#include <stddef.h>

#include "base/buf.h"

/* Appends `text`. Breaks each line at blanks, so that no line takes more than `width` columns. A continuation line is
 * indented two columns deeper than the line that it continues. The columns of a table are separated by two or more
 * blanks. In a table, the continuation line of a row begins below a column in the left part of that row. The row breaks
 * before a column, and not inside one. A line that begins with the text of `command` and a blank is a shell command. If
 * such a line is broken, each part except the last ends in a backslash, so that the user can paste the command into a
 * shell. A word that is wider than a line is not broken. Text between two backticks on one line is also not broken.
 * Each UTF-8 character takes one column; colour sequences take none. */
void wrap_text(const char *text, size_t length, size_t width, const char *command, struct buf *out);

#endif
