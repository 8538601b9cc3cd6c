/* list - prints the names of the dataset's definitions. The names and op_types come from the paths of the definitions,
 * so the command reads no file of a definition. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <string.h>

#include "base/show.h"
#include "cli/shared_options.h"
#include "dataset/dataset.h"
#include "engine/selection.h"

static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_OP_TYPE,
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_text(const struct dataset_file *const *files, int count)
{
	for (int i = 0; i < count; i++)
		show_print(stdout, "%s/%s\n", files[i]->op_type, files[i]->name);
}

static void print_json(const char *root, const struct dataset_file *const *files, int count)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"root\": ");
	buf_json_string(&out, root);
	buf_text(&out, ",\n \"definitions\": [");
	for (int i = 0; i < count; i++) {
		buf_text(&out, i > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ");
		buf_json_string(&out, files[i]->name);
		buf_text(&out, ", \"op_type\": ");
		buf_json_string(&out, files[i]->op_type);
		buf_text(&out, ", \"path\": ");
		buf_json_string(&out, files[i]->path);
		buf_text(&out, "}");
	}
	buf_text(&out, "]}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static int list(struct dataset *dataset, const struct shared_options *o, const struct words *names, struct arena *arena,
		struct err *err)
{
	const struct selection words = {names->items, o->op_types.items, names->count, o->op_types.count};
	const struct dataset_file **files;
	int count = select_definitions(dataset, &words, arena, &files, err);

	if (count < 0)
		return EXIT_USAGE;
	if (strcmp(o->format, "json") == 0)
		print_json(dataset->root, files, count);
	else
		print_text(files, count);
	for (int i = 0; i < dataset->problem_count; i++)
		show_print(stderr, "reftest: %s\n", dataset->problems[i]);
	return dataset->problem_count > 0 ? EXIT_USAGE : EXIT_VERIFIED;
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;
	struct dataset dataset;

	if (!command_line_begin(&line, &command_list, argc, argv, &o))
		return command_line_end(&line);
	shared_options_root(&o, program);
	if (program_root(program, &line.err) == 0 &&
	    dataset_scan(program->root, &line.arena, &dataset, &line.err) == 0) {
		line.code = list(&dataset, &o, &line.names, &line.arena, &line.err);
		dataset_close(&dataset);
	}
	return command_line_end(&line);
}

const struct command command_list = {
    .name = "list",
    .summary = "list the definitions of the dataset",
    .synopsis = "[options] [NAME…]",
    .description =
	"Prints `op_type/name` of each definition, one on each line. NAME and `--op-type` select definitions as in `reftest "
	"verify`. "
	"`reftest status` also prints the status of each definition.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
