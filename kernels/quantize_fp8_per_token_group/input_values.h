/* quantize_fp8_per_token_group inputs - finds the role of each tensor, and computes the inputs. The CPU and the GPU
 * compute the same values.
 *
 * Every group of channels has one kind, and each kind tests one property. Neighbouring groups, in the same row or in
 * the next row, have different kinds: the kind is (group + 5 row) modulo 13 in the first set of values, and (group + 5
 * row + 1) modulo 13 in the second. Therefore, if a reference includes elements of another group in the maximum of a
 * group, the scale changes. Noise is uniform on [-1, 1). The peak of a group is its element of largest magnitude. The
 * peak is the first element, the last, or any other, and has either sign. The magnitude of the peak is m * 2^p with m
 * in [1, 2) and p = -8 … 8. The factor m is random in all fraction bits that the dtype of x has (in 20 bits if x is
 * float32), so that float32 does not represent the scale exactly.
 *
 *   PLAIN      2^p noise, and a peak.
 *   TIES       a peak of 448 * 2^k (k = -4 … 4), whose scale is exactly 2^k; the other quotients are halfway between
 *              two e4m3 numbers, some of them subnormal.
 *   BESIDE     like TIES, but each quotient differs from a tie by one unit of the last fraction bit of the input's
 *              dtype (of fraction bit 20 if the input is float32).
 *   NOUGHT     zeros, whose scale is the floor / 448.
 *   BELOW      noise of at most half the floor.
 *   HUGE       noise and a peak of 1e30 (65504 in float16, its largest number); in the second set, a quarter of
 *              this noise and of this peak.
 *   ONE_SIDED  -2^p |noise| with a negative peak; in the second set, 2^p |noise| with a positive peak.
 *   EQUAL      every element has the magnitude of the peak; each quotient is 448 or -448.
 *   SINGLE     zeros and a peak.
 *   WIDE       2^(p - i) noise with i = 0 … 15, and a peak: the quotients are in every binade of e4m3, and some round
 *              to 0.
 *   LOUD       2^12 noise, and a peak of 2^12 m.
 *   QUIET      2^-12 noise, and a peak of 2^-12 m.
 *   ABOVE      a peak of 2 to 8 times the floor, and noise of up to 4 times the floor.
 *
 * The floor is `eps`. If the floor is 0, or is not known (in a probe case, from whose outputs reftest finds the floor),
 * the values are computed as for a floor of 1e-10. If the floor is 0, the quotients of a group of zeros are not
 * defined, so groups of kind NOUGHT are like those of kind BELOW. In a probe case, even groups are zeros and odd groups
 * are 2^-40 noise. */
#ifndef REFTEST_KERNELS_QUANTIZE_FP8_PER_TOKEN_GROUP_INPUT_VALUES_H
#define REFTEST_KERNELS_QUANTIZE_FP8_PER_TOKEN_GROUP_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

enum quantize_kind {
	QUANTIZE_PLAIN,
	QUANTIZE_TIES,
	QUANTIZE_BESIDE,
	QUANTIZE_NOUGHT,
	QUANTIZE_BELOW,
	QUANTIZE_HUGE,
	QUANTIZE_ONE_SIDED,
	QUANTIZE_EQUAL,
	QUANTIZE_SINGLE,
	QUANTIZE_WIDE,
	QUANTIZE_LOUD,
	QUANTIZE_QUIET,
	QUANTIZE_ABOVE,
	QUANTIZE_KINDS,
};

/* The index of each input and output by its role, or -1 if the problem has no such tensor. */
struct quantize_roles {
	int x, eps; /* eps: a Python scalar */
	int quantized, scale;
};

/* Finds the roles by rank and dtype. op.match must have accepted the problem. Host only. */
static inline struct quantize_roles quantize_roles_of(const struct op_problem *problem)
{
	struct quantize_roles roles = {-1, -1, -1, -1};

	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == OP_SCALAR)
			roles.eps = i;
		else
			roles.x = i;
	for (int i = 0; i < problem->output_count; i++)
		if (problem->outputs[i].dtype == DTYPE_FLOAT8_E4M3FN)
			roles.quantized = i;
		else
			roles.scale = i;
	return roles;
}

/* Returns the floor of a case, or NaN if the floor is unknown. Only a probe case has an unknown floor. Host only. */
static inline double quantize_eps(const struct op_case *c)
{
	int scalar = quantize_roles_of(c->problem).eps;

	if (scalar >= 0)
		return c->scalar[scalar];
	return c->constant_count > 0 ? c->constants[0].value : (double)float_from_bits(0x7fc00000u);
}

/* The number of channels of a row and of a group, and the number of groups of a row. All are above 0. */
struct quantize_extent {
	int64_t columns, group, groups;
};

/* Only host code calls this function. */
static inline struct quantize_extent quantize_extent_of(const struct op_problem *problem)
{
	struct quantize_roles roles = quantize_roles_of(problem);
	const struct op_arg *x = &problem->inputs[roles.x], *scale = &problem->outputs[roles.scale];
	int64_t columns = problem->axes[x->axis[x->rank - 1]].value;
	int64_t groups = problem->axes[scale->axis[scale->rank - 1]].value;

	return (struct quantize_extent){columns, columns / groups, groups};
}

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct quantize_fill {
	uint64_t key;
	int64_t group, groups;
	int probe, second, floored; /* floored: whether the floor is above 0 */
	int tiny;                   /* 2^tiny is at most half the floor */
	int bits; /* number of fraction bits of a peak; quotients of kind BESIDE differ from a tie in the last of these
		   * bits */
	float huge;
};

