#include "cache/driver_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/verdict.h"

/* Each of the two verdicts lists at most DRIVER_MARGINS_MAX margins. The replaced verdict also has a margin of its
 * own. */
enum { ROOM = 2 * DRIVER_MARGINS_MAX + 1 };

struct list {
	struct driver_margin items[ROOM];
	int count;
	bool changed;
};

/* Adds a margin to the list. Skips the margin if it was measured with the driver of the verdict `kept`. For each other
 * driver, the list keeps only the newest margin. */
static void add(struct list *list, const struct verdict *kept, struct driver_margin margin)
{
	if (isnan(margin.margin) || (kept->driver != NULL && strcmp(margin.driver, kept->driver) == 0))
		return;
	for (int i = 0; i < list->count; i++) {
		if (strcmp(list->items[i].driver, margin.driver) != 0)
			continue;
		if (margin.time > list->items[i].time) {
			list->items[i] = margin;
			list->changed = true;
		}
		return;
	}
	list->items[list->count++] = margin;
	list->changed = true;
}

static int by_time(const void *a, const void *b)
{
	const struct driver_margin *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

static void join(const struct verdict *kept, const struct verdict *dropped, struct list *list)
{
	for (int i = 0; i < kept->driver_count; i++)
		add(list, kept, kept->drivers[i]);
	list->changed = list->count != kept->driver_count;
	for (int i = 0; i < dropped->driver_count; i++)
		add(list, kept, dropped->drivers[i]);
	if (dropped->driver != NULL)
		add(list, kept,
		    (struct driver_margin){dropped->driver, dropped->status, dropped->time, verdict_margin(dropped)});
	qsort(list->items, (size_t)list->count, sizeof *list->items, by_time);
}

/* Returns false if the verdict names no driver, for example because the case ran on a CPU. Searches the text without
 * parsing it, because parsing would take longer. */
static bool may_have_driver(const char *text, size_t length)
{
	static const char key[] = "\"driver";

	return memmem(text, length, key, sizeof key - 1) != NULL;
}

bool driver_history_join(const char *kept, size_t kept_length, const char *dropped, size_t dropped_length,
			 struct buf *out)
{
	struct arena arena = {0};
	struct list list = {.count = 0};

	if (!may_have_driver(dropped, dropped_length))
		return false;
	const struct verdict *stays = verdict_parse(kept, kept_length, &arena, NULL);
	const struct verdict *goes = stays == NULL ? NULL : verdict_parse(dropped, dropped_length, &arena, NULL);

	if (goes != NULL)
		join(stays, goes, &list);
	if (list.changed) {
		struct verdict joined = *stays;
		int count = list.count < DRIVER_MARGINS_MAX ? list.count : DRIVER_MARGINS_MAX;

		joined.drivers = list.items + (list.count - count);
		joined.driver_count = count;
		verdict_write(&joined, out);
	}
	arena_free(&arena);
	return list.changed;
}
