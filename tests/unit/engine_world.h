/* engine_world - runs the whole engine over a few definitions in memory. The files, the store and the runner are fakes
 * that log each request. The tests use no disk, no Python and no other process. */
#ifndef REFTEST_TESTS_ENGINE_WORLD_H
#define REFTEST_TESTS_ENGINE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/run.h"
#include "workers/sandbox/sandbox.h"

extern const struct kernels_api reftest_kernels;

enum { WORLD_FILES = 8, WORLD_LOG = 8192, WORLD_PUTS = 64, WORLD_TASKS = 64, WORLD_SLOW_S = 9 };

struct world_file {
	const char *text;   /* NULL: reading the file fails */
	uint64_t version;   /* stands for the file's stat; changes whenever `text` changes */
	const char *during; /* when the reference of the file runs, `text` is replaced by this text; NULL: it is not
			     * replaced */
};

struct world {
	struct dataset_file files[WORLD_FILES];
	struct world_file content[WORLD_FILES];
	int file_count;
	const char *fails;   /* the definition whose cases fail; NULL: no case fails */
	const char *slow;    /* the definition whose cases take WORLD_SLOW_S seconds; NULL: every case takes 0 */
	bool breaks;	     /* the runner cannot start its first case, which ends the run */
	int interrupt_after; /* SIGINT arrives after this number of results; 0: never */
	bool full;	     /* storing a verdict fails */
	bool loses_process;  /* each case runs in a process of its own, because the one of the case before ended */
	bool keeps_state;    /* the references may keep something from one case to the next */
	/* The stored verdicts. */
	struct store_put puts[WORLD_PUTS];
	int put_count;
	struct file_entry entries[WORLD_FILES];
	int entry_count;
	struct arena memory;
	/* The requests in order, each as one word: "read:NAME", "run:NAME/CASE", "store:NAME/CASE", "note:NAME". */
	char log[WORLD_LOG];
	/* State of the fake runner. */
	struct task tasks[WORLD_TASKS];
	int task_count, task_at, job_at, answers;
	int ready, signals; /* eventfds; `ready` is always readable, `signals` becomes readable when SIGINT arrives */
	struct program program;
	struct run_options options;
	struct run run;
};

/* The text of a definition of a small rmsnorm; `body` is the last line of its reference. */
#define WORLD_DEFINITION(name, body)                                                                                   \
	"{\"name\": \"" name "\", \"op_type\": \"rmsnorm\", \"description\": \"Epsilon is 1e-6.\", "                   \
	"\"axes\": {\"batch_size\": {\"type\": \"var\"}, \"hidden_size\": {\"type\": \"const\", \"value\": 64}}, "     \
	"\"inputs\": {\"hidden_states\": {\"shape\": [\"batch_size\", \"hidden_size\"], \"dtype\": \"float32\"}, "     \
	"\"weight\": {\"shape\": [\"hidden_size\"], \"dtype\": \"float32\"}}, "                                        \
	"\"outputs\": {\"output\": {\"shape\": [\"batch_size\", \"hidden_size\"], \"dtype\": \"float32\"}}, "          \
	"\"reference\": \"import torch\\n\\ndef run(hidden_states, weight):\\n    " body "\\n\"}"

static void world_log(struct world *w, const char *verb, const char *what, const char *more)
{
	size_t length = strlen(w->log);

	snprintf(w->log + length, sizeof w->log - length, "%s:%s%s%s ", verb, what, more != NULL ? "/" : "",
		 more != NULL ? more : "");
}

/* Counts the words of the log that begin with `prefix`, such as "run:" or "run:first/". */
static int world_count(const struct world *w, const char *prefix)
{
	int count = 0;

	for (const char *at = w->log; (at = strstr(at, prefix)) != NULL; at += strlen(prefix))
		count += at == w->log || at[-1] == ' ';
	return count;
}

/* ---- files ---- */

static struct world_file *world_content(struct world *w, const struct dataset_file *file)
{
	return &w->content[file - w->files];
}

static bool world_holds(void *self, const struct dataset_file *file, const struct file_seen *earlier)
{
	return earlier->stat.inode == world_content(self, file)->version;
}

