#include "workers/pool/lane_seconds.h"

#include <time.h>

#include "base/trace.h"

double lane_seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void lane_seconds_turn(struct lane_seconds *clock, enum lane_part part, double seconds[LANE_PARTS])
{
	double now = lane_seconds_now();

	if (clock->since > 0)
		seconds[clock->part] += now - clock->since;
	*clock = (struct lane_seconds){part, now};
}

void lane_seconds_trace(const double s[LANE_PARTS], int lanes)
{
	trace("pool", "seconds of %d lanes: no work %.4f, waits %.4f, loads %.4f, runs %.4f, judges %.4f, given %.4f", lanes,
	      s[LANE_HAS_NO_WORK], s[LANE_WAITS], s[LANE_LOADS], s[LANE_RUNS], s[LANE_JUDGES], s[LANE_IS_GIVEN]);
}
