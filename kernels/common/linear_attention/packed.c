#include "kernels/common/linear_attention/packed.h"

#include <math.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/random_inputs.h"

void recurrence_size_keys(int64_t k_dim, int *eighths, int *exponent)
{
	double wanted = sqrt(3 / (double)k_dim);

	*exponent = 0;
	while (*exponent > -8 && wanted * ldexp(1, -*exponent) < 0.5)
		--*exponent;
	while (wanted * ldexp(1, -*exponent) >= 1)
		++*exponent;
	*eighths = (int)lround(wanted * ldexp(8, -*exponent));
}

/* Each list contains the number of tokens minus 1 of each of the first LISTED sequences. All later sequences have one
 * token. */
enum { LISTED = 4 };
static const int64_t few[CONTENTS_COUNT][LISTED] = {{31, 0, 15, 16}, {16, 15, 0, 31}},
		     many[CONTENTS_COUNT][LISTED] = {{1023, 0, 63, 15}, {127, 0, 15, 1024}};

static int64_t listed(const int64_t *list, int64_t n)
{
	return n < LISTED ? list[n] : 0;
}

/* Returns the sum of list[n] over all sequences n except the last. */
static int64_t sum_listed(const int64_t *list, int64_t sequences)
{
	int64_t sum = 0;

	for (int64_t n = 0; n < sequences - 1 && n < LISTED; n++)
		sum += list[n];
	return sum;
}

void recurrence_fill_offsets(const struct op_case *c, int64_t sequences, int64_t total, struct tensor *out)
{
	int64_t spare = total - sequences, at = 0;
	const int64_t *list = sum_listed(many[c->contents], sequences) <= spare ? many[c->contents] : few[c->contents];
	int64_t weights = sum_listed(list, sequences);

	if (out->elements > 0)
		dtype_store(out->data, out->dtype, 0, 0);
	for (int64_t n = 0; n < sequences; n++) {
		int64_t more = listed(list, n);

		at += 1 + (weights <= spare ? more : more * spare / weights);
		dtype_store(out->data, out->dtype, n + 1, (double)(n == sequences - 1 || spare < 0 ? total : at));
	}
}

int64_t recurrence_block(int64_t elements)
{
	return 257 * elements <= 17 << 20 ? 256 : 129 * elements <= 136 << 20 ? 128 : 64;
}

int64_t recurrence_past_block(int64_t elements)
{
	return 513 * elements <= 9 << 19 ? 513 : recurrence_block(elements) + 1;
}

int64_t recurrence_pool(int64_t used, int64_t elements)
{
	enum { MORE = 7, POOL = 264, POOL_ELEMENTS = 9 << 21 };

	return elements <= POOL_ELEMENTS / POOL && used + MORE < POOL ? POOL : used + MORE;
}

void recurrence_shuffle_slots(uint64_t key, int64_t slots, int64_t used, int64_t *order)
{
	static const int64_t ends[] = {255, 256, 127, 128};

	philox_shuffle(key, slots, order);
	if (used > slots)
		return;
	for (int64_t n = 0; n < 4 && 2 * n < used; n++)
		order_place(order, slots, ends[n], 2 * n);
	if (used == 1 && slots > 1)
		order_place(order, slots, slots - 1, 0);
	if (used > 1)
		order_place(order, slots, 0, 1);
	if (used > 3)
		order_place(order, slots, slots - 1, 3);
}

int recurrence_check_offsets(const char *name, int64_t total, const struct tensor *offsets, struct err *err)
{
	int64_t count = offsets->elements;

	if (count < 1 || check_integer(offsets, 0) != 0)
		return err_set(err, "%s does not start with 0; the first offset must be 0", name);
	for (int64_t n = 1; n < count; n++)
		if (check_integer(offsets, n) < check_integer(offsets, n - 1) || check_integer(offsets, n) > total)
			return err_set(
			    err, "%s[%lld] is %lld: it must be at least %s[%lld] = %lld, and at most %lld, the number of tokens",
			    name, (long long)n, (long long)check_integer(offsets, n), name, (long long)n - 1,
			    (long long)check_integer(offsets, n - 1), (long long)total);
	if (check_integer(offsets, count - 1) != total)
		return err_set(err, "%s ends with %lld, but there are %lld tokens", name,
		               (long long)check_integer(offsets, count - 1), (long long)total);
	return 0;
}
