/* work - the options of `reftest work` (fleet/worker.h). */
#include "cli/command.h"
#include "cli/command_line.h"

#include <string.h>

#include "cli/shared_options.h"
#include "cli/tolerance_option.h"
#include "engine/run_defaults.h"
#include "fleet/worker.h"

struct work_options {
	const char *root, *repos, *device, *python, *sizes, *ground_truth, *required, *isolation;
	bool no_diagnosis, edge, backward, no_workloads, staged;
	int jobs;
	double atol, rtol, hit_ratio, timeout;
	uint64_t seed;
	int64_t memory;
	struct words tolerances;
};

#define AT(member) offsetof(struct work_options, member)
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

static int read_cases(const struct work_options *o, struct case_options *out, struct err *err)
{
	*out = case_options_default();
	out->workloads = !o->no_workloads;
	out->no_diagnosis = o->no_diagnosis;
	out->edge = o->edge;
	out->backward = o->backward;
	out->seed = o->seed;
	if (tolerance_options_read(&o->tolerances, (struct tolerance){o->atol, o->rtol, o->hit_ratio}, out, err) < 0)
		return -1;
	return run_sizes_read(o->sizes, out, err);
}

static int run(struct program *program, const struct work_options *o, struct err *err)
{
	struct run_options options = {.device = o->device,
				      .python = o->python,
				      .ground_truth = o->ground_truth,
				      .jobs = o->jobs,
				      .timeout_s = o->timeout,
				      .memory = o->memory,
				      .own_runners = run_own_runners(o->isolation),
				      .staged = o->staged,
				      .required = o->required,
				      .details = true,
				      .each = true};

	if (o->timeout <= 0)
		return err_set(err, "--timeout takes a number of seconds above 0"), EXIT_USAGE;
	if (read_cases(o, &options.cases, err) < 0)
		return EXIT_USAGE;
	if (o->root != NULL)
		program->root_given = o->root;
	program->repos = o->repos;
	return worker_run(program, &options, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct work_options o = {.atol = -1, .rtol = -1, .hit_ratio = -1, .timeout = 120};
	struct command_line line;

	if (command_line_begin(&line, &command_work, argc, argv, &o))
		line.code = run(program, &o, &line.err);
	return command_line_end(&line);
}

const struct command command_work = {
    .name = "work",
    .summary = "verify what requests on standard input name, for a fleet of machines",
    .synopsis = "[options]",
    .description =
	"Reads requests from standard input, one JSON object a line, as `verify --dry-run --format requests` writes them, "
	"and verifies them on one device, with processes that stay warm. For each request it prints one line with the "
	"verdicts, which are signed if REFTEST_CACHE_KEY has a key that signs. A bad request gets an answer that says what "
	"is wrong. The command reads and writes no cache: `cache merge` stores the answers. It ends at the end of standard "
	"input.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
