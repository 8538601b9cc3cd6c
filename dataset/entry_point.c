#include "dataset/entry_point.h"

#include <string.h>

static const char run_name[] = "run", reference_suffix[] = "_reference";

/* Returns whether FlashInfer's tracer gives references a name of this form. Returns false for a name that is not ASCII:
 * Python normalizes such a name, so the module may have the function under another name. */
static bool is_reference_name(const char *name)
{
	size_t length = strlen(name), suffix = sizeof reference_suffix - 1;

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)name[i] >= 0x80)
			return false;
	return length > suffix && strcmp(name + length - suffix, reference_suffix) == 0;
}

/* Considers only functions that can be called without `await`. Returns the last of their names for which
 * is_reference_name returns true, or NULL. */
static const char *last_reference(const struct python_outline *outline)
{
	for (int i = outline->function_count - 1; i >= 0; i--)
		if (!outline->functions[i].is_async && is_reference_name(outline->functions[i].name))
			return outline->functions[i].name;
	return NULL;
}

/* Applies the rule in dataset/entry_point.h to the outline of valid Python. */
static const char *choose(const struct python_outline *outline)
{
	if (outline->binds_wanted || python_outline_function(outline, run_name) != NULL)
		return run_name;
	const char *reference = last_reference(outline);

	return reference != NULL || !outline->binds_any ? reference : run_name;
}

enum python_outline_answer entry_point_find(const char *source, size_t length, struct arena *arena,
					    struct python_outline *outline, const char **entry_point, struct err *err)
{
	enum python_outline_answer answer = python_outline_read(source, length, run_name, arena, outline, err);

	*entry_point = answer == PYTHON_OUTLINE_OK ? choose(outline) : answer == PYTHON_OUTLINE_UNSURE ? run_name : NULL;
	return answer;
}
