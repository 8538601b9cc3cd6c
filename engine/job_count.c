/* job_count - limits the number of jobs by cores and memory. A reference and its judge work in turns, so each job keeps
 * about one core busy. On a GPU, the cores only start kernels, so a few jobs are enough. The driver creates the
 * contexts of new processes one after another, so four jobs are as fast as eight. Processes that are kept between
 * references already have their contexts, so eight jobs in kept processes are faster than four. */
#include "engine/job_count.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#include "base/free_memory.h"
#include "workers/pool/machine_resources.h"

enum { MOST_CPU = 8, MOST_URGENT = 4, MOST_GPU = 4, MOST_GPU_KEPT = 8 };

/* Bytes of memory for each job: for Python, torch, the tensors of a medium case and, on a GPU, CUDA's memory on the
 * host. */
static const int64_t memory_cpu = (int64_t)1 << 30, memory_gpu = (int64_t)2 << 30;

struct job_facts job_facts_here(bool gpu)
{
	return (struct job_facts){.cores = machine_cores(), .memory = memory_available(""), .gpu = gpu};
}

/* A limit on the number of jobs, and a sentence that explains the limit. */
struct limit {
	int most;
	char why[JOB_COUNT_WHY];
};

static struct limit limit_of_cores(const struct job_facts *facts)
{
	bool whole = !facts->gpu && !facts->urgent;
	struct limit limit = {.most = whole ? facts->cores : facts->cores / 2};

	snprintf(limit.why, sizeof limit.why, whole ? "one for each of %d cores" : "one for every two of %d cores", facts->cores);
	return limit;
}

static struct limit limit_of_memory(const struct job_facts *facts)
{
	int64_t each = facts->gpu ? memory_gpu : memory_cpu, jobs = facts->memory / each;
	struct limit limit = {.most = facts->memory <= 0 || jobs > INT_MAX ? INT_MAX : (int)jobs};

	snprintf(limit.why, sizeof limit.why, "%.1f GiB of memory are available, and a reference may need %d GiB",
		 (double)facts->memory / (double)((int64_t)1 << 30), (int)(each >> 30));
	return limit;
}

static struct limit limit_of_use(const struct job_facts *facts)
{
	const struct limit urgent = {MOST_URGENT, "more jobs would slow down the definition that a user waits for"},
			   cpu = {MOST_CPU, "each gets several cores"},
			   gpu = {MOST_GPU, "more jobs would wait for the driver, which creates one CUDA context at a time"},
			   kept = {MOST_GPU_KEPT, "more jobs would wait for the GPU"};

	return facts->urgent ? urgent : !facts->gpu ? cpu : facts->kept ? kept : gpu;
}

int job_count(const struct job_facts *facts, char why[JOB_COUNT_WHY])
{
	const struct limit limits[] = {limit_of_cores(facts), limit_of_memory(facts), limit_of_use(facts)};
	const struct limit *least = &limits[0];

	for (size_t i = 1; i < sizeof limits / sizeof limits[0]; i++)
		if (limits[i].most < least->most)
			least = &limits[i];
	if (why != NULL)
		snprintf(why, JOB_COUNT_WHY, "%s", least->why);
	return least->most < 1 ? 1 : least->most;
}
