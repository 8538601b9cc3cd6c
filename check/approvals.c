#include "check/approvals.h"

#include <string.h>

#include "dataset/approval.h"

/* Adds a note if an approval is not for the current text of the definition. This check compares the texts and not their
 * normal forms, so even a changed comment causes a note. */
static void check_current(const struct dataset_index *index, const struct dataset_file *file,
			  const struct checked_definition *one, const struct approval *approval)
{
	if (one->definition != NULL && strcmp(one->definition->reference, approval->definition->reference) != 0)
		findings_add(index->findings, SEVERITY_NOTE, TOPIC_LAYOUT, file->path, 0,
			     "the reference has changed since its approval on %s; `reftest verify` compares it with the approved reference",
			     approval->date);
}

static void check_one(struct dataset_index *index, const struct dataset_file *file)
{
	const struct checked_definition *one = dataset_index_find(index, file->op_type, file->name);
	struct buf bytes = {0};
	struct err err = {""};

	if (one == NULL) {
		findings_add(index->findings, SEVERITY_ERROR, TOPIC_LAYOUT, file->path, 0,
			     "there is no definition definitions/%s/%s.json; if you removed the definition, remove this file, too",
			     file->op_type, file->name);
	} else if (dataset_index_read(index, TOPIC_LAYOUT, file->path, APPROVAL_BYTES, &bytes)) {
		const struct approval *approval = approval_load(file->path, file->op_type, file->name, bytes.data, bytes.length,
								index->arena, &err);

		if (approval == NULL)
			findings_add_message(index->findings, SEVERITY_ERROR, TOPIC_LAYOUT, file->path, err.text);
		else
			check_current(index, file, one, approval);
	}
	buf_free(&bytes);
}

void check_approvals(struct dataset_index *index)
{
	for (int i = 0; i < index->dataset.approval_count; i++)
		check_one(index, &index->dataset.approvals[i]);
}
