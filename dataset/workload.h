/* workload - one line of a workload file: the axis values and the source of each input. A line of a trace file also
 * contains the result of a solution that was benchmarked with this workload. */
#ifndef REFTEST_DATASET_WORKLOAD_H
#define REFTEST_DATASET_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "dataset/definition.h"

enum {
	WORKLOAD_BYTES = 256 << 20, /* limit on the file size */
	WORKLOAD_LINES = 100000
};

enum source_kind {
	SOURCE_RANDOM = 0,      /* random values that the op family generates */
	SOURCE_SCALAR = 1,      /* a Python scalar */
	SOURCE_SAFETENSORS = 2, /* the tensor `key` of a safetensors file (a blob) */
	SOURCE_ABSENT = 3,      /* an optional input that the line omits: run() gets None */
	SOURCE_CUSTOM = 4,      /* made by the definition's own code (definition.input_code) */
};

enum scalar_kind { SCALAR_INT = 0, SCALAR_FLOAT = 1, SCALAR_BOOL = 2 };

struct input_source {
	enum source_kind kind;
	enum scalar_kind scalar_kind; /* for SOURCE_SCALAR */
	int64_t integer;              /* for SCALAR_INT and SCALAR_BOOL */
	/* The value of a SCALAR_FLOAT. For the other kinds, this is `integer` as a double, which is rounded if it is
	 * beyond 2^53. */
	double number;
	const char *path; /* for SOURCE_SAFETENSORS: path of the file relative to the root, without "./" and ".." */
	const char *tensor_key;
	/* for SOURCE_CUSTOM: the values in device memory of the judge, after the definition's code has made them */
	const void *values;
	struct digest content; /* digest of the whole file; all zeros until the file has been read */
};

/* The tolerance of a line. If `given` is true, all members except error_cap have a value. */
struct workload_tolerance {
	bool given;
	struct tolerance bounds;
	/* The maximum difference between any element of an output and the ground truth; negative: no limit. */
	double error_cap;
	bool allows_negative_infinity; /* -inf may be a correct value of an output */
};

struct workload {
	const char *uuid;  /* unique within the file */
	int line;          /* number of the line in the file, from 1 */
	/* NULL if the line is valid; otherwise a message that says why the line is invalid. If the line is invalid, all
	 * other members are 0 or NULL, except `line` and, if the uuid can be read, `uuid`. */
	const char *error;
	/* The value of each axis of the definition, including the const axes, in the order of the definition. */
	const int64_t *axis;
	/* The source of each input of the definition, in the order of the inputs. */
	const struct input_source *inputs;
	struct workload_tolerance tolerance;
	/* In a trace, the name of the solution that was benchmarked, and whether its evaluation passed. */
	const char *solution;
	bool passed;
};

struct workload_file {
	const struct workload *lines; /* without blank lines */
	int count;
	int invalid; /* number of lines with an error */
};

/* Parses a whole workload file against its definition. A line is an object {"definition", "workload": {"uuid", "axes",
 * "inputs"}}, or only the object with "uuid", "axes" and "inputs". Evaluates the constraints that depend only on axes.
 * A line that violates such a constraint is invalid. Each invalid line has its own message, "path:line:column: …"; the
 * other lines remain valid. If the file has more than WORKLOAD_BYTES bytes, the result is one invalid line with number
 * 1. If the file has more than WORKLOAD_LINES lines, all further lines together count as one invalid line. */
struct workload_file workloads_load(const char *path, const struct definition *definition, const void *bytes,
                                    size_t length, struct arena *arena);

/* Parses a file of traces. A trace is a workload line that also has the name of a solution and its evaluation. One
 * workload may have several traces. */
struct workload_file traces_load(const char *path, const struct definition *definition, const void *bytes, size_t length,
				 struct arena *arena);

#endif
