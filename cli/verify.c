/* verify - the main command. The command runs the selected cases that have no valid stored verdict, and reports the
 * verdicts of all selected cases. */
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/operands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/show.h"
#include "cli/hook_result.h"
#include "cli/shared_options.h"
#include "engine/affected.h"
#include "engine/solution_candidates.h"
#include "engine/last_failed.h"
#include "engine/run.h"
#include "engine/settings.h"
#include "engine/shard.h"
#include "engine/staged_dataset.h"
#include "fleet/request.h"
#include "report/ci_export.h"
#include "report/events.h"
#include "report/exit_status.h"
#include "report/progress.h"
#include "report/reproduce_script.h"
#include "report/solutions.h"
#include "report/run_json.h"
#include "report/text.h"
#include "testgen/update.h"

/* The width of a hook's output. The output is wrapped at this width, because programs that show it do not fold its
 * lines. */
enum { HOOK_COLUMNS = 80 };

struct verify_options {
	struct shared_options shared; /* must be the first member */
	const char *junit, *save, *shard;
	bool all, solutions, changed, force, strict, cached_only, dry_run, quiet, verbose, hook, fail_fast, last_failed;
};

#define AT(member) offsetof(struct verify_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_REPOS,
    {"--all", OPTION_FLAG, AT(all), NULL, NULL, "select every definition (the default without a NAME and without --hook)"},
    ROW_NO_DIAGNOSIS,
    {"--solutions", OPTION_FLAG, AT(solutions), NULL, NULL,
     "also verify the solutions of each definition, with the inputs of the reference and the ground truth that "
     "verified the reference"},
    {"--changed", OPTION_FLAG, AT(changed), NULL, NULL,
     "select every definition, and list only those without a valid verdict"},
    {"--staged", OPTION_FLAG, SHARED(index), NULL, NULL, "verify the content of git's index instead of the working tree"},
    {"--hook", OPTION_FLAG, AT(hook), NULL, NULL,
     "run as a git hook, with --staged: verify the definitions that the commit changes, and only count the others; a "
     "definition that this machine cannot verify is reported, but the commit is not rejected"},
    ROW_OP_TYPE,
    {"--last-failed", OPTION_FLAG, AT(last_failed), NULL, NULL,
     "verify only those of the selected definitions that failed in their last run; if none failed, verify all"},
    {"--case", OPTION_TEXT, SHARED(case_id), "ID", NULL, "run only the case with this ID (failure messages contain the ID)"},
    {"--shard", OPTION_TEXT, AT(shard), "I/N", NULL,
     "divide the definitions into N parts and verify only part I, so that N processes can share the work"},
    ROW_SIZES,
    ROW_NO_WORKLOADS,
    ROW_EDGE,
    ROW_BACKWARD,
    ROW_ALONE,
    ROW_DEVICE,
    ROW_DEVICE_CLASS,
    ROW_GROUND_TRUTH,
    {"--force", OPTION_FLAG, AT(force), NULL, NULL, "run every case, even if the cache has a verdict"},
    {"--cached-only", OPTION_FLAG, AT(cached_only), NULL, NULL, "run no case; exit with 3 if a verdict is missing"},
    {"--dry-run", OPTION_FLAG, AT(dry_run), NULL, NULL, "print the cases that would run and why, and change nothing"},
    {"--strict", OPTION_FLAG, AT(strict), NULL, NULL,
     "exit with 1 if there are findings; with --hook, also reject a commit that changes a definition which this "
     "machine cannot verify"},
    {"-x, --fail-fast", OPTION_FLAG, AT(fail_fast), NULL, NULL, "stop at the first definition that fails or is invalid"},
    ROW_ACCEPT,
    ROW_SEED,
    ROW_ATOL,
    ROW_RTOL,
    ROW_HIT_RATIO,
    ROW_TOLERANCE,
    ROW_REQUIRE_CONTAINMENT,
    ROW_TIMEOUT,
    ROW_MEMORY,
    ROW_ISOLATION,
    ROW_JOBS,
    ROW_PYTHON,
    ROW_STAGED_ARENA,
    {"--format", OPTION_CHOICE, SHARED(format), "F", "text|json|jsonl|github|requests",
     "output format (default: text); jsonl: each verdict as soon as it is known, like `watch --json`; github: text with "
     "annotations for GitHub workflows; requests (with --dry-run): the input of `reftest work`"},
    {"--junit", OPTION_FILE, AT(junit), "FILE", NULL, "also write the verdicts to FILE, as JUnit XML"},
    {"--save", OPTION_FILE, AT(save), "DIR", NULL,
     "with --case, run the case and write its tensors and DIR/reproduce.py, a script that repeats the case with torch "
     "alone"},
    {"-q, --quiet", OPTION_FLAG, AT(quiet), NULL, NULL,
     "list only the definitions that did not pass, and the totals"},
    {"-v, --verbose", OPTION_FLAG, AT(verbose), NULL, NULL,
     "list every definition; on a terminal, definitions that passed are listed only with this option or if the command "
     "line names them"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int check_words(const struct verify_options *o, const struct words *names, struct err *err)
{
	if (o->all && names->count > 0)
		return err_set(err, "--all and the name '%s' contradict each other; give only one of them",
			       names->items[0]);
	if (o->force && o->cached_only)
		return err_set(err, "--force runs every case and --cached-only runs none; give only one of them");
	if (o->hook && (!o->shared.index || strcmp(o->shared.format, "text") != 0))
		return err_set(err, "--hook needs --staged and --format text");
	if (o->last_failed && o->shared.index)
		return err_set(err, "--last-failed selects definitions of the working tree, and --staged selects definitions "
				    "of git's index; give only one of them");
	if (o->save != NULL && (o->shared.case_id[0] == NULL || o->shared.index || o->cached_only || o->dry_run || o->solutions))
		return err_set(err, "--save needs --case, and cannot be combined with --staged, --cached-only, --dry-run or "
				    "--solutions");
	if (o->quiet && o->verbose)
		return err_set(err, "--quiet and --verbose contradict each other; give only one of them");
	if (o->solutions && (o->shared.index || o->cached_only || o->dry_run || o->shard != NULL))
		return err_set(err, "--solutions runs solutions, so it cannot be combined with --staged, --cached-only, --dry-run "
				    "or --shard");
	if (strcmp(o->shared.format, "requests") == 0 && (!o->dry_run || o->shared.index || o->junit != NULL))
		return err_set(err, "--format requests needs --dry-run, and cannot be combined with --staged or --junit");
	return 0;
}

/* Returns which definitions the report lists. On a terminal, definitions that passed are not listed, because their
 * lines would push the failures out of sight. */
static enum report_list list_of(const struct verify_options *o, const struct words *names)
{
	bool text = strcmp(o->shared.format, "text") == 0;

	if (o->verbose)
		return LIST_ALL;
	if (o->quiet || (text && names->count == 0 && !o->dry_run && show_is_screen(STDOUT_FILENO)))
		return LIST_WRONG;
	return o->changed ? LIST_RAN : LIST_ALL;
}

/* Verifies the solutions of the definitions that the run `references` verified. The caller closes `out`, even after an
 * error. */
static int run_solutions(struct run *references, const struct candidates *candidates, const struct words *names,
			 const struct verify_options *o, struct run_options *options, struct run *out, struct err *err)
{
	*options = *references->options;
	options->candidates = candidates;
	options->watcher = NULL;
	options->ask_verified = options->share = false;
	options->force = options->details = options->each = true;
	int code = run_open(out, references->program, options, err);

	if (code != 0)
		return code;
	if (references->runner.calls != NULL)
		run_lend(out, references->runner, NULL);
	if (run_select(out, names->items, names->count, o->shared.op_types.items, o->shared.op_types.count, err) < 0)
		return EXIT_USAGE;
	return run_to_end(out, err) < 0 ? EXIT_INTERNAL : 0;
}

/* The state that on_result needs: the run, the options of the report and, for a hook, the counts of the commit. */
struct verify {
	/* Must be the first member, because on_result casts a pointer to `run` to a pointer to the whole struct. */
	struct run run;
	struct report_options report;
	struct progress_display progress;
	const struct output_format *format;
	bool hook;
	struct commit commit; /* with `hook` */
};

/* Ends the run if the reader of standard output is gone, for example in `reftest verify | head`. The verdicts of the
 * finished cases are still stored. */
static void stop_without_reader(struct run *run)
{
	if (show_reader_gone(stdout))
		run->interrupted = true;
}

static void on_result_event(struct run *run, struct result *result)
{
	struct verify *verify = (struct verify *)run;
	struct batch_counts counts = {.number = 1};

	if (!report_tells(result, &verify->report))
		return;
	progress_erase(&verify->progress);
	counts.seconds = run_seconds(run);
	event_verdict(&counts, result);
	fflush(stdout);
	stop_without_reader(run);
}

static void on_planned_event(struct run *run)
{
	const struct batch_counts counts = event_counts(run);

	progress_erase(&((struct verify *)run)->progress);
	event_plan(&counts);
}

static void on_result(struct run *run, struct result *result)
{
	struct verify *verify = (struct verify *)run;

	if (verify->hook && !hook_result_counts(&verify->commit, result))
		return;
	if (!report_tells(result, &verify->report))
		return;
	progress_erase(&verify->progress);
	report_result(result, &verify->report);
	fflush(stdout);
	stop_without_reader(run);
}

static void on_tick(struct run *run)
{
	progress_draw(&((struct verify *)run)->progress, run);
}

/* Executes the run to its end, and shows the progress if standard error is a terminal. */
static int run_shown(struct verify *verify, struct err *err)
{
	progress_open(&verify->progress, verify->run.program->progress);
	verify->run.on_tick = verify->progress.on ? on_tick : NULL;
	int rc = run_to_end(&verify->run, err);

	progress_close(&verify->progress);
	return rc;
}

/* ---- the output formats ------------------------------------------------------------------------------------------ */

struct output_format {
	const char *name;
	void (*on_result)(struct run *run, struct result *result); /* NULL: prints nothing before the run ends */
	void (*on_planned)(struct run *run);
	void (*end)(const struct verify *verify, int code);
};

static void on_result_request(struct run *run, struct result *result)
{
	struct buf line = {0};

	if (request_write(result, &line))
		fwrite(line.data, 1, line.length, stdout);
	buf_free(&line);
	stop_without_reader(run);
}

static void end_requests(const struct verify *verify, int code)
{
	(void)verify, (void)code;
}

static void end_text(const struct verify *verify, int code)
{
	(void)code;
	report_summary(&verify->run, &verify->report);
	if (verify->report.solutions != NULL)
		solutions_print(verify->report.solutions);
}

static void end_json(const struct verify *verify, int code)
{
	(void)code;
	report_json(&verify->run, &verify->report);
}

static void end_jsonl(const struct verify *verify, int code)
{
	const struct batch_counts counts = event_counts(&verify->run);

	for (int i = 0; i < verify->run.problem_count; i++)
		event_notice(verify->run.problems[i]);
	event_batch(&counts);
	event_end(code);
}

static void end_github(const struct verify *verify, int code)
{
	export_github(&verify->run);
	end_text(verify, code);
}

static const struct output_format formats[] = {
    {"text", on_result, NULL, end_text},
    {"json", NULL, NULL, end_json},
    {"jsonl", on_result_event, on_planned_event, end_jsonl},
    {"github", NULL, NULL, end_github},
    {"requests", on_result_request, NULL, end_requests},
};

static const struct output_format *find_format(const char *name)
{
	const struct output_format *format = formats;

	while (strcmp(format->name, name) != 0)
		format++;
	return format;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/* Updates the generated pytest files if the dataset has such files. Does nothing if this run skipped definitions that a
 * watcher had verified, because the watcher also updates the files. Errors are printed, but change no verdict. */
static void update_generated_tests(struct run *run)
{
	struct update_options options = {.layout = LAYOUT_OP_TYPE, .quiet = true};
	struct update_result generated;
	struct err err = {""};

	if (run->options->dry_run || run->options->cached_only || run->options->from_index || run->interrupted ||
	    run->options->shard.count > 0 || run->dataset.some ||
	    !generated_before(run->program->root, &options.layout))
		return;
	if (update_tests(run->program, &run->dataset, &options, &run->arena, &generated, &err) < 0)
		show_print(stderr, "reftest: %s\n", err.text);
	for (int i = 0; i < generated.message_count; i++)
		show_print(stderr, "reftest: %s\n", generated.messages[i]);
}

/* Returns whether a word names a file and not a definition. The last path component of a file contains a dot. */
static bool is_file(const char *word)
{
	const char *slash = strrchr(word, '/');

	return strpbrk(word, "*?[") == NULL && strchr(slash != NULL ? slash + 1 : word, '.') != NULL;
}

/* Returns whether a hook verifies only the definitions that depend on the files of the commit. */
static bool hook_selects(const struct verify_options *o, const struct words *names)
{
	return o->hook && !o->all && names->count == 0 && o->shared.op_types.count == 0;
}

/* Adds to `selected` the definitions that depend on `files`. Returns 0, or -1 and sets `err`. */
static int add_affected(struct run *run, const char *const *files, int count, struct words *selected, struct arena *arena,
			struct err *err)
{
	struct affected affected = {0};

	if (count == 0)
		return 0;
	if (affected_by(run->program, &run->dataset, run->digests, files, count, arena, &affected, err) < 0)
		return -1;
	const char **more = arena_array(arena, (size_t)(selected->count + affected.definition_count) + 1, sizeof *more);

	memcpy(more, selected->items, (size_t)selected->count * sizeof *more);
	for (int i = 0; i < affected.definition_count; i++)
		more[selected->count++] = affected.definitions[i].file->path;
	selected->items = more;
	return 0;
}

/* Selects the named definitions. With --staged, a name may be a file, because hooks pass the names of all committed
 * files. If a name is a file, the definitions that depend on the file are selected. With --hook and without names, the
 * definitions that depend on the files of the commit are selected. Returns 0 if at least one definition was selected, 1
 * if no definition depends on the files, and -1 with `err` on error. */
static int select_files(struct run *run, const struct verify_options *o, const struct words *names, struct arena *arena,
			struct err *err)
{
	const char **files = arena_array(arena, (size_t)names->count, sizeof *files);
	struct words selected = {.items = arena_array(arena, (size_t)names->count, sizeof *selected.items)};
	bool of_commit = hook_selects(o, names);
	int count = 0;

	for (int i = 0; i < names->count; i++)
		if (o->shared.index && is_file(names->items[i]))
			files[count++] = affected_path(run->program->root, names->items[i], arena);
		else
			selected.items[selected.count++] = names->items[i];
	if (of_commit && (count = staged_changed_files(run->staged, arena, &files)) < 0)
		return run_select(run, NULL, 0, NULL, 0, err); /* the first commit changes every definition */
	if (add_affected(run, files, count, &selected, arena, err) < 0)
		return -1;
	if ((count > 0 || of_commit) && selected.count == 0 && o->shared.op_types.count == 0)
		return 1;
	if (run_select(run, selected.items, selected.count, o->shared.op_types.items, o->shared.op_types.count, err) < 0)
		return -1;
	if (o->last_failed && last_failed_select(run) == 0)
		show_print(stderr, "reftest: no definition failed in its last run, so reftest verifies all of them\n");
	return 0;
}

/* Applies the table [hook] of the settings. This table has the same effect as the flags that `reftest hook install`
 * writes into the hook. */
static void take_hook_policy(struct verify_options *o, const struct settings *settings, struct verify *verify)
{
	if (!o->hook)
		return;
	if (!o->strict && settings->hook_strict) {
		o->strict = verify->report.strict = verify->commit.strict = true;
		verify->run.filled.fail_findings = true;
		verify->run.filled.from_settings |= 1u << SETTING_HOOK_STRICT;
	}
	if (!o->all && settings->hook_all) {
		o->all = verify->commit.all = true;
		verify->run.filled.from_settings |= 1u << SETTING_HOOK_ALL;
	}
}

/* Ends a run that selected no definition: none depends on the files that the user named or that the commit changes. */
static int end_without_definitions(struct verify *verify, const struct verify_options *o, const struct words *names)
{
	if (!hook_selects(o, names)) {
		show_print(stdout, "no definition of %s depends on these files\n", verify->run.program->root);
		return EXIT_VERIFIED;
	}
	verify->commit.unchanged = hook_result_unchanged(verify->run.program, verify->run.options, &verify->run);
	return hook_result_exit_code(&verify->commit, &verify->run, EXIT_UNVERIFIED, report_columns(&verify->report));
}

/* Prints the report of a finished run, and writes the files that options ask for. Returns the exit status. */
static int report_run(struct verify *verify, const struct verify_options *o, const struct words *names, struct err *err)
{
	struct run *run = &verify->run;

	report_problems(run);
	int code = exit_status_of_runs(run, verify->report.solutions, verify->report.strict);

	verify->format->end(verify, code);
	if (hook_selects(o, names))
		verify->commit.unchanged = hook_result_unchanged(run->program, run->options, run);
	if (o->hook)
		code = hook_result_exit_code(&verify->commit, run, code, report_columns(&verify->report));
	if (o->junit != NULL && export_junit(run, o->junit, err) < 0)
		code = EXIT_INTERNAL;
	if (o->save != NULL && reproduce_write(run, o->save, err) < 0)
		code = EXIT_INTERNAL;
	update_generated_tests(run);
	return code;
}

/* Verifies the references of the selected definitions and, with --solutions, the solutions of these definitions. */
static int run_selected(struct verify *verify, const struct verify_options *o, const struct words *names, struct err *err)
{
	const struct candidates candidates = {&verify->run};
	struct run_options options;
	struct run solutions = {.dataset.fd = -1};
	int code = 0;

	if (run_shown(verify, err) < 0)
		return EXIT_INTERNAL;
	if (show_reader_gone(stdout))
		return EXIT_INTERRUPTED; /* main then ends the process with SIGPIPE */
	if (o->solutions && !verify->run.interrupted) {
		code = run_solutions(&verify->run, &candidates, names, o, &options, &solutions, err);
		verify->report.solutions_json = solutions_json;
		verify->report.solutions = &solutions;
	}
	if (code == 0)
		code = report_run(verify, o, names, err);
	if (solutions.options != NULL)
		run_close(&solutions);
	return code;
}

static int select_and_run(struct verify *verify, const struct verify_options *o, const struct words *names,
			  struct arena *arena, struct err *err)
{
	const bool json = strncmp(verify->format->name, "json", 4) == 0;
	int selected = select_files(&verify->run, o, names, arena, err);

	if (selected < 0)
		return EXIT_USAGE;
	if (selected > 0 && (hook_selects(o, names) || !json))
		return end_without_definitions(verify, o, names);
	return run_selected(verify, o, names, err);
}

/* Returns whether the verdicts of a running watcher can replace those of this run. The watcher's verdicts suffice if
 * --changed is given, if no other option changes which cases are selected, and if the output lists no cases. */
static bool watcher_suffices(const struct verify_options *o, const struct run_options *options, const struct words *names)
{
	const struct shared_options *shared = &o->shared;

	return o->changed && !options->details && !shared->edge && !shared->backward && names->count == 0 &&
	       shared->op_types.count == 0 && shared->case_id[0] == NULL && !o->last_failed && !o->force && !shared->index &&
	       o->shard == NULL;
}

static int read_options(const struct verify_options *o, struct program *program, const struct words *names,
			const struct verify *verify, struct run_options *out, struct arena *arena, struct err *err)
{
	const struct output_format *format = verify->format;

	if (shared_options_read(&o->shared, program, out, err) < 0)
		return -1;
	out->force = o->force || o->save != NULL;
	out->cached_only = o->cached_only;
	out->dry_run = o->dry_run;
	out->fail_fast = o->fail_fast;
	out->fail_findings = o->strict;
	out->share = true;
	out->forget = format->on_result == on_result_request;
	out->each = o->solutions || format->on_result == NULL || o->junit != NULL || o->save != NULL ||
		    verify->report.list == LIST_ALL;
	out->details = out->each && !out->forget;
	out->needs_device = format->on_result == on_result && o->junit == NULL;
	out->ask_verified = watcher_suffices(o, out, names);
	if (o->shard != NULL && shard_read(o->shard, &out->shard, err) < 0)
		return -1;
	return o->save != NULL && (out->cases.save = reproduce_prepare(o->save, arena, err)) == NULL ? -1 : 0;
}

static int run(struct program *program, struct verify_options *o, struct words *names, struct arena *arena,
               struct err *err)
{
	struct verify verify = {.report = {.strict = o->strict, .every_case = o->verbose, .list = list_of(o, names),
	                                   .list_failures = true, .width = o->shared.index ? HOOK_COLUMNS : 0,
	                                   .command = shared_options_repeat(&o->shared, arena)},
	                        .format = find_format(o->shared.format),
	                        .hook = o->hook,
				.commit = {.strict = o->strict, .all = !hook_selects(o, names)}};
	struct run_options options;

	if (read_options(o, program, names, &verify, &options, arena, err) < 0 ||
	    (!o->shared.index && operands_root(program, names, arena, err) < 0))
		return EXIT_USAGE;
	int code = run_open(&verify.run, program, &options, err);

	if (code == 0) {
		take_hook_policy(o, program->settings, &verify);
		verify.run.on_result = verify.format->on_result;
		verify.run.on_planned = verify.format->on_planned;
		code = select_and_run(&verify, o, names, arena, err);
	}
	run_close(&verify.run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct verify_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_verify, argc, argv, &o) && check_words(&o, &line.names, &line.err) == 0)
		line.code = run(program, &o, &line.names, &line.arena, &line.err);
	return command_line_end(&line);
}

const struct command command_verify = {
    .name = "verify",
    .summary = "verify definitions against ground truth, and run only the cases without a valid verdict",
    .synopsis = "[options] [NAME…]",
    .description =
	"Runs each reference on generated inputs and on the inputs of its workloads, and compares the outputs "
	"with ground truth. A case that has a valid verdict in the cache does not run again.\n\n"
	"NAME is the name of a definition, `op_type/name`, a pattern with `*`, or the path of a file of the "
	"dataset. Without a NAME every definition is verified.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
