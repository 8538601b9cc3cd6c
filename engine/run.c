#include "engine/run.h"

#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/show.h"
#include "engine/case_order.h"
#include "engine/definition_files.h"
#include "engine/definition_status.h"
#include "engine/expected_seconds.h"
#include "engine/last_failed.h"
#include "engine/remembered_seconds.h"
#include "engine/remote_cache.h"
#include "engine/run_pools.h"
#include "engine/save_verdicts.h"
#include "engine/shard.h"
#include "engine/solution_candidates.h"
#include "engine/solution_truth.h"
#include "engine/storable_verdicts.h"
#include "workers/sandbox/containment.h"

/* While more than PENDING_CASES cases wait for the pool, run_to_end does not start another definition. The limit keeps
 * memory bounded, but is large enough to keep every lane (a judge and its runner) busy. */
enum { PENDING_CASES = 512 };

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double run_seconds(const struct run *run)
{
	return seconds_now() - run->started;
}
/* ---- a result becomes final --------------------------------------------------------------------------------- */

/* Marks the result as waiting for the pool, until emit_result is called. */
static void wait_for_runner(struct result *result)
{
	if (result->started == 0)
		result->started = seconds_now();
	result->run->waiting += !result->waiting;
	result->waiting = true;
}

/* Returns whether the run ends before every case has a verdict. */
static bool ends_early(const struct run *run)
{
	return run->interrupted || run->stopped;
}

static bool is_failure(const struct result *result)
{
	return (result->known && status_group(result->status) > GROUP_UNVERIFIED) ||
	       (result->run->options->fail_findings && result->findings > 0);
}

static void emit_result(struct result *result)
{
	result->run->waiting -= result->waiting;
	result->waiting = false;
	if (result->run->on_result != NULL)
		result->run->on_result(result->run, result);
	if (result->run->options->fail_fast && is_failure(result))
		result->run->stopped = true;
}

static void plan_result(struct result *result);

/* Begins the next attempt. If the reference disagrees with the current op family, the new attempt uses the next op
 * family. If `init` failed, the new attempt uses generic inputs. */
static void plan_next_attempt(struct result *result)
{
	for (int i = 0; i < result->planned; i++)
		result->unsure = result->unsure || !result->cases[i].in_store;
	result_make_next_attempt(result);
	case_order_set(result);
	plan_result(result);
}

static void finish_result(struct result *result)
{
	bool ran = result->started > 0, again = result_needs_next_attempt(result);

	result->seconds = ran ? seconds_now() - result->started : 0;
	if (ran)
		storable_after_run(result, result_unchanged(result));
	save_result(result);
	if (again) {
		plan_next_attempt(result);
		return;
	}
	resolve_definition(result);
	result->in_store = result_is_in_store(result);
	if (!result->changed)
		result_note(result);
	emit_result(result);
	bool forgotten = result->run->options->forget && !result->known;
	bool plain = result->status == STATUS_PASSED && result->known && !result->changed && result->findings == 0 &&
		     result->outside == NULL;

	if (forgotten || (plain && !result->run->options->details)) { /* keep only the counts, to save memory */
		result->cases = NULL;
		result->case_count = result->done = 0;
		result->definition = NULL;
		result->made = NULL;
		result->blobs = NULL;
		result->blob_count = 0;
		arena_free(&result->arena);
	}
}

/* Finishes the result of a definition that has no cases because it is invalid, or because its content is not on this
 * machine. */
static void finish_without_cases(struct result *result, const char *message)
{
	bool remote = result->definition_check.remote || result->workload_check.remote;

	result->status = remote ? STATUS_SKIPPED : STATUS_INVALID;
	result->reason = remote ? REASON_MISSING_BLOB : REASON_NONE;
	result->known = true;
	result->message = arena_string(&result->arena, message);
	result->counts.status = (uint8_t)result->status;
	result->counts.reason = (uint8_t)result->reason;
	result->inputs = result->definition_check.seen.content;
	emit_result(result);
}
/* ---- from cases to verdicts ----------------------------------------------------------------------------------- */

/* Adds the files that the reference may read. */
static void add_reads(struct result *result, struct task *task)
{
	struct read_file *reads = arena_array(&result->arena, (size_t)result->definition->read_count, sizeof *reads);

	for (int i = 0; i < result->blob_count; i++) {
		const struct blob *blob = &result->blobs[i];

		if (blob->use == BLOB_READ)
			reads[task->read_count++] = (struct read_file){
			    blob->path, blob->file != NULL ? blob->file : blob->path, blob->content};
	}
	task->reads = reads;
}

