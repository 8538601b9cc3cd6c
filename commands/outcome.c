#include "commands/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "cache/python_words.h"
#include "commands/shard.h"

int outcome_look(struct outcome *outcome, struct buf *definition, struct buf *workload, bool need_bytes,
		 struct err *err)
{
	struct contents *contents = outcome->pass->contents;

	if ((!need_bytes || !outcome->definition_look.read) &&
	    contents_look(contents, outcome->file, DEFINITION_BYTES, need_bytes, definition, &outcome->definition_look,
			  err) < 0)
		return -1;
	if (outcome->workload != NULL && (!need_bytes || !outcome->workload_look.read) &&
	    contents_look(contents, outcome->workload, WORKLOAD_BYTES, need_bytes, workload, &outcome->workload_look,
			  err) < 0) {
		if (!outcome->workload_look.absent)
			return -1;
		outcome->workload = NULL; /* deleted since it was listed: there are no lines */
	}
	return 0;
}

/* One digest over the contents that an outcome depends on. A missing blob counts as such. */
static struct digest inputs_digest(const struct outcome *outcome, const struct digest *workload)
{
	struct digest pair[2] = {outcome->definition_look.seen.content};
	struct buf all = {0};

	if (workload != NULL)
		pair[1] = *workload;
	if (outcome->blob_count == 0)
		return digest_of(pair, sizeof pair);
	buf_add(&all, pair, sizeof pair);
	for (int i = 0; i < outcome->blob_count; i++) {
		buf_add(&all, outcome->blobs[i].path, strlen(outcome->blobs[i].path) + 1);
		buf_add(&all, outcome->blobs[i].content.bytes, DIGEST_BYTES);
	}
	struct digest digest = digest_of(all.data, all.length);

	buf_free(&all);
	return digest;
}

static void look_at_blobs(struct outcome *outcome, const char *const *paths, int count, bool to_run)
{
	/* Most definitions name none, and an arena's first octet costs as much as all else that is done for them. */
	struct blob *blobs = count > 0 ? arena_array(&outcome->arena, (size_t)count, sizeof *blobs) : NULL;

	for (int i = 0; i < count; i++) {
		if (outcome->pass->looks_at != NULL)
			outcome->pass->looks_at(outcome->pass, paths[i]);
		blobs[i] = contents_blob(outcome->pass->contents, paths[i], to_run, &outcome->arena);
	}
	outcome->blobs = blobs;
	outcome->blob_count = count;
}

/* Does the pass want no more of an outcome than a summary says? */
static bool wants_summaries(const struct pass_options *options)
{
	return !options->force && !options->details && !options->thorough && options->cases.only == NULL &&
	       options->cases.shard.count == 0;
}

/* The summary is the answer. */
static void take_summary(struct outcome *outcome, const struct summary *summary)
{
	outcome->counts = *summary;
	outcome->status = (enum status)summary->status;
	outcome->reason = (enum reason)summary->reason;
	outcome->weak = summary->weak != 0;
	outcome->known = outcome->from_summary = true;
	outcome->pass->cases_cached += summary->cases;
}

/* Files that were read anew (racily clean, touched) are noted with their new stat. */
static void note_looks(struct outcome *outcome, struct file_entry entry)
{
	struct contents *contents = outcome->pass->contents;

	entry.seen = outcome->definition_look.seen;
	if (outcome->definition_look.read)
		contents_note(contents, &entry);
	if (outcome->workload != NULL && outcome->workload_look.read)
		contents_note(contents, &(struct file_entry){.path = outcome->workload->path, .seen = outcome->workload_look.seen});
}

bool outcome_from_summary(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	const struct file_entry *entry = contents_entry(pass->contents, outcome->file);

	if (!wants_summaries(pass->options) || entry == NULL || !entry->has_summary ||
	    entry->summary.status > STATUS_SKIPPED || !digest_equal(&entry->summary.context, &pass->context) ||
	    !digest_equal(&entry->seen.content, &outcome->definition_look.seen.content))
		return false;
	look_at_blobs(outcome, entry->blobs, entry->blob_count, false);
	outcome->inputs =
	    inputs_digest(outcome, outcome->workload != NULL ? &outcome->workload_look.seen.content : NULL);
	if (!digest_equal(&entry->summary.inputs, &outcome->inputs))
		return false;
	take_summary(outcome, &entry->summary);
	note_looks(outcome, *entry);
	arena_free(&outcome->arena);
	outcome->blobs = NULL;
	outcome->blob_count = 0;
	return true;
}

/* Only of definitions that name no blobs, whose contents are those of their two files; and that passed, of which nothing is
 * told but that. */
