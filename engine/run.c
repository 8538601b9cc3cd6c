#include "engine/run.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/show.h"
#include "engine/solution_candidates.h"
#include "engine/disk_files.h"
#include "engine/disk_store.h"
#include "engine/git_index_files.h"
#include "engine/job_count.h"
#include "engine/last_failed.h"
#include "engine/pool_case_runner.h"
#include "engine/remote_cache.h"
#include "engine/definition_status.h"
#include "engine/definition_files.h"
#include "engine/expected_seconds.h"
#include "engine/remembered_seconds.h"
#include "engine/save_verdicts.h"
#include "engine/selection.h"
#include "engine/run_defaults.h"
#include "engine/settings.h"
#include "engine/several_devices.h"
#include "engine/shard.h"
#include "engine/solution_truth.h"
#include "engine/staged_dataset.h"
#include "engine/storable_verdicts.h"
#include "engine/watcher_answers.h"
#include "workers/judge/judge.h"
#include "workers/pool/environment.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/pool.h"
#include "workers/sandbox/containment.h"

/* While more than PENDING_CASES cases wait for the pool, run_to_end starts no further definition. The limit bounds
 * memory and is large enough to keep every lane (a judge and its runner) busy. */
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

/* ---- opening -------------------------------------------------------------------------------------------------- */

/* Returns a digest of everything, except files, that verdicts depend on: kernels, options, device, versions. A stored
 * summary is used only if it was computed with the same digest. */
static struct digest context_digest(const struct run *run, struct arena *arena)
{
	const struct case_options *cases = &run->options->cases;
	const struct policy *policy = &run->machine.policy;
	struct fields fields = {0};

	field_text(&fields, arena, "kernels", run->program->kernels.api->digest);
	field_text(&fields, arena, "checker", run->program->kernels.api->checker_digest);
	field_printf(&fields, arena, "sizes", "%d %d %d", cases->size[SIZE_SMALL], cases->size[SIZE_MEDIUM],
		     cases->size[SIZE_LARGE]);
	field_printf(&fields, arena, "edge", "%d", cases->edge);
	field_printf(&fields, arena, "backward", "%d", cases->backward);
	field_printf(&fields, arena, "workloads", "%d", cases->workloads);
	field_printf(&fields, arena, "seed", "%llu", (unsigned long long)cases->seed);
	field_add(&fields, arena, "tolerance", NULL, &cases->tolerance, sizeof cases->tolerance);
	field_add(&fields, arena, "tolerances", NULL, cases->by_dtype, sizeof cases->by_dtype);
	if (cases->dataset_bounds)
		field_add(&fields, arena, "dataset tolerances", NULL, cases->dataset_by_dtype, sizeof cases->dataset_by_dtype);
	field_printf(&fields, arena, "device", "%s %d%s", policy->device_class, policy->any_gpu,
		     policy->foreign_class ? " elsewhere" : "");
	field_printf(&fields, arena, "torch", "%s %s", policy->torch != NULL ? policy->torch : "any",
		     policy->cuda != NULL ? policy->cuda : "none");
	if (policy->required != NULL)
		field_text(&fields, arena, "containment", policy->required);
	if (environment_that_counts(arena) != NULL)
		field_text(&fields, arena, "environment", environment_that_counts(arena));
	field_text(&fields, arena, "ground_truths", ground_truths_context(&run->machine.truths, arena));
	return fields_digest(&fields);
}

/* Opens the whole dataset or, if a watcher is running, only the definitions that it does not report as verified. */
static int open_dataset(struct run *run, struct err *err)
{
	const struct run_options *options = run->options;
	const char *root = run->program->root;
	struct up_to_date known;

	if (options->from_index) {
		run->staged = staged_open(root, &run->arena, &run->dataset, err);
		return run->staged == NULL ? -1 : 0;
	}
	if (options->watcher == NULL)
		return dataset_scan(root, &run->arena, &run->dataset, err);
	if (options->ask_verified &&
	    options->watcher->verified(root, &run->context, options->ask_rows, &run->arena, &known)) {
		run->up_to_date = known.definitions;
		run->up_to_date_elements = known.elements;
		run->up_to_date_rows = known.rows;
		run->cases_cached = known.cases;
	} else if (options->ask_count == 0 ||
		   !options->watcher->paths(root, options->ask_names, options->ask_count, &run->arena, &known)) {
		return dataset_scan(root, &run->arena, &run->dataset, err);
	}
	if (dataset_some(root, known.paths, known.path_count, &run->arena, &run->dataset, err) < 0)
		return -1;
	if (options->ask_verified)
		dataset_look_at_folders(&run->dataset, &run->arena);
	return 0;
}

