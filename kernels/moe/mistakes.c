#include "kernels/moe/mistakes.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/core/mistakes.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/take.h"
#include "kernels/moe/roles.h"

/* Applies `change` to the tensors that op_mistake.role and op_mistake.other name. */
static bool change_both(struct op_variation *v, const struct op_mistake *mistake,
			bool (*change)(struct op_variation *v, const struct op_mistake *mistake))
{
	struct op_mistake second = *mistake;

	second.role = mistake->other;
	return change(v, mistake) && change(v, &second);
}

static bool limit_both(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_both(v, mistake, before_clamp);
}

static bool round_both(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_both(v, mistake, before_round);
}

static bool flush_both(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_both(v, mistake, before_flush);
}

static bool invert(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *scales = variation_change(v, variation_input(v, mistake->role));

	for (int64_t i = 0; scales != NULL && i < scales->elements; i++)
		dtype_store(scales->data, scales->dtype, i, 1 / dtype_load(scales->data, scales->dtype, i));
	return scales != NULL;
}

static bool invert_both(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_both(v, mistake, invert);
}

static bool to_powers_of_two(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *scales = variation_change(v, variation_input(v, mistake->role));

	for (int64_t i = 0; scales != NULL && i < scales->elements; i++)
		dtype_store(scales->data, scales->dtype, i, exp2(round(log2(dtype_load(scales->data, scales->dtype, i)))));
	return scales != NULL;
}

static bool both_to_powers_of_two(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_both(v, mistake, to_powers_of_two);
}

/* Each expert's matrix [rows, columns] is read as if it were stored as [columns, rows]. */
static bool turn(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *scales = variation_change(v, variation_input(v, mistake->role));

	if (scales == NULL || scales->rank != 3)
		return false;

	int64_t rows = scales->shape[1], columns = scales->shape[2], size = rows * columns;
	double *old = take(size, sizeof *old);

	for (int64_t expert = 0; expert < scales->shape[0]; expert++) {
		dtype_load_run(scales->data, scales->dtype, expert * size, size, old);
		for (int64_t i = 0; i < size; i++)
			dtype_store(scales->data, scales->dtype, expert * size + i, old[i % rows * columns + i / rows]);
	}
	free(old);
	return true;
}

static bool turn_both(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_both(v, mistake, turn);
}

/* Rounds the number of the first expert of this device down to a multiple of the number of experts on this device. */
static bool round_offset_down(struct op_variation *v, const struct op_mistake *mistake)
{
	int offset = variation_input(v, mistake->role), weights = variation_input(v, mistake->other);

	if (offset < 0 || weights < 0 || v->in[weights].shape[0] < 1)
		return false;
	v->c.scalar[offset] = floor(v->c.scalar[offset] / (double)v->in[weights].shape[0]) * (double)v->in[weights].shape[0];
	return true;
}

