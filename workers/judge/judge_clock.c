#include "workers/judge/judge_clock.h"

#include <string.h>
#include <time.h>

#include "base/trace.h"

double judge_clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

enum judge_part judge_clock_turn(struct judge_clock *clock, enum judge_part part)
{
	enum judge_part before = clock->part;
	double now = judge_clock_now();

	if (clock->since > 0)
		clock->seconds[before] += now - clock->since;
	clock->since = now;
	clock->part = part;
	return before;
}

void judge_clock_trace(struct judge_clock *clock)
{
	const double *s = clock->seconds;

	judge_clock_turn(clock, clock->part);
	trace("judge", "seconds: waits %.4f, inputs %.4f, stages %.4f, checks %.4f, computes %.4f, compares %.4f, other %.4f",
	      s[JUDGE_WAITS], s[JUDGE_INPUTS], s[JUDGE_STAGES], s[JUDGE_CHECKS], s[JUDGE_COMPUTES], s[JUDGE_COMPARES],
	      s[JUDGE_OTHER]);
	memset(clock->seconds, 0, sizeof clock->seconds);
}
