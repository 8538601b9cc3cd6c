/* run_json - prints the results of a run as JSON. docs/json.md lists all fields, so a new field needs a row there. */
#ifndef REFTEST_REPORT_RUN_JSON_H
#define REFTEST_REPORT_RUN_JSON_H

#include "report/text.h"

/* Prints a run as one JSON object (schema 1; docs/json.md). */
void report_json(const struct run *run, const struct report_options *options);

/* Appends one case as a JSON object on one line, with the same fields as in report_json. */
void report_json_case(struct buf *out, const struct result *result, const struct case_result *c);

/* Appends `, "approval": …`. The value is an object with the state of the approval (engine/approval_state.h), or null
 * if the definition has no approval. */
void report_json_approval(struct buf *out, const struct result *result);

#endif
