/* judge_process - how the pool starts a judge: the pool forks a process and calls the judge's function in it.
 *
 * The process is never exec'd. Between an exec and its first instruction, every process of the same user can debug a
 * process and write to its memory. A reference could then replace the comparison. The main process cannot be debugged,
 * and a forked process inherits this. workers/pool must not include headers of workers/judge; the engine therefore
 * passes the function to the pool. */
#ifndef REFTEST_WORKERS_PROTOCOL_JUDGE_PROCESS_H
#define REFTEST_WORKERS_PROTOCOL_JUDGE_PROCESS_H

#include <stdbool.h>

struct kernels; /* kernels/core/kernels_library.h */

/* The descriptors of a judge, besides standard error. */
enum { JUDGE_SOCKET = 3, JUDGE_CUDA_LIBRARY = 4, JUDGE_FDS = 5 };

/* The parameters of one judge. */
struct judge_order {
	const char *device; /* "cpu", "cuda:1" */
	/* CUDA_VISIBLE_DEVICES of the judge, and the device's name there; NULL: the variable stays as it is */
	const char *visible, *visible_name;
	bool staged;	    /* copy tensors through host memory even where CUDA IPC works */
	int threads;	    /* number of CPU threads; 0: a default for the machine */
};

/* The code that every judge of a run executes. */
struct judge_program {
	/* Serves until the pool closes the socket, and returns an exit status. */
	int (*serve)(const struct judge_program *program, const struct judge_order *order);
	const struct kernels *kernels; /* loaded in the main process; not owned */
	int cuda_library;	       /* the sealed copy of the CUDA library (base/sealed_library.h), not owned; -1:
					* there is none */
};

#endif
