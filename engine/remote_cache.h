/* remote_cache - shares verdicts with other machines through the remote cache whose URL is in $REFTEST_REMOTE
 * (remote/url.h).
 *
 * The run queries the remote cache if the local store has no verdict that counts for a case. One query covers the cases
 * of many definitions. The run passes new verdicts to a helper process, which writes them to the remote while
 * references run.
 *
 * Data from the remote is untrusted. A record is used only if all of these conditions hold:
 * - its checksum is valid;
 * - it has the subject that was requested, and belongs under the key that was queried;
 * - its fields are consistent;
 * - it has a valid signature, if a key for signatures is set ($REFTEST_CACHE_KEY).
 *
 * If a record passes these checks, engine/rerun_reason.h decides whether its verdict counts, as it does for a local
 * verdict. If the remote fails, reftest prints one message on standard error. Verdicts and exit status do not
 * change. */
#ifndef REFTEST_ENGINE_REMOTE_CACHE_H
#define REFTEST_ENGINE_REMOTE_CACHE_H

#include "engine/run_state.h"

struct remote_cache; /* opaque */

/* Opens the remote cache without starting its helper process. Returns NULL if $REFTEST_REMOTE is not set. Also returns
 * NULL, and prints the reason, if the remote cannot be used. */
struct remote_cache *remote_cache_open(const struct program *program);
/* Waits until the helper has written the new verdicts, but not longer than the timeout of the remote. Does not wait if
 * the run was interrupted. `remote` may be NULL. */
void remote_cache_close(struct remote_cache *remote, bool interrupted);

/* Returns whether a stored verdict counts for a case. */
typedef bool case_known(struct result *result, const struct case_result *c);

/* Returns whether the result has a case for which no stored verdict counts, i.e. for which `known` returns false. If it
 * has, the run will query the remote for these cases, and the result waits until remote_cache_next returns it. */
bool remote_cache_defers(struct result *result, case_known *known);

/* Returns the next result whose query was answered, or NULL if no query was answered. Queries for several results are
 * sent together. If `all` is true, the queries are sent even if only one result waits. */
struct result *remote_cache_next(struct run *run, bool all);

/* Iterates over the verdicts that the remote sent for a subject. Pass NULL as `after` to get the first verdict. Returns
 * NULL after the last verdict. */
struct shared_verdict {
	struct digest subject;
	const struct verdict *verdict;
	struct shared_verdict *next; /* the next verdict in the same hash bucket */
};
const struct shared_verdict *remote_cache_verdict(const struct remote_cache *remote, const struct digest *subject,
						  const struct shared_verdict *after);

/* The URL of the remote without its password, for messages: "redis://cache.example:6379". */
const char *remote_cache_shown(const struct remote_cache *remote);

/* Passes the result's new verdicts to the helper process. */
void remote_cache_put(struct result *result);

#endif
