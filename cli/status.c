/* status - prints the table of verdicts. If a running watcher reports a definition as verified (struct up_to_date_row),
 * the definition's row comes from the watcher. Every other row comes from the cache. The command executes no case and
 * writes no file. */
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/operands.h"

#include <stdio.h>
#include <string.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/watcher_answers.h"
#include "report/exit_status.h"
#include "report/run_json.h"
#include "report/text.h"
#include "report/totals.h"

struct status_options {
	struct shared_options shared;
	bool no_cases;
};

#define AT(member) offsetof(struct status_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_OP_TYPE,
    ROW_INDEX,
    ROW_BACKWARD,
    ROW_ALONE,
    ROW_DEVICE_OF_VERDICTS,
    ROW_DEVICE_CLASS,
    ROW_PYTHON,
    ROW_GROUND_TRUTH,
    ROW_NO_WORKLOADS,
    ROW_REQUIRE_CONTAINMENT,
    ROW_ACCEPT,
    ROW_TEXT_OR_JSON,
    {"--no-cases", OPTION_FLAG, AT(no_cases), NULL, NULL,
     "with --format json: print only the status and the diagnosis of each definition, and the number of its cases "
     "with each status"},
    {"--cases", OPTION_UNFLAG, AT(no_cases), NULL, NULL, "with --format json: print everything about each case (default)"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Prints the status of a row. `colour` is an escape sequence, or "" for no colour. */
static void print_word(const char *word, const char *colour)
{
	fputs(colour, stdout);
	show_print(stdout, "%-8s", word);
	fputs(colour[0] == '\0' ? " " : "\033[0m ", stdout);
}

static const char *colour_of(const struct run *run, enum status status)
{
	return run->program->colour ? report_colour(status) : "";
}

static void print_row(const struct result *result)
{
	const char *reason = result->reason == REASON_NOT_CACHED ? NULL : reason_name(result->reason);

	print_word(report_status(result), totals_lacks_verdict(result) ? "" : colour_of(result->run, result->status));
	show_print(stdout, "%s/%s  %u of %u cases passed%s%s\n", result->file->op_type, result->file->name, result->counts.passed,
		   result->counts.cases, reason != NULL ? ": " : "", reason != NULL ? reason : "");
	if (result->message != NULL)
		show_print(stdout, "         %s\n", result->message);
}

/* Prints the definitions that a running watcher reports as verified and the definitions that this process checked,
 * ordered by path. */
static void print_rows(const struct run *run)
{
	int at = 0, up_to_date = run->up_to_date_rows != NULL ? run->up_to_date : 0;

	for (int i = 0; i <= run->count; i++) {
		for (; at < up_to_date &&
		       (i == run->count || strcmp(run->up_to_date_rows[at].path, run->results[i]->file->path) < 0);
		     at++) {
			const struct up_to_date_row *row = &run->up_to_date_rows[at];
			const char *name = row->path + strlen("definitions/");

			print_word(status_name(STATUS_PASSED), colour_of(run, STATUS_PASSED));
			show_print(stdout, "%.*s  %d of %d cases passed\n",
			       (int)(strlen(name) - strlen(".json")), name, row->cases, row->cases);
		}
		if (i < run->count)
			print_row(run->results[i]);
	}
}

static int show(struct run *run, const void *command, struct err *err)
{
	const struct status_options *o = command;
	const struct report_options report = {.command = "", .no_cases = o->no_cases};
	bool json = strcmp(o->shared.format, "json") == 0;

	(void)err;
	if (!json)
		print_rows(run);
	(json ? report_json : report_summary)(run, &report);
	return exit_status_of_run(run, report.strict);
}

static int run(struct program *program, const struct status_options *status, struct words *names, struct arena *arena,
	       struct err *err)
{
	const struct shared_options *o = &status->shared;
	struct cached_run look = {.names = names, .op_types = &o->op_types, .show = show, .command = status};
	bool json = strcmp(o->format, "json") == 0;

	if (shared_options_read(o, program, &look.options, err) < 0 ||
	    (!o->index && operands_root(program, names, arena, err) < 0))
		return EXIT_USAGE;
	look.options.details = json && !status->no_cases;
	look.options.needs_device = !json;
	look.options.ask_verified = look.options.ask_rows =
	    !json && !o->index && names->count == 0 && o->op_types.count == 0;
	return cached_run(program, &look, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct status_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_status, argc, argv, &o)) {
		if (strcmp(o.shared.format, "text") == 0)
			fold_output();
		line.code = run(program, &o, &line.names, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_status = {
    .name = "status",
    .summary = "print the table of verdicts from the cache",
    .synopsis = "[options] [NAME…]",
    .description =
	"Prints one line for each definition: its status and how many of its cases passed. Nothing runs and "
	"nothing is written. A definition is stale if it was verified earlier, but one of its cases has no valid verdict "
	"now. A definition that was never verified is unknown.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
