/* tolerance_text - reads a tolerance as users write it: "[DTYPE=]ATOL[,RTOL[,HIT_RATIO]]". */
#ifndef REFTEST_ENGINE_TOLERANCE_TEXT_H
#define REFTEST_ENGINE_TOLERANCE_TEXT_H

#include "base/dtype.h"
#include "base/err.h"
#include "dataset/definition.h"

/* Reads several texts. A tolerance for one dtype overrides a tolerance for all dtypes, in whatever order they are
 * given. Returns -1 and sets `err` if a text is not of the form above. `source` says in messages where the texts are
 * from: "--tolerance". */
int tolerance_texts_read(const char *const *texts, int count, const char *source, struct tolerance by_dtype[DTYPE_COUNT],
			 struct err *err);

#endif
