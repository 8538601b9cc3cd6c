#include "watcher/batches.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/trace.h"
#include "engine/approval_state.h"
#include "engine/pool_case_runner.h"
#include "engine/run_pools.h"
#include "watcher/blob_path.h"
#include "workers/pool/zygote.h"

/* Planning pauses every PLAN_MS milliseconds, to let the main loop handle events. Planning also pauses while
 * PENDING_MOST cases wait for the pool, because more waiting cases would need memory, but would not save time. */
enum { PLAN_MS = 5, PENDING_MOST = 16384 };

/* A part of a batch: one run over definitions that changed at the same time. While a git command writes files, each
 * group of changes becomes a new part of the same batch, so that most parts are planned before the git command ends. */
struct part {
	struct run run; /* must be the first member: on_result casts its argument `struct run *` to `struct part *` */
	struct batch *batch;
	struct part *next;
	const char *const *paths; /* the changed definitions; NULL: all definitions */
	int path_count;
	bool said;                /* the change was printed */
	bool planned;
	struct arena arena;
};

struct batch {
	struct part *parts;      /* newest first */
	struct equal_cases equal_cases; /* shared by all parts */
	struct run_options options;
	struct batches *session;
	struct batch *next;
	struct batch_counts counts;
	double noticed;
	bool whole;   /* the batch verifies all definitions */
	bool repeat;  /* unchanged results are reported, too */
	bool recheck;   /* the batch has the flag BATCH_RECHECK */
	bool open;    /* later changes may be added to the batch */
	bool planned; /* all parts are planned and no part will be added */
	bool said;    /* the change was printed */
};

double batch_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the pool --------------------------------------------------------------------------------------------------- */

/* Prints why no case can run, unless the last printed reason was the same. */
static void report_trouble(struct batches *session, const char *why)
{
	if (strcmp(why, session->trouble) != 0)
		print_notice(&session->output, why);
	snprintf(session->trouble, sizeof session->trouble, "%s", why);
}

static void open_pool(struct batches *session)
{
	struct err err = {""};

	if (session->pool != NULL || session->machine.cannot_run != NULL)
		return;
	session->pool = run_open_pool(session->program, &session->options, &session->machine, &err);
	if (session->pool == NULL)
		report_trouble(session, err.text);
	else if (session->warm)
		pool_warm(session->pool);
}

void batches_warm(struct batches *session)
{
	session->warm = true;
	if (session->pool != NULL)
		pool_warm(session->pool);
	else
		open_pool(session);
}

static void close_failed_pool(struct batches *session, const char *why)
{
	report_trouble(session, why);
	pool_close(session->pool);
	session->pool = NULL;
	for (struct batch *batch = session->first; batch != NULL; batch = batch->next)
		for (struct part *part = batch->parts; part != NULL; part = part->next) {
			run_lend(&part->run, pool_runner(NULL), &batch->equal_cases);
			run_give_up(&part->run, why);
		}
}

void batches_dispatch(struct batches *session)
{
	struct err err = {""};

	if (session->pool == NULL)
		return;
	int rc = pool_dispatch(session->pool, &err);

	run_take_answers(pool_runner(session->pool));
	if (rc < 0)
		close_failed_pool(session, err.text);
}

/* ---- reporting the results of a run
 * ------------------------------------------------------------------------------- */

/* Prints the names of the changed definitions, but only once for each part. Call this before a result of the part is
 * printed. */
static void report_changed(struct part *part)
{
	if (part->batch->counts.number == 0)
		part->batch->counts.number = ++part->batch->session->begun;
	if (!part->said && part->paths != NULL)
		print_changed(&part->batch->session->output, &part->batch->counts, part->paths, part->path_count);
	part->said = part->batch->said = true;
}

static struct last_status last_status_of(const struct batch *batch, const struct result *result)
{
	return (struct last_status){.status = result->status,
				    .reason = result->reason,
				    .checked = checked_kind_of(result),
				    .answers = result->status == STATUS_PASSED && result->in_store &&
					       result->findings == 0,
				    .cases = result->counts.cases,
				    .elements = result->counts.elements,
				    .batch = batch->counts.number,
				    .inputs = result->inputs};
}

/* Returns whether the definition has the same contents and the same status as before, for example after a file was
 * touched. */
static bool is_unchanged(const struct batch *batch, const struct result *result)
{
	const struct status_row *before = last_statuses_find(&batch->session->table, result->file->path);

	if (batch->whole || batch->repeat || before == NULL || before->last.batch == 0 || result->started > 0)
		return false;
	return before->last.status == result->status && before->last.reason == result->reason &&
	       digest_equal(&before->last.inputs, &result->inputs);
}

