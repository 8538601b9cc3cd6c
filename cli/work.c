/* work - the options of `reftest work` (fleet/worker.h). The coordinator passes options of `verify` on to its workers.
 * A new option here must therefore also be added to SHARED_WITH_VALUE or SHARED_FLAGS in
 * python/reftest_ray/reftest_ray/__main__.py. */
#include "cli/command.h"
#include "cli/command_line.h"

#include "cli/shared_options.h"
#include "fleet/worker.h"

static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_REPOS,
    ROW_NO_DIAGNOSIS,
    ROW_SIZES,
    ROW_NO_WORKLOADS,
    ROW_EDGE,
    ROW_BACKWARD,
    ROW_DEVICE,
    ROW_GROUND_TRUTH,
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
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int run(struct program *program, const struct shared_options *o, struct err *err)
{
	struct run_options options;

	if (shared_options_read(o, program, &options, err) < 0)
		return EXIT_USAGE;
	options.details = options.each = true;
	return worker_run(program, &options, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (command_line_begin(&line, &command_work, argc, argv, &o))
		line.code = run(program, &o, &line.err);
	return command_line_end(&line);
}

const struct command command_work = {
    .name = "work",
    .summary = "read requests from standard input and verify their cases, as one of several machines",
    .synopsis = "[options]",
    .description =
	"Reads requests from standard input, one JSON object on each line, as `verify --dry-run --format requests` prints "
	"them. Verifies their cases on one device, in processes that keep torch loaded. For each request, prints one line "
	"with the verdicts; if REFTEST_CACHE_KEY contains a key that can sign, the verdicts are signed. The answer to "
	"an invalid request says what is wrong. The command reads and writes no cache: `cache merge` stores the "
	"answers. The command ends at the end of standard input.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
