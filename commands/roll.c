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

/* Takes an entry out of the counts. */
static void discount(struct roll *roll, const struct roll_entry *entry)
{
	roll->known -= entry->known;
	roll->by_status[entry->status] -= entry->known;
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

void roll_set(struct roll *roll, const char *path, enum status status, enum reason reason, const struct digest *inputs,
              int64_t batch)
{
	struct roll_entry *entry = entry_of(roll, path);

	discount(roll, entry);
	entry->known = true;
	entry->status = status;
	entry->reason = reason;
	entry->batch = batch;
	entry->inputs = *inputs;
	roll->known++;
	roll->by_status[status]++;
}

void roll_doubt(struct roll *roll, const char *path)
{
	struct roll_entry *entry = entry_of(roll, path);

	discount(roll, entry);
	entry->known = false;
}

bool roll_forget(struct roll *roll, const char *path)
{
	struct roll_entry **at = place_of(roll, path), *entry = *at;

	if (entry == NULL)
		return false;
	discount(roll, entry);
	roll->count--;
	*at = entry->next;
	free(entry);
	return true;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int roll_paths(const struct roll *roll, const char *prefix, struct arena *arena, const char ***paths)
{
	const char **found = arena_array(arena, (size_t)roll->count, sizeof *found);
	size_t length = strlen(prefix);
	int count = 0;

	for (int b = 0; b < ROLL_BUCKETS; b++)
		for (const struct roll_entry *entry = roll->bucket[b]; entry != NULL; entry = entry->next)
			if (strncmp(entry->path, prefix, length) == 0)
				found[count++] = arena_string(arena, entry->path);
	if (count > 1)
		qsort(found, (size_t)count, sizeof *found, compare_paths);
	*paths = found;
	return count;
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
