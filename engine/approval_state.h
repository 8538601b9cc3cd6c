/* approval_state - decides whether the approved reference of a definition (engine/approved_reference.h) is used as a
 * ground truth, and if so, whether all cases of a result agree with it. engine/approved_reference.c compares the
 * approved definition with the current one. */
#ifndef REFTEST_ENGINE_APPROVAL_STATE_H
#define REFTEST_ENGINE_APPROVAL_STATE_H

#include "engine/run_state.h"

/* Adds the approved reference to the ground truths of a result, if the result has no other ground truth that can be
 * used. */
struct truths approval_add_truth(const struct result *result, const struct truths *truths, struct arena *arena);

/* Returns true if the approved reference is a ground truth of this result, and if it ran in the case with this id
 * before a person approved it. The inputs of this case are then known to be valid for the operation. */
bool approval_has_run(const struct result *result, const char *id);

/* What a result shows about the approved reference. */
enum approval_state {
	APPROVAL_ABSENT,       /* there is no approval, or other ground truths decide the definition */
	APPROVAL_SAME,         /* the reference is the one that was approved */
	APPROVAL_AGREES,       /* every case agrees with the approved reference */
	APPROVAL_DIFFERS,      /* a case differs from the approved reference */
	APPROVAL_NOT_COMPARED, /* some case was skipped, or could not be compared with the approved reference */
	APPROVAL_OTHER_SCHEMA,
	APPROVAL_UNREADABLE,
	APPROVAL_STATES
};

enum approval_state approval_state_of(const struct result *result);

/* Returns the name of a state in JSON: "same", "agrees", "differs", … NULL for APPROVAL_ABSENT. */
const char *approval_state_name(enum approval_state state);

/* Returns a sentence about the approval of a result, or NULL if the state is APPROVAL_ABSENT. */
const char *approval_sentence(const struct result *result, struct arena *arena);

/* Returns the kind of a result whose status is `checked`. */
enum checked_kind checked_kind_of(const struct result *result);

#endif
