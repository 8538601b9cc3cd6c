/* query - computes the watcher's answers to clients' queries (listed in watcher/server.h). */
#ifndef REFTEST_WATCHER_QUERY_H
#define REFTEST_WATCHER_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "watcher/batches.h"

/* Appends the answer to a query to `out`, as one line of JSON. Returns false if there is no answer yet; in this case,
 * call the function again later. `idle` must be true if every detected change is already in a batch. */
bool query_answer(struct batches *session, bool idle, const char *question, size_t length, struct buf *out);

#endif
