/* shard - the part of a run's cases that one of N processes does: those whose fingerprint falls to it.
 *
 * A case belongs to the shard that its subject's digest names, whatever else the dataset holds and wherever it runs;
 * equal subjects of different definitions therefore meet in one shard and run once. Cases that are decided without a
 * subject (a bad workload line, a missing blob) and definitions without a case go by their name, so that each is told
 * exactly once. */
#ifndef REFTEST_COMMANDS_SHARD_H
#define REFTEST_COMMANDS_SHARD_H

#include <stdbool.h>

#include "base/err.h"
#include "commands/cases.h"

/* "2/4": the second of four. -1 with a sentence. */
int shard_read(const char *text, struct shard *out, struct err *err);

/* Keeps those cases that belong to the shard. `name`: "op_type/definition". false: the definition has none here, and
 * belongs to another shard. */
bool shard_keep(const struct shard *shard, const char *name, struct cases *cases);

/* Is a definition that cannot be read told by this shard? */
bool shard_has(const struct shard *shard, const char *name);

#endif
