/* address - under which keys a verdict lies in a shared cache.
 *
 * A verdict lies under its exact subject and witness, for who knows what would run; under its subject, ground truth and
 * class of device, for who has no torch. One that went through several ground truths lies, in place of these, under its
 * subject, class of device and torch, and without the torch: which of them were passed over cannot be told beforehand,
 * so what lies there is looked at first. One that a GPU gave, and that counts where there is none, lies under its
 * class, and under "gpu" in its place, once more: by the version of builtin, if builtin was asked, else as some
 * library's, for which library of which version verified it matters to nobody who has none. So one that would count is
 * found by a few keys that can be told beforehand, whatever it was made with. Several verdicts may have one key; the
 * last one that came lies there.
 */
#ifndef REFTEST_COMMANDS_ADDRESS_H
#define REFTEST_COMMANDS_ADDRESS_H

#include "base/hash.h"
#include "dataset/verdict.h"
#include "plan/plan.h"

enum { ADDRESS = 128, ADDRESSES = 4 };

struct addresses {
	char text[ADDRESSES][ADDRESS];
	int count;
};

/* Where this verdict is to lie. */
struct addresses addresses_of(const struct digest *subject, const struct digest *witness, const struct verdict *v);

/* Where one that would count may lie: of this machine's own class those by the first of these ground truths, or by none
 * where there is none, or through several of them; of other machines' whatever there is. */
struct addresses addresses_wanted(const struct policy *policy, const struct digest *subject,
				  const struct truths *truths);

#endif
