#include "cli/dataset_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "base/string_list.h"
#include "cli/cached_run.h"
#include "testgen/test_list.h"

enum { ROWS_STEP = 32 };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Adds the names of the definitions that a test file tests. Each class in the file has a line like NAME =
 * "rmsnorm_h4096". */
static void add_names(const char *text, struct string_list *names)
{
	static const char head[] = "\n    NAME = \"";

	for (const char *at = strstr(text, head); at != NULL; at = strstr(at + 1, head)) {
		const char *name = at + strlen(head), *end = strchr(name, '"');

		if (end != NULL)
			string_list_add(names, arena_copy(names->arena, name, (size_t)(end - name)));
	}
}

/* Lists the definitions that have a test, sorted. */
static int read_tests(const struct run *run, struct string_list *names, struct err *err)
{
	struct test_list list;
	struct buf bytes = {0};
	enum owner owner;

	if (test_list_names(&list, run->dataset.fd, run->program->root, names->arena, err) < 0)
		return -1;
	for (int i = 0; i < list.count; i++) {
		const char *file = list.names[i];
		const size_t length = strlen(file);

		if (length > strlen("test_.py")) /* the file may be named after a definition */
			string_list_add(names, arena_copy(names->arena, file + strlen("test_"), length - strlen("test_.py")));
		if (test_list_read(&list, file, &bytes, &owner, NULL) == FILE_OK && bytes.length > 0)
			add_names(bytes.data, names);
	}
	buf_free(&bytes);
	if (names->count > 0)
		qsort(names->items, (size_t)names->count, sizeof *names->items, by_text);
	return 0;
}

static bool has_test(const struct string_list *names, const char *name)
{
	return names->count > 0 && bsearch(&name, names->items, (size_t)names->count, sizeof *names->items, by_text) != NULL;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static struct stats_row *row_of(struct stats_rows *rows, const char *name, struct arena *arena)
{
	for (int i = 0; i < rows->count; i++)
		if (strcmp(rows->items[i].name, name) == 0)
			return &rows->items[i];
	if (rows->count == rows->room) {
		struct stats_row *more = arena_array(arena, (size_t)rows->room + ROWS_STEP, sizeof *more);

		if (rows->count > 0)
			memcpy(more, rows->items, (size_t)rows->count * sizeof *more);
		rows->items = more;
		rows->room += ROWS_STEP;
	}
	rows->items[rows->count].name = arena_string(arena, name);
	return &rows->items[rows->count++];
}

static void count(struct stats_row *row, bool tested, bool verified)
{
	row->definitions++;
	row->with_test += tested;
	row->verified += verified;
}

static void count_result(const struct result *result, const struct string_list *tests, struct dataset_stats *out, struct arena *arena)
{
	const struct definition *d = result->definition;
	const bool tested = has_test(tests, result->file->name), verified = result->known && result->status == STATUS_PASSED;
	bool named = false;

	count(&out->all, tested, verified);
	count(row_of(&out->op_types, result->file->op_type, arena), tested, verified);
	for (int i = 0; d != NULL && i < d->tag_count; i++)
		if (strncmp(d->tags[i], "model:", 6) == 0) {
			count(row_of(&out->models, d->tags[i] + 6, arena), tested, verified);
			named = true;
		}
	if (!named)
		count(row_of(&out->models, "", arena), tested, verified);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct stats_row *)a)->name, ((const struct stats_row *)b)->name);
}

static int count_run(struct run *run, struct dataset_stats *out, struct arena *arena, struct err *err)
{
	struct string_list tests = {.arena = arena};

	if (run_select(run, NULL, 0, NULL, 0, err) < 0 || run_to_end(run, err) < 0)
		return EXIT_INTERNAL;
	if (read_tests(run, &tests, err) < 0)
		return EXIT_USAGE;
	for (int i = 0; i < run->count; i++)
		count_result(run->results[i], &tests, out, arena);
	if (out->op_types.count > 0)
		qsort(out->op_types.items, (size_t)out->op_types.count, sizeof *out->op_types.items, by_name);
	if (out->models.count > 0)
		qsort(out->models.items, (size_t)out->models.count, sizeof *out->models.items, by_name);
	return run->interrupted ? EXIT_INTERRUPTED : 0;
}

int dataset_stats_read(struct program *program, const struct run_options *run_options, struct dataset_stats *out,
		       struct arena *arena, struct err *err)
{
	struct run_options options = *run_options;
	struct run run;

	options.cached_only = options.dry_run = options.each = options.details = true;
	*out = (struct dataset_stats){.all = {.name = ""}};
	int code = run_open(&run, program, &options, err);

	if (code == 0)
		code = count_run(&run, out, arena, err);
	run_close(&run);
	return code;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_row(const char *name, const struct stats_row *row)
{
	show_print(stdout, "  %-32s %11d %9d %12d %8d\n", name, row->definitions, row->with_test, row->definitions - row->with_test,
		   row->verified);
}

static void print_rows(const char *heading, const char *unnamed, const struct stats_rows *rows)
{
	show_print(stdout, "%-34s %11s %9s %12s %8s\n", heading, "definitions", "with test", "without test", "verified");
	for (int i = 0; i < rows->count; i++)
		print_row(rows->items[i].name[0] != '\0' ? rows->items[i].name : unnamed, &rows->items[i]);
}

void dataset_stats_print(const struct dataset_stats *stats)
{
	print_rows("op_type", "", &stats->op_types);
	print_rows("model", "(none)", &stats->models);
	print_row("all", &stats->all);
}

static void json_row(struct buf *out, const struct stats_row *row)
{
	buf_printf(out, "\"definitions\": %d, \"with_test\": %d, \"without_test\": %d, \"verified\": %d", row->definitions, row->with_test,
		   row->definitions - row->with_test, row->verified);
}

static void json_rows(struct buf *out, const char *member, const char *key, const struct stats_rows *rows)
{
	buf_printf(out, ", \"%s\": [", member);
	for (int i = 0; i < rows->count; i++) {
		buf_printf(out, "%s{\"%s\": ", i > 0 ? ", " : "", key);
		if (rows->items[i].name[0] == '\0')
			buf_text(out, "null");
		else
			buf_json_string(out, rows->items[i].name);
		buf_text(out, ", ");
		json_row(out, &rows->items[i]);
		buf_text(out, "}");
	}
	buf_text(out, "]");
}

void dataset_stats_json(const struct dataset_stats *stats, struct buf *out)
{
	buf_text(out, "{");
	json_row(out, &stats->all);
	json_rows(out, "op_types", "op_type", &stats->op_types);
	json_rows(out, "models", "model", &stats->models);
	buf_text(out, "}");
}
