#include "commands/batches.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/trace.h"
#include "commands/blob_path.h"
#include "workers/crew.h"

/* Planning pauses for events this often, and while the pool has so many cases that more would only take memory. */
enum { PLAN_MS = 5, PENDING_MOST = 16384 };

/* What changed together is one pass; while git goes on changing files, what it changed next is another of the same
 * batch, so that all is planned when it ends. */
struct part {
	struct pass pass; /* first: pass->told finds its part */
	struct batch *batch;
	struct part *next;
	const char *const *paths; /* NULL: everything */
	int path_count;
	bool said;                /* that these changed */
	bool planned;
	struct arena arena;
};

struct batch {
	struct part *parts;      /* newest first */
	struct flights flights;  /* of all parts */
	struct pass_options options;
	struct batches *batches;
	struct batch *next;
	struct batch_counts counts;
	double noticed;
	bool whole;   /* of everything */
	bool repeat;  /* what is no news is told, too */
	bool again;   /* BATCH_AGAIN */
	bool open;    /* more parts may come */
	bool planned; /* and told so, if there was anything to say */
	bool said;
};

double batch_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the pool --------------------------------------------------------------------------------------------------- */

/* Once for as long as it is the same. */
static void tell_trouble(struct batches *batches, const char *why)
{
	if (strcmp(why, batches->trouble) != 0)
		tell_notice(&batches->teller, why);
	snprintf(batches->trouble, sizeof batches->trouble, "%s", why);
}

static void open_pool(struct batches *batches)
{
	struct err err = {""};

	if (batches->pool != NULL || batches->machine.cannot_run != NULL)
		return;
	batches->pool = pass_open_pool(batches->reftest, &batches->options, &batches->machine, &err);
	if (batches->pool == NULL)
		tell_trouble(batches, err.text);
	else if (batches->warm)
		pool_warm(batches->pool);
}

void batches_warm(struct batches *batches)
{
	batches->warm = true;
	if (batches->pool != NULL)
		pool_warm(batches->pool);
	else
		open_pool(batches);
}

