/* mistakes - the mistakes of mixtures of experts that the oracle can compute itself (kernels/moe/confusions.h). */
#ifndef REFTEST_KERNELS_MOE_MISTAKES_H
#define REFTEST_KERNELS_MOE_MISTAKES_H

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

#endif
