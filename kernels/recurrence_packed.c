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

void recurrence_fill_offsets(int64_t sequences, int64_t total, struct tensor *out)
{
	static const int64_t wanted[] = {65, 1, 64, 9, 63, 128};
	int64_t spare = total - sequences, weights = 0, at = 0;

	for (int64_t n = 0; n < sequences; n++)
		weights += wanted[n % 6] - 1;
	if (out->elements > 0)
		number_set(out->data, out->dtype, 0, 0);
	for (int64_t n = 0; n < sequences; n++) {
		int64_t more = wanted[n % 6] - 1;

		at += 1 + (weights <= spare ? more : more * spare / weights);
		number_set(out->data, out->dtype, n + 1, (double)(n == sequences - 1 || spare < 0 ? total : at));
	}
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
