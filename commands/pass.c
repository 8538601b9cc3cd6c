#include "commands/pass.h"

#include <fnmatch.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/near.h"
#include "base/trace.h"
#include "commands/ask.h"
#include "commands/generated.h"
#include "workers/machine.h"
#include "workers/pool.h"

/* Cases that may wait for the pool before the walk pauses: bounds memory, keeps every lane busy. */
enum { PENDING_CASES = 512, LANES_MAX = 4 };

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* Whatever is the same for all definitions of a run and could change a summary. */
static struct digest context_digest(const struct pass *pass, struct arena *arena)
{
	const struct case_options *cases = &pass->options->cases;
	const struct policy *policy = &pass->machine.policy;
	struct fields fields = {0};

	field_text(&fields, arena, "kernels", pass->reftest->kernels.face->digest);
	field_text(&fields, arena, "checker", pass->reftest->kernels.face->checker_digest);
	field_printf(&fields, arena, "sizes", "%d %d %d", cases->size[SIZE_SMALL], cases->size[SIZE_MEDIUM],
	             cases->size[SIZE_LARGE]);
	field_printf(&fields, arena, "edge", "%d", cases->edge);
	field_printf(&fields, arena, "workloads", "%d", cases->workloads);
	field_printf(&fields, arena, "seed", "%llu", (unsigned long long)cases->seed);
	field_add(&fields, arena, "tolerance", NULL, &cases->tolerance, sizeof cases->tolerance);
	field_add(&fields, arena, "tolerances", NULL, cases->by_dtype, sizeof cases->by_dtype);
	field_printf(&fields, arena, "device", "%s %d", policy->device_class, policy->any_gpu);
	field_printf(&fields, arena, "torch", "%s %s", policy->torch != NULL ? policy->torch : "any",
	             policy->cuda != NULL ? policy->cuda : "none");
	field_text(&fields, arena, "ground_truths", truths_context(&pass->machine.truths, arena));
	return fields_digest(&fields);
}

/* All of it, or what a running watcher says is left to look at. Where pytest files were generated the whole is looked at:
 * they are kept true by what stands in it. */
static int open_dataset(struct pass *pass, struct err *err)
{
	const struct pass_options *options = pass->options;
	const char *root = pass->reftest->root;
	struct vouched vouched;
	enum layout layout;

	if (options->ask_verified && !generated_before(root, &layout) &&
	    ask_verified(root, &pass->context, options->ask_rows, &pass->arena, &vouched)) {
		pass->vouched = vouched.definitions;
		pass->vouched_elements = vouched.elements;
		pass->vouched_rows = vouched.rows;
		pass->cases_cached = vouched.cases;
	} else if (options->ask_count == 0 ||
	           !ask_paths(root, options->ask_names, options->ask_count, &pass->arena, &vouched)) {
		return dataset_scan(root, &pass->arena, &pass->dataset, err);
	}
	return dataset_some(root, vouched.paths, vouched.path_count, &pass->arena, &pass->dataset, err);
}

static int open_contents(struct pass *pass, struct err *err)
{
	pass->flights = &pass->own_flights;
	pass->contents = contents_open(pass->reftest->store, &pass->dataset, &pass->arena, err);
	return pass->contents == NULL ? EXIT_INTERNAL : 0;
}

int pass_open(struct pass *pass, struct reftest *reftest, const struct pass_options *options, struct err *err)
{
	struct err note;

	*pass = (struct pass){.reftest = reftest, .options = options};
	pass->dataset.fd = -1;
	if (reftest_root(reftest, err) < 0)
		return EXIT_USAGE;
	if (reftest_kernels_library(reftest, err) < 0)
		return EXIT_INTERNAL;
	reftest_store(reftest, options->dry_run, &note);
	if (note.text[0] != '\0')
		fprintf(stderr, "reftest: %s\n", note.text);
	if (machine_policy(reftest, options->device, options->python, options->ground_truth, &pass->arena, &pass->machine, err) < 0)
		return EXIT_USAGE;
	pass->machine.policy.force = options->force;
	pass->machine.policy.cached_only = options->cached_only;
	pass->context = context_digest(pass, &pass->arena);
	if (open_dataset(pass, err) < 0)
		return EXIT_INTERNAL;
	return open_contents(pass, err);
}