/* Adds the names that the runner must not find in classes of Python or torch. */
static void add_attributes(struct result *result, struct task *task)
{
	const struct definition *d = result->definition;

	task->attributes = storable_attributes(d, d->reference, d->reference_length, &result->arena);
	task->init_attributes = storable_attributes(d, d->init, strlen(d->init), &result->arena);
}

/* Adds the ground truths that are Python source in the dataset. */
static void add_programs(struct result *result, struct task *task)
{
	struct truth_program *programs =
	    arena_array(&result->arena, (size_t)result->own_truth_count + 1, sizeof *programs);

	for (int i = 0; i < result->own_truth_count; i++)
		if (result->own_truths[i].program.name != NULL)
			programs[task->program_count++] = result->own_truths[i].program;
	if (result->approved.truth.program.name != NULL)
		programs[task->program_count++] = result->approved.truth.program;
	for (int i = 0; i < task->program_count; i++)
		programs[i].attributes = storable_program_attributes(&programs[i], &result->arena);
	task->programs = programs;
}

/* Looks up the time that the last run of a case took, and returns the time that the next run is expected to take. An
 * urgent run does not look up this time, so that it can start its cases sooner. */
static double expect_seconds(struct result *result, struct case_result *c)
{
	if (!result->run->options->urgent && !result->run->options->dry_run)
		c->remembered = remembered_seconds(result, c);
	return expected_seconds(c->remembered, c->test->job->op, c->test->job);
}

/* The cases of a result that are submitted together. They run in one process. */
struct submission {
	const struct job **jobs;
	double *seconds;
	int count;
	struct cases_before before;
};

static struct submission new_submission(struct result *result, int room)
{
	return (struct submission){.jobs = arena_array(&result->arena, (size_t)room, sizeof(struct job *)),
			      .seconds = arena_array(&result->arena, (size_t)room, sizeof(double))};
}

static void submission_add(struct submission *more, struct result *result, struct case_result *c)
{
	c->executes = true;
	c->after = cases_before_text(&more->before, &result->arena);
	cases_before_add(&more->before, c->test);
	more->seconds[more->count] = expect_seconds(result, c);
	more->jobs[more->count++] = c->test->job;
}

/* With --fail-fast, the tasks have no expected seconds, so they run in the order of the definitions. With expected
 * seconds, the slow definitions would start first and delay the first failure. */
static int submit(struct result *result, const struct submission *more, struct err *err)
{
	struct task task = {.reference = result->definition->reference,
			    .definition = result->definition,
			    .jobs = more->jobs,
			    .seconds = result->run->options->fail_fast ? NULL : more->seconds,
			    .job_count = more->count,
			    .owner = result,
			    .urgent = result->run->options->urgent};

	if (run_need_runner(result->run, err) < 0)
		return -1;
	task.name = result_name(result, &result->arena);
	add_reads(result, &task);
	add_attributes(result, &task);
	add_programs(result, &task);
	task.program = candidate_of(result) != NULL ? &candidate_of(result)->program : NULL;
	wait_for_runner(result);
	result->run->runner.calls->submit(result->run->runner.self, &task);
	return 0;
}

void run_give_up(struct run *run, const char *why)
{
	run->machine.cannot_run = arena_string(&run->arena, why);
	run->machine.cannot_reason = REASON_UNSUPPORTED_DEVICE;
	for (int i = 0; i < run->count; i++) {
		struct result *result = run->results[i];

		if (!result->waiting)
			continue;
		for (int k = 0; k < result->case_count; k++)
			if (result->cases[k].verdict == NULL)
				resolve_settle(result, &result->cases[k],
					       resolve_not_run(result, REASON_UNSUPPORTED_DEVICE, why));
		finish_result(result);
	}
}

/* Takes back the verdict of a case, so that the case runs again. */
static void take_back(struct result *result, struct case_result *c, const char *why)
{
	struct run *run = result->run;

	run->cases_cached -= c->cached;
	run->cases_shared -= c->shared;
	run->misses[LACK_ORDER] += c->cached;
	c->cached = c->shared = c->fetched = c->in_store = false;
	c->verdict = NULL;
	c->stored = NULL;
	c->why = why;
	result->done--;
}

