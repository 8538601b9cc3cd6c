#include "engine/definition_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "dataset/definition_parse.h"
#include "dataset/truth_source.h"
#include "engine/approval_state.h"
#include "engine/base_references.h"
#include "engine/rerun_reason.h"
#include "engine/solution_candidates.h"
#include "engine/solution_truth.h"
#include "engine/staged_dataset.h"
#include "engine/storable_verdicts.h"

const char *result_name(const struct result *result, struct arena *arena)
{
	return arena_printf(arena, "%s/%s", result->file->op_type, result->file->name);
}

bool case_is_finding(const struct case_result *c)
{
	return c->test->beside && c->verdict != NULL && c->verdict->status != STATUS_PASSED &&
	       c->verdict->status != STATUS_SKIPPED && c->verdict->reason != REASON_GROUND_TRUTH;
}

/* An optional file of a definition: its truth, or its approval. */
struct optional_file {
	const struct dataset_file **file;
	struct stat_check *check;
	const char **trouble;
	size_t most; /* the most bytes that the file may have */
};

static struct optional_file truth_of(struct result *result)
{
	return (struct optional_file){&result->truth, &result->truth_check, &result->truth_trouble, TRUTH_BYTES};
}

static struct optional_file approval_of(struct result *result)
{
	return (struct optional_file){&result->approval, &result->approval_check, &result->approval_trouble, APPROVAL_BYTES};
}

/* Checks the file of a truth or an approval. If the file cannot be read, the definition remains valid, and only the
 * ground truth in the file is missing. */
static void check_optional(struct result *result, struct optional_file of, struct buf *bytes, bool need_bytes)
{
	struct err why = {""};

	if (*of.file == NULL || *of.trouble != NULL || (need_bytes && of.check->read) ||
	    file_digests_check(result->run->digests, *of.file, of.most, need_bytes, bytes, of.check, &why) == 0)
		return;
	if (of.check->absent)
		*of.file = NULL; /* the file was deleted after the directory was read */
	else
		*of.trouble = arena_string(&result->run->arena, why.text);
}

int result_check_files(struct result *result, struct result_bytes *bytes, bool need_bytes, struct err *err)
{
	struct file_digests *digests = result->run->digests;

	if ((!need_bytes || !result->definition_check.read) &&
	    file_digests_check(digests, result->file, DEFINITION_BYTES, need_bytes, &bytes->definition,
			      &result->definition_check, err) < 0)
		return -1;
	if (result->workload != NULL && (!need_bytes || !result->workload_check.read) &&
	    file_digests_check(digests, result->workload, WORKLOAD_BYTES, need_bytes, &bytes->workload,
			      &result->workload_check, err) < 0) {
		if (!result->workload_check.absent)
			return -1;
		result->workload = NULL; /* the workload file was deleted after the directory was read */
	}
	check_optional(result, truth_of(result), &bytes->truth, need_bytes);
	check_optional(result, approval_of(result), &bytes->approval, need_bytes);
	return 0;
}

/* Returns one digest over the contents of all files that a result depends on. A missing blob, and a truth or an
 * approval that cannot be read, count as files whose digest is zero. */
static struct digest inputs_digest(const struct result *result)
{
	static const char truth_tag[] = "truth", approval_tag[] = "approval";
	struct digest pair[2] = {result->definition_check.seen.content};
	struct buf all = {0};

	if (result->workload != NULL)
		pair[1] = result->workload_check.seen.content;
	if (result->blob_count == 0 && result->truth == NULL && result->approval == NULL)
		return digest_of(pair, sizeof pair);
	buf_add(&all, pair, sizeof pair);
	if (result->truth != NULL) {
		buf_add(&all, truth_tag, sizeof truth_tag);
		buf_add(&all, result->truth_check.seen.content.bytes, DIGEST_BYTES);
	}
	if (result->approval != NULL) {
		buf_add(&all, approval_tag, sizeof approval_tag);
		buf_add(&all, result->approval_check.seen.content.bytes, DIGEST_BYTES);
	}
	for (int i = 0; i < result->blob_count; i++) {
		buf_add(&all, result->blobs[i].path, strlen(result->blobs[i].path) + 1);
		buf_add(&all, result->blobs[i].content.bytes, DIGEST_BYTES);
	}
	struct digest digest = digest_of(all.data, all.length);

