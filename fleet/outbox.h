/* outbox - replaces the cache in the runs of `reftest work`. A run that looks up a verdict in the outbox finds none. If
 * a run stores a verdict, the outbox appends a signed line to the answer (cache/verdict_line.h). The code that decides
 * which verdicts `verify` stores therefore also decides which verdicts a worker sends. */
#ifndef REFTEST_FLEET_OUTBOX_H
#define REFTEST_FLEET_OUTBOX_H

#include "base/buf.h"
#include "engine/run_store.h"
#include "remote/signing_key.h"

struct outbox {
	const struct signing_key *signer; /* NULL: the lines are not signed */
	struct buf lines;                 /* JSON strings, separated by ", "; outbox_free frees them */
};

/* The run_store must not be used after outbox_free. */
struct run_store outbox_store(struct outbox *outbox);
void outbox_free(struct outbox *outbox);

#endif
