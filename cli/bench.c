/* bench - measures how long references and ground truths take, and also computes verdicts. The measurements are
 * appended to a file (report/latencies.h). Nothing is stored in the cache. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <string.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "cli/bench_fib.h"
#include "cli/shared_options.h"
#include "engine/run.h"
#include "report/exit_status.h"
#include "report/latencies.h"
#include "report/run_json.h"
#include "report/text.h"

struct bench_options {
	struct shared_options shared;
	bool fib;
};

#define AT(member) offsetof(struct bench_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_REPOS,
    ROW_OP_TYPE,
    {"--case", OPTION_TEXT, SHARED(case_id), "ID", NULL, "measure only the case with this ID"},
    {"--sizes", OPTION_CHOICES, SHARED(sizes), "LIST", SIZES, "sizes of the generated cases (default: medium)"},
    ROW_NO_WORKLOADS,
    ROW_DEVICE,
    ROW_GROUND_TRUTH,
    ROW_ACCEPT,
    ROW_SEED,
    ROW_TIMEOUT,
    ROW_MEMORY,
    ROW_PYTHON,
    {"--fib", OPTION_FLAG, AT(fib), NULL, NULL, "afterwards, run flashinfer-bench (if it is installed) on the same "
                                                 "definitions"},
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void on_result(struct run *run, struct result *result)
{
	static const struct report_options report = {.command = ""};

	(void)run;
	report_result(result, &report);
	latencies_print(result);
	fflush(stdout);
}

static int run_and_report(struct run *run, const struct bench_options *o, const struct words *names, struct err *err)
{
	const struct report_options report = {.command = ""};
	bool json = strcmp(o->shared.format, "json") == 0;

	if (run_select(run, names->items, names->count, o->shared.op_types.items, o->shared.op_types.count, err) < 0)
		return EXIT_USAGE;
	run->on_result = json ? NULL : on_result;
	if (run_to_end(run, err) < 0)
		return EXIT_INTERNAL;
	report_problems(run);
	(json ? report_json : report_summary)(run, &report);
	if (o->fib && !run->interrupted)
		bench_fib(run);
	return latencies_keep(run, err) < 0 ? EXIT_INTERNAL : exit_status_of_run(run, false);
}

/* Cases run one after the other, so that no case slows down another. */
static int run(struct program *program, const struct bench_options *o, const struct words *names, struct err *err)
{
	struct run_options options;
	struct run run;

	if (o->fib && strcmp(o->shared.format, "json") == 0)
		return err_set(err, "--fib prints the output of flashinfer-bench, which is not JSON; leave out --format json"), EXIT_USAGE;
	if (shared_options_read(&o->shared, program, &options, err) < 0)
		return EXIT_USAGE;
	options.jobs = 1;
	options.force = options.details = options.each = options.cases.bench = true;
	int code = run_open(&run, program, &options, err);

	if (code == 0)
		code = run_and_report(&run, o, names, err);
	run_close(&run);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct bench_options o = {.shared = shared_options_default()};
	struct command_line line;

	o.shared.sizes = "medium";
	if (command_line_begin(&line, &command_bench, argc, argv, &o)) {
		if (strcmp(o.shared.format, "text") == 0)
			fold_output();
		line.code = run(program, &o, &line.names, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure how long references and ground truths take",
    .synopsis = "[options] [NAME…]",
    .description =
	"Runs each case as `verify` does, and then measures the time of the reference and of each ground truth that ran. On "
	"a GPU, `bench` measures with CUDA events, once with a flushed L2 cache (cold) and once without flushing (warm). On a "
	"CPU, `bench` measures with the wall clock. Shows the median and the "
	"10th and 90th percentiles.\n"
	"\n"
	"The figures are appended to `.reftest/bench.jsonl`. `bench` stores no verdict.\n"
	"\n"
	"NAME is the name of a definition, `op_type/name`, or a pattern with `*`.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
