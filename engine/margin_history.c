#include "engine/margin_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double margin_of_verdict(const struct verdict *v)
{
	double margin = (double)NAN;

	for (int i = 0; i < v->output_count; i++)
		if (isnan(margin) || v->outputs[i].metrics.margin > margin)
			margin = v->outputs[i].metrics.margin;
	return margin;
}

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
				     .margin = margin_of_verdict(v),
				     .status = v->status,
				     .torch = known(v->torch),
				     .cuda = known(v->cuda),
				     .ground_truth = known(v->ground_truth),
				     .version = known(v->ground_truth_version),
				     .device_class = known(v->device_class)};
}

static int by_time(const void *a, const void *b)
{
	const struct margin_point *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* The verdict that counts may not be in the store. */
int margin_history(const struct result *result, const struct case_result *c, struct arena *arena,
		   const struct margin_point **out)
{
	const struct run_store *records = &result->run->records;
	const struct stored_verdict *stored = NULL;
	const struct verdict *now = margin_verdict(c, arena);
	int found = 0, count = 0;

	if (records->calls != NULL && c->test->job != NULL)
		found = records->calls->verdicts(records->self, &c->test->subject, arena, &stored);
	struct margin_point *points = arena_array(arena, (size_t)(found > 0 ? found : 0) + 1, sizeof *points);

	for (int i = 0; i < found; i++) {
		const struct verdict *v = verdict_parse(stored[i].text, stored[i].length, arena, NULL);

		if (v != NULL && !(now != NULL && digest_equal(&stored[i].witness, &c->witness)))
			points[count++] = point_of(v);
	}
	if (now != NULL)
		points[count++] = point_of(now);
	found = count;
	count = 0;
	for (int i = 0; i < found; i++)
		if (!isnan(points[i].margin))
			points[count++] = points[i];
	qsort(points, (size_t)count, sizeof *points, by_time);
	*out = points;
	return count;
}
