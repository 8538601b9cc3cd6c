/* Crashes: at each call that changes a file, a process is killed before it, in the middle of it, after it, or told that
 * the disk is full or broken; after each of these what was kept is there, what is there is right, and the store works.
 *
 * The calls are counted here, in the place of the C library's, for LMDB's too. What is told to be on the disk is not
 * taken to the disk (a killed process loses none of the kernel's memory), so that a thousand deaths take seconds. A
 * write is torn where a disk tears it, between sectors. */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "cache/carry.h"
#include "tests/unit/foretold.h"

enum { SECTOR = 512, BEFORE = 20, PUTS = 70, MERGED = 80, BULK = 1000, BULK_COUNT = 80, FRESH = 5000, DAY = 86400 };

enum fault { FAULT_NONE, FAULT_BEFORE, FAULT_TORN, FAULT_AFTER, FAULT_EIO, FAULT_ENOSPC, FAULT_COUNT };
static const char *const fault_names[FAULT_COUNT] = {"none", "killed before", "torn", "killed after", "EIO", "ENOSPC"};

/* Shared with the child. */
struct stage {
	volatile bool counting;
	volatile long calls, at; /* the fault comes with call number `at` */
	volatile enum fault fault;
	volatile char acked[BULK + BULK_COUNT];
	bool compacted;
	char last[64]; /* the call that the fault came with */
};
static struct stage *stage;

/* --- In the place of the C library's -------------------------------------------------------------------------------
 */

#define SHOWN __attribute__((visibility("default")))

/* Counts a call. What is to become of it. */
static enum fault next_fault(const char *name)
{
	if (stage == NULL || !stage->counting)
		return FAULT_NONE;
	stage->calls = stage->calls + 1;
	if (stage->calls < stage->at || (stage->calls > stage->at && stage->fault != FAULT_ENOSPC))
		return FAULT_NONE;
	if (stage->calls == stage->at)
		snprintf(stage->last, sizeof stage->last, "%s", name);
	if (stage->fault == FAULT_BEFORE)
		raise(SIGKILL);
	return stage->fault;
}

/* The fault as an answer: -1 and errno, or 0: go on. */
static int refused(enum fault fault)
{
	if (fault != FAULT_EIO && fault != FAULT_ENOSPC)
		return 0;
	errno = fault == FAULT_EIO ? EIO : ENOSPC;
	return -1;
}

static long done(enum fault fault, long answer)
{
	if (fault == FAULT_AFTER || fault == FAULT_TORN)
		raise(SIGKILL);
	return answer;
}

/* How much of a write that is torn gets to the disk. */
static size_t torn(enum fault fault, size_t length)
{
	return fault == FAULT_TORN && length > SECTOR ? length / SECTOR / 2 * SECTOR + SECTOR : length;
}

SHOWN ssize_t write(int fd, const void *bytes, size_t length)
{
	enum fault fault = fd > 2 ? next_fault("write") : FAULT_NONE;

	return refused(fault) ? -1 : done(fault, syscall(SYS_write, fd, bytes, torn(fault, length)));
}

SHOWN ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
	enum fault fault = next_fault("pwrite");

	return refused(fault) ? -1 : done(fault, syscall(SYS_pwrite64, fd, bytes, torn(fault, length), at));
}

SHOWN ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at)
{
	return pwrite(fd, bytes, length, at);
}

static ssize_t write_vector(int fd, const struct iovec *vector, int count, off_t at)
{
	enum fault fault = next_fault("pwritev");

	if (refused(fault))
		return -1;
	if (fault == FAULT_TORN)
		return done(fault, syscall(SYS_pwrite64, fd, vector[0].iov_base, torn(fault, vector[0].iov_len), at));
	return done(fault, syscall(SYS_pwritev, fd, vector, count, at, 0));
}

SHOWN ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
	return write_vector(fd, vector, count, at);
}

SHOWN ssize_t writev(int fd, const struct iovec *vector, int count)
{
	enum fault fault = next_fault("writev");

	if (refused(fault))
		return -1;
	if (fault == FAULT_TORN)
		return done(fault, syscall(SYS_write, fd, vector[0].iov_base, torn(fault, vector[0].iov_len)));
	return done(fault, syscall(SYS_writev, fd, vector, count));
}

SHOWN int fsync(int fd)
{
	enum fault fault = next_fault("fsync");

	(void)fd;
	return refused(fault) ? -1 : (int)done(fault, 0);
}