static void count_result(struct batch *batch, const char *path, const struct last_status *last)
{
	struct last_statuses *table = &batch->session->table;
	const struct status_row *before = last_statuses_find(table, path);

	if (before != NULL && before->last.batch == batch->counts.number) /* this batch has counted an earlier result of
									   * the definition */
		batch->counts.verdicts[before->last.status]--;
	batch->counts.verdicts[last->status]++;
	last_statuses_set(table, path, last);
}

static void forget_gone(struct part *part, const char *path)
{
	struct batch *batch = part->batch;

	if (!last_statuses_forget(&batch->session->table, path))
		return;
	report_changed(part);
	batch->counts.gone++;
	exec_forget(&batch->session->exec,
		    arena_printf(&part->arena, "%.*s", (int)(strlen(path) - strlen("definitions/.json")),
				 path + strlen("definitions/")));
	print_gone(&batch->session->output, &batch->counts, path);
}

/* Is called before a blob is read. Starts to watch the blob, so that no change after the read is missed. */
static void on_blob(struct run *run, const char *blob)
{
	const struct batches *session = ((struct part *)run)->batch->session;
	struct stat st;

	if (!blob_path_is_watched(blob) || (fstatat(run->dataset.fd, blob, &st, 0) == 0 && st.st_nlink > 1))
		session->follow(blob, session->follow_context);
}

static void follow_linked(const struct batches *session, const struct dataset_file *files, int count)
{
	for (int i = 0; i < count; i++)
		if (files[i].has_hard_links)
			session->follow(files[i].path, session->follow_context);
}

/* Starts to check the files that have hard links. If a program writes to such a file through a link in another folder,
 * inotify reports nothing for the dataset's folder. */
static void follow_hard_links(const struct batches *session, const struct dataset *dataset)
{
	follow_linked(session, dataset->definitions, dataset->definition_count);
	follow_linked(session, dataset->workloads, dataset->workload_count);
	follow_linked(session, dataset->truths, dataset->truth_count);
	follow_linked(session, dataset->approvals, dataset->approval_count);
}

static void on_result(struct run *run, struct result *result)
{
	struct part *part = (struct part *)run;
	struct batch *batch = part->batch;
	struct batches *session = batch->session;

	/* some filesystems cache directory listings for a second, so a listed definition may no longer exist */
	if (result->definition_check.absent) {
		forget_gone(part, result->file->path);
		return;
	}
	if (result->changed && !result->put_back) /* a file changed during the run: the event of this change starts
						   * another batch */
		return;
	struct last_status last = last_status_of(batch, result);

	if (is_unchanged(batch, result)) {
		last.batch = last_statuses_find(&session->table, result->file->path)->last.batch;
		last_statuses_set(&session->table, result->file->path, &last);
		return;
	}
	report_changed(part);
	last.batch = batch->counts.number;
	batch->counts.seconds = batch_clock() - batch->noticed;
	count_result(batch, result->file->path, &last);
	exec_name(&session->exec, result->file->op_type, result->file->name, result->status);
	print_result(&session->output, &batch->counts, result);
	if (batch->options.urgent)
		fflush(stdout); /* shows the verdict to the user before it is stored */
}

static int compare_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

static bool contains(const struct dataset *dataset, const char *path)
{
	return dataset->definition_count > 0 && bsearch(path, dataset->definitions, (size_t)dataset->definition_count,
	                                                sizeof *dataset->definitions, compare_path) != NULL;
}

/* Reports which of the definitions at `paths` no longer exist. If `paths` is NULL, checks all known definitions. */
static void report_deleted(struct part *part, const char *const *paths, int count)
{
	struct batch *batch = part->batch;
	struct last_statuses *table = &batch->session->table;
	struct arena arena = {0};
	const char **known;

	if (paths == NULL) {
		count = last_statuses_paths(table, "", &arena, &known);
		paths = known;
	}
	for (int i = 0; i < count; i++)
		if (!contains(&part->run.dataset, paths[i]))
			forget_gone(part, paths[i]);
	arena_free(&arena);
}

/* Counts a definition that has passed according to its stored summary. No verdict is printed for such a definition. */
static void on_counted(struct run *run, const struct result *result)
{
	struct batch *batch = ((struct part *)run)->batch;
	const struct last_status last = last_status_of(batch, result);

	count_result(batch, result->file->path, &last);
}

/* ---- a batch's life
 * ----------------------------------------------------------------------------------------------- */

