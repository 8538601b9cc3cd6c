/* accepted_states - reads the value of --accept, a list of kinds of definitions with status `checked`. Definitions of
 * these kinds do not change the exit status. */
#ifndef REFTEST_ENGINE_ACCEPTED_STATES_H
#define REFTEST_ENGINE_ACCEPTED_STATES_H

#include "base/err.h"

/* Converts the value of --accept (NULL if it is not given) to bits. The bit 1 << kind is set if `words` accepts this
 * kind (enum checked_kind). */
unsigned accepted_states_read(const char *words);

/* Returns 0 if every word of the list `words` is valid for --accept. Otherwise returns -1 with a message. */
int accepted_states_check(const char *words, struct err *err);

#endif
