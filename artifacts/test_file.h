/* test_file - definitions as the text of a pytest file: one class each. Pure: from data to bytes, the same bytes
 * always. */
#ifndef REFTEST_ARTIFACTS_TEST_FILE_H
#define REFTEST_ARTIFACTS_TEST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "dataset/definition.h"

struct test_size {
	const char *label;   /* "small", "medium", "large" */
	const int64_t *axis; /* a value per axis of the definition */
};

struct test_constant {
	const char *name, *source; /* "eps", "model:llama-3.1-8b" */
	double value;		   /* NaN: nothing attests it */
};

/* An input that the operation may write to. */
struct test_left {
	const char *input, *output; /* output: which it may be; NULL: none, it has a truth of its own */
	bool may_keep;		    /* what it held before will do too */
};

struct test_class {
	const char *name;		     /* the definition's */
	const struct definition *definition; /* NULL: it cannot be read, and `kept` is what the file had of it */
	const char *family;		     /* the op family; NULL: none knows it */
	int variant;			     /* what its op.match made of the definition */
	const struct test_size *sizes;
	int size_count;
	const struct tolerance *rules; /* what verify holds each output to at each size, by size; NULL: no family */
	const double *scalars;	       /* values of its Python scalars at each size, a row of input_count */
	bool samples;		  /* it draws from torch's generators */
	const struct test_constant *constants;
	int constant_count;
	const struct test_left *left; /* of every other input the operation leaves what it held */
	int left_count;
	const char *kept; /* text of the old class, not NUL-terminated */
	size_t kept_length;
};

/* Appends the file's body (artifacts/owned.h seals it). `about` names what is tested: "definitions/rmsnorm". */
void test_file_write(const char *about, const struct test_class *classes, int count, struct buf *out);

/* The class of the definition of that name in a body that test_file_write made. false: it has none. */
bool test_file_class(const char *body, size_t length, const char *name, const char **text, size_t *text_length);

/* Has one body a class of a name that the other has none of? Both as test_file_write makes them, their classes in one order;
 * true also if they are not. */
bool test_file_drops(const char *body, size_t length, const char *other, size_t other_length);

#endif
