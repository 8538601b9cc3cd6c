#include "base/suggest.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 64 };

static size_t lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the number of edits between two words, or SIZE_MAX if a word is longer than WORD_MAX. An edit inserts,
 * deletes or replaces a letter, or swaps two neighbouring letters. The table of distances between prefixes is computed
 * row by row. For a swap, the two rows above the present row are needed, so three rows are kept. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1], length_a = strlen(a), length_b = strlen(b);

	if (length_a > WORD_MAX || length_b > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= length_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= length_a; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= length_b; j++) {
			row[j] = lesser(above[j - 1] + (a[i - 1] != b[j - 1]), lesser(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = lesser(row[j], above_that[j - 2] + 1);
		}
	}
	return rows[length_a % 3][length_b];
}

const char *suggest_word(const char *word, const char *const *words, int count)
{
	const char *nearest = NULL;
	/* accepts one edit for every three letters of `word`, so none for a word of one or two letters */
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