static void pool_broke(struct batches *batches, const char *why)
{
	tell_trouble(batches, why);
	pool_close(batches->pool);
	batches->pool = NULL;
	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next)
		for (struct part *part = batch->parts; part != NULL; part = part->next) {
			pass_lend(&part->pass, NULL, &batch->flights);
			pass_give_up(&part->pass, why);
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

/* Before the first thing that is said of them. */
static void say_changed(struct part *part)
{
	if (part->batch->counts.number == 0)
		part->batch->counts.number = ++part->batch->batches->begun;
	if (!part->said && part->paths != NULL)
		tell_changed(&part->batch->batches->teller, &part->batch->counts, part->paths, part->path_count);
	part->said = part->batch->said = true;
}

static struct word word_of(const struct batch *batch, const struct outcome *outcome)
{
	return (struct word){outcome->status, outcome->reason, outcome->counts.cases, outcome->counts.elements,
	                     batch->counts.number, outcome->inputs};
}

/* The same contents, and the same word on them: a file was touched, or written as it was. */
static bool is_no_news(const struct batch *batch, const struct outcome *outcome)
{
	const struct roll_entry *before = roll_find(&batch->batches->roll, outcome->file->path);

	if (batch->whole || batch->repeat || before == NULL || before->word.batch == 0 || outcome->started > 0)
		return false;
	return before->word.status == outcome->status && before->word.reason == outcome->reason &&
	       digest_equal(&before->word.inputs, &outcome->inputs);
}

static void count_told(struct batch *batch, const char *path, const struct word *word)
{
	struct roll *roll = &batch->batches->roll;
	const struct roll_entry *before = roll_find(roll, path);

	if (before != NULL && before->word.batch == batch->counts.number) /* changed again while the batch was open */
		batch->counts.told[before->word.status]--;
	batch->counts.told[word->status]++;
	roll_set(roll, path, word);
}

static void forget_gone(struct part *part, const char *path)
{
	struct batch *batch = part->batch;

	if (!roll_forget(&batch->batches->roll, path))
		return;
	say_changed(part);
	batch->counts.gone++;
	hook_forget(&batch->batches->hook, arena_printf(&part->arena, "%.*s", (int)(strlen(path) - strlen("definitions/.json")),
	                                                path + strlen("definitions/")));
	tell_gone(&batch->batches->teller, &batch->counts, path);
}

/* Before it is read: what is done to it afterwards is to be heard of. */
static void looks_at(struct pass *pass, const char *blob)
{
	const struct batches *batches = ((struct part *)pass)->batch->batches;
	if (!blob_path_is_watched(blob))
		batches->follow(blob, batches->follow_context);
}

static void told(struct pass *pass, struct outcome *outcome)
{
	struct part *part = (struct part *)pass;
	struct batch *batch = part->batch;
	struct batches *batches = batch->batches;

	if (outcome->definition_look.absent) { /* it was listed (some filesystems remember names for a second), and is gone */
		forget_gone(part, outcome->file->path);
		return;
	}
	if (outcome->changed && !outcome->put_back) /* a change that will be, or has been, heard of: the newer text is the one to tell of */
		return;
	struct word word = word_of(batch, outcome);

	if (is_no_news(batch, outcome)) {
		word.batch = roll_find(&batches->roll, outcome->file->path)->word.batch;
		roll_set(&batches->roll, outcome->file->path, &word);
		return;
	}
	say_changed(part);
	word.batch = batch->counts.number;
	batch->counts.seconds = batch_clock() - batch->noticed;
	count_told(batch, outcome->file->path, &word);
	hook_name(&batches->hook, outcome->file->op_type, outcome->file->name, outcome->status);
	tell_outcome(&batches->teller, &batch->counts, outcome);
	if (batch->options.urgent)
		fflush(stdout); /* before anything is stored */
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

/* Of `paths` (NULL: of all that were known) those that are no more. */
static void tell_vanished(struct part *part, const char *const *paths, int count)
{
	struct batch *batch = part->batch;
	struct roll *roll = &batch->batches->roll;
	struct arena arena = {0};
	const char **known;

	if (paths == NULL) {
		count = roll_paths(roll, "", &arena, &known);
		paths = known;
	}
	for (int i = 0; i < count; i++)
		if (!is_there(&part->pass.dataset, paths[i]))
			forget_gone(part, paths[i]);
	arena_free(&arena);
}

/* Definitions that a summary answered as passed, and that nothing else is told of. */
static void counted(struct pass *pass, const struct outcome *outcome)
{
	struct batch *batch = ((struct part *)pass)->batch;
	const struct word word = word_of(batch, outcome);

	count_told(batch, outcome->file->path, &word);
}

/* ---- a batch's life ----------------------------------------------------------------------------------------------- */

static void free_part(struct part *part)
{
	pass_close(&part->pass);
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
		malloc_trim(0); /* we sit here for days */
}

/* The newest text wins. */
static void drop_from_older(struct batches *batches, const char *const *paths, int count)
{
	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next)
		for (struct part *part = batch->parts; part != NULL; part = part->next)
			for (int i = 0; i < count; i++)
				if (is_there(&part->pass.dataset, paths[i]))
					pass_drop(&part->pass, paths[i]);
}

/* The batch that is open still, or a new one at the end. */
static struct batch *batch_for(struct batches *batches, const char *const *paths, int count, int how, double noticed)
{
	struct batch **end = &batches->first;

	for (; *end != NULL; end = &(*end)->next)
		if ((*end)->open && (how & BATCH_AGAIN) == 0)
			return *end;
	struct batch *batch = *end = calloc(1, sizeof *batch);

	if (batch == NULL)
		die_no_memory();
	batch->batches = batches;
	batch->noticed = noticed;
	batch->open = (how & BATCH_OPEN) != 0;
	batch->repeat = (how & BATCH_REPEAT) != 0;
	if ((how & BATCH_AGAIN) == 0) /* of which there is nothing to tell, unless somebody emptied the cache */
		batch->counts.number = ++batches->begun;
	batch->options = batches->options;
	batch->again = batch->options.thorough = (how & BATCH_AGAIN) != 0;
	batch->options.urgent = paths != NULL && !batch->open && !batch->again && count <= BATCH_SMALL;
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
	struct batches *batches = batch->batches;
	struct part *part = calloc(1, sizeof *part);

	if (part == NULL)
		die_no_memory();
	part->batch = batch;
	if (pass_open_some(&part->pass, batches->reftest, &batch->options, &batches->machine, paths, count, err) != 0 ||
	    pass_begin(&part->pass, err) < 0) {
		free_part(part);
		return -1;
	}
	batches->context = part->pass.context;
	part->pass.recall = &batches->recall;
	pass_lend(&part->pass, batches->pool, &batch->flights);
	if (batches->pool == NULL && part->pass.machine.cannot_run == NULL)
		pass_give_up(&part->pass, "no runner can be had");
	part->pass.told = told;
	part->pass.counted = counted;
	part->pass.looks_at = looks_at;
	part->next = batch->parts;
	batch->parts = part;
	batch->counts.definitions += part->pass.selected_count;
	part->paths = copy_paths(&part->arena, paths, count);
	part->path_count = count;
	tell_vanished(part, paths, count);
	for (int i = 0; i < part->pass.selected_count && !batch->again; i++)
		roll_doubt(&batches->roll, part->pass.selected[i]->path);
	return 0;
}

int batches_begin(struct batches *batches, const char *const *paths, int count, int how, double noticed,
                  struct err *err)
{
	if (paths == NULL)
		batches_abandon(batches);
	else if ((how & BATCH_AGAIN) == 0)
		drop_from_older(batches, paths, count);
	open_pool(batches);
	return add_part(batch_for(batches, paths, count, how, noticed), paths, count, err);
}

void batches_seal(struct batches *batches)
{
	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next)
		batch->open = false;
}