SHOWN int fdatasync(int fd)
{
	enum fault fault = next_fault("fdatasync");

	(void)fd;
	return refused(fault) ? -1 : (int)done(fault, 0);
}

SHOWN int ftruncate(int fd, off_t length)
{
	enum fault fault = next_fault("ftruncate");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_ftruncate, fd, length));
}

SHOWN int fallocate(int fd, int mode, off_t at, off_t length)
{
	enum fault fault = next_fault("fallocate");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_fallocate, fd, mode, at, length));
}

SHOWN int rename(const char *from, const char *to)
{
	enum fault fault = next_fault("rename");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

SHOWN int renameat2(int one, const char *from, int two, const char *to, unsigned flags)
{
	enum fault fault = next_fault("renameat2");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_renameat2, one, from, two, to, flags));
}

SHOWN int unlink(const char *path)
{
	enum fault fault = next_fault("unlink");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_unlink, path));
}

SHOWN int rmdir(const char *path)
{
	enum fault fault = next_fault("rmdir");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_rmdir, path));
}

SHOWN int mkdir(const char *path, mode_t mode)
{
	enum fault fault = next_fault("mkdir");

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_mkdir, path, mode));
}

/* --- What is done --------------------------------------------------------------------------------------------------
 */

struct actor {
	char root[128];
	struct store *store;
	struct arena arena;
	struct err note, err;
};

/* What verdict `number` says, the same whenever it is asked; some are larger than a page, some than many. */
static struct store_put put_of(struct actor *a, int number)
{
	bool old = number >= BULK && number < BULK + BULK_COUNT;

	return foretold(&a->arena, number, old ? 1000 : 200 * DAY + number, old ? 30000 : number % 7 == 3 ? 9000 : 300);
}

static bool open_it(struct actor *a)
{
	struct store_options options = {0};

	a->store = store_open(a->root, &options, &a->note, &a->err);
	return a->store != NULL;
}

static bool put(struct actor *a, int from, int count)
{
	struct store_put puts[64] = {{.keep_verdict = false}};

	for (int i = 0; i < count; i++)
		puts[i] = put_of(a, from + i);
	if (store_put(a->store, puts, count, &a->err) != 0)
		return false;
	for (int i = 0; i < count && from + i < BULK + BULK_COUNT; i++)
		stage->acked[from + i] = 1;
	return true;
}

/* 1: there and right, 0: not there, -1: wrong. */
static int look(struct actor *a, int number)
{
	struct store_put expected = put_of(a, number);
	const char *text;
	size_t length;

	if (store_verdict(a->store, &expected.subject, &expected.witness, &a->arena, &text, &length, NULL) != CACHE_HIT)
		return 0;
	return length == expected.length && memcmp(text, expected.text, length) == 0 ? 1 : -1;
}

static void merge(struct actor *a, int from, int to)
{
	struct portable records[64] = {0};
	struct portable_name name[64];
	struct store_merged merged;

	for (int i = from; i < to; i++) {
		struct store_put one = put_of(a, i);

		name[i - from] = (struct portable_name){one.definition, one.case_id};
		records[i - from] = (struct portable){.subject = one.subject,
						      .witness = one.witness,
						      .text = one.text,
						      .made = portable_made(one.text, one.length),
						      .length = one.length,
						      .fields = one.fields,
						      .fields_length = one.fields_length,
						      .names = &name[i - from],
						      .name_count = 1};
	}
	if (store_merge(a->store, records, to - from, &merged, &a->err) == 0)
		for (int i = from; i < to; i++)
			stage->acked[i] = 1;
}

/* Everything that changes a store, one after the other; what was kept is noted as soon as it was told. */
static void act(struct actor *a)
{
	struct file_entry entry = {.path = "definitions/norm/n.json"};
	struct store_needs needs = {.days = 30};
	struct store_swept swept;
	char file[160];

	stage->counting = true;
	if (open_it(a)) {
		for (int i = BEFORE; i < PUTS; i += 2)
			put(a, i, 2);
		store_put_files(a->store, &entry, 1, NULL, 0, &a->err);
		store_put_fact(a->store, "torch", "2.13", &a->err);
		merge(a, PUTS, MERGED);
		for (int i = BULK; i < BULK + BULK_COUNT; i += 40)
			put(a, i, 40);
		for (int i = BULK; i < BULK + BULK_COUNT; i++)
			stage->acked[i] = 0; /* from here on nobody needs them */
		if (store_sweep(a->store, &needs, false, &swept, &a->err) == 0 &&
		    swept.bytes_after < swept.bytes_before)
			stage->compacted = true;
		for (int i = 0; i < MERGED; i++) /* in a process that met a fault and went on, too */
			if (look(a, i) < 0 || (stage->acked[i] && look(a, i) != 1))
				_exit(3);
		struct carried_out out;

		snprintf(file, sizeof file, "%s/archive", a->root);
		carry_out(a->store, file, NULL, &out, &a->err);
		store_close(a->store);
	}
	stage->counting = false;
}

