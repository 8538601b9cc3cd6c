/* keep - verdicts into the store: a definition's in one transaction, and what can wait in one at the end. */
#ifndef REFTEST_COMMANDS_KEEP_H
#define REFTEST_COMMANDS_KEEP_H

#include "commands/pass.h"

/* Stores what is to be kept of an outcome; what cannot be is no longer marked as kept. */
void keep_outcome(struct outcome *outcome);

/* Stores what waits. */
void keep_waiting(struct pass *pass);

#endif
