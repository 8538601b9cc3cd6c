#include "kernels/core/compare_truncation.h"

#include <string.h>

static const double least_nearer = 0.2, least_nearer_in_row = 0.1, most_farther = 0.01, most_others = 0.15;

/* A mask of the bits of a 16-bit float except its sign bit. These bits, as an integer, are greater for a greater
 * magnitude, and differ by 1 for neighbouring magnitudes. */
enum { MAGNITUDE = 0x7fff };

/* The number of elements that count (their truth is finite and not near 0). Of these, the numbers of elements that are
 * one step nearer to zero than the truth, that are one step farther from zero, and that differ in another way. */
struct steps {
	int64_t counted, nearer, farther, others;
};

static struct steps steps_of(const uint16_t *found, const uint16_t *truth, int64_t count, enum dtype dtype)
{
	bool wide = dtype == DTYPE_BFLOAT16;
	int least = wide ? 0x3280 : 1, infinity = wide ? 0x7f80 : 0x7c00; /* 0x3280 is 2^-26 */
	struct steps steps = {0};

	for (int64_t i = 0; i < count; i++) {
		int magnitude = truth[i] & MAGNITUDE;
		int distance = magnitude - (found[i] & MAGNITUDE);
		bool same_sign = ((found[i] ^ truth[i]) & ~MAGNITUDE & 0xffff) == 0;

		if (magnitude < least || magnitude >= infinity)
			continue;
		steps.counted++;
		steps.nearer += same_sign && distance == 1;
		steps.farther += same_sign && distance == -1;
		steps.others += !same_sign || distance < -1 || distance > 1;
	}
	return steps;
}

static bool at_least(int64_t part, double share, int64_t whole)
{
	return (double)part >= share * (double)whole;
}

bool output_is_truncated(const char *name, const struct tensor *found, const struct tensor *truth, struct err *why)
{
	const uint16_t *left = found->data, *right = truth->data;
	struct steps all = {0};
	int64_t rows = 0;

	if ((found->dtype != DTYPE_BFLOAT16 && found->dtype != DTYPE_FLOAT16) || truth->dtype != found->dtype ||
	    truth->elements != found->elements || left == NULL || right == NULL || found->rank < 1)
		return false;
	int64_t columns = found->shape[found->rank - 1];

	for (int64_t first = 0; first < truth->elements; first += columns) {
		struct steps row = steps_of(left + first, right + first, columns, found->dtype);

		all.counted += row.counted;
		all.nearer += row.nearer;
		all.farther += row.farther;
		all.others += row.others;
		rows += row.nearer > 0 && at_least(row.nearer, least_nearer_in_row, row.counted);
	}
	if (rows < TRUNCATED_ROWS || all.counted < TRUNCATED_ELEMENTS || all.counted < truth->elements / 16 ||
	    !at_least(all.nearer, least_nearer, all.counted) || !at_least(all.counted, 1 / most_farther, all.farther) ||
	    !at_least(all.counted, 1 / most_others, all.others))
		return false;
	err_set(why,
		"output '%s' is truncated to %s instead of rounded: %lld of %lld elements are one step nearer to zero than the "
		"ground truth, and %lld are one step farther from zero",
		name, dtype_name(found->dtype), (long long)all.nearer, (long long)all.counted, (long long)all.farther);
	return true;
}
