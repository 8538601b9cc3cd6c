/* address - under which keys a verdict lies in a shared cache.
 *
 * A verdict lies under its exact subject and witness, for who knows what would run; under its subject, ground truth and
 * class of device, for who has no torch; and, if a GPU gave it, under "gpu" in the class's place, for who has none. So
 * one that would count is found by one or two keys that can be told beforehand, whatever versions it was made with. */
#ifndef REFTEST_COMMANDS_ADDRESS_H
#define REFTEST_COMMANDS_ADDRESS_H

#include "base/hash.h"
#include "dataset/verdict.h"
#include "plan/plan.h"

enum { ADDRESS = 128, ADDRESSES = 3 };

struct addresses {
	char text[ADDRESSES][ADDRESS];
	int count;
};

/* Where this verdict is to lie. */
struct addresses addresses_of(const struct digest *subject, const struct digest *witness, const struct verdict *v);

/* Where one that would count may lie, of those by the first of these ground truths, or by none where there is none. (One
 * that went through several is looked for only by whoever has it: what it went through cannot be known beforehand.) */
struct addresses addresses_wanted(const struct policy *policy, const struct digest *subject, const struct truths *truths);

#endif
