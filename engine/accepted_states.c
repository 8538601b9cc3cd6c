#include "engine/accepted_states.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "dataset/verdict.h"

enum { WORDS = 3 };

static const struct accepted_word {
	const char *word;
	unsigned bits;
} words_of[WORDS] = {
    {"checked", (1u << CHECKED_KINDS) - 1},
    {"approved", 1u << CHECKED_APPROVED},
    {"unattested", 1u << CHECKED_UNATTESTED},
};

static const struct accepted_word *find_word(const char *word, size_t length)
{
	for (int i = 0; i < WORDS; i++)
		if (strlen(words_of[i].word) == length && memcmp(words_of[i].word, word, length) == 0)
			return &words_of[i];
	return NULL;
}

unsigned accepted_states_read(const char *words)
{
	unsigned accept = 0;

	for (size_t length; words != NULL && *words != '\0'; words += length + (words[length] == ',')) {
		length = strcspn(words, ",");
		const struct accepted_word *found = find_word(words, length);

		accept |= found != NULL ? found->bits : 0;
	}
	return accept;
}

int accepted_states_check(const char *words, struct err *err)
{
	for (size_t length;; words += length + 1) {
		length = strcspn(words, ",");
		if (find_word(words, length) == NULL) {
			char name[128]; /* err_show cuts the name long before this length */

			snprintf(name, sizeof name, "%.*s", (int)length, words);
			return err_set(err, "unknown state '%s' (expected any of checked, approved and unattested, "
				       "separated by commas)",
				       err_show(name).text);
		}
		if (words[length] == '\0')
			return 0;
	}
}
