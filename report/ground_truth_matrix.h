/* ground_truth_matrix - writes the table of `reftest doctor` with the ground truths that are available on this machine
 * for each op family. Below the table, reftest lists why the other ground truths are not available. */
#ifndef REFTEST_REPORT_GROUND_TRUTH_MATRIX_H
#define REFTEST_REPORT_GROUND_TRUTH_MATRIX_H

#include "base/buf.h"
#include "engine/ground_truths.h"

struct ground_truths_matrix {
	const char *device_class;
	const struct provider_fact *facts;
	int fact_count;
	const struct op_entry *ops; /* NULL if the kernels library could not be loaded; then only op families of the
				     * providers are listed */
	int op_count;
	const char *trouble; /* why there is no list of providers, or NULL */
};

/* Writes a table of op families and providers. Below the table, lists the reasons why providers are not available,
 * without duplicates. */
void ground_truths_matrix_text(const struct ground_truths_matrix *matrix, struct buf *out);
/* Appends a JSON object:
 *
 *  {"device_class", "trouble", "providers": [{"name", "version", "why", "on_request": [family]}],
 *  "families": {family: {provider: null | why}}}
 */
void ground_truths_matrix_json(const struct ground_truths_matrix *matrix, struct buf *out);

#endif