	buf_free(&all);
	return digest;
}

static struct blob check_blob(struct result *result, enum blob_use use, const char *path, bool to_run)
{
	if (result->run->on_blob != NULL)
		result->run->on_blob(result->run, path);
	return file_digests_blob(result->run->digests, use, path, to_run, &result->arena);
}

/* Returns the use of the blob at index `i` of the list that blob_paths returns. */
static enum blob_use use_of(const char *path, int i, int tensors, int solutions)
{
	return i >= solutions && is_solution_path(path) ? BLOB_SOLUTION : i < tensors ? BLOB_TENSORS : BLOB_READ;
}

/* Checks the first `tensors` paths as tensor files, and the paths from index `solutions` on as solutions. The other
 * paths are files that the reference reads. */
static void check_blobs(struct result *result, const char *const *paths, int count, int tensors, int solutions,
			bool to_run)
{
	/* Most definitions have no blobs. For them, nothing is allocated here: the first allocation in the arena takes
	 * as long as all other steps for a definition with a stored summary. */
	struct blob *blobs = count > 0 ? arena_array(&result->arena, (size_t)count, sizeof *blobs) : NULL;

	for (int i = 0; i < count; i++)
		blobs[i] = check_blob(result, use_of(paths[i], i, tensors, solutions), paths[i], to_run);
	result->blobs = blobs;
	result->blob_count = count;
}

/* Returns whether the options allow the run to report stored summaries instead of looking up each case. */
static bool wants_summaries(const struct run_options *options)
{
	return !options->force && !options->details && !options->thorough && options->cases.only == NULL;
}

static void take_summary(struct result *result, const struct summary *summary)
{
	result->counts = *summary;
	result->status = (enum status)summary->status;
	result->reason = (enum reason)summary->reason;
	result->weak = summary->weak != 0;
	result->known = result->from_summary = result->in_store = true;
	result->run->cases_cached += summary->cases;
}

static void note_optional(struct result *result, struct optional_file of)
{
	if (*of.file != NULL && of.check->read && *of.trouble == NULL)
		file_digests_note(result->run->digests,
				  &(struct file_entry){.path = (*of.file)->path, .seen = of.check->seen});
}

static void note_optionals(struct result *result)
{
	note_optional(result, truth_of(result));
	note_optional(result, approval_of(result));
}

/* Stores the new stat of each file that was read again although its content is unchanged. A file is read again if its
 * mtime has changed, or if it was written so shortly before the last run that its stored stat proves nothing. */
static void note_checks(struct result *result, struct file_entry entry)
{
	struct file_digests *digests = result->run->digests;

	entry.seen = result->definition_check.seen;
	if (result->definition_check.read)
		file_digests_note(digests, &entry);
	if (result->workload != NULL && result->workload_check.read)
		file_digests_note(
		    digests, &(struct file_entry){.path = result->workload->path, .seen = result->workload_check.seen});
	note_optionals(result);
}

/* Returns the paths of the solutions that may be ground truths of the definition. */
static const char **chosen_solutions(struct result *result, int *count)
{
	*count = 0;
	if (result->run->options->base != NULL ||
	    (result->run->options->candidates == NULL && !ground_truths_use_solutions(&result->run->machine.truths)))
		return NULL;
	if (result->run->staged != NULL)
		return staged_solutions(result->run->staged, result->file->path, &result->arena, count);
	return solution_paths(result->run->dataset.fd, result->file->op_type, result->file->name, &result->arena, count);
}

/* Returns whether the solutions in the record `entry` are exactly the solutions that may be ground truths now. In a
 * record, the solutions come after all other blobs. */
static bool same_solutions(struct result *result, const struct file_entry *entry)
{
	int count, first;
	const char **paths = chosen_solutions(result, &count);

	if (paths == NULL)
		return true;
	first = entry->blob_count - count;
	if (first < 0 || (first > 0 && is_solution_path(entry->blobs[first - 1])))
		return false;
	for (int i = 0; i < count; i++)
		if (strcmp(entry->blobs[first + i], paths[i]) != 0)
			return false;
	return true;
}

