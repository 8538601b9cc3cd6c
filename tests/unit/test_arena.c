/* test_arena - the allocator: memory is zeroed and aligned, allocations do not overlap, strings are copied, and a size
 * that overflows ends the process. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void memory_is_zeroed_aligned_and_apart(void **state)
{
	struct arena arena = {0};
	unsigned char *blocks[300];

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		size_t size = i * i; /* the last sizes are larger than a block of the arena */

		blocks[i] = arena_alloc(&arena, size);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		for (size_t k = 0; k < size; k++)
			assert_int_equal(blocks[i][k], 0);
		memset(blocks[i], (int)(i % 251), size);
	}
	for (size_t i = 0; i < 300; i++)
		for (size_t k = 0; k < i * i; k++)
			assert_int_equal(blocks[i][k], i % 251);
	assert_ptr_not_equal(arena_alloc(&arena, 0), arena_alloc(&arena, 0));
	arena_free(&arena);
	assert_null(arena.block);
	assert_non_null(arena_alloc(&arena, 1)); /* a freed arena can be used again */
	arena_free(&arena);
	arena_free(&arena);
}

static void strings_are_copies_with_a_nul(void **state)
{
	struct arena arena = {0};
	char text[] = "text";
	char *copy = arena_string(&arena, text), *part = arena_copy(&arena, "a\0bc", 3);

	(void)state;
	text[0] = 'n';
	assert_string_equal(copy, "text");
	assert_memory_equal(part, "a\0b", 4);
	assert_string_equal(arena_copy(&arena, NULL, 0), "");
	assert_string_equal(arena_printf(&arena, "%s-%d", "x", 7), "x-7");
	assert_string_equal(arena_printf(&arena, "%s", ""), "");
	assert_int_equal(strlen(arena_printf(&arena, "%0100000d", 1)), 100000);
	arena_free(&arena);
}

/* Returns the exit status of a child process that allocates `count` times `size` bytes. */
static int status_of(size_t count, size_t size)
{
	struct arena arena = {0};
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		close(STDERR_FILENO);
		arena_array(&arena, count, size);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void a_size_that_overflows_ends_like_no_memory(void **state)
{
	(void)state;
	assert_int_equal(status_of(SIZE_MAX / 2, 3), 4);
	assert_int_equal(status_of(SIZE_MAX, 1), 4);
	assert_int_equal(status_of(SIZE_MAX - 8, 1), 4);
	assert_int_equal(status_of(SIZE_MAX, 0), 0);
	assert_int_equal(status_of(16, 16), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
	    cmocka_unit_test(strings_are_copies_with_a_nul),
	    cmocka_unit_test(a_size_that_overflows_ends_like_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