static int world_read(void *self, const struct dataset_file *file, size_t limit, struct buf *bytes,
		      struct stat_check *out, struct err *err)
{
	struct world *w = self;
	const struct world_file *content = world_content(w, file);

	(void)limit;
	world_log(w, "read", file->name, NULL);
	if (content->text == NULL)
		return err_set(err, "%s: cannot be read", file->path);
	buf_text(bytes, content->text);
	out->seen.stat.inode = content->version;
	out->seen.read_ns = 1;
	return 0;
}

static bool world_unchanged(void *self, const struct dataset_file *file, const struct file_seen *earlier,
			    const struct digest *content)
{
	const char *text = world_content(self, file)->text;
	struct digest now = digest_of(text, strlen(text));

	(void)earlier;
	return digest_equal(&now, content);
}

static struct blob world_blob(void *self, enum blob_use use, const char *path, const struct file_seen *earlier,
			      bool to_run, struct arena *arena, struct file_seen *seen, bool *read)
{
	(void)self, (void)earlier, (void)to_run, (void)arena, (void)seen, (void)read;
	return (struct blob){.use = use, .path = path, .missing = "there are no tensors here"};
}

static bool world_blob_unchanged(void *self, const struct blob *blob, const struct file_seen *earlier)
{
	(void)self, (void)blob, (void)earlier;
	return true;
}

/* ---- records ---- */

/* Returns whether a later verdict replaced stored verdict number `at`, because its subject and witness are the same. */
static bool world_replaced(const struct world *w, int at)
{
	for (int i = at + 1; i < w->put_count; i++)
		if (w->puts[i].keep_verdict && digest_equal(&w->puts[i].subject, &w->puts[at].subject) &&
		    digest_equal(&w->puts[i].witness, &w->puts[at].witness))
			return true;
	return false;
}

static int world_verdicts(void *self, const struct digest *subject, struct arena *arena,
			  const struct stored_verdict **out)
{
	struct world *w = self;
	struct stored_verdict *found = arena_array(arena, WORLD_PUTS, sizeof *found);
	int count = 0;

	for (int i = 0; i < w->put_count; i++)
		if (w->puts[i].keep_verdict && digest_equal(&w->puts[i].subject, subject) && !world_replaced(w, i))
			found[count++] =
			    (struct stored_verdict){w->puts[i].witness, w->puts[i].text, w->puts[i].length};
	*out = found;
	return count;
}

static enum cache_answer world_latest(void *self, const char *definition, const char *case_id, struct arena *arena,
				      struct latest *out)
{
	struct world *w = self;

	(void)arena;
	for (int i = w->put_count - 1; i >= 0; i--)
		if (strcmp(w->puts[i].definition, definition) == 0 && strcmp(w->puts[i].case_id, case_id) == 0) {
			*out = (struct latest){.subject = w->puts[i].subject, .witness = w->puts[i].witness};
			return CACHE_HIT;
		}
	return CACHE_MISS;
}

static int world_put(void *self, const struct store_put *puts, int count, struct err *err)
{
	struct world *w = self;

	if (w->full)
		return err_set(err, "no space left");
	for (int i = 0; i < count; i++) {
		struct store_put *copy = &w->puts[w->put_count++];

		assert_in_range(w->put_count, 1, WORLD_PUTS);
		*copy = puts[i];
		copy->text = arena_copy(&w->memory, puts[i].text, puts[i].length);
		copy->definition = arena_string(&w->memory, puts[i].definition);
		copy->case_id = arena_string(&w->memory, puts[i].case_id);
		world_log(w, "store", strchr(copy->definition, '/') + 1, copy->case_id);
	}
	return 0;
}

static bool world_writable(const void *self)
{
	return !((const struct world *)self)->full;
}

static int world_each_file(void *self, const char *prefix, store_visit *visit, void *context, struct err *err)
{
	struct world *w = self;

	(void)err;
	for (int i = 0; i < w->file_count; i++)
		for (int k = w->entry_count - 1; k >= 0; k--)
			if (strcmp(w->entries[k].path, w->files[i].path) == 0 &&
			    strncmp(prefix, w->files[i].path, strlen(prefix)) == 0) {
				visit(&w->entries[k], context);
				break;
			}
	return 0;
}

