/* outbox - the store of a worker's run: it has no verdicts, and turns each verdict that `verify` would store into a
 * signed line (cache/verdict_line.h). What may be stored is therefore decided in one place, for caches and for
 * answers. */
#ifndef REFTEST_FLEET_OUTBOX_H
#define REFTEST_FLEET_OUTBOX_H

#include "base/buf.h"
#include "engine/run_store.h"
#include "remote/signing_key.h"

struct outbox {
	const struct signing_key *signer; /* NULL: the lines are not signed */
	struct buf lines;                 /* JSON strings, separated by ", "; outbox_free frees them */
};

/* The run_store must not be used after `outbox` was freed. */
struct run_store outbox_store(struct outbox *outbox);
void outbox_free(struct outbox *outbox);

#endif
