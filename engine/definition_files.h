/* definition_files - processes one definition in a run: checks its files, uses a stored summary or builds the cases,
 * and stores digests and a summary after the run. */
#ifndef REFTEST_ENGINE_DEFINITION_FILES_H
#define REFTEST_ENGINE_DEFINITION_FILES_H

#include "engine/run_state.h"

/* Returns the name of the result's definition, "op_type/name", allocated in `arena`. */
const char *result_name(const struct result *result, struct arena *arena);

/* Returns whether the verdict of the case is only a finding, which does not change the definition's status. This is so
 * if the reference does not follow the convention that an edge case checks, or if it fails in a case that was added for
 * its extra checks (test_case.beside). */
bool case_is_finding(const struct case_result *c);

/* Gets the digests of the definition file, its workload file, its truth and its approval. A file is not read if its
 * stored stat proves that it is unchanged. Returns -1 and sets `err` if the definition or the workload file cannot be
 * read. If the truth or the approval cannot be read, sets result->truth_trouble or result->approval_trouble. */
int result_check_files(struct result *result, struct result_bytes *bytes, bool need_bytes, struct err *err);

/* If nothing has changed since an earlier run, fills in the result from the summary of that run and returns true. Call
 * result_check_files first. */
bool result_from_summary(struct result *result);

/* If run.summary_lru has a summary for exactly the current contents of the definition's files, fills in the result from
 * this summary and returns true. If the store has a summary for the previous contents of the files, also copies this
 * summary into run.summary_lru. */
bool result_from_lru(struct result *result);

/* Parses the files that result_check_files read, and builds the cases. Returns -1 and sets `err` if the definition is
 * invalid. */
int result_make_cases(struct result *result, struct result_bytes *bytes, struct err *err);

/* Returns whether the result needs another attempt. There are two possible reasons. First: the reference disagrees with
 * the family of the current attempt, and the family may be wrong. It may be wrong if only the shapes suggest it, or if
 * the words of the definition suggest more than one family. Second: every candidate family was rejected, and the
 * definition's `init` failed. */
bool result_needs_next_attempt(const struct result *result);

/* Builds the cases of the attempt that the result needs. */
void result_make_next_attempt(struct result *result);

/* Returns whether the files of a definition still have the content that was hashed: the definition file, the workload
 * file, the truth, the approval and the blobs. Also returns false if the stat of a blob shows a change since the blob
 * was hashed. */
bool result_unchanged(const struct result *result);

/* Returns whether a later run with the same contents of the files would take the verdict of every case from the store.
 * Call this when the verdicts were stored. */
bool result_is_in_store(const struct result *result);

/* Adds the digests of the definition's files to the records that are stored at the end of the run. If a later run with
 * the same file contents would get the same result from the store, also adds a summary of the result. Set
 * result.in_store before. */
void result_note(struct result *result);

#endif
