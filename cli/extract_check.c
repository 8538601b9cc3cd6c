#include "cli/extract_check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/show.h"
#include "dataset/definition_parse.h"
#include "engine/base_references.h"
#include "report/behaviour_diff.h"
#include "report/exit_status.h"
#include "report/text.h"
#include "repos/remove_tree.h"
#include "workers/pool/machine_resources.h"

struct checking {
	struct program *program;
	const struct extract_check *check;
	struct extract_result *result;
	char root[4096];  /* of the dataset */
	char *temporary;  /* the root of the temporary dataset */
	char python[4096]; /* "": none was found */
	struct arena *arena;
	struct err *err;
};

static bool is_new(const struct extract_file *file)
{
	return file->old_text == NULL;
}

static int count_new(const struct extract_result *result)
{
	int count = 0;

	for (int i = 0; i < result->file_count; i++)
		count += is_new(&result->files[i]);
	return count;
}

static int make_dataset(struct checking *c)
{
	const char *folder = getenv("TMPDIR");

	c->temporary = arena_printf(c->arena, "%s/reftest-extract-XXXXXX", folder != NULL && folder[0] == '/' ? folder : "/tmp");
	if (mkdtemp(c->temporary) == NULL)
		return err_errno(c->err, "cannot make the folder %s", c->temporary);
	for (int i = 0; i < c->result->file_count; i++) {
		const struct extract_file *file = &c->result->files[i];

		if (is_new(file) && file_replace_soon(arena_printf(c->arena, "%s/%s", c->temporary, file->below), file->text,
						      strlen(file->text), c->err) < 0)
			return -1;
	}
	return 0;
}

static struct run_options options_of(const struct checking *c)
{
	struct run_options options = c->check->options;

	if (c->python[0] != '\0')
		options.python = c->python;
	options.details = options.each = true;
	memset(options.cases.size, 0, sizeof options.cases.size);
	options.cases.size[SIZE_SMALL] = options.cases.sizes_given = true;
	options.cases.workloads = false;
	return options;
}

static struct extract_file *file_of(struct extract_result *result, const char *below)
{
	for (int i = 0; i < result->file_count; i++)
		if (strcmp(result->files[i].below, below) == 0)
			return &result->files[i];
	return NULL;
}

/* Returns the message of the first case that did not pass. */
static const char *why_not(const struct result *result, struct arena *arena)
{
	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].verdict;

		if (v != NULL && v->status != STATUS_PASSED)
			return arena_printf(arena, "%s%s%s%s%s", result->cases[i].test->id, v->reason != REASON_NONE ? ": " : "",
					    v->reason != REASON_NONE ? reason_name(v->reason) : "", v->message != NULL ? ": " : "",
					    v->message != NULL ? v->message : "");
	}
	return result->message != NULL ? arena_string(arena, result->message) : "no case ran";
}

static void take_results(struct checking *c, const struct run *run)
{
	static const struct report_options report = {.command = ""};

	for (int i = 0; i < run->count; i++) {
		struct result *result = run->results[i];
		struct extract_file *file = file_of(c->result, result->file->path);

		if (file == NULL)
			continue;
		file->keep = result->known && result->status == STATUS_PASSED;
		if (file->keep)
			continue;
		file->status = report_status(result);
		file->why = why_not(result, c->arena);
		if (c->check->show)
			report_result(result, &report);
	}
}

static int verify_all(struct checking *c, int *status)
{
	struct run_options options = options_of(c);
	struct run run;
	int code = run_open(&run, c->program, &options, c->err);

	if (code == 0 && (run_select(&run, NULL, 0, NULL, 0, c->err) < 0 || run_to_end(&run, c->err) < 0))
		code = EXIT_INTERNAL;
	else if (code == 0)
		code = run.interrupted ? EXIT_INTERRUPTED : 0;
	if (code == 0) {
		*status = exit_status_of_run(&run, false);
		take_results(c, &run);
	}
	run_close(&run);
	return code;
}

/* ---- conflicts --------------------------------------------------------------------------------------------------- */

/* Makes a base reference (the reference to compare with) from the existing definition of a conflict. The new reference
 * is then compared with the existing one. */
static struct base_reference base_of(struct checking *c, const struct extract_conflict *conflict)
{
	struct base_reference base = {.path = conflict->file->below};
	const char *text = conflict->existing_text, *slash = strchr(conflict->existing, '/');
	struct err why = {""};

	base.definition = definition_parse(conflict->existing, conflict->file->op_type,
					   slash != NULL ? slash + 1 : conflict->existing, text, strlen(text), c->arena,
					   &why);
	base.trouble = base.definition == NULL	      ? arena_string(c->arena, why.text)
		       : base.definition->entry_point == NULL ? "it has no reference"
						      : base.definition->unverifiable;
	return base;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct base_reference *)a)->path, ((const struct base_reference *)b)->path);
}

