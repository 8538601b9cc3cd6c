#include "engine/remembered_seconds.h"

#include <string.h>

#include "engine/definition_files.h"

double remembered_seconds(struct result *result, const struct case_result *c)
{
	const struct run_store records = result->run->records;
	struct arena *arena = &result->arena;
	const struct stored_verdict *stored;
	struct latest latest;

	if (records.calls == NULL || records.calls->latest(records.self, result_name(result, arena), c->test->id, arena,
							   &latest) != CACHE_HIT)
		return 0;
	int count = records.calls->verdicts(records.self, &latest.subject, arena, &stored);

	for (int i = 0; i < count; i++) {
		const struct verdict *v = digest_equal(&stored[i].witness, &latest.witness)
					      ? verdict_parse(stored[i].text, stored[i].length, arena, NULL)
					      : NULL;

		if (v != NULL)
			return v->seconds;
	}
	return 0;
}

/* The cases that are submitted but not finished. */
struct left {
	double seconds; /* the sum of the remembered times; a case without a remembered time adds nothing */
	int remembered, unknown;
};

static void add_left(const struct result *result, struct left *left)
{
	for (int i = 0; i < result->planned; i++) {
		const struct case_result *c = &result->cases[i];

		if (c->verdict != NULL || !c->executes)
			continue;
		left->seconds += c->remembered;
		left->remembered += c->remembered > 0;
		left->unknown += c->remembered <= 0;
	}
}

/* Returns the seconds that the running cases have taken until now. If a case has run longer than its remembered time,
 * only the remembered time is added. */
static double spent(const struct run *run, double now)
{
	struct pool_running running[RUNNING_MOST];
	int count = run->runner.calls != NULL ? run->runner.calls->running(run->runner.self, running, RUNNING_MOST) : 0;
	double seconds = 0;

	for (int i = 0; i < count; i++) {
		const struct result *result = running[i].owner;

		for (int k = 0; k < result->planned && running[i].started > 0; k++) {
			const struct case_result *c = &result->cases[k];
			double taken = now - running[i].started;

			if (c->test->job == running[i].job && c->verdict == NULL)
				seconds += taken < c->remembered ? taken : c->remembered;
		}
	}
	return seconds;
}

/* If a case has no remembered time, it is assumed to take as long as the finished cases of this run took on average. */
double remembered_seconds_left(const struct run *run, int lanes, double now)
{
	struct left left = {0};

	for (int i = 0; i < run->count; i++)
		if (run->results[i]->waiting)
			add_left(run->results[i], &left);
	if (left.remembered + left.unknown == 0 || (left.unknown > 0 && run->cases_run == 0))
		return -1;
	double mean = run->cases_run > 0 ? run->seconds_of_cases / (double)run->cases_run : 0;

	return (left.seconds + mean * left.unknown - spent(run, now)) / (lanes > 0 ? lanes : 1);
}
