#include "kernels/rope/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/take.h"
#include "kernels/rope/mistakes.h"

enum { PARALLEL_FROM = 1 << 20 }; /* if there are fewer elements, one thread is faster than several */

/* Returns the frequency of pair i, in radians per position. */
static double frequency(const struct op_case *c, int64_t i, int64_t rotary_dim)
{
	double power = c->mistake == HALF_EXPONENT ? 2 : c->mistake == DOUBLE_EXPONENT ? 0.5 : c->mistake == INVERSE ? -1 : 1;
	double plain = pow(rope_number_of(c, ROPE_THETA), -2.0 * power * (double)i / (double)rotary_dim);
	double scale = rope_number_of(c, ROPE_SCALE), scaled = c->mistake == MULTIPLIED ? plain * scale : plain / scale;

	if (c->mistake == ALL_SCALED || c->mistake == NONE_SCALED)
		return c->mistake == ALL_SCALED ? scaled : plain;

	if (!(c->variant & ROPE_LLAMA31))
		return scaled;
	double low = rope_number_of(c, ROPE_LOW), high = rope_number_of(c, ROPE_HIGH);
	double old = rope_number_of(c, ROPE_OLD_CONTEXT);
	double wavelength = (c->mistake == NO_TWO_PI ? 1 : 2 * 3.14159265358979323846) / plain;

	if (wavelength < old / high)
		return c->mistake == EXCHANGED ? scaled : plain;
	if (wavelength > old / low)
		return c->mistake == EXCHANGED ? plain : scaled;
	double smooth = (old / wavelength - low) / (high - low);

	smooth = c->mistake == MIXED_BACKWARDS || c->mistake == EXCHANGED ? 1 - smooth : smooth;
	smooth = c->mistake == NO_MIXING ? smooth >= 0.5 : smooth;
	return (1 - smooth) * scaled + smooth * plain;
}

/* Computes cos and sin of every pair for one token. Both are NaN if the token's position is outside the cache. */
static void angles(const struct op_case *c, const struct rope_extent *e, const struct tensor *in,
                   const double *frequencies, int64_t token, double *cosine, double *sine)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	const struct tensor *at = &in[roles.positions];
	int64_t half = e->rotary_dim / 2;
	int64_t position =
	    at->dtype == DTYPE_INT64 ? ((const int64_t *)at->data)[token] : ((const int32_t *)at->data)[token];

	for (int64_t i = 0; i < half; i++) {
		if (roles.cache < 0) {
			double angle = (double)position * frequencies[i];

			if (c->mistake == ROUNDED_ANGLES)
				angle = (double)float_from_bf16(bf16_from_float((float)angle));
			cosine[i] = cos(angle);
			sine[i] = sin(angle);
		} else if (position < 0 || position >= e->cache_rows) {
			cosine[i] = sine[i] = NAN;
		} else {
			const struct tensor *cache = &in[roles.cache];

			cosine[i] = dtype_load(cache->data, cache->dtype, position * e->rotary_dim + i);
			sine[i] = dtype_load(cache->data, cache->dtype, position * e->rotary_dim + half + i);
		}
	}
}

static void mistake_angles(const struct op_case *c, int64_t half, double *cosine, double *sine)
{
	for (int64_t i = 0; i < half && c->mistake == BACKWARDS; i++)
		sine[i] = -sine[i];
	for (int64_t i = 0; i < half && c->mistake == SINE_FOR_COSINE; i++) {
		double kept = sine[i];

		sine[i] = cosine[i];
		cosine[i] = kept;
	}
}

static void rotate_head(double *x, double *y, const struct rope_extent *e, bool interleaved, const double *cosine,
                        const double *sine)
{
	int64_t half = e->rotary_dim / 2;

	for (int64_t i = 0; i < half; i++) {
		int64_t left = interleaved ? 2 * i : i, right = interleaved ? 2 * i + 1 : i + half;

		y[left] = x[left] * cosine[i] - x[right] * sine[i];
		y[right] = x[right] * cosine[i] + x[left] * sine[i];
	}
	for (int64_t i = e->rotary_dim; i < e->head_size; i++)
		y[i] = x[i];
}

/* Rotates one head as a reference with the mistake does. The mistake changes the positions at which elements are read
 * or written, or the second element of each pair, or the copied elements. */
static void mistaken_head(double *x, double *y, const struct rope_extent *e, bool interleaved, const double *cosine,
			  const double *sine, int mistake)
{
	int64_t half = e->rotary_dim / 2, rest = e->head_size - e->rotary_dim, from = mistake == LAST_ROTATED ? rest : 0;
	int64_t to = mistake == LAST_ROTATED || mistake == REST_FIRST ? rest : 0;
	bool reads = interleaved != (mistake == READ_OTHERWISE), writes = interleaved != (mistake == WRITTEN_OTHERWISE);

	for (int64_t i = 0; i < half; i++) {
		double first = x[from + (reads ? 2 * i : i)], second = x[from + (reads ? 2 * i + 1 : i + half)];
		double rotated = first * cosine[i] - second * sine[i];

		y[to + (writes ? 2 * i : i)] = rotated;
		y[to + (writes ? 2 * i + 1 : i + half)] =
		    mistake == SECOND_KEPT ? second
					   : second * cosine[i] + (mistake == SECOND_FROM_ROTATED ? rotated : first) * sine[i];
	}
	for (int64_t i = 0; i < rest; i++)
		y[to == 0 ? e->rotary_dim + i : i] = mistake == REST_ZERO ? 0 : x[from == 0 ? e->rotary_dim + i : i];
}