int pass_open_some(struct pass *pass, struct reftest *reftest, const struct pass_options *options,
                   const struct machine_policy *machine, const char *const *paths, int count, struct err *err)
{
	*pass = (struct pass){.reftest = reftest, .options = options, .machine = *machine};
	pass->dataset.fd = -1;
	pass->machine.policy.force = options->force;
	pass->machine.policy.cached_only = options->cached_only;
	if ((paths == NULL ? dataset_scan(reftest->root, &pass->arena, &pass->dataset, err)
	                   : dataset_some(reftest->root, paths, count, &pass->arena, &pass->dataset, err)) < 0)
		return EXIT_INTERNAL;
	pass->context = context_digest(pass, &pass->arena);
	int code = open_contents(pass, err);

	return code == 0 && pass_select(pass, NULL, 0, NULL, 0, err) < 0 ? EXIT_INTERNAL : code;
}

void pass_lend(struct pass *pass, struct pool *pool, struct flights *flights)
{
	pass->pool = pool;
	pass->lent = pool != NULL;
	pass->flights = flights != NULL ? flights : &pass->own_flights;
}

void pass_close(struct pass *pass)
{
	if (pass->pool != NULL && !pass->lent)
		pool_close(pass->pool);
	arena_free(&pass->later.arena);
	buf_free(&pass->definition_bytes);
	buf_free(&pass->workload_bytes);
	for (int i = 0; i < pass->count; i++)
		arena_free(&pass->outcomes[i]->arena);
	if (pass->dataset.fd >= 0)
		dataset_close(&pass->dataset);
	arena_free(&pass->arena);
}

/* ---- selecting ------------------------------------------------------------------------------------------------ */

const char *outcome_name(const struct outcome *outcome, struct arena *arena)
{
	return arena_printf(arena, "%s/%s", outcome->file->op_type, outcome->file->name);
}

/* A path to the file, from wherever the user stands: its last two parts decide. */
static bool path_names(const char *word, const struct dataset_file *file)
{
	size_t length = strlen(word), tail = strlen(file->path);

	return length >= tail && strcmp(word + length - tail, file->path) == 0 &&
	       (length == tail || word[length - tail - 1] == '/');
}

static bool name_selects(const char *word, const struct dataset_file *file)
{
	const char *slash = strchr(word, '/');
	const char *full = file->path + strlen("definitions/");
	size_t length = strlen(full) - strlen(".json");

	if (strpbrk(word, "*?[") != NULL) {
		char both[1024];

		snprintf(both, sizeof both, "%.*s", (int)length, full);
		return fnmatch(word, slash != NULL ? both : file->name, 0) == 0;
	}
	if (slash == NULL)
		return strcmp(word, file->name) == 0;
	return (strlen(word) == length && memcmp(word, full, length) == 0) || path_names(word, file);
}