bool outcome_from_recall(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	const struct file_entry *before = contents_entry(pass->contents, outcome->file);
	const struct summary *known;

	if (pass->recall == NULL || !outcome->definition_look.read)
		return false;
	outcome->inputs = inputs_digest(outcome, outcome->workload != NULL ? &outcome->workload_look.seen.content : NULL);
	if (before != NULL && before->has_summary && before->blob_count == 0 && before->summary.status == STATUS_PASSED &&
	    !digest_equal(&before->summary.inputs, &outcome->inputs))
		recall_keep(pass->recall, outcome->file->path, &before->summary);
	if (!wants_summaries(pass->options))
		return false;
	known = recall_find(pass->recall, outcome->file->path, &pass->context, &outcome->inputs);
	if (known == NULL)
		return false;
	take_summary(outcome, known);
	outcome->recalled = true;
	note_looks(outcome, (struct file_entry){.path = outcome->file->path, .has_summary = true, .summary = *known});
	return true;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The blobs that the workload lines name, sorted, each once. */
static const char **blob_paths(struct outcome *outcome, const struct workload_file *workloads, int *count)
{
	int inputs = outcome->definition->input_count, found = 0, kept = 0;
	const char **paths = arena_array(&outcome->arena, (size_t)workloads->count * (size_t)inputs + 1, sizeof *paths);

	for (int i = 0; i < workloads->count; i++)
		for (int k = 0; workloads->lines[i].error == NULL && k < inputs; k++)
			if (workloads->lines[i].inputs[k].kind == SOURCE_SAFETENSORS)
				paths[found++] = workloads->lines[i].inputs[k].path;
	qsort(paths, (size_t)found, sizeof *paths, compare_text);
	for (int i = 0; i < found; i++)
		if (kept == 0 || strcmp(paths[kept - 1], paths[i]) != 0)
			paths[kept++] = paths[i];
	*count = kept;
	return paths;
}

/* What a reference says that is not known to depend on its text and its inputs alone. NULL: nothing. */
static const char *outside_of(struct outcome *outcome)
{
	struct python_words words = python_words(outcome->definition->reference, outcome->definition->reference_length);

	if (words.sight != SIGHT_OUTSIDE)
		return NULL;
	return arena_printf(&outcome->arena,
	                    "not remembered: line %d of the reference has %s, and what that gives may depend on more than "
	                    "this text, its inputs and torch; it is verified anew each time, until it is written without",
	                    words.line, words.what);
}

const char *outcome_reached(struct outcome *outcome, const char *reached)
{
	return arena_printf(&outcome->arena,
	                    "not remembered: when the reference ran, %s, so its outputs may depend on more than its text, its "
	                    "inputs and torch; it is verified anew each time, until it is written without", reached);
}

int outcome_make_cases(struct outcome *outcome, struct buf *definition, struct buf *workload, struct err *err)
{
	struct pass *pass = outcome->pass;
	struct workload_file lines = {0};
	struct cases *made = arena_alloc(&outcome->arena, sizeof *made);
	int blob_count;

	outcome->definition = definition_load(outcome->file->path, outcome->file->op_type, outcome->file->name,
					      definition->data, definition->length, &outcome->arena, err);
	if (outcome->definition == NULL)
		return -1;
	outcome->outside = outside_of(outcome);
	if (outcome->workload != NULL)
		lines = workloads_load(outcome->workload->path, outcome->definition, workload->data, workload->length,
				       &outcome->arena);
	const char **paths = blob_paths(outcome, &lines, &blob_count);

	look_at_blobs(outcome, paths, blob_count, !pass->options->dry_run && !pass->options->cached_only);
	outcome->inputs = inputs_digest(outcome, outcome->workload != NULL ? &outcome->workload_look.seen.content : NULL);
	*made = cases_make(pass->reftest->kernels.face, outcome->definition, &lines, outcome->blobs, outcome->blob_count,
	                   pass->reftest->root, &pass->options->cases, &outcome->arena);
	outcome->elsewhere = !shard_keep(&pass->options->cases.shard, outcome_name(outcome, &outcome->arena), made);
	outcome->made = made;
	outcome->truths = truths_for(&pass->machine.truths, made->op, &outcome->arena);
	outcome->case_count = made->count;
	outcome->cases = arena_array(&outcome->arena, (size_t)made->count, sizeof *outcome->cases);
	for (int i = 0; i < made->count; i++) {
		struct job *job = made->items[i].job;

		outcome->cases[i].test = &made->items[i];
		if (job != NULL)
			job->truths = job->edge > 0 || made->items[i].finer ? truths_builtin(made->op, &outcome->arena)
			                                                    : outcome->truths;
	}
	return 0;
}

static bool tensors_unchanged(const struct outcome *outcome)
{
	for (int i = 0; i < outcome->blob_count; i++)
		if (outcome->blobs[i].missing == NULL && outcome->blobs[i].bad == NULL &&
		    !contents_blob_unchanged(outcome->pass->contents, &outcome->blobs[i]))
			return false;
	return true;
}

bool outcome_unchanged(const struct outcome *outcome)
{
	struct contents *contents = outcome->pass->contents;

	if (!contents_unchanged(contents, outcome->file, &outcome->definition_look.seen.content))
		return false;
	if (outcome->workload != NULL &&
	    !contents_unchanged(contents, outcome->workload, &outcome->workload_look.seen.content))
		return false;
	return tensors_unchanged(outcome);
}

/* Would the next run come to the same answer from contents alone? */
static bool summary_holds(const struct outcome *outcome)
{
	const struct case_options *cases = &outcome->pass->options->cases;

	if (outcome->changed || !outcome->known || outcome->findings > 0 || cases->only != NULL || cases->shard.count > 0)
		return false;
	for (int i = 0; i < outcome->case_count; i++)
		if (!outcome->cases[i].kept)
			return false;
	return outcome->case_count > 0;
}

void outcome_note(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	struct file_entry entry = {.path = outcome->file->path, .seen = outcome->definition_look.seen};
	const char **blobs = arena_array(&outcome->arena, (size_t)outcome->blob_count, sizeof *blobs);

	for (int i = 0; i < outcome->blob_count; i++)
		blobs[i] = outcome->blobs[i].path;
	entry.blobs = blobs;
	entry.blob_count = outcome->blob_count;
	entry.has_summary = summary_holds(outcome);
	if (entry.has_summary) {
		entry.summary = outcome->counts;
		entry.summary.context = pass->context;
		entry.summary.inputs = outcome->inputs;
	}
	contents_note(pass->contents, &entry);
	if (outcome->workload != NULL)
		contents_note(pass->contents, &(struct file_entry){.path = outcome->workload->path,
								   .seen = outcome->workload_look.seen});
}
