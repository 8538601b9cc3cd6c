/* test_file - writes the text of a generated pytest file with one class per definition. The same arguments always
 * produce the same bytes. The tests of a class are methods of DefinitionTests in python/testing/conftest_checks.py,
 * which also contains the checks that these methods call. To add a test, change conftest_checks.py and
 * docs/generated-tests.md, and then run `make references`. docs/architecture.md ("A kind of generated test") lists the
 * tests of reftest that must change, too.
 *
 * If the new test needs new data about its class:
 * - Add a member to struct test_class below, and set it in test_class.c.
 * - In test_file.c, write the value of this member as an attribute of the generated class.
 * - Add the name of the attribute to the list `reserved` in test_file.c, because no axis may get this name.
 * - Add an attribute with this name and the default value to the class DefinitionTests.
 * - Add a test to tests/unit/test_test_file.c. */
#ifndef REFTEST_TESTGEN_TEST_FILE_H
#define REFTEST_TESTGEN_TEST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "dataset/definition.h"
#include "workers/protocol/job.h"

struct test_size {
	const char *label;   /* "small", "medium" or "large", or the name of an edge case */
	const int64_t *axis; /* one value for each axis of the definition */
	enum job_runs runs;  /* the sets of input values on which the reference runs at this size */
};

struct test_constant {
	const char *name, *source; /* "eps", "model:llama-3.1-8b" */
	double value;		   /* NaN if the definition and its model do not state the value */
};

/* A role of the op family, and the name of the input or output that has this role in the definition. */
struct test_role {
	const char *role, *name;
};

/* An input that the operation may write to. */
struct test_left {
	const char *input;
	const char *output;	    /* the output whose values the input must have after the call, or NULL */
	bool may_keep;		    /* the input may also keep its old values */
};

/* A Python scalar, and the number that, according to the scalar's description, means "use the default". */
struct test_number {
	const char *input;
	enum dtype dtype;
	double number;
};

struct test_class {
	const char *name;		     /* the name of the definition */
	const struct definition *definition; /* NULL if the definition cannot be read; then `kept` is used */
	const char *family;		     /* the op family; NULL if none supports the definition */
	const struct test_role *roles, *output_roles;
	int role_count, output_role_count;
	const char *const *modes; /* the modes of the op family that op.match recognised in the definition */
	int mode_count;
	const struct test_size *sizes;
	int size_count;
	const char *const *omitted; /* optional inputs; for each of them, one case omits it */
	int omitted_count;
	const struct test_number *numbers; /* Python scalars; for each of them, one case passes its `number` */
	int number_count;
	const struct test_size *edges; /* the op family's edge cases */
	int edge_count;
	const int64_t *probe;	       /* axis values of the case that measures the unknown constants, or NULL */
	const struct tolerance *rules; /* the tolerance rule of each output, one row per size; NULL without an op
				        * family */
	const bool *judged;	       /* for each output, whether op.judge judges it without a tolerance rule; NULL
					* without an op family */
	const double *scalars;	       /* the values of Python scalars, one row of input_count values per size */
	bool samples;		  /* the operation draws random samples from torch's generators */
	const struct test_constant *constants;
	int constant_count;
	const struct test_left *left; /* the inputs that the operation may write to */
	int left_count;
	const char *kept; /* text of the class in the old file, not NUL-terminated */
	size_t kept_length;
};

/* Appends the body of a test file, to which owned_seal (testgen/hand_edit.h) adds the header. `about` is the path of
 * the tested definition or folder: "definitions/rmsnorm". */
void test_file_write(const char *about, const struct test_class *classes, int count, struct buf *out);

/* Finds the class of the definition `name` in a body that test_file_write wrote. Returns false if the body has no
 * class for this definition. */
bool test_file_class(const char *body, size_t length, const char *name, const char **text, size_t *text_length);

/* Returns whether the body of a test file has a class that the body `other` lacks. Also returns true if the order of
 * the classes differs, or if one of the bodies was not written by test_file_write. */
bool test_file_drops(const char *body, size_t length, const char *other, size_t other_length);

#endif
