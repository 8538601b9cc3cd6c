#include "commands/batches.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "workers/crew.h"

/* Planning pauses for events this often, and while the pool has so many cases that more would only take memory. */
enum { PLAN_MS = 5, PENDING_MOST = 16384 };

struct batch {
	struct pass pass; /* first: pass->told finds its batch */
	struct pass_options options;
	struct batches *batches;
	struct batch *next;
	struct batch_counts counts;
	double noticed;
	bool whole;   /* of everything */
	bool planned;
};

double batch_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the pool --------------------------------------------------------------------------------------------------- */

void batches_warm(struct batches *batches)
{
	struct err err = {""};

	if (batches->pool != NULL || batches->machine.cannot_run != NULL)
		return;
	batches->pool = pass_open_pool(batches->reftest, &batches->options, &batches->machine, &err);
	if (batches->pool == NULL)
		tell_notice(&batches->teller, err.text);
	else
		pool_warm(batches->pool);
}

static void pool_broke(struct batches *batches, const char *why)
{
	tell_notice(&batches->teller, why);
	pool_close(batches->pool);
	batches->pool = NULL;
	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next) {
		pass_lend(&batch->pass, NULL);
		pass_give_up(&batch->pass, why);
	}
}

void batches_dispatch(struct batches *batches)
{
	struct err err = {""};

	if (batches->pool == NULL)
		return;
	int rc = pool_dispatch(batches->pool, &err);

	pass_take_results(batches->pool);
	if (rc < 0)
		pool_broke(batches, err.text);
}

/* ---- what a pass tells -------------------------------------------------------------------------------------------- */

static void told(struct pass *pass, struct outcome *outcome)
{
	struct batch *batch = (struct batch *)pass;
	struct batches *batches = batch->batches;

	if (outcome->changed) /* a change that will be, or has been, heard of: the newer text is the one to tell of */
		return;
	batch->counts.seconds = batch_clock() - batch->noticed;
	batch->counts.told[outcome->status]++;
	roll_set(&batches->roll, outcome->file->path, outcome->status, outcome->reason);
	hook_name(&batches->hook, outcome->file->op_type, outcome->file->name, outcome->status);
	tell_outcome(&batches->teller, &batch->counts, outcome);
}

static void gone(struct batch *batch, const char *path)
{
	if (!roll_forget(&batch->batches->roll, path))
		return;
	batch->counts.gone++;
	tell_gone(&batch->batches->teller, &batch->counts, path);
}

static int compare_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

static bool is_there(const struct dataset *dataset, const char *path)
{
	return dataset->definition_count > 0 && bsearch(path, dataset->definitions, (size_t)dataset->definition_count,
	                                                sizeof *dataset->definitions, compare_path) != NULL;
}

/* Of `paths`, or of all that were known, those that are no more. */
static void tell_vanished(struct batch *batch, const char *const *paths, int count)
{
	struct arena arena = {0};

	if (paths == NULL) {
		const char **known;

		count = roll_paths(&batch->batches->roll, "", &arena, &known);
		paths = known;
	}
	for (int i = 0; i < count; i++)
		if (!is_there(&batch->pass.dataset, paths[i]))
			gone(batch, paths[i]);
	arena_free(&arena);
}

/* Definitions that a summary answered as passed, and that nothing else is told of. */
static void count_answered(struct batch *batch)
{
	struct pass *pass = &batch->pass;
	int at = 0;

	for (int i = 0; i < pass->selected_count; i++) {
		if (pass->selected[i] == NULL)
			continue;
		if (at < pass->count && pass->outcomes[at]->file == pass->selected[i]) {
			at++;
			continue;
		}
		roll_set(&batch->batches->roll, pass->selected[i]->path, STATUS_PASSED, REASON_NONE);
		batch->counts.told[STATUS_PASSED]++;
	}
}

/* ---- a batch's life ----------------------------------------------------------------------------------------------- */

static void free_batch(struct batch *batch)
{
	bool large = batch->counts.definitions > BATCH_SMALL;

	pass_close(&batch->pass);
	free(batch);
	if (large)
		malloc_trim(0); /* we sit here for days */
}

/* The newest text wins. */
static void drop_from_older(struct batches *batches, const char *const *paths, int count)
{
	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next)
		for (int i = 0; i < count; i++)
			pass_drop(&batch->pass, paths[i]);
}

static void append(struct batches *batches, struct batch *batch)
{
	struct batch **end = &batches->first;

	while (*end != NULL)
		end = &(*end)->next;
	*end = batch;
}

