#include "check/definitions.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check/workloads.h"
#include "dataset/definition_parse.h"

static void add_missing(struct buf *out, const char *kind, const char *name, const char *description)
{
	if (*description == '\0')
		buf_printf(out, "%s%s%s%s", out->length > 0 ? ", " : "", kind, *name != '\0' ? " " : "", name);
}

/* Adds one finding that lists the definition, axes, inputs and outputs that lack a description. */
static void check_descriptions(struct findings *findings, const char *path, const struct definition *d)
{
	struct buf missing = {0};

	add_missing(&missing, "the definition", "", d->description);
	for (int i = 0; i < d->axis_count; i++)
		add_missing(&missing, "axis", d->axes[i].name, d->axis_descriptions[i]);
	for (int i = 0; i < d->input_count; i++)
		add_missing(&missing, "input", d->inputs[i].name, d->inputs[i].description);
	for (int i = 0; i < d->output_count; i++)
		add_missing(&missing, "output", d->outputs[i].name, d->outputs[i].description);
	if (missing.length > 0)
		findings_add(findings, SEVERITY_NOTE, TOPIC_DESCRIPTION, path, 0, "without a description: %s", missing.data);
	buf_free(&missing);
}

const struct definition *check_definition_file(struct findings *findings, const char *path, const char *op_type,
					       const char *name, const struct buf *bytes)
{
	struct err err;
	const struct definition *d =
	    definition_parse(path, op_type, name, bytes->data, bytes->length, findings->arena, &err);

	if (d == NULL) {
		findings_add_message(findings, SEVERITY_ERROR, TOPIC_DEFINITION, path, err.text);
		return NULL;
	}
	for (int i = 0; i < d->note_count; i++)
		findings_add_message(findings, SEVERITY_NOTE, TOPIC_DEFINITION, path, d->notes[i]);
	if (d->unverifiable != NULL)
		findings_add_message(findings, SEVERITY_NOTE, TOPIC_DEFINITION, path, d->unverifiable);
	check_descriptions(findings, path, d);
	return d;
}

/* Reports the files listed under "reads" that do not exist or that no reference may read. */
static void check_reads(const struct dataset_index *index, const char *path, const struct definition *d)
{
	for (int i = 0; i < d->read_count; i++) {
		struct stat st;

		if (fstatat(index->dataset.fd, d->reads[i], &st, 0) != 0)
			findings_add(index->findings, SEVERITY_ERROR, TOPIC_DEFINITION, path, 0,
				     "the file \"%s\" of \"reads\": %s", err_show(d->reads[i]).text, strerror(errno));
		else if (!S_ISREG(st.st_mode) || st.st_size > READ_FILE_BYTES)
			findings_add(index->findings, SEVERITY_ERROR, TOPIC_DEFINITION, path, 0,
				     "the file \"%s\", which \"reads\" lists, is not a regular file or has more than %d bytes",
				     err_show(d->reads[i]).text,
				     READ_FILE_BYTES);
	}
}

/* Returns whether this definition is a link to a file definition.json. The folder of such a file is called a problem
 * (dataset/linked_dataset.h). */
static bool is_of_problem(const struct dataset_index *index, const char *path)
{
	static const char name[] = "/definition.json";
	char target[PATH_MAX];
	ssize_t length = readlinkat(index->dataset.fd, path, target, sizeof target);

	return length >= (ssize_t)sizeof name && strncmp(target + length - (sizeof name - 1), name, sizeof name - 1) == 0;
}

/* Adds a note that the definition has no workload file. Outside of datasets, only a file definition.json can have a
 * workload file: workload.jsonl in the same folder. */
static void note_no_workloads(struct dataset_index *index, const struct dataset_file *file)
{
	if (!index->linked)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_WORKLOAD, file->path, 0,
			     "there is no workload file workloads/%s/%s.jsonl", file->op_type, file->name);
	else if (is_of_problem(index, file->path))
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_WORKLOAD, file->path, 0,
			     "there is no workload file workload.jsonl in the same folder");
}

void check_definition(struct dataset_index *index, int i)
{
	const struct dataset_file *file = &index->dataset.definitions[i], *workloads = index->dataset.workload_of[i];
	struct checked_definition *one = &index->items[i];
	struct buf bytes = {0};

	*one = (struct checked_definition){
	    .file = file, .solutions = {.arena = index->arena}, .baselines = {.arena = index->arena}};
	if (dataset_index_read(index, TOPIC_DEFINITION, file->path, DEFINITION_BYTES, &bytes))
		one->definition = check_definition_file(index->findings, file->path, file->op_type, file->name, &bytes);
	buf_free(&bytes);
	if (one->definition != NULL)
		check_reads(index, file->path, one->definition);
	if (one->definition != NULL && workloads != NULL)
		check_workloads(index, one, workloads);
	else if (one->definition == NULL && workloads != NULL)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_WORKLOAD, workloads->path, 0,
			     "not checked, because %s is invalid", file->path);
	else if (one->definition != NULL)
		note_no_workloads(index, file);
}
