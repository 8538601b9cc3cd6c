#include "dataset/truth_source.h"

#include <string.h>

#include "base/utf8.h"
#include "dataset/python_outline.h"

static bool is_utf8(const char *text, size_t bytes)
{
	size_t at = 0, length;

	while (at < bytes && (length = utf8_length(text + at, bytes - at)) > 0)
		at += length;
	return at == bytes;
}

const char *truth_source_error(const char *path, const char *source, size_t length, struct arena *arena)
{
	struct python_outline outline;
	struct err why = {""};

	if (length == 0 || memchr(source, '\0', length) != NULL || !is_utf8(source, length))
		return arena_printf(arena, "%s: expected Python source in UTF-8 that defines run()", path);
	switch (python_outline_read(source, length, "run", arena, &outline, &why)) {
	case PYTHON_OUTLINE_ERROR:
		return arena_printf(arena, "%s:%d:%d: the ground truth is not valid Python: %s", path, outline.line,
				    outline.column, why.text);
	case PYTHON_OUTLINE_OK:
		return python_outline_may_define(&outline, "run")
			   ? NULL
			   : arena_printf(arena, "%s: expected a function run() at top level", path);
	default:
		return NULL;
	}
}
