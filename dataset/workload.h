/* workload - one line of a workload file: axis values, and where each input comes from. */
#ifndef REFTEST_DATASET_WORKLOAD_H
#define REFTEST_DATASET_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "dataset/definition.h"

enum {
	WORKLOAD_BYTES = 256 << 20, /* the largest file that is read */
	WORKLOAD_LINES = 100000     /* the most lines that are read */
};

enum source_kind {
	SOURCE_RANDOM = 0,      /* made by the family */
	SOURCE_SCALAR = 1,      /* a Python scalar */
	SOURCE_SAFETENSORS = 2, /* a tensor of a blob */
	SOURCE_ABSENT = 3,      /* an optional input that the line leaves out: None */
};

enum scalar_kind { SCALAR_INT = 0, SCALAR_FLOAT = 1, SCALAR_BOOL = 2 };

struct input_source {
	enum source_kind kind;
	enum scalar_kind scalar_kind; /* SOURCE_SCALAR */
	int64_t integer;              /* SCALAR_INT, SCALAR_BOOL */
	double number;                /* SCALAR_FLOAT, and the value of the others too (rounded beyond 2^53) */
	const char *path; /* SOURCE_SAFETENSORS: relative to the root, never leaves it lexically, without "./" */
	const char *tensor_key;
	struct digest content; /* of that file as a whole, once it has been looked at; zeros before */
};

struct workload {
	const char *uuid;  /* unique within the file */
	int line;          /* in the file, from 1 */
	const char *error; /* NULL, or the sentence that makes this one line invalid (the others stand); then only
	                      `line` and, if it could be read, `uuid` are set */
	const int64_t *axis;                 /* one value per definition axis, in its order, const ones included */
	const struct input_source *inputs;   /* one per definition input, in its order */
};

struct workload_file {
	const struct workload *lines; /* blank lines are none */
	int count;
	int invalid; /* how many carry an error */
};

/* Parses a whole workload file against its definition. Constraints that axes decide are evaluated here: a line that
 * breaks one is invalid. Never fails as a whole: each bad line carries its own "path:line:column: …" sentence. (A file
 * beyond WORKLOAD_BYTES is one bad line 1; what follows WORKLOAD_LINES is one bad line.) */
struct workload_file workloads_load(const char *path, const struct definition *definition, const void *bytes,
                                    size_t length, struct arena *arena);

#endif
