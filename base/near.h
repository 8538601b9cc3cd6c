/* near - which word somebody may have meant. */
#ifndef REFTEST_BASE_NEAR_H
#define REFTEST_BASE_NEAR_H

/* The one of `words` that the fewest edits (a letter more, less or other) turn `word` into, the first of several; NULL
 * if none is near: more than a third of the letters differ, or the word is longer than 64 bytes. */
const char *near_word(const char *word, const char *const *words, int count);

#endif
