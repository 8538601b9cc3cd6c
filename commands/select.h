/* select - which definitions a user's words name. */
#ifndef REFTEST_COMMANDS_SELECT_H
#define REFTEST_COMMANDS_SELECT_H

#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"

/* Names ("rmsnorm_h4096", "rmsnorm/rmsnorm_h4096", a path to the file, a pattern with * or ?) and op_types; none of
 * either: all. Returns how many definitions they select, in path order, as an array in `arena`. Every word must select
 * something: -1 with the nearest one otherwise. */
struct selection {
	const char *const *names, *const *op_types;
	int name_count, op_type_count;
};
int select_definitions(const struct dataset *dataset, const struct selection *words, struct arena *arena,
		       const struct dataset_file ***out, struct err *err);

/* Is `word` a path, absolute or from wherever the user stands, whose last parts are `path`? */
bool select_path(const char *word, const char *path);

#endif
