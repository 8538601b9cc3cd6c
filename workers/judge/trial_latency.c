/* trial_latency - collects the latencies that the processes of the reference and of the ground truths report
 * (python/latency.py). Latencies never affect the status. */
#include "workers/judge/trial_internal.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

#define REFERENCE "reference"

enum { RUNS_MOST = 1000000 };

/* Reads the latencies of one kind of runs (warm or cold). If `json` has no latencies, sets `runs` to 0. */
static struct latency_spread read_spread(const cJSON *json)
{
	const char *const keys[] = {"median", "low", "high"};
	double seconds[3];
	int64_t runs;

	for (int i = 0; i < 3; i++) {
		const cJSON *value = json_member(json, keys[i]);

		if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0) || !isfinite(value->valuedouble))
			return (struct latency_spread){0};
		seconds[i] = value->valuedouble;
	}
	if (!json_integer(json_member(json, "runs"), &runs) || runs < 1 || runs > RUNS_MOST)
		return (struct latency_spread){0};
	return (struct latency_spread){seconds[0], seconds[1], seconds[2], (int)runs};
}

/* Adds latencies to the list. The reference's latencies come first. */
static void add(struct trial *trial, struct latency latency)
{
	for (int i = 0; i < trial->latency_count; i++)
		if (trial->latencies[i].name == latency.name)
			return;
	if (trial->latency_count == LATENCIES_MAX)
		return;
	trial->latencies[trial->latency_count++] = latency;
	if (strcmp(latency.name, REFERENCE) == 0) {
		memmove(trial->latencies + 1, trial->latencies, (size_t)(trial->latency_count - 1) * sizeof latency);
		trial->latencies[0] = latency;
	}
}

void trial_note_latency(struct trial *trial, const char *name, const cJSON *message)
{
	const cJSON *json = json_member(message, "latency");
	const char *timer = json_text_of(json, "timer");
	struct latency latency = {.name = name,
				  .cuda_events = timer != NULL && timer[0] == 'c',
				  .warm = read_spread(json_member(json, "warm")),
				  .cold = read_spread(json_member(json, "cold"))};

	if (trial->job->bench && latency.warm.runs > 0)
		add(trial, latency);
}

void trial_note_seconds(struct trial *trial, const char *name, double seconds)
{
	if (trial->job->bench)
		add(trial, (struct latency){.name = name, .warm = {seconds, seconds, seconds, 1}});
}
