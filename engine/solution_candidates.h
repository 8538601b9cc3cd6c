/* solution_candidates - lets a run verify the solutions of a dataset instead of the references (`verify --solutions`).
 * If the status of a reference is `passed` or `checked`, each solution of its definition gets a separate result. The
 * cases of a solution have the same inputs as the cases of the reference, and the same ground truths. After these, the
 * reference is used as the last ground truth. */
#ifndef REFTEST_ENGINE_SOLUTION_CANDIDATES_H
#define REFTEST_ENGINE_SOLUTION_CANDIDATES_H

#include "engine/run_state.h"

#define REFERENCE_TRUTH "reference" /* the name of the reference as a ground truth of solutions */

/* The earlier run that verified the references. */
struct candidates {
	const struct run *references;
};

/* Returns the solution that the result verifies, or NULL if it verifies a reference. */
const struct own_truth *candidate_of(const struct result *result);

/* Returns true and sets the result if the solution need not run: its file is invalid, it cannot run on this machine, or
 * the reference did not pass. Otherwise returns false. */
bool candidate_decided(struct result *result);

/* Returns the reference of the definition as a ground truth. */
struct own_truth candidate_reference_truth(const struct result *result, struct arena *arena);

#endif
