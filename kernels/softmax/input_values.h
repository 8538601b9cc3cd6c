/* softmax inputs - finds the role of each tensor, and computes the inputs. The CPU and the GPU compute the same values.
 *
 * The kind of a row depends on row % 8. Noise is uniform on [-1, 1):
 *
 *   0  8 * noise.
 *   1  128 + 8 * noise: exponentials overflow unless the maximum is subtracted first.
 *   2  4 * noise, and one element of 40, which dominates. This element is in the last column, in the first column, or
 *      anywhere. Some rows instead have noise / 8, and one element of 17.625, all multiplied by the temperature if all
 *      rows share one: rows with row % 32 = 26 and, if the number of rows is fixed, also those with row % 32 = 10. Each
 *      of the other exponentials, relative to the largest, rounds to 0 in float16, but 128 000 of them are 0.3 % of the
 *      sum.
 *   3  4 * noise, with half of the elements masked with -infinity.
 *   4  3 everywhere: each result is exactly 1 / V.
 *   5  32 * noise: elements far below the maximum give tiny results, which must also be accurate.
 *   6  noise / 4: nearly flat.
 *   7  -200 + 8 * noise: all exponentials are 0 unless the maximum is subtracted first.
 *
 * The second set of values has 200 instead of 128 in rows of kind 1, 128 instead of 40 in rows of kind 2, and -3
 * instead of 3 in rows of kind 4; all its rows of kind 2 have 4 * noise. In a row of kind 2, the exponential of 128
 * overflows if a reference does not subtract the maximum, or if its maximum does not include this element. In the
 * second set, the mask in rows of kind 3 is finite: it is -65504 in float16, else -2^127. In the second set, rows of
 * kind 7 have one element of -32768; the other elements are -32768 - 512 j, with j from 1 to 8. All elements of these
 * rows are below any number that people use as a mask or as an initial maximum. The result of the element of -32768 is
 * exactly 1, and all other results are 0, in any order in which a reference may divide, scale and subtract.
 *
 * If there is one temperature per row, each temperature is one of twelve numbers between 13/256 (0.05) and 4, some
 * below 1 and some above. The temperature of row 0 is 13/256 in the first set of values and 4 in the second. In rows of
 * kinds 1 and 7, whose logits are far from zero, the temperature is 1/4 or more. In the rows of the first set whose
 * largest element is 17.625, it is 1. In rows of kind 6, whose logits are near zero, it is one of four numbers between
 * 1/512 and 1/16. If the dtype of temperatures is float32, those of odd rows are multiplied by 1 + 2^-9, so that
 * bfloat16 cannot represent them. A single temperature is one of six numbers, depending on the case. This number is
 * below 1 in one set of values, and above 1 (with many rows, exactly 1) in the other. If a single temperature is below
 * 1/4, the offsets 128 and -200 of rows of kinds 1, 2 and 7 are divided by 8. A logit divided by its temperature is
 * thus at most 832 in magnitude. In the second set, larger quotients occur in rows of kinds 2 and 7, in which only one
 * result is not 0, and in the masked elements of rows of kind 3. */
#ifndef REFTEST_KERNELS_SOFTMAX_INPUT_VALUES_H
#define REFTEST_KERNELS_SOFTMAX_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The variants that op.match returns. */
enum { SOFTMAX_PLAIN, SOFTMAX_TEMPERATURE };

/* Returns the index of the logits, which have the output's shape. The other input, if there is one, is the temperature.
 * Host only. */
static inline int softmax_logits(const struct op_problem *problem)
{
	return problem->input_count > 1 && problem->inputs[0].rank != problem->outputs[0].rank ? 1 : 0;
}

static inline int softmax_temperature(const struct op_problem *problem)
{
	return problem->input_count > 1 ? 1 - softmax_logits(problem) : -1;
}

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct softmax_fill {
	uint64_t key;
	int64_t columns;
	int second; /* true in the second set of values */
	int near;   /* true if all rows share one temperature below 1/4; offsets of logits are then divided by 8 */
	int narrow; /* true if the logits are float16 */
	float temperature; /* the temperature that all rows share; 1 if each row has its own, or if it is not in
			    * [1/64, 64] */
	int fixed; /* true if the first axis of the case is constant */
};

