/* shard - divides the definitions of a run among N processes (--shard I/N).
 *
 * The name of a definition selects its shard, so a definition is in the same shard on every machine, whatever definitions
 * are selected. All its cases are in this shard: a verdict counts only if the same cases ran before it
 * (engine/case_order.h), and if reftest has to try op families, it needs the results of all cases. */
#ifndef REFTEST_ENGINE_SHARD_H
#define REFTEST_ENGINE_SHARD_H

#include <stdbool.h>

#include "base/err.h"

struct shard {
	int number, count; /* the I and the N of --shard I/N; without --shard, `count` is 0 */
};

/* Parses a value of --shard: "2/4" is the second of four shards. Returns -1 and sets `err` on error. */
int shard_read(const char *text, struct shard *out, struct err *err);

/* Returns whether the definition belongs to this shard. */
bool shard_has(const struct shard *shard, const char *op_type, const char *name);

#endif
