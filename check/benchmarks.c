#include "check/benchmarks.h"

#include <stdlib.h>
#include <string.h>

#include "check/tree.h"

static const char baseline[] = "baseline";

/* The parts of the path of a solution or trace file. */
struct place {
	const char *author; /* NULL if the path has no author */
	const char *op_type, *definition, *name;
};

/* Divides the path of a solution ("solutions/AUTHOR/OP_TYPE/DEFINITION/NAME.json") or of a trace file
 * ("traces/AUTHOR/OP_TYPE/DEFINITION.jsonl"). `folders` is the number of folders between the first folder and the file.
 * Returns false if the path has another form. */
static bool divide(const char *path, int folders, const char *suffix, struct place *out, struct arena *arena)
{
	const char *parts[6] = {NULL};
	int count = tree_split(path, 6, parts, arena), skip = count == folders + 2 ? 1 : 0;
	const char *stem = tree_stem(parts[count - 1], suffix, arena);

	if (stem == NULL || count < folders + 1 || count > folders + 2)
		return false;
	*out = (struct place){.author = skip > 0 ? parts[1] : NULL,
			      .op_type = parts[1 + skip],
			      .definition = folders == 3 ? parts[2 + skip] : stem,
			      .name = stem};
	return true;
}

static void stray(const struct dataset_index *index, const char *path, const char *form)
{
	findings_add(index->findings, SEVERITY_NOTE, TOPIC_LAYOUT, path, 0,
		     "a file at this path is never read; expected %s", form);
}

/* Returns the definition that the file's path names. If there is no such definition, adds an error and returns NULL. */
static struct checked_definition *definition_of(const struct dataset_index *index, enum topic topic, const char *path,
						const struct place *place)
{
	struct checked_definition *found = dataset_index_find(index, place->op_type, place->definition);

	if (found == NULL)
		findings_add(index->findings, SEVERITY_ERROR, topic, path, 0,
			     "there is no definition definitions/%s/%s.json", place->op_type, place->definition);
	return found;
}

static bool contains(const struct string_list *list, const char *name)
{
	for (int i = 0; i < list->count; i++)
		if (strcmp(list->items[i], name) == 0)
			return true;
	return false;
}

static bool is_baseline(const struct place *place)
{
	return place->author != NULL && strcmp(place->author, baseline) == 0;
}

/* --- solutions ----------------------------------------------------------------------------------------------- */

static void add_solution(struct dataset_index *index, struct checked_definition *definition, const char *path,
			 const struct place *place)
{
	if (contains(&definition->solutions, place->name))
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_SOLUTION, path, 0,
			     "another solution of %s has the same name, \"%s\"; rename one of them, because traces identify solutions by "
			     "name",
			     place->definition, place->name);
	string_list_add(&definition->solutions, place->name);
	if (is_baseline(place))
		string_list_add(&definition->baselines, place->name);
	else
		definition->others = true;
}

void check_solution_file(struct findings *findings, const char *path, const struct solution_place *place,
			 const struct buf *bytes)
{
	struct arena scratch = {0};
	struct err err;
	const struct solution *solution = solution_load(path, place, bytes->data, bytes->length, &scratch, &err);

	if (solution == NULL)
		findings_add_message(findings, SEVERITY_ERROR, TOPIC_SOLUTION, path, err.text);
	for (int i = 0; solution != NULL && i < solution->note_count; i++)
		findings_add_message(findings, SEVERITY_NOTE, TOPIC_SOLUTION, path, solution->notes[i]);
	arena_free(&scratch);
}

static void check_solution(struct dataset_index *index, const char *path)
{
	struct place place;
	struct buf bytes = {0};

	if (!divide(path, 3, ".json", &place, index->arena)) {
		stray(index, path, "solutions/{author}/{op_type}/{definition}/{solution}.json");
		return;
	}
	struct checked_definition *definition = definition_of(index, TOPIC_SOLUTION, path, &place);
	const struct solution_place wanted = {place.author, place.definition, place.name};

	if (definition != NULL)
		add_solution(index, definition, path, &place);
	index->counts->solutions++;
	if (dataset_index_read(index, TOPIC_SOLUTION, path, SOLUTION_BYTES, &bytes))
		check_solution_file(index->findings, path, &wanted, &bytes);
	buf_free(&bytes);
}

void check_solutions(struct dataset_index *index)
{
	struct string_list files = tree_files(index->dataset.fd, "solutions", NULL, index->findings);

	for (int i = 0; i < files.count; i++)
		check_solution(index, files.items[i]);
}

