/* python_names - the names that Python source uses and that nothing in it defines.
 *
 * A name counts as defined if any statement of the source binds it, in whatever scope and branch: an assignment, a
 * parameter, an import, a loop, `with`, `global`. A name that is found here therefore raises NameError if its line
 * runs. Names inside f-strings, annotations of variables and, after `from __future__ import annotations`, all
 * annotations are not looked at. Nothing is found in a source that may define any name (`from m import *`, exec,
 * globals) or that handles NameError. */
#ifndef REFTEST_DATASET_PYTHON_NAMES_H
#define REFTEST_DATASET_PYTHON_NAMES_H

#include <stddef.h>

#include "base/arena.h"

struct python_name {
	const char *name;
	int line, column; /* of its first use, from 1; columns count characters */
};

/* The source should be valid Python. Finds the first `most` such names, in the order of their first uses, in `found`,
 * which has space for them. Returns their number. The names are allocated in `arena`. */
int python_names_undefined(const char *source, size_t length, struct arena *arena, struct python_name *found, int most);

#endif
