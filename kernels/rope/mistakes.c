#include "kernels/rope/mistakes.h"

#include <math.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/mistakes.h"
#include "kernels/rope/input_values.h"

/* Forms interleaved pairs instead of halves, or halves instead of interleaved pairs. Changes the scalar that selects
 * the pairs, or the variant if there is no such scalar. */
static bool other_pairs(struct op_variation *v, const struct op_mistake *mistake)
{
	struct rope_roles roles = rope_roles_of(v->c.problem);
	int scalar = roles.interleave >= 0 ? roles.interleave : roles.is_neox;

	(void)mistake;
	if (scalar >= 0)
		v->c.scalar[scalar] = v->c.scalar[scalar] == 0;
	else
		v->c.variant ^= ROPE_INTERLEAVED;
	return true;
}

static bool always_interleaved(struct op_variation *v, const struct op_mistake *mistake)
{
	return rope_interleaved(&v->c) == (mistake->by != 0) || other_pairs(v, mistake);
}

static bool whole_head(struct op_variation *v, const struct op_mistake *mistake)
{
	int at = variation_input(v, mistake->role);

	if (at < 0)
		return false;
	v->c.scalar[at] = (double)rope_head_size(v->c.problem, v->c.axis);
	v->c.absent &= ~(UINT64_C(1) << at);
	return true;
}

/* Increases every position by 1; the position after the last row of the cache becomes 0. Returns false if there is no
 * cache. */
static bool next_position(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *positions = variation_change(v, variation_input(v, mistake->role));
	int64_t rows = rope_extent_of(&v->c).cache_rows;

	for (int64_t i = 0; positions != NULL && rows > 0 && i < positions->elements; i++)
		dtype_store(positions->data, positions->dtype, i,
			    fmod(dtype_load(positions->data, positions->dtype, i) + 1, (double)rows));
	return positions != NULL && rows > 0;
}

/* Converts positions to 16-bit integers. If there is a cache, takes the result modulo the number of rows of the
 * cache. */
static bool short_positions(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *positions = variation_change(v, variation_input(v, mistake->role));
	int64_t rows = rope_extent_of(&v->c).cache_rows;

	for (int64_t i = 0; positions != NULL && i < positions->elements; i++) {
		int64_t value = (int16_t)(uint16_t)((int64_t)dtype_load(positions->data, positions->dtype, i) & 0xffff);

		value = rows > 0 ? (value % rows + rows) % rows : value;
		dtype_store(positions->data, positions->dtype, i, (double)value);
	}
	return positions != NULL;
}

static bool half_head(struct op_variation *v, const struct op_mistake *mistake)
{
	struct op_mistake half = *mistake;

	half.by = (double)(rope_head_size(v->c.problem, v->c.axis) / 2);
	return before_set(v, &half);
}

const struct op_mistake rope_mistakes[] = {
    {.says = "pairs were formed the wrong way: halves instead of interleaved, or interleaved instead of halves", .before = other_pairs},
    {.says = "pairs were always interleaved", .before = always_interleaved, .by = 1},
    {.says = "pairs were always halves", .before = always_interleaved, .by = 0},
    {.says = "pairs were rotated by the negative angle", .in_oracle = BACKWARDS},
    {.says = "sine and cosine were exchanged", .in_oracle = SINE_FOR_COSINE},
    {.says = "the exponent of theta was doubled", .in_oracle = HALF_EXPONENT},
    {.says = "the exponent of theta was halved", .in_oracle = DOUBLE_EXPONENT},
    {.says = "frequencies were multiplied by the scale, not divided", .in_oracle = MULTIPLIED},
    {.says = "every frequency was divided by the scale", .in_oracle = ALL_SCALED},
    {.says = "the frequencies were not divided by the scale", .in_oracle = NONE_SCALED},
    {.says = "where a scaled and an unscaled frequency are mixed, their weights were swapped", .in_oracle = MIXED_BACKWARDS},
    {.says = "frequencies were theta^(2i/d), not theta^(-2i/d)", .in_oracle = INVERSE},
    {.says = "the frequencies of short wavelengths were scaled, and those of long wavelengths were not", .in_oracle = EXCHANGED},
    {.says = "no frequency was a mix of a scaled and an unscaled frequency", .in_oracle = NO_MIXING},
    {.says = "wavelengths lacked the factor 2 pi", .in_oracle = NO_TWO_PI},
    {.says = "angles were rounded to bfloat16", .in_oracle = ROUNDED_ANGLES},
    {.says = "pairs were read the wrong way (halves instead of interleaved, or the reverse), but written the right way", .in_oracle = READ_OTHERWISE},
    {.says = "pairs were written the wrong way (halves instead of interleaved, or the reverse), but read the right way", .in_oracle = WRITTEN_OTHERWISE},
    {.says = "the second element of a pair was computed from the rotated first element, not from the original one", .in_oracle = SECOND_FROM_ROTATED},
    {.says = "the second element of a pair was not rotated", .in_oracle = SECOND_KEPT},
    {.says = "the last elements of a head were rotated, not the first", .in_oracle = LAST_ROTATED},
    {.says = "the elements that are not rotated were placed first", .in_oracle = REST_FIRST},
    {.says = "the elements that are not rotated were set to 0", .in_oracle = REST_ZERO},
    {.says = "theta was always 10000", .before = before_set, .role = "theta", .by = 10000},
    {.says = "the next row of the cache was read", .before = next_position, .role = "positions"},
    {.says = "positions were 16-bit integers", .before = short_positions, .role = "positions"},
    {.says = "positions were limited to 4095", .before = before_most, .role = "positions", .by = 4095},
    {.says = "positions were limited to 8191", .before = before_most, .role = "positions", .by = 8191},
    {.says = "positions were limited to 32767", .before = before_most, .role = "positions", .by = 32767},
    {.says = "half of the head was rotated, whatever rotary_dim is", .before = half_head, .role = "rotary_dim"},
    {.says = "every position was 0", .before = before_set, .role = "positions", .by = 0},
    {.says = "positions were the tokens' indices in the batch", .before = before_iota, .role = "positions"},
    {.says = "positions were one too large", .before = before_add, .role = "positions", .by = 1},
    {.says = "positions were one too small", .before = before_add, .role = "positions", .by = -1},
    {.says = "rotary_dim was ignored: the whole head is rotated", .before = whole_head, .role = "rotary_dim"},
    {.says = "k was not rotated", .after = after_input, .role = "k_out", .other = "k"},
    {.says = "q was not rotated", .after = after_input, .role = "q_out", .other = "q"},
    {.says = NULL},
};