static int find_root(struct program *program, const struct run_options *options, struct err *err)
{
	return options->from_index && program->root[0] == '\0'
		   ? staged_root(program->root_given, program->root, sizeof program->root, err)
		   : program_root(program, err);
}

/* Reads the stored records of the dataset's files, as the last step of opening a run. The options, the machine policy
 * and the dataset of the run must already be set. */
static int open_files(struct run *run, struct run_files files, struct run_store records, struct err *err)
{
	run->equal_cases = &run->own_equal_cases;
	run->records = records;
	run->states = file_states_open(records, &run->dataset, files, &run->arena, err);
	return run->states == NULL ? EXIT_INTERNAL : 0;
}

static struct run_files files_of(struct run *run)
{
	return run->staged != NULL ? git_index_files(run->staged, &run->dataset, &run->arena) : disk_files(&run->dataset);
}

/* Returns whether a run reads and stores verdicts: not one that compares with a commit, verifies solutions, or
 * measures. */
static bool keeps_verdicts(const struct run_options *options)
{
	return options->base == NULL && options->candidates == NULL && !options->cases.bench;
}

int run_open(struct run *run, struct program *program, const struct run_options *options, struct err *err)
{
	struct err note;

	*run = (struct run){.program = program, .options = options};
	run->dataset.fd = -1;
	if (find_root(program, options, err) < 0 || program_settings(program, err) < 0)
		return EXIT_USAGE;
	run->filled = *options;
	run_defaults(program->settings, &run->filled);
	run->options = options = &run->filled;
	program_store(program, options->dry_run, &note);
	if (note.text[0] != '\0')
		show_print(stderr, "reftest: %s\n", note.text);
	if (program_kernels(program, err) < 0)
		return EXIT_INTERNAL;
	if (machine_policy(program, options->device, options->python, options->ground_truth, &run->arena, &run->machine,
			   err) < 0)
		return EXIT_USAGE;
	if (options->needs_device && options->device_class == NULL && run->machine.no_device)
		return err_set(err, "%s", run->machine.cannot_run), EXIT_UNVERIFIED;
	if (options->device_class != NULL && machine_accept(&run->machine, options->device_class, &run->arena, err) < 0)
		return EXIT_USAGE;
	run->machine.policy.force = options->force;
	run->machine.policy.cached_only = options->cached_only;
	run->machine.policy.required = settings_required(program->settings, options->required);
	run->context = context_digest(run, &run->arena);
	if (open_dataset(run, err) < 0)
		return options->from_index ? EXIT_USAGE : EXIT_INTERNAL;
	if (options->share)
		run->remote_cache = remote_cache_open(program);
	return open_files(run, files_of(run), keeps_verdicts(options) ? disk_store(program) : (struct run_store){NULL, NULL}, err);
}

/* Initializes a run, for run_open_some and run_open_parts. */
static void begin_open(struct run *run, struct program *program, const struct run_options *options,
		       const struct machine_policy *machine)
{
	*run = (struct run){.program = program, .options = options, .machine = *machine};
	run->dataset.fd = -1;
	run->machine.policy.force = options->force;
	run->machine.policy.cached_only = options->cached_only;
	run->machine.policy.required = settings_required(program->settings, options->required);
	run->context = context_digest(run, &run->arena);
}

int run_open_some(struct run *run, struct program *program, const struct run_options *options,
		  const struct machine_policy *machine, const char *const *paths, int count, struct err *err)
{
	begin_open(run, program, options, machine);
	if ((paths == NULL ? dataset_scan(program->root, &run->arena, &run->dataset, err)
			   : dataset_some(program->root, paths, count, &run->arena, &run->dataset, err)) < 0)
		return EXIT_INTERNAL;
	int code = open_files(run, files_of(run), disk_store(program), err);

	return code == 0 && run_select(run, NULL, 0, NULL, 0, err) < 0 ? EXIT_INTERNAL : code;
}

