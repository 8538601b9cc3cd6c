/* approved_reference - the reference of a definition that a person approved with `reftest approve`
 * (dataset/approval.h). engine/approval_state.h says what it means for a result.
 *
 * If the definition still has the schema and the code that were approved, nothing runs. If its code is another one, the
 * approved reference runs beside it, in a runner of its own, on the same inputs. This happens only in cases that
 * nothing else decides. A reference that agrees with the approved one is no more than checked. */
#ifndef REFTEST_ENGINE_APPROVED_REFERENCE_H
#define REFTEST_ENGINE_APPROVED_REFERENCE_H

#include "dataset/approval.h"
#include "engine/dataset_truth.h"

enum approved_code {
	APPROVED_NONE,         /* nothing was approved */
	APPROVED_SAME_CODE,    /* the definition has the schema and the code that were approved */
	APPROVED_OTHER_CODE,   /* the same schema, and other code */
	APPROVED_OTHER_SCHEMA, /* inputs, outputs, axes or constraints changed, so nothing can be compared */
	APPROVED_UNREADABLE    /* the file is damaged, or cannot be read */
};

struct approved_reference {
	enum approved_code code;
	const struct approval *approval; /* NULL: none, or it is unreadable */
	const char *trouble;             /* of an unreadable file: why */
	struct own_truth truth;          /* with APPROVED_OTHER_CODE, the approved reference */
};

/* Reads the approval of a definition from the bytes of the file `path`. If `why` is not NULL, the file cannot be read,
 * for that reason. Everything is allocated in `arena`. */
struct approved_reference approved_reference_read(const char *path, const struct definition *definition,
						  const struct buf *bytes, const char *why, struct arena *arena);

/* Compares a definition with an approved one. Returns no APPROVED_NONE and no APPROVED_UNREADABLE. */
enum approved_code approved_reference_compare(const struct definition *definition, const struct approval *approval,
					      struct arena *arena);

#endif
