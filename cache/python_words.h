/* python_words - which words a Python text is made of, and what code made of them can see.
 *
 * Two questions turn on it: whether comments, lines and docstrings may matter to a reference (python_form), and whether
 * what it computes can depend on anything but its text, its inputs and its interpreter's packages (a verdict on one that can
 * is not remembered). Both are answered by what is known to be harmless: a word that is in no list here is not. */
#ifndef REFTEST_CACHE_PYTHON_WORDS_H
#define REFTEST_CACHE_PYTHON_WORDS_H

#include <stddef.h>

enum sight {
	SIGHT_NOTHING, /* its inputs, and what those libraries compute that the witness names */
	SIGHT_ITSELF,  /* also its own source: lines, docstrings, names, frames */
	SIGHT_OUTSIDE, /* perhaps anything: files, modules, environment, clock, …; or nobody can tell */
};

struct python_words {
	enum sight sight;
	char what[128]; /* SIGHT_OUTSIDE: the reason, as in "'os'", "'torch.load'" */
	int line;       /* of the source, from 1 */
};

struct python_words python_words(const char *source, size_t length);

#endif
