#include "engine/affected.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/definition_parse.h"
#include "engine/cases.h"
#include "engine/settings.h"
#include "engine/solution_truth.h"

struct finder {
	struct program *program;
	const struct dataset *dataset;
	struct file_digests *digests;
	struct arena *arena;
	struct affected *out;
	/* For each definition, the first changed file that affects it; NULL if no changed file affects it. */
	const char **because;
	bool *rewritten;       /* for each definition, whether a changed source file may change its generated test */
	struct families {
		const char *names[CANDIDATES_MAX]; /* NULL: none */
	} *families; /* for each definition, the op families that it may have; the array is filled on first use */
	struct buf definition_bytes, workload_bytes;
};

/* ---- paths ------------------------------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *head)
{
	return strncmp(text, head, strlen(head)) == 0;
}

/* Removes ".", ".." and repeated '/' from an absolute path. Does not look at the filesystem, because the file may no
 * longer exist. */
static const char *tidy(const char *path, struct arena *arena)
{
	char *out = arena_alloc(arena, strlen(path) + 2);
	size_t length = 0;

	while (*path != '\0') {
		size_t part = strcspn(path, "/");

		if (part == 2 && begins(path, "..")) {
			while (length > 0 && out[--length] != '/')
				;
		} else if (part > 0 && !(part == 1 && *path == '.')) {
			out[length++] = '/';
			memcpy(out + length, path, part);
			length += part;
		}
		path += part + (path[part] == '/');
	}
	out[length] = '\0';
	return out;
}

const char *affected_path(const char *root, const char *word, struct arena *arena)
{
	char full[PATH_MAX], here[PATH_MAX];

	if (realpath(root, full) == NULL || getcwd(here, sizeof here) == NULL)
		return word;
	const char *path = tidy(word[0] == '/' ? word : arena_printf(arena, "%s/%s", here, word), arena);
	size_t length = strcmp(full, "/") == 0 ? 0 : strlen(full);

	return strncmp(path, full, length) == 0 && path[length] == '/' ? path + length + 1 : word;
}

static int compare_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- one definition ---------------------------------------------------------------------------------------------- */

static void touch(struct finder *f, int definition, const char *file)
{
	if (f->because[definition] == NULL)
		f->because[definition] = file;
}

static void touch_all(struct finder *f, const char *file)
{
	for (int i = 0; i < f->dataset->definition_count; i++)
		touch(f, i, file);
}

static const struct definition *load(struct finder *f, const struct dataset_file *file, struct arena *arena)
{
	struct stat_check stat_check;

	if (file_digests_check(f->digests, file, DEFINITION_BYTES, true, &f->definition_bytes, &stat_check, NULL) < 0)
		return NULL;
	return definition_parse(file->path, file->op_type, file->name, f->definition_bytes.data,
			       f->definition_bytes.length, arena, NULL);
}

/* ---- one file: which definitions it affects ---------------------------------------------------------------------- */

static bool touch_by_path(struct finder *f, const char *file)
{
	char path[PATH_MAX];
	const struct dataset *dataset = f->dataset;

	if (!dataset_definition_path(file, path, sizeof path) && !solution_definition_path(file, path, sizeof path))
		return false;
	const struct dataset_file *found =
	    dataset->definition_count == 0
		? NULL
		: bsearch(path, dataset->definitions, (size_t)dataset->definition_count, sizeof *found, compare_path);

	if (found != NULL)
		touch(f, (int)(found - dataset->definitions), file);
	else if (strcmp(path, file) == 0)
		f->out->gone[f->out->gone_count++] = file;
	return found != NULL || strcmp(path, file) == 0;
}

/* Every definition depends on the settings of the dataset. */
static bool touch_by_settings(struct finder *f, const char *file)
{
	if (!settings_is_path(file))
		return false;
	touch_all(f, file);
	return true;
}

static void find_families(struct finder *f)
{
	f->families = arena_array(f->arena, (size_t)f->dataset->definition_count, sizeof *f->families);
	for (int i = 0; i < f->dataset->definition_count; i++) {
		struct arena scratch = {0};
		const struct definition *definition = load(f, &f->dataset->definitions[i], &scratch);
		struct op_candidate list[CANDIDATES_MAX];

		if (definition != NULL) {
			struct op_problem problem = problem_of(definition, &scratch);
			int count = f->program->kernels.api->candidates(&problem, list, NULL);

			for (int k = 0; k < count; k++)
				f->families[i].names[k] = list[k].entry->op->name;
		}
		arena_free(&scratch);
	}
}

static bool is_checkout(const struct finder *f)
{
	struct stat st;

	return fstatat(f->dataset->fd, "kernels/core/op.h", &st, 0) == 0;
}