bool result_from_summary(struct result *result)
{
	struct run *run = result->run;
	const struct file_entry *entry = file_digests_entry(run->digests, result->file);

	if (!wants_summaries(run->options) || entry == NULL || !entry->has_summary ||
	    status_group((enum status)entry->summary.status) > GROUP_UNVERIFIED || !digest_equal(&entry->summary.context, &run->context) ||
	    !digest_equal(&entry->seen.content, &result->definition_check.seen.content) || !same_solutions(result, entry))
		return false;
	/* The stored record does not say which files are tensor files, so all files are checked as tensor files. If a
	 * file of another kind has changed, it is read again, the check fails because it is no tensor file, and the
	 * summary is not used. */
	check_blobs(result, entry->blobs, entry->blob_count, entry->blob_count, 0, false);
	result->inputs = inputs_digest(result);
	if (!digest_equal(&entry->summary.inputs, &result->inputs))
		return false;
	take_summary(result, &entry->summary);
	note_checks(result, *entry);
	arena_free(&result->arena);
	result->blobs = NULL;
	result->blob_count = 0;
	return true;
}

/* Stores a summary in run.summary_lru only if the definition passed and has no blobs. Such a summary depends only on
 * the definition file and the workload file, and a run reports only its status. */
bool result_from_lru(struct result *result)
{
	struct run *run = result->run;
	const struct file_entry *before = file_digests_entry(run->digests, result->file);
	const struct summary *known;

	if (run->summary_lru == NULL || !result->definition_check.read || ground_truths_use_solutions(&run->machine.truths))
		return false;
	result->inputs = inputs_digest(result);
	if (before != NULL && before->has_summary && before->blob_count == 0 &&
	    before->summary.status == STATUS_PASSED && !digest_equal(&before->summary.inputs, &result->inputs))
		summary_lru_store(run->summary_lru, result->file->path, &before->summary);
	if (!wants_summaries(run->options))
		return false;
	known = summary_lru_find(run->summary_lru, result->file->path, &run->context, &result->inputs);
	if (known == NULL)
		return false;
	take_summary(result, known);
	result->from_lru = true;
	note_checks(result, (struct file_entry){.path = result->file->path, .has_summary = true, .summary = *known});
	return true;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the paths of three kinds of files, in this order: the tensor files that the workload lines name (sorted,
 * without duplicates), the files that the reference reads, and the solutions that may be ground truths. The solutions
 * begin at index `*first_solution`. */
static const char **blob_paths(struct result *result, const struct workload_file *workloads, int *tensors,
			       int *first_solution, int *count)
{
	const struct definition *definition = result->definition;
	int inputs = definition->input_count, found = 0, kept = 0, solution_count;
	const char **solutions = chosen_solutions(result, &solution_count);
	const char **paths = arena_array(&result->arena,
					 (size_t)workloads->count * (size_t)inputs + (size_t)definition->read_count +
					     (size_t)solution_count + 1,
					 sizeof *paths);

	for (int i = 0; i < workloads->count; i++)
		for (int k = 0; workloads->lines[i].error == NULL && k < inputs; k++)
			if (workloads->lines[i].inputs[k].kind == SOURCE_SAFETENSORS)
				paths[found++] = workloads->lines[i].inputs[k].path;
	qsort(paths, (size_t)found, sizeof *paths, compare_text);
	for (int i = 0; i < found; i++)
		if (kept == 0 || strcmp(paths[kept - 1], paths[i]) != 0)
			paths[kept++] = paths[i];
	*tensors = kept;
	for (int i = 0; i < definition->read_count; i++)
		paths[kept++] = definition->reads[i];
	*first_solution = kept;
	for (int i = 0; i < solution_count; i++)
		paths[kept++] = solutions[i];
	*count = kept;
	return paths;
}

/* Returns whether a case gets inputs from the definition's `init`. */
static bool runs_init(const struct cases *made)
{
	for (int i = 0; i < made->count; i++)
		if (made->items[i].job != NULL && made->items[i].job->input_code != NULL)
			return made->items[i].job->input_code->kind == INPUT_CODE_INIT;
	return false;
}

/* Returns the ground truths of one case. The only ground truth of --edge cases and float64 cases is builtin. The
 * dataset's own truth computes outputs, but not gradients. */
static struct truths truths_of_case(const struct result *result, const struct test_case *test, struct arena *arena)
{
	struct truths out = result->truths;
	struct truth *items;

	if (test->job->edge > 0 || test->job->checks || test->finer)
		return ground_truths_builtin(result->made->op, arena);
	if (test->job->asks == JOB_OUTPUTS)
		return out;
	items = arena_array(arena, (size_t)out.count, sizeof *items);
	for (int i = 0; i < out.count; i++) {
		items[i] = out.items[i];
		if ((items[i].program || items[i].chain) && items[i].refused == NULL)
			refuse_truth(&items[i], "this ground truth computes outputs, but no gradients", arena);
	}
	out.items = items;
	return out;
}

/* Returns a digest that identifies the work of a case. Of the cases with equal digests, only one needs to run. */
static struct digest execution_of(const struct result *result, const struct test_case *test)
{
	const struct truths *truths = &test->job->truths;
	const struct own_truth *program = candidate_of(result);
	struct buf all = {0};

	buf_add(&all, test->subject.bytes, DIGEST_BYTES);
	if (program != NULL)
		buf_printf(&all, "%s\n", program->path);
	for (int i = 0; i < truths->count; i++)
		if (truths->items[i].program || truths->items[i].chain || strcmp(truths->items[i].name, FI_API_TRUTH) == 0)
			buf_printf(&all, "%s %s %d\n", truths->items[i].name, truths->items[i].version,
				   truths->items[i].refused != NULL);
	struct digest digest = all.length == DIGEST_BYTES ? test->subject : digest_of(all.data, all.length);

	buf_free(&all);
	return digest;
}

/* Reads the definition's file in truths/ or, if the run compares two versions of a reference, the older version. */
static struct own_truth read_own_truth(struct result *result, const struct buf *bytes)
{
	struct arena *arena = &result->arena;

	if (result->run->options->base != NULL)
		return base_reference_truth(result->run->options->base, result->file->path, arena);
	if (result->truth == NULL)
		return (struct own_truth){.truth = dataset_truth_missing(result->definition, arena)};
	return dataset_truth_read(result->truth->path, result->definition, bytes, result->truth_trouble, arena);
}

static struct own_truth read_solution(struct result *result, const struct blob *blob)
{
	const char *why = blob->missing != NULL ? blob->missing : blob->bad;
	struct buf bytes = {0};
	struct err err = {""};

	if (why == NULL && file_read(result->run->dataset.fd, blob->file != NULL ? blob->file : blob->path, READ_FILE_BYTES,
				     &bytes, NULL, &err) != FILE_OK)
		why = err.text[0] != '\0' ? arena_string(&result->arena, err.text) : "the file does not exist";
	const struct digest found = digest_of(bytes.data, bytes.length);

	if (why == NULL && !digest_equal(&found, &blob->content))
		why = arena_printf(&result->arena, "%s changed after it was hashed", blob->path);
	struct own_truth out = solution_truth_read(blob->path, result->definition, &bytes, why,
						   result->run->machine.policy.device_class, &result->arena);

	buf_free(&bytes);
	return out;
}

/* Reads all ground truths that are Python source in the dataset. `bytes` is the content of the dataset's own truth. */
static void read_own_truths(struct result *result, const struct buf *bytes)
{
	struct own_truth *all = arena_array(&result->arena, (size_t)result->blob_count + 3, sizeof *all);

	all[0] = read_own_truth(result, bytes);
	all[1] = dataset_truth_chain(result->run->program->kernels.api, result->definition, &result->arena);
	result->own_truth_count = OWN_TRUTHS;
	for (int i = 0; i < result->blob_count; i++)
		if (result->blobs[i].use == BLOB_SOLUTION)
			all[result->own_truth_count++] = read_solution(result, &result->blobs[i]);
	if (result->candidate > 0)
		all[result->own_truth_count++] = candidate_reference_truth(result, &result->arena);
	result->own_truths = all;
}

/* Reads the approved reference. `bytes` is the content of the approval file. */
static void read_approval(struct result *result, const struct buf *bytes)
{
	if (result->approval != NULL && result->candidate == 0 && !result->run->options->ignore_approvals)
		result->approved = approved_reference_read(result->approval->path, result->definition, bytes,
							   result->approval_trouble, &result->arena);
}

/* Returns why verdicts that depend on this ground truth are not stored, or NULL. */
static const char *why_outside(const struct result *result, const struct truth *truth)
{
	for (int i = 0; i < result->own_truth_count; i++)
		if (strcmp(result->own_truths[i].truth.name, truth->name) == 0)
			return result->own_truths[i].outside;
	return strcmp(truth->name, APPROVED_TRUTH) == 0 ? result->approved.truth.outside : NULL;
}

/* Returns the ground truths with which a solution is compared. The list begins with the ground truths of the
 * definition, except the solution itself, and ends with the definition's reference. */
static struct truths truths_of_candidate(const struct result *result, const struct truths *all, struct arena *arena)
{
	struct truth *items = arena_array(arena, GROUND_TRUTHS_MAX, sizeof *items);
	struct truths out = {items, 0, all->all, all->option};
	const char *own = candidate_of(result) != NULL ? candidate_of(result)->truth.name : "";

	for (int i = 0; i < all->count && out.count < GROUND_TRUTHS_MAX - 1; i++)
		if (strcmp(all->items[i].name, own) != 0)
			items[out.count++] = all->items[i];
	items[out.count++] = result->own_truths[result->own_truth_count - 1].truth;
	out.all = all->all && out.count > 1;
	return out;
}

/* Returns the text of a call of the FlashInfer function that the definition names, with an argument for each input.
 * Returns NULL if the definition names no function. */
static const char *fi_api_call(const struct definition *definition, struct arena *arena)
{
	struct buf text = {0};

	if (definition->fi_api == NULL)
		return NULL;
	buf_printf(&text, "%s(", definition->fi_api);
	for (int i = 0; i < definition->input_count; i++)
		buf_printf(&text, "%s%s=%s", i > 0 ? ", " : "",
			   definition->inputs[i].param != NULL ? definition->inputs[i].param : definition->inputs[i].name,
			   definition->inputs[i].name);
	buf_text(&text, ")");
	const char *call = arena_copy(arena, text.data, text.length);

	buf_free(&text);
	return call;
}

/* Finds the ground truths of the definition and of each case. */
static void find_truths(struct result *result)
{
	struct arena *arena = &result->arena;
	const struct cases *made = result->made;

	result->truths = result->run->options->base != NULL
			     ? (struct truths){&result->own_truths[0].truth, 1, false, TRUTHS_NAMED}
			     : ground_truths_for(&result->run->machine.truths, made->op, result->own_truths,
						 result->own_truth_count, fi_api_call(result->definition, arena), arena);
	if (result->candidate > 0)
		result->truths = truths_of_candidate(result, &result->truths, arena);
	if (result->run->options->base == NULL)
		result->truths = approval_add_truth(result, &result->truths, arena);
	for (int i = 0; i < result->truths.count; i++)
		if (result->truths.items[i].program && result->outside == NULL)
			result->outside = why_outside(result, &result->truths.items[i]);
	for (int i = 0; i < made->count; i++) {
		struct test_case *test = &made->items[i];

		result->cases[i].test = test;
		if (test->job == NULL)
			continue;
		test->job->truths = truths_of_case(result, test, arena);
		test->job->compare_bits = result->run->options->base != NULL;
		if (result->candidate > 0 || approval_has_run(result, test->id))
			case_inputs_are_valid(test, arena);
		/* solutions get contiguous inputs, as in flashinfer-bench */
		test->job->contiguous = result->candidate > 0;
		test->execution = execution_of(result, test);
	}
}

/* Builds the cases of attempt number `attempt`, and sets `init_failed` in the new list of cases. */
static void make_attempt(struct result *result, int attempt, const char *init_failed)
{
	struct run *run = result->run;
	struct cases *made = arena_alloc(&result->arena, sizeof *made);

	*made = cases_make(run->program->kernels.api, result->definition, &result->lines, result->blobs, result->blob_count,
			   run->program->root, &run->options->cases, attempt, &run->architectures, &result->arena);
	made->init_failed = init_failed;
	if (result->candidate > 0)
		result->outside = "verdicts of solutions are not stored";
	if (result->outside == NULL)
		result->outside = storable_reference(result->definition, runs_init(made), &result->arena);
	if (result->outside != NULL && result->unsteady == NULL)
		result->unsteady = storable_unsteady(result->definition, runs_init(made), &result->arena);
	result->made = made;
	result->attempt = attempt;
	result->planned = result->done = 0;
	result->case_count = made->count;
	result->cases = arena_array(&result->arena, (size_t)made->count, sizeof *result->cases);
	find_truths(result);
}

int result_make_cases(struct result *result, struct result_bytes *bytes, struct err *err)
{
	const struct buf *definition = &bytes->definition, *workload = &bytes->workload;
	struct run *run = result->run;
	int tensors, first_solution, blob_count;

	result->definition = definition_parse(result->file->path, result->file->op_type, result->file->name,
					     definition->data, definition->length, &result->arena, err);
	if (result->definition == NULL)
		return -1;
	if (result->workload != NULL)
		result->lines = workloads_load(result->workload->path, result->definition, workload->data, workload->length,
					       &result->arena);
	const char **paths = blob_paths(result, &result->lines, &tensors, &first_solution, &blob_count);

	check_blobs(result, paths, blob_count, tensors, first_solution, !run->options->dry_run && !run->options->cached_only);
	result->inputs = inputs_digest(result);
	read_own_truths(result, &bytes->truth);
	read_approval(result, &bytes->approval);
	make_attempt(result, 0, NULL);
	/* If only the shapes suggest a family, its inputs and bounds may be wrong for this reference. A run that
	 * compares two references or solutions with each other cannot detect this, so it builds the cases without a
	 * family. */
	if ((run->options->base != NULL || result->candidate > 0) && result->made->candidate_count > 0 && result->made->matched == MATCHED_BY_SHAPES)
		make_attempt(result, result->made->candidate_count, NULL);
	return 0;
}

/* Returns whether the reference agrees with the family. A verdict with REASON_UNATTESTED also counts as agreement: in
 * such a verdict, a ground truth agrees, but it uses a constant whose value only the reference confirms. */
static bool agrees(const struct verdict *v)
{
	return v->status == STATUS_PASSED || (v->status == STATUS_CHECKED && v->reason == REASON_UNATTESTED);
}

/* Returns whether the reference disagrees with the family in this case. Returns false for a case that could not run. */
static bool disagrees(const struct case_result *c)
{
	const struct verdict *v = c->verdict;

	if (v == NULL || c->test->decided != NULL || c->test->beside || agrees(v))
		return false;
	return v->status != STATUS_SKIPPED || (v->reason == REASON_NO_GROUND_TRUTH && !c->test->finer);
}

/* Returns true if every case has a verdict, and none of these verdicts shows that the reference agrees with the family.
 * If only the shapes suggest the family, it is then rejected. */
static bool agrees_nowhere(const struct result *result)
{
	for (int i = 0; i < result->case_count; i++)
		if (result->cases[i].verdict == NULL || agrees(result->cases[i].verdict))
			return false;
	return true;
}

/* Returns whether the family of the current attempt must be rejected, because the reference disagrees with the family
 * in a case that has a verdict. If the op_type determines the family, or if the words of the definition suggest no
 * other family, the family counts as right and the reference as wrong, so the function returns false. */
static bool rejects_family(const struct result *result)
{
	const struct cases *made = result->made;
	int left = made != NULL ? made->candidate_count - result->attempt : 0;

	if (result->run->options->base != NULL || result->candidate > 0 || left <= 0 || made->matched == MATCHED_BY_TYPE || (made->matched == MATCHED_BY_WORDS && left == 1))
		return false;
	for (int i = 0; i < result->case_count; i++)
		if (disagrees(&result->cases[i]))
			return true;
	return made->matched == MATCHED_BY_SHAPES ? agrees_nowhere(result)
						  : result->case_count == 0 && result->run->options->cases.only != NULL;
}

/* Returns a message if every candidate family was rejected and the definition's `init` failed in all cases that reftest
 * added. The message comes from the first of these cases. Otherwise returns NULL. */
static const char *init_fails(const struct result *result)
{
	const struct cases *made = result->made;
	const char *message = NULL;

	if (result->run->options->base != NULL || made == NULL || result->attempt != made->candidate_count || !runs_init(made))
		return NULL;
	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (!c->test->made_up || c->test->job == NULL || c->test->job->input_code == NULL)
			continue;
		if (c->verdict == NULL || c->verdict->status != STATUS_SKIPPED || c->verdict->reason != REASON_INPUTS)
			return NULL;
		message = message != NULL ? message : c->verdict->message;
	}
	return message;
}

