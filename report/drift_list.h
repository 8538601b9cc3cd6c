/* drift_list - writes the margins that changed between two verdicts (engine/margin_drift.h) as text and as JSON. */
#ifndef REFTEST_REPORT_DRIFT_LIST_H
#define REFTEST_REPORT_DRIFT_LIST_H

#include "base/buf.h"
#include "engine/margin_drift.h"

/* Appends the margins that changed, and a summary. If `each` is true, also appends the unchanged margins. */
void drift_list_text(const struct margin_drifts *drifts, bool each, struct buf *out);

/* Appends the members of a JSON object, without braces: "drifts" and "single" (docs/json.md). */
void drift_list_json(const struct margin_drifts *drifts, struct buf *out);

#endif
