/* coverage_matrix - writes the coverage of a dataset (engine/coverage.h) as text and as JSON. */
#ifndef REFTEST_REPORT_COVERAGE_MATRIX_H
#define REFTEST_REPORT_COVERAGE_MATRIX_H

#include "base/buf.h"
#include "engine/coverage.h"

/* Appends a paragraph for each op family that has a definition, and then the list of holes (values that no definition
 * covers). If `each` is true, each paragraph also lists the values that each definition covers. */
void coverage_matrix_text(const struct coverage *coverage, bool each, struct buf *out);

/* Appends the members of a JSON object, without braces: "families", "definitions" and "holes" (docs/json.md). */
void coverage_matrix_json(const struct coverage *coverage, struct buf *out);
void coverage_matrix_families(const struct coverage *coverage, struct buf *out); /* "families" alone */

#endif
