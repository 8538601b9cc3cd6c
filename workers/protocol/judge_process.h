/* judge_process - the types with which the pool starts a judge: the pool forks a process and calls the judge's function
 * in it.
 *
 * The pool does not exec the judge as a separate program. Between an exec and the first instruction of the new program,
 * every process of the same user could debug the judge and write to its memory. A reference could then replace the code
 * of the comparison. The main process cannot be debugged, and a process that it forks cannot be debugged either. The
 * engine passes the judge's function to the pool, because workers/pool must not include headers of workers/judge. */
#ifndef REFTEST_WORKERS_PROTOCOL_JUDGE_PROCESS_H
#define REFTEST_WORKERS_PROTOCOL_JUDGE_PROCESS_H

#include <stdbool.h>

struct kernels; /* defined in kernels/core/kernels_library.h */

/* The descriptors of a judge, in addition to standard error. */
enum { JUDGE_SOCKET = 3, JUDGE_CUDA_LIBRARY = 4, JUDGE_FDS = 5 };

/* The parameters of one judge. */
struct judge_order {
	const char *device; /* a name such as "cpu" or "cuda:1" */
	/* `visible` is the value of CUDA_VISIBLE_DEVICES in the judge, and `visible_name` is the name of the device
	 * there. NULL: the variable stays as it is. */
	const char *visible, *visible_name;
	bool staged;	    /* copy tensors through host memory even if CUDA IPC works */
	int threads;	    /* the number of CPU threads; 0: a default for the machine */
};

/* The function and the libraries that every judge of a run uses. */
struct judge_program {
	/* Serves the pool until the pool closes the socket. Returns an exit status. */
	int (*serve)(const struct judge_program *program, const struct judge_order *order);
	const struct kernels *kernels; /* the kernels library, which the main process has loaded and which belongs to
				        * it */
	int cuda_library;	       /* the sealed copy of the CUDA library (base/sealed_library.h), which belongs to
					 * the main process; -1: there is none */
};

#endif