static void plan_part(struct part *part, int64_t end)
{
	const struct pool *pool = part->batch->batches->pool;

	while (!part->planned && (pool == NULL || pool_pending(pool) < PENDING_MOST) && clock_ms() < end)
		if (!pass_visit(&part->pass)) {
			part->planned = true;
			if (part->pass.waiting > 0)
				say_changed(part);
		}
}

/* true: all parts are planned, and no other will come. */
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
		counts->cases_planned += part->pass.cases_planned;
		counts->cases_run += part->pass.cases_run;
		counts->cases_cached += part->pass.cases_cached;
	}
	counts->seconds = batch_clock() - batch->noticed;
}

/* Of those that somebody waits for, or of those that are looked at again. */
static bool plan_some(struct batches *batches, bool again, int64_t end)
{
	bool room = batches->pool == NULL || pool_pending(batches->pool) < PENDING_MOST, more = false;

	for (struct batch *batch = batches->first; batch != NULL; batch = batch->next) {
		if (batch->planned || batch->again != again)
			continue;
		batch->planned = plan_batch(batch, end);
		if (batch->planned && (batch->said || batch->whole)) {
			count_cases(batch);
			tell_planned(&batches->teller, &batch->counts);
		}
		for (const struct part *part = batch->parts; part != NULL; part = part->next)
			more = more || (!part->planned && room);
	}
	return more;
}