int run_open_parts(struct run *run, struct program *program, const struct run_options *options,
		   const struct run_parts *parts, struct err *err)
{
	begin_open(run, program, options, parts->machine);
	run->dataset = *parts->dataset;
	int code = open_files(run, parts->files, parts->records, err);

	run_lend(run, parts->runner, NULL);
	return code == 0 && run_select(run, NULL, 0, NULL, 0, err) < 0 ? EXIT_INTERNAL : code;
}

void run_lend(struct run *run, struct runner runner, struct equal_cases *equal_cases)
{
	run->runner = runner;
	run->lent = runner.calls != NULL;
	run->equal_cases = equal_cases != NULL ? equal_cases : &run->own_equal_cases;
}

static void close_runner(struct run *run)
{
	if (run->runner.calls != NULL && !run->lent)
		run->runner.calls->close(run->runner.self);
	run->runner = (struct runner){NULL, NULL};
}

void run_close(struct run *run)
{
	close_runner(run);
	remote_cache_close(run->remote_cache, run->interrupted);
	arena_free(&run->later.arena);
	buf_free(&run->bytes.definition);
	buf_free(&run->bytes.workload);
	buf_free(&run->bytes.truth);
	buf_free(&run->bytes.approval);
	for (int i = 0; i < run->count; i++)
		arena_free(&run->results[i]->arena);
	if (run->staged != NULL)
		staged_close(run->staged);
	if (run->dataset.fd >= 0)
		dataset_close(&run->dataset);
	arena_free(&run->arena);
}

/* Returns whether a problem of the dataset concerns a selected definition. A problem such as "definitions/rmsnorm/…:
 * why" concerns only the definitions with the op_type rmsnorm. */
static bool concerns(const struct run *run, const char *problem)
{
	const char *slash = strchr(problem, '/');
	size_t length = slash != NULL ? strcspn(slash + 1, "/:") : 0;

	if (slash == NULL || slash > strchr(problem, ':')) /* the problem concerns all definitions */
		return true;
	for (int i = 0; i < run->selected_count; i++)
		if (strlen(run->selected[i]->op_type) == length &&
		    memcmp(run->selected[i]->op_type, slash + 1, length) == 0)
			return true;
	return false;
}

static void select_problems(struct run *run, bool everything)
{
	const struct dataset *dataset = &run->dataset;

	run->problems = arena_array(&run->arena, (size_t)dataset->problem_count, sizeof *run->problems);
	for (int i = 0; i < dataset->problem_count; i++)
		if (everything || concerns(run, dataset->problems[i]))
			run->problems[run->problem_count++] = dataset->problems[i];
}

