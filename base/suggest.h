/* suggest - finds the known word closest to a misspelt one. */
#ifndef REFTEST_BASE_SUGGEST_H
#define REFTEST_BASE_SUGGEST_H

/* Returns the word in `words` that is closest to `word` by edit distance (inserted, deleted, replaced and swapped
 * letters). If several words are equally close, returns the first of them. Returns NULL if every word in `words` is
 * more than strlen(word) / 3 edits away, or if `word` is longer than 64 bytes. */
const char *suggest_word(const char *word, const char *const *words, int count);

#endif
