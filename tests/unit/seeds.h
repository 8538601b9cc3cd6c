/* seeds - reduces the work of unit tests in builds with sanitizers, in which tests run several times slower.
 *
 * Another seed changes the values of a test, but hardly its memory accesses. Therefore sanitized builds use only one
 * seed, and other builds use the number of seeds that the test names. Sanitized builds also plant only every
 * MISTAKE_STEP-th mistake, because a mistake changes only the emulated reference, and not the inputs, the ground truth
 * or the comparison. A test that damages each byte of a file damages only every BYTE_STEP-th byte in sanitized builds.
 * In byte i, such a test flips bit i % 8. The step is odd, so that each of the 8 bits is flipped in some byte. The
 * inner loops of emulated references are not instrumented, because they are only test code. */
#ifndef REFTEST_TESTS_SEEDS_H
#define REFTEST_TESTS_SEEDS_H

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1, BYTE_STEP = 13, MISTAKE_STEP = 8 };
#else
enum { SANITIZED = 0, BYTE_STEP = 1, MISTAKE_STEP = 1 };
#endif

#define SEEDS_OR_ONE(seeds) (SANITIZED ? 1 : (seeds))
#define NOT_INSTRUMENTED __attribute__((no_sanitize("address", "undefined")))

enum { MANY_SEEDS = SEEDS_OR_ONE(8) };

#endif
