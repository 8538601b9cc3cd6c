/* program_world - a dataset of four small definitions, and checks of its store and its files. A test runs the real
 * program on this dataset with planted faults (tests/faults/). A run takes a few milliseconds. The tests need a
 * finished build in build/. A process can have only one world at a time. */
#ifndef REFTEST_TESTS_PROGRAM_WORLD_H
#define REFTEST_TESTS_PROGRAM_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "cache/store.h"
#include "dataset/verdict.h"
#include "tests/faults/faults.h"

enum { WORLD_PATH = 256, WORDS = 12, RUN_LIMIT_S = 60, OUTPUT_MAX = 1 << 20, FILE_LIMIT = 8 << 20, KNOWN_MAX = 512 };

/* A stored verdict. */
struct known {
	struct digest subject, witness, text;
	enum status status;
};

struct known_list {
	struct known items[KNOWN_MAX];
	int count;
};

struct world {
	char base[WORLD_PATH - sizeof "/run"]; /* the folder that contains all files of the test */
	char root[WORLD_PATH]; /* the working directory of the program */
	char build[PATH_MAX];
	struct faults *faults;
	struct buf out, err; /* standard output and standard error of the last run */
};

static const char *const run_verify[] __attribute__((unused)) = {"verify",  "--format", "json",	  "--device", "cpu",
								 "--sizes", "small",	"--jobs", "1",	      NULL};
static const char *const run_cached[] __attribute__((unused)) = {
    "verify", "--cached-only", "--format", "json", "--device", "cpu", "--sizes", "small", NULL};

/* --- Files ------------------------------------------------------------------------------------------------------ */

static const char *in_base(const struct world *w, const char *name)
{
	static char paths[4][WORLD_PATH + 64];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(paths[turn], sizeof paths[turn], "%s/%s", w->base, name);
	return paths[turn];
}

static const char *in_root(const struct world *w, const char *name)
{
	static char paths[4][WORLD_PATH + 64];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(paths[turn], sizeof paths[turn], "%s/%s", w->root, name);
	return paths[turn];
}

/* Reads a whole file; returns false if the file does not exist. */
static bool bytes_of(const char *path, struct buf *out)
{
	return file_read(AT_FDCWD, path, FILE_LIMIT, out, NULL, NULL) == FILE_OK;
}

static void write_bytes(const char *path, const void *bytes, size_t length)
{
	struct err err = {""};

	if (file_replace_soon(path, bytes, length, &err) < 0)
		fail_msg("%s", err.text);
}

static void write_text(const char *path, const char *text)
{
	write_bytes(path, text, strlen(text));
}

static const char *copy_from, *copy_to;

static int copy_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	char to[PATH_MAX];
	struct buf bytes = {0};

	(void)walk;
	snprintf(to, sizeof to, "%s%s", copy_to, path + strlen(copy_from));
	if (type == FTW_D)
		return mkdir(to, 0777);
	if (!bytes_of(path, &bytes))
		return -1;
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st->st_mode & 0777);
	bool good = fd >= 0 && write(fd, bytes.data, bytes.length) == (ssize_t)bytes.length && close(fd) == 0;

	buf_free(&bytes);
	return good ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Copies the folder `from` to `to`. If `to` exists, deletes it first. */
static void copy_tree(const char *from, const char *to)
{
	remove_tree(to);
	copy_from = from;
	copy_to = to;
	if (nftw(from, copy_one, 16, FTW_PHYS) != 0)
		fail_msg("%s cannot be copied to %s: %s", from, to, strerror(errno));
}

/* --- The dataset ------------------------------------------------------------------------------------------------ */

/* Writes a definition. Its reference returns `word`, which tells tests/faults/interpreter.c how the reference
 * behaves. */
