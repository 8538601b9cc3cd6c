/* merge - `reftest cache merge`: stores the verdicts that workers answer (fleet/answer.h) while they arrive.
 *
 * Standard input has the lines that workers print. For each line one line is printed, as soon as its verdicts are
 * stored:
 *
 *   {"id": "7", "stored": 3, "refused": null}
 *
 * A verdict counts here as one of an imported file does: it has a valid checksum, its fields are consistent, it has a
 * valid signature if a key is set, and its reference could reach no more than is allowed. In addition, its case and the
 * worker must name the checker of this build. If one verdict of a line is refused, none of the line is stored, and
 * "refused" says why. */
#ifndef REFTEST_FLEET_MERGE_H
#define REFTEST_FLEET_MERGE_H

#include "base/err.h"
#include "cache/export_import.h"
#include "cache/store.h"

struct merge_rules {
	struct record_signer signer; /* `check` decides about signature and containment */
	const char *checker;         /* the checker digest of this build */
};

/* Merges until the end of standard input. Returns the number of refused lines, or -1 and sets `err` if the verdicts
 * cannot be read or stored. */
long merge_answers(struct store *store, const struct merge_rules *rules, struct err *err);

/* Checks one verdict line of an answer. Returns 0 and the record, in `arena`, or -1 and sets `err`. */
int merge_check(const struct merge_rules *rules, const char *line, struct arena *arena, struct verdict_line *out,
		struct err *err);

#endif
