/* index - parses git's index file (gitformat-index(5), versions 2 to 4) with bounds checks.
 *
 * The checksum of the index file is not verified. It is not needed: git replaces the file atomically, so that it is
 * never half written, and a damaged object id names no object. Some index files do not describe all entries: split
 * indexes, sparse indexes, and indexes with unknown mandatory extensions. Instead of parsing such an index file,
 * git/objects.h runs `git ls-files`. */
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
	bool conflict; /* the path has a merge conflict and several stages; `object` belongs to the first stage */
	bool skipped;  /* marked skip-worktree, by a sparse checkout or by `git update-index --skip-worktree` */
	unsigned char object[OBJECT_BYTES];
};

struct index {
	const struct index_entry *entries; /* sorted by the bytes of their paths, without duplicates */
	int count;
};

enum index_answer { INDEX_BAD = -1, INDEX_OK = 0, INDEX_OTHER = 1 };

/* Parses an index file. `bytes` must outlive the entries, because their paths may point into it. `object_bytes`: the
 * length of an object id, 20 or 32. Entries without content (`git add --intent-to-add`) are skipped. Returns
 * INDEX_OTHER for a format that this parser does not support. Returns INDEX_BAD and sets `err` if the file is
 * invalid. */
enum index_answer index_parse(const char *bytes, size_t length, int object_bytes, struct arena *arena,
			      struct index *out, struct err *err);

/* Parses the output of `git ls-files -t --stage -z`. Returns 0, or -1 and sets `err`. */
int index_parse_listing(const char *text, size_t length, int object_bytes, struct arena *arena, struct index *out,
			struct err *err);

/* Returns the entry with this path, or NULL if there is none. */
const struct index_entry *index_find(const struct index *index, const char *path);

#endif