static void free_part(struct part *part)
{
	run_close(&part->run);
	arena_free(&part->arena);
	free(part);
}

static void free_batch(struct batch *batch)
{
	bool large = batch->counts.definitions > BATCH_SMALL;

	while (batch->parts != NULL) {
		struct part *part = batch->parts;

		batch->parts = part->next;
		free_part(part);
	}
	free(batch);
	if (large)
		malloc_trim(0); /* return unused memory to the system, because a watcher may run for days */
}

/* Removes the definitions at `paths` from older batches, because only the result for a definition's newest content is
 * reported. */
static void drop_from_older(struct batches *session, const char *const *paths, int count)
{
	for (struct batch *batch = session->first; batch != NULL; batch = batch->next)
		for (struct part *part = batch->parts; part != NULL; part = part->next)
			for (int i = 0; i < count; i++)
				if (contains(&part->run.dataset, paths[i]))
					run_drop(&part->run, paths[i]);
}

/* Returns the open batch. If no batch is open, appends a new batch to the list and returns it. */
static struct batch *batch_for(struct batches *session, const char *const *paths, int count, int how, double noticed)
{
	struct batch **end = &session->first;

	for (; *end != NULL; end = &(*end)->next)
		if ((*end)->open && (how & BATCH_RECHECK) == 0)
			return *end;
	struct batch *batch = *end = calloc(1, sizeof *batch);

	if (batch == NULL)
		die_no_memory();
	batch->session = session;
	batch->noticed = noticed;
	batch->open = (how & BATCH_OPEN) != 0;
	batch->repeat = (how & BATCH_REPEAT) != 0;
	if ((how & BATCH_RECHECK) == 0) /* a batch with BATCH_RECHECK gets a number only when it has something to
					 * report */
		batch->counts.number = ++session->begun;
	batch->options = session->options;
	batch->recheck = batch->options.thorough = (how & BATCH_RECHECK) != 0;
	batch->options.urgent = paths != NULL && !batch->open && !batch->recheck && count <= BATCH_SMALL;
	batch->options.details = batch->options.urgent || batch->repeat;
	batch->options.force = (how & BATCH_FORCE) != 0;
	batch->options.each = paths != NULL;
	batch->whole = paths == NULL;
	return batch;
}

static const char *const *copy_paths(struct arena *arena, const char *const *paths, int count)
{
	const char **copy = paths == NULL ? NULL : arena_array(arena, (size_t)count, sizeof *copy);

	for (int i = 0; i < count && copy != NULL; i++)
		copy[i] = arena_string(arena, paths[i]);
	return copy;
}

static int add_part(struct batch *batch, const char *const *paths, int count, struct err *err)
{
	struct batches *session = batch->session;
	struct part *part = calloc(1, sizeof *part);

	if (part == NULL)
		die_no_memory();
	part->batch = batch;
	int code = run_open_some(&part->run, session->program, &batch->options, &session->machine, paths, count, err);

	if (code == 0)
		follow_hard_links(session, &part->run.dataset);
	if (code != 0 || run_begin(&part->run, err) < 0) {
		free_part(part);
		return -1;
	}
	/* What is known was verified under other conditions. A verdict that was replaced since then is one of them. */
	if (!digest_equal(&session->context, &part->run.context))
		last_statuses_stop_answering(&session->table);
	session->context = part->run.context;
	part->run.summary_lru = &session->summary_lru;
	run_lend(&part->run, pool_runner(session->pool), &batch->equal_cases);
	if (session->pool == NULL && part->run.machine.cannot_run == NULL)
		run_give_up(&part->run, "the processes that run references cannot be started");
	part->run.on_result = on_result;
	part->run.on_counted = on_counted;
	part->run.on_blob = on_blob;
	part->next = batch->parts;
	batch->parts = part;
	batch->counts.definitions += part->run.selected_count;
	part->paths = copy_paths(&part->arena, paths, count);
	part->path_count = count;
	report_deleted(part, paths, count);
	for (int i = 0; i < part->run.selected_count && !batch->recheck; i++)
		last_statuses_invalidate(&session->table, part->run.selected[i]->path);
	return 0;
}

int batches_begin(struct batches *session, const char *const *paths, int count, int how, double noticed,
		  struct err *err)
{
	if (paths == NULL)
		batches_abandon(session);
	else if ((how & BATCH_RECHECK) == 0)
		drop_from_older(session, paths, count);
	open_pool(session);
	return add_part(batch_for(session, paths, count, how, noticed), paths, count, err);
}

