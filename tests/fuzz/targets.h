/* targets - the parsers that read untrusted bytes, and a driver that feeds mutated seeds to them.
 *
 * An input depends only on the target's name, its seeds and a number, so a failure can be repeated. The seeds are texts
 * in targets.c and the files of tests/fuzz/corpus/, where every input that once made a check fail is also kept. Use a
 * build with sanitizers, which find reads beyond the end of an input. The targets themselves check properties of every
 * result. For example, each rejected input has a message, offsets are within the file, and a value that is written and
 * read again stays the same. */
#ifndef REFTEST_TESTS_FUZZ_TARGETS_H
#define REFTEST_TESTS_FUZZ_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the name of a target, or NULL if the index is too large. */
const char *fuzz_target(int index);

/* Feeds inputs `first` … `first + count - 1` to a target. If there are N seeds, the inputs 0 … N - 1 are the seeds
 * themselves. Returns the number of accepted inputs, or -1 if there is no such target. If a check fails, prints the
 * input's number and bytes to stderr and aborts. */
int fuzz_run(const char *target, uint64_t first, uint64_t count);

/* Feeds inputs from `first` on until `seconds` of processor time have passed. Returns their number, or -1. */
int64_t fuzz_run_seconds(const char *target, uint64_t first, double seconds);

/* Feeds one input, and returns true if the target accepted it. */
bool fuzz_one(const char *target, const void *bytes, size_t length);

#endif
