/* judge_clock - adds up what a judge spends its time on. It decides nothing: with REFTEST_TRACE, the judge prints the
 * sums after each definition, and bench/bare_loop.py --roots makes a table of them. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_CLOCK_H
#define REFTEST_WORKERS_JUDGE_JUDGE_CLOCK_H

enum judge_part {
	JUDGE_WAITS,	/* for a message: the reference runs, or there is no work */
	JUDGE_INPUTS,	/* fills and checks the inputs of a case */
	JUDGE_STAGES,	/* writes inputs and poison to the shared memory */
	JUDGE_CHECKS,	/* looks at the shared memory after a run */
	JUDGE_COMPUTES, /* computes the ground truth builtin, or a chain */
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

/* The judge does something else from now on. Returns what it did before, to which the caller may return. */
enum judge_part judge_clock_turn(struct judge_clock *clock, enum judge_part part);
/* Prints the sums if REFTEST_TRACE is set, and begins them anew. */
void judge_clock_trace(struct judge_clock *clock);

#endif
