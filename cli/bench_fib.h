/* bench_fib - runs flashinfer-bench on the dataset that `reftest bench` has measured (`--fib`). */
#ifndef REFTEST_CLI_BENCH_FIB_H
#define REFTEST_CLI_BENCH_FIB_H

#include "engine/run.h"

/* Runs `flashinfer-bench run` on the definitions of the run, behind a heading. It measures the dataset's solutions in
 * its own way, and saves nothing. Prints a sentence on stderr if the interpreter of the run does not have it, or if it
 * fails; that is no error of reftest. */
void bench_fib(const struct run *run);

#endif
