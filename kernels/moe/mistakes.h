/* mistakes - the mistakes that people make in references of mixtures of experts. The table lists all mistakes. The enum
 * numbers the mistakes that the oracle simulates. */
#ifndef REFTEST_KERNELS_MOE_MISTAKES_H
#define REFTEST_KERNELS_MOE_MISTAKES_H

#include "kernels/core/op.h"

/* Mistakes up to MOE_LAST_OF_EXPERTS are in the experts, and later mistakes are in the routing. */
enum moe_mistake {
	MOE_NO_MISTAKE,
	MOE_SWAPPED,
	MOE_NO_SILU,
	MOE_GELU,
	MOE_SIGMOID,
	MOE_SILU_OF_PRODUCT,
	MOE_INTERLEAVED,        /* the even rows of the first weights belong to "up", and the odd rows to the gate */
	MOE_GATE_LIMIT,         /* the magnitude of the gate is limited to mistake_by */
	MOE_GATE_FACTOR_LAST,   /* the factor of the gate is applied after silu */
	MOE_INNER_ROUNDED,      /* the inputs of the second product are rounded to the dtype mistake_by */
	MOE_INNER_LIMIT,        /* the magnitudes of the inputs of the second product are limited to mistake_by */
	MOE_PRODUCTS_ROUNDED,   /* the first product is rounded to the dtype mistake_by */
	MOE_HIDDEN_SCALE_TURNED, /* scales of hidden states are read as if their two axes were swapped */
	MOE_HIDDEN_ROUNDED,     /* scaled hidden states are rounded to the dtype mistake_by */
	MOE_SCALES_INTERLEAVED, /* column j gets the scale of block (j % number of blocks) */
	MOE_WEIGHT_TWICE,       /* the routing weight multiplies both the input and the output */
	MOE_LAST_EXPERT,        /* the last expert of this device is left out */
	MOE_TILE,               /* an expert computes only its first mistake_by tokens */
	MOE_LAST_OF_MULTIPLE,   /* if an expert's number of tokens is a multiple of mistake_by, its last token is left
				 * out */
	MOE_OVERWRITTEN,        /* of a token's experts on this device, only the last one in the list counts */
	MOE_TWICE_ONE_PART,     /* if an expert is listed twice, only the last entry counts */
	MOE_TWICE_FIRST,        /* if an expert is listed twice, only the first entry counts */
	MOE_LAST_OF_EXPERTS,
	MOE_PICK_MORE,
	MOE_PICK_LESS,
	MOE_FIRST_PICK,         /* only the first choice counts, with the weight that it has among all selected
				 * experts */
	MOE_SMALLEST,
	MOE_NO_GROUPS,
	MOE_GROUP_MORE,
	MOE_GROUP_LARGEST,      /* groups are ranked by their largest score */
	MOE_GROUP_ALL,          /* groups are ranked by the sum of all their scores */
	MOE_GROUPS_UNBIASED,
	MOE_GROUPS_ZERO,        /* the scores of dropped groups are 0, not -infinity */
	MOE_BIAS_ON_LOGITS,
	MOE_BIASED,
	MOE_RANK_AT_LEAST_0,
	MOE_RANK_ROUNDED,       /* biased scores are rounded to the dtype mistake_by */
	MOE_SOFTMAX,            /* scores are the softmax of all logits, not sigmoids */
	MOE_SOFTMAX_OF_ALL,     /* weights are the softmax of all logits */
	MOE_SIGMOIDS,           /* weights are sigmoids, divided by their sum */
	MOE_LOGIT_LIMIT,        /* selected logits are limited to mistake_by */
	MOE_NOT_DIVIDED,
	MOE_DIVIDED_BY_ALL,     /* weights are divided by the sum of the scores of all experts */
	MOE_DIVIDED_BY_LOCAL,   /* weights are divided by the sum over the selected experts of this device */
	MOE_EVEN,
	MOE_WEIGHT_1,
	MOE_REVERSED_WEIGHTS,   /* the weights are in reverse order: the first choice has the weight of the last */
	MOE_MODULO_LOCAL,       /* expert numbers are taken modulo the number of experts on this device */
	MOE_GIVEN_DIVIDED,      /* given weights are divided by their sum */
	MOE_GIVEN_HALF,         /* the bits of given weights are read as float16 */
	MOE_GIVEN_MAGNITUDE,    /* given weights lose their sign */
};

/* the table ends with a row whose `says` is NULL */
extern const struct op_mistake moe_mistakes[];

#endif