/* Returns whether the text of `length` bytes contains the name of one of `families`. */
static bool names_family(const struct families *families, const char *text, size_t length)
{
	for (int i = 0; i < CANDIDATES_MAX && families->names[i] != NULL; i++)
		if (strlen(families->names[i]) == length && strncmp(families->names[i], text, length) == 0)
			return true;
	return false;
}

/* If `file` is a source file of the checkout, marks the definitions that the file affects, and returns true. */
static bool touch_by_source(struct finder *f, const char *file)
{
	bool of_all = begins(file, "kernels/core/") || begins(file, "kernels/common/");
	const char *family = file + strlen("kernels/");
	const char *slash = begins(file, "kernels/") && !of_all ? strchr(family, '/') : NULL;

	if ((!begins(file, "kernels/") && !begins(file, "workers/") && !begins(file, "python/")) || !is_checkout(f))
		return false;
	if (begins(file, "python/testing/")) {
		for (int i = 0; i < f->dataset->definition_count; i++)
			f->rewritten[i] = true;
		return true;
	}
	if (slash == NULL) {
		touch_all(f, file);
		return true;
	}
	if (f->families == NULL)
		find_families(f);
	for (int i = 0; i < f->dataset->definition_count; i++)
		if (names_family(&f->families[i], family, (size_t)(slash - family)))
			touch(f, i, file);
	return true;
}

static bool is_test(const char *file)
{
	size_t length = strlen(file);

	return begins(file, "tests/references/") && length > 3 && strcmp(file + length - 3, ".py") == 0;
}

/* Returns whether the file is a table of library calls. Every generated test uses these tables. Do not pass such a file
 * to pytest, which would import it as a test module: torch.py, for example, would then hide the installed package
 * torch. */
static bool is_library(const char *file)
{
	return begins(file, "tests/references/reftest_libraries/");
}

/* Marks the definitions in a test file (test_{op_type}.py or test_{name}.py) as affected. */
static void touch_by_test(struct finder *f, const char *file)
{
	const char *stem = file + strlen("tests/references/test_");
	size_t length;

	if (!begins(file, "tests/references/test_"))
		return;
	length = strlen(stem) - strlen(".py");
	for (int i = 0; i < f->dataset->definition_count; i++) {
		const struct dataset_file *one = &f->dataset->definitions[i];

		if ((strlen(one->op_type) == length && memcmp(one->op_type, stem, length) == 0) ||
		    (strlen(one->name) == length && memcmp(one->name, stem, length) == 0))
			touch(f, i, file);
	}
}

/* ---- files that workload lines name ------------------------------------------------------------------------------ */

static bool line_names(const struct workload *line, int input_count, const char *file)
{
	for (int i = 0; line->error == NULL && i < input_count; i++) {
		const char *path = line->inputs[i].kind == SOURCE_SAFETENSORS ? line->inputs[i].path : "";

		while (begins(path, "./"))
			path += 2;
		if (strcmp(path, file) == 0)
			return true;
	}
	return false;
}

/* Returns false if the JSON text certainly does not contain the file's name. Returns true for every text with a
 * backslash, because JSON can escape any letter. */
static bool may_name(const struct buf *text, const char *file)
{
	const char *name = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;

	return text->length > 0 && (memmem(text->data, text->length, name, strlen(name)) != NULL ||
				    memchr(text->data, '\\', text->length) != NULL);
}

/* Marks the definition as affected if its workload lines name one of `files`. Sets used[i] if the lines name
 * files[i]. */
static void touch_by_workload(struct finder *f, int definition, const char *const *files, int count, bool *used)
{
	const struct dataset_file *workload = f->dataset->workload_of[definition];
	const struct definition *parsed = NULL;
	struct arena scratch = {0};
	struct workload_file lines = {0};
	struct stat_check stat_check;

	if (workload == NULL ||
	    file_digests_check(f->digests, workload, WORKLOAD_BYTES, true, &f->workload_bytes, &stat_check, NULL) < 0)
		return;
	for (int i = 0; i < count; i++) {
		bool named = may_name(&f->workload_bytes, files[i]);

		if (named && parsed == NULL) {
			parsed = load(f, &f->dataset->definitions[definition], &scratch);
			if (parsed == NULL)
				break; /* tensor files cannot change the result of an invalid definition */
			lines = workloads_load(workload->path, parsed, f->workload_bytes.data, f->workload_bytes.length,
					       &scratch);
		}
		for (int k = 0; named && k < lines.count; k++)
			if (line_names(&lines.lines[k], parsed->input_count, files[i])) {
				touch(f, definition, files[i]);
				used[i] = true;
			}
	}
	arena_free(&scratch);
}

/* ---- files that references read ---------------------------------------------------------------------------------- */

