/* tolerance - prints the bound that each output of a definition must meet, and the source of each number in the bound.
 * No case runs. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/settings.h"

static const struct option_row rows[] = {
    ROW_ROOT, ROW_OP_TYPE, ROW_SIZES, ROW_ATOL, ROW_RTOL, ROW_HIT_RATIO, ROW_TOLERANCE,
};

enum { ROWS = sizeof rows / sizeof rows[0], NUMBERS = 3 };

static double number_of(const struct tolerance *t, int number)
{
	const double of[NUMBERS] = {t->atol, t->rtol, t->hit_ratio};

	return of[number];
}

/* Returns the source of a number in the bound of an output. make_rules in engine/cases_bounds.c has the same order of
 * precedence. */
static const char *source_of(const struct result *result, int output, int number, struct arena *arena)
{
	static const char *const options[NUMBERS] = {"--atol", "--rtol", "--hit-ratio"};
	const struct case_options *cases = &result->run->options->cases;
	const struct definition *d = result->definition;

	if (number_of(&cases->tolerance, number) >= 0)
		return options[number];
	if (number_of(&cases->by_dtype[d->outputs[output].dtype], number) >= 0)
		return "--tolerance";
	if (number_of(&d->output_tolerance[output], number) >= 0)
		return "the output's tolerance in the definition";
	if (number_of(&d->tolerance, number) >= 0)
		return "the definition";
	if (cases->dataset_bounds && number_of(&cases->dataset_by_dtype[d->outputs[output].dtype], number) >= 0)
		return arena_printf(arena, "%s, line %d", result->run->program->settings->file,
				    result->run->program->settings->of[SETTING_TOLERANCE].line);
	if (result->made->op != NULL)
		return arena_printf(arena, "the op family %s", result->made->op->op->name);
	return "the default tolerance of the dtype";
}

/* Prints the sources of the numbers, for example "atol and rtol from the definition, hit ratio from the op family
 * rmsnorm". */
static void print_sources(const struct result *result, int output, struct arena *arena)
{
	static const char *const names[NUMBERS] = {"atol", "rtol", "hit ratio"};
	const char *sources[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		sources[i] = source_of(result, output, i, arena);
	show_print(stdout, "    ");
	for (int from = 0, to; from < NUMBERS; from = to) {
		for (to = from + 1; to < NUMBERS && strcmp(sources[to], sources[from]) == 0; to++)
			;
		for (int i = from; i < to; i++)
			show_print(stdout, "%s%s", i == from ? "" : i + 1 < to ? ", " : " and ", names[i]);
		show_print(stdout, " from %s%s", sources[from], to < NUMBERS ? ", " : "\n");
	}
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

static void print_rule(const struct result *result, int output, const struct rule *rule, const char *cases)
{
	const struct tensor_spec *spec = &result->definition->outputs[output];

	show_print(stdout, "  %s  %s  atol %.6g  rtol %.6g  hit ratio %.6g%s%s\n", spec->name, dtype_name(spec->dtype),
		   rule->atol, rule->rtol, rule->hit_ratio, *cases != '\0' ? "  " : "", cases);
}

/* Returns whether an earlier case has the same rule as case `first`. If so, the line for that earlier case already
 * lists all cases with this rule. */
static bool is_listed(const struct result *result, int output, int first)
{
	for (int i = 0; i < first; i++)
		if (result->cases[i].test->job != NULL &&
		    same_rule(&result->cases[i].test->job->rules[output], &result->cases[first].test->job->rules[output]))
			return true;
	return false;
}

/* Returns the ids of the cases that have the rule of case `first`, or "" if every case has this rule. */
static const char *cases_with(const struct result *result, int output, int first, struct arena *arena)
{
	const struct rule *rule = &result->cases[first].test->job->rules[output];
	const char *ids = "";
	bool all = true;

	for (int i = 0; i < result->case_count; i++) {
		const struct job *job = result->cases[i].test->job;

		if (job != NULL && same_rule(&job->rules[output], rule))
			ids = arena_printf(arena, "%s%s%s", ids, *ids != '\0' ? ", " : "", job->id);
		else if (job != NULL)
			all = false;
	}
	return all ? "" : arena_printf(arena, "in %s", ids);
}

static void print_output(const struct result *result, int output, struct arena *arena)
{
	bool any = false;

	for (int i = 0; i < result->case_count; i++) {
		const struct job *job = result->cases[i].test->job;

		if (job == NULL || is_listed(result, output, i))
			continue;
		print_rule(result, output, &job->rules[output], cases_with(result, output, i, arena));
		any = true;
	}
	if (any)
		print_sources(result, output, arena);
	else
		show_print(stdout, "  %s  no case has a bound\n", result->definition->outputs[output].name);
}

static void print_definition(const struct result *result)
{
	struct arena arena = {0};

	show_print(stdout, "%s/%s\n", result->file->op_type, result->file->name);
	if (result->definition == NULL || result->made == NULL)
		show_print(stdout, "  %s\n", result->message != NULL ? result->message : "the definition cannot be read");
	for (int i = 0; result->definition != NULL && result->made != NULL && i < result->definition->output_count; i++)
		print_output(result, i, &arena);
	arena_free(&arena);
}

static int show(struct run *run, const void *command, struct err *err)
{
	int code = EXIT_VERIFIED;

	(void)command, (void)err;
	for (int i = 0; i < run->count; i++) {
		print_definition(run->results[i]);
		code = run->results[i]->definition == NULL ? EXIT_USAGE : code;
	}
	return cached_run_status(run, code);
}

static int run(struct program *program, const struct shared_options *o, const struct words *names, struct err *err)
{
	struct cached_run look = {.names = names, .op_types = &o->op_types, .show = show, .command = o};

	if (shared_options_read(o, program, &look.options, err) < 0)
		return EXIT_USAGE;
	look.options.device = "cpu";
	look.options.ground_truth = "builtin";
	look.options.details = look.options.thorough = true;
	return cached_run(program, &look, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (command_line_begin(&line, &command_tolerance, argc, argv, &o)) {
		fold_output();
		line.code = run(program, &o, &line.names, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_tolerance = {
    .name = "tolerance",
    .summary = "print the bound of each output, and where it comes from",
    .synopsis = "[options] [NAME…]",
    .description =
	"Prints the bounds that `reftest verify` applies to each output with the same options. An element passes if "
	"|reference - ground truth| is at most atol + rtol * |ground truth|. An output passes if the fraction of its "
	"elements that pass is at least the hit ratio. Nothing runs. If a bound depends on the sizes of a case, the "
	"bounds of each case are listed.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