bool result_needs_next_attempt(const struct result *result)
{
	return rejects_family(result) || init_fails(result) != NULL;
}

void result_make_next_attempt(struct result *result)
{
	const char *message = init_fails(result);

	if (message != NULL)
		message = arena_printf(&result->arena, "the inputs are generic, because `init` failed: %.*s",
				       (int)strcspn(message, "\n"), message);
	make_attempt(result, result->attempt + 1, message);
}

static bool tensors_unchanged(const struct result *result)
{
	for (int i = 0; i < result->blob_count; i++)
		if (result->blobs[i].missing == NULL && result->blobs[i].bad == NULL &&
		    !file_digests_blob_unchanged(result->run->digests, &result->blobs[i]))
			return false;
	return true;
}

bool result_unchanged(const struct result *result)
{
	struct file_digests *digests = result->run->digests;

	if (!file_digests_unchanged(digests, result->file, &result->definition_check.seen.content))
		return false;
	if (result->workload != NULL &&
	    !file_digests_unchanged(digests, result->workload, &result->workload_check.seen.content))
		return false;
	if (result->truth != NULL && result->truth_trouble == NULL &&
	    !file_digests_unchanged(digests, result->truth, &result->truth_check.seen.content))
		return false;
	if (result->approval != NULL && result->approval_trouble == NULL &&
	    !file_digests_unchanged(digests, result->approval, &result->approval_check.seen.content))
		return false;
	return tensors_unchanged(result);
}

