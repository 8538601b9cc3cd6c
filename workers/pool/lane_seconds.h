/* lane_seconds - adds up the time that the lanes of a pool spend on each kind of work. The sums are only for
 * developers. If REFTEST_TRACE is set, the pool prints the sums when it closes, and bench/bare_loop.py --roots makes
 * a table of them. */
#ifndef REFTEST_WORKERS_POOL_LANE_SECONDS_H
#define REFTEST_WORKERS_POOL_LANE_SECONDS_H

enum lane_part {
	LANE_HAS_NO_WORK,
	LANE_WAITS,    /* the lane waits for a judge or a runner */
	LANE_LOADS,    /* the judge has requested a run, but the runner is still loading the reference */
	LANE_RUNS,     /* the reference runs, and the judge may work at the same time */
	LANE_JUDGES,   /* the judge works, and the reference waits */
	LANE_IS_GIVEN, /* the lane waits for another process, which makes inputs or a ground truth */
	LANE_PARTS
};

/* Set all members to 0 before the first use. */
struct lane_seconds {
	enum lane_part part;
	double since; /* the time of the last call of lane_seconds_turn, in seconds of the monotonic clock; 0: there was
		       * none */
};

double lane_seconds_now(void); /* returns the time of the monotonic clock in seconds */

/* Adds the time since the last call to the element of `seconds` for what the lane did during this time. All lanes of a
 * pool share `seconds`. `part` is what the lane does from now on. */
void lane_seconds_turn(struct lane_seconds *clock, enum lane_part part, double seconds[LANE_PARTS]);
/* Prints the sums of `lanes` lanes if REFTEST_TRACE is set. */
void lane_seconds_trace(const double seconds[LANE_PARTS], int lanes);

#endif
