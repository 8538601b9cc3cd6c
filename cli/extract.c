/* extract - the options and the output of `reftest extract`. extract/extract.c makes the definitions and writes them
 * after cli/extract_check.c has verified them. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "cli/dataset_stats.h"
#include "cli/extract_check.h"
#include "cli/model_option.h"
#include "cli/shared_options.h"
#include "engine/library_checkouts.h"
#include "extract/extract.h"

struct extract_options {
	struct shared_options shared;
	const char *config, *model, *tp, *ep, *page_sizes, *op_types, *out;
	bool no_verify, stats;
	struct extract_check check; /* set by `run` */
};

#define AT(member) offsetof(struct extract_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    {"--repos", OPTION_FOLDER, SHARED(repos), "DIR", NULL,
     "use the checkouts of libraries in DIR: compare the layers of the model with SGLang's code, and verify with these "
     "libraries (default: the checkouts in repos_config.json)"},
    ROW_CONFIG,
    ROW_MODEL,
    {"--tp", OPTION_TEXT, AT(tp), "LIST", NULL, "degrees of tensor parallelism, separated by commas (default: 1)"},
    {"--ep", OPTION_TEXT, AT(ep), "LIST", NULL, "degrees of expert parallelism, separated by commas (default: 1)"},
    {"--page-size", OPTION_TEXT, AT(page_sizes), "LIST", NULL, "page sizes of the KV caches (the number of keys in a "
        "page), separated by commas (default: 1,64)"},
    {"--op-type", OPTION_TEXT, AT(op_types), "LIST", NULL, "write only definitions of these op_types, separated by commas"},
    {"--out", OPTION_FILE, AT(out), "DIR", NULL, "write to DIR/definitions instead of the dataset"},
    {"--no-verify", OPTION_FLAG, AT(no_verify), NULL, NULL, "write the definitions without verifying them"},
    {"--stats", OPTION_FLAG, AT(stats), NULL, NULL,
     "also print how many definitions the dataset has, how many of them have a test, and how many are verified; "
     "without a model, print only these numbers"},
    ROW_DEVICE,
    ROW_PYTHON,
    ROW_JOBS,
    ROW_TIMEOUT,
    ROW_MEMORY,
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0], LARGEST_NUMBER = 4096 };

/* Reads a list of numbers such as "1,64". */
static int read_list(const char *option, const char *text, struct extract_list *list, struct err *err)
{
	for (*list = (struct extract_list){0}; *text != '\0'; text += *text == ',') {
		char *end;
		long number = isdigit((unsigned char)*text) ? strtol(text, &end, 10) : 0;

		if (number < 1 || number > LARGEST_NUMBER || (*end != '\0' && (*end != ',' || end[1] == '\0')) || list->count == EXTRACT_LIST)
			return err_set(err, "%s takes at most %d numbers from 1 to %d, separated by commas", option, EXTRACT_LIST, LARGEST_NUMBER);
		list->values[list->count++] = number;
		text = end;
	}
	return list->count > 0 ? 0 : err_set(err, "%s needs a number", option);
}

static void json_list(struct buf *out, const char *name, const struct string_list *list)
{
	buf_printf(out, ",\n \"%s\": [", name);
	for (int i = 0; i < list->count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		buf_json_string(out, list->items[i]);
	}
	buf_text(out, "]");
}

static void json_or_null(struct buf *out, const char *text)
{
	if (text == NULL)
		buf_text(out, "null");
	else
		buf_json_string(out, text);
}

static int count_not_kept(const struct extract_result *r)
{
	int count = 0;

	for (int i = 0; i < r->file_count; i++)
		count += !r->files[i].keep;
	return count;
}

static void json_not_kept(struct buf *out, const struct extract_result *r)
{
	const char *comma = "";

	buf_text(out, ",\n \"not_kept\": [");
	for (int i = 0; i < r->file_count; i++) {
		const struct extract_file *file = &r->files[i];

		if (file->keep)
			continue;
		buf_printf(out, "%s{\"name\": \"%s/%s\", \"status\": ", comma, file->op_type, file->name);
		buf_json_string(out, file->status);
		buf_text(out, ", \"why\": ");
		buf_json_string(out, file->why);
		buf_text(out, "}");
		comma = ", ";
	}
	buf_text(out, "]");
}

