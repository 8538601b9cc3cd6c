/* confusions - the mistakes that people make in references of mixtures of experts. */
#ifndef REFTEST_KERNELS_MOE_CONFUSIONS_H
#define REFTEST_KERNELS_MOE_CONFUSIONS_H

#include "kernels/core/op.h"

/* The mistakes that the oracle computes itself: in the experts, and in the routing. */
enum moe_mistake {
	MOE_NO_MISTAKE,
	MOE_SWAPPED,
	MOE_NO_SILU,
	MOE_GELU,
	MOE_SIGMOID,
	MOE_SILU_OF_PRODUCT,
	MOE_PICK_MORE,
	MOE_PICK_LESS,
	MOE_NO_GROUPS,
	MOE_GROUP_MORE,
	MOE_BIASED,
	MOE_NOT_DIVIDED,
	MOE_EVEN,
};
extern const struct op_confusion moe_confusions[];

#endif
