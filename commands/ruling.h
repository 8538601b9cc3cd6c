/* ruling - from what is stored and what has run to what is said: whether a case must run, and what a definition's cases
 * come to. Reads the store, runs nothing and writes nothing. */
#ifndef REFTEST_COMMANDS_RULING_H
#define REFTEST_COMMANDS_RULING_H

#include "commands/pass.h"

/* Decides one case from what is known. true: it must run. */
bool ruling_decide(struct outcome *outcome, struct case_outcome *c);

/* The case has its verdict. */
void ruling_settle(struct outcome *outcome, struct case_outcome *c, const struct verdict *verdict);

/* A verdict that says why there is none. */
const struct verdict *ruling_not_run(struct outcome *outcome, enum reason reason, const char *message);

/* What verified it, as the store keys it. */
struct digest ruling_witness(const struct verdict *v, struct arena *arena);

/* Counts the cases and gives the definition their state: the worst one's. */
void ruling_judge(struct outcome *outcome);

#endif
