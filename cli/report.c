/* report - writes one HTML page about the dataset: verdicts, margins, diagnoses, and coverage. No case runs. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/show.h"
#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/coverage.h"
#include "report/html_page.h"

static const struct option_row rows[] = {
    ROW_ROOT,	ROW_OP_TYPE,	  ROW_DEVICE_OF_VERDICTS, ROW_DEVICE_CLASS,
    ROW_PYTHON, ROW_GROUND_TRUTH, ROW_NO_WORKLOADS,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Returns whether `path` ends with ".html". Other paths are rejected, because the page could overwrite a definition or
 * another file. */
static bool is_page(const char *path)
{
	size_t length = strlen(path);

	return length > 5 && strcmp(path + length - 5, ".html") == 0;
}

static int write_page(struct run *run, const void *path, struct err *err)
{
	const struct html_page page = {REFTEST_VERSION, (int64_t)time(NULL)};
	struct arena arena = {0};
	struct buf data = {0}, out = {0};
	const struct coverage coverage = coverage_of_run(run, &arena);

	html_page_data(&page, run, &coverage, &data);
	html_page_write(&data, &out);
	int code = file_replace(path, out.data, out.length, err) < 0 ? EXIT_INTERNAL : EXIT_VERIFIED;

	if (code == EXIT_VERIFIED)
		show_print(stdout, "%s: %d definition%s, %zu KB\n", (const char *)path, run->count,
			   run->count == 1 ? "" : "s", (out.length + 999) / 1000);
	buf_free(&data);
	buf_free(&out);
	arena_free(&arena);
	return code;
}

static int run(struct program *program, const struct shared_options *o, const char *path, struct err *err)
{
	struct cached_run look = {.op_types = &o->op_types, .show = write_page, .command = path};

	if (shared_options_read(o, program, &look.options, err) < 0)
		return EXIT_USAGE;
	look.options.details = look.options.thorough = true;
	return cached_run(program, &look, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (!command_line_begin(&line, &command_report, argc, argv, &o))
		return command_line_end(&line);
	if (line.names.count != 1 || !is_page(line.names.items[0]))
		err_set(&line.err, "give the name of the file to write; the name must end in .html, as in report.html");
	else
		line.code = run(program, &o, line.names.items[0], &line.err);
	return command_line_end(&line);
}

const struct command command_report = {
    .name = "report",
    .summary = "write verdicts, margins and coverage as one HTML page",
    .synopsis = "[options] FILE.html",
    .description =
	"Writes one HTML page, which loads nothing from the network. The page has the totals, a table of definitions "
	"that the reader can filter and sort, the failures with their diagnoses, and the coverage of the op families "
	"(as `reftest coverage` prints it). The page also has the margins of each definition, for each version of "
	"torch and of the ground truths in the cache.\n\n"
	"Nothing runs. The states are those of `reftest status`: a definition is stale if one of its cases has no valid "
	"verdict now, and unknown if it was never verified. The exit status is 0 if the page was written, whatever the "
	"verdicts are.",
    .operands = OPERANDS_FILES,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
