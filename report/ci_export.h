/* ci_export - exports the results of a run to CI systems: as JUnit XML in a file, and as GitHub annotations on standard
 * output. To add a format, add a file beside report/junit.c, a function here, and an option or a value of --format in
 * cli/verify.c. */
#ifndef REFTEST_REPORT_CI_EXPORT_H
#define REFTEST_REPORT_CI_EXPORT_H

#include "engine/run.h"

/* Writes JUnit XML to the file `path`. run_options.details must be true, so that every result has its list of cases.
 * Returns 0, or -1 and sets `err`. */
int export_junit(const struct run *run, const char *path, struct err *err);

/* Prints GitHub annotations. Each annotation points to the line of the definition's JSON file at which the reference
 * starts. */
void export_github(const struct run *run);

#endif
