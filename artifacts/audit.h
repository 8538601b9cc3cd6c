/* audit - hand-written test files that cannot fail: a test function that returns its verdict (pytest counts that as
 * passed), one in which nothing is compared, or only where it is never reached, an assertion that the test itself
 * catches or suppresses, or that is true by itself, a test that is skipped on every machine, and a pasted copy of a
 * reference that is no longer the definition's.
 *
 * Python is read by a scanner of strings, comments, brackets and indentation, not parsed: enough to tell which
 * statements a function has. A call counts as a comparison if the function it calls, in the same file, makes one, or if
 * its name says so (assert…, check…, verify…, compare…, expect…, raises, warns, fail…). */
#ifndef REFTEST_ARTIFACTS_AUDIT_H
#define REFTEST_ARTIFACTS_AUDIT_H

#include <stddef.h>

#include "base/arena.h"

struct audit_finding {
	int line;	    /* from 1 */
	const char *reason; /* "test_shape returns a value …" */
};

/* What is found in `text`, in the order of lines; how many. `reference` is that of the definition which the file tests,
 * `about` its path; both NULL: it is not known. Everything in `arena`. */
int audit_text(const char *text, size_t length, const char *reference, const char *about, struct arena *arena,
	       const struct audit_finding **out);

#endif
