/* common_diagnosis - finds the mistakes that explain all failed cases of a definition. kernels/core/diagnosis.c finds
 * the mistakes that explain a single case. report/text.c prints the result. */
#ifndef REFTEST_REPORT_COMMON_DIAGNOSIS_H
#define REFTEST_REPORT_COMMON_DIAGNOSIS_H

#include "engine/run.h"

enum { DIAGNOSIS_SHOWN = 2 };

/* Sets `says` to descriptions of mistakes. Each of these mistakes explains all diagnosed cases. Returns the number of
 * descriptions, at most DIAGNOSIS_SHOWN. The verdicts own the strings. */
int diagnosis_of(const struct result *result, const char *says[DIAGNOSIS_SHOWN]);
/* Appends a comma and the member "diagnosis" of a JSON object. */
void diagnosis_json(const struct result *result, struct buf *out);

#endif
