/* merge - implements `reftest cache merge`: stores the verdicts in the answers of workers (fleet/answer.h) as they
 * arrive.
 *
 * Standard input contains the lines that workers print. As soon as the verdicts of an answer are stored, a line about
 * this answer is printed:
 *
 *   {"id": "7", "stored": 3, "refused": null}
 *
 * A verdict is accepted under the following conditions; all except the last also apply to imported files. The verdict's
 * checksum is valid, and its fields are consistent. If a key is set, the verdict's signature is valid. The sandbox in
 * which the reference ran had no gaps (workers/sandbox/sandbox_gaps.c) except those that merge_rules.signer allows. In
 * addition, the worker and the verdict must have the same checker digest as this build (fleet/answer.h). If one verdict
 * of an answer is refused, no verdict of this answer is stored, and "refused" says why. */
#ifndef REFTEST_FLEET_MERGE_H
#define REFTEST_FLEET_MERGE_H

#include "base/err.h"
#include "cache/export_import.h"
#include "cache/store.h"

struct merge_rules {
	struct record_signer signer; /* signer.check decides whether a record's signature and sandbox are accepted */
	const char *checker;         /* the checker digest of this build */
};

/* Reads the answers until the end of standard input, and stores their verdicts. Returns the number of refused lines, or
 * -1 and sets `err` if the verdicts cannot be read or stored. */
long merge_answers(struct store *store, const struct merge_rules *rules, struct err *err);

/* Checks one verdict line of an answer. Returns 0 and sets `out` to the record, which is in `arena`, or returns -1 and
 * sets `err`. */
int merge_check(const struct merge_rules *rules, const char *line, struct arena *arena, struct verdict_line *out,
		struct err *err);

#endif
