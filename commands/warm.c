/* warm - has the providers compile and import now what verifying this dataset takes later.
 *
 * The smallest cases of each definition are run once with every ground truth there is, whatever is stored: kernels are
 * compiled by dtype and head size, which are the same at every size. Compilers' results stay where each library keeps its
 * own. The verdicts are as good as any and are kept. */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>

#include "commands/options.h"
#include "commands/pass.h"

struct warm_options {
	const char *root, *device, *python, *ground_truth;
	int jobs;
	double timeout;
	struct words op_types;
};

#define AT(member) offsetof(struct warm_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--op-type", OPTION_LIST, AT(op_types), "T", "the definitions of this op_type; may be repeated"},
    {"--device", OPTION_TEXT, AT(device), "D", "auto, cpu, cuda or cuda:N (default: auto)"},
    {"--ground-truth", OPTION_TEXT, AT(ground_truth), "NAMES", "these alone (default: all)"},
    {"--timeout", OPTION_REAL, AT(timeout), "S", "seconds a case may take beyond what is prepared (default: 600)"},
    {"--jobs", OPTION_INT, AT(jobs), "N", "references side by side (default: half the cores, at most 4)"},
    {"--python", OPTION_TEXT, AT(python), "PATH", "interpreter with torch; else $REFTEST_PYTHON, .venv, python3"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* The pass, where its callback finds what it came to. */
struct warm {
	struct pass pass; /* first: the callback gets it */
	bool unprepared;  /* of some library */
	bool invalid;     /* some definition */
};

/* Has it nothing ready for what it does have a call for? A library that is not installed or knows no such case has
 * nothing to prepare. */
static bool is_unprepared(const struct witness *w)
{
	static const char not_built[] = "NotBuilt: "; /* the exception's name: workers/providers/common.py */

	return w->passed_over != NULL && (w->accident || strncmp(w->passed_over, not_built, strlen(not_built)) == 0);
}

/* A provider's share in one definition: what kept it from being prepared, in whichever case; else the seconds over all
 * cases, or the reason of the last case that passed it over. Is it unprepared? */
static bool tell_witness(const struct outcome *outcome, int witness)
{
	const struct witness *w = NULL, *passed_over = NULL;
	double prepared = 0;
	bool answered = false, unprepared = false;

	for (int i = 0; i < outcome->case_count; i++) {
		const struct verdict *v = outcome->cases[i].verdict;

		if (v == NULL || witness >= v->witness_count)
			continue;
		w = &v->witnesses[witness];
		prepared += w->prepared;
		answered = answered || w->passed_over == NULL;
		if (w->passed_over != NULL && !unprepared)
			passed_over = w;
		unprepared = unprepared || is_unprepared(w);
	}
	if (w == NULL || strcmp(w->name, "builtin") == 0)
		return false;
	if (answered && !unprepared)
		printf("  %-14s %.1f s prepared\n", w->name, prepared);
	else
		printf("  %-14s %.*s\n", w->name, (int)strcspn(passed_over->passed_over, "\n"), passed_over->passed_over);
	return unprepared;
}

/* Is any library to be asked about it? */
static bool wants_a_library(const struct outcome *outcome)
{
	for (int i = 0; i < outcome->truths.count; i++)
		if (strcmp(outcome->truths.items[i].name, "builtin") != 0)
			return true;
	return false;
}

/* A reference that does not come through keeps libraries from being asked. Was one kept? */
static bool tell_reference(const struct outcome *outcome)
{
	for (int i = 0; wants_a_library(outcome) && i < outcome->case_count; i++) {
		const struct verdict *v = outcome->cases[i].verdict;
		const char *why = v == NULL || v->message == NULL ? "the reference failed" : v->message;

		if (v == NULL || v->status != STATUS_ERROR)
			continue;
		printf("  no library was asked: %.*s\n", (int)strcspn(why, "\n"), why);
		return true;
	}
	return false;
}

static void told(struct pass *pass, struct outcome *outcome)
{
	struct warm *warm = (struct warm *)pass;

	printf("%s/%s\n", outcome->file->op_type, outcome->file->name);
	if (outcome->status == STATUS_INVALID) {
		printf("  invalid: %s\n", outcome->message == NULL ? "one of its cases" : outcome->message);
		warm->invalid = true;
	}
	warm->unprepared |= tell_reference(outcome);
	for (int i = 0; i < TRUTHS_MAX; i++)
		warm->unprepared |= tell_witness(outcome, i);
	fflush(stdout);
}

/* Was anybody asked but builtin, which is compiled already? */
static bool asked_a_library(const struct pass *pass)
{
	for (int i = 0; i < pass->count; i++)
		for (int k = 0; k < pass->outcomes[i]->case_count; k++) {
			const struct verdict *v = pass->outcomes[i]->cases[k].verdict;

			for (int w = 0; v != NULL && w < v->witness_count; w++)
				if (strcmp(v->witnesses[w].name, "builtin") != 0)
					return true;
		}
	return false;
}

static int run(struct reftest *reftest, const struct warm_options *o, const struct words *names, struct err *err)
{
	struct pass_options options = {.device = o->device, .python = o->python, .ground_truth = o->ground_truth,
	                               .jobs = o->jobs, .timeout_s = o->timeout, .force = true, .details = true, .each = true,
	                               .cases = case_options_default()};
	struct warm warm = {0};
	struct pass *pass = &warm.pass;
	int code;

	options.cases.workloads = false;
	options.cases.size[SIZE_MEDIUM] = false;
	if (o->root != NULL)
		reftest->root_given = o->root;
	code = pass_open(pass, reftest, &options, err);
	if (code == 0) {
		pass->told = told;
		if (pass_select(pass, names->items, names->count, o->op_types.items, o->op_types.count, err) < 0)
			code = EXIT_USAGE;
		else if (pass_run(pass, err) < 0)
			code = EXIT_INTERNAL;
		else if (pass->interrupted)
			code = EXIT_INTERRUPTED;
		else if (warm.invalid || pass->problem_count > 0)
			code = EXIT_USAGE;
		else if (warm.unprepared)
			code = EXIT_UNVERIFIED;
		else if (!asked_a_library(pass))
			fprintf(stderr, "reftest: no library's kernels are asked here, so there is nothing to prepare; `reftest "
			                "doctor` says why\n");
	}
	for (int i = 0; i < pass->problem_count; i++)
		fprintf(stderr, "reftest: %s\n", pass->problems[i]);
	pass_close(pass);
	return code;
}

int command_warm(struct reftest *reftest, int argc, char **argv)
{
	struct warm_options o = {.device = "auto", .ground_truth = "all", .timeout = 600};
	struct told told;

	if (options_begin(&told, "warm [options] [NAME…]", rows, ROWS, argc, argv, &o)) {
		if (o.timeout <= 0)
			err_set(&told.err, "--timeout takes a number of seconds above 0");
		else
			told.code = run(reftest, &o, &told.names, &told.err);
	}
	return options_end(&told);
}
