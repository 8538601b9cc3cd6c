/* show_wrapped - prints long lines so that a terminal breaks no word. */
#ifndef REFTEST_BASE_SHOW_WRAPPED_H
#define REFTEST_BASE_SHOW_WRAPPED_H

#include <stdio.h>

/* Prints lines like show_print. On a terminal, long lines are wrapped between words (base/wrap.h). */
void show_wrapped(FILE *out, const char *text);

#endif
