/* lane_clock - adds up the time that the lanes of a pool spend on each kind of work. The sums are only for developers:
 * with REFTEST_TRACE, the pool prints the sums when it closes, and bench/bare_loop.py --roots makes a table of them. */
#ifndef REFTEST_WORKERS_POOL_LANE_CLOCK_H
#define REFTEST_WORKERS_POOL_LANE_CLOCK_H

enum lane_part {
	LANE_HAS_NO_WORK,
	LANE_WAITS,    /* waits for a judge or a runner */
	LANE_LOADS,    /* the judge has asked for a run, but the runner still loads the reference */
	LANE_RUNS,     /* the reference runs; the judge may work meanwhile */
	LANE_JUDGES,   /* the judge works, and the reference waits */
	LANE_IS_GIVEN, /* waits for another process, which makes inputs or a ground truth */
	LANE_PARTS
};

/* All zeros: nothing was measured yet. */
struct lane_clock {
	enum lane_part part;
	double since; /* seconds, monotonic clock; 0: the clock has not started */
};

double lane_clock_now(void); /* seconds, monotonic clock */

/* Adds the time since the last call to `seconds`, which the lanes of a pool share. `part`: what the lane does from now
 * on. */
void lane_clock_turn(struct lane_clock *clock, enum lane_part part, double seconds[LANE_PARTS]);
/* Prints the sums of `lanes` lanes if REFTEST_TRACE is set. */
void lane_clock_trace(const double seconds[LANE_PARTS], int lanes);

#endif
