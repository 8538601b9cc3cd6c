#include "engine/last_failed.h"

#include <stdlib.h>
#include <string.h>

/* The key under which the store keeps the sorted paths of the failed definitions, one path on each line. */
static const char key[] = "last failed";

struct paths {
	const char **items;
	int count;
};

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool contains(const struct paths *paths, const char *path)
{
	return paths->count > 0 &&
	       bsearch(&path, paths->items, (size_t)paths->count, sizeof *paths->items, compare_paths) != NULL;
}

/* Returns the text of the fact "last failed" in the store, or "" if there is no such fact. */
static const char *read_fact(const struct run *run, struct arena *arena)
{
	const char *text = "";

	if (run->program->store == NULL || store_fact(run->program->store, key, arena, &text, NULL) != CACHE_HIT)
		return "";
	return text;
}

static struct paths read_paths(const char *text, struct arena *arena)
{
	struct paths paths = {0};
	size_t lines = 0;

	for (const char *at = text; *at != '\0'; at++)
		lines += *at == '\n';
	paths.items = arena_array(arena, lines + 1, sizeof *paths.items);
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");

		paths.items[paths.count++] = arena_copy(arena, text, length);
		text += length + (text[length] == '\n');
	}
	return paths;
}

int last_failed_select(struct run *run)
{
	struct arena arena = {0};
	const struct paths failed = read_paths(read_fact(run, &arena), &arena);
	int count = 0;

	for (int i = 0; i < run->selected_count; i++)
		count += contains(&failed, run->selected[i]->path);
	if (count > 0) {
		int kept = 0;

		for (int i = 0; i < run->selected_count; i++)
			if (contains(&failed, run->selected[i]->path))
				run->selected[kept++] = run->selected[i];
		run->selected_count = kept;
	}
	arena_free(&arena);
	return count;
}

/* Sets `failed` to the definitions that failed in this run, and `settled` to the definitions that did not fail. If
 * --case selects a single case, and this case passes, the definition is in neither list, because it may fail in its
 * other cases. */
static void sort_results(const struct run *run, struct arena *arena, struct paths *failed, struct paths *settled)
{
	int at = 0;

	failed->items = arena_array(arena, (size_t)run->count + 1, sizeof *failed->items);
	settled->items = arena_array(arena, (size_t)run->selected_count + 1, sizeof *settled->items);
	for (int i = 0; i < run->visited && i < run->selected_count; i++) {
		const struct dataset_file *file = run->selected[i];
		const struct result *result = at < run->count && run->results[at]->file == file ? run->results[at++] : NULL;

		if (file == NULL || (result != NULL && !result->known))
			continue;
		if (result != NULL && status_group(result->status) > GROUP_UNVERIFIED)
			failed->items[failed->count++] = file->path;
		else if (run->options->cases.only == NULL)
			settled->items[settled->count++] = file->path;
	}
}

void last_failed_write(const struct run *run)
{
	struct arena arena = {0};
	struct paths failed, settled, before;
	struct buf text = {0};
	const char *old;

	if (run->records.calls == NULL || run->program->store == NULL || run->options->dry_run ||
	    run->options->from_index)
		return;
	failed = settled = (struct paths){0};
	old = read_fact(run, &arena);
	before = read_paths(old, &arena);
	sort_results(run, &arena, &failed, &settled);
	struct paths now = {arena_array(&arena, (size_t)(before.count + failed.count) + 1, sizeof *now.items), failed.count};

	memcpy(now.items, failed.items, (size_t)failed.count * sizeof *now.items);
	for (int i = 0; i < before.count; i++)
		if (!contains(&settled, before.items[i]) && !contains(&failed, before.items[i]))
			now.items[now.count++] = before.items[i];
	qsort(now.items, (size_t)now.count, sizeof *now.items, compare_paths);
	buf_text(&text, "");
	for (int i = 0; i < now.count; i++)
		buf_printf(&text, "%s\n", now.items[i]);
	if (strcmp(old, text.data) != 0 && store_writable(run->program->store))
		store_put_fact(run->program->store, key, text.data, NULL);
	buf_free(&text);
	arena_free(&arena);
}