const struct op_mistake moe_mistakes[] = {
    {.says = "gate and up were swapped", .in_oracle = MOE_SWAPPED},
    {.says = "silu was left out", .in_oracle = MOE_NO_SILU},
    {.says = "gelu was used instead of silu", .in_oracle = MOE_GELU},
    {.says = "sigmoid was used instead of silu", .in_oracle = MOE_SIGMOID},
    {.says = "silu was applied to the product of gate and up", .in_oracle = MOE_SILU_OF_PRODUCT},
    {.says = "the weights of the first matrix product were read as alternating rows of up and gate, not as two halves", .in_oracle = MOE_INTERLEAVED},
    {.says = "the magnitude of the gate was limited to 10", .in_oracle = MOE_GATE_LIMIT, .by = 10},
    {.says = "the factor of the gate was applied after silu", .in_oracle = MOE_GATE_FACTOR_LAST},
    {.says = "top_k + 1 experts were chosen, not top_k", .in_oracle = MOE_PICK_MORE},
    {.says = "top_k - 1 experts were chosen, not top_k", .in_oracle = MOE_PICK_LESS},
    {.says = "only the result of each token's first chosen expert was used", .in_oracle = MOE_FIRST_PICK},
    {.says = "only the result of each token's last expert was used: it overwrote the results of the others instead of being added to them", .in_oracle = MOE_OVERWRITTEN},
    {.says = "the experts with the smallest scores were chosen", .in_oracle = MOE_SMALLEST},
    {.says = "experts were chosen from all groups, not only from the kept ones", .in_oracle = MOE_NO_GROUPS},
    {.says = "topk_group + 1 groups were kept, not topk_group", .in_oracle = MOE_GROUP_MORE},
    {.says = "groups were chosen only by their largest score", .in_oracle = MOE_GROUP_LARGEST},
    {.says = "groups were chosen by the sum of all their scores", .in_oracle = MOE_GROUP_ALL},
    {.says = "groups were chosen by scores without the bias", .in_oracle = MOE_GROUPS_UNBIASED},
    {.says = "the scores of dropped groups were 0, not -infinity", .in_oracle = MOE_GROUPS_ZERO},
    {.says = "the routing bias was added to the logits", .in_oracle = MOE_BIAS_ON_LOGITS},
    {.says = "weights were computed from the biased scores", .in_oracle = MOE_BIASED},
    {.says = "biased scores below 0 were set to 0", .in_oracle = MOE_RANK_AT_LEAST_0},
    {.says = "biased scores were rounded to bfloat16", .in_oracle = MOE_RANK_ROUNDED, .by = DTYPE_BFLOAT16},
    {.says = "scores were the softmax of the logits, not their sigmoids", .in_oracle = MOE_SOFTMAX},
    {.says = "weights were the softmax of all logits, not of the chosen ones", .in_oracle = MOE_SOFTMAX_OF_ALL},
    {.says = "weights were sigmoids divided by their sum, not a softmax", .in_oracle = MOE_SIGMOIDS},
    {.says = "the chosen logits were limited to 80", .in_oracle = MOE_LOGIT_LIMIT, .by = 80},
    {.says = "weights were not divided by their sum", .in_oracle = MOE_NOT_DIVIDED},
    {.says = "weights were divided by the sum of all scores, not of the chosen ones", .in_oracle = MOE_DIVIDED_BY_ALL},
    {.says = "weights were divided by the sum of only those weights that belong to experts of this device", .in_oracle = MOE_DIVIDED_BY_LOCAL},
    {.says = "every chosen expert was given the same weight", .in_oracle = MOE_EVEN},
    {.says = "the weights of a token's chosen experts were in reverse order", .in_oracle = MOE_REVERSED_WEIGHTS},
    {.says = "the weights of the chosen experts were left out", .in_oracle = MOE_WEIGHT_1},
    {.says = "the given weights were divided by their sum", .in_oracle = MOE_GIVEN_DIVIDED},
    {.says = "the bits of the given weights were read as float16, not as bfloat16", .in_oracle = MOE_GIVEN_HALF},
    {.says = "the sign of the given weights was lost", .in_oracle = MOE_GIVEN_MAGNITUDE},
    {.says = "an expert that a token lists twice was used only once, with its last weight", .in_oracle = MOE_TWICE_ONE_PART},
    {.says = "an expert that a token lists twice was used only once, with its first weight", .in_oracle = MOE_TWICE_FIRST},
    {.says = "the routing bias was left out", .before = before_set, .role = "bias", .by = 0},
    {.says = "the routed scaling factor was left out", .before = before_set, .role = "scaling", .by = 1},
    {.says = "the routed scaling factor was always 2.5", .before = before_set, .role = "scaling", .by = 2.5},
    {.says = "the offset of the local experts was ignored", .before = before_set, .role = "offset", .by = 0},
    {.says = "the offset of the local experts was one too large", .before = before_add, .role = "offset", .by = 1},
    {.says = "the offset of the local experts was rounded down to a multiple of the number of local experts", .before = round_offset_down, .role = "offset", .other = "weights1"},
    {.says = "expert numbers were taken modulo the number of local experts, so experts of other devices were treated as local", .in_oracle = MOE_MODULO_LOCAL},
    {.says = "the last expert of this device was left out", .in_oracle = MOE_LAST_EXPERT},
    {.says = "each expert processed only its first 64 tokens", .in_oracle = MOE_TILE, .by = 64},
    {.says = "each expert processed only its first 128 tokens", .in_oracle = MOE_TILE, .by = 128},
    {.says = "an expert whose number of tokens is a multiple of 16 did not process its last token", .in_oracle = MOE_LAST_OF_MULTIPLE, .by = 16},
    {.says = "the routing weight was applied on the wrong side: to the input instead of the output, or the reverse", .before = before_variant, .by = MOE_WEIGHT_ON_INPUT},
    {.says = "the routing weight was applied twice: to the input and to the output", .in_oracle = MOE_WEIGHT_TWICE},
    {.says = "the scales of the hidden states were left out", .before = before_set, .role = "hidden_scale", .by = 1},
    {.says = "the scales of the hidden states were read with their axes exchanged", .in_oracle = MOE_HIDDEN_SCALE_TURNED},
    {.says = "the scale of the second matrix product was left out", .before = before_set, .role = "factor_down", .by = 1},
    {.says = "the weights of the chosen experts were left out", .before = before_set, .role = "id_weights", .by = 1},
    {.says = "weights were divided by their scales, not multiplied", .before = invert_both, .role = "scale1", .other = "scale2"},
    {.says = "the scales of weights were read with their axes exchanged", .before = turn_both, .role = "scale1", .other = "scale2"},
    {.says = "column j of the weights used the scale of block j modulo the number of blocks, not the scale of its own block", .in_oracle = MOE_SCALES_INTERLEAVED},
    {.says = "the scales of weights were rounded to powers of two", .before = both_to_powers_of_two, .role = "scale1", .other = "scale2"},
    {.says = "the scales of weights were rounded to bfloat16", .before = round_both, .role = "scale1", .other = "scale2", .by = DTYPE_BFLOAT16},
    {.says = "the scales of weights were limited to 1", .before = limit_both, .role = "scale1", .other = "scale2", .by = 1},
    {.says = "the input of the second matrix product was rounded to float8_e4m3fn", .in_oracle = MOE_INNER_ROUNDED, .by = DTYPE_FLOAT8_E4M3FN},
    {.says = "magnitudes in the input of the second matrix product were limited to 448, the largest number of float8_e4m3fn", .in_oracle = MOE_INNER_LIMIT, .by = 448},
    {.says = "the result of the first matrix product was rounded to bfloat16", .in_oracle = MOE_PRODUCTS_ROUNDED, .by = DTYPE_BFLOAT16},
    {.says = "the hidden states were rounded to float16", .in_oracle = MOE_HIDDEN_ROUNDED, .by = DTYPE_FLOAT16},
    {.says = "the magnitudes of the experts' weights were limited to 240, the largest number of float8_e4m3fnuz", .before = limit_both, .role = "weights1", .other = "weights2", .by = 240},
    {.says = "subnormal weights of float8_e4m3fn were set to 0", .before = flush_both, .role = "weights1", .other = "weights2", .by = 0x1p-6},
    {.says = "the magnitudes of the weights of the first matrix product were limited to 6, the largest number of float4_e2m1", .before = before_clamp, .role = "weights1", .by = 6},
    {.says = NULL},
};
