/* random_inputs - fills tensors with random numbers, in parts that fit in the L1 cache. */
#include "kernels/core/random_inputs.h"

#include <string.h>

#include "kernels/core/simd.h"
#ifdef WIDE_X86
#include <immintrin.h>
#endif

/* PART: number of elements in a part, which is a multiple of the four words of philox_block. PARALLEL_FROM: tensors
 * with fewer elements are filled by one thread. */
enum { PART = 1024, BLOCK = 4, PARALLEL_FROM = 1 << 18 };

void philox_shuffle(uint64_t key, int64_t count, int64_t *order)
{
	for (int64_t i = 0; i < count; i++) {
		int64_t j = philox_bits(key, i) % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
}

void order_place(int64_t *order, int64_t count, int64_t number, int64_t at)
{
	int64_t from = 0;

	while (from < count && order[from] != number)
		from++;
	if (from == count)
		return;
	order[from] = order[at];
	order[at] = number;
}

void philox_shuffle_ends(uint64_t key, int64_t count, int64_t used, int64_t *order)
{
	int64_t last = (used < count ? used : count) - 1;
	bool zero_first = (philox_bits(key, count) & 1) != 0;

	philox_shuffle(key, count, order);
	if (last == 0)
		order_place(order, count, count - 1, 0);
	if (last < 1)
		return;
	order_place(order, count, zero_first ? 0 : count - 1, 0);
	order_place(order, count, zero_first ? count - 1 : 0, last);
}

#ifdef WIDE_X86

/* A vector lane of 64 bits holds one word of a Philox block in its lower half; its upper half is not used. `multiply`
 * is the instruction that multiplies the lower halves. A multiplication in C would multiply all 64 bits, which takes
 * three times as long. The function that the macro defines writes only those blocks that fill whole vectors, and
 * returns the number of these blocks. */
#define PHILOX_LANES(name, isa, bits, multiply)                                                                        \
	__attribute__((target(isa))) static int64_t name(uint64_t key, int64_t block, int64_t blocks, uint32_t *words) \
	{                                                                                                              \
		typedef uint64_t lanes __attribute__((vector_size(bits / 8)));                                         \
		enum { LANES = bits / 64, TOGETHER = bits / 128, STEP = LANES * TOGETHER };                            \
		int64_t done = 0;                                                                                      \
                                                                                                                       \
		for (; done + STEP <= blocks; done += STEP) {                                                          \
			uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);                                       \
			lanes c0[TOGETHER], c1[TOGETHER], c2[TOGETHER] = {{0}}, c3[TOGETHER] = {{0}};		       \
														       \
			for (int t = 0; t < TOGETHER; t++) {							       \
				uint64_t counters[LANES];							       \
														       \
				for (int i = 0; i < LANES; i++)							       \
					counters[i] = (uint64_t)(block + done + t * LANES + i);			       \
				memcpy(&c0[t], counters, sizeof counters);					       \
				c1[t] = c0[t] >> 32;								       \
			}											       \
			for (int round = 0; round < PHILOX_ROUNDS; round++) {                                          \
				for (int t = 0; t < TOGETHER; t++) {                                                   \
					lanes p0 = multiply(c0[t], (lanes){0} + PHILOX_M0);                            \
					lanes p1 = multiply(c2[t], (lanes){0} + PHILOX_M1);                            \
                                                                                                                       \
					c0[t] = p1 >> 32 ^ c1[t] ^ k0;                                                 \
					c2[t] = p0 >> 32 ^ c3[t] ^ k1;                                                 \
					c1[t] = p1;                                                                    \
					c3[t] = p0;                                                                    \
				}                                                                                      \
				k0 += PHILOX_W0;                                                                       \
				k1 += PHILOX_W1;                                                                       \
			}                                                                                              \
			for (int t = 0; t < TOGETHER; t++) {                                                           \
				lanes first = (c0[t] & 0xffffffffu) | c1[t] << 32;                                     \
				lanes second = (c2[t] & 0xffffffffu) | c3[t] << 32;                                    \
				uint32_t *to = words + BLOCK * (done + t * LANES);                                     \
                                                                                                                       \
				for (int i = 0; i < LANES; i++) {                                                      \
					memcpy(to + BLOCK * i, &first[i], sizeof first[i]);                            \
					memcpy(to + BLOCK * i + 2, &second[i], sizeof second[i]);                      \
				}                                                                                      \
			}                                                                                              \
		}                                                                                                      \
		return done;                                                                                           \
	}

#define MULTIPLY_512(a, b) (lanes)_mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#define MULTIPLY_256(a, b) (lanes)_mm256_mul_epu32((__m256i)(a), (__m256i)(b))

PHILOX_LANES(philox_512, "avx512f", 512, MULTIPLY_512)
PHILOX_LANES(philox_256, "avx2", 256, MULTIPLY_256)

static int64_t philox_lanes(uint64_t key, int64_t block, int64_t blocks, uint32_t *words)
{
	if (__builtin_cpu_supports("avx512f"))
		return philox_512(key, block, blocks, words);
	return __builtin_cpu_supports("avx2") ? philox_256(key, block, blocks, words) : 0;
}

#else

static int64_t philox_lanes(uint64_t key, int64_t block, int64_t blocks, uint32_t *words)
{
	(void)key;
	(void)block;
	(void)blocks;
	(void)words;
	return 0;
}

#endif

void philox_run(uint64_t key, int64_t block, int64_t blocks, uint32_t *words)
{
	for (int64_t b = philox_lanes(key, block, blocks, words); b < blocks; b++) {
		struct philox random = philox_block(key, (uint64_t)(block + b));

		memcpy(words + b * BLOCK, random.word, sizeof random.word);
	}
}

static void fill_part(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe,
                      int64_t first, int64_t end)
{
	int64_t count = end - first < PART ? end - first : PART, row = first / columns, done = 0;
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
		fill_part(out, key, columns, make, recipe, first, out->elements);
}

void input_fill_range(struct tensor *out, uint64_t key, int64_t columns, input_run *make, const void *recipe,
                      int64_t first, int64_t end)
{
	for (; first < end; first += PART)
		fill_part(out, key, columns, make, recipe, first, end);
}
