/* check - checks the files of a dataset and runs nothing: definitions, workloads, tensor files, solutions and traces.
 *
 * The rules for one file are those of the loaders in dataset/. This module adds what needs several files: names that
 * must match paths, files that belong to a definition, tensors that must fit a workload, traces that must cover the
 * workloads. */
#ifndef REFTEST_CHECK_CHECK_H
#define REFTEST_CHECK_CHECK_H

#include "base/err.h"
#include "check/findings.h"

/* Checks the whole dataset at `root`. Adds findings to `findings`, whose arena the caller has set. Returns 0, or -1
 * with a message if the folder is no dataset. */
int check_dataset(const char *root, struct findings *findings, struct check_counts *counts, struct err *err);

/* Checks a file by its contents alone: a definition or a solution (.json); of other files only that each line is JSON
 * (.jsonl). `path` is relative to the working directory. */
void check_file(const char *path, struct findings *findings, struct check_counts *counts);

#endif
