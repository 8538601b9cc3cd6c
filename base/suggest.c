#include "base/suggest.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 64 };

/* Returns the Levenshtein distance of two words, computed row by row; SIZE_MAX if a word is longer than WORD_MAX. */
static size_t distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1], length_a = strlen(a), length_b = strlen(b);

	if (length_a > WORD_MAX || length_b > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= length_b; j++)
		row[j] = j;
	for (size_t i = 1; i <= length_a; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= length_b; j++) {
			size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
			size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = replaced < shorter ? replaced : shorter;
		}
	}
	return row[length_b];
}

const char *suggest_word(const char *word, const char *const *words, int count)
{
	const char *nearest = NULL;
	/* for a word of one or two letters, only the word itself is accepted */
	size_t best = strlen(word) / 3 + 1;

	for (int i = 0; i < count; i++) {
		size_t edits = distance(word, words[i]);

		if (edits < best) {
			best = edits;
			nearest = words[i];
		}
	}
	return nearest;
}
