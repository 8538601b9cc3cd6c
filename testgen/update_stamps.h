/* update_stamps - records in .reftest/artifacts the state of the generated files at their last update: the layout, and
 * for each file a digest of everything on which the file depends. With these records, the next update only has to scan
 * the folders and compare digests. If a record is unreadable, its file is checked again. */
#ifndef REFTEST_TESTGEN_UPDATE_STAMPS_H
#define REFTEST_TESTGEN_UPDATE_STAMPS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"

enum layout {
	LAYOUT_OP_TYPE,	  /* tests/references/test_{op_type}.py tests all definitions of an op_type */
	LAYOUT_DEFINITION /* tests/references/test_{name}.py tests one definition */
};

enum { NOTE_COUNTS = 4 };

struct note {
	struct digest digest;
	int counts[NOTE_COUNTS]; /* as in struct update_result: with_test, hand_written, stale, without */
	const char *file;	 /* "test_rmsnorm.py" */
};

struct stamps {
	struct note *items;
	int count;
};

/* Returns "op-type" or "definition". */
const char *layout_name(enum layout layout);

/* Reads the records of the dataset in the folder `root_fd`, sorted by file name, into `arena`. If there are no
 * records, `out` is empty. */
void stamps_read(struct stamps *out, int root_fd, struct arena *arena);

/* Returns the record of a file, or NULL if the file has none. */
const struct note *stamps_find(const struct stamps *stamps, const char *file);

/* Sorts the records, and writes them in place of the stored records. Returns 0, or -1 and sets `err`. */
int stamps_write(struct stamps *stamps, const char *root, enum layout layout, struct arena *arena, struct err *err);

/* Reads the recorded layout. Returns false if no layout is recorded. */
bool stamps_layout(const char *root, enum layout *layout);

#endif
