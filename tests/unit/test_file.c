/* test_file - reading, writing and mapping of files: sizes are limited, a write replaces the whole file or changes
 * nothing, and no path leads out of the root. */
#include "base/file.c"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/unit/folder.h"

static void check_content(const char *path, const char *text)
{
	struct buf buf = {0};

	assert_int_equal(file_read(AT_FDCWD, path, 1000, &buf, NULL, NULL), FILE_OK);
	assert_string_equal(buf.data, text);
	buf_free(&buf);
}

static void a_file_is_read_whole(void **state)
{
	struct buf buf = {0};
	struct stat st;
	struct err err = {""};

	(void)state;
	buf_text(&buf, "what was there before");
	put("a", "hello");
	assert_int_equal(file_read(AT_FDCWD, "a", 5, &buf, &st, &err), FILE_OK);
	assert_int_equal(buf.length, 5);
	assert_string_equal(buf.data, "hello");
	assert_int_equal(st.st_size, 5);
	put("a", "");
	assert_int_equal(file_read(AT_FDCWD, "a", 5, &buf, &st, &err), FILE_OK);
	assert_int_equal(buf.length, 0);
	assert_string_equal(buf.data, "");
	buf_free(&buf);
}

static void a_file_is_read_below_a_descriptor(void **state)
{
	struct buf buf = {0};

	(void)state;
	assert_int_equal(mkdir("d", 0777), 0);
	put("d/a", "inside");
	int dir = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(file_read(dir, "a", 100, &buf, NULL, NULL), FILE_OK);
	assert_string_equal(buf.data, "inside");
	close(dir);
	buf_free(&buf);
}

static void what_is_not_there_is_absent_and_no_error(void **state)
{
	struct buf buf = {0};
	struct err err = {""};

	(void)state;
	put("a", "x");
	assert_int_equal(file_read(AT_FDCWD, "none", 5, &buf, NULL, &err), FILE_ABSENT);
	assert_int_equal(file_read(AT_FDCWD, "a/none", 5, &buf, NULL, &err), FILE_ABSENT);
	assert_string_equal(err.text, "");
	buf_free(&buf);
}

static void a_file_beyond_the_limit_is_not_read(void **state)
{
	struct buf buf = {0};
	struct err err = {""};

	(void)state;
	put("a", "123456");
	assert_int_equal(file_read(AT_FDCWD, "a", 5, &buf, NULL, &err), FILE_ERROR);
	assert_string_equal(err.text, "a: the file has 6 bytes, more than the limit of 5");
	assert_int_equal(truncate("a", 1 << 30), 0);
	assert_int_equal(file_read(AT_FDCWD, "a", 16 << 20, &buf, NULL, &err), FILE_ERROR);
	assert_string_equal(err.text, "a: the file has 1073741824 bytes, more than the limit of 16777216");
	assert_int_equal(buf.length, 0);
	assert_true(buf.room < 4096); /* the read fails before the buffer allocates memory for the gigabyte */
	buf_free(&buf);
}

/* For a file in /proc, stat reports 0 bytes. Reading the file gives more bytes, as if the file grew at the same
 * time. */
static void a_file_that_grows_while_it_is_read_is_still_bounded(void **state)
{
	struct buf buf = {0};
	struct err err = {""};

	(void)state;
	assert_int_equal(file_read(AT_FDCWD, "/proc/self/status", 1 << 20, &buf, NULL, &err), FILE_OK);
	assert_true(buf.length > 100);
	assert_int_equal(file_read(AT_FDCWD, "/proc/self/status", 100, &buf, NULL, &err), FILE_ERROR);
	assert_non_null(strstr(err.text, "more than the limit of 100"));
	assert_int_equal(buf.length, 0); /* a failed read leaves no bytes in the buffer */
	buf_free(&buf);
}

