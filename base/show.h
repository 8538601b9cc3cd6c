/* show - prints text for a terminal or for the log of a CI system. The text may be untrusted, because the module
 * escapes the characters and commands that base/unsafe_character.h lists.
 *
 * The program prints only with show_print and never with printf. tests/e2e/setup/only-show-prints.sh checks this. */
#ifndef REFTEST_BASE_SHOW_H
#define REFTEST_BASE_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

/* Appends a text of several lines. Newlines and tabs stay. All other unsafe characters become escapes. The first
 * character of each command of a CI system also becomes an escape. */
void show_add(struct buf *out, const char *text, size_t length);

/* Formats a text, makes it safe as show_add does, and prints it. */
void show_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns whether a write to `out` failed because nobody reads the pipe any more, as in `reftest status | head`. */
bool show_reader_gone(FILE *out);

/* Returns whether a descriptor is a terminal that interprets escape sequences. */
bool show_is_screen(int fd);

#endif
