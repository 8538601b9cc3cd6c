/* outcome - the files of one definition: looked at, believed or parsed into cases, and noted once it is answered. */
#ifndef REFTEST_COMMANDS_OUTCOME_H
#define REFTEST_COMMANDS_OUTCOME_H

#include "commands/pass.h"

/* The digests of the definition's files. Bytes are read only where nothing proves that they are as they were. -1 with a
 * sentence: one cannot be read. */
int outcome_look(struct outcome *outcome, struct buf *definition, struct buf *workload, bool need_bytes,
		 struct err *err);

/* Answers from the summary of an earlier run if everything is as it was; after outcome_look. */
bool outcome_from_summary(struct outcome *outcome);

/* The same from what the watcher remembers of contents that were here before (pass.recall). What stands in the table of files
 * of the contents before these is taken into that memory. */
bool outcome_from_recall(struct outcome *outcome);

/* Parses what outcome_look read, and makes the cases. -1 with a sentence: the definition is invalid. */
int outcome_make_cases(struct outcome *outcome, struct buf *definition, struct buf *workload, struct err *err);

/* Do the definition, its workload file and its blobs still hold what was hashed, as far as their stat tells at all times?
 * Verdicts are on what was hashed in any case; whether that is what stands there is another question. */
bool outcome_unchanged(const struct outcome *outcome);

/* Notes what was seen of its files, with a summary if the next run would come to the same answer from contents alone.
 */
void outcome_note(struct outcome *outcome);

/* Why verdicts on it are not remembered, after its runner noticed what it `reached`. */
const char *outcome_reached(struct outcome *outcome, const char *reached);

#endif
