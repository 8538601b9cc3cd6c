/* remote_keys - computes the keys under which a verdict is stored in a shared cache.
 *
 * The subject is the digest of what was verified. The witness is the digest of everything that verified the case:
 * ground truths, device class, torch. A machine that searches the cache knows the subject, but may not know the whole
 * witness. A verdict is therefore stored under several keys:
 *
 *   - its exact subject and witness, for machines that have torch;
 *   - its subject, ground truth and device class, for machines without torch.
 *
 * A verdict to which several ground truths contributed is stored under two other keys instead. One consists of subject,
 * device class and torch version, the other of subject and device class. The names of the ground truths are not in
 * these keys, because another machine cannot know which ground truths the run skipped. For this reason, rerun_case
 * compares the ground truths after a record is found.
 *
 * Some verdicts from a GPU also count on machines without a GPU. Such a verdict has two more keys: one contains its
 * device class ("sm_90"), the other the word "gpu". If the ground truth builtin contributed to the verdict, both keys
 * contain the version of builtin. Otherwise both keys contain the word "library", because machines without a GPU accept
 * verdicts by any version of any library.
 *
 * A new verdict replaces an older verdict with the same key. */
#ifndef REFTEST_ENGINE_REMOTE_KEYS_H
#define REFTEST_ENGINE_REMOTE_KEYS_H

#include "base/hash.h"
#include "dataset/verdict.h"
#include "engine/rerun_reason.h"

enum { REMOTE_KEY_SIZE = 128, REMOTE_KEYS = 4 };

struct remote_keys {
	char text[REMOTE_KEYS][REMOTE_KEY_SIZE];
	int count;
};

/* Returns the keys under which to store this verdict. */
struct remote_keys remote_keys_of(const struct digest *subject, const struct digest *witness, const struct verdict *v);

/* Returns the keys under which the remote may have a verdict that counts for this run:
 * - for this machine's own device class, the keys of verdicts by several ground truths, and the keys of verdicts by the
 *   first ground truth in `truths` (if `truths` is empty: of verdicts without a ground truth);
 * - for each other device class that the run accepts, the keys of all verdicts from that class that may count. */
struct remote_keys remote_keys_wanted(const struct policy *policy, const struct digest *subject,
				      const struct truths *truths);

#endif
