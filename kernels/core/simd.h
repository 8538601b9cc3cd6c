/* simd - defines the macros WIDE and FUSED. A function with WIDE before it is compiled for wide vectors, and a function
 * with FUSED before it is compiled with fused multiply-add.
 *
 * WIDE compiles a function three times: for any x86-64 processor, for AVX2, and for AVX-512. The dynamic loader selects
 * the version for the machine. On other machines, and with the sanitizers, a function cannot have several versions, so
 * WIDE expands to nothing. The results of the versions differ at most in the last bits of sums, because each version
 * adds in a different order. */
#ifndef REFTEST_KERNELS_CORE_SIMD_H
#define REFTEST_KERNELS_CORE_SIMD_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&          \
    !defined(__SANITIZE_THREAD__)
#define WIDE_X86 1 /* functions can have versions for AVX2 and AVX-512 beside the one for any x86-64 processor */
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

/* FUSED lets the compiler contract a multiplication and an addition into a fused multiply-add. Use FUSED only if every
 * product is exact, such as the product of two floats in double. The results are then the same as without FUSED, and
 * sums of products take half the time. */
#if defined(__GNUC__) && !defined(__clang__)
#define FUSED __attribute__((optimize("fp-contract=fast")))
#else
#define FUSED
#endif

#endif
