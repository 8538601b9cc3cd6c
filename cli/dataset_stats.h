/* dataset_stats - counts the definitions of a dataset, by op_type and by model. Counts all definitions, the definitions
 * with a test, and the verified definitions. */
#ifndef REFTEST_CLI_DATASET_STATS_H
#define REFTEST_CLI_DATASET_STATS_H

#include "base/buf.h"
#include "engine/run.h"

struct stats_row {
	const char *name; /* an op_type, or a model; "" for the definitions that name no model */
	int definitions, with_test, verified;
};

struct stats_rows {
	struct stats_row *items; /* sorted by name */
	int count, room;
};

struct dataset_stats {
	struct stats_row all;
	struct stats_rows op_types, models; /* a definition that names several models counts for each of them */
};

/* Counts the definitions in the dataset at program->root, which the caller must have set. A definition has a test if a
 * file in tests/references has a class for this definition or is named after this definition. A definition is verified
 * if each of its cases has a stored verdict that is valid for this device. Runs nothing. Returns 0, or an exit status
 * and sets `err`. */
int dataset_stats_read(struct program *program, const struct run_options *run_options, struct dataset_stats *out,
		       struct arena *arena, struct err *err);

void dataset_stats_print(const struct dataset_stats *stats);

void dataset_stats_json(const struct dataset_stats *stats, struct buf *out);

#endif
