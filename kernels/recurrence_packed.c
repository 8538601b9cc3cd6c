#include "kernels/recurrence_packed.h"

#include <math.h>

#include "base/err.h"
#include "kernels/check.h"
#include "kernels/number.h"

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

/* What sequences have beside their first token; those that no list names have that token alone. */
enum { LISTED = 4 };
static const int64_t few[CONTENTS_COUNT][LISTED] = {{31, 0, 15, 16}, {16, 15, 0, 31}},
		     many[CONTENTS_COUNT][LISTED] = {{128, 0, 63, 15}, {64, 0, 15, 127}};

static int64_t listed(const int64_t *list, int64_t n)
{
	return n < LISTED ? list[n] : 0;
}

/* Of all but the last of so many sequences. */
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
		number_set(out->data, out->dtype, 0, 0);
	for (int64_t n = 0; n < sequences; n++) {
		int64_t more = listed(list, n);

		at += 1 + (weights <= spare ? more : more * spare / weights);
		number_set(out->data, out->dtype, n + 1, (double)(n == sequences - 1 || spare < 0 ? total : at));
	}
}

int64_t recurrence_many(int64_t elements)
{
	static const int64_t counts[] = {320, 129, 65};

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (counts[i] * elements <= 9 << 18)
			return counts[i];
	return 33;
}

int recurrence_check_offsets(const char *name, int64_t total, const struct tensor *offsets, struct err *err)
{
	int64_t count = offsets->elements;

	if (count < 1 || check_integer(offsets, 0) != 0)
		return err_set(err, "%s does not begin with 0", name);
	for (int64_t n = 1; n < count; n++)
		if (check_integer(offsets, n) < check_integer(offsets, n - 1) || check_integer(offsets, n) > total)
			return err_set(
			    err, "%s[%lld] is %lld: it must not be below %s[%lld] = %lld, nor above the %lld tokens",
			    name, (long long)n, (long long)check_integer(offsets, n), name, (long long)n - 1,
			    (long long)check_integer(offsets, n - 1), (long long)total);
	if (check_integer(offsets, count - 1) != total)
		return err_set(err, "%s ends with %lld, and there are %lld tokens", name,
		               (long long)check_integer(offsets, count - 1), (long long)total);
	return 0;
}
