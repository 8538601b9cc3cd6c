#include "engine/margin_drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Collects the drifts of a run. */
struct collector {
	struct arena *arena;
	struct margin_drift *items;
	int count, room;
};

static double factor_of(double from, double to)
{
	if (isinf(from) && isinf(to))
		return 1;
	return fmax(to, DRIFT_LEAST) / fmax(from, DRIFT_LEAST);
}

/* Returns how far a factor is from 1, in either direction. */
static double distance(double factor)
{
	return fabs(log2(factor));
}

enum drift_kind margin_drift_kind(const struct margin_drift *drift)
{
	if (distance(drift->factor) <= log2(DRIFT_FACTOR))
		return DRIFT_STAYED;
	return drift->factor > 1 ? DRIFT_GREW : DRIFT_FELL;
}

static void add(struct collector *all, const struct margin_drift *drift)
{
	if (all->count == all->room) {
		struct margin_drift *items = arena_array(all->arena, (size_t)all->room * 2 + 16, sizeof *items);

		if (all->count > 0)
			memcpy(items, all->items, (size_t)all->count * sizeof *items);
		all->items = items;
		all->room = all->room * 2 + 16;
	}
	all->items[all->count++] = *drift;
}

/* Returns whether two margins have the same device class and ground truth. Only such margins are compared, because a
 * different device class or ground truth also changes the margin. */
static bool same_kind(const struct margin_point *a, const struct margin_point *b)
{
	return strcmp(a->device_class, b->device_class) == 0 && strcmp(a->ground_truth, b->ground_truth) == 0;
}

/* Adds the drift to the items. The items from index `first` on are drifts of the same definition. If `each` is false,
 * only the largest of these is kept for each device class and ground truth. */
static void add_or_replace(struct collector *all, int first, bool each, const struct margin_drift *drift)
{
	for (int i = first; i < all->count && !each; i++) {
		if (!same_kind(&all->items[i].to, &drift->to))
			continue;
		if (distance(drift->factor) > distance(all->items[i].factor))
			all->items[i] = *drift;
		return;
	}
	add(all, drift);
}

/* Compares points[at], the newest margin of its device class and ground truth, with the older margins of the same
 * device class and ground truth. Returns false if there are no older ones. */
static bool compare(const struct margin_point *points, int at, struct margin_drift *out)
{
	bool any = false;

	for (int i = 0; i < at; i++) {
		double factor = factor_of(points[i].margin, points[at].margin);

		if (!same_kind(&points[i], &points[at]) ||
		    (any && distance(factor) <= distance(out->factor)))
			continue;
		out->from = points[i];
		out->to = points[at];
		out->factor = factor;
		any = true;
	}
	return any;
}

static bool is_newest(const struct margin_point *points, int count, int at)
{
	for (int i = at + 1; i < count; i++)
		if (same_kind(&points[i], &points[at]))
			return false;
	return true;
}

static void add_result(struct collector *all, const struct result *result, bool each)
{
	int first = all->count;

	for (int i = 0; i < result->case_count; i++) {
		struct margin_drift drift = {.result = result, .c = &result->cases[i]};
		const struct margin_point *points;
		int count = drift.c->test->beside ? 0 : margin_history(result, drift.c, all->arena, &points);

		for (int at = 0; at < count; at++)
			if (is_newest(points, count, at) && compare(points, at, &drift))
				add_or_replace(all, first, each, &drift);
	}
}

/* Drifts with equal margins are in the order of their definitions' paths. */
static int by_margin(const void *a, const void *b)
{
	const struct margin_drift *x = a, *y = b;

	if (x->to.margin != y->to.margin)
		return x->to.margin > y->to.margin ? -1 : 1;
	return strcmp(x->result->file->path, y->result->file->path);
}

struct margin_drifts margin_drifts_of(const struct run *run, bool each, struct arena *arena)
{
	struct collector all = {.arena = arena};
	int never_compared = 0;

	for (int i = 0; i < run->count; i++) {
		int before = all.count;

		add_result(&all, run->results[i], each);
		never_compared += all.count == before;
	}
	if (all.count > 0)
		qsort(all.items, (size_t)all.count, sizeof *all.items, by_margin);
	return (struct margin_drifts){all.items, all.count, never_compared};
}