void batches_seal(struct batches *session)
{
	for (struct batch *batch = session->first; batch != NULL; batch = batch->next)
		batch->open = false;
}

static void plan_part(struct part *part, int64_t end)
{
	const struct pool *pool = part->batch->session->pool;

	while (!part->planned && (pool == NULL || pool_pending(pool) < PENDING_MOST) && clock_ms() < end)
		if (!run_visit(&part->run)) {
			part->planned = true;
			if (part->run.waiting > 0)
				report_changed(part);
		}
}

/* Plans the parts of a batch until the time `end`. Returns true if all parts are planned and no part will be added. */
static bool plan_batch(struct batch *batch, int64_t end)
{
	bool planned = !batch->open;

	for (struct part *part = batch->parts; part != NULL; part = part->next) {
		plan_part(part, end);
		planned = planned && part->planned;
	}
	return planned;
}

static void count_cases(struct batch *batch)
{
	struct batch_counts *counts = &batch->counts;

	counts->cases_planned = counts->cases_run = counts->cases_cached = 0;
	for (const struct part *part = batch->parts; part != NULL; part = part->next) {
		counts->cases_planned += part->run.cases_planned;
		counts->cases_run += part->run.cases_run;
		counts->cases_cached += part->run.cases_cached;
	}
	counts->seconds = batch_clock() - batch->noticed;
}

/* Plans the batches with BATCH_RECHECK if `recheck` is true, else the other batches. Returns true if some definitions
 * of these batches are not planned yet. */
static bool plan_some(struct batches *session, bool recheck, int64_t end)
{
	bool room = session->pool == NULL || pool_pending(session->pool) < PENDING_MOST, more = false;

	for (struct batch *batch = session->first; batch != NULL; batch = batch->next) {
		if (batch->planned || batch->recheck != recheck)
			continue;
		batch->planned = plan_batch(batch, end);
		if (batch->planned && (batch->said || batch->whole)) {
			count_cases(batch);
			print_planned(&session->output, &batch->counts);
		}
		for (const struct part *part = batch->parts; part != NULL; part = part->next)
			more = more || (!part->planned && room);
	}
	return more;
}

bool batches_plan(struct batches *session)
{
	int64_t end = clock_ms() + PLAN_MS;

	return plan_some(session, false, end) || plan_some(session, true, end);
}

/* Prints why verdicts cannot be stored, unless the last printed reason was the same. */
static void report_store_error(struct batches *session, const char *why)
{
	if (why != NULL && strcmp(why, session->store_error) != 0) {
		struct err sentence;

		err_set(&sentence, "cannot store the verdicts: %s", why);
		print_notice(&session->output, sentence.text);
	}
	snprintf(session->store_error, sizeof session->store_error, "%s", why != NULL ? why : "");
}

