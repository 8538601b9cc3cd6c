/* judge_clock - adds up the time that a judge spends on each kind of work. The sums are only for developers: with
 * REFTEST_TRACE, the judge prints the sums after each definition, and bench/bare_loop.py --roots makes a table of
 * them. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_CLOCK_H
#define REFTEST_WORKERS_JUDGE_JUDGE_CLOCK_H

enum judge_part {
	JUDGE_WAITS,	/* waits for a message: the reference runs, or there is no work */
	JUDGE_INPUTS,	/* fills and checks the inputs of a case */
	JUDGE_STAGES,	/* writes inputs and poison to the shared memory */
	JUDGE_CHECKS,	/* checks the shared memory after a run */
	JUDGE_COMPUTES, /* computes the ground truth `builtin`, or that of a chain of operations */
	JUDGE_COMPARES,
	JUDGE_OTHER,
	JUDGE_PARTS
};

/* All zeros: nothing was measured yet. */
struct judge_clock {
	enum judge_part part;
	double since; /* seconds, monotonic clock, when the part began; 0: the clock has not started */
	double seconds[JUDGE_PARTS];
};

double judge_clock_now(void); /* seconds, monotonic clock */

/* Call this when the judge begins with `part`. Returns the part that ended, so that the caller can return to it. */
enum judge_part judge_clock_turn(struct judge_clock *clock, enum judge_part part);
/* Prints the sums if REFTEST_TRACE is set, and resets them to zero. */
void judge_clock_trace(struct judge_clock *clock);

#endif
