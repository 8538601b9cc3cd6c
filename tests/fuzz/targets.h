/* targets - what reads strangers' bytes, fed with seeds that were cut, spliced and scribbled on.
 *
 * Everything follows from a target's name and a number, so a failure can be run again and lies in no corpus. Meant for
 * a build with sanitizers: these find the reads past an end; the targets themselves check what must hold of every
 * answer (a sentence for each refusal, offsets within the file, a text that survives being written and read). */
#ifndef REFTEST_TESTS_FUZZ_TARGETS_H
#define REFTEST_TESTS_FUZZ_TARGETS_H

#include <stdint.h>

/* The names of the targets; NULL beyond the last. */
const char *fuzz_target(int index);

/* Feeds inputs `first` … `first + count - 1` of a target to it. Returns how many were taken as valid, -1 for a name
 * that is none. What must hold and does not is told on stderr, with the number of the input and its bytes; then it
 * aborts. */
int fuzz_run(const char *target, uint64_t first, uint64_t count);

#endif