/* --- traces -------------------------------------------------------------------------------------------------- */

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Reports a trace whose workload or solution does not exist. Marks the trace's workload in `covered`. Increments
 * `failed` if the evaluation in the trace did not pass. */
static void check_trace(const struct dataset_index *index, const struct checked_definition *definition, const char *path,
			const struct place *place, const struct workload *trace, bool *covered, int *failed)
{
	const char **uuid = NULL;

	if (trace->error != NULL) {
		findings_add_message(index->findings, SEVERITY_ERROR, TOPIC_TRACE, path, trace->error);
		return;
	}
	if (definition->uuid_count > 0)
		uuid = bsearch(&trace->uuid, definition->uuids, (size_t)definition->uuid_count, sizeof *definition->uuids,
			       compare_text);
	if (uuid != NULL)
		covered[uuid - definition->uuids] = true;
	else
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_TRACE, path, trace->line,
			     "expected the uuid of a workload of %s, found \"%s\"", place->definition,
			     err_show(trace->uuid).text);
	if (!contains(&definition->solutions, trace->solution))
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_TRACE, path, trace->line,
			     "there is no solution \"%s\" of %s below solutions/", err_show(trace->solution).text,
			     place->definition);
	else if (is_baseline(place) && !contains(&definition->baselines, trace->solution))
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_BASELINE, path, trace->line,
			     "the solution \"%s\" is not in solutions/%s/", err_show(trace->solution).text, baseline);
	*failed += !trace->passed;
}

static void check_lines(const struct dataset_index *index, struct checked_definition *definition, const char *path,
			const struct place *place, const struct buf *bytes, struct arena *scratch)
{
	struct workload_file traces =
	    traces_load(path, definition->definition, bytes->data, bytes->length, scratch);
	bool *covered = arena_array(scratch, (size_t)definition->uuid_count, sizeof *covered);
	int missing = 0, failed = 0;

	index->counts->traces += traces.count;
	for (int i = 0; i < traces.count; i++)
		check_trace(index, definition, path, place, &traces.lines[i], covered, &failed);
	for (int i = 0; i < definition->uuid_count; i++)
		missing += !covered[i];
	if (missing > 0)
		findings_add(index->findings, SEVERITY_NOTE, is_baseline(place) ? TOPIC_BASELINE : TOPIC_TRACE, path, 0,
			     "%d of %d workloads have no trace", missing, definition->uuid_count);
	if (is_baseline(place) && failed > 0)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_BASELINE, path, 0,
			     "%d of %d traces of the baseline did not pass", failed, traces.count);
}

static void check_trace_file(struct dataset_index *index, const char *path)
{
	struct arena scratch = {0};
	struct buf bytes = {0};
	struct place place;

	if (!divide(path, 2, ".jsonl", &place, index->arena)) {
		stray(index, path, "traces/{author}/{op_type}/{definition}.jsonl");
		return;
	}
	struct checked_definition *definition = definition_of(index, TOPIC_TRACE, path, &place);

	if (definition == NULL)
		return;
	if (is_baseline(&place))
		definition->baseline_traces++;
	else
		definition->others = true;
	if (definition->definition == NULL)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_TRACE, path, 0,
			     "not checked, because %s is invalid", definition->file->path);
	else if (dataset_index_read(index, TOPIC_TRACE, path, WORKLOAD_BYTES, &bytes))
		check_lines(index, definition, path, &place, &bytes, &scratch);
	buf_free(&bytes);
	arena_free(&scratch);
}

/* If other authors have solutions or traces for a definition, the author "baseline" should also have a solution and
 * traces. Adds a note for each of the two that is missing. */
static void check_baseline(const struct dataset_index *index, const struct checked_definition *definition)
{
	const char *path = definition->file->path;

	if (!definition->others)
		return;
	if (definition->baselines.count == 0)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_BASELINE, path, 0,
			     "the definition has solutions or traces, but no solution in solutions/%s/", baseline);
	if (definition->baseline_traces == 0)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_BASELINE, path, 0,
			     "the definition has solutions or traces, but no traces in traces/%s/", baseline);
}

void check_traces(struct dataset_index *index)
{
	struct string_list files = tree_files(index->dataset.fd, "traces", NULL, index->findings);

	for (int i = 0; i < files.count; i++)
		check_trace_file(index, files.items[i]);
	for (int i = 0; i < index->count; i++)
		check_baseline(index, &index->items[i]);
}
