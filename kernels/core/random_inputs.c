/* random_inputs - fills tensors with random numbers, in parts that fit in the L1 cache. */
#include "kernels/core/random_inputs.h"

#include "kernels/core/simd.h"

/* PART: number of elements in a part, a multiple of the four words of philox_block. PARALLEL_FROM: smaller tensors are
 * filled by one thread. */
enum { PART = 1024, BLOCK = 4, PARALLEL_FROM = 1 << 18 };

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