/* Submits the cases from number `from` to number `to` - 1 that have no verdict, unless they wait for an equal case.
 * Returns their number, or -1 if nothing can run. */
static int submit_cases(struct result *result, int from, int to)
{
	struct run *run = result->run;
	struct submission more = new_submission(result, to - from);
	struct err err = {""};

	for (int i = from; i < to; i++) {
		struct case_result *c = &result->cases[i];

		if (c->verdict == NULL && equal_cases_join(run->equal_cases, &c->equal, result, i, &run->arena))
			submission_add(&more, result, c);
	}
	run->cases_planned += more.count;
	if (more.count == 0 || submit(result, &more, &err) == 0)
		return more.count;
	wait_for_runner(result);
	run_give_up(run, err.text);
	return -1;
}

/* Runs all cases of the result again, in one process and not instead of cases of other definitions. */
static void run_in_order(struct result *result)
{
	int first = case_order_first_alone(result) ? 1 : 0;

	result->in_order = true;
	for (int i = 0; i < result->planned; i++) {
		struct case_result *c = &result->cases[i];

		if (c->test->job == NULL)
			continue;
		c->equal = case_order_own(result, c);
		take_back(result, c, "the case runs again, because other cases had run before it than in a run of all cases");
	}
	if (first == 0 || submit_cases(result, 0, first) >= 0)
		submit_cases(result, first, result->planned);
}

/* Call this when every planned case has a verdict. Plans the remaining cases or, if there are none, finishes the
 * result. */
static void plan_or_finish(struct result *result)
{
	bool again = result_needs_next_attempt(result);

	if (result->planned < result->case_count && !again)
		plan_result(result);
	else if (!again && !result->in_order && !ends_early(result->run) && case_order_is_broken(result))
		run_in_order(result);
	else
		finish_result(result);
}

/* If the reference may read the clock, returns a copy of a passed verdict with the status `checked`. Otherwise returns
 * `verdict` itself. */
static const struct verdict *verdict_for(struct result *result, const struct verdict *verdict)
{
	struct verdict *checked;

	if (result->unsteady == NULL || verdict->status != STATUS_PASSED)
		return verdict;
	checked = arena_alloc(&result->run->arena, sizeof *checked);
	*checked = *verdict;
	checked->status = STATUS_CHECKED;
	checked->reason = REASON_UNSTEADY;
	return checked;
}

/* Sets the verdict of one case from the pool's result. `ran` is false if the case did not run itself, but shares the
 * verdict of an equal case. */
static void settle_waiter(struct run *run, const struct waiter *who, const struct pool_result *answer, bool ran,
			  bool store)
{
	struct result *result = who->result;
	struct case_result *c = &result->cases[who->case_index];

	c->in_store = store;
	c->printed = answer->printed;
	if (answer->reached != NULL && result->outside == NULL)
		result->outside = storable_reached(answer->reached, &result->arena);
	c->witness = resolve_witness(answer->verdict, &result->arena);
	if (ran) {
		run->cases_run++;
		run->cases_wrong += status_group(answer->verdict->status) > GROUP_UNVERIFIED;
		run->seconds_of_cases += answer->verdict->seconds;
	} else {
		run->cases_cached++;
		run->cases_shared++;
		c->cached = c->shared = true;
		c->why = "the verdict was taken from an identical case of this run";
	}
	resolve_settle(result, c, verdict_for(result, answer->verdict));
	if (result->done == result->planned)
		plan_or_finish(result);
}

/* Submits a case that waited for an equal case and cannot get its verdict, because the equal case will not finish or
 * its verdict cannot be shared. Any other cases that waited for the same case now wait for the submitted case. */
static void run_promoted(const struct waiter *next)
{
	struct result *result = next->result;
	struct submission more = new_submission(result, 1);
	struct err err = {""};

	submission_add(&more, result, &result->cases[next->case_index]);
	result->run->cases_planned++;
	if (submit(result, &more, &err) < 0)
		run_give_up(result->run, err.text);
}

/* Call this for a case that waited for an equal case, if the verdict of the equal case cannot be shared. If another
 * equal case is running now, the case waits for that one. Otherwise submits the case. */
