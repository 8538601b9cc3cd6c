/* drift - prints the margins that changed when the version of torch, CUDA, the GPU driver or a ground truth changed.
 * The margin of a case is the largest ratio of |reference - ground truth| to the bound. The margins come from the
 * verdicts in the cache. No case runs. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <string.h>

#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/margin_drift.h"
#include "report/drift_list.h"

struct drift_options {
	struct shared_options shared;
	bool each;
};

#define AT(member) offsetof(struct drift_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_OP_TYPE,
    ROW_DEVICE_OF_VERDICTS,
    ROW_PYTHON,
    ROW_GROUND_TRUTH,
    ROW_NO_WORKLOADS,
    {"-v, --verbose", OPTION_FLAG, AT(each), NULL, NULL, "list every case, even if its margin stayed the same"},
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int show(struct run *run, const void *command, struct err *err)
{
	const struct drift_options *o = command;
	struct arena arena = {0};
	struct buf out = {0};
	const struct margin_drifts drifts = margin_drifts_of(run, o->each, &arena);

	(void)err;
	if (strcmp(o->shared.format, "json") == 0) {
		drift_list_json(&drifts, &out);
		cached_run_print_json(run, &out);
	} else {
		drift_list_text(&drifts, o->each, &out);
		cached_run_print_text(&out);
	}
	arena_free(&arena);
	return cached_run_status(run, EXIT_VERIFIED);
}

static int run(struct program *program, const struct drift_options *o, const struct words *names, struct err *err)
{
	struct cached_run look = {.names = names, .op_types = &o->shared.op_types, .show = show, .command = o};

	if (shared_options_read(&o->shared, program, &look.options, err) < 0)
		return EXIT_USAGE;
	look.options.details = look.options.thorough = true;
	return cached_run(program, &look, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct drift_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_drift, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_drift = {
    .name = "drift",
    .summary = "print which margins changed after an update of torch, of a library or of the GPU driver",
    .synopsis = "[options] [NAME…]",
    .description =
	"The margin of a case is its largest error, divided by its bound. Compares the newest verdict of each case with the "
	"case's verdicts from other versions of torch, CUDA, the GPU's driver and the ground truth, on the same device class. "
	"Prints the margins that changed by more than a factor of two, the largest new margin first. For each definition, "
	"prints the case whose margin changed most.\n\n"
	"Nothing runs: the command only reads verdicts from the cache. After an update of torch or a library, run "
	"`reftest verify` first; after an update of the driver, run `reftest verify --force`. A new verdict replaces "
	"the earlier verdict with the same versions.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
