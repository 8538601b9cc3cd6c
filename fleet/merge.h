/* merge - implements `reftest cache merge`: stores the verdicts in the answers of workers (fleet/answer.h) as they
 * arrive.
 *
 * Standard input has the lines that workers print. As soon as the verdicts of a line are stored, a line about it is
 * printed:
 *
 *   {"id": "7", "stored": 3, "refused": null}
 *
 * A verdict is accepted under the same conditions as one in an imported file: its checksum is valid, its fields are
 * consistent, its signature is valid if a key is set, and its reference could reach no more than is allowed. In
 * addition, the worker and the verdict must have the checker digest of this build. If one verdict of a line is refused,
 * none of the line is stored, and "refused" says why. */
#ifndef REFTEST_FLEET_MERGE_H
#define REFTEST_FLEET_MERGE_H

#include "base/err.h"
#include "cache/export_import.h"
#include "cache/store.h"

struct merge_rules {
	struct record_signer signer; /* `check` accepts or refuses a record by its signature and containment */
	const char *checker;         /* the checker digest of this build */
};

/* Merges until the end of standard input. Returns the number of refused lines, or -1 and sets `err` if the verdicts
 * cannot be read or stored. */
long merge_answers(struct store *store, const struct merge_rules *rules, struct err *err);

/* Checks one verdict line of an answer. Returns 0 and the record, in `arena`, or -1 and sets `err`. */
int merge_check(const struct merge_rules *rules, const char *line, struct arena *arena, struct verdict_line *out,
		struct err *err);

#endif
