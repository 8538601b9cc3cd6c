/* python_names - finds the names that Python source uses but does not define.
 *
 * A name counts as defined if any statement of the source binds it, in any scope and branch: an assignment, a
 * parameter, an import, a loop, `with`, `global`. If a name is not defined in this sense, the line that uses it raises
 * NameError when it runs. Names inside f-strings and in annotations of variables are not examined. After `from
 * __future__ import annotations`, no annotation is examined. If a source may define any name (`from m import *`, exec,
 * globals) or handles NameError, no name is reported. */
#ifndef REFTEST_DATASET_PYTHON_NAMES_H
#define REFTEST_DATASET_PYTHON_NAMES_H

#include <stddef.h>

#include "base/arena.h"

struct python_name {
	const char *name;
	int line, column; /* position of the first use, from 1; columns count characters */
};

/* Writes the undefined names of a source to `found`, in the order of their first uses. Writes at most `most` names.
 * Returns their number. The source should be valid Python. The names are allocated in `arena`. */
int python_names_undefined(const char *source, size_t length, struct arena *arena, struct python_name *found, int most);

#endif