/* Checks the Python scalars that a workload provides. */
static int check_arguments(const struct op_case *c, const struct rope_roles *roles, struct err *err)
{
	int64_t size = rope_head_size(c->problem, c->axis);
	char what[160];

	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (check_scalar(c, roles->number[n], 0x1p-1074, 1e300,
		                 "each parameter of the rotary frequencies must be above 0", err) != 0)
			return -1;
	if (check_is_number(c, roles->number[ROPE_LOW]) && check_is_number(c, roles->number[ROPE_HIGH]) &&
	    c->scalar[roles->number[ROPE_LOW]] == c->scalar[roles->number[ROPE_HIGH]])
		return err_set(err, "inputs '%s' and '%s' are both %g; they must differ, because frequencies are "
				    "divided by the difference",
		               c->problem->inputs[roles->number[ROPE_LOW]].name,
		               c->problem->inputs[roles->number[ROPE_HIGH]].name,
		               c->scalar[roles->number[ROPE_LOW]]);
	snprintf(what, sizeof what, "the rotary dimension must be even and at most the head size "
				    "%lld", (long long)size);
	if (check_scalar(c, roles->rotary_dim, 0, (double)size, what, err) != 0)
		return -1;
	if (check_is_number(c, roles->rotary_dim) && fmod(c->scalar[roles->rotary_dim], 2) != 0)
		return err_set(err, "input '%s' is %g; %s", c->problem->inputs[roles->rotary_dim].name,
		               c->scalar[roles->rotary_dim], what);
	return 0;
}

int rope_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	int64_t rows = rope_extent_of(c).cache_rows;
	char what[160];

	if (check_arguments(c, &roles, err) != 0)
		return -1;
	if (roles.cache >= 0) {
		snprintf(what, sizeof what, "a position must be the index of a row of the cache, which has %lld "
					    "rows", (long long)rows);
		if (check_integers(c, in, roles.positions, 0, rows - 1, what, err) != 0)
			return -1;
	}
	return check_all_finite(c, in, err);
}

/* Rotates all heads of one token. `scratch` is working memory for two heads. */
static void rotate_token(const struct op_case *c, const struct rope_extent *e, const struct tensor *in,
                         struct tensor *out, int64_t token, const double *cosine, const double *sine, double *scratch)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	bool interleaved = rope_interleaved(c) != 0;

	for (int r = 0; r < roles.count; r++)
		for (int64_t head = 0; head < e->heads[r]; head++) {
			int64_t first = (token * e->heads[r] + head) * e->head_size;
			const struct tensor *x = &in[roles.rotated[r]];
			struct tensor *y = &out[roles.output[r]];

			dtype_load_run(x->data, x->dtype, first, e->head_size, scratch);
			if (c->mistake >= READ_OTHERWISE)
				mistaken_head(scratch, scratch + e->head_size, e, interleaved, cosine, sine, c->mistake);
			else
				rotate_head(scratch, scratch + e->head_size, e, interleaved, cosine, sine);
			dtype_store_run(y->data, y->dtype, first, e->head_size, scratch + e->head_size);
		}
}

int rope_check_widths(const struct rope_extent *e, struct err *err)
{
	if (e->head_size < 1 || e->rotary_dim < 0 || e->rotary_dim > e->head_size || e->rotary_dim % 2 != 0)
		return err_set(err, "rope: a rotary dimension of %lld does not fit a head of %lld elements",
		               (long long)e->rotary_dim, (long long)e->head_size);
	return 0;
}

int rope_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct rope_extent e = rope_extent_of(c);
	int64_t half = e.rotary_dim / 2;

	if (rope_check_widths(&e, err) != 0)
		return -1;
	double *frequencies = take(half, sizeof *frequencies);

	for (int64_t i = 0; i < half && !(c->variant & ROPE_CACHE); i++)
		frequencies[i] = frequency(c, i, e.rotary_dim);
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *cosine = take(2 * half + 2 * e.head_size, sizeof *cosine);
		double *sine = cosine + half, *scratch = sine + half;

#pragma omp for
		for (int64_t token = 0; token < e.tokens; token++) {
			angles(c, &e, in, frequencies, token, cosine, sine);
			mistake_angles(c, half, cosine, sine);
			rotate_token(c, &e, in, out, token, cosine, sine, scratch);
		}
		free(cosine);
	}
	free(frequencies);
	return 0;
}