static bool is_done(const struct batch *batch)
{
	bool done = batch->planned;

	for (const struct part *part = batch->parts; part != NULL; part = part->next)
		done = done && run_done(&part->run);
	return done;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Finds the definitions of a batch that got their results from summaries in memory (engine/summary_lru.h) and not from
 * the store. Sets `paths` to the sorted paths of these definitions, without duplicates, and returns their number. */
static int lru_paths(const struct batch *batch, struct arena *arena, const char ***paths)
{
	int most = 0, found = 0, kept = 0;

	for (const struct part *part = batch->parts; part != NULL; part = part->next)
		most += part->run.count;
	*paths = arena_array(arena, (size_t)most, sizeof **paths);
	for (const struct part *part = batch->parts; part != NULL; part = part->next)
		for (int i = 0; i < part->run.count; i++)
			if (part->run.results[i]->from_lru)
				(*paths)[found++] = part->run.results[i]->file->path;
	if (found > 1)
		qsort(*paths, (size_t)found, sizeof **paths, compare_text);
	for (int i = 0; i < found; i++)
		if (kept == 0 || strcmp((*paths)[kept - 1], (*paths)[i]) != 0)
			(*paths)[kept++] = (*paths)[i];
	return kept;
}

/* Call this if a run could not store all its verdicts. The store may then lack verdicts that were reported, so the
 * watcher answers no query with them. */
static void answer_nothing_of(struct last_statuses *table, const struct run *run)
{
	for (int i = 0; i < run->count; i++) {
		const struct status_row *entry = last_statuses_find(table, run->results[i]->file->path);
		struct last_status last;

		if (entry == NULL || !entry->known)
			continue;
		last = entry->last;
		last.answers = false;
		last_statuses_set(table, entry->path, &last);
	}
}

/* Starts a low-priority batch for the definitions whose results came from summaries in memory. These results are
 * already reported. But the store's table `latest` still describes older contents of these definitions' files, and
 * `cache export` reads this table. The batch looks up the verdicts in the store and updates the table. */
static void recheck_later(const struct batch *batch)
{
	struct arena arena = {0};
	struct err err = {""};
	const char **paths;
	int count = lru_paths(batch, &arena, &paths);

	if (count > 0 && batches_begin(batch->session, paths, count, BATCH_RECHECK, batch_clock(), &err) < 0)
		trace("watch", "cannot recheck the definitions with a remembered summary: %s", err.text);
	arena_free(&arena);
}

static void finish(struct batch *batch)
{
	struct batches *session = batch->session;
	const char *not_stored = NULL;
	struct err err = {""};
	int verdicts = 0;

	for (struct part *part = batch->parts; part != NULL; part = part->next) {
		run_end(&part->run);
		if (part->run.not_stored != NULL)
			answer_nothing_of(&session->table, &part->run);
		not_stored = part->run.not_stored != NULL ? part->run.not_stored : not_stored;
	}
	report_store_error(session, not_stored);
	count_cases(batch);
	for (int s = 0; s < STATUS_COUNT; s++)
		verdicts += batch->counts.verdicts[s];
	if (verdicts + batch->counts.gone == 0 && !batch->whole) /* the batch has no result to report */
		return;
	batch->counts.definitions = verdicts;
	/* if the root could not be read, the batch has no parts */
	const struct dataset *whole = batch->whole && batch->parts != NULL ? &batch->parts->run.dataset : NULL;

	/* updates the generated files before the batch is reported and the command of --exec starts */
	autoupdate_update(&session->autoupdate, session->program, whole, &session->output);
	batch->counts.written = autoupdate_written(&session->autoupdate);
	print_batch(&session->output, &batch->counts);
	if (exec_run(&session->exec, &err) < 0)
		print_notice(&session->output, err.text);
}

bool batches_finish(struct batches *session)
{
	bool any = false;

	for (struct batch **at = &session->first; *at != NULL;) {
		struct batch *batch = *at;

		if (!is_done(batch)) {
			at = &batch->next;
			continue;
		}
		finish(batch);
		recheck_later(batch); /* recheck_later may append a batch, which this loop then visits, too */
		*at = batch->next;
		free_batch(batch);
		any = true;
	}
	return any;
}

void batches_update_tests(struct batches *session)
{
	if (session->first == NULL && autoupdate_is_due(&session->autoupdate, session->program->root))
		autoupdate_update(&session->autoupdate, session->program, NULL, &session->output);
}

static void abandon_run(struct batches *session, struct run *run)
{
	for (int i = 0; i < run->count && session->pool != NULL; i++)
		if (run->results[i]->waiting)
			pool_cancel(session->pool, run->results[i]);
	run->interrupted = true;
	run_end(run);
}

void batches_abandon(struct batches *session)
{
	while (session->first != NULL) {
		struct batch *batch = session->first;

		for (struct part *part = batch->parts; part != NULL; part = part->next)
			abandon_run(session, &part->run);
		session->first = batch->next;
		free_batch(batch);
	}
}

void batches_close(struct batches *session)
{
	batches_abandon(session);
	if (session->pool != NULL)
		pool_close(session->pool);
	exec_close(&session->exec);
	last_statuses_free(&session->table);
	summary_lru_free(&session->summary_lru);
}

int batches_under_way(const struct batches *session)
{
	int count = 0;

	for (const struct batch *batch = session->first; batch != NULL; batch = batch->next)
		count += !batch->open && !batch->recheck;
	return count;
}

bool batches_planned(const struct batches *session)
{
	const struct batch *batch = session->first;

	while (batch != NULL && (batch->planned || batch->recheck)) /* skips rechecks, because their results are already
								     * reported */
		batch = batch->next;
	return batch == NULL;
}

struct progress batches_progress(const struct batches *session)
{
	struct progress progress = {0};

	for (const struct batch *batch = session->first; batch != NULL; batch = batch->next) {
		if (batch->recheck)
			continue;
		progress.definitions += batch->counts.definitions;
		for (const struct part *part = batch->parts; part != NULL; part = part->next) {
			progress.waiting += part->run.waiting + part->run.selected_count - part->run.visited;
			for (int i = 0; i < part->run.count && progress.name == NULL; i++)
				if (part->run.results[i]->waiting)
					progress.name = part->run.results[i]->file->name;
		}
	}
	return progress;
}
