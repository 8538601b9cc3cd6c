/* approval_state - what the approved reference of a definition (engine/approved_reference.h) means for a result:
 * whether it is a ground truth, and what its cases show. engine/approved_reference.c decides whether the approval still
 * fits the definition. */
#ifndef REFTEST_ENGINE_APPROVAL_STATE_H
#define REFTEST_ENGINE_APPROVAL_STATE_H

#include "engine/run_state.h"

/* Adds the approved reference to the ground truths of a result that nothing else decides. */
struct truths approval_add_truth(const struct result *result, const struct truths *truths, struct arena *arena);

/* Returns whether the approved reference ran in the case with this id when it was approved, and is a ground truth now.
 * The inputs of the case are then valid for the operation. */
bool approval_has_run(const struct result *result, const char *id);

/* What a result shows about the approved reference. */
enum approval_state {
	APPROVAL_ABSENT,       /* nothing was approved, or a ground truth decides */
	APPROVAL_SAME,         /* the reference is the approved one */
	APPROVAL_AGREES,       /* every case agrees with the approved one */
	APPROVAL_DIFFERS,      /* a case differs from it */
	APPROVAL_NOT_COMPARED, /* some case could not be compared with it */
	APPROVAL_OTHER_SCHEMA,
	APPROVAL_UNREADABLE,
	APPROVAL_STATES
};

enum approval_state approval_state_of(const struct result *result);

/* Returns the name of a state in JSON: "same", "agrees", "differs", … NULL for APPROVAL_ABSENT. */
const char *approval_state_name(enum approval_state state);

/* Returns a sentence about the approval of a result, or NULL if it has none. */
const char *approval_sentence(const struct result *result, struct arena *arena);

/* Returns what speaks for a result that is checked. */
enum checked_kind checked_kind_of(const struct result *result);

#endif
