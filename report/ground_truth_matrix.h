/* ground_truth_matrix - writes the table of `reftest doctor` that shows which ground truths are available on this
 * machine for each op family, and why the rest are not. */
#ifndef REFTEST_REPORT_GROUND_TRUTH_MATRIX_H
#define REFTEST_REPORT_GROUND_TRUTH_MATRIX_H

#include "base/buf.h"
#include "engine/ground_truths.h"

struct ground_truths_matrix {
	const char *device_class;
	const struct provider_fact *facts;
	int fact_count;
	const struct op_entry *ops; /* NULL: the kernels library could not be loaded, so only op families of the
				     * providers are listed */
	int op_count;
	const char *trouble; /* why the list of providers is missing; NULL: it is complete */
};

/* Writes a table of op families and providers. Below the table, lists why a provider is not available, each reason
 * once. */
void ground_truths_matrix_text(const struct ground_truths_matrix *matrix, struct buf *out);
/* {"device_class", "trouble", "providers": [{"name", "version", "why", "on_request": [family]}],
 *  "families": {family: {provider: null | why}}}
 */
void ground_truths_matrix_json(const struct ground_truths_matrix *matrix, struct buf *out);

#endif
