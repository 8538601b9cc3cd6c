/* check - checks the files of a dataset without running code: definitions, workloads, tensor files, solutions and
 * traces.
 *
 * The loaders in dataset/ check each file by itself. This module checks what concerns several files: names must match
 * paths, each file must belong to a definition, tensors must fit their workload, and traces must cover the
 * workloads. */
#ifndef REFTEST_CHECK_CHECK_H
#define REFTEST_CHECK_CHECK_H

#include "base/err.h"
#include "check/findings.h"

/* Checks the whole dataset at `root`. Adds findings to `findings`, whose arena the caller has set. Returns 0, or -1
 * with a message if the folder is not a dataset. */
int check_dataset(const char *root, struct findings *findings, struct check_counts *counts, struct err *err);

/* Checks the contents of one file: a definition or a solution (.json), or a file of lines (.jsonl). In a file of lines,
 * only the JSON syntax is checked. `path` is relative to the working directory. */
void check_file(const char *path, struct findings *findings, struct check_counts *counts);

#endif
