/* python_outline - finds the functions that Python source defines at top level, or the first syntax error of the
 * source.
 *
 * The source is parsed, but not run. The parser is less strict than CPython. It reports an error only if every version
 * of CPython from 3.8 on reports one, and it accepts some texts that CPython refuses. Three things are not parsed: the
 * contents of f-strings, type parameters, and lines that begin with `match`, `case`, `type` or `lazy`. */
#ifndef REFTEST_DATASET_PYTHON_OUTLINE_H
#define REFTEST_DATASET_PYTHON_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/python_function.h"

enum python_outline_answer {
	PYTHON_OUTLINE_OK,
	PYTHON_OUTLINE_ERROR, /* CPython refuses the source */
	/* The parser stopped early, for example because the source is nested too deeply, so it knows nothing about the
	 * source. */
	PYTHON_OUTLINE_UNSURE
};

struct python_outline {
	/* The functions defined at top level (the line of their `def` is not indented), in the order of the source.
	 * Several functions may have the same name. */
	const struct python_function *functions;
	int function_count;
	/* `wanted` may be bound by a statement that is not the `def` of one of these functions: for example an
	 * assignment, an import, a class, a `def` inside `if`, or `global`. */
	bool binds_wanted;
	/* A statement may bind any name, for example `from m import *`, or a statement that uses exec or globals. */
	bool binds_any;
	int line, column; /* position of the error, from 1; columns count characters */
};

enum {
	PYTHON_FUNCTIONS = 4096 /* the maximum number of functions in an outline */
};

/* Reads Python source. `wanted`: the name that `binds_wanted` is about, or NULL. The outline is allocated in `arena`.
 * For PYTHON_OUTLINE_ERROR, writes one sentence without the position to `err`: "'(' is never closed". */
enum python_outline_answer python_outline_read(const char *source, size_t length, const char *wanted,
					       struct arena *arena, struct python_outline *out, struct err *err);

/* Returns the last function with the name `name`, or NULL. */
const struct python_function *python_outline_function(const struct python_outline *outline, const char *name);
/* Returns false if no statement of the source can bind `wanted`, which must be the name that was passed to
 * python_outline_read. */
bool python_outline_may_define(const struct python_outline *outline, const char *wanted);

#endif
