/* approved_reference - reads the reference that a person approved for a definition with `reftest approve`
 * (dataset/approval.h), and compares it with the definition's current reference. engine/approval_state.h then evaluates
 * the results of cases.
 *
 * If the definition still has the schema and the code that were approved, the approved reference does not run. If the
 * code differs, the approved reference runs beside the new reference, in a separate process, on the same inputs. The
 * approved reference runs only in cases that no other ground truth decides. If only the approved reference confirms a
 * definition, the status of the definition is `checked`, not `passed`. */
#ifndef REFTEST_ENGINE_APPROVED_REFERENCE_H
#define REFTEST_ENGINE_APPROVED_REFERENCE_H

#include "dataset/approval.h"
#include "engine/dataset_truth.h"

enum approved_code {
	APPROVED_NONE,         /* there is no approval */
	APPROVED_SAME_CODE,    /* the definition has the schema and the code that were approved */
	APPROVED_OTHER_CODE,   /* the schema is the one that was approved, but the code differs */
	APPROVED_OTHER_SCHEMA, /* inputs, outputs, axes or constraints changed, so nothing can be compared */
	APPROVED_UNREADABLE    /* the approval file is damaged or cannot be read */
};

struct approved_reference {
	enum approved_code code;
	const struct approval *approval; /* NULL: there is no approval, or it is unreadable */
	const char *trouble;             /* why the approval file is unreadable */
	struct own_truth truth;          /* the approved reference, if `code` is APPROVED_OTHER_CODE */
};

/* Reads the approval of a definition from the bytes of the file `path`. If the file cannot be read, `why` is the
 * reason; otherwise `why` is NULL. Everything is allocated in `arena`. */
struct approved_reference approved_reference_read(const char *path, const struct definition *definition,
						  const struct buf *bytes, const char *why, struct arena *arena);

/* Compares a definition with the approved definition. Never returns APPROVED_NONE or APPROVED_UNREADABLE. */
enum approved_code approved_reference_compare(const struct definition *definition, const struct approval *approval,
					      struct arena *arena);

#endif
