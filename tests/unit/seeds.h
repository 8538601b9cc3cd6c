/* seeds - reduces the tests of the op families in sanitized builds, in which the tests are several times slower than in
 * other builds.
 *
 * A seed changes the values but hardly the memory accesses, so sanitized builds use one seed, and the plain build the
 * number that a test names. Likewise, tests that damage each byte of a file damage only every BYTE_STEP-th byte in
 * sanitized builds. The step is odd, so that every bit is damaged in some byte. The inner loops of emulated references
 * are code of the tests alone, and are not instrumented. */
#ifndef REFTEST_TESTS_SEEDS_H
#define REFTEST_TESTS_SEEDS_H

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1, BYTE_STEP = 7 };
#else
enum { SANITIZED = 0, BYTE_STEP = 1 };
#endif

#define SEEDS_OR_ONE(seeds) (SANITIZED ? 1 : (seeds))
#define NOT_INSTRUMENTED __attribute__((no_sanitize("address", "undefined")))

enum { MANY_SEEDS = SEEDS_OR_ONE(20) };

#endif
