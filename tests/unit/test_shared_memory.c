/* test_shared_memory - when the memory of an earlier runner is used again, and what the next runner finds in this
 * memory. */
#include "workers/protocol/shared_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20, FIRST = 11, SECOND = 12 };

static int set_up(void **state)
{
	static struct shared_memory shared;
	struct err err = {""};
	struct device *device = device_open_cpu(&err);

	shared_memory_open(&shared, device, false);
	*state = &shared;
	return device == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
	struct shared_memory *shared = *state;

	shared_memory_renew(shared);
	shared_memory_forget(shared);
	shared->device->calls->close(shared->device);
	return 0;
}

/* Takes an arena of `bytes` bytes. Returns the inode of its memfd: two arenas with the same inode are the same
 * memory. */
static ino_t take(struct shared_memory *shared, int64_t bytes)
{
	struct err err = {""};
	struct stat stat;

	assert_int_equal(shared_memory_reserve(shared, bytes, 0, &err), 1);
	assert_int_equal(fstat(shared_memory_fd(shared), &stat), 0);
	return stat.st_ino;
}

/* Writes to all bytes of the memfd through its descriptor, which a runner can also do. */
static void write_everywhere(struct shared_memory *shared)
{
	int fd = shared_memory_fd(shared);
	struct stat stat;

	assert_int_equal(fstat(fd, &stat), 0);
	char *memory = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(memory != MAP_FAILED);
	memset(memory, 0x5a, (size_t)stat.st_size);
	munmap(memory, (size_t)stat.st_size);
}

static void assert_all_zero(struct shared_memory *shared)
{
	int fd = shared_memory_fd(shared);
	static const char zeros[MIB];
	static char bytes[MIB];
	struct stat stat;
	struct err err = {""};

	assert_int_equal(fstat(fd, &stat), 0);
	for (int64_t at = 0; at < stat.st_size; at += MIB) {
		assert_int_equal(pread(fd, bytes, MIB, at), MIB);
		assert_memory_equal(bytes, zeros, MIB);
	}
	assert_int_equal(shared_memory_first_other(shared, 0, 0, shared_memory_room(shared), &err), -1);
}

static void memory_is_used_again_only_after_its_runner_is_gone(void **state)
{
	struct shared_memory *shared = *state;
	ino_t first = take(shared, 6 * MIB);

	write_everywhere(shared);
	shared_memory_retire(shared, FIRST);
	ino_t second = take(shared, 6 * MIB);

	assert_int_not_equal(second, first);
	shared_memory_retire(shared, SECOND);
	shared_memory_release(shared, SECOND);
	assert_int_equal(take(shared, 6 * MIB), second);
	shared_memory_release(shared, FIRST);
	shared_memory_retire(shared, SECOND);
	assert_int_equal(take(shared, 6 * MIB), first);
	shared_memory_renew(shared);
	shared_memory_forget(shared);
}

/* The first runner writes to the whole memfd, even to bytes that its cases do not need. The next runners need less
 * memory. */
static void the_next_runner_finds_zeros_and_no_larger_arena(void **state)
{
	struct shared_memory *shared = *state;
	struct err err = {""};
	const int64_t needs[] = {7 * MIB, 3 * MIB, 8 * MIB};
	ino_t first = 0;
	int id = shared->id;

	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
		assert_int_equal(shared_memory_reserve(shared, needs[i], i == 0 ? 10 * MIB : 0, &err), 1);
		struct stat stat;

		assert_int_equal(fstat(shared_memory_fd(shared), &stat), 0);
		first = i == 0 ? stat.st_ino : first;
		assert_int_equal(stat.st_ino, first);
		assert_int_equal(stat.st_size, 10 * MIB);
		assert_int_equal(shared_memory_room(shared), i == 0 ? 10 * MIB : (needs[i] + MIB) / (2 * MIB) * (2 * MIB));
		assert_int_equal(shared->id, id + (int)i + 1); /* the id changes, so the memfd is sent to the runner */
		assert_all_zero(shared);
		write_everywhere(shared);
		shared_memory_retire(shared, FIRST + (int)i);
		shared_memory_release(shared, FIRST + (int)i);
	}
	shared_memory_forget(shared);
}

static void some_memory_is_not_kept(void **state)
{
	struct shared_memory *shared = *state;
	struct shared_memory staged;
	ino_t first = take(shared, 4 * MIB), other;

	shared_memory_retire(shared, 0); /* 0 is for runners without a number, whose memory is not kept */
	assert_null(shared->retired);
	first = take(shared, 40 * MIB);
	shared_memory_retire(shared, FIRST);
	shared_memory_release(shared, FIRST);
	other = take(shared, 4 * MIB); /* the old memory is not used, because it would take longer to clear its 40 MiB
				        * than to allocate 4 MiB of new pages */
	assert_int_not_equal(other, first);
	shared_memory_retire(shared, SECOND);
	other = take(shared, 300 * MIB); /* this memory is too large to be kept */
	shared_memory_retire(shared, SECOND);
	assert_null(shared->retired);
	shared_memory_open(&staged, shared->device, true);
	take(&staged, 4 * MIB);
	shared_memory_retire(&staged, FIRST);
	assert_null(staged.retired);
	(void)other;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(memory_is_used_again_only_after_its_runner_is_gone),
	    cmocka_unit_test(the_next_runner_finds_zeros_and_no_larger_arena),
	    cmocka_unit_test(some_memory_is_not_kept),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
