/* truths_matrix - which ground truth there is for which op family on this machine, and why not the others (doctor). */
#ifndef REFTEST_COMMANDS_TRUTHS_MATRIX_H
#define REFTEST_COMMANDS_TRUTHS_MATRIX_H

#include "base/buf.h"
#include "commands/truths.h"

struct truths_matrix {
	const char *device_class;
	const struct provider_fact *facts;
	int fact_count;
	const struct op_entry *ops; /* NULL: no library of kernels; then the providers' families alone */
	int op_count;
	const char *trouble; /* why the providers could not be asked; NULL */
};

/* A table of families and providers, then the reasons, each once. */
void truths_matrix_text(const struct truths_matrix *matrix, struct buf *out);
/* {"device_class", "trouble", "providers": [{"name", "version", "why"}], "families": {family: {provider: null | why}}}
 */
void truths_matrix_json(const struct truths_matrix *matrix, struct buf *out);

#endif