static int world_put_files(void *self, const struct file_entry *entries, int count, struct err *err)
{
	struct world *w = self;

	(void)err;
	for (int i = 0; i < count; i++) {
		struct file_entry *copy = NULL;

		for (int k = 0; k < w->entry_count && copy == NULL; k++)
			if (strcmp(w->entries[k].path, entries[i].path) == 0)
				copy = &w->entries[k];
		if (copy == NULL)
			copy = &w->entries[w->entry_count++];
		assert_in_range(w->entry_count, 1, WORLD_FILES);
		*copy = entries[i];
		copy->path = arena_string(&w->memory, entries[i].path);
		world_log(w, "note", strrchr(copy->path, '/') + 1, NULL);
	}
	return 0;
}

static void world_counted(void *self, const struct cache_stats *run)
{
	char hits[32];

	snprintf(hits, sizeof hits, "%lld", (long long)run->hits);
	world_log(self, "count", hits, NULL);
}

/* ---- the runner ---- */

static void world_submit(void *self, const struct task *task)
{
	struct world *w = self;

	assert_in_range(w->task_count, 0, WORLD_TASKS - 1);
	w->tasks[w->task_count++] = *task;
}

static void world_cancel(void *self, const void *owner)
{
	struct world *w = self;

	for (int i = w->task_at; i < w->task_count; i++)
		if (w->tasks[i].owner == owner)
			w->tasks[i].job_count = 0;
}

static int world_fd(const void *self)
{
	return ((const struct world *)self)->ready;
}

static int world_dispatch(void *self, struct err *err)
{
	return ((struct world *)self)->breaks ? err_set(err, "there is no interpreter any more") : 0;
}

static const struct task *world_task(struct world *w)
{
	while (w->task_at < w->task_count && w->job_at >= w->tasks[w->task_at].job_count) {
		w->task_at++;
		w->job_at = 0;
	}
	return w->task_at < w->task_count ? &w->tasks[w->task_at] : NULL;
}

static bool world_is_interrupted(const struct world *w)
{
	return w->interrupt_after > 0 && w->answers >= w->interrupt_after;
}

static void *world_next_owner(const void *self)
{
	struct world *w = (struct world *)(uintptr_t)self;
	const struct task *task = world_task(w);

	return task == NULL || w->breaks || world_is_interrupted(w) ? NULL : task->owner;
}

static void world_change_files(struct world *w)
{
	for (int i = 0; i < w->file_count; i++)
		if (w->content[i].during != NULL) {
			w->content[i].text = w->content[i].during;
			w->content[i].version++;
			w->content[i].during = NULL;
		}
}

static bool world_next(void *self, struct arena *arena, struct pool_result *out)
{
	struct world *w = self;
	const struct task *task = world_task(w);
	const struct job *job = task->jobs[w->job_at++];
	struct verdict *verdict = arena_alloc(arena, sizeof *verdict);
	const char *name = strchr(task->name, '/') + 1;
	bool fails = w->fails != NULL && strcmp(name, w->fails) == 0;
	uint64_t one = 1;

	world_log(w, "run", name, job->id);
	world_change_files(w);
	*verdict = (struct verdict){.status = fails ? STATUS_FAILED : STATUS_PASSED,
				    .reason = fails ? REASON_NUMERIC : REASON_NONE,
				    .message = fails ? "it is wrong" : NULL,
				    .device_class = "cpu",
				    .device = "cpu",
				    .ground_truth = job->truths.items[0].name,
				    .ground_truth_version = job->truths.items[0].version,
				    .torch = "2.13.0+cpu",
				    .python = "3.11.7",
				    .time = 1,
				    .seconds = w->slow != NULL && strcmp(name, w->slow) == 0 ? WORLD_SLOW_S : 0,
				    .elements = 100};
	*out = (struct pool_result){.owner = task->owner, .job = job, .verdict = verdict, .keep = true,
				    .stateless = !w->keeps_state, .follows = !w->loses_process};
	w->answers++;
	if (world_is_interrupted(w))
		assert_int_equal(write(w->signals, &one, sizeof one), sizeof one);
	return true;
}