static void add_json(struct buf *out, const struct model *model, const struct extract_result *r, bool verified)
{
	buf_text(out, ", \"model\": ");
	buf_json_string(out, model->name);
	buf_printf(out, ", \"verified\": %s", verified ? "true" : "false");
	json_list(out, "written", &r->written);
	json_not_kept(out, r);
	json_list(out, "tagged", &r->tagged);
	json_list(out, "unchanged", &r->unchanged);
	buf_text(out, ",\n \"conflicts\": [");
	for (int i = 0; i < r->conflict_count; i++) {
		buf_printf(out, "%s{\"name\": ", i > 0 ? ", " : "");
		buf_json_string(out, r->conflicts[i].name);
		buf_text(out, ", \"existing\": ");
		buf_json_string(out, r->conflicts[i].existing);
		buf_printf(out, ", \"differences\": %s, \"behaviour\": ", r->conflicts[i].differences);
		json_or_null(out, r->conflicts[i].behaviour);
		buf_text(out, ", \"why\": ");
		json_or_null(out, r->conflicts[i].why);
		buf_text(out, "}");
	}
	buf_text(out, "]");
	buf_text(out, ",\n \"sglang\": {\"file\": ");
	json_or_null(out, r->sglang.file);
	json_list(out, "disagreements", &r->sglang.disagreements);
	buf_text(out, "}");
	json_list(out, "shared", &r->shared);
	json_list(out, "not_covered", &r->not_covered);
	json_list(out, "left_out", &r->left_out);
}

static void print_list(const char *heading, const struct string_list *list)
{
	if (list->count > 0)
		show_print(stdout, "%s\n", heading);
	for (int i = 0; i < list->count; i++)
		show_print(stdout, "  %s\n", list->items[i]);
}

/* Copies the line at `text` and moves `text` to the next line. Returns NULL at the end. */
static const char *take_line(const char **text, struct arena *arena)
{
	size_t length = strcspn(*text, "\n");
	const char *line = **text != '\0' ? arena_copy(arena, *text, length) : NULL;

	*text += length + ((*text)[length] == '\n');
	return line;
}

/* Prints the first line in which two references differ. */
static void print_first_line(const char *ours, const char *theirs)
{
	struct arena arena = {0};
	const char *a, *b;
	int number = 0;

	do {
		a = take_line(&ours, &arena);
		b = take_line(&theirs, &arena);
		number++;
	} while (a != NULL && b != NULL && strcmp(a, b) == 0);
	show_print(stdout, "    the references differ from line %d on\n      new:      %s\n      existing: %s\n", number,
		   a != NULL ? a : "(the end)", b != NULL ? b : "(the end)");
	arena_free(&arena);
}

/* Prints the fields in which the new definition of a conflict differs from the existing definition. */
static void print_conflict(const struct extract_conflict *conflict)
{
	cJSON *differences = cJSON_Parse(conflict->differences);
	const cJSON *item;

	show_print(stdout, "  %s: %s already exists, with a different definition\n", conflict->name, conflict->existing);
	cJSON_ArrayForEach(item, differences)
	{
		const char *ours = json_text_of(item, "ours"), *theirs = json_text_of(item, "theirs");

		if (strcmp(json_text_of(item, "field"), "reference") == 0) {
			print_first_line(ours, theirs);
			continue;
		}
		show_print(stdout, "    %s: new %s, existing %s\n", json_text_of(item, "field"), ours != NULL ? ours : "absent",
			   theirs != NULL ? theirs : "absent");
	}
	cJSON_Delete(differences);
	if (conflict->why != NULL)
		show_print(stdout, "    %s\n", conflict->why);
}

static void print_not_kept(const struct extract_result *r)
{
	if (count_not_kept(r) > 0)
		show_print(stdout, "not written, because they did not pass:\n");
	for (int i = 0; i < r->file_count; i++)
		if (!r->files[i].keep)
			show_print(stdout, "  %s/%s: %s: %s\n", r->files[i].op_type, r->files[i].name, r->files[i].status, r->files[i].why);
}

static void print_text(const struct model *model, const struct extract_result *r, bool verified)
{
	print_list(verified ? "written:" : "written without verification:", &r->written);
	print_not_kept(r);
	print_list("existing definitions that got the model's tag, because they are equivalent to the definition of a "
	    "module:",
		   &r->tagged);
	if (r->conflict_count > 0)
		show_print(stdout, "written under another name:\n");
	for (int i = 0; i < r->conflict_count; i++)
		print_conflict(&r->conflicts[i]);
	if (r->sglang.file != NULL)
		show_print(stdout, "SGLang's %s %s reftest's mapping of this model%s\n", r->sglang.file,
			   r->sglang.disagreements.count > 0 ? "disagrees with" : "agrees with", r->sglang.disagreements.count > 0 ? ":" : "");
	for (int i = 0; i < r->sglang.disagreements.count; i++)
		show_print(stdout, "  %s\n", r->sglang.disagreements.items[i]);
	print_list("shared by several models:", &r->shared);
	print_list("left out:", &r->left_out);
	print_list("modules of the model that no op family supports:", &r->not_covered);
	show_print(stdout, "%s: %d written, %d tagged, %d unchanged", model->name, r->written.count, r->tagged.count, r->unchanged.count);
	if (count_not_kept(r) > 0)
		show_print(stdout, ", %d not written", count_not_kept(r));
	show_print(stdout, "\n");
}

