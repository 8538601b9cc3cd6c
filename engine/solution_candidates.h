/* solution_candidates - the solutions of a dataset as the code that a run verifies, in the place of the reference
 * (`verify --solutions`). Each solution of a definition whose reference passed, or is checked, gets a result of its
 * own. Its cases have the inputs and the ground truths of the definition; after these, the reference itself is a ground
 * truth. */
#ifndef REFTEST_ENGINE_SOLUTION_CANDIDATES_H
#define REFTEST_ENGINE_SOLUTION_CANDIDATES_H

#include "engine/run_state.h"

#define REFERENCE_TRUTH "reference" /* the name of the reference as a ground truth of its solutions */

/* What an earlier run found out about the references. */
struct candidates {
	const struct run *references;
};

/* Returns the solution that the result verifies, or NULL if the result verifies a reference. */
const struct own_truth *candidate_of(const struct result *result);

/* Decides a solution that need not run: its file is invalid, it cannot run on this machine, or the reference did not
 * pass. Returns false if it can run. */
bool candidate_decided(struct result *result);

/* Returns the reference of the definition as a ground truth. */
struct own_truth candidate_reference_truth(const struct result *result, struct arena *arena);

#endif
