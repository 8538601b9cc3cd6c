/* learnt_rows - holds the cases of a definition to what its first cases show about rows.
 *
 * The check `rows` says for each case along which axes the rows are independent of each other. That they depend on each
 * other is a property of the operation, if it is so in all cases. If the rows along an axis are independent in one case
 * and not in a later one, the reference handles some sizes in another way, and the check fails in the later case. If a
 * ground truth decides the case, that is a finding. The stored verdict of a case does not say so, because it depends on
 * this case alone. */
#ifndef REFTEST_ENGINE_LEARNT_ROWS_H
#define REFTEST_ENGINE_LEARNT_ROWS_H

#include "engine/run_state.h"

/* Compares the cases of the result in their order. Replaces the verdicts of those in which the check fails: they are
 * `failed` if their inputs are known to be valid, otherwise `skipped`. A verdict that a ground truth decided gets a
 * finding, once. */
void learn_rows(struct result *result);

#endif
