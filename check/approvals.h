/* approvals - checks the files of approved references (dataset/approval.h). */
#ifndef REFTEST_CHECK_APPROVALS_H
#define REFTEST_CHECK_APPROVALS_H

#include "check/dataset_index.h"

/* Reports an approval if no definition belongs to it, if it cannot be read, or if it approves an older text of the
 * definition. Call this function after the definitions are checked. */
void check_approvals(struct dataset_index *index);

#endif
