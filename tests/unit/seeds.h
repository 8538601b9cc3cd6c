/* seeds - the number of seeds with which the tests of correct references run. A seed changes the values but hardly the
 * memory accesses, and the sanitizers make these tests five times slower; so sanitized builds use two seeds. Likewise,
 * tests that damage each byte of a file damage every BYTE_STEP-th byte there; the step is odd, so that each bit gets its turn. */
#ifndef REFTEST_TESTS_SEEDS_H
#define REFTEST_TESTS_SEEDS_H

#ifdef __SANITIZE_ADDRESS__
enum { MANY_SEEDS = 2, BYTE_STEP = 7 };
#else
enum { MANY_SEEDS = 20, BYTE_STEP = 1 };
#endif

#endif
