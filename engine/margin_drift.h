/* margin_drift - shows how the margins of a case changed when the version of torch, CUDA, the GPU driver or a ground
 * truth changed (engine/margin_history.h). Two verdicts are compared only if they have the same subject, device class
 * and ground truth. Verdicts on the same subject have the same reference, inputs and bounds. */
#ifndef REFTEST_ENGINE_MARGIN_DRIFT_H
#define REFTEST_ENGINE_MARGIN_DRIFT_H

#include "engine/margin_history.h"

/* A margin has moved if it changed by more than the factor DRIFT_FACTOR. Rounding alone may change a tiny margin by any
 * factor. Therefore a margin below DRIFT_LEAST counts as DRIFT_LEAST. */
#define DRIFT_FACTOR 2.0
#define DRIFT_LEAST  0x1p-10

struct margin_drift {
	const struct result *result;
	const struct case_result *c;
	/* to: the newest verdict of this device class and ground truth; from: the older verdict whose margin differs
	 * most from the margin of `to` */
	struct margin_point from, to;
	double factor; /* to.margin / from.margin; 1 if both are infinite */
};

enum drift_kind { DRIFT_GREW, DRIFT_FELL, DRIFT_STAYED, DRIFT_KINDS };
enum drift_kind margin_drift_kind(const struct margin_drift *drift);

struct margin_drifts {
	const struct margin_drift *items; /* sorted by `to.margin`, the largest first */
	int count;
	int never_compared; /* the number of definitions for which no two verdicts can be compared */
};

/* Returns, for each definition, device class and ground truth, the case whose margin moved most. If `each` is true,
 * returns all cases. The run must be finished and must have details (run_options.details). The result is allocated in
 * `arena`. */
struct margin_drifts margin_drifts_of(const struct run *run, bool each, struct arena *arena);

#endif
