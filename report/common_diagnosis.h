/* common_diagnosis - the mistakes that explain all failed cases of a definition. kernels/core/diagnosis.c finds those
 * of a case, and report/text.c prints them. */
#ifndef REFTEST_REPORT_COMMON_DIAGNOSIS_H
#define REFTEST_REPORT_COMMON_DIAGNOSIS_H

#include "engine/run.h"

enum { DIAGNOSIS_SHOWN = 2 };

/* Writes the mistakes that explain every failed case of the definition on which mistakes were tried, and returns their
 * number, at most DIAGNOSIS_SHOWN. The strings belong to the verdicts. */
int diagnosis_of(const struct result *result, const char *says[DIAGNOSIS_SHOWN]);
/* Appends the member "diagnosis" of a JSON object, after another one. */
void diagnosis_json(const struct result *result, struct buf *out);

#endif