static inline void define(const struct world *w, const char *name, const char *word)
{
	char path[64], text[1024];

	snprintf(path, sizeof path, "definitions/gemm/%s.json", name);
	snprintf(text, sizeof text,
		 "{\"name\": \"%s\", \"op_type\": \"gemm\", \"description\": \"C = A B^T.\", \"axes\": {\"M\": "
		 "{\"type\": \"var\"}, \"N\": {\"type\": \"const\", \"value\": 4}, \"K\": {\"type\": \"const\", "
		 "\"value\": 8}}, \"inputs\": {\"A\": {\"shape\": [\"M\", \"K\"], \"dtype\": \"float32\"}, \"B\": "
		 "{\"shape\": [\"N\", \"K\"], \"dtype\": \"float32\"}}, \"outputs\": {\"C\": {\"shape\": [\"M\", "
		 "\"N\"], \"dtype\": \"float32\"}}, \"reference\": \"import torch\\n\\n\\ndef run(A, B):\\n    return "
		 "'%s', '%s'\\n\"}",
		 name, word, name);
	write_text(in_root(w, path), text);
}

/* A definition and its expected status. first_texts lists the definitions before an edit, and second_texts lists them
 * after it. The edit does not change the sizes of the files. */
struct expected {
	const char *name, *status;
};
static const struct expected first_texts[]
    __attribute__((unused)) = {{"one", "passed"}, {"two", "failed"}, {"three", "error"}, {NULL, NULL}};
static const struct expected second_texts[] __attribute__((unused)) = {
    {"one", "failed"}, {"two", "passed"}, {"three", "passed"}, {"four", "error"}, {NULL, NULL}};

static inline void write_first_texts(const struct world *w)
{
	define(w, "one", "PRODUCT");
	define(w, "two", "SEVENS ");
	define(w, "three", "RAISES ");
}

static inline void write_second_texts(const struct world *w)
{
	define(w, "one", "SEVENS ");
	define(w, "two", "PRODUCT");
	define(w, "three", "PRODUCT");
	define(w, "four", "RAISES ");
}

/* --- Running ---------------------------------------------------------------------------------------------------- */

static void redirect(const char *path, int to)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || dup2(fd, to) != to)
		_exit(126);
}

/* Runs in the child process: sets up the environment, then executes the program. */
static void become(const struct world *w, const char *const *words)
{
	char *argv[WORDS + 2] = {(char *)(uintptr_t) "reftest"}, program[PATH_MAX + 64];

	for (int i = 0; words[i] != NULL && i < WORDS; i++)
		argv[i + 1] = (char *)(uintptr_t)words[i];
	snprintf(program, sizeof program, "%s/tests/faults/shim.so", w->build);
	setenv("LD_PRELOAD", program, 1);
	snprintf(program, sizeof program, "%s/tests/faults/interpreter", w->build);
	setenv("REFTEST_PYTHON", program, 1);
	setenv("REFTEST_FAKE_TORCH", in_base(w, "torch"), 1);
	setenv(FAULTS_ENV, in_base(w, "faults"), 1);
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	for (const char *const *name = (const char *const[]){"REFTEST_ROOT", "FIB_DATASET_PATH", "REFTEST_REMOTE",
							     "REFTEST_CACHE_KEY", "REFTEST_KERNELS", NULL};
	     *name != NULL; name++)
		unsetenv(*name);
	snprintf(program, sizeof program, "%s/reftest", w->build);
	redirect("/dev/null", 0);
	redirect(in_base(w, "out"), 1);
	redirect(in_base(w, "err"), 2);
	if (chdir(w->root) != 0)
		_exit(126);
	alarm(RUN_LIMIT_S);
	w->faults->pid = getpid();
	execv(program, argv);
	_exit(127);
}

/* Runs the program in the root and returns its wait status. `fault` occurs at the at-th call that changes files.
 * w->out and w->err receive what the program printed. */
