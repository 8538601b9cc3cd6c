/* margin_drift - what another version of torch, CUDA, the GPU's driver or a ground truth did to the margins of the
 * same cases (engine/margin_history.h). Only verdicts on one subject, of one device class and with the same ground truth
 * are compared, so that the reference, the inputs and the bounds are the same. */
#ifndef REFTEST_ENGINE_MARGIN_DRIFT_H
#define REFTEST_ENGINE_MARGIN_DRIFT_H

#include "engine/margin_history.h"

/* A margin that changed by more than DRIFT_FACTOR has moved. Margins below DRIFT_LEAST count as DRIFT_LEAST, because
 * rounding moves them by any factor. */
#define DRIFT_FACTOR 2.0
#define DRIFT_LEAST  0x1p-10

struct margin_drift {
	const struct result *result;
	const struct case_result *c;
	/* to: the newest verdict with a device class and a ground truth; from: of the older ones, the one whose margin
	 * differs most */
	struct margin_point from, to;
	double factor; /* to.margin / from.margin; 1 if both are infinite */
};

enum drift_kind { DRIFT_GREW, DRIFT_FELL, DRIFT_STAYED, DRIFT_KINDS };
enum drift_kind margin_drift_kind(const struct margin_drift *drift);

struct margin_drifts {
	const struct margin_drift *items; /* the largest newest margin first */
	int count;
	int never_compared; /* the number of definitions whose cases have verdicts of one version at most */
};

/* Returns for each definition, device class and ground truth the case that moved most, or (`each`) every case. The run
 * is finished and has details (run_options.details); the result is in `arena`. */
struct margin_drifts margin_drifts_of(const struct run *run, bool each, struct arena *arena);

#endif