static void set_behaviour(struct checking *c, struct extract_conflict *conflict, const struct result *result)
{
	static const struct {
		const char *name, *text;
	} rows[BEHAVIOUR_COUNT] = {
	    [BEHAVIOUR_CHANGED] = {"changed", "the references behave differently"},
	    [BEHAVIOUR_UNKNOWN] = {"unknown", "it is unknown whether the references behave alike"},
	    [BEHAVIOUR_ROUNDING] = {"rounding", "the references behave alike, apart from rounding"},
	    [BEHAVIOUR_SAME] = {"same", "the references behave alike"},
	};
	const enum behaviour behaviour = behaviour_of(result);

	conflict->behaviour = rows[behaviour].name;
	conflict->why = behaviour == BEHAVIOUR_CHANGED || behaviour == BEHAVIOUR_UNKNOWN
			    ? arena_printf(c->arena, "%s (%s)", rows[behaviour].text, why_not(result, c->arena))
			    : arena_printf(c->arena, "%s: every value of %d small case%s is %s", rows[behaviour].text, result->case_count,
					   result->case_count == 1 ? "" : "s", behaviour == BEHAVIOUR_SAME ? "equal" : "within its bounds");
}

static int run_conflicts(struct checking *c, const struct base_references *base, const char *const *names)
{
	struct run_options options = options_of(c);
	struct run run;

	options.base = base;
	options.force = true;
	options.ground_truth = "builtin";
	int code = run_open(&run, c->program, &options, c->err);

	if (code == 0 && (run_select(&run, names, base->count, NULL, 0, c->err) < 0 || run_to_end(&run, c->err) < 0))
		code = EXIT_INTERNAL;
	else if (code == 0)
		code = run.interrupted ? EXIT_INTERRUPTED : 0;
	for (int i = 0; code == 0 && i < run.count; i++)
		for (int k = 0; k < c->result->conflict_count; k++)
			if (strcmp(c->result->conflicts[k].file->below, run.results[i]->file->path) == 0)
				set_behaviour(c, &c->result->conflicts[k], run.results[i]);
	run_close(&run);
	return code;
}

/* Runs both references of each conflict on the same inputs. */
static int compare_conflicts(struct checking *c)
{
	const int count = c->result->conflict_count;
	struct base_reference *items = arena_array(c->arena, (size_t)count, sizeof *items);
	const char **names = arena_array(c->arena, (size_t)count, sizeof *names);
	struct base_references base = {items, 0};

	for (int i = 0; i < count; i++) {
		struct extract_conflict *conflict = &c->result->conflicts[i];

		conflict->behaviour = "unknown";
		if (conflict->existing_text == NULL || !conflict->same_interface) {
			conflict->why = conflict->existing_text == NULL ? "the existing definition cannot be read"
									: "the two definitions have different axes, inputs or outputs, so their references are not compared";
			continue;
		}
		names[base.count] = conflict->name;
		items[base.count++] = base_of(c, conflict);
	}
	qsort(items, (size_t)base.count, sizeof *items, by_path);
	return base.count > 0 ? run_conflicts(c, &base, names) : 0;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int check_in_dataset(struct checking *c, int *status)
{
	if (make_dataset(c) < 0)
		return EXIT_INTERNAL;
	memcpy(c->program->root, c->temporary, strlen(c->temporary) + 1);
	int code = verify_all(c, status);

	return code == 0 ? compare_conflicts(c) : code;
}

int extract_check(struct program *program, const struct extract_check *check, struct extract_result *result, int *status,
		  struct arena *arena, struct err *err)
{
	struct checking c = {.program = program, .check = check, .result = result, .arena = arena, .err = err};
	struct err note = {""}, ignored;
	int count = count_new(result);

	*status = EXIT_VERIFIED;
	if (count == 0)
		return 0;
	memcpy(c.root, program->root, sizeof c.root);
	if (c.root[0] != '\0') {
		program_store(program, false, &note);
		if (program_settings(program, err) < 0) /* these settings also apply to the temporary dataset */
			return EXIT_USAGE;
	}
	if (machine_python(check->options.python, c.root[0] != '\0' ? c.root : NULL, c.python, sizeof c.python, &ignored) < 0)
		c.python[0] = '\0';
	show_print(stderr, "reftest: verifying %d definition%s; --no-verify skips this\n", count, count == 1 ? "" : "s");
	int code = check_in_dataset(&c, status);

	memcpy(program->root, c.root, sizeof c.root);
	if (c.temporary != NULL && remove_tree(c.temporary, &ignored) < 0)
		show_print(stderr, "reftest: %s\n", ignored.text);
	return code;
}
