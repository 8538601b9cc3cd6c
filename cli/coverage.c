/* coverage - compares the dataset with the checklists of the op families. For each checklist, prints the properties
 * that at least one definition or case has, and the properties that are missing in the dataset. No case runs. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <string.h>

#include "base/show.h"
#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/coverage.h"
#include "engine/run_defaults.h"
#include "report/coverage_matrix.h"

struct coverage_options {
	struct shared_options shared;
	bool each;
};

#define AT(member) offsetof(struct coverage_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_OP_TYPE,
    ROW_SIZES,
    {"--edge", OPTION_FLAG, SHARED(edge), NULL, NULL, "also count the edge cases"},
    ROW_NO_WORKLOADS,
    {"-v, --verbose", OPTION_FLAG, AT(each), NULL, NULL, "also list the property values that the cases of each "
        "definition have"},
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Returns EXIT_USAGE if a definition could not be read, because the coverage is then incomplete. */
static int show(struct run *run, const void *command, struct err *err)
{
	const struct coverage_options *o = command;
	struct arena arena = {0};
	struct buf out = {0};
	int code = EXIT_VERIFIED;

	(void)err;
	for (int i = 0; i < run->count; i++) {
		if (run->results[i]->definition != NULL)
			continue;
		show_print(stderr, "reftest: %s\n",
			   run->results[i]->message != NULL ? run->results[i]->message : run->results[i]->file->path);
		code = EXIT_USAGE;
	}
	const struct coverage coverage = coverage_of_run(run, &arena);

	if (strcmp(o->shared.format, "json") == 0) {
		coverage_matrix_json(&coverage, &out);
		cached_run_print_json(run, &out);
	} else {
		coverage_matrix_text(&coverage, o->each, &out);
		cached_run_print_text(&out);
	}
	arena_free(&arena);
	return cached_run_status(run, code);
}

static int run(struct program *program, const struct coverage_options *o, const struct words *names, struct err *err)
{
	struct cached_run look = {.names = names, .op_types = &o->shared.op_types, .show = show, .command = o};

	if (shared_options_read(&o->shared, program, &look.options, err) < 0)
		return EXIT_USAGE;
	look.options.device = "cpu";
	look.options.ground_truth = "builtin";
	look.options.details = look.options.thorough = true;
	return cached_run(program, &look, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct coverage_options o = {.shared = shared_options_default()};
	struct command_line line;

	if (command_line_begin(&line, &command_coverage, argc, argv, &o))
		line.code = run(program, &o, &line.names, &line.err);
	return command_line_end(&line);
}

const struct command command_coverage = {
    .name = "coverage",
    .summary = "print which properties of each op family the dataset covers",
    .synopsis = "[options] [NAME…]",
    .description =
	"Each op family has a checklist: the properties in which references of the family differ, such as layouts, masks, "
	"states, page sizes and dtypes. For each value of a property, prints how many definitions have a case with this "
	"value. At the end, prints the values that no case has.\n\n"
	"Nothing runs. The command also counts cases that failed or never ran; `reftest status` prints the verdicts.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
