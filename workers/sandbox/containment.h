/* containment - the layers of a sandbox as text, as verdicts and the option --require-containment have it: "full", or
 * the names of the gaps (workers/sandbox/sandbox.h) that are open, separated by commas. */
#ifndef REFTEST_WORKERS_SANDBOX_CONTAINMENT_H
#define REFTEST_WORKERS_SANDBOX_CONTAINMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTAINMENT_TEXT = 256, CONTAINMENT_SENTENCES = 2048 };

/* Writes the text of these layers; `out` has CONTAINMENT_TEXT bytes. */
void containment_write(uint32_t layers, char *out);
/* Writes the sentences of all open gaps, separated by "; ". Writes "" if there are none. `out` has
 * CONTAINMENT_SENTENCES bytes. */
void containment_write_sentences(uint32_t layers, char *out);
/* Does a text of containment_write have all that is required? NULL: it is not known what a reference could reach, so it
 * has nothing. If `required` is NULL, nothing is required. */
bool containment_suffices(const char *text, const char *required);

#endif