static void only_regular_files_are_read_and_nothing_blocks(void **state)
{
	struct buf buf = {0};
	struct err err = {""};

	(void)state;
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_int_equal(file_read(AT_FDCWD, "pipe", 5, &buf, NULL, &err), FILE_ERROR);
	assert_string_equal(err.text, "pipe: expected a file, found a pipe");
	assert_int_equal(file_read(AT_FDCWD, "/dev/zero", 5, &buf, NULL, &err), FILE_ERROR);
	assert_string_equal(err.text, "/dev/zero: expected a file, found a device");
	assert_int_equal(file_read(AT_FDCWD, ".", 5, &buf, NULL, &err), FILE_ERROR);
	assert_string_equal(err.text, ".: expected a file, found a folder");
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(file_read(AT_FDCWD, "loop", 5, &buf, NULL, &err), FILE_ERROR);
	assert_string_equal(err.text, "loop: cannot open the file: Too many levels of symbolic links");
	buf_free(&buf);
}

static void a_file_is_replaced_only_if_its_bytes_differ(void **state)
{
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct stat st;

	(void)state;
	assert_int_equal(file_replace("a", "one", 3, NULL), 1);
	check_content("a", "one");
	assert_int_equal(utimensat(AT_FDCWD, "a", old, 0), 0);
	assert_int_equal(file_replace("a", "one", 3, NULL), 0);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(file_replace("a", "two", 3, NULL), 1);
	check_content("a", "two");
	assert_int_equal(file_replace("a", "tw", 2, NULL), 1);
	check_content("a", "tw");
	assert_int_equal(file_replace("a", NULL, 0, NULL), 1);
	assert_int_equal(file_replace("a", NULL, 0, NULL), 0);
	check_content("a", "");
	assert_int_equal(file_replace_soon("a", "soon", 4, NULL), 1);
	assert_int_equal(file_replace_soon("a", "soon", 4, NULL), 0);
	check_content("a", "soon");
}

static void replacing_leaves_no_temporary_file(void **state)
{
	struct buf name = {0};

	(void)state;
	assert_int_equal(file_replace("a", "one", 3, NULL), 1);
	assert_int_equal(system("test \"$(ls -A)\" = a"), 0);
	for (int first = 0; first < 2; first++) {
		assert_int_equal(temporary_name("some/folder/x.py", first != 0, &name, NULL), 0);
		/* the temporary file lies in the same folder and is hidden */
		assert_memory_equal(name.data, "some/folder/.reftest-", 21);
	}
	buf_free(&name);
}

/* Starts a process that creates a temporary file, as for a write to "a". If `lives`, the process then stays alive,
 * otherwise it exits. */
static pid_t leave_temporary(bool lives)
{
	int pipe_fds[2];
	char byte;

	assert_int_equal(pipe(pipe_fds), 0);
	pid_t child = fork();

	if (child == 0) {
		struct buf name = {0};
		int fd = create_temporary("a", &name, NULL);

		if (fd < 0 || write(fd, "hal", 3) != 3 || write(pipe_fds[1], "", 1) != 1)
			_exit(1);
		if (lives)
			pause();
		raise(SIGKILL);
	}
	close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	close(pipe_fds[0]);
	if (!lives)
		waitpid(child, NULL, 0);
	return child;
}

static void what_a_dead_process_left_is_removed_by_the_next(void **state)
{
	(void)state;
	leave_temporary(false);
	assert_int_equal(system("test $(ls -A | wc -l) = 1"), 0);
	assert_int_equal(file_replace("a", "one", 3, NULL), 1);
	check_content("a", "one");
	assert_int_equal(system("test \"$(ls -A)\" = a"), 0);
}

