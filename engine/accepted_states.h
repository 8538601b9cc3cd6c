/* accepted_states - reads the value of --accept: the kinds of checked definitions that do not change the exit
 * status. */
#ifndef REFTEST_ENGINE_ACCEPTED_STATES_H
#define REFTEST_ENGINE_ACCEPTED_STATES_H

#include "base/err.h"

/* Returns what --accept means by its words, NULL if it was not given: bit 1 << kind is set if checked definitions of
 * this kind count as passed ones do. */
unsigned accepted_states_read(const char *words);

/* Returns 0 if every word of the list is one of --accept. Otherwise returns -1 with a message. */
int accepted_states_check(const char *words, struct err *err);

#endif
