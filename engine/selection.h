/* selection - selects definitions by the names and op_types on a command line. */
#ifndef REFTEST_ENGINE_SELECTION_H
#define REFTEST_ENGINE_SELECTION_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"

/* The names and op_types on a command line, which select definitions. A name is "rmsnorm_h4096",
 * "rmsnorm/rmsnorm_h4096", a path to the file, or a pattern with * or ?. Without names and op_types, all definitions
 * are selected. */
struct selection {
	const char *const *names, *const *op_types;
	int name_count, op_type_count;
};
/* Sets `out` to an array of the selected definitions, in path order and allocated in `arena`. Returns their number. If
 * a name or op_type matches no definition, returns -1 and sets `err` to a message that suggests the most similar
 * name. */
int select_definitions(const struct dataset *dataset, const struct selection *words, struct arena *arena,
		       const struct dataset_file ***out, struct err *err);

#endif