static int unknown_name(const struct pass *pass, const char *word, bool op_type, struct err *err)
{
	struct arena arena = {0};
	const char **known = arena_array(&arena, (size_t)pass->dataset.definition_count + 1, sizeof *known);

	for (int i = 0; i < pass->dataset.definition_count; i++)
		known[i] = op_type ? pass->dataset.definitions[i].op_type : pass->dataset.definitions[i].name;
	const char *near = near_word(word, known, pass->dataset.definition_count);

	err_set(err, "%s has no %s '%s'%s%s%s", pass->reftest->root, op_type ? "op_type" : "definition", word,
	        near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
	arena_free(&arena);
	return -1;
}

int pass_select(struct pass *pass, const char *const *names, int name_count, const char *const *op_types,
                int op_type_count, struct err *err)
{
	int words = name_count + op_type_count;
	bool *used = arena_array(&pass->arena, (size_t)words + 1, sizeof *used);

	pass->selected = arena_array(&pass->arena, (size_t)pass->dataset.definition_count, sizeof *pass->selected);
	for (int i = 0; i < pass->dataset.definition_count; i++) {
		const struct dataset_file *file = &pass->dataset.definitions[i];
		bool selected = words == 0;

		for (int k = 0; k < words; k++)
			if (k < name_count ? name_selects(names[k], file) : strcmp(op_types[k - name_count], file->op_type) == 0)
				selected = used[k] = true;
		if (selected)
			pass->selected[pass->selected_count++] = file;
	}
	for (int k = 0; k < words; k++)
		if (!used[k])
			return unknown_name(pass, k < name_count ? names[k] : op_types[k - name_count], k >= name_count, err);
	return 0;
}

/* ---- an outcome becomes final --------------------------------------------------------------------------------- */

bool is_finding(const struct case_outcome *c)
{
	return c->test->beside && c->verdict != NULL && c->verdict->status != STATUS_PASSED &&
	       c->verdict->status != STATUS_SKIPPED && c->verdict->reason != REASON_GROUND_TRUTH;
}

static void count_case(struct outcome *outcome, const struct case_outcome *c)
{
	struct summary *counts = &outcome->counts;

	counts->cases++;
	if (c->verdict == NULL) {
		outcome->known = false;
		return;
	}
	uint32_t *const by_status[STATUS_COUNT] = {
	    [STATUS_PASSED] = &counts->passed,   [STATUS_SKIPPED] = &counts->skipped, [STATUS_ERROR] = &counts->errors,
	    [STATUS_FAILED] = &counts->failed,   [STATUS_INVALID] = &counts->invalid,
	};

	(*by_status[c->verdict->status])++;
	counts->elements += (uint64_t)c->verdict->elements;
	outcome->findings += c->verdict->finding_count;
	outcome->findings += is_finding(c);
	if (is_finding(c) || (c->test->beside && c->verdict->status == STATUS_PASSED))
		return; /* beside the verdict, for it and against it */
	if (c->verdict->status > outcome->status) {
		outcome->status = c->verdict->status;
		outcome->reason = c->verdict->reason;
	}
	if (c->verdict->status == STATUS_PASSED && !c->verdict->weak)
		outcome->weak = false;
}

/* The definition's state is its worst case's; weak cases alone are no evidence. */
static void judge_outcome(struct outcome *outcome)
{
	outcome->known = true;
	outcome->weak = true;
	outcome->status = STATUS_PASSED;
	outcome->reason = REASON_NONE;
	for (int i = 0; i < outcome->case_count; i++)
		count_case(outcome, &outcome->cases[i]);
	outcome->weak = outcome->weak && outcome->counts.passed > 0;
	if (outcome->status == STATUS_PASSED && outcome->known && (outcome->weak || outcome->case_count == 0)) {
		outcome->status = STATUS_SKIPPED;
		outcome->reason = outcome->weak ? REASON_WEAK : REASON_NONE;
		outcome->message = outcome->weak ? "every case is one that an output of all zeros would have passed"
		                                 : "no case of it is selected";
	}
	outcome->counts.status = (uint8_t)outcome->status;
	outcome->counts.reason = (uint8_t)outcome->reason;
	outcome->counts.weak = outcome->weak;
}

/* From here on an answer is owed; until tell. */
static void wait_for_pool(struct outcome *outcome)
{
	outcome->started = seconds_now();
	outcome->pass->waiting += !outcome->waiting;
	outcome->waiting = true;
}

static void tell(struct outcome *outcome)
{
	outcome->pass->waiting -= outcome->waiting;
	outcome->waiting = false;
	if (outcome->pass->told != NULL)
		outcome->pass->told(outcome->pass, outcome);
}

/* Do the definition, its workload file and its blobs still hold what was hashed? */
static bool inputs_unchanged(const struct outcome *outcome)
{
	struct contents *contents = outcome->pass->contents;

	if (!contents_unchanged(contents, outcome->file->path, &outcome->definition_look.seen.content))
		return false;
	if (outcome->workload != NULL &&
	    !contents_unchanged(contents, outcome->workload->path, &outcome->workload_look.seen.content))
		return false;
	for (int i = 0; i < outcome->blob_count; i++)
		if (outcome->blobs[i].missing == NULL && outcome->blobs[i].bad == NULL &&
		    !contents_unchanged(contents, outcome->blobs[i].path, &outcome->blobs[i].content))
			return false;
	return true;
}

/* A cached answer needs a row only where `latest` points elsewhere. */
static bool latest_is_current(struct outcome *outcome, const char *name, const struct case_outcome *c)
{
	struct latest latest;

	return store_latest(outcome->pass->reftest->store, name, c->test->id, &outcome->arena, &latest, NULL) == CACHE_HIT &&
	       digest_equal(&latest.subject, &c->test->subject) && digest_equal(&latest.witness, &c->witness);
}

static bool make_put(struct outcome *outcome, const char *name, struct case_outcome *c, struct store_put *put)
{
	const struct verdict *v = c->verdict;
	struct fields all = fields_copy(&c->test->fields, &outcome->arena);
	struct buf text = {0}, packed = {0};

	if (v == NULL || c->test->job == NULL || !c->kept)
		return false;
	if (c->cached && !c->shared && latest_is_current(outcome, name, c))
		return false;
	witness_fields(v->ground_truth, verdict_truth_version(v, &outcome->arena), v->device_class, v->torch, v->cuda,
	               &outcome->arena, &all);
	if (!c->cached || c->shared)
		verdict_write(v, &text); /* else it is in the store already */
	fields_write(&all, &packed);
	*put = (struct store_put){.subject = c->test->subject, .witness = c->witness, .definition = name,
	                          .case_id = c->test->id, .keep_verdict = !c->cached || c->shared};
	put->text = arena_copy(&outcome->arena, text.data, text.length);
	put->length = text.length;
	put->fields = arena_copy(&outcome->arena, packed.data, packed.length);
	put->fields_length = packed.length;
	buf_free(&text);
	buf_free(&packed);
	return true;
}

static void store_later(struct pass *pass)
{
	struct later *later = &pass->later;
	struct err err = {""};

	if (later->count > 0 && store_put(pass->reftest->store, later->puts, later->count, &err) < 0)
		pass->not_kept = arena_string(&pass->arena, err.text);
	later->count = 0;
	later->puts = NULL;
	arena_free(&later->arena);
}

/* Copies the put: its outcome may be gone when it is written. */
static void put_later(struct pass *pass, const struct store_put *put)
{
	struct later *later = &pass->later;

	if (later->count == LATER_MOST)
		store_later(pass);
	if (later->puts == NULL)
		later->puts = arena_array(&later->arena, LATER_MOST, sizeof *later->puts);
	struct store_put *copy = &later->puts[later->count++];

	*copy = *put;
	copy->text = arena_copy(&later->arena, put->text, put->length);
	copy->fields = arena_copy(&later->arena, put->fields, put->fields_length);
	copy->definition = arena_string(&later->arena, put->definition);
	copy->case_id = arena_string(&later->arena, put->case_id);
}

/* One transaction for the verdicts of a definition. */
static void store_outcome(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	struct store *store = pass->reftest->store;
	struct store_put *puts = arena_array(&outcome->arena, (size_t)outcome->case_count, sizeof *puts);
	const char *name = outcome_name(outcome, &outcome->arena);
	struct err err = {""};
	int count = 0;

	if (store == NULL || pass->options->dry_run)
		return;
	for (int i = 0; i < outcome->case_count; i++) {
		if (!make_put(outcome, name, &outcome->cases[i], &puts[count]))
			continue;
		if (pass->options->urgent || !puts[count].keep_verdict)
			put_later(pass, &puts[count]);
		else
			count++;
	}
	if (count == 0)
		return;
	if (store_put(store, puts, count, &err) == 0)
		return;
	pass->not_kept = arena_string(&pass->arena, err.text);
	for (int i = 0; i < outcome->case_count; i++)
		outcome->cases[i].kept = outcome->cases[i].kept && outcome->cases[i].cached;
}

/* Would the next run come to the same answer from contents alone? */
static bool summary_holds(const struct outcome *outcome)
{
	if (outcome->changed || !outcome->known || outcome->findings > 0 || outcome->pass->options->cases.only != NULL)
		return false;
	for (int i = 0; i < outcome->case_count; i++)
		if (!outcome->cases[i].kept)
			return false;
	return outcome->case_count > 0;
}

static void note_files(struct outcome *outcome)
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
		contents_note(pass->contents,
		              &(struct file_entry){.path = outcome->workload->path, .seen = outcome->workload_look.seen});
}

