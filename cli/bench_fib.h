/* bench_fib - runs flashinfer-bench on the dataset that `reftest bench` has measured (`--fib`). */
#ifndef REFTEST_CLI_BENCH_FIB_H
#define REFTEST_CLI_BENCH_FIB_H

#include "engine/run.h"

/* Prints a heading, and runs `flashinfer-bench run` on the definitions of `run`. flashinfer-bench measures the
 * dataset's solutions with its own method, and saves nothing. If the Python interpreter does not have flashinfer-bench,
 * or if flashinfer-bench fails, prints a sentence on stderr. reftest's exit status stays the same. */
void bench_fib(const struct run *run);

#endif
