#include "check/workloads.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/safetensors.h"

/* The tensor file that was opened last. The file stays open, because lines of one workload file often name the same
 * tensor file. */
struct open_blob {
	const char *path; /* NULL: none */
	enum safetensors_answer answer;
	struct safetensors file;
	bool reported; /* a finding already says that the file cannot be used */
	struct err err;
	/* Two groups of tensor files: files that do not exist, and files that Git LFS has not fetched. `missing`: the
	 * number of files in each group; `line`: the first line that names a file of the group */
	int missing[2], line[2];
	const char *first[2];
};

static void close_blob(struct open_blob *blob)
{
	if (blob->path != NULL && blob->answer == SAFETENSORS_OK)
		safetensors_close(&blob->file);
	blob->path = NULL;
}

static void open_blob(const struct dataset_index *index, const char *path, struct open_blob *blob)
{
	if (blob->path != NULL && strcmp(blob->path, path) == 0)
		return;
	close_blob(blob);
	blob->reported = false;
	blob->path = path;
	blob->answer = safetensors_open(index->dataset.fd, path, index->arena, &blob->file, &blob->err);
}

/* Reports that the file in `blob` cannot be used, unless a finding already reports it. Missing files are only counted,
 * because often all files are missing at once. */
static void refuse_blob(const struct dataset_index *index, const char *path, int line, const char *input,
			struct open_blob *blob)
{
	const char *message = arena_printf(index->arena, "input '%s': %s", input, blob->err.text);
	int fetched = blob->answer == SAFETENSORS_POINTER ? 0 : 1;

	if (blob->reported)
		return;
	blob->reported = true;
	if (blob->answer == SAFETENSORS_ERROR) {
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_BLOB, path, line, "%s", message);
	} else if (blob->missing[fetched]++ == 0) {
		blob->first[fetched] = message;
		blob->line[fetched] = line;
	}
}

/* Reports the missing files of a workload file. A file that Git LFS has not fetched is not an error of the dataset. */
static void report_missing(const struct dataset_index *index, const char *path, const struct open_blob *blob)
{
	for (int fetched = 0; fetched < 2; fetched++) {
		enum severity severity = fetched ? SEVERITY_ERROR : SEVERITY_NOTE;
		int more = blob->missing[fetched] - 1;

		if (more == 0)
			findings_add(index->findings, severity, TOPIC_BLOB, path, blob->line[fetched], "%s",
				     blob->first[fetched]);
		else if (more > 0)
			findings_add(index->findings, severity, TOPIC_BLOB, path, blob->line[fetched],
				     "%s; more missing files: %d", blob->first[fetched], more);
	}
}

/* Checks that the tensor of an input exists, and that it has the dtype of the definition and the shape that follows
 * from the axes. */
static void check_blob(const struct dataset_index *index, const struct definition *definition, const char *path,
		       const struct workload *line, int input, struct open_blob *blob)
{
	const struct tensor_spec *spec = &definition->inputs[input];
	const struct input_source *source = &line->inputs[input];
	int64_t shape[RANK_MAX];
	struct err err;

	open_blob(index, source->path, blob);
	if (blob->answer != SAFETENSORS_OK) {
		refuse_blob(index, path, line->line, spec->name, blob);
		return;
	}
	for (int d = 0; d < spec->rank; d++)
		shape[d] = line->axis[spec->axis[d]];
	if (safetensors_expect(&blob->file, source->path, source->tensor_key, spec->name, spec->dtype, spec->rank, shape,
			       &err) == NULL)
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_BLOB, path, line->line, "%s", err.text);
}

static void check_line(const struct dataset_index *index, const struct definition *definition, const char *path,
		       const struct workload *line, struct open_blob *blob)
{
	if (line->error != NULL) {
		findings_add_message(index->findings, SEVERITY_ERROR, TOPIC_WORKLOAD, path, line->error);
		return;
	}
	for (int i = 0; i < definition->input_count; i++)
		if (line->inputs[i].kind == SOURCE_SAFETENSORS)
			check_blob(index, definition, path, line, i, blob);
}

/* Adds a note about the first line on which an axis is 0. reftest accepts an empty batch; flashinfer-bench does not. */
static void note_empty_axis(const struct dataset_index *index, const struct definition *definition, const char *path,
			    const struct workload_file *lines)
{
	for (int i = 0; i < lines->count; i++)
		for (int a = 0; lines->lines[i].error == NULL && a < definition->axis_count; a++)
			if (definition->axes[a].var && lines->lines[i].axis[a] == 0) {
				findings_add(index->findings, SEVERITY_NOTE, TOPIC_WORKLOAD, path, lines->lines[i].line,
					     "the axis '%s' is 0; flashinfer-bench refuses workloads with an axis of 0",
					     definition->axes[a].name);
				return;
			}
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void check_workloads(const struct dataset_index *index, struct checked_definition *definition,
		     const struct dataset_file *file)
{
	struct open_blob blob = {.path = NULL};
	struct arena scratch = {0};
	struct buf bytes = {0};

	if (dataset_index_read(index, TOPIC_WORKLOAD, file->path, WORKLOAD_BYTES, &bytes)) {
		struct workload_file lines =
		    workloads_load(file->path, definition->definition, bytes.data, bytes.length, &scratch);

		index->counts->workloads += lines.count;
		definition->uuids = arena_array(index->arena, (size_t)lines.count, sizeof *definition->uuids);
		for (int i = 0; i < lines.count; i++) {
			check_line(index, definition->definition, file->path, &lines.lines[i], &blob);
			if (lines.lines[i].uuid != NULL)
				definition->uuids[definition->uuid_count++] =
				    arena_string(index->arena, lines.lines[i].uuid);
		}
		note_empty_axis(index, definition->definition, file->path, &lines);
		if (lines.count == 0)
			findings_add(index->findings, SEVERITY_NOTE, TOPIC_WORKLOAD, file->path, 0,
				     "the file has no workload");
	}
	report_missing(index, file->path, &blob);
	if (definition->uuid_count > 0)
		qsort(definition->uuids, (size_t)definition->uuid_count, sizeof *definition->uuids, compare_text);
	close_blob(&blob);
	buf_free(&bytes);
	arena_free(&scratch);
}