/* Returns the parameters of the logits or of the temperature. Host only. */
static inline struct softmax_fill softmax_fill_of(const struct op_case *c, int input)
{
	const struct op_arg *output = &c->problem->outputs[0];
	struct softmax_fill f = {input_key(c, input), c->axis[output->axis[output->rank - 1]],
	                         c->contents == CONTENTS_SECOND, 0,
	                         c->problem->inputs[softmax_logits(c->problem)].dtype == DTYPE_FLOAT16, 1,
	                         !c->problem->axes[output->axis[0]].var};
	int t = softmax_temperature(c->problem);

	if (t >= 0 && c->problem->inputs[t].rank == OP_SCALAR) {
		f.near = c->scalar[t] > -0.25 && c->scalar[t] < 0.25;
		f.temperature = c->scalar[t] >= 1.0 / 64 && c->scalar[t] <= 64 ? (float)c->scalar[t] : 1;
	}
	return f;
}

/* Returns the column whose element dominates the row (kinds 2 and 7) or is never masked (kind 3). Of the rows of kind
 * 2, a quarter have the dominating element in the last column, and a quarter in the first column, because a wrong loop
 * over whole blocks omits columns at an end. */
HOST_DEVICE static inline int64_t softmax_chosen(const struct softmax_fill *f, int64_t row)
{
	if (row % 16 == 2)
		return row % 32 == 2 ? f->columns - 1 : 0;
	return (int64_t)(philox_bits(~f->key, row) % (uint64_t)f->columns);
}

HOST_DEVICE static inline float softmax_nearness(const struct softmax_fill *f)
{
	return f->near ? 0.125f : 1.0f;
}

HOST_DEVICE static inline float softmax_mask(const struct softmax_fill *f)
{
	return !f->second ? float_from_bits(0xff800000u) : f->narrow ? -65504.0f : -float_power(127);
}

/* Returns 1 if float16 loses the small exponentials of the row. If the number of rows is variable, the first 16 rows
 * are not lossy, because torch's own softmax loses digits in such a row, and in a small case, a check of --edge would
 * report this. */
HOST_DEVICE static inline int softmax_is_lossy(const struct softmax_fill *f, int64_t row)
{
	return !f->second && (row % 32 == 26 || (f->fixed && row % 32 == 10));
}

/* Computes an element of row `row` from its random bits. `chosen` is true if the element is in the column that
 * softmax_chosen returns. The caller converts the element to the input's dtype with dtype_store_float. */
HOST_DEVICE static inline float softmax_at(const struct softmax_fill *f, int64_t row, int chosen, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	switch (row % 8) {
	case 0:
		return 8 * noise;
	case 1:
		return (f->second ? 200 : 128) * softmax_nearness(f) + 8 * noise;
	case 2:
		if (softmax_is_lossy(f, row))
			return (chosen ? 17.625f : noise / 8) * f->temperature;
		return !chosen ? 4 * noise : f->second ? 128 * softmax_nearness(f) : 40;
	case 3:
		return (random & 1) && !chosen ? softmax_mask(f) : 4 * noise;
	case 4:
		return f->second ? -3 : 3;
	case 5:
		return 32 * noise;
	case 6:
		return noise / 4;
	default:
		if (!f->second)
			return -200 * softmax_nearness(f) + 8 * noise;
		return chosen ? -32768 : -33280 - 512 * (float)(random % 8);
	}
}

/* Computes element `index` of the logits, as softmax_at does. */
HOST_DEVICE static inline float softmax_element(const struct softmax_fill *f, int64_t index, uint32_t random)
{
	int64_t row = index / f->columns, column = index % f->columns;

	int64_t kind = row % 8;
	int has_chosen = kind == 2 || kind == 3 || kind == 7;

	return softmax_at(f, row, has_chosen && column == softmax_chosen(f, row), random);
}

/* Returns the temperature of a row, from its random bits. If `exact` is true, the dtype bfloat16 represents every
 * temperature exactly. Host only. */
static inline float softmax_temperature_of(const struct softmax_fill *f, int exact, int64_t row, uint32_t random)
{
	static const float tiny[] = {0x1p-9f, 0x1p-7f, 0x1p-5f, 0x1p-4f};
	const float factor = exact || row % 2 == 0 ? 1 : 1 + 0x1p-9f;
	static const float temperatures[] = {13.0f / 256, 0.0625f, 0.125f, 0.1875f, 0.25f, 0.375f,
	                                     0.5f,        0.75f,   1,      1.5f,    2.5f,  4};
	bool far = row % 8 == 1 || row % 8 == 7;

	if (row == 0)
		return temperatures[f->second ? 11 : 0];
	if (softmax_is_lossy(f, row))
		return 1;
	if (row % 8 == 6)
		return tiny[random % 4] * factor;
	return temperatures[far ? 4 + random % 8 : random % 12] * factor;
}

#endif
