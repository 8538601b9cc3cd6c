#include "workers/judge/judge_seconds.h"

#include <time.h>

#include "base/buf.h"
#include "base/trace.h"

double judge_seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

enum judge_part judge_seconds_turn(struct judge_seconds *clock, enum judge_part part)
{
	enum judge_part before = clock->part;
	double now = judge_seconds_now();

	if (clock->since > 0) {
		clock->seconds[before] += now - clock->since;
		(before == JUDGE_WAITS ? clock->waits : clock->works)[clock->purpose] += now - clock->since;
	}
	clock->since = now;
	clock->part = part;
	return before;
}

static void begin_purpose(struct judge_seconds *clock, enum judge_purpose purpose)
{
	judge_seconds_turn(clock, clock->part);
	clock->purpose = purpose;
}

void judge_seconds_count_run(struct judge_seconds *clock, enum judge_purpose purpose)
{
	begin_purpose(clock, purpose);
	clock->runs[purpose]++;
}

void judge_seconds_end_runs(struct judge_seconds *clock)
{
	begin_purpose(clock, JUDGE_USUAL);
}

/* Prints a figure for each purpose. */
static void trace_purposes(const char *title, const double *figures)
{
	static const char *const names[JUDGE_PURPOSES] = {"usual", "seeds", "gradients", "effects", "strided", "rows", "float64", "cpu"};
	struct buf line = {0};

	for (int i = 0; i < JUDGE_PURPOSES; i++)
		buf_printf(&line, "%s%s %.4f", i > 0 ? ", " : "", names[i], figures[i]);
	trace("judge", "%s: %s", title, line.data);
	buf_free(&line);
}

void judge_seconds_trace(struct judge_seconds *clock)
{
	const double *s = clock->seconds;
	double runs[JUDGE_PURPOSES];

	judge_seconds_turn(clock, clock->part);
	if (!trace_on()) {
		*clock = (struct judge_seconds){.part = clock->part, .since = clock->since};
		return;
	}
	trace("judge", "seconds: waits %.4f, inputs %.4f, stages %.4f, checks %.4f, computes %.4f, compares %.4f, other %.4f",
	      s[JUDGE_WAITS], s[JUDGE_INPUTS], s[JUDGE_STAGES], s[JUDGE_CHECKS], s[JUDGE_COMPUTES], s[JUDGE_COMPARES],
	      s[JUDGE_OTHER]);
	for (int i = 0; i < JUDGE_PURPOSES; i++)
		runs[i] = clock->runs[i];
	trace_purposes("runs for", runs);
	trace_purposes("seconds of waiting for", clock->waits);
	trace_purposes("seconds of work for", clock->works);
	*clock = (struct judge_seconds){.part = clock->part, .since = clock->since};
}