bool result_is_in_store(const struct result *result)
{
	if (result->unsure || result->changed || !result->known || result->run->options->cases.only != NULL)
		return false;
	for (int i = 0; i < result->case_count; i++)
		if (!result->cases[i].in_store ||
		    !verdict_is_in_order(result->cases[i].verdict, result->cases[i].after_all))
			return false;
	return result->case_count > 0;
}

/* Returns whether a later run with the same file contents would get the same result from the store, and whether a
 * summary says everything about this result. A summary does not say how the family was found, so the function returns
 * false if something other than the op_type determined the family. */
static bool summary_holds(const struct result *result)
{
	if (!result->in_store || (result->made != NULL && result->made->how_matched != NULL))
		return false;
	if (result->approval != NULL && result->run->options->ignore_approvals)
		return false; /* a summary counts for the contents of all files, but this run ignored one of them */
	if (result->approved.code != APPROVED_NONE && result->status != STATUS_PASSED)
		return false; /* a summary does not say whether the reference is the one that was approved */
	return result->findings == 0;
}

void result_note(struct result *result)
{
	struct run *run = result->run;
	struct file_entry entry = {.path = result->file->path, .seen = result->definition_check.seen};
	const char **blobs = arena_array(&result->arena, (size_t)result->blob_count, sizeof *blobs);

	for (int i = 0; i < result->blob_count; i++)
		blobs[i] = result->blobs[i].path;
	entry.blobs = blobs;
	entry.blob_count = result->blob_count;
	entry.has_summary = summary_holds(result);
	if (entry.has_summary) {
		entry.summary = result->counts;
		entry.summary.context = run->context;
		entry.summary.inputs = result->inputs;
	}
	file_digests_note(run->digests, &entry);
	if (result->workload != NULL)
		file_digests_note(run->digests, &(struct file_entry){.path = result->workload->path,
								   .seen = result->workload_check.seen});
	note_optionals(result);
}
