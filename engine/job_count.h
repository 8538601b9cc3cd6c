/* job_count - decides how many references run in parallel if --jobs is not given. */
#ifndef REFTEST_ENGINE_JOB_COUNT_H
#define REFTEST_ENGINE_JOB_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct job_facts {
	int cores;      /* number of cores that this process may use */
	int64_t memory; /* bytes of memory that are available; 0 if this is unknown */
	bool gpu;       /* references run on a GPU */
	bool kept;      /* --isolation kept: most references run in a process that already exists */
	bool urgent;    /* a user waits for single definitions, as in an editor, so there are fewer jobs */
};

struct job_facts job_facts_here(bool gpu); /* the facts of this machine, with `kept` and `urgent` false */

/* Returns the number of references that run in parallel, at least 1. If `why` is not NULL, writes the reason for this
 * number to `why`: "one for each of 2 cores". */
enum { JOB_COUNT_WHY = 128 };
int job_count(const struct job_facts *facts, char why[JOB_COUNT_WHY]);

#endif
