/* coverage - prints which properties of the op families' checklists the definitions and cases of the dataset have, and
 * which no definition has. No case runs. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "base/show_wrapped.h"
#include "cli/shared_options.h"
#include "engine/coverage.h"
#include "engine/run.h"
#include "engine/run_defaults.h"
#include "report/coverage_matrix.h"
#include "report/text_and_json.h"

struct coverage_options {
	const char *root, *sizes, *format;
	bool edge, no_workloads, each;
	struct words op_types;
};

#define AT(member) offsetof(struct coverage_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_OP_TYPE,
    ROW_SIZES,
    {"--edge", OPTION_FLAG, AT(edge), NULL, NULL, "also count the edge cases"},
    ROW_NO_WORKLOADS,
    {"-v, --verbose", OPTION_FLAG, AT(each), NULL, NULL, "also list what each definition covers"},
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_text(const struct coverage *coverage, bool each)
{
	struct buf text = {0};

	coverage_matrix_text(coverage, each, &text);
	if (text.length > 0)
		show_wrapped(stdout, text.data);
	buf_free(&text);
}

static void print_json(const struct run *run, const struct coverage *coverage)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, run->program->root);
	buf_text(&out, ",\n ");
	coverage_matrix_json(coverage, &out);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

/* Returns EXIT_USAGE if a definition could not be read, so that the coverage is not that of the whole dataset. */
static int print_all(struct run *run, const struct coverage_options *o, const struct words *names, struct err *err)
{
	struct arena arena = {0};
	int code = EXIT_VERIFIED;

	if (run_select(run, names->items, names->count, o->op_types.items, o->op_types.count, err) < 0)
		return EXIT_USAGE;
	if (run_to_end(run, err) < 0)
		return EXIT_INTERNAL;
	report_problems(run);
	for (int i = 0; i < run->count; i++) {
		if (run->results[i]->definition != NULL)
			continue;
		show_print(stderr, "reftest: %s\n",
			   run->results[i]->message != NULL ? run->results[i]->message : run->results[i]->file->path);
		code = EXIT_USAGE;
	}
	const struct coverage coverage = coverage_of_run(run, &arena);

	if (strcmp(o->format, "json") == 0)
		print_json(run, &coverage);
	else
		print_text(&coverage, o->each);
	arena_free(&arena);
	return run->problem_count > 0 ? EXIT_USAGE : code;
}

static int run(struct program *program, const struct coverage_options *o, const struct words *names, struct err *err)
{
	struct run_options options = {.device = "cpu",
				      .ground_truth = "builtin",
				      .cached_only = true,
				      .dry_run = true,
				      .each = true,
				      .details = true,
				      .thorough = true,
				      .cases = case_options_default()};
	struct run run;

	if (run_sizes_read(o->sizes, &options.cases, err) < 0)
		return EXIT_USAGE;
	options.cases.edge = o->edge;
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
	struct coverage_options o = {.format = "text"};
	struct command_line line;

	if (command_line_begin(&line, &command_coverage, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_coverage = {
    .name = "coverage",
    .summary = "print what the dataset covers of each op family",
    .synopsis = "[options] [NAME…]",
    .description =
	"Each op family has a checklist: the properties in which references of the family differ, such as layouts, masks, "
	"states, page sizes and dtypes. Prints for each value of a property how many definitions have a case with it. At the "
	"end, prints the values that no definition has.\n\n"
	"Nothing runs. The command counts cases, whether or not a reference passes them; `reftest status` prints the "
	"verdicts.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
