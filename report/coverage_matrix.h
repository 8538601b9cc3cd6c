/* coverage_matrix - writes the coverage of a dataset (engine/coverage.h) as text and as JSON. */
#ifndef REFTEST_REPORT_COVERAGE_MATRIX_H
#define REFTEST_REPORT_COVERAGE_MATRIX_H

#include "base/buf.h"
#include "engine/coverage.h"

/* Appends a paragraph for each op family that has a definition, and the list of holes. If `each` is true, lists after
 * each op family the values that each of its definitions covers. */
void coverage_matrix_text(const struct coverage *coverage, bool each, struct buf *out);

/* Appends the members of a JSON object, without braces: "families", "definitions" and "holes" (docs/json.md). */
void coverage_matrix_json(const struct coverage *coverage, struct buf *out);
void coverage_matrix_families(const struct coverage *coverage, struct buf *out); /* "families" alone */

#endif
