/* unit_distance - reads the tensors in chunks. Chunks whose bytes are equal in both tensors are skipped. In other
 * chunks, a loop without branches finds out whether a distance can be larger than the largest distance so far. For
 * large outputs, this is ten times faster than computing the distance of each element. */
#include "workers/judge/unit_distance.h"

#include <math.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/simd.h"

enum { CHUNK = 512 };

/* Values up to this one are finite in every float dtype of 16 or more bits. */
static const double ALWAYS_IN_RANGE = 60000;

double unit_of(enum dtype dtype)
{
	static const int fraction_bits[DTYPE_COUNT] = {
	    [DTYPE_FLOAT64] = 52,    [DTYPE_FLOAT32] = 23,     [DTYPE_FLOAT16] = 10,
	    [DTYPE_BFLOAT16] = 7,    [DTYPE_FLOAT8_E4M3FN] = 3, [DTYPE_FLOAT8_E5M2] = 2,
	    [DTYPE_FLOAT4_E2M1] = 1, [DTYPE_FLOAT8_E8M0FNU] = 0,
	};

	return dtype_is_float(dtype) ? ldexp(1, -fraction_bits[dtype]) : 0;
}

/* Returns the value, or infinity if the value is beyond the range of the dtype. For example, a float64 result of 10^5
 * becomes infinity for float16. */
static double in_range(double value, enum dtype declared)
{
	unsigned char bytes[8];
	double rounded;

	dtype_store(bytes, declared, 0, value);
	rounded = dtype_load(bytes, declared, 0);
	return isinf(rounded) ? rounded : value;
}

WIDE static int count_beyond(const double *values, int count, double limit)
{
	int beyond = 0;

	for (int i = 0; i < count; i++)
		beyond += !(fabs(values[i]) <= limit);
	return beyond;
}

/* Loads elements of a tensor as doubles. If a value is beyond the range of the dtype `declared`, it becomes
 * infinity. */
static void load(const struct tensor *tensor, enum dtype declared, int64_t first, int count, double *out)
{
	dtype_load_run(tensor->data, tensor->dtype, first, count, out);
	if (tensor->dtype == declared || !dtype_is_float(declared) ||
	    (dtype_bits(declared) >= 16 && count_beyond(out, count, ALWAYS_IN_RANGE) == 0))
		return;
	for (int i = 0; i < count; i++)
		out[i] = in_range(out[i], declared);
}

static int chunk_at(int64_t at, int64_t end)
{
	return end - at < CHUNK ? (int)(end - at) : CHUNK;
}

/* Returns the root mean square of the elements that are finite in the dtype `declared`. */
static double size_of(const struct tensor *tensor, enum dtype declared)
{
	double sum = 0, values[CHUNK];
	int64_t finite = 0;

	for (int64_t at = 0; at < tensor->elements; at += CHUNK) {
		int count = chunk_at(at, tensor->elements);

		load(tensor, declared, at, count, values);
		for (int i = 0; i < count; i++)
			if (isfinite(values[i])) {
				sum += values[i] * values[i];
				finite++;
			}
	}
	return finite > 0 ? sqrt(sum / (double)finite) : 0;
}

/* Returns the distance between two values, in units of the last place. A unit in the last place is `unit` multiplied by
 * the largest of |a|, |b| and `size`. If `unit` is 0, the dtype is not a float, and different values have the distance
 * infinity. */
static double distance_of(double a, double b, double size, double unit)
{
	double magnitude = fmax(size, fmax(fabs(a), fabs(b)));

	if ((isnan(a) && isnan(b)) || a == b)
		return 0;
	if (unit == 0 || !isfinite(a) || !isfinite(b))
		return INFINITY;
	return fabs(a - b) / (unit * magnitude);
}

struct comparison {
	const struct tensor *found, *expected;
	enum dtype declared;
	double unit, size, largest; /* size: NAN until the first chunk whose bytes differ */
};

static bool has_equal_bytes(const struct comparison *c, int64_t in_found, int64_t in_expected, int count)
{
	int bits = dtype_bits(c->found->dtype);
	const unsigned char *found = c->found->data, *expected = c->expected->data;

	return c->found->dtype == c->expected->dtype && bits >= 8 &&
	       memcmp(found + in_found * bits / 8, expected + in_expected * bits / 8, (size_t)count * (size_t)bits / 8) == 0;
}

/* Returns whether some pair of values has a difference that is larger than `limit` or is NaN. */
WIDE static bool any_farther(const double *a, const double *b, int count, double limit)
{
	int farther = 0;

	for (int i = 0; i < count; i++)
		farther += !(fabs(a[i] - b[i]) <= limit);
	return farther > 0;
}

static void compare_chunk(struct comparison *c, int64_t in_found, int64_t in_expected, int count)
{
	double found[CHUNK], expected[CHUNK];

	if (has_equal_bytes(c, in_found, in_expected, count))
		return;
	if (isnan(c->size))
		c->size = size_of(c->expected, c->declared);
	load(c->found, c->declared, in_found, count, found);
	load(c->expected, c->declared, in_expected, count, expected);
	/* A distance is a difference divided by a unit, and this unit is at least c->unit * c->size. Therefore a
	 * difference of at most c->largest * c->unit * c->size cannot increase the largest distance. */
	if (!any_farther(found, expected, count, isfinite(c->largest) ? c->largest * c->unit * c->size : 0))
		return;
	for (int i = 0; i < count; i++)
		c->largest = fmax(c->largest, distance_of(found[i], expected[i], c->size, c->unit));
}

/* Compares `count` consecutive elements. */
static void compare_run(struct comparison *c, int64_t in_found, int64_t in_expected, int64_t count)
{
	for (int64_t at = 0; at < count && c->largest < INFINITY; at += CHUNK)
		compare_chunk(c, in_found + at, in_expected + at, chunk_at(at, count));
}

/* Returns the row of the expected tensor that corresponds to row `row` of the other tensor. `row` is the number of the
 * row in the whole tensor, so it also counts the rows at other indices of the outer dimensions. */
static int64_t row_of(const struct row_order *order, int64_t row)
{
	if (order->alone)
		return row * order->rows + order->rows - 1;
	return row - row % order->rows * 2 + order->rows - 1;
}

double unit_distance_largest(const struct tensor *found, const struct tensor *expected, enum dtype declared,
			     const struct row_order *order)
{
	struct comparison c = {found, expected, declared, unit_of(declared), NAN, 0};

	if (order == NULL) {
		compare_run(&c, 0, 0, found->elements);
		return c.largest;
	}
	for (int64_t row = 0; order->inner > 0 && row < found->elements / order->inner; row++)
		compare_run(&c, row * order->inner, row_of(order, row) * order->inner, order->inner);
	return c.largest;
}

bool unit_distance_any(const struct tensor *a, const struct tensor *b)
{
	struct comparison c = {a, b, a->dtype, 0, 1, 0}; /* a unit of 0 means that different values have the distance
							  * infinity, so the comparison ends at the first difference */

	compare_run(&c, 0, 0, a->elements);
	return c.largest > 0;
}