/* Makes, verifies and writes the definitions. Sets `status` to the exit status that follows from the verdicts. */
static int extract_and_check(struct program *program, const struct extract_options *o, const struct extract_request *request,
			     struct extract_result *result, int *status, struct arena *arena, struct err *err)
{
	int code = extract_plan(request, result, arena, err) < 0 ? EXIT_USAGE : 0;

	if (code == 0 && !o->no_verify)
		code = extract_check(program, &o->check, result, status, arena, err);
	if (code == 0 && extract_write(result, arena, err) < 0)
		code = EXIT_USAGE;
	return code;
}

/* Prints the new and changed definitions if a model was given, and the counts of the dataset if --stats was given. */
static int report(struct program *program, const struct extract_options *o, const struct model *model,
		  const struct extract_result *result, struct arena *arena, struct err *err)
{
	const bool json = strcmp(o->shared.format, "json") == 0;
	struct dataset_stats stats;
	struct buf out = {0};
	int code = 0;

	if (!json && model != NULL)
		print_text(model, result, !o->no_verify);
	if (o->stats) {
		program->root_given = o->out != NULL ? o->out : program->root_given;
		code = program_root(program, err) < 0 ? EXIT_USAGE
						      : dataset_stats_read(program, &o->check.options, &stats, arena, err);
	}
	if (o->stats && code == 0 && !json)
		dataset_stats_print(&stats);
	buf_text(&out, "{\"schema\": 1");
	if (model != NULL)
		add_json(&out, model, result, !o->no_verify);
	if (o->stats && code == 0) {
		buf_text(&out, ",\n \"stats\": ");
		dataset_stats_json(&stats, &out);
	}
	buf_text(&out, "}\n");
	if (json)
		fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
	return code;
}

static int extract(struct program *program, const struct extract_options *o, struct extract_request *request, struct arena *arena,
		   struct err *err)
{
	struct model model;
	struct extract_result result;
	int status = EXIT_VERIFIED;

	if (model_option_open(o->config, o->model, &model, arena, err) < 0)
		return EXIT_USAGE;
	request->model = &model;
	int code = extract_and_check(program, o, request, &result, &status, arena, err);

	if (code == 0)
		code = report(program, o, &model, &result, arena, err);
	model_close(&model);
	return code == 0 ? status : code;
}

static int run(struct program *program, struct extract_options *o, struct arena *arena, struct err *err)
{
	struct extract_request request = {.op_types = o->op_types};

	if (read_list("--tp", o->tp, &request.tp, err) < 0 || read_list("--ep", o->ep, &request.ep, err) < 0 ||
	    read_list("--page-size", o->page_sizes, &request.page_sizes, err) < 0)
		return EXIT_USAGE;
	if (shared_options_read(&o->shared, program, &o->check.options, err) < 0)
		return EXIT_USAGE;
	o->check.show = strcmp(o->shared.format, "json") != 0;
	if (o->out == NULL && program_root(program, err) < 0) {
		const struct err root = *err;

		return err_set(err, "%s, or write a new dataset with --out DIR", root.text), EXIT_USAGE;
	}
	request.sglang = library_checkout_path(program, "sglang", arena);
	request.root = o->out != NULL ? o->out : program->root;
	if (o->stats && o->config == NULL && o->model == NULL)
		return report(program, o, NULL, NULL, arena, err);
	return extract(program, o, &request, arena, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct extract_options o = {.shared = shared_options_default(), .tp = "1", .ep = "1", .page_sizes = "1,64"};
	struct command_line line;

	if (command_line_begin(&line, &command_extract, argc, argv, &o)) {
		line.code = run(program, &o, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_extract = {
    .name = "extract",
    .summary = "write the definitions of a model, from its configuration",
    .synopsis = "[options] (--model NAME | --config PATH | --stats)",
    .description =
	"Writes a definition for each module of a model, if an op family supports the operation of the module. The "
	"dimensions come from the model's configuration, divided by the degrees of parallelism. The reference comes from a "
	"template of the op family. If the dataset already has an equivalent definition, reftest adds the model's tag "
	"to the existing definition instead.\n"
	"\n"
	"Before a new definition is written, its small cases run as in `reftest verify`. A definition that does not pass is "
	"not written.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
