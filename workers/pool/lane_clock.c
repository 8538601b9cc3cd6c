#include "workers/pool/lane_clock.h"

#include <time.h>

#include "base/trace.h"
#include "workers/pool/lane.h"

double lane_clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static enum lane_part part_of(const struct lane *lane)
{
	return lane->phase == LANE_IDLE	     ? LANE_HAS_NO_WORK
	       : lane->phase == LANE_WAITING ? LANE_WAITS
	       : lane->running		     ? LANE_RUNS
	       : lane->run != NULL	     ? LANE_LOADS
	       : lane->asking || lane->making ? LANE_IS_GIVEN
					      : LANE_JUDGES;
}

void lane_clock_tick(struct lane *lane, double seconds[LANE_PARTS])
{
	struct lane_clock *clock = &lane->clock;
	double now = lane_clock_now();

	if (clock->since > 0)
		seconds[clock->part] += now - clock->since;
	*clock = (struct lane_clock){part_of(lane), now};
}

void lane_clock_trace(const double s[LANE_PARTS], int lanes)
{
	trace("pool", "seconds of %d lanes: no work %.4f, waits %.4f, loads %.4f, runs %.4f, judges %.4f, given %.4f", lanes,
	      s[LANE_HAS_NO_WORK], s[LANE_WAITS], s[LANE_LOADS], s[LANE_RUNS], s[LANE_JUDGES], s[LANE_IS_GIVEN]);
}
