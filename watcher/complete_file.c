#include "watcher/complete_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "dataset/definition.h"
#include "dataset/solution.h"
#include "dataset/workload.h"

static bool parses(const char *text, size_t length)
{
	const struct json_text json = {"", text, length, 1};

	return json_check(&json, NULL) == 0;
}

static bool is_blank(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (strchr(" \t\r", line[i]) == NULL || line[i] == '\0')
			return false;
	return true;
}

/* Returns whether each line that is not blank is a JSON text. */
static bool lines_parse(const char *text, size_t length)
{
	while (length > 0) {
		const char *end = memchr(text, '\n', length);
		size_t line = end != NULL ? (size_t)(end - text) : length, step = line + (end != NULL);

		if (!is_blank(text, line) && !parses(text, line))
			return false;
		text += step;
		length -= step;
	}
	return true;
}

bool is_complete_file(const char *root, const char *path)
{
	static const char *const prefixes[] = {"definitions/", "workloads/", "solutions/"};
	static const size_t limits[] = {DEFINITION_BYTES, WORKLOAD_BYTES, SOLUTION_BYTES};
	static bool (*const checks[])(const char *, size_t) = {parses, lines_parse, parses};
	const size_t kinds = sizeof limits / sizeof *limits;
	size_t kind = 0, length = strlen(path);
	struct buf bytes = {0};
	char full[PATH_MAX];
	bool complete;

	if (snprintf(full, sizeof full, "%s/%s", root, path) >= (int)sizeof full || path[length - 1] == '/')
		return true;
	while (kind < kinds && strncmp(path, prefixes[kind], strlen(prefixes[kind])) != 0)
		kind++;
	if (kind == kinds)
		return access(full, F_OK) == 0;
	switch (file_read(AT_FDCWD, full, limits[kind], &bytes, NULL, NULL)) {
	case FILE_ABSENT:
		complete = false;
		break;
	case FILE_OK:
		complete = bytes.length > 0 && checks[kind](bytes.data, bytes.length);
		break;
	default:
		complete = true;
	}
	buf_free(&bytes);
	return complete;
}