/* Only host code calls this function. */
static inline struct quantize_fill quantize_fill_of(const struct op_case *c)
{
	struct quantize_extent e = quantize_extent_of(c->problem);
	struct quantize_roles roles = quantize_roles_of(c->problem);
	enum dtype dtype = c->problem->inputs[roles.x].dtype;
	double eps = quantize_eps(c), floor = eps > 0 && eps < 1e6 ? eps : 1e-10;
	struct quantize_fill f;

	f.key = input_key(c, roles.x);
	f.group = e.group;
	f.groups = e.groups;
	f.probe = c->probe;
	f.second = c->contents == CONTENTS_SECOND;
	f.floored = eps > 0;
	f.tiny = -100;
	while (2 * (double)float_power(f.tiny + 1) <= floor)
		f.tiny++;
	f.bits = dtype == DTYPE_BFLOAT16 ? 7 : dtype == DTYPE_FLOAT16 ? 10 : 20;
	f.huge = (dtype == DTYPE_FLOAT16 ? 65504 : 0x1.94p+99f) * (f.second ? 0.25f : 1.0f);
	return f;
}

/* Returns the kind of group `number`, counted over all rows. */
HOST_DEVICE static inline int quantize_kind(const struct quantize_fill *f, int64_t number)
{
	int64_t row = number / f->groups, kind = (number % f->groups + 5 * row + f->second) % QUANTIZE_KINDS;

	return kind == QUANTIZE_NOUGHT && !f->floored ? QUANTIZE_BELOW : (int)kind;
}

/* Returns the number halfway between two neighbouring e4m3 numbers. The random bits select the two numbers. */
HOST_DEVICE static inline float quantize_tie(uint32_t random)
{
	uint32_t code = (random >> 8) % 126; /* the code of 448, the largest number, is 126 */
	float tie = (narrow_value(code, 3, 7) + narrow_value(code + 1, 3, 7)) * 0.5f;

	return random & 1 ? tie : -tie;
}

/* The properties that the elements of a group share. */
struct quantize_group {
	int kind, exponent;
	int64_t place; /* the position of the peak */
	float peak;
};

HOST_DEVICE static inline struct quantize_group quantize_group_of(const struct quantize_fill *f, int64_t number)
{
	uint32_t random = philox_bits(~f->key, number);
	struct quantize_group g;
	float m = (float)((1u << f->bits) + (random >> (32 - f->bits))) * float_power(-f->bits);

	g.kind = quantize_kind(f, number);
	g.exponent = (int)((random >> 8) % 17) - 8;
	g.place = random % 4 == 0 ? 0 : random % 4 == 1 ? f->group - 1 : (int64_t)((random >> 4) % (uint64_t)f->group);
	if (g.kind == QUANTIZE_TIES || g.kind == QUANTIZE_BESIDE) {
		g.exponent /= 2;
		m = 448;
	} else if (g.kind == QUANTIZE_LOUD || g.kind == QUANTIZE_QUIET) {
		g.exponent = g.kind == QUANTIZE_LOUD ? 12 : -12;
	} else if (g.kind == QUANTIZE_BELOW) {
		g.exponent = f->tiny - 1;
	} else if (g.kind == QUANTIZE_ABOVE) {
		g.exponent = f->tiny + 3;
	}
	g.peak = g.kind == QUANTIZE_HUGE ? f->huge : m * float_power(g.exponent);
	if (g.kind == QUANTIZE_ONE_SIDED ? !f->second : random >> 2 & 1)
		g.peak = -g.peak;
	return g;
}

/* Computes an element from its random bits. The element is not the peak of its group. */
HOST_DEVICE static inline float quantize_other(const struct quantize_fill *f, const struct quantize_group *g,
                                               uint32_t random)
{
	float noise = uniform_signed(random, 20), size = noise < 0 ? -noise : noise, tie;

	switch (g->kind) {
	case QUANTIZE_TIES:
		return quantize_tie(random) * float_power(g->exponent);
	case QUANTIZE_BESIDE:
		tie = quantize_tie(random);
		tie = float_from_bits(float_bits(tie) + (random & 2 ? 1u << (23 - f->bits) : -(1u << (23 - f->bits))));
		return tie * float_power(g->exponent);
	case QUANTIZE_HUGE:
		return noise * f->huge;
	case QUANTIZE_ONE_SIDED:
		return (f->second ? size : -size) * float_power(g->exponent);
	case QUANTIZE_EQUAL:
		return g->peak;
	case QUANTIZE_NOUGHT:
	case QUANTIZE_SINGLE:
		return 0;
	case QUANTIZE_WIDE:
		return noise * float_power(g->exponent - (int)(random % 16));
	default:
		return noise * float_power(g->exponent);
	}
}

/* Computes element `column` of a group from its random bits. The caller converts the element to the input's dtype with
 * dtype_store_float. */
HOST_DEVICE static inline float quantize_at(const struct quantize_fill *f, int64_t number,
                                            const struct quantize_group *g, int64_t column, uint32_t random)
{
	if (f->probe)
		return number % 2 == 0 ? 0 : uniform_signed(random, 20) * float_power(-40);
	return column == g->place && g->kind != QUANTIZE_NOUGHT ? g->peak : quantize_other(f, g, random);
}

/* Computes element `index` of the input, as quantize_at does. */
HOST_DEVICE static inline float quantize_element(const struct quantize_fill *f, int64_t index, uint32_t random)
{
	int64_t number = index / f->group;
	struct quantize_group g = quantize_group_of(f, number);

	return quantize_at(f, number, &g, index % f->group, random);
}

#endif
