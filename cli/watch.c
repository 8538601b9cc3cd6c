/* watch - the options of `reftest watch` (watcher/loop.h). */
#include "cli/command.h"
#include "cli/command_line.h"

#include "cli/shared_options.h"
#include "watcher/loop.h"

struct watch_line {
	struct shared_options shared;
	struct watch_options own;
};

#define AT(member) offsetof(struct watch_line, own.member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_REPOS,
    {"--json", OPTION_FLAG, AT(json), NULL, NULL, "print each event as a JSON object on a line of its own"},
    {"--exec", OPTION_TEXT, AT(command), "CMD", NULL,
     "run CMD in a shell after each verification; $REFTEST_NAMES lists the definitions that were just verified"},
    {"--once", OPTION_FLAG, AT(once), NULL, NULL, "exit as soon as every definition has a verdict"},
    ROW_DEVICE,
    ROW_SIZES,
    ROW_GROUND_TRUTH,
    ROW_NO_WORKLOADS,
    ROW_ACCEPT,
    ROW_SEED,
    ROW_TOLERANCE,
    ROW_REQUIRE_CONTAINMENT,
    ROW_TIMEOUT,
    ROW_MEMORY,
    ROW_ISOLATION,
    ROW_JOBS,
    {"--spares", OPTION_INT, AT(spares), "N", NULL,
     "number of spare processes that are ready to run a reference; each saved file uses one of them (default: 1; on a "
     "GPU: 4, with 0.6 GB of GPU memory each)"},
    ROW_PYTHON,
    {"--poll", OPTION_FLAG, AT(poll), NULL, NULL, "check the files twice a second instead of using inotify"},
    {"--max-watches", OPTION_INT, AT(watches), "N", NULL, "use at most N inotify watches, and poll the other folders"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int start(struct program *program, int argc, char **argv)
{
	struct watch_line o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_watch, argc, argv, &o) &&
	    shared_options_read(&o.shared, program, &o.own.run, &line.err) == 0)
		line.code = watch_run(program, &o.own, &line.err);
	return command_line_end(&line);
}

const struct command command_watch = {
    .name = "watch",
    .summary = "verify the dataset again whenever a file changes",
    .synopsis = "[options]",
    .description =
	"Verifies the dataset, then waits for changes. After each save, runs the cases of the definitions that depend "
	"on the saved file, and prints the verdicts. On a terminal, the last line lists the keys and their "
	"commands.\n\n"
	"While watch runs, other commands on the same dataset ask it which definitions need verification, instead of "
	"checking every file.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