static void what_a_process_is_at_work_on_is_left_to_it(void **state)
{
	struct stat before, after;
	struct buf name = {0};

	(void)state;
	pid_t child = leave_temporary(true);

	assert_int_equal(temporary_name("a", true, &name, NULL), 0);
	assert_int_equal(stat(name.data, &before), 0);
	assert_int_equal(file_replace("a", "one", 3, NULL), 1);
	check_content("a", "one");
	assert_int_equal(stat(name.data, &after), 0);
	assert_true(before.st_ino == after.st_ino && after.st_size == 3);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	buf_free(&name);
}

static void a_program_can_be_run_from_the_first(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(file_replace_program("a", "#!/bin/sh\n", 10, NULL), 1);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

static void parent_folders_are_made(void **state)
{
	struct err err = {""};
	char path[512];

	(void)state;
	assert_int_equal(file_replace("x/y//z/a", "deep", 4, NULL), 1);
	check_content("x/y/z/a", "deep");
	snprintf(path, sizeof path, "%s/abs/a", (char *)*state);
	assert_int_equal(file_replace(path, "deep", 4, NULL), 1);
	check_content("abs/a", "deep");
	assert_int_equal(file_replace("x/y/z/a/b", "no", 2, &err), -1);
	assert_string_equal(err.text, "x/y/z/a/b: cannot create a temporary file in the same folder: Not a directory");
}

static void a_replaced_file_keeps_its_permissions(void **state)
{
	struct stat st;

	(void)state;
	put("a", "old");
	assert_int_equal(chmod("a", 0640), 0);
	assert_int_equal(file_replace("a", "new", 3, NULL), 1);
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void what_cannot_be_replaced_stays_as_it_is(void **state)
{
	struct err err = {""};

	(void)state;
	assert_int_equal(mkdir("folder", 0777), 0);
	assert_int_equal(file_replace("folder", "x", 1, &err), -1);
	assert_string_equal(err.text, "folder: expected a file, found a folder");
	assert_int_equal(mkfifo("pipe", 0666), 0);
	assert_int_equal(file_replace("pipe", "x", 1, &err), -1);
	assert_string_equal(err.text, "pipe: expected a file, found a pipe");
	assert_int_equal(system("test \"$(ls -A | tr '\\n' ' ')\" = 'folder pipe '"), 0);
	assert_int_equal(file_replace("/proc/none", "x", 1, &err), -1);
	assert_memory_equal(err.text, "/proc/none: cannot create a temporary file in the same folder: ", 63);
	assert_int_equal(file_replace("/proc/none/deep/x", "x", 1, &err), -1);
	assert_memory_equal(err.text, "/proc/none: cannot create the folder: ", 38);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(file_replace("loop", "x", 1, &err), -1);
	assert_string_equal(err.text, "loop: cannot open the file: Too many levels of symbolic links");
}

/* A limit on the size of files simulates a full disk: the write fails half way. */
static void a_write_that_fails_leaves_the_old_file(void **state)
{
	const struct rlimit limit = {.rlim_cur = 100, .rlim_max = 100};
	static const char large[1000] = "new";
	int status;

	(void)state;
	put("a", "old");
	pid_t child = fork();

	if (child == 0) {
		struct err err = {""};

		signal(SIGXFSZ, SIG_IGN);
		int answer = setrlimit(RLIMIT_FSIZE, &limit) == 0 ? file_replace("a", large, sizeof large, &err) : 0;

		_exit(answer == -1 && strcmp(err.text, "a: cannot write the file: File too large") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_content("a", "old");
	assert_int_equal(system("test \"$(ls -A)\" = a"), 0);
}

/* Opens a root with a file, a link that stays inside, and links that lead outside. */
static int open_root(void)
{
	put("outside", "secret");
	assert_int_equal(mkdir("root", 0777), 0);
	assert_int_equal(mkdir("root/blob", 0777), 0);
	put("root/blob/a", "tensor");
	put("root/empty", "");
	assert_int_equal(symlink("blob", "root/inside"), 0);
	assert_int_equal(symlink("../outside", "root/leak"), 0);
	assert_int_equal(symlink("..", "root/up"), 0);
	assert_int_equal(symlink("/etc", "root/etc"), 0);
	assert_int_equal(symlink("loop", "root/loop"), 0);
	assert_int_equal(mkfifo("root/pipe", 0666), 0);
	return open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool on_tmpfs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* A process may map a file for writing. The first write through the shared mapping changes the times of the file, but a
 * second write does not. While such a mapping exists, equal times in the file's stat do not prove that the file is
 * unchanged. */
static void a_file_that_somebody_may_write_to_shows_no_changes(void **state)
{
	char path[] = "/tmp/reftest-test-mapped-XXXXXX";
	int fd = mkstemp(path);
	struct stat st, before, after;

	(void)state;
	assert_true(fd >= 0);
	if (on_tmpfs(path)) {
		unlink(path);
		close(fd);
		skip(); /* see the next test */
	}
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_false(file_shows_changes(AT_FDCWD, path, &st)); /* a process has the file open for writing */
	char *bytes = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(bytes != MAP_FAILED);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(close(fd), 0);
	bytes[0] = 1;
	assert_false(file_shows_changes(AT_FDCWD, path, &st)); /* the file is closed, but still mapped for writing */
	assert_int_equal(stat(path, &before), 0);
	usleep(50000);
	bytes[0] = 2;
	assert_int_equal(stat(path, &after), 0);
	if (memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim) != 0)
		print_message("on this filesystem each store through a mapping changes a time\n");
	assert_int_equal(munmap(bytes, 8192), 0);
	assert_true(file_shows_changes(AT_FDCWD, path, &st)); /* no process can write to the file any more */
	assert_int_equal(st.st_ino, before.st_ino);

	int reader = open(path, O_RDONLY);

	assert_true(file_shows_changes(AT_FDCWD, path, &st)); /* a process that has the file open only for reading makes
							       * no difference */
	close(reader);
	unlink(path);
	assert_false(file_shows_changes(AT_FDCWD, path, &st));
	assert_false(file_shows_changes(AT_FDCWD, "/tmp", &st));
}

/* On tmpfs, a process may map a file after it was read, read a page of it, and then write to this page. No time of the
 * file changes. Therefore a file on tmpfs shows no changes, even if no process has it open. */
static void a_file_on_tmpfs_shows_no_changes(void **state)
{
	char path[] = "/dev/shm/reftest-test-mapped-XXXXXX";
	int fd = on_tmpfs("/dev/shm") ? mkstemp(path) : -1;
	struct stat st, before, after;

	(void)state;
	if (fd < 0)
		skip(); /* this machine has no tmpfs at /dev/shm, or this user may not write there */
	assert_int_equal(ftruncate(fd, 8192), 0);
	close(fd);
	assert_false(file_shows_changes(AT_FDCWD, path, &st));

	assert_int_equal(stat(path, &before), 0);
	usleep(50000);
	fd = open(path, O_RDWR);
	char *bytes = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_true(bytes != MAP_FAILED);
	assert_int_equal(*(volatile char *)bytes, 0);
	bytes[0] = 1;
	assert_int_equal(munmap(bytes, 8192), 0);
	close(fd);
	assert_int_equal(stat(path, &after), 0);
	if (memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim) != 0)
		print_message("on this kernel a write through a mapping changes a time of a file on tmpfs\n");
	unlink(path);
}

static void a_file_beneath_a_root_is_mapped(void **state)
{
	struct mapping mapping;
	int root = open_root();
	static const char *const paths[] = {"blob/a", "./blob/a", "blob//a", "inside/a", "blob/./a"};

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		assert_int_equal(file_map_beneath(root, paths[i], &mapping, NULL), FILE_OK);
		assert_int_equal(mapping.length, 6);
		assert_memory_equal(mapping.data, "tensor", 6);
		file_unmap(&mapping);
	}
	assert_int_equal(file_map_beneath(root, "empty", &mapping, NULL), FILE_OK);
	assert_int_equal(mapping.length, 0);
	assert_null(mapping.data);
	file_unmap(&mapping);
	close(root);
}

static void nothing_outside_the_root_is_mapped(void **state)
{
	static const struct {
		const char *path, *sentence;
	} cases[] = {
	    {"", "expected the path of a file, found an empty string"},
	    {"/etc/passwd",
	     "/etc/passwd: the path leads out of the dataset's folder; move the file into that folder and use a path relative to it"},
	    {"../outside",
	     "../outside: the path leads out of the dataset's folder; move the file into that folder and use a path relative to it"},
	    {"blob/../../outside",
	     "blob/../../outside: the path leads out of the dataset's folder; move the file into that folder and use a path relative to it"},
	    {"blob/..", "blob/..: the path leads out of the dataset's folder; move the file into that folder and use a path relative to it"},
	    {"leak", "leak: a symbolic link in the path leads out of the dataset's folder; replace the link with the file itself"},
	    {"up/outside",
	     "up/outside: a symbolic link in the path leads out of the dataset's folder; replace the link with the file itself"},
	    {"etc/passwd",
	     "etc/passwd: a symbolic link in the path leads out of the dataset's folder; replace the link with the file itself"},
	    {"loop", "loop: a symbolic link in the path cannot be followed; replace the link with the file itself"},
	    {"blob", "blob: expected a file, found a folder"},
	    {"pipe", "pipe: expected a file, found a pipe"},
	};
	struct mapping mapping;
	struct err err;
	int root = open_root();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(file_map_beneath(root, cases[i].path, &mapping, &err), FILE_ERROR);
		assert_string_equal(err.text, cases[i].sentence);
		assert_null(mapping.data);
	}
	char name[300];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	assert_int_equal(file_map_beneath(root, name, &mapping, &err), FILE_ERROR);
	assert_non_null(strstr(err.text, ": cannot open the file: File name too long"));
	assert_int_equal(file_map_beneath(root, "blob/none", &mapping, NULL), FILE_ABSENT);
	assert_int_equal(file_map_beneath(root, "blob/a/none", &mapping, NULL), FILE_ABSENT);
	/* here ".." is only the beginning of an ordinary name */
	assert_int_equal(file_map_beneath(root, "..a", &mapping, NULL), FILE_ABSENT);
	close(root);
}

static void check_steps(int root, const char *path, int number)
{
	errno = 0;
	int fd = open_by_steps(root, path);

	assert_int_equal(fd < 0 ? errno : 0, number);
	if (fd >= 0)
		close(fd);
}

static void without_openat2_the_steps_hold_the_same_line(void **state)
{
	int root = open_root();
	char name[300];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	(void)state;
	check_steps(root, "blob/a", 0);
	check_steps(root, "./blob//a", 0);
	check_steps(root, "pipe", 0); /* opening the pipe does not block; stat_regular refuses it later */
	check_steps(root, "leak", ELOOP);
	check_steps(root, "up/outside", ELOOP);
	check_steps(root, "etc/passwd", ELOOP);
	/* no link is followed, not even one that stays below the root; the kernel's RESOLVE_BENEATH is less strict */
	check_steps(root, "inside/a", ELOOP);
	check_steps(root, "blob/none", ENOENT);
	check_steps(root, "blob/a/none", ENOTDIR);
	check_steps(root, "blob/a/", ENOTDIR);
	check_steps(root, name, ENAMETOOLONG);
	close(root);
}

static void no_descriptor_is_left_open(void **state)
{
	struct mapping mapping;
	struct buf buf = {0};
	int root = open_root(), before = open(".", O_RDONLY | O_CLOEXEC);

	(void)state;
	close(before);
	file_read(AT_FDCWD, "root/pipe", 5, &buf, NULL, NULL);
	file_read(AT_FDCWD, "root/blob/a", 1, &buf, NULL, NULL);
	file_replace("root/new", "x", 1, NULL);
	file_replace("root/new", "x", 1, NULL);
	file_replace("root/pipe", "x", 1, NULL);
	file_map_beneath(root, "pipe", &mapping, NULL);
	file_map_beneath(root, "blob/a", &mapping, NULL);
	file_unmap(&mapping);
	check_steps(root, "blob/none/x", ENOENT);
	int after = open(".", O_RDONLY | O_CLOEXEC);

	assert_int_equal(after, before);
	close(after);
	close(root);
	buf_free(&buf);
}

static void the_program_knows_its_folder(void **state)
{
	char path[PATH_MAX], expected[PATH_MAX], small[2];
	struct err err = {""};

	(void)state;
	assert_int_equal(file_program_directory(path, sizeof path, NULL), 0);
	ssize_t length = readlink("/proc/self/exe", expected, sizeof expected - 1);

	assert_true(length > 0);
	expected[length] = '\0';
	*strrchr(expected, '/') = '\0';
	assert_string_equal(path, expected);
	assert_int_equal(file_program_directory(small, sizeof small, &err), -1);
	assert_string_equal(err.text, "/proc/self/exe: the path of this program is longer than 2 bytes");
}

#define test(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

static void interrupt(int signal_number)
{
	(void)signal_number;
}

/* The child reads slowly, so the writer must wait. Signals interrupt the wait, and each interrupted call of write
 * returns early. */
static void all_bytes_go_through_a_pipe(void **state)
{
	enum { LENGTH = 1 << 20 };
	static char bytes[LENGTH];
	const struct sigaction interrupts = {.sa_handler = interrupt};
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};
	int ends[2], status;
	size_t sum = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH; i++)
		sum += (unsigned char)(bytes[i] = (char)(i % 251));
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (child == 0) {
		unsigned char part[1000];
		size_t count = 0, got = 0;

		close(ends[1]);
		for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0; count += (size_t)n, usleep(100))
			for (ssize_t i = 0; i < n; i++)
				got += part[i];
		_exit(count == LENGTH && got == sum ? 0 : 1);
	}
	close(ends[0]);
	sigaction(SIGALRM, &interrupts, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_true(file_write_all(ends[1], bytes, LENGTH));
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_pipe_without_reader_is_an_error(void **state)
{
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_false(file_write_all(ends[1], "text", 4));
	assert_int_equal(errno, EPIPE);
	close(ends[1]);
	signal(SIGPIPE, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    test(a_file_is_read_whole),
	    test(a_file_is_read_below_a_descriptor),
	    test(what_is_not_there_is_absent_and_no_error),
	    test(a_file_beyond_the_limit_is_not_read),
	    test(a_file_that_grows_while_it_is_read_is_still_bounded),
	    test(only_regular_files_are_read_and_nothing_blocks),
	    test(a_file_is_replaced_only_if_its_bytes_differ),
	    test(replacing_leaves_no_temporary_file),
	    test(what_a_dead_process_left_is_removed_by_the_next),
	    test(what_a_process_is_at_work_on_is_left_to_it),
	    test(all_bytes_go_through_a_pipe),
	    test(a_pipe_without_reader_is_an_error),
	    test(a_program_can_be_run_from_the_first),
	    test(parent_folders_are_made),
	    test(a_replaced_file_keeps_its_permissions),
	    test(what_cannot_be_replaced_stays_as_it_is),
	    test(a_write_that_fails_leaves_the_old_file),
	    test(a_file_that_somebody_may_write_to_shows_no_changes),
	    test(a_file_on_tmpfs_shows_no_changes),
	    test(a_file_beneath_a_root_is_mapped),
	    test(nothing_outside_the_root_is_mapped),
	    test(without_openat2_the_steps_hold_the_same_line),
	    test(no_descriptor_is_left_open),
	    test(the_program_knows_its_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
