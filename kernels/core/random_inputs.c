/* random_inputs - derives the Philox key of an input, and fills tensors in parts that fit in the L1 cache. Random
 * numbers of two inputs differ only because their keys differ. */
#include "kernels/core/random_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "kernels/core/op.h"
#include "kernels/core/simd.h"

/* PART: number of elements in a part, a multiple of the four words of philox_block. PARALLEL_FROM: smaller tensors are
 * filled by one thread. */
enum { PART = 1024, BLOCK = 4, PARALLEL_FROM = 1 << 18 };

struct named {
	const char *name;
	int64_t value;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* The key is the first eight bytes of the digest of "name NUL seed NUL axis=value NUL …". The axes are sorted by name,
 * so that their order in the definition does not change the key. */
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

void philox_shuffle(uint64_t key, int64_t count, int64_t *order)
{
	for (int64_t i = 0; i < count; i++) {
		int64_t j = philox_bits(key, i) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

WIDE void philox_run(uint64_t key, int64_t block, int64_t blocks, uint32_t *words)
{
	for (int64_t b = 0; b < blocks; b++) {
		struct philox random = philox_block(key, (uint64_t)(block + b));

		for (int i = 0; i < BLOCK; i++)
			words[b * BLOCK + i] = random.word[i];
	}
}

static void fill_part(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe,
                      int64_t first)
{
	int64_t count = out->elements - first < PART ? out->elements - first : PART, row = first / columns, done = 0;
	int64_t column = first - row * columns;
	uint32_t random[PART];
	float values[PART];

	philox_run(key, first / BLOCK, (count + BLOCK - 1) / BLOCK, random);
	while (done < count) {
		int64_t length = columns - column < count - done ? columns - column : count - done;

		make(recipe, row++, column, length, random + done, values + done);
		column = 0;
		done += length;
	}
	dtype_store_float_run(out->data, out->dtype, first, count, values);
}

void input_fill(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe)
{
#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t first = 0; first < out->elements; first += PART)
		fill_part(out, key, columns, make, recipe, first);
}
