/* environment - decides which environment variables references, providers and remote helpers get. If references may
 * read a new variable, add it to the lists in environment.c. If a new variable contains a secret, add it to
 * is_ours_alone. */
#ifndef REFTEST_WORKERS_POOL_ENVIRONMENT_H
#define REFTEST_WORKERS_POOL_ENVIRONMENT_H

#include "base/arena.h"

/* Returns this program's environment without its secrets: the key that signs verdicts, and the address and password
 * of the remote. A process that runs foreign code does not need these secrets and might print them. (An attacker can
 * still read them: every process of this user can.) `more` is another variable to include, as "NAME=value", or NULL.
 * The returned array ends with NULL. */
char **environment_without_secrets(const char *more, struct arena *arena);

/* Returns the environment variables for the processes that run references. Processes that find out which packages references will see get the same variables. The
 * environment of references contains only a short list of variables, because any other variable of the user could
 * change a result. */
char **environment_of_references(struct arena *arena);

#endif
