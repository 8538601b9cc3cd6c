/* shard - divides the cases of a run among N processes (--shard I/N), by the fingerprint of each case.
 *
 * The subject digest of a case selects its shard. A case is thus in the same shard on every machine, whatever
 * definitions are selected. Equal cases of different definitions are in the same shard and run once. There is no
 * subject digest for a definition without cases, or for a case with an invalid workload line or a missing tensor file.
 * For these, the name of the definition selects the shard, so exactly one shard reports them. The name also selects the
 * shard if the op_type alone does not determine the definition's op family (keep_own_shard in
 * engine/definition_files.c). */
#ifndef REFTEST_ENGINE_SHARD_H
#define REFTEST_ENGINE_SHARD_H

#include <stdbool.h>

#include "base/err.h"
#include "engine/cases.h"

/* Parses a value of --shard: "2/4" is the second of four shards. Returns -1 and sets `err` on error. */
int shard_read(const char *text, struct shard *out, struct err *err);

/* Removes the cases of other shards from `cases`. `name`: "op_type/definition". Returns false if no case is left and
 * another shard reports the definition. */
bool shard_filter(const struct shard *shard, const char *name, struct cases *cases);

/* Use this for a definition without cases, for example an invalid definition. Returns whether this shard reports it. */
bool shard_reports(const struct shard *shard, const char *name);

#endif
