/* junit - writes verdicts as JUnit XML for CI systems, with a suite for each definition and a testcase for each case. A
 * failed case is a `failure`. A case with the status `error` or `invalid` is an `error`. A case that was skipped or
 * only checked, or that has no verdict, is `skipped`. Messages may contain any bytes. Characters that XML does not
 * allow, and characters that are unsafe to show (base/unsafe_character.h), are escaped. */
#ifndef REFTEST_REPORT_JUNIT_H
#define REFTEST_REPORT_JUNIT_H

#include <stdbool.h>

#include "base/buf.h"
#include "dataset/verdict.h"

struct junit_case {
	const char *name;
	const struct verdict *verdict; /* NULL: the case has no verdict */
	const char *why;	       /* why the case has no verdict, or why it ran; NULL if unknown */
};

struct junit_suite {
	const char *op_type, *name;
	const char *invalid; /* the error message if the definition cannot be read; else NULL */
	bool weak;	     /* the passed cases are written as skipped, because outputs of zeros would also pass */
	const struct junit_case *cases;
	int case_count;
};

void junit_write(const struct junit_suite *suites, int count, double seconds, struct buf *out);

#endif
