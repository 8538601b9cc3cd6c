#include "watcher/fs/settle.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct settle_item {
	struct settle_item *next;
	int64_t first_ms, last_ms; /* the times of the first and the last call of settle_touch for this path */
	bool look;                 /* whether the next settle_turn must check if the file is complete */
	char path[];
};

/* Returns the hash bucket of a path. The hash is FNV-1a, which is good enough for a thousand buckets. */
static struct settle_item **bucket_of(struct settle *settle, const char *path)
{
	uint32_t hash = 2166136261u;

	for (; *path != '\0'; path++)
		hash = (hash ^ (unsigned char)*path) * 16777619u;
	return &settle->bucket[hash % SETTLE_BUCKETS];
}

static struct settle_item *add_item(struct settle *settle, struct settle_item **bucket, const char *path, int64_t now_ms)
{
	size_t length = strlen(path) + 1;
	struct settle_item *item = calloc(1, sizeof *item + length);

	if (item == NULL)
		die_no_memory();
	memcpy(item->path, path, length);
	item->first_ms = now_ms;
	item->next = *bucket;
	*bucket = item;
	settle->count++;
	return item;
}

void settle_touch(struct settle *settle, const char *path, enum touch touch, int64_t now_ms)
{
	struct settle_item **bucket = bucket_of(settle, path), *item = *bucket;

	while (item != NULL && strcmp(item->path, path) != 0)
		item = item->next;
	if (item == NULL)
		item = add_item(settle, bucket, path, now_ms);
	item->last_ms = now_ms;
	item->look = touch == TOUCH_WRITTEN;
}

static int64_t deadline_of(const struct settle_item *item)
{
	int64_t quiet = item->last_ms + SETTLE_MS, longest = item->first_ms + SETTLE_LONGEST_MS;

	return item->look ? item->last_ms : quiet < longest ? quiet : longest;
}

int64_t settle_deadline(const struct settle *settle)
{
	int64_t deadline = INT64_MAX;

	for (int b = 0; b < SETTLE_BUCKETS && settle->count > 0; b++)
		for (const struct settle_item *item = settle->bucket[b]; item != NULL; item = item->next)
			deadline = deadline_of(item) < deadline ? deadline_of(item) : deadline;
	return deadline;
}

static bool has_settled(struct settle_item *item, int64_t now_ms, settle_complete *complete, void *context)
{
	if (item->look) {
		item->look = false;
		if (complete(item->path, context))
			return true;
	}
	return now_ms >= deadline_of(item);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int settle_turn(struct settle *settle, int64_t now_ms, settle_complete *complete, void *context, struct arena *arena,
		const char *const **paths)
{
	const char **found = arena_array(arena, (size_t)settle->count, sizeof *found);
	int count = 0;

	for (int b = 0; b < SETTLE_BUCKETS && settle->count > 0; b++)
		for (struct settle_item **at = &settle->bucket[b]; *at != NULL;) {
			struct settle_item *item = *at;

			if (!has_settled(item, now_ms, complete, context)) {
				at = &item->next;
				continue;
			}
			found[count++] = arena_string(arena, item->path);
			*at = item->next;
			settle->count--;
			free(item);
		}
	if (count > 1)
		qsort(found, (size_t)count, sizeof *found, compare_paths);
	*paths = found;
	return count;
}

void settle_free(struct settle *settle)
{
	for (int b = 0; b < SETTLE_BUCKETS; b++)
		while (settle->bucket[b] != NULL) {
			struct settle_item *item = settle->bucket[b];

			settle->bucket[b] = item->next;
			free(item);
		}
	settle->count = 0;
}
