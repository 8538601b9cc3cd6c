/* softmax inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * The kinds of rows, by row % 8 (noise is uniform on [-1, 1)):
 *
 *   0  8 noise
 *   1  128 + 8 noise: exponentials overflow unless the largest is taken off first
 *   2  4 noise, and one element at 40 that takes all
 *   3  4 noise, half of it masked with -infinity
 *   4  3 everywhere
 *   5  32 noise: what is far below the largest comes out tiny, and must be right all the same
 *   6  noise / 4: nearly flat
 *   7  -200 + 8 noise: exponentials vanish unless the largest is taken off first
 *
 * Temperatures, one a row, are quarters from 1/2 to 9/4, but never 1 in the first row. */
#ifndef REFTEST_KERNELS_SOFTMAX_INPUTS_H
#define REFTEST_KERNELS_SOFTMAX_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants. */
enum { SOFTMAX_PLAIN, SOFTMAX_TEMPERATURE };

/* The inputs: logits is the only tensor with the output's shape; the other, if any, is the temperature (-1: none). Host
 * only. */
static inline int softmax_logits(const struct op_problem *problem)
{
	return problem->input_count > 1 && problem->inputs[0].rank != problem->outputs[0].rank ? 1 : 0;
}

static inline int softmax_temperature(const struct op_problem *problem)
{
	return problem->input_count > 1 ? 1 - softmax_logits(problem) : -1;
}

/* Everything an element depends on; plain data, given to the GPU by value. */
struct softmax_fill {
	uint64_t key;
	int64_t columns;
};

/* Of either input. Host only. */
static inline struct softmax_fill softmax_fill_of(const struct op_case *c, int input)
{
	const struct op_arg *output = &c->problem->outputs[0];
	struct softmax_fill f = {input_key(c, input), c->axis[output->axis[output->rank - 1]]};

	return f;
}

/* The column of a row that takes all, or is never masked. */
HOST_DEVICE static inline int64_t softmax_chosen(const struct softmax_fill *f, int64_t row)
{
	return (int64_t)(philox_bits(~f->key, row) % (uint64_t)f->columns);
}

/* Element `index` of the logits from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float softmax_element(const struct softmax_fill *f, int64_t index, uint32_t random)
{
	int64_t row = index / f->columns, column = index % f->columns;
	float noise = uniform_signed(random, 20);

	switch (row % 8) {
	case 0:
		return 8 * noise;
	case 1:
		return 128 + 8 * noise;
	case 2:
		return column == softmax_chosen(f, row) ? 40 : 4 * noise;
	case 3:
		return (random & 1) && column != softmax_chosen(f, row) ? float_from_bits(0xff800000u) : 4 * noise;
	case 4:
		return 3;
	case 5:
		return 32 * noise;
	case 6:
		return noise / 4;
	default:
		return -200 + 8 * noise;
	}
}

/* The temperature of a row. */
HOST_DEVICE static inline float softmax_temperature_of(int64_t row, uint32_t random)
{
	return row == 0 ? 0.75f : 0.5f + (float)(random >> 29) / 4;
}

#endif
