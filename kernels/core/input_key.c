#include "kernels/core/input_key.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"

struct named {
	const char *name;
	int64_t value;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* The key is the first eight bytes of the digest of "name NUL seed NUL axis=value NUL …". The axes are sorted by name,
 * so that the key does not depend on their order in the definition. */
uint64_t input_key(const struct op_case *c, int input)
{
	int count = c->problem->axis_count;
	struct named *axes = calloc((size_t)count + 1, sizeof *axes);
	struct buf text = {0};
	uint64_t key = 0;

	if (axes == NULL)
		die_no_memory();
	for (int i = 0; i < count; i++)
		axes[i] = (struct named){c->problem->axes[i].name, c->axis[i]};
	qsort(axes, (size_t)count, sizeof *axes, by_name);
	buf_printf(&text, "%s%c%llu%c", c->problem->inputs[input].name, 0, (unsigned long long)c->seed, 0);
	for (int i = 0; i < count; i++)
		buf_printf(&text, "%s=%lld%c", axes[i].name, (long long)axes[i].value, 0);

	struct digest digest = digest_of(text.data, text.length);

	for (int i = 0; i < 8; i++)
		key = key << 8 | digest.bytes[i];
	buf_free(&text);
	free(axes);
	return key;
}
