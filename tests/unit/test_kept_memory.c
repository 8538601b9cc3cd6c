/* test_kept_memory - the judge keeps freed memory for the next case. If no message arrives for a while, the judge
 * returns the memory to the system. */
#include "workers/judge/kept_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/seeds.h"

enum { MIB = 1 << 20, BLOCK_MIB = 64 };

/* Returns the part of this process's memory that is in RAM, in MiB. */
static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

/* Allocates and frees a large block. A small block lies behind the large block, so that the large block is not at the
 * end of the heap. */
static void use_a_block(void)
{
	char *volatile block = malloc((size_t)BLOCK_MIB * MIB), *volatile after = malloc(1000);

	assert_non_null(block);
	memset(block, 1, (size_t)BLOCK_MIB * MIB);
	free(block);
	free(after);
}

static void freed_memory_is_kept_until_nothing_happens(void **state)
{
	int ends[2];
	long before = resident();

	(void)state;
	assert_int_equal(pipe(ends), 0);
	use_a_block();
	assert_true(SANITIZED || resident() < before + BLOCK_MIB / 2); /* by default, malloc returns the memory to the
								        * system */
	kept_memory_begin();
	use_a_block();
	assert_true(SANITIZED || resident() >= before + BLOCK_MIB);
	assert_int_equal(write(ends[1], "x", 1), 1);
	kept_memory_wait(ends[0], 60000); /* returns at once, because there is a message */
	assert_true(SANITIZED || resident() >= before + BLOCK_MIB);
	assert_int_equal(read(ends[0], (char[1]){0}, 1), 1);
	kept_memory_wait(ends[0], 1);
	assert_true(SANITIZED || resident() < before + BLOCK_MIB / 2);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(freed_memory_is_kept_until_nothing_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
