/* shell_word - quotes words of commands that the user may paste into a shell. */
#ifndef REFTEST_BASE_SHELL_WORD_H
#define REFTEST_BASE_SHELL_WORD_H

#include "base/arena.h"
#include "base/buf.h"

/* Appends a word. Quotes the word if it has a character other than letters, digits, '_', '.', '/' and '-'. */
void buf_shell_word(struct buf *out, const char *word);
/* Returns the text that buf_shell_word would append, allocated in `arena`. */
char *arena_shell_word(struct arena *arena, const char *word);

#endif
