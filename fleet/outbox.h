/* outbox - the store of a worker's run. The outbox contains no verdicts, and turns each verdict that is stored into a
 * signed line (cache/verdict_line.h). Therefore the same code decides which verdicts are stored in caches and which are
 * sent in answers. */
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
