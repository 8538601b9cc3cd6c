/* screen - draws lines at the bottom of a terminal and erases them again. The user can scroll, search and copy the text
 * that is printed above these lines. */
#ifndef REFTEST_BASE_SCREEN_H
#define REFTEST_BASE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { SCREEN_LINE_BYTES = 4096 };

/* The number of columns and of rows of the terminal `fd`; 80 columns and 24 rows if the size is unknown. */
int screen_columns(int fd);
int screen_rows(int fd);

/* Returns whether this process is in the background of the terminal `fd`. The kernel stops a background process that
 * reads from the terminal or changes the terminal's modes. */
bool screen_in_background(int fd);

/* A line that is truncated at the width of the terminal. Escape sequences for colours do not count as columns. */
struct screen_line {
	char text[SCREEN_LINE_BYTES];
	size_t length;
	int used, room; /* columns */
};

/* Appends a text, and replaces its unsafe characters by escapes. */
void screen_line_add(struct screen_line *line, const char *text);
void screen_line_colour(struct screen_line *line, const char *escape_sequence);

/* Appends the escape sequences that erase `count` lines. When the caller prints these sequences, the cursor must be at
 * the end of the last line. `drawn` has the number of columns that each line had when it was drawn. A terminal that has
 * become narrower since the lines were drawn may have wrapped a line into several rows. */
void screen_erase(const int *drawn, int count, int columns, struct buf *out);

#endif
