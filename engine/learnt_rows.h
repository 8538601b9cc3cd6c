/* learnt_rows - checks whether the rows of a definition's later cases are as independent as the rows of its first
 * cases.
 *
 * For each case, the check `rows` (docs/verify.md) finds the axes along which the rows are independent. This means that
 * each row of the outputs depends only on the same row of the inputs. If the rows depend on each other in every case,
 * this is a property of the operation and no mistake. If the rows along an axis are independent in one case but not in
 * a later case, the reference handles some sizes differently. The check then fails in the later case. If a ground truth
 * decides the later case, the case gets a finding instead. This failure or finding depends on other cases, so it is not
 * written to the store: a stored verdict must not depend on other cases. */
#ifndef REFTEST_ENGINE_LEARNT_ROWS_H
#define REFTEST_ENGINE_LEARNT_ROWS_H

#include "engine/run_state.h"

/* Compares the cases of the result in their order. Replaces the verdict of each case in which the check fails. If a
 * ground truth decided the case, the new verdict has the status of the old one and a finding. Otherwise the new verdict
 * is `failed` if the inputs of the case are known to be valid, and `skipped` if they are not. */
void learn_rows(struct result *result);

#endif
