/* approval - the file approved/{op_type}/{name}.json: which reference of a definition a person accepted. `reftest
 * approve` writes it, and it is committed with the definition.
 *
 *   {"approval": 1, "date": "2026-11-27", "note": text, "device_class": "cpu", "cases": [id],
 *    "digest": hex, "definition": the definition as it was approved}
 *
 * The digest covers everything else. It shows that a file was edited by hand or damaged by a merge; it is no
 * signature. */
#ifndef REFTEST_DATASET_APPROVAL_H
#define REFTEST_DATASET_APPROVAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dataset/definition.h"

enum {
	APPROVAL_VERSION = 1,
	APPROVAL_BYTES = DEFINITION_BYTES + (1 << 20), /* the most bytes of a file */
	APPROVAL_NOTE_BYTES = 1000
};

/* What a file says about the definition that it contains. */
struct approval {
	const char *date; /* of UTC: "2026-11-27" */
	const char *note; /* "" when absent */
	const char *device_class;
	const char *const *cases; /* the ids of the cases that had run */
	int case_count;
	const struct definition *definition; /* as it was approved; ignored by approval_write */
};

/* Reads such a file. `path` appears in messages; `op_type` and `name` are what it says. Everything is allocated in
 * `arena`. Returns NULL with a message if the file is not as approval_write wrote it, or if its definition cannot be
 * loaded. */
const struct approval *approval_load(const char *path, const char *op_type, const char *name, const void *bytes,
				     size_t length, struct arena *arena, struct err *err);

/* Appends the text of a file. `definition` is the text of the definition, which is valid JSON. Returns 0, or -1 with a
 * message if it is not. */
int approval_write(const struct approval *approval, const char *definition, size_t length, struct buf *out,
		   struct err *err);

#endif