int run_select(struct run *run, const char *const *names, int name_count, const char *const *op_types,
	       int op_type_count, struct err *err)
{
	const struct selection words = {names, op_types, name_count, op_type_count};
	int count = select_definitions(&run->dataset, &words, &run->arena, &run->selected, err);

	run->selected_count = count > 0 ? count : 0;
	select_problems(run, name_count + op_type_count == 0);
	return count < 0 ? -1 : 0;
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

/* Tries the next family, because the reference disagrees with the one that was tried, or generic inputs, because `init`
 * failed. */
static void plan_next_attempt(struct result *result)
{
	for (int i = 0; i < result->planned; i++)
		result->unsure = result->unsure || !result->cases[i].in_store;
	result_make_next_attempt(result);
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
	if (!result->changed)
		result_note(result);
	emit_result(result);
	bool forgotten = result->run->options->forget && !result->known;
	bool plain = result->status == STATUS_PASSED && result->known && !result->changed && result->findings == 0 &&
		     result->outside == NULL;

	if (forgotten || (plain && !result->run->options->details)) { /* keep only counts: 10 000 results need little memory */
		result->cases = NULL;
		result->case_count = result->done = 0;
		result->definition = NULL;
		result->made = NULL;
		result->blobs = NULL;
		result->blob_count = 0;
		arena_free(&result->arena);
	}
}

/* Finishes the result, without cases, of a definition that is invalid or whose content is not on this machine. */
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

/* Returns how many references run in parallel on one of the devices. --jobs counts those on all devices, and the first
 * devices get one more if they cannot be equal. */
static int lanes_of_device(const struct run_options *options, const struct machine_policy *machine, int number, int count)
{
	struct job_facts facts = job_facts_here(strcmp(machine->policy.device, "cpu") != 0);

	facts.cores = facts.cores / count > 0 ? facts.cores / count : 1;
	facts.memory /= count;
	facts.kept = options->kept_runners;
	facts.urgent = options->interactive;
	return options->jobs > 0 ? options->jobs / count + (number < options->jobs % count) : job_count(&facts, NULL);
}

/* `watch` runs few references at a time, so it uses the first device only. */
static int devices_in_use(const struct run_options *options, const struct machine_policy *machine)
{
	return options->interactive || machine->device_count < 1 ? 1 : machine->device_count;
}

int run_lanes(const struct run_options *options, const struct machine_policy *machine)
{
	int count = devices_in_use(options, machine), lanes = 0;

	for (int i = 0; i < count; i++)
		lanes += lanes_of_device(options, machine, i, count);
	return lanes;
}

/* Opens the pool of one of `count` devices. */
static struct pool *open_pool_of(struct program *program, const struct run_options *options,
				 const struct machine_policy *machine, int number, int count, struct err *err)
{
	if (strcmp(machine->policy.device, "cpu") != 0)
		program_cuda_kernels(program);
	const struct pool_options how = {
	    .device = count > 1 ? machine->devices[number] : machine->policy.device,
	    .python = machine->python,
	    .root = program->root,
	    .judge = judge_program(&program->kernels),
	    .libraries = ground_truths_use_libraries(&machine->truths),
	    .lanes = lanes_of_device(options, machine, number, count),
	    .cores = machine_cores() / count,
	    .guarded = count > 1,
	    .timeout_s = options->timeout_s,
	    .memory = options->memory,
	    .own = !options->kept_runners,
	    .staged = options->staged,
	    .spares = options->spares,
	    .required = settings_required(program->settings, options->required),
	};

	return pool_open(&how, err);
}

struct pool *run_open_pool(struct program *program, const struct run_options *options,
			   const struct machine_policy *machine, struct err *err)
{
	return open_pool_of(program, options, machine, 0, 1, err);
}

static void print_note(const char *sentence)
{
	show_print(stderr, "reftest: %s\n", sentence);
}

static void close_guard(void *context)
{
	pool_guard_close(context);
}

/* Opens a pool for each device that gets references. Returns a runner without calls, and a message, on error. */
static struct runner open_pools(struct run *run, int count, struct err *err)
{
	struct device_runner *devices = arena_array(&run->arena, (size_t)count, sizeof *devices);
	struct pool_guard *guard = arena_alloc(&run->arena, sizeof *guard);
	int opened = 0;

	*guard = pool_guard_open();
	for (int i = 0; i < count; i++) {
		int lanes = lanes_of_device(run->options, &run->machine, i, count);
		struct pool *pool = lanes == 0 ? NULL : open_pool_of(run->program, run->options, &run->machine, i, count, err);

		if (pool != NULL)
			devices[opened++] = (struct device_runner){run->machine.devices[i], pool_runner(pool), lanes};
		else if (lanes > 0)
			break;
	}
	if (err->text[0] == '\0')
		return several_devices(devices, opened, print_note, close_guard, guard, err);
	while (opened > 0) {
		const struct runner *runner = &devices[--opened].runner;

		runner->calls->close(runner->self);
	}
	pool_guard_close(guard);
	return (struct runner){NULL, NULL};
}

static int need_runner(struct run *run, struct err *err)
{
	int count = devices_in_use(run->options, &run->machine);

	if (run->runner.calls == NULL)
		run->runner = count > 1 ? open_pools(run, count, err)
					: pool_runner(run_open_pool(run->program, run->options, &run->machine, err));
	return run->runner.calls == NULL ? -1 : 0;
}

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

/* Adds the texts of the dataset that are ground truths. */
static void add_programs(struct result *result, struct task *task)
{
	struct truth_program *programs =
	    arena_array(&result->arena, (size_t)result->own_truth_count + 1, sizeof *programs);

	for (int i = 0; i < result->own_truth_count; i++)
		if (result->own_truths[i].program.name != NULL)
			programs[task->program_count++] = result->own_truths[i].program;
	if (result->approved.truth.program.name != NULL)
		programs[task->program_count++] = result->approved.truth.program;
	task->programs = programs;
}

/* Sets how long a case took last, and returns how long it is expected to take. Nothing that a user waits for is delayed
 * by a question to the store. */
static double expect_seconds(struct result *result, struct case_result *c)
{
	if (!result->run->options->urgent && !result->run->options->dry_run)
		c->remembered = remembered_seconds(result, c);
	return expected_seconds(c->remembered, c->test->job->op, c->test->job);
}

/* The cases of a result that are submitted together. */
struct submission {
	const struct job **jobs;
	double *seconds;
	int count;
};

static struct submission new_submission(struct result *result, int room)
{
	return (struct submission){.jobs = arena_array(&result->arena, (size_t)room, sizeof(struct job *)),
			      .seconds = arena_array(&result->arena, (size_t)room, sizeof(double))};
}

static void submission_add(struct submission *more, struct result *result, struct case_result *c)
{
	c->executes = true;
	more->seconds[more->count] = expect_seconds(result, c);
	more->jobs[more->count++] = c->test->job;
}

/* With --fail-fast, the tasks have no expected seconds and run in the order of the definitions: starting with the slow
 * ones would delay the first failure. */
static int submit(struct result *result, const struct submission *more, struct err *err)
{
	struct task task = {.reference = result->definition->reference,
			    .definition = result->definition,
			    .jobs = more->jobs,
			    .seconds = result->run->options->fail_fast ? NULL : more->seconds,
			    .job_count = more->count,
			    .owner = result,
			    .urgent = result->run->options->urgent};

	if (need_runner(result->run, err) < 0)
		return -1;
	task.name = result_name(result, &result->arena);
	add_reads(result, &task);
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

/* Call this when every planned case has a verdict: plans the other cases, or finishes the result. */
static void plan_or_finish(struct result *result)
{
	if (result->planned < result->case_count && !result_needs_next_attempt(result))
		plan_result(result);
	else
		finish_result(result);
}

/* Returns the verdict of a case of this result: one of a reference that may read the clock is no more than checked. */
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

/* Sets the verdict of one case from the pool's result. `ran` is false if the case shares the verdict of an equal case
 * and did not run itself. */
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
		c->why = "the verdict is from an equal case of this run";
	}
	resolve_settle(result, c, verdict_for(result, answer->verdict));
	if (result->done == result->planned)
		plan_or_finish(result);
}