static void finish_outcome(struct outcome *outcome)
{
	bool ran = outcome->started > 0;

	outcome->seconds = ran ? seconds_now() - outcome->started : 0;
	if (ran && !inputs_unchanged(outcome)) {
		outcome->changed = true;
		for (int i = 0; i < outcome->case_count; i++)
			outcome->cases[i].kept = outcome->cases[i].kept && outcome->cases[i].cached;
	}
	store_outcome(outcome);
	judge_outcome(outcome);
	if (!outcome->changed)
		note_files(outcome);
	tell(outcome);
	bool plain = outcome->status == STATUS_PASSED && outcome->known && !outcome->changed && outcome->findings == 0;

	if (plain && !outcome->pass->options->details) { /* counts are enough; 10 000 of them must stay small */
		outcome->cases = NULL;
		outcome->case_count = outcome->done = 0;
		outcome->definition = NULL;
		outcome->made = NULL;
		outcome->blobs = NULL;
		outcome->blob_count = 0;
		arena_free(&outcome->arena);
	}
}

/* ---- from files to cases -------------------------------------------------------------------------------------- */

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

static void look_at_blobs(struct outcome *outcome, const char *const *paths, int count)
{
	struct blob *blobs = arena_array(&outcome->arena, (size_t)count, sizeof *blobs);

	for (int i = 0; i < count; i++)
		blobs[i] = contents_blob(outcome->pass->contents, paths[i], &outcome->arena);
	outcome->blobs = blobs;
	outcome->blob_count = count;
}

static void invalid_outcome(struct outcome *outcome, const char *message)
{
	outcome->status = STATUS_INVALID;
	outcome->known = true;
	outcome->message = arena_string(&outcome->arena, message);
	outcome->counts.status = STATUS_INVALID;
	outcome->inputs = outcome->definition_look.seen.content;
	tell(outcome);
}

