/* notes - what the last update of the generated files saw, in .reftest/artifacts: their layout, and of each file a
 * digest over all that it depends on, so that the next update costs a walk. What cannot be read is no note, and costs
 * one look more. */
#ifndef REFTEST_COMMANDS_NOTES_H
#define REFTEST_COMMANDS_NOTES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"

enum layout {
	LAYOUT_OP_TYPE,	  /* tests/references/test_{op_type}.py: all definitions of it */
	LAYOUT_DEFINITION /* tests/references/test_{name}.py: one */
};

enum { NOTE_COUNTS = 4 };

struct note {
	struct digest digest;
	int counts[NOTE_COUNTS]; /* with_test, hand_written, stale, without */
	const char *file;	 /* "test_rmsnorm.py" */
};

struct notes {
	struct note *items;
	int count;
};

/* "op-type", "definition". */
const char *layout_name(enum layout layout);

/* The notes below the folder `root_fd`, by file name, in the arena; none if there are none. */
void notes_read(struct notes *out, int root_fd, struct arena *arena);

/* NULL: nothing is noted of that file. */
const struct note *notes_find(const struct notes *notes, const char *file);

/* Sorts them and puts them in the place of the old ones. 0, or -1 with a sentence. */
int notes_write(struct notes *notes, const char *root, enum layout layout, struct arena *arena, struct err *err);

/* The layout that was noted; false: none was. */
bool notes_layout(const char *root, enum layout *layout);

#endif
