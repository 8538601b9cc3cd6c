#include "check/dataset_index.h"

#include <string.h>

#include "base/file.h"

struct checked_definition *dataset_index_find(const struct dataset_index *index, const char *op_type, const char *name)
{
	int low = 0, high = index->count;
	const char *path = arena_printf(index->arena, "definitions/%s/%s.json", op_type, name);

	while (low < high) {
		int middle = low + (high - low) / 2, order = strcmp(path, index->items[middle].file->path);

		if (order == 0)
			return &index->items[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool dataset_index_read(const struct dataset_index *index, enum topic topic, const char *path, size_t most, struct buf *out)
{
	struct err err;

	switch (file_read(index->dataset.fd, path, most, out, NULL, &err)) {
	case FILE_OK:
		return true;
	case FILE_ABSENT:
		findings_add(index->findings, SEVERITY_ERROR, topic, path, 0, "the file disappeared during the check");
		return false;
	default:
		findings_add_message(index->findings, SEVERITY_ERROR, topic, path, err.text);
		return false;
	}
}
