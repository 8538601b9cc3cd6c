#include "engine/run.h"

#include <string.h>

#include "base/show.h"
#include "cache/expired_summaries.h"
#include "engine/disk_files.h"
#include "engine/disk_store.h"
#include "engine/git_index_files.h"
#include "engine/remote_cache.h"
#include "engine/run_defaults.h"
#include "engine/run_pools.h"
#include "engine/selection.h"
#include "engine/settings.h"
#include "engine/solution_truth.h"
#include "engine/staged_dataset.h"
#include "engine/watcher_answers.h"
#include "summary_digest.h"
#include "workers/pool/reference_environment.h"

/* Returns a digest of everything that verdicts depend on, except the dataset's files: sources, options, device,
 * versions. The digest also changes when a verdict takes back a pass that a summary contains. A stored summary is used only if it was computed with the same digest. */
static struct digest context_digest(const struct run *run, struct arena *arena)
{
	const struct case_options *cases = &run->options->cases;
	const struct policy *policy = &run->machine.policy;
	const char *expired;
	struct fields fields = {0};

	field_text(&fields, arena, "sources", SUMMARY_DIGEST);
	if (run->program->store != NULL &&
	    store_fact(run->program->store, FACT_SUMMARIES_EXPIRED, arena, &expired, NULL) == CACHE_HIT)
		field_text(&fields, arena, "expired", expired);
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
	field_printf(&fields, arena, "torch", "%s %s %s", policy->torch != NULL ? policy->torch : "any",
		     policy->cuda != NULL ? policy->cuda : "none", policy->python != NULL ? policy->python : "any");
	if (policy->required != NULL)
		field_text(&fields, arena, "containment", policy->required);
	if (environment_that_counts(arena) != NULL)
		field_text(&fields, arena, "environment", environment_that_counts(arena));
	field_text(&fields, arena, "ground_truths", ground_truths_context(&run->machine.truths, arena));
	return fields_digest(&fields);
}

/* Opens the whole dataset. If a watcher is running, opens only the definitions that the watcher does not report as
 * verified. */
static int open_dataset(struct run *run, struct err *err)
{
	const struct run_options *options = run->options;
	const char *root = run->program->root;
	struct up_to_date known;

	if (options->from_index) {
		run->staged = staged_open(root, &run->arena, &run->dataset, err);
		if (run->staged != NULL && ground_truths_use_solutions(&run->machine.truths))
			staged_list_solutions(run->staged, &run->dataset);
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
	run->digests = file_digests_open(records, &run->dataset, files, &run->arena, err);
	return run->digests == NULL ? EXIT_INTERNAL : 0;
}

static struct run_files files_of(struct run *run)
{
	return run->staged != NULL ? git_index_files(run->staged, &run->dataset, &run->arena) : disk_files(&run->dataset);
}

/* Returns whether a run reads and stores verdicts. Returns false for a run that compares two versions of references,
 * verifies solutions or measures latencies. */
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

void run_close(struct run *run)
{
	run_close_runner(run);
	remote_cache_close(run->remote_cache, run->interrupted);
	arena_free(&run->later.arena);
	buf_free(&run->bytes.definition);
	buf_free(&run->bytes.workload);
	buf_free(&run->bytes.truth);
	buf_free(&run->bytes.approval);
	architectures_free(&run->architectures);
	for (int i = 0; i < run->count; i++)
		arena_free(&run->results[i]->arena);
	if (run->staged != NULL)
		staged_close(run->staged);
	if (run->dataset.fd >= 0)
		dataset_close(&run->dataset);
	arena_free(&run->arena);
}

/* Returns whether a problem of the dataset concerns a selected definition. A problem is a message that begins with a
 * path. For example, "definitions/rmsnorm/…: why" concerns only the definitions of the op_type rmsnorm. */
static bool concerns(const struct run *run, const char *problem)
{
	const char *slash = strchr(problem, '/');
	size_t length = slash != NULL ? strcspn(slash + 1, "/:") : 0;

	/* these problems concern all definitions */
	if (slash == NULL || slash > strchr(problem, ':') || is_solution_path(problem))
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
