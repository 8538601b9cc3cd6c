#include "commands/roll.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static struct roll_entry **place_of(struct roll *roll, const char *path)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (const char *c = path; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	struct roll_entry **at = &roll->bucket[hash % ROLL_BUCKETS];

	while (*at != NULL && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	return at;
}

const struct roll_entry *roll_find(struct roll *roll, const char *path)
{
	return *place_of(roll, path);
}

/* Takes an entry into the counts (1), or out of them (-1). */
static void count(struct roll *roll, const struct roll_entry *entry, int sign)
{
	if (!entry->known)
		return;
	roll->known += sign;
	roll->by_status[entry->word.status] += sign;
	if (entry->word.status != STATUS_PASSED)
		return;
	roll->passed_cases += sign * (int64_t)entry->word.cases;
	roll->passed_elements += sign > 0 ? entry->word.elements : -entry->word.elements;
}

static struct roll_entry *entry_of(struct roll *roll, const char *path)
{
	struct roll_entry **at = place_of(roll, path);
	size_t length = strlen(path) + 1;

	if (*at != NULL)
		return *at;
	*at = calloc(1, sizeof **at + length);
	if (*at == NULL)
		die_no_memory();
	memcpy((*at)->path, path, length);
	roll->count++;
	return *at;
}

void roll_set(struct roll *roll, const char *path, const struct word *word)
{
	struct roll_entry *entry = entry_of(roll, path);

	count(roll, entry, -1);
	entry->known = true;
	entry->word = *word;
	count(roll, entry, 1);
}

void roll_doubt(struct roll *roll, const char *path)
{
	struct roll_entry *entry = entry_of(roll, path);

	count(roll, entry, -1);
	entry->known = false;
}

bool roll_forget(struct roll *roll, const char *path)
{
	struct roll_entry **at = place_of(roll, path), *entry = *at;

	if (entry == NULL)
		return false;
	count(roll, entry, -1);
	roll->count--;
	*at = entry->next;
	free(entry);
	return true;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool begins(const struct roll_entry *entry, const char *prefix)
{
	return strncmp(entry->path, prefix, strlen(prefix)) == 0;
}

static bool doubtful(const struct roll_entry *entry, const char *prefix)
{
	(void)prefix;
	return !entry->known || entry->word.status != STATUS_PASSED;
}

static bool failed(const struct roll_entry *entry, const char *prefix)
{
	(void)prefix;
	return entry->known && entry->word.status > STATUS_SKIPPED;
}

static int pick(const struct roll *roll, bool (*wanted)(const struct roll_entry *entry, const char *prefix),
                const char *prefix, struct arena *arena, const char ***paths)
{
	const char **found = arena_array(arena, (size_t)roll->count, sizeof *found);
	int picked = 0;

	for (int b = 0; b < ROLL_BUCKETS; b++)
		for (const struct roll_entry *entry = roll->bucket[b]; entry != NULL; entry = entry->next)
			if (wanted(entry, prefix))
				found[picked++] = arena_string(arena, entry->path);
	if (picked > 1)
		qsort(found, (size_t)picked, sizeof *found, compare_paths);
	*paths = found;
	return picked;
}

int roll_paths(const struct roll *roll, const char *prefix, struct arena *arena, const char ***paths)
{
	return pick(roll, begins, prefix, arena, paths);
}

int roll_doubtful(const struct roll *roll, struct arena *arena, const char ***paths)
{
	return pick(roll, doubtful, "", arena, paths);
}

int roll_failed(const struct roll *roll, struct arena *arena, const char ***paths)
{
	return pick(roll, failed, "", arena, paths);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp((*(const struct roll_entry *const *)a)->path, (*(const struct roll_entry *const *)b)->path);
}

int roll_passed(const struct roll *roll, struct arena *arena, const struct roll_entry ***entries)
{
	const struct roll_entry **found = arena_array(arena, (size_t)roll->count, sizeof *found);
	int count_of = 0;

	for (int b = 0; b < ROLL_BUCKETS; b++)
		for (const struct roll_entry *entry = roll->bucket[b]; entry != NULL; entry = entry->next)
			if (!doubtful(entry, ""))
				found[count_of++] = entry;
	if (count_of > 1)
		qsort(found, (size_t)count_of, sizeof *found, compare_entries);
	*entries = found;
	return count_of;
}

void roll_free(struct roll *roll)
{
	for (int b = 0; b < ROLL_BUCKETS; b++)
		while (roll->bucket[b] != NULL) {
			struct roll_entry *entry = roll->bucket[b];

			roll->bucket[b] = entry->next;
			free(entry);
		}
	*roll = (struct roll){0};
}