static void wait_again(const struct waiter *who, const struct digest *equal)
{
	struct run *run = who->result->run;

	if (equal_cases_join(run->equal_cases, equal, who->result, who->case_index, &run->arena))
		run_promoted(who);
}

static const struct case_result *case_of_job(const struct result *result, const struct job *job)
{
	for (int i = 0; i < result->case_count; i++)
		if (result->cases[i].test->job == job)
			return &result->cases[i];
	return NULL;
}

/* Returns a copy of the verdict that says which cases had run before. */
static const struct verdict *verdict_after(struct run *run, const struct verdict *verdict, const char *after)
{
	struct verdict *copy = arena_alloc(&run->arena, sizeof *copy);

	*copy = *verdict;
	copy->after = arena_string(&run->arena, after);
	return copy;
}

static void take_answer(struct run *run, const struct pool_result *answer)
{
	const struct result *result = answer->owner;
	const struct case_result *c = case_of_job(result, answer->job);
	const struct waiter *who = c == NULL ? NULL : equal_cases_finish(run->equal_cases, &c->equal);
	bool holds = storable_for_subject(answer->verdict);
	struct pool_result ordered = *answer;
	struct digest equal = c == NULL ? (struct digest){{0}} : c->equal;

	if (c != NULL && !answer->stateless && !result->stateless)
		ordered.verdict = verdict_after(run, answer->verdict, answer->follows ? c->after : AFTER_OTHER);
	for (bool ran = true; who != NULL; who = who->next, ran = false)
		if (holds || who->result == result)
			settle_waiter(who->result->run, who, &ordered, ran, answer->keep && (ran || holds));
		else
			wait_again(who, &equal);
}

/* Verdicts are allocated in the arena of the run, because several results may share one verdict. */
void run_take_answers(struct runner runner)
{
	struct pool_result answer;
	const struct result *owner;

	while ((owner = runner.calls->next_owner(runner.self)) != NULL &&
	       runner.calls->next(runner.self, &owner->run->arena, &answer))
		take_answer(owner->run, &answer);
}

static void tick(struct run *run)
{
	double now = seconds_now();

	if (run->on_tick == NULL || now - run->ticked < TICK_MS / 1e3)
		return;
	run->ticked = now;
	run->on_tick(run);
}

/* Waits until the pool has results or a signal arrives, but at most `timeout_ms` milliseconds (-1: without a limit).
 * Shows the progress. */
static bool was_interrupted(struct run *run, int timeout_ms)
{
	bool has_runner = run->runner.calls != NULL;
	struct pollfd fds[2] = {{.fd = run->program->signals, .events = POLLIN},
				{.fd = has_runner ? run->runner.calls->fd(run->runner.self) : -1, .events = POLLIN}};

	poll(fds, 2, timeout_ms < 0 && run->on_tick != NULL ? TICK_MS : timeout_ms);
	tick(run);
	if ((fds[0].revents & POLLIN) != 0)
		run->interrupted = true;
	return run->interrupted;
}

/* Waits until the pool has results or a signal arrives. Then processes the results. */
static void pump(struct run *run)
{
	struct err err = {""};

	if (was_interrupted(run, -1))
		return;
	int rc = run->runner.calls->dispatch(run->runner.self, &err);

	run_take_answers(run->runner);
	if (rc < 0) {
		run_close_runner(run);
		run_give_up(run, err.text);
	}
}

/* If the run ended early, stores the verdicts of the cases that have finished. A definition with unfinished cases stays
 * unknown. */
static void commit_finished_cases(struct run *run)
{
	for (int i = 0; i < run->count; i++) {
		struct result *result = run->results[i];

		if (!result->waiting || result->dropped)
			continue;
		if (result_unchanged(result))
			save_result(result);
		resolve_definition(result);
	}
}

/* Returns the number of cases to plan now. This is the number of all cases, with one exception: if only the shapes
 * suggest the op family, it is 1 at first. The first case usually shows whether the reference computes something else
 * than the family. */
static int count_to_plan(const struct result *result)
{
	bool one = result->planned == 0 && case_order_first_alone(result) && !result->run->options->dry_run;

	return one ? 1 : result->case_count;
}