/* Submits a waiting case, because the equal case that it waited for was dropped. Further equal cases then wait for the
 * submitted case. */
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

/* Call this for a case that waited for an equal case whose verdict cannot be shared. The case then waits for another
 * equal case or, if there is none, runs. */
static void wait_again(const struct waiter *who, const struct digest *execution)
{
	struct run *run = who->result->run;

	if (equal_cases_join(run->equal_cases, execution, who->result, who->case_index, &run->arena))
		run_promoted(who);
}

static void take_answer(struct run *run, const struct pool_result *answer)
{
	const struct result *result = answer->owner;
	const struct waiter *who = NULL;
	struct digest execution;

	for (int i = 0; i < result->case_count && who == NULL; i++)
		if (result->cases[i].test->job == answer->job) {
			execution = result->cases[i].test->execution;
			who = equal_cases_finish(run->equal_cases, &execution);
		}
	bool holds = storable_for_subject(answer->verdict);

	for (bool ran = true; who != NULL; who = who->next, ran = false)
		if (holds || who->result == result)
			settle_waiter(who->result->run, who, answer, ran, answer->keep && (ran || holds));
		else
			wait_again(who, &execution);
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

/* Waits at most `timeout_ms` (-1: without a limit) for results of the pool or a signal. Shows the progress. */
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

/* Waits until the pool has results or a signal arrives, and processes the results that are ready. */
static void pump(struct run *run)
{
	struct err err = {""};

	if (was_interrupted(run, -1))
		return;
	int rc = run->runner.calls->dispatch(run->runner.self, &err);

	run_take_answers(run->runner);
	if (rc < 0) {
		close_runner(run);
		run_give_up(run, err.text);
	}
}

/* After a run that ended early, stores the verdicts of finished cases. A definition with unfinished cases stays
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

/* Returns the number of cases to plan now: all, but only the first one of a family that matches by shapes, because it
 * shows in most cases whether the reference computes something else. */
static int count_to_plan(const struct result *result)
{
	bool one = result->planned == 0 && result->case_count > 0 && result->made->op != NULL &&
		   result->made->matched == MATCHED_BY_SHAPES && !result->run->options->dry_run;

	return one ? 1 : result->case_count;
}

static void plan_result(struct result *result)
{
	struct run *run = result->run;
	struct submission more = new_submission(result, result->case_count);
	struct err err = {""};
	int from = result->planned, waiting = 0;

	result->planned = count_to_plan(result);
	for (int i = from; i < result->planned; i++) {
		const struct test_case *test = result->cases[i].test;

		if (!resolve_case(result, &result->cases[i]))
			continue;
		waiting++;
		if (!equal_cases_join(run->equal_cases, &test->execution, result, i, &run->arena))
			continue;
		submission_add(&more, result, &result->cases[i]);
	}
	run->cases_planned += more.count;
	resolve_read_wholly(result);
	if (run->options->dry_run)
		finish_result(result);
	else if (result->done == result->planned)
		plan_or_finish(result);
	else if (more.count == 0 && waiting > 0)
		wait_for_runner(result); /* every case of the result waits for an equal case of another definition */
	else if (submit(result, &more, &err) < 0) {
		wait_for_runner(result);
		run_give_up(run, err.text);
	}
}

static struct result *add_result(struct run *run, const struct result *result)
{
	struct result *copy = arena_alloc(&run->arena, sizeof *copy);

	*copy = *result;
	run->results[run->count++] = copy;
	return copy;
}

/* If the definition passed and the options do not require a result for it, counts the definition and returns true. The
 * result is not kept, so ten thousand such definitions need no memory. */
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

/* Removes the newest result, because other shards report its cases. */
static void drop_other_shard(struct result *result)
{
	result->run->count--;
	result->run->other_shard++;
	arena_free(&result->arena);
}

/* `candidate` is the number of the solution that is verified in the place of the reference; 0: the reference is. */
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
	/* The definition must be parsed. Reads and hashes each file that was not read so far, because the parsed bytes
	 * must be the bytes that were hashed. */
	if (!checked || result_check_files(result, bytes, true, &err) < 0 ||
	    result_make_cases(result, bytes, &err) < 0) {
		result->other_shard = !shard_reports(&run->options->cases.shard, result_name(result, &result->arena));
		if (!result->other_shard)
			finish_without_cases(result, err.text);
		else
			drop_other_shard(result);
		return;
	}
	if (result->other_shard) {
		drop_other_shard(result);
		return;
	}
	if (candidate > 0 && candidate_decided(result))
		emit_result(result);
	else if (!remote_cache_defers(result, resolve_known))
		plan_result(result);
	was_interrupted(run, 0);
}

