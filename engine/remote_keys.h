/* remote_keys - computes the keys under which a verdict is stored in a shared cache.
 *
 * The subject is the digest of what was verified. The witness is the digest of everything that verified the case:
 * ground truths, device class, torch. A machine that searches the cache knows the subject, but may not know the whole
 * witness. A verdict is therefore stored under several keys:
 *
 *   - its exact subject and witness, for machines that have torch;
 *   - its subject, ground truth and device class, for machines without torch.
 *
 * If several ground truths contributed to a verdict, two other keys replace these keys. The first key consists of the
 * subject, the device class and the torch version, the second only of the subject and the device class. Neither key
 * contains the names of the ground truths: a run tries ground truths until one of them decides the case, so another
 * machine cannot know in advance which of them were tried. After a record is found, rerun_case compares its ground
 * truths with those of the run.
 *
 * Some verdicts from a GPU also count on machines without a GPU. Such a verdict has two more keys: one contains its
 * device class ("sm_90"), the other the word "gpu". If the ground truth builtin contributed to the verdict, both of
 * these keys contain the version of builtin. Otherwise both contain the word "library" instead of a library's name and
 * version: a machine without a GPU may accept verdicts by any version of any library.
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
 * - the keys of verdicts from this machine's own device class for which the first of `truths`, or several of `truths`,
 *   computed the outputs. If `truths` is empty, the keys of verdicts without a ground truth;
 * - if the run accepts verdicts from another device class or from any GPU, the keys of these verdicts. */
struct remote_keys remote_keys_wanted(const struct policy *policy, const struct digest *subject,
				      const struct truths *truths);

#endif