/* Takes back the stored verdicts of the cases from number `from` on. If nothing may run, they stay. */
static void take_back_stored(struct result *result, int from)
{
	static const char why[] = "another case of the definition must run, and the reference may keep something from one "
				  "case to the next";

	for (int i = from; i < result->planned; i++) {
		struct case_result *c = &result->cases[i];

		if (c->cached && result->run->options->cached_only)
			c->why = arena_printf(&result->arena, "%s; it will run again: %s", c->why, why);
		else if (c->cached)
			take_back(result, c, why);
	}
}

static void plan_result(struct result *result)
{
	int from = result->planned;

	result->planned = count_to_plan(result);
	for (int i = from; i < result->planned; i++)
		resolve_case(result, &result->cases[i]);
	result->stateless = result->stateless || case_order_is_stateless(result);
	if (case_order_needs_all(result, from))
		take_back_stored(result, from);
	resolve_read_wholly(result);
	if (result->run->options->dry_run)
		finish_result(result);
	else if (result->done == result->planned)
		plan_or_finish(result);
	else if (submit_cases(result, from, result->planned) == 0)
		wait_for_runner(result); /* every case of the result waits for an equal case of another definition */
}

static struct result *add_result(struct run *run, const struct result *result)
{
	struct result *copy = arena_alloc(&run->arena, sizeof *copy);

	*copy = *result;
	run->results[run->count++] = copy;
	return copy;
}

/* If the definition passed, and the options do not ask for the results of passed definitions, only counts the
 * definition and returns true. The result is not kept, so ten thousand passed definitions need no memory. */
static bool only_count(struct result *result)
{
	struct run *run = result->run;

	if (run->options->each || result->status != STATUS_PASSED || result->from_lru)
		return false;
	run->answered++;
	run->answered_elements += result->counts.elements;
	if (run->on_counted != NULL)
		run->on_counted(run, result);
	return true;
}

/* `candidate` is the number of the solution to verify, from 1, or 0 to verify the reference. */
static void visit_one(struct run *run, const struct dataset_file *file, int candidate)
{
	struct result_bytes *bytes = &run->bytes;
	struct result scratch = {.file = file,
				 .run = run,
				 .candidate = candidate,
				 .workload = dataset_workload(&run->dataset, file),
				 .truth = dataset_truth(&run->dataset, file),
				 .approval = dataset_approval(&run->dataset, file)};
	struct err err = {""};
	bool checked = result_check_files(&scratch, bytes, false, &err) == 0;
	bool answered = checked && candidate == 0 && (result_from_summary(&scratch) || result_from_lru(&scratch));

	if (answered && only_count(&scratch))
		return;
	struct result *result = add_result(run, &scratch);

	if (answered) {
		emit_result(result);
		return;
	}
	/* No stored summary can be used, so the definition is parsed. Files that were not read so far are read and
	 * hashed now, so that exactly the bytes that were hashed are parsed. */
	if (!checked || result_check_files(result, bytes, true, &err) < 0 ||
	    result_make_cases(result, bytes, &err) < 0) {
		finish_without_cases(result, err.text);
		return;
	}
	case_order_set(result);
	if (candidate > 0 && candidate_decided(result))
		emit_result(result);
	else if (!remote_cache_defers(result, resolve_known))
		plan_result(result);
	was_interrupted(run, 0);
}

static void visit(struct run *run, const struct dataset_file *file)
{
	int count;

	if (!shard_has(&run->options->shard, file->op_type, file->name)) {
		run->other_shard++;
		return;
	}
	if (run->options->candidates == NULL) {
		visit_one(run, file, 0);
		return;
	}
	solution_paths(run->dataset.fd, file->op_type, file->name, &run->arena, &count);
	for (int i = 1; i <= count; i++)
		visit_one(run, file, i);
}

/* ---- the steps of a run ----------------------------------------------------------------------------------------- */

int run_begin(struct run *run, struct err *err)
{
	run->started = run->ticked = seconds_now();
	size_t each = run->options->candidates != NULL ? SOLUTIONS_MAX : 1;

	run->results = arena_array(&run->arena, (size_t)run->selected_count * each, sizeof *run->results);
	return program_signals(run->program, err);
}

bool run_visit(struct run *run)
{
	struct result *answered = remote_cache_next(run, run->visited >= run->selected_count);

	if (answered != NULL) {
		plan_result(answered);
		return true;
	}
	if (run->visited >= run->selected_count)
		return false;
	const struct dataset_file *file = run->selected[run->visited++];

	if (file != NULL) /* NULL if run_drop removed the definition */
		visit(run, file);
	return true;
}

