/* status - the table of verdicts, at once, from the cache: a pass in which nothing may run and nothing is written. */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>

#include "commands/ask.h"
#include "commands/options.h"
#include "commands/pass.h"
#include "commands/report.h"

struct status_options {
	const char *root, *device, *device_class, *python, *ground_truth, *format;
	bool no_workloads, index, backward, alone;
	struct words op_types;
};

#define AT(member) offsetof(struct status_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--op-type", OPTION_LIST, AT(op_types), "T", "the definitions of this op_type; may be repeated"},
    {"--staged", OPTION_FLAG, AT(index), NULL, "what git's index holds, not the working tree"},
    {"--backward", OPTION_FLAG, AT(backward), NULL, "also the gradients, as verify --backward has them"},
    {"--alone", OPTION_FLAG, AT(alone), NULL, "do not ask a watcher of this root, which may be busy"},
    {"--device", OPTION_TEXT, AT(device), "D", "whose verdicts count: auto, cpu, cuda or cuda:N (default: auto)"},
    {"--device-class", OPTION_TEXT, AT(device_class), "C", "only verdicts of this class count, whoever made them: cpu, sm_90, …"},
    {"--python", OPTION_TEXT, AT(python), "PATH", "the interpreter whose torch counts"},
    {"--ground-truth", OPTION_TEXT, AT(ground_truth), "NAMES", "by whom: auto, all, or names, as verify takes it (default: auto)"},
    {"--no-workloads", OPTION_FLAG, AT(no_workloads), NULL, "leave the lines of workload files out"},
    {"--format", OPTION_TEXT, AT(format), "F", "text or json (default: text)"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_row(const struct outcome *outcome)
{
	const char *reason = outcome->reason == REASON_NOT_CACHED ? NULL : reason_name(outcome->reason);
	const char *word = outcome->reason == REASON_NOT_CACHED ? "stale" : status_name(outcome->status);

	printf("%-8s %s/%s  %u of %u cases passed%s%s\n", word, outcome->file->op_type, outcome->file->name,
	       outcome->counts.passed, outcome->counts.cases, reason != NULL ? ": " : "", reason != NULL ? reason : "");
	if (outcome->message != NULL)
		printf("         %s\n", outcome->message);
}

/* What a running watcher vouches for and what was looked at here, in path order. */
static void print_rows(const struct pass *pass)
{
	int at = 0, vouched = pass->vouched_rows != NULL ? pass->vouched : 0;

	for (int i = 0; i <= pass->count; i++) {
		for (; at < vouched && (i == pass->count ||
		                          strcmp(pass->vouched_rows[at].path, pass->outcomes[i]->file->path) < 0); at++) {
			const struct vouched_row *row = &pass->vouched_rows[at];
			const char *name = row->path + strlen("definitions/");

			printf("%-8s %.*s  %d of %d cases passed\n", status_name(STATUS_PASSED),
			       (int)(strlen(name) - strlen(".json")), name, row->cases, row->cases);
		}
		if (i < pass->count)
			print_row(pass->outcomes[i]);
	}
}

static int run(struct reftest *reftest, const struct status_options *o, const struct words *names, struct err *err)
{
	struct pass_options options = {.device = o->device, .device_class = o->device_class, .python = o->python, .ground_truth = o->ground_truth, .cached_only = true, .dry_run = true, .each = true, .from_index = o->index,
	                               .cases = case_options_default()};
	struct report_options report = {.command = ""};
	struct pass pass;
	bool json = strcmp(o->format, "json") == 0;
	int code = EXIT_INTERNAL;

	options.cases.workloads = !o->no_workloads;
	options.cases.backward = o->backward;
	options.details = json;
	options.ask_verified = options.ask_rows = !o->alone && !json && !o->index && names->count == 0 && o->op_types.count == 0;
	reftest->root_given = o->root != NULL ? o->root : reftest->root_given;
	code = pass_open(&pass, reftest, &options, err);
	if (code == 0) {
		if (pass_select(&pass, names->items, names->count, o->op_types.items, o->op_types.count, err) < 0) {
			code = EXIT_USAGE;
		} else if (pass_run(&pass, err) < 0) {
			code = EXIT_INTERNAL;
		} else {
			report_problems(&pass);
			if (!json)
				print_rows(&pass);
			(json ? report_json : report_summary)(&pass, &report);
			code = report_exit_code(&pass, &report);
		}
	}
	pass_close(&pass);
	return code;
}

int command_status(struct reftest *reftest, int argc, char **argv)
{
	struct status_options o = {.device = "auto", .ground_truth = "auto", .format = "text"};
	struct told told;

	if (options_begin(&told, "status [options] [NAME…]", rows, ROWS, argc, argv, &o) &&
	    options_json(o.format, &told.err) >= 0)
		told.code = run(reftest, &o, &told.names, &told.err);
	return options_end(&told);
}
