#include "kernels/core/compare_truncation.h"

#include <string.h>

static const double least_nearer = 0.3, most_farther = 0.01, most_others = 0.15;

/* The bits of a 16-bit float without its sign. A larger magnitude has larger bits, and neighbouring magnitudes have
 * neighbouring bits. */
enum { MAGNITUDE = 0x7fff };

bool output_is_truncated(const char *name, const struct tensor *found, const struct tensor *truth, struct err *why)
{
	const uint16_t *left = found->data, *right = truth->data;
	bool wide = found->dtype == DTYPE_BFLOAT16;
	int least = wide ? 0x3280 : 1, infinity = wide ? 0x7f80 : 0x7c00; /* 0x3280 is 2^-26 */
	int64_t counted = 0, nearer = 0, farther = 0, others = 0;

	if ((found->dtype != DTYPE_BFLOAT16 && found->dtype != DTYPE_FLOAT16) || truth->dtype != found->dtype ||
	    truth->elements != found->elements || left == NULL || right == NULL || found->rank < 1 ||
	    found->elements < TRUNCATED_ROWS * found->shape[found->rank - 1])
		return false;
	for (int64_t i = 0; i < truth->elements; i++) {
		int magnitude = right[i] & MAGNITUDE;
		int distance = magnitude - (left[i] & MAGNITUDE);
		bool same_sign = ((left[i] ^ right[i]) & ~MAGNITUDE & 0xffff) == 0;

		if (magnitude < least || magnitude >= infinity)
			continue;
		counted++;
		nearer += same_sign && distance == 1;
		farther += same_sign && distance == -1;
		others += !same_sign || distance < -1 || distance > 1;
	}
	if (counted < TRUNCATED_ELEMENTS || counted < truth->elements / 16 ||
	    (double)nearer < least_nearer * (double)counted || (double)farther > most_farther * (double)counted ||
	    (double)others > most_others * (double)counted)
		return false;
	err_set(why,
		"output '%s' is truncated to %s instead of rounded: %lld of %lld elements are one step nearer to zero than the "
		"ground truth, and %lld are one step farther from zero",
		name, dtype_name(found->dtype), (long long)nearer, (long long)counted, (long long)farther);
	return true;
}
