/* judge_clock - adds up the time that a judge spends on each kind of work, and counts the runs of the reference for
 * each purpose. The sums are only for developers: with REFTEST_TRACE, the judge prints the sums after each case, and
 * bench/bare_loop.py makes tables of them. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_CLOCK_H
#define REFTEST_WORKERS_JUDGE_JUDGE_CLOCK_H

enum judge_part {
	JUDGE_WAITS,	/* waits for a message: the reference runs, or there is no work */
	JUDGE_INPUTS,	/* fills and checks the inputs of a case */
	JUDGE_STAGES,	/* writes inputs and poison to the shared memory */
	JUDGE_CHECKS,	/* checks the shared memory after a run */
	JUDGE_COMPUTES, /* computes the ground truth of `builtin` or of a chain of operations */
	JUDGE_COMPARES,
	JUDGE_OTHER,
	JUDGE_PARTS
};

/* What a run of the reference is for. Each purpose after the first one is a kind of extra runs (extra_runs.c). */
enum judge_purpose {
	JUDGE_USUAL, /* the first, the second and the third run, and the work between definitions */
	JUDGE_SEEDS,
	JUDGE_GRADIENTS,
	JUDGE_EFFECTS,
	JUDGE_STRIDED,
	JUDGE_ROWS,
	JUDGE_FLOAT64,
	JUDGE_ON_CPU,
	JUDGE_PURPOSES
};

/* All zeros: nothing was measured yet. */
struct judge_clock {
	enum judge_part part;
	enum judge_purpose purpose;
	double since; /* seconds, monotonic clock, when the part began; 0: the clock has not started */
	double seconds[JUDGE_PARTS];
	int runs[JUDGE_PURPOSES];
	double waits[JUDGE_PURPOSES], works[JUDGE_PURPOSES]; /* works: seconds in which the judge did not wait */
};

double judge_clock_now(void); /* seconds, monotonic clock */

/* Call this when the judge begins with `part`. Returns the previous part, so that the caller can continue with that
 * part later. */
enum judge_part judge_clock_turn(struct judge_clock *clock, enum judge_part part);
/* Counts a run of the reference. All time from now on is counted for `purpose`. */
void judge_clock_count_run(struct judge_clock *clock, enum judge_purpose purpose);
/* Call this after the extra runs of a case, and when a case ends. */
void judge_clock_end_runs(struct judge_clock *clock);
/* Prints the sums if REFTEST_TRACE is set, and resets them to zero. */
void judge_clock_trace(struct judge_clock *clock);

#endif
