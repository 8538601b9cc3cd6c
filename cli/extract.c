/* extract - writes the definitions of a model, from its configuration (extract/extract.h). */
#include "cli/command.h"
#include "cli/command_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "cli/model_option.h"
#include "cli/shared_options.h"
#include "extract/extract.h"

struct extract_options {
	const char *root, *config, *model, *tp, *ep, *page_sizes, *op_types, *out, *format;
};

#define AT(member) offsetof(struct extract_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_CONFIG,
    ROW_MODEL,
    {"--tp", OPTION_TEXT, AT(tp), "LIST", NULL, "degrees of tensor parallelism, separated by commas (default: 1)"},
    {"--ep", OPTION_TEXT, AT(ep), "LIST", NULL, "degrees of expert parallelism, separated by commas (default: 1)"},
    {"--page-size", OPTION_TEXT, AT(page_sizes), "LIST", NULL, "keys in a page of a cache, separated by commas (default: 1,64)"},
    {"--op-type", OPTION_TEXT, AT(op_types), "LIST", NULL, "write only definitions of these op_types, separated by commas"},
    {"--out", OPTION_FILE, AT(out), "DIR", NULL, "write to DIR/definitions instead of the dataset"},
    ROW_TEXT_OR_JSON,
};

enum { ROWS = sizeof rows / sizeof rows[0], LARGEST_NUMBER = 4096 };

/* Reads "1,64". */
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

static void print_json(const struct model *model, const struct extract_result *r)
{
	struct buf out = {0};

	buf_text(&out, "{\"schema\": 1, \"model\": ");
	buf_json_string(&out, model->name);
	json_list(&out, "written", &r->written);
	json_list(&out, "tagged", &r->tagged);
	json_list(&out, "unchanged", &r->unchanged);
	buf_text(&out, ",\n \"conflicts\": [");
	for (int i = 0; i < r->conflict_count; i++) {
		buf_printf(&out, "%s{\"name\": ", i > 0 ? ", " : "");
		buf_json_string(&out, r->conflicts[i].name);
		buf_text(&out, ", \"existing\": ");
		buf_json_string(&out, r->conflicts[i].existing);
		buf_printf(&out, ", \"differences\": %s}", r->conflicts[i].differences);
	}
	buf_text(&out, "]");
	json_list(&out, "shared", &r->shared);
	json_list(&out, "not_covered", &r->not_covered);
	json_list(&out, "left_out", &r->left_out);
	buf_text(&out, "}\n");
	fwrite(out.data, 1, out.length, stdout);
	buf_free(&out);
}

static void print_list(const char *heading, const struct string_list *list)
{
	if (list->count > 0)
		show_print(stdout, "%s\n", heading);
	for (int i = 0; i < list->count; i++)
		show_print(stdout, "  %s\n", list->items[i]);
}

/* Prints the fields in which a conflicting definition differs. */
static void print_conflict(const struct extract_conflict *conflict)
{
	cJSON *differences = cJSON_Parse(conflict->differences);
	const cJSON *item;

	show_print(stdout, "  %s: %s exists and differs from it\n", conflict->name, conflict->existing);
	cJSON_ArrayForEach(item, differences)
	{
		const char *ours = json_text_of(item, "ours"), *theirs = json_text_of(item, "theirs");

		show_print(stdout, "    %s: %s here, %s there\n", json_text_of(item, "field"), ours != NULL ? ours : "absent",
			   theirs != NULL ? theirs : "absent");
	}
	cJSON_Delete(differences);
}

static void print_text(const struct model *model, const struct extract_result *r)
{
	print_list("written:", &r->written);
	print_list("tagged, because they mean the same:", &r->tagged);
	if (r->conflict_count > 0)
		show_print(stdout, "written under another name:\n");
	for (int i = 0; i < r->conflict_count; i++)
		print_conflict(&r->conflicts[i]);
	print_list("shared by several models:", &r->shared);
	print_list("left out:", &r->left_out);
	print_list("in the architecture, but in no op family:", &r->not_covered);
	show_print(stdout, "%s: %d written, %d tagged, %d unchanged\n", model->name, r->written.count, r->tagged.count, r->unchanged.count);
}

static int extract(const struct extract_options *o, struct extract_request *request, struct arena *arena, struct err *err)
{
	struct model model;
	struct extract_result result;

	if (model_option_open(o->config, o->model, &model, arena, err) < 0)
		return EXIT_USAGE;
	request->model = &model;
	int rc = extract_model(request, &result, arena, err);

	if (rc == 0 && strcmp(o->format, "json") == 0)
		print_json(&model, &result);
	else if (rc == 0)
		print_text(&model, &result);
	model_close(&model);
	return rc == 0 ? EXIT_VERIFIED : EXIT_USAGE;
}

static int run(struct program *program, const struct extract_options *o, struct arena *arena, struct err *err)
{
	struct extract_request request = {.op_types = o->op_types};

	if (read_list("--tp", o->tp, &request.tp, err) < 0 || read_list("--ep", o->ep, &request.ep, err) < 0 ||
	    read_list("--page-size", o->page_sizes, &request.page_sizes, err) < 0)
		return EXIT_USAGE;
	if (o->root != NULL)
		program->root_given = o->root;
	if (o->out == NULL && program_root(program, err) < 0)
		return EXIT_USAGE;
	request.root = o->out != NULL ? o->out : program->root;
	return extract(o, &request, arena, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct extract_options o = {.tp = "1", .ep = "1", .page_sizes = "1,64", .format = "text"};
	struct command_line line;

	if (command_line_begin(&line, &command_extract, argc, argv, &o)) {
		line.code = run(program, &o, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_extract = {
    .name = "extract",
    .summary = "write the definitions of a model, from its configuration",
    .synopsis = "[options] (--model NAME | --config PATH)",
    .description =
	"Writes a definition for each module of a model whose operation an op family knows: its dimensions come from the "
	"model's configuration, divided by the degrees of parallelism, and its reference from a text of the op family. A "
	"definition that means the same as one of the dataset is not written again; that one gets the model's tag. The "
	"definitions are not verified: run `reftest verify` afterwards.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
