/* task - the reference of one definition, and the cases on which it runs. engine/run.c fills a task, and lane.c sends
 * its reference to the runner as {"load"}. Data about the whole definition belongs in struct task. Data about one case
 * belongs in the job of this case (workers/protocol/job.h). */
#ifndef REFTEST_WORKERS_POOL_TASK_H
#define REFTEST_WORKERS_POOL_TASK_H

#include <stdbool.h>

#include "base/hash.h"
#include "workers/protocol/job.h"

/* A file that the reference may read. */
struct read_file {
	const char *path; /* the path with which the reference opens the file */
	const char *file; /* the path of the file relative to the root of the dataset */
	struct digest content;
};

/* A source file of a program. `path` is relative, without "." and "..". */
struct program_file {
	const char *path, *content;
};

/* The compiler for a program of several files. */
enum program_build { BUILD_NONE, BUILD_CPP, BUILD_CUDA };

/* How a program returns its outputs. */
enum program_outputs {
	OUTPUTS_GUESSED, /* the signature tells whether the arguments are only the inputs, or the inputs and then the
			  * outputs */
	OUTPUTS_RETURNED,
	OUTPUTS_WRITTEN  /* the program writes its outputs to tensors that it gets after its inputs */
};

/* The program of a ground truth, which runs in a runner of its own. For `attributes`, see struct task. */
struct truth_program {
	const char *name;        /* the name, as in job.truths */
	const char *path;        /* the path in messages and tracebacks */
	const char *source;      /* the source code, if the program is a single file whose function gets its inputs by
				  * name; else NULL */
	const char *entry_point; /* the function that is called */
	const char *attributes;
	/* If `source` is NULL, the function gets its inputs by position, and the following members are set. */
	const struct program_file *files;
	int file_count;
	const char *entry_file; /* the file that defines the function, or that binds a compiled function to Python */
	enum program_build build;
	enum program_outputs outputs;
};

/* `reference`, `attributes`, `init_attributes`, `definition`, `reads`, `programs`, `jobs` and `seconds` must stay valid
 * until pool_next has returned the task's last result. */
struct task {
	const char *name;      /* the name "op_type/name", for messages */
	const char *reference;
	/* The names of attributes that the code may only use if no class of Python or torch has an attribute with this
	 * name; separated by spaces. If a class has one, pool_result.reached says so. NULL: there are no such names. */
	const char *attributes;      /* of the reference */
	const char *init_attributes; /* of the definition's code in `init` */
	const struct truth_program *program; /* a program that runs instead of the reference; NULL: the reference
					      * runs */
	const struct definition *definition; /* tells how the reference is called; NULL: run() gets every input by
					      * name */
	const struct read_file *reads;
	int read_count;
	const struct truth_program *programs; /* those ground truths of the jobs that are Python source in the
					       * dataset */
	int program_count;
	const struct job *const *jobs;
	const double *seconds; /* seconds[i]: the expected time of job i; NULL: unknown */
	int job_count;
	void *owner;           /* a value that is returned with each result */
	bool urgent;           /* an interactive user waits for the task, so it comes first in the queue */
};

#endif