bool run_done(const struct run *run)
{
	return run->visited >= run->selected_count && run->waiting == 0;
}

/* Adds the run to the counters of `reftest cache stats`. A dry run is not counted. */
static void count_run(const struct run *run)
{
	struct cache_stats stats = {.runs = 1, .hits = run->cases_cached};

	for (int i = 0; i < LACK_COUNT; i++)
		stats.misses[i] = run->misses[i];
	if (!run->options->dry_run && run->records.calls != NULL)
		run->records.calls->count(run->records.self, &stats);
}

static bool differs(const char *expected, const char *found)
{
	return expected != NULL && found != NULL && strcmp(expected, found) != 0;
}

/* Returns whether the processes that run references have another version of torch or Python than the run expected. If
 * they have, the run has accepted stored verdicts of versions that are not installed, and it stores no summaries. */
static bool has_other_versions(const struct run *run)
{
	const struct policy *expected = &run->machine.policy;
	struct pool_versions found = {NULL, NULL};

	if (run->runner.calls != NULL)
		found = run->runner.calls->versions(run->runner.self);
	bool torch = differs(expected->torch, found.torch);

	if (!torch && !differs(expected->python, found.python))
		return false;
	const char *what = torch ? "torch" : "Python", *then = torch ? expected->torch : expected->python;

	show_print(stderr,
	    "reftest: %s ran references with %s %s, but %s %s was expected; cached verdicts above are for %s %s, so run "
	    "reftest again\n",
	    run->machine.python, what, torch ? found.torch : found.python, what, then, what, then);
	machine_forget_torch(run->program, &run->machine);
	return true;
}

static void note_containment(struct run *run)
{
	char names[CONTAINMENT_TEXT], sentences[CONTAINMENT_SENTENCES];
	uint32_t layers;

	if (run->runner.calls == NULL || !run->runner.calls->layers(run->runner.self, &layers))
		return;
	containment_write(layers, names);
	containment_write_sentences(layers, sentences);
	run->containment = arena_string(&run->arena, names);
	run->gaps = arena_string(&run->arena, sentences);
}

void run_end(struct run *run)
{
	struct err note = {""};
	bool other_versions = has_other_versions(run);

	note_containment(run);
	run_close_runner(run);
	if (ends_early(run))
		commit_finished_cases(run);
	save_waiting(run);
	/* Summaries are stored only if every verdict of the run is in the store. */
	if (!run->options->dry_run && run->not_stored == NULL && !other_versions &&
	    file_digests_write(run->digests, &note) < 0)
		run->not_stored = arena_string(&run->arena, note.text);
	last_failed_write(run);
	run->seconds = run_seconds(run);
	count_run(run);
}

static void drop_result(struct result *result)
{
	struct run *run = result->run;

	if (run->runner.calls != NULL)
		run->runner.calls->cancel(run->runner.self, result);
	result->dropped = true;
	result->known = result->waiting = false;
	run->waiting--;
	for (int i = 0; i < result->case_count; i++) {
		const struct waiter *next = equal_cases_leave(run->equal_cases, &result->cases[i].equal, result, i);

		if (next != NULL && next->result != result)
			run_promoted(next);
	}
}

bool run_drop(struct run *run, const char *path)
{
	for (int i = run->visited; i < run->selected_count; i++)
		if (run->selected[i] != NULL && strcmp(run->selected[i]->path, path) == 0) {
			run->selected[i] = NULL;
			return true;
		}
	for (int i = 0; i < run->count; i++)
		if (run->results[i]->waiting && strcmp(run->results[i]->file->path, path) == 0) {
			drop_result(run->results[i]);
			return true;
		}
	return false;
}

static int pending(const struct run *run)
{
	return run->runner.calls != NULL ? run->runner.calls->pending(run->runner.self) : 0;
}

int run_to_end(struct run *run, struct err *err)
{
	if (run_begin(run, err) < 0)
		return -1;
	while (!ends_early(run) && run_visit(run))
		while (pending(run) > PENDING_CASES && !ends_early(run))
			pump(run);
	if (run->on_planned != NULL)
		run->on_planned(run);
	while (pending(run) > 0 && !ends_early(run))
		pump(run);
	run_end(run);
	return 0;
}