static bool reads(const struct definition *definition, const char *file)
{
	for (int i = 0; i < definition->read_count; i++)
		if (strcmp(definition->reads[i], file) == 0)
			return true;
	return false;
}

/* Marks the definition as affected if its reference reads one of `files`. Sets used[i] if the reference reads
 * files[i]. */
static void touch_by_reads(struct finder *f, int index, const char *const *files, int count, bool *used)
{
	struct arena scratch = {0};
	const struct definition *definition = load(f, &f->dataset->definitions[index], &scratch);

	for (int i = 0; definition != NULL && i < count; i++)
		if (reads(definition, files[i])) {
			touch(f, index, files[i]);
			used[i] = true;
		}
	arena_free(&scratch);
}

/* ---- collecting the results -------------------------------------------------------------------------------------- */

static void add_test(struct finder *f, const char *path)
{
	struct stat st;

	if (fstatat(f->dataset->fd, path, &st, 0) == 0)
		f->out->tests[f->out->test_count++] = path;
}

/* Collects the test files that contain the affected definitions. Sorts the test files and removes duplicates. */
static void collect_tests(struct finder *f, bool every)
{
	struct affected *out = f->out;
	int kept = 0;

	for (int i = 0; i < f->dataset->definition_count; i++) {
		const struct dataset_file *one = &f->dataset->definitions[i];

		if (!every && f->because[i] == NULL && !f->rewritten[i])
			continue;
		add_test(f, arena_printf(f->arena, "tests/references/test_%s.py", one->op_type));
		add_test(f, arena_printf(f->arena, "tests/references/test_%s.py", one->name));
	}
	for (int i = 0; i < out->gone_count; i++) { /* "definitions/OP_TYPE/…" */
		const char *op_type = out->gone[i] + strlen("definitions/");

		add_test(f,
			 arena_printf(f->arena, "tests/references/test_%.*s.py", (int)strcspn(op_type, "/"), op_type));
	}
	qsort(out->tests, (size_t)out->test_count, sizeof *out->tests, compare_text);
	for (int i = 0; i < out->test_count; i++)
		if (kept == 0 || strcmp(out->tests[kept - 1], out->tests[i]) != 0)
			out->tests[kept++] = out->tests[i];
	out->test_count = kept;
}

static void collect_definitions(struct finder *f)
{
	for (int i = 0; i < f->dataset->definition_count; i++)
		if (f->because[i] != NULL)
			f->out->definitions[f->out->definition_count++] =
			    (struct affected_definition){&f->dataset->definitions[i], f->because[i]};
}

int affected_by(struct program *program, const struct dataset *dataset, struct file_digests *digests,
		const char *const *files, int count, struct arena *arena, struct affected *out, struct err *err)
{
	size_t definitions = (size_t)dataset->definition_count, n = (size_t)count;
	struct finder f = {.program = program,
			   .dataset = dataset,
			   .digests = digests,
			   .arena = arena,
			   .out = out,
			   .because = arena_array(arena, definitions, sizeof *f.because),
			   .rewritten = arena_array(arena, definitions, sizeof *f.rewritten)};
	const char **rest = arena_array(arena, n, sizeof *rest);
	bool *used = arena_array(arena, n, sizeof *used), every_test = false;
	int rest_count = 0;

	*out = (struct affected){.definitions = arena_array(arena, definitions, sizeof *out->definitions),
				 .gone = arena_array(arena, n, sizeof *out->gone),
				 .tests = arena_array(arena, 2 * definitions + 2 * n, sizeof *out->tests),
				 .others = arena_array(arena, n, sizeof *out->others)};
	if (program_kernels(program, err) < 0)
		return -1;
	for (int i = 0; i < count; i++) {
		if (is_test(files[i])) {
			touch_by_test(&f, files[i]);
			if (!is_library(files[i]))
				add_test(&f, files[i]);
			every_test |= is_library(files[i]) || strcmp(files[i], "tests/references/conftest.py") == 0;
		} else if (!touch_by_path(&f, files[i]) && !touch_by_settings(&f, files[i]) &&
			   !touch_by_source(&f, files[i])) {
			rest[rest_count++] = files[i];
		}
	}
	for (int i = 0; rest_count > 0 && i < dataset->definition_count; i++) {
		touch_by_workload(&f, i, rest, rest_count, used);
		touch_by_reads(&f, i, rest, rest_count, used);
	}
	for (int i = 0; i < rest_count; i++)
		if (!used[i])
			out->others[out->other_count++] = rest[i];
	collect_definitions(&f);
	collect_tests(&f, every_test);
	buf_free(&f.definition_bytes);
	buf_free(&f.workload_bytes);
	return 0;
}
