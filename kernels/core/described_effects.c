#include "kernels/core/described_effects.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Finds the first word of `text` that begins with one of `words`, ignoring case. Returns this element of `words`, or
 * NULL if there is none. */
static const char *word_in(const char *text, const char *const *words)
{
	for (const char *at = text; at != NULL && *at != '\0'; at++)
		for (int i = 0; words[i] != NULL; i++)
			if (strncasecmp(at, words[i], strlen(words[i])) == 0 &&
			    (at == text || !isalpha((unsigned char)at[-1])))
				return words[i];
	return NULL;
}

/* Returns the part of a tag in which described_samples searches for words. If the tag names a function, only the
 * function's name is searched, and not its module: a module such as flashinfer.sampling also has functions that draw no
 * samples. */
static const char *words_of_tag(const char *tag)
{
	const char *dot = strncmp(tag, "fi_api:", strlen("fi_api:")) == 0 ? strrchr(tag, '.') : NULL;

	return dot != NULL ? dot + 1 : tag;
}

const char *described_samples(const struct op_problem *problem)
{
	static const char *const words[] = {"sampl",	   "dropout",	  "random",	   "stochastic", "gumbel",
					    "bernoulli",   "multinomial", "monte carlo", "noise",	 NULL};
	const char *found = word_in(problem->name, words);

	if (found == NULL)
		found = word_in(problem->op_type, words);
	if (found == NULL)
		found = word_in(problem->description, words);
	for (int i = 0; found == NULL && i < problem->tag_count; i++)
		found = word_in(words_of_tag(problem->tags[i]), words);
	return found;
}

bool described_written(const struct op_problem *problem, int input)
{
	static const char *const words[] = {"in place", "in-place", "inplace", "updated", "overwritten", "mutated", NULL};

	for (int i = 0; i < problem->output_count; i++)
		if (strcmp(problem->outputs[i].name, problem->inputs[input].name) == 0)
			return true;
	return word_in(problem->inputs[input].description, words) != NULL;
}