static void choose_options(struct batch *batch, const char *const *paths, int count)
{
	bool few = paths != NULL && count <= BATCH_SMALL;

	batch->whole = paths == NULL;
	batch->options = batch->batches->options;
	batch->options.details = batch->options.urgent = few;
	batch->options.each = paths != NULL;
}

int batches_begin(struct batches *batches, const char *const *paths, int count, double noticed, struct err *err)
{
	struct batch *batch = calloc(1, sizeof *batch);

	if (batch == NULL)
		die_no_memory();
	if (paths == NULL)
		batches_abandon(batches);
	else
		drop_from_older(batches, paths, count);
	batch->batches = batches;
	batch->noticed = noticed;
	choose_options(batch, paths, count);
	batches_warm(batches);
	if (pass_open_some(&batch->pass, batches->reftest, &batch->options, &batches->machine, paths, count, err) != 0 ||
	    pass_begin(&batch->pass, err) < 0) {
		free_batch(batch);
		return -1;
	}
	if (batches->pool != NULL)
		pass_lend(&batch->pass, batches->pool);
	else if (batch->pass.machine.cannot_run == NULL)
		pass_give_up(&batch->pass, "no runner can be had");
	batch->pass.told = told;
	batch->counts.definitions = batch->pass.selected_count;
	batch->counts.number = batches->begun + 1;
	tell_vanished(batch, paths, count);
	if (paths != NULL && batch->pass.selected_count == 0 && batch->counts.gone == 0) {
		free_batch(batch); /* a file that came and went, or was none of the dataset's */
		return 0;
	}
	batches->begun++;
	if (paths != NULL)
		tell_changed(&batches->teller, &batch->counts, paths, count);
	for (int i = 0; i < batch->pass.selected_count; i++)
		roll_doubt(&batches->roll, batch->pass.selected[i]->path);
	append(batches, batch);
	return 0;
}

static void planned(struct batch *batch)
{
	batch->planned = true;
	if (!batch->options.each)
		count_answered(batch);
	batch->counts.seconds = batch_clock() - batch->noticed;
	tell_planned(&batch->batches->teller, &batch->counts, &batch->pass);
}

bool batches_plan(struct batches *batches)
{
	int64_t end = clock_ms() + PLAN_MS;
	bool more = false;

	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next) {
		bool room = true;

		while (!batch->planned && (room = batches->pool == NULL || pool_pending(batches->pool) < PENDING_MOST) &&
		       clock_ms() < end)
			if (!pass_visit(&batch->pass))
				planned(batch);
		more = more || (!batch->planned && room);
	}
	return more;
}

/* One sentence for as long as it is the same. */
static void complain(struct batches *batches, const char *why)
{
	if (why != NULL && strcmp(why, batches->complaint) != 0) {
		struct err sentence;

		err_set(&sentence, "the verdicts cannot be kept: %s", why);
		tell_notice(&batches->teller, sentence.text);
	}
	snprintf(batches->complaint, sizeof batches->complaint, "%s", why != NULL ? why : "");
}

static void finish(struct batch *batch)
{
	struct batches *batches = batch->batches;
	struct err err = {""};
	int verdicts = 0;

	pass_end(&batch->pass);
	complain(batches, batch->pass.not_kept);
	batch->counts.seconds = batch_clock() - batch->noticed;
	for (int s = 0; s < STATUS_COUNT; s++)
		verdicts += batch->counts.told[s];
	if (verdicts + batch->counts.gone == 0) /* all of it was overtaken by newer texts */
		return;
	tell_batch(&batches->teller, &batch->counts, &batch->pass);
	if (hook_run(&batches->hook, &err) < 0)
		tell_notice(&batches->teller, err.text);
}

void batches_finish(struct batches *batches)
{
	for (struct batch **at = &batches->first; *at != NULL;) {
		struct batch *batch = *at;

		if (!batch->planned || !pass_done(&batch->pass)) {
			at = &batch->next;
			continue;
		}
		finish(batch);
		*at = batch->next;
		free_batch(batch);
	}
}

void batches_abandon(struct batches *batches)
{
	while (batches->first != NULL) {
		struct batch *batch = batches->first;

		for (int i = 0; i < batch->pass.count && batches->pool != NULL; i++)
			if (batch->pass.outcomes[i]->waiting)
				pool_cancel(batches->pool, batch->pass.outcomes[i]);
		batch->pass.interrupted = true;
		pass_end(&batch->pass);
		batches->first = batch->next;
		free_batch(batch);
	}
}

void batches_close(struct batches *batches)
{
	batches_abandon(batches);
	if (batches->pool != NULL)
		pool_close(batches->pool);
	hook_close(&batches->hook);
	roll_free(&batches->roll);
}
