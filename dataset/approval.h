/* approval - reads and writes the file approved/{op_type}/{name}.json. The file contains a definition with a reference
 * that a person accepted. `reftest approve` writes this file. The user commits it together with the definition.
 *
 *   {"approval": 1, "date": "2026-11-27", "note": text, "device_class": "cpu", "cases": [id],
 *    "digest": hex, "definition": the approved definition}
 *
 * The digest covers all members except "digest". A wrong digest shows that the file was edited by hand or damaged by a
 * merge. The digest is not a signature. */
#ifndef REFTEST_DATASET_APPROVAL_H
#define REFTEST_DATASET_APPROVAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dataset/definition.h"

enum {
	APPROVAL_VERSION = 1,
	APPROVAL_BYTES = DEFINITION_BYTES + (1 << 20), /* the maximum size of an approval file */
	APPROVAL_NOTE_BYTES = 1000
};

struct approval {
	const char *date; /* of UTC: "2026-11-27" */
	const char *note; /* "" when absent */
	const char *device_class;
	const char *const *cases; /* the ids of the cases that had run before the approval */
	int case_count;
	const struct definition *definition; /* the approved definition; approval_write ignores this member */
};

/* Reads an approval file. `path` appears in messages; `op_type` and `name` are the parts of the path. Everything is
 * allocated in `arena`. Returns NULL with a message if `bytes` is not a text that approval_write writes, or if the
 * definition in it cannot be loaded. */
const struct approval *approval_load(const char *path, const char *op_type, const char *name, const void *bytes,
				     size_t length, struct arena *arena, struct err *err);

/* Returns whether the case had run before the approval. */
bool approval_names(const struct approval *approval, const char *id);

/* Appends the text of an approval file. `definition` is the text of the definition. Returns 0, or -1 with a message if
 * `definition` is not valid JSON. */
int approval_write(const struct approval *approval, const char *definition, size_t length, struct buf *out,
		   struct err *err);

#endif