static int run_with(struct world *w, const char *const *words, enum fault fault, long at)
{
	int status;

	w->faults->calls = 0;
	w->faults->at = at;
	w->faults->fault = fault;
	w->faults->struck = false;
	w->faults->last[0] = '\0';
	fflush(NULL);
	pid_t child = fork();

	if (child == 0)
		become(w, words);
	waitpid(child, &status, 0);
	w->faults->pid = 0;
	if (!bytes_of(in_base(w, "out"), &w->out) || !bytes_of(in_base(w, "err"), &w->err))
		fail_msg("the program cannot be started");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		fail_msg("reftest %s hangs (fault %d at %ld, %s)", words[0], (int)fault, at, w->faults->last);
	return status;
}

static int run_plainly(struct world *w, const char *const *words)
{
	int status = run_with(w, words, FAULT_NONE, 0);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- the program's report and the content of the store ------------------------------------------------------------ */

static const char *printed(const struct buf *text)
{
	return text->data == NULL ? "" : text->data;
}

/* Returns NULL if every definition has the correct verdict for its text, else a message about a definition whose
 * verdict is wrong or missing. If `partly` is true, verdicts may be missing, because the run used --cached-only or
 * because a fault occurred. */
static inline const char *wrong_status(const struct world *w, const struct expected *expected, bool partly)
{
	static char why[256];
	const char *found = NULL;
	cJSON *json = cJSON_Parse(printed(&w->out));
	const cJSON *list = cJSON_GetObjectItem(json, "definitions"), *one;

	for (; expected->name != NULL && found == NULL; expected++) {
		const char *status = "nothing";

		cJSON_ArrayForEach(one, list) if (strcmp(json_text_of(one, "name"), expected->name) == 0) status =
		    json_text_of(one, "status");
		bool verdict = strcmp(status, "passed") == 0 || strcmp(status, "failed") == 0;

		if (strcmp(status, expected->status) != 0 && (!partly || verdict)) {
			snprintf(why, sizeof why, "%s is said to be %s and is %s", expected->name, status,
				 expected->status);
			found = why;
		}
	}
	cJSON_Delete(json);
	return found;
}

static void know(const struct verdict_line *record, int64_t left, void *context)
{
	(void)left;
	struct known_list *list = context;
	struct arena arena = {0};
	const struct verdict *verdict = verdict_parse(record->text, record->length, &arena, NULL);

	if (verdict != NULL && list->count < KNOWN_MAX)
		list->items[list->count++] = (struct known){.subject = record->subject,
							    .witness = record->witness,
							    .text = digest_of(record->text, record->length),
							    .status = verdict->status};
	arena_free(&arena);
}

/* Reads every verdict of the store below `root`. Skips the rows of fill_cache, which only make the store larger.
 * Returns -1 if the store cannot be read. */
static inline int read_known(const char *root, struct known_list *out)
{
	struct store_options options = {.read_only = true};
	struct err note, err = {""};
	int64_t damaged = 0;

	out->count = 0;
	struct store *store = store_open(root, &options, &note, &err);

	if (store == NULL)
		return err.text[0] == '\0' ? 0 : -1;
	int rc = store_each_verdict(store, know, out, &damaged, &err);

	store_close(store);
	return rc == 0 && damaged == 0 ? 0 : -1;
}

static const struct known *find_known(const struct known_list *list, const struct known *one)
{
	for (int i = 0; i < list->count; i++)
		if (memcmp(&list->items[i].subject, &one->subject, sizeof one->subject) == 0 &&
		    memcmp(&list->items[i].witness, &one->witness, sizeof one->witness) == 0)
			return &list->items[i];
	return NULL;
}

/* Checks the store: each verdict of `before` must be stored unchanged, and each stored verdict must equal its entry in
 * `all`. Returns NULL or a description of what is wrong. */
static inline const char *wrong_store(const struct world *w, const struct known_list *before,
				      const struct known_list *all)
{
	static struct known_list now;

	if (read_known(w->root, &now) != 0)
		return "the store cannot be read";
	for (int i = 0; i < before->count; i++) {
		const struct known *found = find_known(&now, &before->items[i]);

		if (found == NULL)
			return "a stored verdict is lost";
		if (found->status != before->items[i].status)
			return "a stored verdict has changed";
	}
	for (int i = 0; i < now.count; i++) {
		const struct known *right = find_known(all, &now.items[i]);

		if (right == NULL || right->status != now.items[i].status)
			return "the store holds a wrong verdict";
	}
	return NULL;
}

/* --- initial states ----------------------------------------------------------------------------------------------- */

static inline void save_as(const struct world *w, const char *state)
{
	copy_tree(w->root, in_base(w, state));
}

static inline void begin_with(const struct world *w, const char *state)
{
	copy_tree(in_base(w, state), w->root);
}

static inline void must_run(struct world *w, const char *const *words, int code)
{
	int found = run_plainly(w, words);

	if (found != code)
		fail_msg("reftest %s ended with %d: %s%s", words[0], found, printed(&w->out), printed(&w->err));
}

enum { BULK = 80, BULK_BYTES = 30000 };

/* Stores so many old, unneeded verdicts that gc rewrites the store's file. */
static inline void fill_cache(const struct world *w)
{
	struct store_options options = {.read_only = false};
	struct store_put puts[BULK];
	char *text = calloc(1, BULK_BYTES);
	struct err note, err = {""};

	memset(text, 'x', BULK_BYTES - 1);
	memcpy(text, "{\"time\": 1000} ", 15);
	struct store *store = store_open(w->root, &options, &note, &err);

	for (int i = 0; i < BULK; i++)
		puts[i] = (struct store_put){.subject = digest_of(&i, sizeof i),
					     .witness = digest_of("w", 1),
					     .text = text,
					     .length = BULK_BYTES - 1,
					     .definition = "gemm/old",
					     .case_id = "old",
					     .fields = "fields",
					     .fields_length = 6,
					     .keep_verdict = true};
	assert_true(store != NULL && store_put(store, puts, BULK, &err) == 0);
	store_close(store);
	free(text);
}

static inline void export_to(struct world *w, const char *name)
{
	char path[WORLD_PATH + 16];

	snprintf(path, sizeof path, "../%s", name);
	must_run(w, (const char *const[]){"cache", "export", path, NULL}, 0);
}

/* --- leftover files ----------------------------------------------------------------------------------------------- */

static char left_lying[PATH_MAX];

static int is_left(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	const char *name = path + walk->base;

	(void)st, (void)type;
	if (strstr(name, ".tmp") == NULL && strcmp(name, "cache.compact") != 0 && strncmp(name, "staged-", 7) != 0)
		return 0;
	snprintf(left_lying, sizeof left_lying, "%s", path);
	return 1;
}

/* Returns the name of a file or folder that should exist only while a process runs, or NULL if there is none. */
static inline const char *leftover(const struct world *w)
{
	return nftw(w->root, is_left, 16, FTW_PHYS) == 1 ? left_lying : NULL;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void make_faults(struct world *w)
{
	int fd = open(in_base(w, "faults"), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && ftruncate(fd, sizeof *w->faults) == 0);
	w->faults = mmap(NULL, sizeof *w->faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(w->faults != MAP_FAILED);
	close(fd);
}

/* The program trusts the stat of a file only if the file was last written more than a few seconds ago. If the program's
 * clock is ahead by STILL_S seconds, every file looks old enough to be trusted. */
enum { STILL_S = 10 };

static void world_make(struct world *w)
{
	struct err err;

	*w = (struct world){.base = "/tmp/reftest-program-XXXXXX"};
	assert_non_null(mkdtemp(w->base));
	assert_int_equal(file_program_directory(w->build, sizeof w->build, &err), 0);
	*strstr(w->build, "/tests/unit") = '\0';
	snprintf(w->root, sizeof w->root, "%s/run", w->base);
	make_faults(w);
	w->faults->clock_s = STILL_S;
	write_text(in_base(w, "torch/version.py"), "__version__ = '9.9.9'\ncuda = None\n");
}

static void world_free(struct world *w)
{
	remove_tree(w->base);
	munmap(w->faults, sizeof *w->faults);
	buf_free(&w->out);
	buf_free(&w->err);
}

#endif
