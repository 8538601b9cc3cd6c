/* wide - WIDE before a function compiles its loops for AVX2 and AVX-512 too; which code runs is chosen when the library
 * is loaded. Elsewhere, and under the sanitizers, which do not bear it, it is nothing. Results differ at most in the
 * last bits of sums, by the order of adding. */
#ifndef REFTEST_KERNELS_WIDE_H
#define REFTEST_KERNELS_WIDE_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&          \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

/* FUSED before a function lets the compiler fuse products with the sums that they go into. Only where every product is
 * exact, as that of two floats is in double: then no result changes, and sums take half as long. */
#if defined(__GNUC__) && !defined(__clang__)
#define FUSED __attribute__((optimize("fp-contract=fast")))
#else
#define FUSED
#endif

#endif
