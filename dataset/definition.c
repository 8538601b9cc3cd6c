#include "dataset/definition.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"

static const int64_t BYTES_MAX = (int64_t)1 << 48;

bool definition_fits_arguments(const struct definition *definition)
{
	return definition->left_out_count > 0 || definition->has_other_names ||
	       (definition->entry_point != NULL && strcmp(definition->entry_point, "run") != 0);
}

int definition_axis(const struct definition *definition, const char *name)
{
	for (int i = 0; i < definition->axis_count; i++)
		if (strcmp(definition->axes[i].name, name) == 0)
			return i;
	return -1;
}

static int find_tensor(const struct tensor_spec *tensors, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(tensors[i].name, name) == 0)
			return i;
	return -1;
}

int definition_input(const struct definition *definition, const char *name)
{
	return find_tensor(definition->inputs, definition->input_count, name);
}

int64_t definition_bytes(const struct tensor_spec *tensor, const int64_t *axis)
{
	int64_t most = BYTES_MAX / dtype_bits(tensor->dtype) * 8, elements = 1;
	bool empty = false;

	if (tensor->rank == RANK_SCALAR)
		return 0;
	for (int i = 0; i < tensor->rank; i++) {
		int64_t size = axis[tensor->axis[i]],
			/* A dimension of size 0 counts as 1; otherwise it would hide that other dimensions are too
			 * large. */
			counted = size < 1 ? 1 : size;

		empty = empty || size == 0;
		if (counted > most / elements)
			return -1;
		elements *= counted;
	}
	return empty ? 0 : dtype_bytes(tensor->dtype, elements);
}

const char *tensor_type_text(struct arena *arena, int rank, const int64_t *shape, const char *dtype)
{
	struct buf text = {0};

	buf_text(&text, "(");
	for (int d = 0; d < rank; d++)
		buf_printf(&text, "%s%" PRId64, d > 0 ? ", " : "", shape[d]);
	buf_printf(&text, "%s) %s", rank == 1 ? "," : "", dtype);
	const char *copy = arena_copy(arena, text.data, text.length);

	buf_free(&text);
	return copy;
}
