/* client - queries a running watcher through its socket (watcher/server.h), for commands such as verify and status.
 *
 * The watcher answers when its running batches have ended. If this takes more than a second, the client prints a
 * message on standard error and continues to wait. */
#ifndef REFTEST_WATCHER_CLIENT_H
#define REFTEST_WATCHER_CLIENT_H

#include "engine/watcher_answers.h"

extern const struct up_to_date_calls watcher_client;

#endif
