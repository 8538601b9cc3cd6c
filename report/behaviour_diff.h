/* behaviour_diff - reports how references differ from those in a commit, as text, JSON or GitHub annotations (`reftest
 * diff`; docs/diff.md). */
#ifndef REFTEST_REPORT_BEHAVIOUR_DIFF_H
#define REFTEST_REPORT_BEHAVIOUR_DIFF_H

#include "engine/run.h"

/* The possible results of a comparison, the most severe first. */
enum behaviour {
	BEHAVIOUR_CHANGED,  /* some output differs by more than its bounds */
	BEHAVIOUR_UNKNOWN,  /* some case could not be compared, and no case is BEHAVIOUR_CHANGED */
	BEHAVIOUR_ROUNDING, /* every output is within its bounds, but some values differ */
	BEHAVIOUR_SAME,     /* every output has the same values with both references */
	BEHAVIOUR_TEXT,     /* schema and code are the same; only other text differs, so no case ran */
	BEHAVIOUR_ADDED,
	BEHAVIOUR_DELETED,
	BEHAVIOUR_COUNT
};

struct difference {
	enum behaviour behaviour;
	const char *path;            /* of the definition */
	const struct result *result; /* NULL if nothing ran */
	const char *why;             /* a sentence that says why no case ran, or what differs besides the code; NULL: no
				      * sentence */
};

struct differences {
	const char *root, *commit; /* `commit` is the hash of the commit */
	const char *prefix;        /* the path of the dataset's root, relative to the top of the working tree: "" or
				    * "data/set/" */
	struct difference *items;
	int count;
};

/* Whether a person approved the current reference or the one in the commit (engine/approved_reference.h). */
enum approved_side {
	APPROVED_SIDE_NONE, /* there is no approval, or it is unreadable, or it is for another schema */
	APPROVED_SIDE_NOW,
	APPROVED_SIDE_BEFORE, /* the approved reference is the one in the commit */
	APPROVED_SIDE_NEITHER
};

/* Returns the behaviour that the cases of a result show. Each case must have been compared only with the reference in
 * the commit. */
enum behaviour behaviour_of(const struct result *result);

void behaviour_print(const struct differences *differences);
void behaviour_print_json(const struct differences *differences);
void behaviour_print_github(const struct differences *differences);

/* Returns EXIT_FAILED if a reference changed. If none changed, returns EXIT_UNVERIFIED if a reference could not be
 * compared, and EXIT_VERIFIED if all were compared. */
int behaviour_exit_status(const struct differences *differences);

#endif