bool batches_plan(struct batches *batches)
{
	int64_t end = clock_ms() + PLAN_MS;

	return plan_some(batches, false, end) || plan_some(batches, true, end);
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

static bool is_done(const struct batch *batch)
{
	bool done = batch->planned;

	for (const struct part *part = batch->parts; part != NULL; part = part->next)
		done = done && pass_done(&part->pass);
	return done;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Those of a batch that a summary of an earlier time has answered; sorted, each once. */
static int recalled_paths(const struct batch *batch, struct arena *arena, const char ***paths)
{
	int most = 0, found = 0, kept = 0;

	for (const struct part *part = batch->parts; part != NULL; part = part->next)
		most += part->pass.count;
	*paths = arena_array(arena, (size_t)most, sizeof **paths);
	for (const struct part *part = batch->parts; part != NULL; part = part->next)
		for (int i = 0; i < part->pass.count; i++)
			if (part->pass.outcomes[i]->recalled)
				(*paths)[found++] = part->pass.outcomes[i]->file->path;
	if (found > 1)
		qsort(*paths, (size_t)found, sizeof **paths, compare_text);
	for (int i = 0; i < found; i++)
		if (kept == 0 || strcmp((*paths)[kept - 1], (*paths)[i]) != 0)
			(*paths)[kept++] = (*paths)[i];
	return kept;
}

/* They are told by now. What was last seen of their cases (the table `latest`, of which exports are made) is of other contents
 * yet, and is brought up to date at leisure. */
static void look_again(const struct batch *batch)
{
	struct arena arena = {0};
	struct err err = {""};
	const char **paths;
	int count = recalled_paths(batch, &arena, &paths);

	if (count > 0 && batches_begin(batch->batches, paths, count, BATCH_AGAIN, batch_clock(), &err) < 0)
		trace("watch", "what was recalled is not looked at again: %s", err.text);
	arena_free(&arena);
}

static void finish(struct batch *batch)
{
	struct batches *batches = batch->batches;
	const char *not_kept = NULL;
	struct err err = {""};
	int verdicts = 0;

	for (struct part *part = batch->parts; part != NULL; part = part->next) {
		pass_end(&part->pass);
		not_kept = part->pass.not_kept != NULL ? part->pass.not_kept : not_kept;
	}
	complain(batches, not_kept);
	count_cases(batch);
	for (int s = 0; s < STATUS_COUNT; s++)
		verdicts += batch->counts.told[s];
	if (verdicts + batch->counts.gone == 0 && !batch->whole) /* no news, or all of it was overtaken by newer texts */
		return;
	batch->counts.definitions = verdicts;
	/* Without a part the root could not be read: nobody knows what is in it. */
	const struct dataset *whole = batch->whole && batch->parts != NULL ? &batch->parts->pass.dataset : NULL;

	/* Before the batch is told as done, and the command of --exec runs. */
	upkeep_update(&batches->upkeep, batches->reftest, whole, &batches->teller);
	batch->counts.written = upkeep_written(&batches->upkeep);
	tell_batch(&batches->teller, &batch->counts);
	if (hook_run(&batches->hook, &err) < 0)
		tell_notice(&batches->teller, err.text);
}

bool batches_finish(struct batches *batches)
{
	bool any = false;

	for (struct batch **at = &batches->first; *at != NULL;) {
		struct batch *batch = *at;

		if (!is_done(batch)) {
			at = &batch->next;
			continue;
		}
		finish(batch);
		look_again(batch); /* which may be put behind this one */
		*at = batch->next;
		free_batch(batch);
		any = true;
	}
	return any;
}

void batches_keep(struct batches *batches)
{
	if (batches->first == NULL && upkeep_is_due(&batches->upkeep, batches->reftest->root))
		upkeep_update(&batches->upkeep, batches->reftest, NULL, &batches->teller);
}

static void abandon_pass(struct batches *batches, struct pass *pass)
{
	for (int i = 0; i < pass->count && batches->pool != NULL; i++)
		if (pass->outcomes[i]->waiting)
			pool_cancel(batches->pool, pass->outcomes[i]);
	pass->interrupted = true;
	pass_end(pass);
}

void batches_abandon(struct batches *batches)
{
	while (batches->first != NULL) {
		struct batch *batch = batches->first;

		for (struct part *part = batch->parts; part != NULL; part = part->next)
			abandon_pass(batches, &part->pass);
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
	recall_free(&batches->recall);
}

int batches_under_way(const struct batches *batches)
{
	int count = 0;

	for (const struct batch *batch = batches->first; batch != NULL; batch = batch->next)
		count += !batch->open && !batch->again;
	return count;
}

bool batches_planned(const struct batches *batches)
{
	const struct batch *batch = batches->first;

	while (batch != NULL && (batch->planned || batch->again)) /* what is looked at again has its word */
		batch = batch->next;
	return batch == NULL;
}

struct progress batches_progress(const struct batches *batches)
{
	struct progress progress = {0};

	for (const struct batch *batch = batches->first; batch != NULL; batch = batch->next) {
		if (batch->again)
			continue;
		progress.definitions += batch->counts.definitions;
		for (const struct part *part = batch->parts; part != NULL; part = part->next) {
			progress.waiting += part->pass.waiting + part->pass.selected_count - part->pass.visited;
			for (int i = 0; i < part->pass.count && progress.name == NULL; i++)
				if (part->pass.outcomes[i]->waiting)
					progress.name = part->pass.outcomes[i]->file->name;
		}
	}
	return progress;
}
