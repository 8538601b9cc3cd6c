/* softmax inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * The kinds of rows, by row % 8 (noise is uniform on [-1, 1)):
 *
 *   0  8 noise
 *   1  128 + 8 noise: exponentials overflow unless the largest is taken off first
 *   2  4 noise, and one element at 40 that takes all
 *   3  4 noise, half of it masked with -infinity
 *   4  3 everywhere: each has 1 / V, exactly
 *   5  32 noise: what is far below the largest comes out tiny, and must be right all the same
 *   6  noise / 4: nearly flat
 *   7  -200 + 8 noise: exponentials vanish unless the largest is taken off first
 *
 * The second contents have 200 and -128 in rows 1 and 7, -3 in row 4.
 *
 * Temperatures, one a row, are some of twelve from 13/256 (0.05) to 4, both sides of 1, and in the first row 13/256 or 4;
 * rows 1 and 7, far from zero, have those of 1/4 and more. One for all rows is any of six by the case, each two of one case
 * on either side of 1; below 1/4, rows 1 and 7 are an eighth as far away. So no logit over its temperature is beyond 832. */
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
	int second; /* the second contents */
	int near;   /* one low temperature for all: rows 1 and 7 must not be far */
};

/* Of either input. Host only. */
static inline struct softmax_fill softmax_fill_of(const struct op_case *c, int input)
{
	const struct op_arg *output = &c->problem->outputs[0];
	struct softmax_fill f = {input_key(c, input), c->axis[output->axis[output->rank - 1]],
	                         c->contents == CONTENTS_SECOND, 0};
	int t = softmax_temperature(c->problem);

	if (t >= 0 && c->problem->inputs[t].rank == OP_SCALAR)
		f.near = c->scalar[t] > -0.25 && c->scalar[t] < 0.25;
	return f;
}

/* The column of a row that takes all, or is never masked. */
HOST_DEVICE static inline int64_t softmax_chosen(const struct softmax_fill *f, int64_t row)
{
	return (int64_t)(philox_bits(~f->key, row) % (uint64_t)f->columns);
}

HOST_DEVICE static inline float softmax_nearness(const struct softmax_fill *f)
{
	return f->near ? 0.125f : 1.0f;
}

/* An element of row `row`, in its chosen column or in another, from its random bits; to be rounded to the input's dtype with
 * number_store. */
HOST_DEVICE static inline float softmax_at(const struct softmax_fill *f, int64_t row, int chosen, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	switch (row % 8) {
	case 0:
		return 8 * noise;
	case 1:
		return (f->second ? 200 : 128) * softmax_nearness(f) + 8 * noise;
	case 2:
		return chosen ? 40 : 4 * noise;
	case 3:
		return (random & 1) && !chosen ? float_from_bits(0xff800000u) : 4 * noise;
	case 4:
		return f->second ? -3 : 3;
	case 5:
		return 32 * noise;
	case 6:
		return noise / 4;
	default:
		return (f->second ? -128 : -200) * softmax_nearness(f) + 8 * noise;
	}
}

/* Element `index` of the logits. */
HOST_DEVICE static inline float softmax_element(const struct softmax_fill *f, int64_t index, uint32_t random)
{
	int64_t row = index / f->columns, column = index % f->columns;

	return softmax_at(f, row, (row % 8 == 2 || row % 8 == 3) && column == softmax_chosen(f, row), random);
}

/* The temperature of a row, from its random bits. Every one of them is exact in bfloat16. */
static inline float softmax_temperature_of(const struct softmax_fill *f, int64_t row, uint32_t random)
{
	static const float temperatures[] = {13.0f / 256, 0.0625f, 0.125f, 0.1875f, 0.25f, 0.375f,
	                                     0.5f,        0.75f,   1,      1.5f,    2.5f,  4};
	bool far = row % 8 == 1 || row % 8 == 7;

	if (row == 0)
		return temperatures[f->second ? 11 : 0];
	return temperatures[far ? 4 + random % 8 : random % 12];
}

#endif
