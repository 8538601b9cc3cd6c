/* judge_seconds - adds up the time that a judge spends on each kind of work, and counts the runs of the reference for
 * each purpose. The sums are only for developers. If REFTEST_TRACE is set, the judge prints the sums after each case,
 * and bench/bare_loop.py makes tables of them. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_SECONDS_H
#define REFTEST_WORKERS_JUDGE_JUDGE_SECONDS_H

enum judge_part {
	JUDGE_WAITS,	/* waits for a message: the reference runs, or there is no work */
	JUDGE_INPUTS,	/* fills and checks the inputs of a case */
	JUDGE_STAGES,	/* writes inputs and poison to the shared memory */
	JUDGE_CHECKS,	/* checks the shared memory after a run */
	JUDGE_COMPUTES, /* computes the ground truth builtin, or a chain of operations that is a ground truth */
	JUDGE_COMPARES,
	JUDGE_OTHER,
	JUDGE_PARTS
};

/* The purpose of a run of the reference. Each purpose except the first belongs to a kind of extra runs
 * (extra_runs.c). */
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

/* Set all members to 0 before the first use. */
struct judge_seconds {
	enum judge_part part;
	enum judge_purpose purpose;
	double since; /* the time at which the current part began, in seconds of the monotonic clock; 0: the clock has
		       * not started */
	double seconds[JUDGE_PARTS];
	int runs[JUDGE_PURPOSES];
	double waits[JUDGE_PURPOSES], works[JUDGE_PURPOSES]; /* for each purpose: the seconds in which the judge waited,
							      * and those in which it worked */
};

double judge_seconds_now(void); /* returns the time of the monotonic clock in seconds */

/* Call this when the judge begins work of the kind `part`. Returns the previous part, so that the caller can return to
 * it later. */
enum judge_part judge_seconds_turn(struct judge_seconds *clock, enum judge_part part);
/* Counts a run of the reference. From now on, time is counted for `purpose`. */
void judge_seconds_count_run(struct judge_seconds *clock, enum judge_purpose purpose);
/* Call this after the extra runs of a case, and when a case ends. */
void judge_seconds_end_runs(struct judge_seconds *clock);
/* Prints the sums if REFTEST_TRACE is set, and resets them to zero. */
void judge_seconds_trace(struct judge_seconds *clock);

#endif
