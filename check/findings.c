#include "check/findings.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

const char *severity_name(enum severity severity)
{
	static const char *const names[] = {[SEVERITY_ERROR] = "error", [SEVERITY_NOTE] = "note"};

	return names[severity];
}

const char *topic_name(enum topic topic)
{
	static const char *const names[] = {[TOPIC_LAYOUT] = "layout",	   [TOPIC_DEFINITION] = "definition",
					    [TOPIC_DESCRIPTION] = "description",
					    [TOPIC_WORKLOAD] = "workload", [TOPIC_BLOB] = "blob",
					    [TOPIC_SOLUTION] = "solution", [TOPIC_TRACE] = "trace",
					    [TOPIC_BASELINE] = "baseline"};

	return names[topic];
}

static void add(struct findings *f, struct finding finding)
{
	if (f->count == f->room) {
		f->room = f->room * 2 + 64;
		f->list = realloc(f->list, (size_t)f->room * sizeof *f->list);
		if (f->list == NULL)
			die_no_memory();
	}
	f->list[f->count++] = finding;
	f->errors += finding.severity == SEVERITY_ERROR;
	f->notes += finding.severity == SEVERITY_NOTE;
}

void findings_add(struct findings *f, enum severity severity, enum topic topic, const char *path, int line,
		  const char *format, ...)
{
	struct err text;
	va_list args;

	va_start(args, format);
	vsnprintf(text.text, sizeof text.text, format, args);
	va_end(args);
	add(f, (struct finding){severity, topic, arena_string(f->arena, path), line, 0, arena_string(f->arena, text.text)});
}

/* Reads a number and the ':' after the number. If the text at `*at` does not begin with a number and a ':', returns 0
 * and leaves `*at` unchanged. */
static int take_number(const char **at)
{
	char *end;
	long number = isdigit((unsigned char)**at) ? strtol(*at, &end, 10) : 0;

	if (number <= 0 || number > 1 << 30 || *end != ':')
		return 0;
	*at = end + 1;
	return (int)number;
}

void findings_add_message(struct findings *f, enum severity severity, enum topic topic, const char *path,
			  const char *message)
{
	size_t length = strlen(path);
	int line = 0, column = 0;

	if (strncmp(message, path, length) == 0 && message[length] == ':') {
		message += length + 1;
		line = take_number(&message);
		column = line > 0 ? take_number(&message) : 0;
		message += *message == ' ';
	}
	add(f, (struct finding){severity, topic, arena_string(f->arena, path), line, column,
				arena_string(f->arena, message)});
}

static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strcmp(folder, ".") == 0 ||
	       (strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}

static bool is_below_any(const char *path, const char *const *folders, int count)
{
	for (int i = 0; i < count; i++)
		if (is_below(path, folders[i]))
			return true;
	return false;
}

void findings_keep(struct findings *f, int from, const char *const *paths, int count)
{
	struct findings all = *f;

	f->count = f->errors = f->notes = 0;
	for (int i = 0; i < all.count; i++)
		if (i < from || is_below_any(all.list[i].path, paths, count))
			add(f, all.list[i]);
}

void findings_prefix(struct findings *f, int from, const char *folder)
{
	for (int i = from; i < f->count; i++)
		f->list[i].path = arena_printf(f->arena, "%s/%s", folder, f->list[i].path);
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *left = a, *right = b;
	int order = strcmp(left->path, right->path);

	if (left->severity != right->severity)
		return left->severity < right->severity ? -1 : 1;
	if (order != 0)
		return order;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	if (left->column != right->column)
		return left->column < right->column ? -1 : 1;
	return strcmp(left->message, right->message);
}

void findings_follow_links(struct findings *findings, int from, const char *root)
{
	char target[PATH_MAX];

	for (int i = from; i < findings->count; i++) {
		const char *link = arena_printf(findings->arena, "%s/%s", root, findings->list[i].path);
		ssize_t length = readlink(link, target, sizeof target);

		if (length > 0)
			findings->list[i].path = arena_copy(findings->arena, target, (size_t)length);
	}
}

void findings_sort(struct findings *f)
{
	if (f->count > 0)
		qsort(f->list, (size_t)f->count, sizeof *f->list, compare_findings);
}

void findings_free(struct findings *f)
{
	free(f->list);
	f->list = NULL;
	f->count = f->room = 0;
}
