/* web - writes the module tree of a model for flashinfer-bench's web interface (web/module_tree.h). */
#include "cli/command.h"
#include "cli/command_line.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/show.h"
#include "cli/model_option.h"
#include "cli/shared_options.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "web/models_file.h"
#include "web/module_tree.h"

struct web_options {
	struct shared_options shared;
	const char *config, *model, *into;
};

#define AT(member) offsetof(struct web_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_MODEL,
    ROW_CONFIG,
    {"--into", OPTION_FILE, AT(into), "FILE", NULL,
     "write the modules to FILE, such as web/apps/web/data/models.ts, instead of printing them"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Returns whether a tag contains the name of the model or one of its aliases. */
static bool names_model(const char *tag, const struct model *model, struct arena *arena)
{
	struct model other;

	if (strncmp(tag, "model:", 6) != 0)
		return false;
	if (strcmp(tag + 6, model->name) == 0)
		return true;
	if (!model_find(tag + 6, &other, arena))
		return false;
	bool same = strcmp(other.name, model->name) == 0;

	model_close(&other);
	return same;
}

static bool has_model(const struct definition *d, const struct model *model, struct arena *arena)
{
	for (int i = 0; i < d->tag_count; i++)
		if (names_model(d->tags[i], model, arena))
			return true;
	return false;
}

/* Reads the definitions with the model's tag. Reports invalid definitions and omits them. */
static const struct definition **read_definitions(const struct dataset *dataset, const struct model *model, int *count,
						  struct arena *arena)
{
	const struct definition **out = arena_array(arena, (size_t)dataset->definition_count, sizeof *out);
	struct buf bytes = {0};

	*count = 0;
	for (int i = 0; i < dataset->definition_count; i++) {
		const struct dataset_file *file = &dataset->definitions[i];
		struct err err = {""};

		if (file_read(dataset->fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) != FILE_OK)
			continue;
		const struct definition *d =
		    definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, arena, &err);

		if (d == NULL)
			show_print(stderr, "reftest: left out: %s\n", err.text);
		else if (has_model(d, model, arena))
			out[(*count)++] = d;
	}
	buf_free(&bytes);
	return out;
}

static void print_entry(const struct web_model *model)
{
	const struct web_layout layout = {"  ", "  ", "\n"};
	struct buf out = {0};

	buf_text(&out, "  ");
	web_model_write(model, &layout, &out);
	buf_text(&out, ",\n");
	show_print(stdout, "%s", out.data);
	buf_free(&out);
}

/* Adds or updates the model's entry in the TypeScript file at `path`. If the file does not have the form that
 * web/models_file.h describes, leaves it unchanged. */
static int change_file(const char *path, const struct web_model *model, struct err *err)
{
	static const char *const done[] = {[MODELS_FILE_SAME] = "already has the modules of",
					   [MODELS_FILE_REPLACED] = "replaced the modules of",
					   [MODELS_FILE_ADDED] = "added"};
	struct buf text = {0}, changed = {0};
	enum file_answer answer = file_read(AT_FDCWD, path, MODELS_FILE_BYTES, &text, NULL, err);
	enum models_file_change change = MODELS_FILE_ERROR;

	if (answer == FILE_ABSENT)
		err_set(err, "%s does not exist", path);
	else if (answer == FILE_OK)
		change = models_file_set(path, text.data != NULL ? text.data : "", text.length, model, &changed, err);
	char *real = realpath(path, NULL); /* a symbolic link stays */

	if ((change == MODELS_FILE_REPLACED || change == MODELS_FILE_ADDED) &&
	    file_replace(real != NULL ? real : path, changed.data, changed.length, err) < 0)
		change = MODELS_FILE_ERROR;
	free(real);
	if (change != MODELS_FILE_ERROR)
		show_print(stdout, "%s: %s %s\n", path, done[change], model->id);
	buf_free(&text);
	buf_free(&changed);
	return change == MODELS_FILE_ERROR ? EXIT_USAGE : EXIT_VERIFIED;
}

static int make(const struct dataset *dataset, const struct web_options *o, const struct model *model, struct arena *arena,
		struct err *err)
{
	struct module_tree tree;
	int count;
	const struct definition **definitions = read_definitions(dataset, model, &count, arena);

	if (module_tree_make(model, definitions, count, &tree, arena, err) < 0)
		return EXIT_USAGE;
	for (int i = 0; i < tree.unplaced.count; i++)
		show_print(stderr, "reftest: %s has the tag of %s, but reftest's mapping of this model has no module "
		    "for this definition\n", tree.unplaced.items[i],
			   model->name);
	if (o->into != NULL)
		return change_file(o->into, &tree.model, err);
	print_entry(&tree.model);
	return EXIT_VERIFIED;
}

static int run(struct program *program, const struct web_options *o, struct arena *arena, struct err *err)
{
	struct dataset dataset;
	struct model model;
	int code = EXIT_USAGE;

	shared_options_root(&o->shared, program);
	if (model_option_open(o->config, o->model, &model, arena, err) < 0)
		return EXIT_USAGE;
	if (program_root(program, err) == 0 && dataset_scan(program->root, arena, &dataset, err) == 0) {
		code = make(&dataset, o, &model, arena, err);
		dataset_close(&dataset);
	}
	model_close(&model);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct web_options o = {0};
	struct command_line line;

	if (command_line_begin(&line, &command_web, argc, argv, &o))
		line.code = run(program, &o, &line.arena, &line.err);
	return command_line_end(&line);
}

const struct command command_web = {
    .name = "web",
    .summary = "write the module tree of a model for flashinfer-bench's web interface",
    .synopsis = "[options] (--model NAME | --config PATH)",
    .description =
	"Prints the entry of a model in the format of `web/apps/web/data/models.ts` of flashinfer-bench. The entry lists "
	"the modules of the model, and how often the model has each of them. For each module, the entry lists the definitions of "
	"the dataset that have the model's tag and the axes of the module.\n"
	"\n"
	"With `--into`, reftest replaces the modules of this model in the file, or adds an entry for the model. All other "
	"bytes of the file stay the same. If reftest does not understand the file, the file is left unchanged.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
