/* test_job_count - checks how many references run in parallel on machines with few or many cores, little memory, or a
 * GPU, and that the reported reason names the resource that limits the number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "engine/job_count.h"

#define GIB ((int64_t)1 << 30)

struct row {
	struct job_facts facts;
	int jobs;
	const char *why; /* a part of the expected reason */
};

static void expect(const struct row *row)
{
	char why[JOB_COUNT_WHY];

	if (job_count(&row->facts, why) != row->jobs || strstr(why, row->why) == NULL)
		fail_msg("expected %d (%s), got %d (%s)", row->jobs, row->why, job_count(&row->facts, why), why);
	assert_int_equal(job_count(&row->facts, NULL), row->jobs);
}

static void the_scarcest_resource_decides(void **state)
{
	static const struct row rows[] = {
	    {{.cores = 1, .memory = 64 * GIB}, 1, "each of 1 cores"},
	    {{.cores = 2, .memory = 64 * GIB}, 2, "each of 2 cores"},
	    {{.cores = 64, .memory = 64 * GIB}, 8, "several cores"},
	    {{.cores = 8, .memory = 3 * GIB + 5}, 3, "3.0 GiB of memory"},
	    {{.cores = 8, .memory = GIB / 2}, 1, "0.5 GiB of memory"},
	    {{.cores = 8, .memory = 0}, 8, "each of 8 cores"},
	    {{.cores = 4, .memory = 64 * GIB, .urgent = true}, 2, "two of 4 cores"},
	    {{.cores = 1, .memory = 64 * GIB, .urgent = true}, 1, "two of 1 cores"},
	    {{.cores = 64, .memory = 64 * GIB, .urgent = true}, 4, "a user waits for"},
	    {{.cores = 4, .memory = 64 * GIB, .gpu = true}, 2, "two of 4 cores"},
	    {{.cores = 16, .memory = 64 * GIB, .gpu = true}, 4, "one CUDA context"},
	    {{.cores = 16, .memory = 6 * GIB, .gpu = true}, 3, "6.0 GiB of memory"},
	    {{.cores = 32, .memory = 64 * GIB, .gpu = true, .kept = true}, 8, "wait for the GPU"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		expect(&rows[i]);
}

static void this_machine_runs_something(void **state)
{
	struct job_facts facts = job_facts_here(false);

	(void)state;
	assert_true(facts.cores >= 1 && facts.memory > 0 && !facts.gpu);
	assert_true(job_count(&facts, NULL) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_scarcest_resource_decides),
	    cmocka_unit_test(this_machine_runs_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
