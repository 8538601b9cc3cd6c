/* reference_environment - decides which environment variables references get. If references may read a new variable,
 * add it to the lists in reference_environment.c. */
#ifndef REFTEST_WORKERS_POOL_REFERENCE_ENVIRONMENT_H
#define REFTEST_WORKERS_POOL_REFERENCE_ENVIRONMENT_H

#include "base/arena.h"

/* Returns the environment variables for the processes that run references. Processes that search for the packages of
 * references also get these variables. The list is short, because any other variable of the user could change a result.
 * The returned array ends with NULL. */
char **environment_of_references(struct arena *arena);

/* Returns those variables of environment_of_references whose values may change what a reference computes, as lines
 * "NAME=value". Leaves out variables with an empty value. Returns NULL if none is left. These variables are part of the
 * subject of a verdict. */
const char *environment_that_counts(struct arena *arena);

#endif
