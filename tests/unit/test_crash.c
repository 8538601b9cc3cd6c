/* test_crash - the store survives a fault at any call that changes a file. The process is killed before, during or
 * after the call, or the call fails because the disk is full or broken. After each fault no stored verdict is lost,
 * every verdict in the store is correct, and the store works.
 *
 * This file replaces the functions of the C library that change files, and counts their calls. LMDB calls the replaced
 * functions, too. The replaced fsync does nothing, because the kernel keeps what a killed process has written.
 * Therefore a thousand crashes take only seconds. A torn write ends between two sectors, as on a disk. */
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
#include <zstd.h>

#include "base/file.h"
#include "cache/export_import.h"
#include "tests/unit/numbered_verdicts.h"

enum { SECTOR = 512, BEFORE = 20, PUTS = 70, MERGED = 80, BULK = 1000, BULK_COUNT = 80, FRESH = 5000, DAY = 86400, EXPORT_TEXT = 64 << 20 };

enum fault { FAULT_NONE, FAULT_BEFORE, FAULT_TORN, FAULT_AFTER, FAULT_EIO, FAULT_ENOSPC, FAULT_COUNT };
static const char *const fault_names[FAULT_COUNT] = {"none", "killed before", "torn", "killed after", "EIO", "ENOSPC"};

/* The memory that the parent and the child process share. */
struct stage {
	volatile bool counting;
	volatile long calls, at; /* the fault occurs when `calls` reaches `at` */
	volatile enum fault fault;
	volatile char acked[BULK + BULK_COUNT];
	bool compacted;
	char last[64]; /* the name of the call at which the fault occurred */
};
static struct stage *stage;

/* --- replacements of the C library's functions -------------------------------------------------------------------- */

#define SHOWN __attribute__((visibility("default")))

/* Counts a call. Returns the fault that occurs at this call. */
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

/* Returns -1 and sets errno if the fault makes the call fail. Returns 0 otherwise. */
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

/* Returns the number of bytes that a write stores; a torn write stores only a part. */
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

/* --- the work during which faults strike -------------------------------------------------------------------------- */

struct actor {
	char root[128];
	struct store *store;
	struct arena arena;
	struct err note, err;
};

/* Builds verdict `number`, whose text depends only on the number. Some texts are larger than a page, and some are
 * larger than many pages. */
static struct store_put put_of(struct actor *a, int number)
{
	bool old = number >= BULK && number < BULK + BULK_COUNT;

	return numbered_verdict(&a->arena, number, old ? 1000 : 200 * DAY + number, old ? 30000 : number % 7 == 3 ? 9000 : 300);
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

/* Returns 1 if the verdict is stored and correct, 0 if it is not stored, -1 if it is wrong. */
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
	struct verdict_line records[64] = {0};
	struct case_name name[64];
	struct store_merged merged;

	for (int i = from; i < to; i++) {
		struct store_put one = put_of(a, i);

		name[i - from] = (struct case_name){one.definition, one.case_id};
		records[i - from] = (struct verdict_line){.subject = one.subject,
						      .witness = one.witness,
						      .text = one.text,
						      .made = verdict_time(one.text, one.length),
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

/* Changes the store in every possible way, one after the other. As soon as the store reports that a verdict is stored,
 * this function records the verdict in `acked`. */
static void act(struct actor *a)
{
	struct file_entry entry = {.path = "definitions/norm/n.json"};
	struct buf stored = {0};
	struct store_needs needs = {.stored = &stored, .days = 30};
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
			stage->acked[i] = 0; /* gc may delete these verdicts from now on */
		if (store_verdict_keys(a->store, &stored, &a->err) == 0 &&
		    store_gc(a->store, &needs, false, &swept, &a->err) == 0 && swept.bytes_after < swept.bytes_before)
			stage->compacted = true;
		buf_free(&stored);
		for (int i = 0; i < MERGED; i++) /* gc may delete these verdicts */
			if (look(a, i) < 0 || (stage->acked[i] && look(a, i) != 1))
				_exit(3);
		struct export_counts out;

		snprintf(file, sizeof file, "%s/archive", a->root);
		export_verdicts(a->store, file, NULL, &out, &a->err);
		store_close(a->store);
	}
	stage->counting = false;
}

/* --- checks after the fault --------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void remove_root(const char *root)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Calls `work` in a new process, as each run of the program is a new process. */
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

/* Checks that an exported file exists as a whole or not at all. */
static bool export_is_right(const struct actor *a)
{
	char path[160], *text = malloc(EXPORT_TEXT);
	struct buf file = {0};
	int format, most, count = -1;

	snprintf(path, sizeof path, "%s/archive", a->root);
	bool there = file_read(AT_FDCWD, path, EXPORT_FILE_MAX, &file, NULL, NULL) == FILE_OK;
	size_t length = there ? ZSTD_decompress(text, EXPORT_TEXT - 1, file.data, file.length) : 0;

	if (there && !ZSTD_isError(length)) {
		text[length] = '\0';
		char *end = strstr(text, "\nend\t");

		if (sscanf(text, "reftest verdicts\t%d\t%d\n", &format, &most) != 2 || end == NULL ||
		    sscanf(end, "\nend\t%d\n", &count) != 1 || end[strlen(end) - 1] != '\n' || count > most)
			count = -1;
	}
	buf_free(&file);
	free(text);
	return !there || count >= BEFORE;
}

/* Exits with 0, or prints what is wrong and exits with another status. */
static void look_after(struct actor *a)
{
	if (store_damage(a->root, &a->err) != 0)
		_exit(10);
	if (!export_is_right(a))
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
