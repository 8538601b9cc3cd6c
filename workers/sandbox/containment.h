/* containment - writes the layers of a sandbox as text, for verdicts and the option --require-containment. The text is
 * "full", or the names of the open gaps (workers/sandbox/sandbox.h), separated by commas. */
#ifndef REFTEST_WORKERS_SANDBOX_CONTAINMENT_H
#define REFTEST_WORKERS_SANDBOX_CONTAINMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTAINMENT_TEXT = 256, CONTAINMENT_SENTENCES = 2048 };

/* Writes the text that describes the layers in `layers`. `out` must have room for CONTAINMENT_TEXT bytes. */
void containment_write(uint32_t layers, char *out);
/* Writes the sentences that describe the open gaps, separated by "; ". Writes "" if there are none. `out` must have
 * room for CONTAINMENT_SENTENCES bytes. */
void containment_write_sentences(uint32_t layers, char *out);
/* Returns whether a text of containment_write satisfies `required`, a list of the gaps that must be closed (NULL:
 * none). If `text` is NULL, the containment is unknown, and every gap counts as open. */
bool containment_suffices(const char *text, const char *required);

#endif