/* Answers from the summary of an earlier run if everything is as it was. */
static bool answer_from_summary(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	const struct file_entry *entry = contents_entry(pass->contents, outcome->file);
	bool wanted = !pass->options->force && !pass->options->details && pass->options->cases.only == NULL;

	if (!wanted || entry == NULL || !entry->has_summary || entry->summary.status > STATUS_SKIPPED ||
	    !digest_equal(&entry->summary.context, &pass->context) ||
	    !digest_equal(&entry->seen.content, &outcome->definition_look.seen.content))
		return false;
	look_at_blobs(outcome, entry->blobs, entry->blob_count);
	outcome->inputs = inputs_digest(outcome, outcome->workload != NULL ? &outcome->workload_look.seen.content : NULL);
	if (!digest_equal(&entry->summary.inputs, &outcome->inputs))
		return false;
	outcome->counts = entry->summary;
	outcome->status = (enum status)entry->summary.status;
	outcome->reason = (enum reason)entry->summary.reason;
	outcome->weak = entry->summary.weak != 0;
	outcome->known = outcome->from_summary = true;
	pass->cases_cached += outcome->counts.cases;
	struct file_entry again = *entry; /* files read anew (racily clean, touched) are noted with their new stat */

	again.seen = outcome->definition_look.seen;
	if (outcome->definition_look.read)
		contents_note(pass->contents, &again);
	if (outcome->workload != NULL && outcome->workload_look.read)
		contents_note(pass->contents,
		              &(struct file_entry){.path = outcome->workload->path, .seen = outcome->workload_look.seen});
	arena_free(&outcome->arena);
	outcome->blobs = NULL;
	outcome->blob_count = 0;
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

static int make_cases(struct outcome *outcome, struct buf *definition, struct buf *workload, struct err *err)
{
	struct pass *pass = outcome->pass;
	struct workload_file lines = {0};
	struct cases *made = arena_alloc(&outcome->arena, sizeof *made);
	int blob_count;

	outcome->definition = definition_load(outcome->file->path, outcome->file->op_type, outcome->file->name,
	                                      definition->data, definition->length, &outcome->arena, err);
	if (outcome->definition == NULL)
		return -1;
	if (outcome->workload != NULL)
		lines = workloads_load(outcome->workload->path, outcome->definition, workload->data, workload->length,
		                       &outcome->arena);
	const char **paths = blob_paths(outcome, &lines, &blob_count);

	look_at_blobs(outcome, paths, blob_count);
	outcome->inputs = inputs_digest(outcome, outcome->workload != NULL ? &outcome->workload_look.seen.content : NULL);
	*made = cases_make(pass->reftest->kernels.face, outcome->definition, &lines, outcome->blobs, outcome->blob_count,
	                   pass->reftest->root, &pass->options->cases, &outcome->arena);
	outcome->made = made;
	outcome->truths = truths_for(&pass->machine.truths, made->op, &outcome->arena);
	outcome->case_count = made->count;
	outcome->cases = arena_array(&outcome->arena, (size_t)made->count, sizeof *outcome->cases);
	for (int i = 0; i < made->count; i++) {
		outcome->cases[i].test = &made->items[i];
		if (made->items[i].job != NULL)
			made->items[i].job->truths = made->items[i].job->edge > 0 ? truths_of_edges(made->op, &outcome->arena)
			                                                          : outcome->truths;
	}
	return 0;
}

/* ---- from cases to verdicts ----------------------------------------------------------------------------------- */

static struct digest witness_of(const struct verdict *v, struct arena *arena)
{
	struct fields fields = {0};

	witness_fields(v->ground_truth, verdict_truth_version(v, arena), v->device_class, v->torch, v->cuda, arena, &fields);
	return fields_digest(&fields);
}

/* Every stored verdict on the case's subject that can be read, newest last. */
static int stored_verdicts(struct outcome *outcome, const struct digest *subject, const struct verdict ***out)
{
	const struct stored_verdict *stored;
	struct arena *arena = &outcome->arena;
	int found = 0, count = 0;

	if (outcome->pass->reftest->store != NULL)
		count = store_verdicts(outcome->pass->reftest->store, subject, arena, &stored, NULL);
	*out = arena_array(arena, (size_t)(count > 0 ? count : 0), sizeof **out);
	for (int i = 0; i < count; i++) {
		const struct verdict *verdict = verdict_parse(stored[i].text, stored[i].length, arena, NULL);

		if (verdict == NULL)
			continue;
		struct digest witness = witness_of(verdict, arena);

		if (digest_equal(&witness, &stored[i].witness)) /* a record that lies about its witness is none */
			(*out)[found++] = verdict;
	}
	return found;
}

static const struct verdict *not_run(struct outcome *outcome, enum reason reason, const char *message)
{
	struct verdict *verdict = arena_alloc(&outcome->arena, sizeof *verdict);

	*verdict = (struct verdict){.status = STATUS_SKIPPED, .reason = reason,
	                            .message = arena_string(&outcome->arena, message)};
	return verdict;
}

static void settle_case(struct outcome *outcome, struct case_outcome *c, const struct verdict *verdict)
{
	c->verdict = verdict;
	outcome->done++;
}

/* Decides one case from what is known. true: it must run. */
static bool decide_case(struct outcome *outcome, struct case_outcome *c)
{
	struct pass *pass = outcome->pass;
	const struct verdict **stored;

	if (c->test->decided != NULL) {
		c->why = "decided from the workload line alone";
		c->kept = c->test->decided->status == STATUS_INVALID; /* the same text is invalid the next time, too */
		settle_case(outcome, c, c->test->decided);
		return false;
	}
	int count = stored_verdicts(outcome, &c->test->subject, &stored);
	struct decision decision =
	    plan_case(&pass->machine.policy, &c->test->job->truths, stored, count, &outcome->arena);

	c->why = decision.why;
	trace("plan", "%s/%s %s: %s", outcome->file->op_type, outcome->file->name, c->test->id, decision.why);
	if (decision.answer == PLAN_CACHED) {
		c->cached = c->kept = true;
		c->witness = witness_of(stored[decision.candidate], &outcome->arena);
		pass->cases_cached++;
		settle_case(outcome, c, stored[decision.candidate]);
		return false;
	}
	if (decision.answer == PLAN_NOT_CACHED) {
		settle_case(outcome, c, not_run(outcome, REASON_NOT_CACHED, decision.why));
		return false;
	}
	if (pass->options->dry_run)
		return false;
	if (pass->machine.cannot_run != NULL) {
		settle_case(outcome, c, not_run(outcome, pass->machine.cannot_reason, pass->machine.cannot_run));
		return false;
	}
	return true;
}

static int default_lanes(void)
{
	int lanes = machine_cores() / 2;

	return lanes < 1 ? 1 : lanes > LANES_MAX ? LANES_MAX : lanes;
}

struct pool *pass_open_pool(const struct reftest *reftest, const struct pass_options *options,
                            const struct machine_policy *machine, struct err *err)
{
	const struct pool_options how = {
	    .device = machine->policy.device, .python = machine->python, .root = reftest->root,
	    .lanes = options->jobs > 0 ? options->jobs : default_lanes(), .timeout_s = options->timeout_s,
	    .staged = options->staged,
	};

	return pool_open(&how, err);
}

static int need_pool(struct pass *pass, struct err *err)
{
	if (pass->pool == NULL)
		pass->pool = pass_open_pool(pass->reftest, pass->options, &pass->machine, err);
	return pass->pool == NULL ? -1 : 0;
}

static int submit_outcome(struct outcome *outcome, const struct job **jobs, int count, struct err *err)
{
	struct task task = {.reference = outcome->definition->reference, .jobs = jobs, .job_count = count, .owner = outcome,
	                    .urgent = outcome->pass->options->urgent};

	if (need_pool(outcome->pass, err) < 0)
		return -1;
	task.name = outcome_name(outcome, &outcome->arena);
	wait_for_pool(outcome);
	pool_submit(outcome->pass->pool, &task);
	return 0;
}

/* What cannot run any more is said of every case that waits for it. */
void pass_give_up(struct pass *pass, const char *why)
{
	pass->machine.cannot_run = arena_string(&pass->arena, why);
	pass->machine.cannot_reason = REASON_UNSUPPORTED_DEVICE;
	for (int i = 0; i < pass->count; i++) {
		struct outcome *outcome = pass->outcomes[i];

		if (!outcome->waiting)
			continue;
		for (int k = 0; k < outcome->case_count; k++)
			if (outcome->cases[k].verdict == NULL)
				settle_case(outcome, &outcome->cases[k], not_run(outcome, REASON_UNSUPPORTED_DEVICE, why));
		finish_outcome(outcome);
	}
}

/* Gives a result to one case; the first of a flight ran, the others share its answer. */
static void settle_passenger(struct pass *pass, const struct passenger *who, const struct pool_result *result, bool ran)
{
	struct outcome *outcome = who->outcome;
	struct case_outcome *c = &outcome->cases[who->case_index];

	c->kept = result->keep;
	c->printed = result->printed;
	c->witness = witness_of(result->verdict, &outcome->arena);
	if (ran) {
		pass->cases_run++;
	} else {
		pass->cases_cached++;
		c->cached = c->shared = true;
		c->why = "another case of this run has the same subject";
	}
	settle_case(outcome, c, result->verdict);
	if (outcome->done == outcome->case_count)
		finish_outcome(outcome);
}

static void take_result(struct pass *pass, const struct pool_result *result)
{
	const struct outcome *outcome = result->owner;
	const struct passenger *who = NULL;

	for (int i = 0; i < outcome->case_count && who == NULL; i++)
		if (outcome->cases[i].test->job == result->job)
			who = flight_land(pass->flights, &outcome->cases[i].test->subject);
	for (bool ran = true; who != NULL; who = who->next, ran = false)
		settle_passenger(who->outcome->pass, who, result, ran);
}

/* A result lives in the pass's arena, for several outcomes may share it. */
void pass_take_results(struct pool *pool)
{
	struct pool_result result;
	const struct outcome *owner;

	while ((owner = pool_next_owner(pool)) != NULL && pool_next(pool, &owner->pass->arena, &result))
		take_result(owner->pass, &result);
}

static bool was_interrupted(struct pass *pass, int timeout_ms)
{
	struct pollfd fds[2] = {{.fd = pass->reftest->signals, .events = POLLIN},
	                        {.fd = pass->pool != NULL ? pool_fd(pass->pool) : -1, .events = POLLIN}};

	poll(fds, 2, timeout_ms);
	if ((fds[0].revents & POLLIN) != 0)
		pass->interrupted = true;
	return pass->interrupted;
}

/* One turn of the loop: waits for the pool or a signal, takes what has come. */
static void pump(struct pass *pass)
{
	struct err err = {""};

	if (was_interrupted(pass, -1))
		return;
	int rc = pool_dispatch(pass->pool, &err);

	pass_take_results(pass->pool);
	if (rc < 0) {
		pool_close(pass->pool);
		pass->pool = NULL;
		pass_give_up(pass, err.text);
	}
}

/* Verdicts that came before an interrupt are true and are kept; the rest of their definitions is unknown. */
static void keep_finished_cases(struct pass *pass)
{
	for (int i = 0; i < pass->count; i++) {
		struct outcome *outcome = pass->outcomes[i];

		if (!outcome->waiting || outcome->dropped)
			continue;
		if (inputs_unchanged(outcome))
			store_outcome(outcome);
		judge_outcome(outcome);
	}
}

static void plan_outcome(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	const struct job **jobs = arena_array(&outcome->arena, (size_t)outcome->case_count, sizeof *jobs);
	struct err err = {""};
	int count = 0, waiting = 0;

	for (int i = 0; i < outcome->case_count; i++) {
		const struct test_case *test = outcome->cases[i].test;

		if (!decide_case(outcome, &outcome->cases[i]))
			continue;
		waiting++;
		if (flight_board(pass->flights, &test->subject, outcome, i, &pass->arena))
			jobs[count++] = test->job;
	}
	pass->cases_planned += count;
	if (outcome->done == outcome->case_count || pass->options->dry_run)
		finish_outcome(outcome);
	else if (count == 0 && waiting > 0)
		wait_for_pool(outcome); /* every case of it waits for another definition's */
	else if (submit_outcome(outcome, jobs, count, &err) < 0) {
		wait_for_pool(outcome);
		pass_give_up(pass, err.text);
	}
}

/* The digests of the definition's files. Bytes are read only where their stat proves nothing. */
static int look_at_files(struct outcome *outcome, struct buf *definition, struct buf *workload, bool need_bytes,
                         struct err *err)
{
	struct contents *contents = outcome->pass->contents;

	if ((!need_bytes || !outcome->definition_look.read) &&
	    contents_look(contents, outcome->file, DEFINITION_BYTES, need_bytes, definition, &outcome->definition_look, err) < 0)
		return -1;
	if (outcome->workload != NULL && (!need_bytes || !outcome->workload_look.read) &&
	    contents_look(contents, outcome->workload, WORKLOAD_BYTES, need_bytes, workload, &outcome->workload_look, err) < 0)
		return -1;
	return 0;
}

static struct outcome *add_outcome(struct pass *pass, const struct outcome *outcome)
{
	struct outcome *kept = arena_alloc(&pass->arena, sizeof *kept);

	*kept = *outcome;
	pass->outcomes[pass->count++] = kept;
	return kept;
}

/* Ten thousand definitions of which nothing is to be told but their number take no memory each. */
static bool only_count(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;

	if (pass->options->each || outcome->status != STATUS_PASSED)
		return false;
	pass->answered++;
	pass->answered_elements += outcome->counts.elements;
	if (pass->counted != NULL)
		pass->counted(pass, outcome);
	return true;
}

static void visit(struct pass *pass, const struct dataset_file *file, struct buf *definition, struct buf *workload)
{
	struct outcome scratch = {.file = file, .pass = pass, .workload = dataset_workload(&pass->dataset, file)};
	struct err err = {""};
	bool looked = look_at_files(&scratch, definition, workload, false, &err) == 0;
	bool answered = looked && answer_from_summary(&scratch);

	if (answered && only_count(&scratch))
		return;
	struct outcome *outcome = add_outcome(pass, &scratch);

	if (answered) {
		tell(outcome);
		return;
	}
	/* To be parsed: what was not read is read now, and what is hashed is what is parsed. */
	if (!looked || look_at_files(outcome, definition, workload, true, &err) < 0 ||
	    make_cases(outcome, definition, workload, &err) < 0) {
		invalid_outcome(outcome, err.text);
		return;
	}
	plan_outcome(outcome);
	was_interrupted(pass, 0);
}

/* ---- in steps --------------------------------------------------------------------------------------------------- */

int pass_begin(struct pass *pass, struct err *err)
{
	pass->started = seconds_now();
	pass->outcomes = arena_array(&pass->arena, (size_t)pass->selected_count, sizeof *pass->outcomes);
	return reftest_signals(pass->reftest, err);
}

bool pass_visit(struct pass *pass)
{
	if (pass->visited >= pass->selected_count)
		return false;
	const struct dataset_file *file = pass->selected[pass->visited++];

	if (file != NULL) /* else it was dropped before its turn */
		visit(pass, file, &pass->definition_bytes, &pass->workload_bytes);
	return true;
}

bool pass_done(const struct pass *pass)
{
	return pass->visited >= pass->selected_count && pass->waiting == 0;
}

void pass_end(struct pass *pass)
{
	struct err note = {""};

	if (pass->pool != NULL && !pass->lent)
		pool_close(pass->pool);
	pass->pool = NULL;
	if (pass->interrupted)
		keep_finished_cases(pass);
	store_later(pass);
	/* A summary of verdicts that are not in the store would be a lie. */
	if (!pass->options->dry_run && pass->not_kept == NULL && contents_write(pass->contents, &note) < 0)
		pass->not_kept = arena_string(&pass->arena, note.text);
	pass->seconds = seconds_now() - pass->started;
}

/* The case that waited for one that will not come is run for itself, and for who waits behind it. */
static void run_promoted(const struct passenger *next)
{
	struct outcome *outcome = next->outcome;
	const struct job **jobs = arena_array(&outcome->arena, 1, sizeof *jobs);
	struct err err = {""};

	jobs[0] = outcome->cases[next->case_index].test->job;
	outcome->pass->cases_planned++;
	if (submit_outcome(outcome, jobs, 1, &err) < 0)
		pass_give_up(outcome->pass, err.text);
}

static void drop_outcome(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;

	if (pass->pool != NULL)
		pool_cancel(pass->pool, outcome);
	outcome->dropped = true;
	outcome->known = outcome->waiting = false;
	pass->waiting--;
	for (int i = 0; i < outcome->case_count; i++) {
		const struct passenger *next = flight_leave(pass->flights, &outcome->cases[i].test->subject, outcome, i);

		if (next != NULL && next->outcome != outcome)
			run_promoted(next);
	}
}

bool pass_drop(struct pass *pass, const char *path)
{
	for (int i = pass->visited; i < pass->selected_count; i++)
		if (pass->selected[i] != NULL && strcmp(pass->selected[i]->path, path) == 0) {
			pass->selected[i] = NULL;
			return true;
		}
	for (int i = 0; i < pass->count; i++)
		if (pass->outcomes[i]->waiting && strcmp(pass->outcomes[i]->file->path, path) == 0) {
			drop_outcome(pass->outcomes[i]);
			return true;
		}
	return false;
}

int pass_run(struct pass *pass, struct err *err)
{
	if (pass_begin(pass, err) < 0)
		return -1;
	while (!pass->interrupted && pass_visit(pass))
		while (pass->pool != NULL && pool_pending(pass->pool) > PENDING_CASES && !pass->interrupted)
			pump(pass);
	while (pass->pool != NULL && pool_pending(pass->pool) > 0 && !pass->interrupted)
		pump(pass);
	pass_end(pass);
	return 0;
}
