/* junit - verdicts as JUnit XML, as CI systems read it: a suite for each definition, a testcase for each case. Failed
 * is a failure; raised, crashed and invalid are errors; skipped, or nothing known, is skipped. Texts come from
 * strangers: what XML cannot hold becomes U+FFFD. */
#ifndef REFTEST_ARTIFACTS_JUNIT_H
#define REFTEST_ARTIFACTS_JUNIT_H

#include <stdbool.h>

#include "base/buf.h"
#include "dataset/verdict.h"

struct junit_case {
	const char *name;
	const struct verdict *verdict; /* NULL: nothing is known of it */
	const char *why;	       /* then: why; else what decided that it ran, or NULL */
};

struct junit_suite {
	const char *op_type, *name;
	const char *invalid; /* the definition cannot be read: the sentence; NULL */
	bool weak;	     /* what passed proves nothing (zeros would have passed): skipped */
	const struct junit_case *cases;
	int case_count;
};

void junit_write(const struct junit_suite *suites, int count, double seconds, struct buf *out);

#endif
