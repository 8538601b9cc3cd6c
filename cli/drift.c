/* drift - prints which margins another version of torch, CUDA or a ground truth moved, from the verdicts that the cache
 * has. No case runs. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/show_wrapped.h"
#include "cli/shared_options.h"
#include "engine/margin_drift.h"
#include "engine/run.h"
#include "report/drift_list.h"
#include "report/text_and_json.h"

struct drift_options {
	const char *root, *device, *python, *ground_truth, *format;
	bool no_workloads, each;
	struct words op_types;
};

#define AT(member) offsetof(struct drift_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_OP_TYPE,
    ROW_DEVICE_OF_VERDICTS,
    ROW_PYTHON,
    ROW_GROUND_TRUTH,
    ROW_NO_WORKLOADS,
    {"-v, --verbose", OPTION_FLAG, AT(each), NULL, NULL, "list every case, also those whose margin stayed"},
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_text(const struct margin_drifts *drifts, bool each)
{
	struct buf text = {0};

	drift_list_text(drifts, each, &text);
	if (text.length > 0)
		show_wrapped(stdout, text.data);
	buf_free(&text);
}

static void print_json(const struct run *run, const struct margin_drifts *drifts)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, run->program->root);
	buf_text(&out, ",\n ");
	drift_list_json(drifts, &out);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int print_all(struct run *run, const struct drift_options *o, const struct words *names, struct err *err)
{
	struct arena arena = {0};

	if (run_select(run, names->items, names->count, o->op_types.items, o->op_types.count, err) < 0)
		return EXIT_USAGE;
	if (run_to_end(run, err) < 0)
		return EXIT_INTERNAL;
	report_problems(run);
	const struct margin_drifts drifts = margin_drifts_of(run, o->each, &arena);

	if (strcmp(o->format, "json") == 0)
		print_json(run, &drifts);
	else
		print_text(&drifts, o->each);
	arena_free(&arena);
	return run->problem_count > 0 ? EXIT_USAGE : EXIT_VERIFIED;
}

static int run(struct program *program, const struct drift_options *o, const struct words *names, struct err *err)
{
	struct run_options options = {.device = o->device,
				      .python = o->python,
				      .ground_truth = o->ground_truth,
				      .cached_only = true,
				      .dry_run = true,
				      .each = true,
				      .details = true,
				      .thorough = true,
				      .cases = case_options_default()};
	struct run run;

	options.cases.workloads = !o->no_workloads;
	program->root_given = o->root != NULL ? o->root : program->root_given;
	int code = run_open(&run, program, &options, err);

	if (code == 0)
		code = print_all(&run, o, names, err);
	run_close(&run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct drift_options o = {.format = "text"};
	struct command_line line;

	if (command_line_begin(&line, &command_drift, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_drift = {
    .name = "drift",
    .summary = "print which margins another version of torch or a library moved",
    .synopsis = "[options] [NAME…]",
    .description =
	"The margin of a case is its largest error in units of its bound. Compares the newest verdict of each case with those of "
	"other versions of torch, CUDA and the ground truth, on the same device class. Prints the margins that changed by more "
	"than a factor of two, the largest first. For each definition, prints the case that moved most.\n\n"
	"Nothing runs: the command reads the verdicts that the cache has on the same cases. After an update of torch or a "
	"library, run `reftest verify` first. A verdict with the same versions replaces the earlier one.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
