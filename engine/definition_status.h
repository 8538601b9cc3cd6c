/* definition_status - decides for each case whether it must run or whether a stored verdict counts. Also computes the
 * status of a definition from the verdicts of its cases. The functions of this module read the store, but they run no
 * case and write nothing. */
#ifndef REFTEST_ENGINE_DEFINITION_STATUS_H
#define REFTEST_ENGINE_DEFINITION_STATUS_H

#include "engine/run_state.h"

/* Looks for a stored verdict that counts for a case. If there is one, sets the verdict of the case to the stored
 * verdict. Returns true if the case must run. */
bool resolve_case(struct result *result, struct case_result *c);

/* Returns whether a stored verdict counts for the case. Does not change the case. */
bool resolve_known(struct result *result, const struct case_result *c);

/* Call this after resolve_case was called for every case. If only the beginning of every case's verdict was parsed,
 * does nothing, because only the status of such a definition is reported. Otherwise parses all these verdicts
 * completely. */
void resolve_read_wholly(struct result *result);

/* Sets the verdict of the case and increments the number of decided cases. */
void resolve_settle(struct result *result, struct case_result *c, const struct verdict *verdict);

/* Returns a new verdict with status skipped and the reason why the case did not run. */
const struct verdict *resolve_not_run(struct result *result, enum reason reason, const char *message);

/* Returns the witness digest of a verdict, which is part of the verdict's key in the store. The witness digest covers
 * everything that verified the case: the ground truths and their versions, the device class, torch, CUDA and Python. */
struct digest resolve_witness(const struct verdict *v, struct arena *arena);

/* Counts the cases, and gives the definition the status of its worst case. */
void resolve_definition(struct result *result);

/* Returns whether the case has no verdict in this run. This means that no stored verdict counts and that the case did
 * not run. */
bool case_lacks_verdict(const struct case_result *c);
/* Returns whether the store has a verdict for any version of this case. */
bool case_was_verified(const struct result *result, const struct case_result *c, struct arena *arena);

#endif
