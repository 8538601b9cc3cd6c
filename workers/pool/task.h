/* task - the reference of one definition, and the cases to run it on. engine/run.c fills a task; lane.c sends the
 * task's reference to the runner as {"load"}. Data about the whole definition goes into struct task; data about one
 * case goes into its job (workers/protocol/job.h). */
#ifndef REFTEST_WORKERS_POOL_TASK_H
#define REFTEST_WORKERS_POOL_TASK_H

#include <stdbool.h>

#include "base/hash.h"
#include "workers/protocol/job.h"

/* A file that the reference may read. */
struct read_file {
	const char *path; /* the path that the reference uses */
	const char *file; /* the path of the file relative to the root of the dataset */
	struct digest content;
};

/* A source file of a program. `path` is relative, without "." and "..". */
struct program_file {
	const char *path, *content;
};

/* How a program of several files is compiled. */
enum program_build { BUILD_NONE, BUILD_CPP, BUILD_CUDA };

/* How a program returns its outputs. */
enum program_outputs {
	OUTPUTS_GUESSED, /* the signature decides: the arguments are the inputs, or the inputs and then the outputs */
	OUTPUTS_RETURNED,
	OUTPUTS_WRITTEN  /* the program writes its outputs to tensors that it gets after its inputs */
};

/* The program of a ground truth that runs in a separate runner. */
struct truth_program {
	const char *name;        /* as in job.truths */
	const char *path;        /* for messages and tracebacks */
	const char *source;      /* the source, if it is a single file whose function gets its inputs by name; else
				  * NULL */
	const char *entry_point; /* the function that is called */
	/* If `source` is NULL, the fields from here on are set, and the function gets its inputs by position. */
	const struct program_file *files;
	int file_count;
	const char *entry_file; /* the file that defines the function or, if it is compiled, binds it to Python */
	enum program_build build;
	enum program_outputs outputs;
};

/* `reference`, `definition`, `reads`, `programs`, `jobs` and `seconds` must stay valid until pool_next has returned the
 * task's last result. */
struct task {
	const char *name;      /* op_type/name, for messages */
	const char *reference;
	const struct truth_program *program; /* a program that runs instead of the reference; NULL: the reference
					      * runs */
	const struct definition *definition; /* says how the reference is called; NULL: run() gets every input by name */
	const struct read_file *reads;
	int read_count;
	const struct truth_program *programs; /* the jobs' ground truths that are Python source in the dataset */
	int program_count;
	const struct job *const *jobs;
	const double *seconds; /* how long each job is expected to take; NULL: unknown */
	int job_count;
	void *owner;           /* returned with each result */
	bool urgent;           /* an interactive user waits for the task, so it goes to the front of the queue */
};

#endif
