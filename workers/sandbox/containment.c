#include "workers/sandbox/containment.h"

#include <stdio.h>
#include <string.h>

#include "workers/sandbox/sandbox.h"

static const char full[] = "full";

enum { AS_NAMES, AS_SENTENCES };

static void write_gaps(uint32_t layers, int how, const char *between, char *out, size_t size)
{
	const struct sandbox_gap *gap;
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; (gap = sandbox_gap(i)) != NULL && used < size; i++)
		if (sandbox_gap_is_open(gap, layers))
			used += (size_t)snprintf(out + used, size - used, "%s%s", used == 0 ? "" : between,
						 how == AS_NAMES ? gap->name : gap->sentence);
}

void containment_write(uint32_t layers, char *out)
{
	write_gaps(layers, AS_NAMES, ",", out, CONTAINMENT_TEXT);
	if (out[0] == '\0')
		memcpy(out, full, sizeof full);
}

void containment_write_sentences(uint32_t layers, char *out)
{
	write_gaps(layers, AS_SENTENCES, "; ", out, CONTAINMENT_SENTENCES);
}

/* Returns whether `list`, whose words are separated by commas, contains the word that consists of the first `length`
 * bytes of `word`. */
static bool contains(const char *list, const char *word, size_t length)
{
	for (const char *at = list; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == length && strncmp(at, word, length) == 0)
			return true;
	return false;
}

bool containment_suffices(const char *text, const char *required)
{
	if (required == NULL || (text != NULL && strcmp(text, full) == 0))
		return true;
	if (text == NULL || contains(required, full, sizeof full - 1))
		return false;
	for (const char *at = required; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (contains(text, at, strcspn(at, ",")))
			return false;
	return true;
}