/* --- And what must come of it --------------------------------------------------------------------------------------
 */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void remove_root(const char *root)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* In a process of its own, as the next run is. */
static int in_child(struct actor *a, void (*work)(struct actor *a))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		work(a);
		arena_free(&a->arena);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status;
}

static void begin(struct actor *a)
{
	if (!open_it(a) || !put(a, 0, BEFORE))
		_exit(1);
	store_close(a->store);
}

static void refused_record(const char *sentence, int64_t count, void *context)
{
	(void)sentence, (void)count, (void)context;
}

/* An exported file is there as a whole or not at all. */
static bool archive_is_right(const struct actor *a)
{
	char path[160];
	struct buf file = {0};
	struct archive_reader reader;
	struct arena arena = {0};
	const struct portable *records;
	int count;
	bool whole = true;

	snprintf(path, sizeof path, "%s/archive", a->root);
	if (file_read(AT_FDCWD, path, ARCHIVE_MAX, &file, NULL, NULL) == FILE_OK) {
		whole = archive_open(&reader, file.data, file.length, refused_record, NULL, NULL) == 0;
		while (whole && archive_next(&reader, &arena, &records, &count) > 0)
			;
		whole = whole && reader.whole && reader.records >= BEFORE;
		archive_close(&reader);
	}
	buf_free(&file);
	arena_free(&arena);
	return whole;
}

/* Ends with 0, or with what is not as it should be. */
static void look_after(struct actor *a)
{
	if (store_damage(a->root, &a->err) != 0)
		_exit(10);
	if (!archive_is_right(a))
		_exit(16);
	if (!open_it(a) || !store_writable(a->store))
		_exit(11);
	if (a->note.text[0] != '\0') {
		fprintf(stderr, "# %s\n", a->note.text);
		_exit(12);
	}
	for (int i = 0; i < MERGED; i++) {
		int found = look(a, i);

		if (found < 0 || (found == 0 && (i < BEFORE || stage->acked[i])))
			_exit(found < 0 ? 13 : 14);
	}
	for (int i = BULK; i < BULK + BULK_COUNT; i++)
		if (look(a, i) < 0)
			_exit(13);
	if (!put(a, FRESH, 1) || look(a, FRESH) != 1)
		_exit(15);
	store_close(a->store);
}

static void run_one(enum fault fault, long at)
{
	struct actor actor = {.root = "/tmp/reftest-crash-XXXXXX"};

	memset((void *)stage, 0, sizeof *stage);
	assert_non_null(mkdtemp(actor.root));
	assert_int_equal(in_child(&actor, begin), 0);
	stage->fault = fault;
	stage->at = at;
	int status = in_child(&actor, act);

	stage->counting = false;
	stage->fault = FAULT_NONE;
	bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if (!died && status != 0)
		fail_msg("%s at call %ld (%s): the process itself ended with %x", fault_names[fault], at, stage->last,
			 status);
	status = in_child(&actor, look_after);
	if (status != 0)
		fail_msg("%s at call %ld (%s): afterwards %d", fault_names[fault], at, stage->last,
			 WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	remove_root(actor.root);
}

static void at_every_point(void **state)
{
	long calls, runs = 0;

	(void)state;
	run_one(FAULT_NONE, 0);
	calls = stage->calls;
	assert_true(calls > 100 && stage->compacted);
	for (enum fault fault = FAULT_BEFORE; fault < FAULT_COUNT; fault++)
		for (long at = 1; at <= calls; at++, runs++)
			run_one(fault, at);
	print_message("%ld calls, %ld faults\n", calls, runs);
	assert_true(runs >= 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(at_every_point)};

	stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return stage == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
