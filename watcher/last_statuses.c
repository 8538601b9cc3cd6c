#include "watcher/last_statuses.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static struct status_row **place_of(struct last_statuses *table, const char *path)
{
	uint32_t hash = 2166136261u; /* the initial value of FNV-1a */

	for (const char *c = path; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	struct status_row **at = &table->bucket[hash % STATUS_TABLE_BUCKETS];

	while (*at != NULL && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	return at;
}

const struct status_row *last_statuses_find(struct last_statuses *table, const char *path)
{
	return *place_of(table, path);
}

/* Adds the entry to the counts of the table (`sign` 1), or removes it from the counts (`sign` -1). */
static void count(struct last_statuses *table, const struct status_row *entry, int sign)
{
	if (!entry->known)
		return;
	table->known += sign;
	table->by_status[entry->last.status] += sign;
	if (entry->last.status == STATUS_CHECKED)
		table->checked[entry->last.checked] += sign;
	if (!entry->last.answers)
		return;
	table->answering += sign;
	table->answered_cases += sign * (int64_t)entry->last.cases;
	table->answered_elements += sign > 0 ? entry->last.elements : -entry->last.elements;
}

static struct status_row *entry_of(struct last_statuses *table, const char *path)
{
	struct status_row **at = place_of(table, path);
	size_t length = strlen(path) + 1;

	if (*at != NULL)
		return *at;
	*at = calloc(1, sizeof **at + length);
	if (*at == NULL)
		die_no_memory();
	memcpy((*at)->path, path, length);
	table->count++;
	return *at;
}

void last_statuses_set(struct last_statuses *table, const char *path, const struct last_status *last)
{
	struct status_row *entry = entry_of(table, path);

	count(table, entry, -1);
	entry->known = true;
	entry->last = *last;
	count(table, entry, 1);
}

void last_statuses_invalidate(struct last_statuses *table, const char *path)
{
	struct status_row *entry = entry_of(table, path);

	count(table, entry, -1);
	entry->known = false;
}

bool last_statuses_forget(struct last_statuses *table, const char *path)
{
	struct status_row **at = place_of(table, path), *entry = *at;

	if (entry == NULL)
		return false;
	count(table, entry, -1);
	table->count--;
	*at = entry->next;
	free(entry);
	return true;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void last_statuses_stop_answering(struct last_statuses *table)
{
	for (int b = 0; b < STATUS_TABLE_BUCKETS; b++)
		for (struct status_row *entry = table->bucket[b]; entry != NULL; entry = entry->next)
			entry->last.answers = false;
	table->answering = 0;
	table->answered_cases = 0;
	table->answered_elements = 0;
}

static bool begins(const struct status_row *entry, const char *prefix)
{
	return strncmp(entry->path, prefix, strlen(prefix)) == 0;
}

static bool unverified(const struct status_row *entry, const char *prefix)
{
	(void)prefix;
	return !entry->known || entry->last.status != STATUS_PASSED;
}

static bool unanswered(const struct status_row *entry, const char *prefix)
{
	(void)prefix;
	return !entry->known || !entry->last.answers;
}

static bool failed(const struct status_row *entry, const char *prefix)
{
	(void)prefix;
	return entry->known && status_group(entry->last.status) > GROUP_UNVERIFIED;
}

static int pick(const struct last_statuses *table, bool (*wanted)(const struct status_row *entry, const char *prefix),
		const char *prefix, struct arena *arena, const char ***paths)
{
	const char **found = arena_array(arena, (size_t)table->count, sizeof *found);
	int picked = 0;

	for (int b = 0; b < STATUS_TABLE_BUCKETS; b++)
		for (const struct status_row *entry = table->bucket[b]; entry != NULL; entry = entry->next)
			if (wanted(entry, prefix))
				found[picked++] = arena_string(arena, entry->path);
	if (picked > 1)
		qsort(found, (size_t)picked, sizeof *found, compare_paths);
	*paths = found;
	return picked;
}

int last_statuses_paths(const struct last_statuses *table, const char *prefix, struct arena *arena, const char ***paths)
{
	return pick(table, begins, prefix, arena, paths);
}

int last_statuses_unverified(const struct last_statuses *table, struct arena *arena, const char ***paths)
{
	return pick(table, unverified, "", arena, paths);
}

int last_statuses_unanswered(const struct last_statuses *table, struct arena *arena, const char ***paths)
{
	return pick(table, unanswered, "", arena, paths);
}

int last_statuses_failed(const struct last_statuses *table, struct arena *arena, const char ***paths)
{
	return pick(table, failed, "", arena, paths);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp((*(const struct status_row *const *)a)->path, (*(const struct status_row *const *)b)->path);
}

int last_statuses_answering(const struct last_statuses *table, struct arena *arena, const struct status_row ***entries)
{
	const struct status_row **found = arena_array(arena, (size_t)table->count, sizeof *found);
	int count_of = 0;

	for (int b = 0; b < STATUS_TABLE_BUCKETS; b++)
		for (const struct status_row *entry = table->bucket[b]; entry != NULL; entry = entry->next)
			if (!unanswered(entry, ""))
				found[count_of++] = entry;
	if (count_of > 1)
		qsort(found, (size_t)count_of, sizeof *found, compare_entries);
	*entries = found;
	return count_of;
}

void last_statuses_free(struct last_statuses *table)
{
	for (int b = 0; b < STATUS_TABLE_BUCKETS; b++)
		while (table->bucket[b] != NULL) {
			struct status_row *entry = table->bucket[b];

			table->bucket[b] = entry->next;
			free(entry);
		}
	*table = (struct last_statuses){0};
}
