/* python_function - a function that Python source defines, and its parameters. */
#ifndef REFTEST_DATASET_PYTHON_FUNCTION_H
#define REFTEST_DATASET_PYTHON_FUNCTION_H

#include <stdbool.h>

enum { PYTHON_PARAMETERS = 1024 /* the maximum number of parameters */ };

enum python_parameter_kind {
	PARAMETER_POSITIONAL_ONLY, /* before `/` */
	PARAMETER_ANY,             /* passed by position or by name */
	PARAMETER_NAMED_ONLY,      /* after `*` or *args */
	PARAMETER_ARGS,            /* *args */
	PARAMETER_KWARGS           /* **kwargs */
};

struct python_parameter {
	const char *name;
	enum python_parameter_kind kind;
	bool has_default;
};

struct python_function {
	const char *name;
	int line; /* the line of its `def`, from 1 */
	bool is_async, decorated;
	const struct python_parameter *parameters; /* in the order of the source */
	int parameter_count;
};

#endif
