/* index - what git's index file lists, read with bounds.
 *
 * Format: gitformat-index(5), versions 2 to 4. Its checksum is not computed: git replaces the file as a whole, and
 * every content is asked of git by its name later. Forms in which the file alone does not tell all (a split index, a
 * sparse one, extensions to come that must be understood) are left to `git ls-files` (git/objects.h). */
#ifndef REFTEST_GIT_INDEX_H
#define REFTEST_GIT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { OBJECT_BYTES = 32 };

enum entry_kind { ENTRY_FILE, ENTRY_LINK, ENTRY_SUBMODULE };

struct index_entry {
	const char *path; /* relative to the top of the working tree */
	enum entry_kind kind;
	bool conflict; /* a merge left several versions of it; the object is of the first of them */
	bool skipped;  /* git does not want it in the working tree (a sparse checkout, or `update-index --skip-worktree`) */
	unsigned char object[OBJECT_BYTES];
};

struct index {
	const struct index_entry *entries; /* sorted by path (bytewise), each path once */
	int count;
};

enum index_answer { INDEX_BAD = -1, INDEX_OK = 0, INDEX_OTHER = 1 };

/* `bytes` must live as long as the entries, whose paths may point into them. `object_bytes`: 20 or 32. What was only
 * announced (`git add --intent-to-add`) is left out. INDEX_OTHER: a form that is not read here. INDEX_BAD with a
 * sentence. */
enum index_answer index_parse(const char *bytes, size_t length, int object_bytes, struct arena *arena,
			      struct index *out, struct err *err);

/* The same from what `git ls-files -t --stage -z` prints. 0 or -1 with a sentence. */
int index_parse_listing(const char *text, size_t length, int object_bytes, struct arena *arena, struct index *out,
			struct err *err);

/* NULL: it is not there. */
const struct index_entry *index_find(const struct index *index, const char *path);

#endif