static int world_running(const void *self, struct pool_running *out, int most)
{
	(void)self, (void)out, (void)most;
	return 0;
}

static int world_pending(const void *self)
{
	const struct world *w = self;
	int pending = -w->job_at;

	for (int i = w->task_at; i < w->task_count; i++)
		pending += w->tasks[i].job_count;
	return pending > 0 ? pending : 0;
}

static bool world_layers(const void *self, uint32_t *out)
{
	(void)self;
	*out = SANDBOX_ALL;
	return true;
}

static struct pool_versions world_versions(const void *self)
{
	(void)self;
	return (struct pool_versions){"2.13.0+cpu", "3.11.7"};
}

static void world_close_runner(void *self)
{
	world_log(self, "close", "runner", NULL);
}

/* ---- a run ---- */

static int world_set_up(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->ready = eventfd(1, EFD_CLOEXEC);
	w->signals = eventfd(0, EFD_CLOEXEC);
	w->program = (struct program){.kernels = {.api = &reftest_kernels}, .signals = w->signals};
	w->options = (struct run_options){.cases = case_options_default(), .each = true, .details = true};
	w->options.cases.size[SIZE_MEDIUM] = false;
	*state = w;
	return 0;
}

static int world_tear_down(void **state)
{
	struct world *w = *state;

	close(w->ready);
	close(w->signals);
	arena_free(&w->memory);
	free(w);
	return 0;
}

/* Adds a definition. If the dataset has a definition with this path, replaces its text. */
static void world_write(struct world *w, const char *path, const char *name, const char *text)
{
	int at = 0;

	while (at < w->file_count && strcmp(w->files[at].path, path) != 0)
		at++;
	w->file_count += at == w->file_count;
	w->files[at] = (struct dataset_file){.op_type = "rmsnorm", .name = name, .path = path};
	w->content[at] = (struct world_file){.text = text, .version = w->content[at].version + 1};
}

/* Clears the log and runs the engine over all definitions. The results stay in `w->run` until world_end. */
static void world_run(struct world *w)
{
	static const struct run_files_calls files = {false,		 world_holds, world_read,
						world_unchanged, world_blob,  world_blob_unchanged};
	static const struct run_store_calls records = {world_verdicts,  world_latest,    world_put,    world_writable,
						    world_each_file, NULL,	     world_put_files, world_counted};
	static const struct runner_calls runner = {world_submit,   world_cancel,     world_fd,
						   world_dispatch, world_next_owner, world_next,
						   world_pending,  world_running,    world_versions,
						   world_layers,   world_close_runner};
	static const struct dataset_file *workload_of[WORLD_FILES];
	const struct machine_policy machine = {
	    .policy = {.device = "cpu", .device_class = "cpu", .torch = "2.13.0+cpu", .python = "3.11.7"},
	    .python = "/nowhere/python3",
	    .truths = {.automatic = true},
	};
	const struct dataset dataset = {
	    .fd = -1, .definitions = w->files, .definition_count = w->file_count, .workload_of = workload_of};
	const struct run_parts parts = {.machine = &machine,
					.dataset = &dataset,
					.files = {&files, w},
					.records = {&records, w},
					.runner = {&runner, w}};
	struct err err = {""};

	w->log[0] = '\0';
	w->task_count = w->task_at = w->job_at = w->answers = 0;
	if (run_open_parts(&w->run, &w->program, &w->options, &parts, &err) != 0 || run_to_end(&w->run, &err) != 0)
		fail_msg("%s", err.text);
}

static void world_end(struct world *w)
{
	run_close(&w->run);
}

/* Returns the result of a definition, or NULL if the run has none. */
static const struct result *world_result(const struct world *w, const char *name)
{
	for (int i = 0; i < w->run.count; i++)
		if (strcmp(w->run.results[i]->file->name, name) == 0)
			return w->run.results[i];
	return NULL;
}

#endif
