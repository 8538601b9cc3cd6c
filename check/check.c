#include "check/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "check/approvals.h"
#include "check/benchmarks.h"
#include "check/dataset_index.h"
#include "check/definitions.h"
#include "check/tree.h"
#include "dataset/linked_dataset.h"
#include "dataset/truth_source.h"

/* --- the dataset as a whole ---------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	const struct dataset_file *left = *(const struct dataset_file *const *)a,
				  *right = *(const struct dataset_file *const *)b;
	int order = strcmp(left->name, right->name);

	return order != 0 ? order : strcmp(left->path, right->path);
}

/* Reports definitions that have the same name but different op types, because flashinfer-bench finds definitions by
 * name alone. */
static void check_names(const struct dataset_index *index)
{
	const struct dataset_file **sorted = arena_array(index->arena, (size_t)index->count, sizeof *sorted);

	for (int i = 0; i < index->count; i++)
		sorted[i] = index->items[i].file;
	if (index->count > 0)
		qsort(sorted, (size_t)index->count, sizeof *sorted, compare_names);
	for (int i = 1; i < index->count; i++)
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			findings_add(index->findings, SEVERITY_ERROR, TOPIC_LAYOUT, sorted[i]->path, 0,
				     "%s has the same name as this definition; names must be unique across all op "
				     "types", sorted[i - 1]->path);
}

static void check_workload_owners(const struct dataset_index *index)
{
	for (int i = 0; i < index->dataset.workload_count; i++) {
		const struct dataset_file *file = &index->dataset.workloads[i];

		index->counts->workload_files++;
		if (dataset_index_find(index, file->op_type, file->name) == NULL)
			findings_add(index->findings, SEVERITY_ERROR, TOPIC_WORKLOAD, file->path, 0,
				     "there is no definition definitions/%s/%s.json", file->op_type, file->name);
	}
}

/* Reports a file in truths/ (the dataset's own ground truths) if no definition belongs to it, or if it is not Python
 * with a function `run`. */
static void check_truths(struct dataset_index *index)
{
	for (int i = 0; i < index->dataset.truth_count; i++) {
		const struct dataset_file *file = &index->dataset.truths[i];
		struct buf bytes = {0};

		if (dataset_index_find(index, file->op_type, file->name) == NULL)
			findings_add(index->findings, SEVERITY_ERROR, TOPIC_LAYOUT, file->path, 0,
				     "there is no definition definitions/%s/%s.json", file->op_type, file->name);
		if (dataset_index_read(index, TOPIC_LAYOUT, file->path, TRUTH_BYTES, &bytes)) {
			const char *wrong = truth_source_error(file->path, bytes.data, bytes.length, index->arena);

			if (wrong != NULL)
				findings_add_message(index->findings, SEVERITY_ERROR, TOPIC_LAYOUT, file->path, wrong);
		}
		buf_free(&bytes);
	}
}

/* Reports files at places where no program looks for them. A file at the wrong depth is an error, because its author
 * probably expects reftest to verify it. */
static void check_stray(const struct dataset_index *index, const char *kind, const char *suffix)
{
	struct string_list files =
	    tree_files(index->dataset.fd, kind, strcmp(suffix, ".py") == 0 ? suffix : NULL, index->findings);

	for (int i = 0; i < files.count; i++) {
		const char *parts[4];
		int count = tree_split(files.items[i], 4, parts, index->arena);
		bool named = tree_stem(parts[count - 1], suffix, index->arena) != NULL;

		if (count != 3 || !named)
			findings_add(index->findings, named ? SEVERITY_ERROR : SEVERITY_NOTE, TOPIC_LAYOUT, files.items[i],
				     0, "a file at this path is never read; expected %s/{op_type}/{name}%s",
				         kind, suffix);
	}
}

int check_dataset(const char *root, struct findings *findings, struct check_counts *counts, struct err *err)
{
	struct dataset_index index = {.arena = findings->arena, .findings = findings, .counts = counts};

	if (dataset_scan(root, findings->arena, &index.dataset, err) != 0)
		return -1;
	index.linked = linked_dataset_is_root(root);
	for (int i = 0; i < index.dataset.problem_count; i++) {
		const char *problem = index.dataset.problems[i];

		findings_add_message(findings, SEVERITY_ERROR, TOPIC_LAYOUT,
				     arena_copy(findings->arena, problem, strcspn(problem, ":")), problem);
	}
	index.count = index.dataset.definition_count;
	index.items = arena_array(findings->arena, (size_t)index.count, sizeof *index.items);
	for (int i = 0; i < index.count; i++)
		check_definition(&index, i);
	counts->definitions += index.count;
	check_names(&index);
	check_workload_owners(&index);
	check_stray(&index, "definitions", ".json");
	check_stray(&index, "workloads", ".jsonl");
	check_truths(&index);
	check_stray(&index, "truths", ".py");
	check_approvals(&index);
	check_stray(&index, "approved", ".json");
	check_solutions(&index);
	check_traces(&index);
	dataset_close(&index.dataset);
	return 0;
}

/* --- a file alone -------------------------------------------------------------------------------------------- */

/* Returns whether the text is an object with the field "sources", which only solutions have. */
static bool is_solution(const struct buf *bytes)
{
	const struct json_text text = {"", bytes->data, bytes->length, 1};
	cJSON *json = json_parse(&text, NULL);
	bool found = json_member(json, "sources") != NULL;

	cJSON_Delete(json);
	return found;
}

static void check_json_lines(const char *path, const struct buf *bytes, struct findings *findings)
{
	int number = 0;

	for (size_t from = 0; from < bytes->length;) {
		const char *line = bytes->data + from, *end = memchr(line, '\n', bytes->length - from);
		size_t length = end != NULL ? (size_t)(end - line) : bytes->length - from;
		const struct json_text text = {path, line, length, ++number};
		struct err err;

		if (strspn(line, " \t\r") < length && json_check(&text, &err) != 0)
			findings_add_message(findings, SEVERITY_ERROR, TOPIC_WORKLOAD, path, err.text);
		from += length + 1;
	}
	findings_add(findings, SEVERITY_NOTE, TOPIC_WORKLOAD, path, 0,
		     "only the syntax was checked, because the file is not in a dataset with the definition of these "
		     "workloads");
}

void check_file(const char *path, struct findings *findings, struct check_counts *counts)
{
	bool lines = tree_stem(path, ".jsonl", findings->arena) != NULL;
	struct buf bytes = {0};
	struct err err;
	enum file_answer answer =
	    file_read(AT_FDCWD, path, lines ? WORKLOAD_BYTES : SOLUTION_BYTES, &bytes, NULL, &err);

	if (answer == FILE_ABSENT) {
		findings_add(findings, SEVERITY_ERROR, TOPIC_LAYOUT, path, 0, "there is no such file");
	} else if (answer != FILE_OK) {
		findings_add_message(findings, SEVERITY_ERROR, TOPIC_LAYOUT, path, err.text);
	} else if (lines) {
		counts->workload_files++;
		check_json_lines(path, &bytes, findings);
	} else if (is_solution(&bytes)) {
		const struct solution_place anywhere = {NULL, NULL, NULL};

		counts->solutions++;
		check_solution_file(findings, path, &anywhere, &bytes);
	} else {
		counts->definitions++;
		check_definition_file(findings, path, NULL, NULL, &bytes);
	}
	buf_free(&bytes);
}
