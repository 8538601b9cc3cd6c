/* warm - prepares the libraries that serve as ground truths: the libraries import their modules and compile their
 * kernels before the dataset is verified.
 *
 * The command runs the smallest cases of each definition once with every ground truth, even if their verdicts are
 * stored. The smallest cases suffice: libraries compile a kernel for each dtype and head size, and these are the same
 * in cases of every size. Each library stores compiled kernels in its own cache. The verdicts of these runs are stored
 * as usual. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "cli/shared_options.h"
#include "engine/run.h"

static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_REPOS,
    ROW_OP_TYPE,
    ROW_DEVICE,
    {"--ground-truth", OPTION_TEXT, SHARED(ground_truth), "NAMES", GROUND_TRUTHS,
     "libraries to prepare: all, or a list of names separated by commas (default: all)"},
    {"--timeout", OPTION_REAL, SHARED(timeout), "S", NULL,
     "seconds that one case may take, not counting the preparation (default: 600)"},
    ROW_JOBS,
    ROW_PYTHON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* The state that on_result needs: the run and its outcome so far. */
struct warm {
	/* Must be the first member, because on_result casts a pointer to `run` to a pointer to the whole struct. */
	struct run run;
	bool unprepared;  /* a library could not be prepared */
	bool invalid;     /* a definition is invalid */
};

/* Returns whether the library supports the case but could not be prepared. A library needs no preparation if it is not
 * installed or does not support the case. */
static bool is_unprepared(const struct tried_truth *w)
{
	return w->passed_over != NULL && (w->accident || w->not_built);
}

/* Prints one line about the library that is the ground truth at index `at` in every verdict. The line gives the total
 * time of the library's preparation in all cases, or the reason why a case skipped the library. Returns whether the
 * preparation failed in a case. */
static bool report_library(const struct result *result, int at)
{
	const struct tried_truth *w = NULL, *passed_over = NULL;
	double prepared = 0;
	bool answered = false, unprepared = false;

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (v == NULL || at >= v->tried_count)
			continue;
		w = &v->tried[at];
		prepared += w->prepared;
		answered = answered || w->passed_over == NULL;
		if (w->passed_over != NULL && !unprepared)
			passed_over = w;
		unprepared = unprepared || is_unprepared(w);
	}
	if (w == NULL || strcmp(w->name, "builtin") == 0)
		return false;
	if (answered && !unprepared)
		show_print(stdout, "  %-14s %.1f s prepared\n", w->name, prepared);
	else
		show_print(stdout, "  %-14s %.*s\n", w->name, (int)strcspn(passed_over->passed_over, "\n"), passed_over->passed_over);
	return unprepared;
}

/* Returns whether the definition has a ground truth other than builtin. */
static bool needs_library(const struct result *result)
{
	for (int i = 0; i < result->truths.count; i++)
		if (strcmp(result->truths.items[i].name, "builtin") != 0)
			return true;
	return false;
}

/* If the reference failed before a library was called, prints the reason and returns true. */
static bool report_reference(const struct result *result)
{
	for (int i = 0; needs_library(result) && i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;
		const char *why = v == NULL || v->message == NULL ? "the reference failed" : v->message;

		if (v == NULL || v->status != STATUS_ERROR)
			continue;
		show_print(stdout, "  no library was used: %.*s\n", (int)strcspn(why, "\n"), why);
		return true;
	}
	return false;
}

static void on_result(struct run *run, struct result *result)
{
	struct warm *warm = (struct warm *)run;

	show_print(stdout, "%s/%s\n", result->file->op_type, result->file->name);
	if (result->status == STATUS_INVALID) {
		show_print(stdout, "  invalid: %s\n", result->message == NULL ? "one of its cases is invalid" : result->message);
		warm->invalid = true;
	}
	warm->unprepared |= report_reference(result);
	for (int i = 0; i < GROUND_TRUTHS_MAX; i++)
		warm->unprepared |= report_library(result, i);
	fflush(stdout);
}

/* Returns whether a verdict names a ground truth other than builtin. (builtin needs no preparation.) */
static bool used_library(const struct run *run)
{
	for (int i = 0; i < run->count; i++)
		for (int k = 0; k < run->results[i]->case_count; k++) {
			const struct verdict *v = run->results[i]->cases[k].verdict;

			for (int w = 0; v != NULL && w < v->tried_count; w++)
				if (strcmp(v->tried[w].name, "builtin") != 0)
					return true;
		}
	return false;
}

static int run(struct program *program, const struct shared_options *o, const struct words *names, struct err *err)
{
	struct run_options options;
	struct warm warm = {0};
	struct run *run = &warm.run;
	int code;

	if (shared_options_read(o, program, &options, err) < 0)
		return EXIT_USAGE;
	options.force = options.details = options.each = true;
	options.cases.workloads = false;
	options.cases.size[SIZE_MEDIUM] = false;
	options.cases.sizes_given = true;
	code = run_open(run, program, &options, err);
	if (code == 0) {
		run->on_result = on_result;
		if (run_select(run, names->items, names->count, o->op_types.items, o->op_types.count, err) < 0)
			code = EXIT_USAGE;
		else if (run_to_end(run, err) < 0)
			code = EXIT_INTERNAL;
		else if (run->interrupted)
			code = EXIT_INTERRUPTED;
		else if (warm.invalid || run->problem_count > 0)
			code = EXIT_USAGE;
		else if (warm.unprepared)
			code = EXIT_UNVERIFIED;
		else if (!used_library(run))
			show_print(stderr, "reftest: no installed library has kernels for these definitions, so there "
					"is nothing to prepare; `reftest doctor` prints the reasons\n");
	}
	for (int i = 0; i < run->problem_count; i++)
		show_print(stderr, "reftest: %s\n", run->problems[i]);
	run_close(run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	o.ground_truth = "all";
	o.timeout = 600;
	if (command_line_begin(&line, &command_warm, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_warm = {
    .name = "warm",
    .summary = "import libraries and compile their kernels, so that verify does not wait for them",
    .synopsis = "[options] [NAME…]",
    .description =
	"Runs the smallest cases of each definition once with every ground truth, so that the kernels are already "
	"compiled when `verify` runs. The verdicts are stored in the cache. If a library could not be prepared, the "
	"exit code is 3.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
