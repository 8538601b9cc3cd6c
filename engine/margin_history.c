#include "engine/margin_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct verdict *margin_verdict(const struct case_result *c, struct arena *arena)
{
	const struct verdict *whole =
	    c->stored != NULL ? verdict_parse(c->stored->text, c->stored->length, arena, NULL) : NULL;

	return whole != NULL ? whole : c->verdict;
}

static const char *known(const char *text)
{
	return text != NULL ? text : "";
}

static struct margin_point point_of(const struct verdict *v)
{
	return (struct margin_point){.time = v->time,
				     .margin = verdict_margin(v),
				     .status = v->status,
				     .torch = known(v->torch),
				     .cuda = known(v->cuda),
				     .driver = known(v->driver),
				     .ground_truth = known(v->ground_truth),
				     .version = known(v->ground_truth_version),
				     .device_class = known(v->device_class)};
}

struct points {
	struct margin_point *items;
	int count, room;
	struct arena *arena;
};

static void add_point(struct points *points, struct margin_point point)
{
	if (isnan(point.margin))
		return;
	if (points->count == points->room) {
		struct margin_point *items = arena_array(points->arena, (size_t)points->room * 2 + 8, sizeof *items);

		if (points->count > 0)
			memcpy(items, points->items, (size_t)points->count * sizeof *items);
		points->items = items;
		points->room = points->room * 2 + 8;
	}
	points->items[points->count++] = point;
}

/* Adds the margin of a verdict, and the margins that the verdict lists for other versions of the driver. */
static void add_verdict(struct points *points, const struct verdict *v)
{
	struct margin_point point = point_of(v);

	add_point(points, point);
	for (int i = 0; i < v->driver_count; i++) {
		point.driver = v->drivers[i].driver;
		point.status = v->drivers[i].status;
		point.time = v->drivers[i].time;
		point.margin = v->drivers[i].margin;
		add_point(points, point);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct margin_point *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* The store may lack the case's current verdict, so the margin of this verdict is added separately. */
int margin_history(const struct result *result, const struct case_result *c, struct arena *arena,
		   const struct margin_point **out)
{
	const struct run_store *records = &result->run->records;
	const struct stored_verdict *stored = NULL;
	const struct verdict *now = margin_verdict(c, arena);
	struct points points = {.arena = arena};
	int found = 0;

	if (records->calls != NULL && c->test->job != NULL)
		found = records->calls->verdicts(records->self, &c->test->subject, arena, &stored);
	for (int i = 0; i < found; i++) {
		const struct verdict *v = verdict_parse(stored[i].text, stored[i].length, arena, NULL);

		if (v != NULL && !(now != NULL && digest_equal(&stored[i].witness, &c->witness)))
			add_verdict(&points, v);
	}
	if (now != NULL)
		add_verdict(&points, now);
	if (points.count > 0)
		qsort(points.items, (size_t)points.count, sizeof *points.items, by_time);
	*out = points.items;
	return points.count;
}