static void visit(struct run *run, const struct dataset_file *file)
{
	int count;

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

	if (file != NULL) /* NULL: run_drop removed the definition */
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

/* Verdicts are stored under the torch version that the zygote reports (the process from which runners are forked). If
 * this version differs from the expected version, this run has accepted stored verdicts of a torch version that is not
 * installed. The run then stores no summaries. */
static bool has_other_torch(const struct run *run)
{
	const char *expected = run->machine.policy.torch;
	const char *found = run->runner.calls != NULL ? run->runner.calls->torch(run->runner.self) : NULL;

	if (expected == NULL || found == NULL || strcmp(expected, found) == 0)
		return false;
	show_print(stderr,
	    "reftest: %s ran references with torch %s, but torch %s was expected; cached verdicts above are for torch "
	    "%s, so run reftest again\n",
	    run->machine.python, found, expected, expected);
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
	bool other_torch = has_other_torch(run);

	note_containment(run);
	close_runner(run);
	if (ends_early(run))
		commit_finished_cases(run);
	save_waiting(run);
	/* Summaries are stored only if every verdict of the run is in the store. */
	if (!run->options->dry_run && run->not_stored == NULL && !other_torch &&
	    file_states_write(run->states, &note) < 0)
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
		const struct waiter *next = equal_cases_leave(run->equal_cases, &result->cases[i].test->execution, result, i);

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
