/* rmsnorm inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * A row of the activations is a case of its own. Rows 0 … 7 are those that have hurt people; the rest make every
 * single column count:
 *
 *   row 0, 7  tiny: the mean square is about epsilon (row 7: a 64th of it), so a wrong epsilon, or none, shows; row 0
 *             so that a batch of one shows it too
 *   row 1     zeros: only epsilon keeps it finite (left plain when epsilon is 0)
 *   row 2     shifted: 1 + noise / 4, whose variance is nothing like its mean square
 *   row 3     huge: noise on [-1024, 1024)
 *   row 4, 5  noise and one outlier, in the first column, in the last
 *   row 6     plain noise
 *   row r>=8  noise and `spikes` equal spikes, in columns (r - 8) * spikes and following, wrapping at the end. Together
 *             they hold 3/4 to 15/16 or more of the row's energy, so leaving any one of 32 out moves the whole row by
 *             1.2 % or more: two ulps of bfloat16 in most places. ceil(columns / spikes) such rows show every column.
 *             In even rows of a fused add the residual of a spike is half an ulp of the spike (a tie, so a sum that is
 *             rounded before the mean loses it): that moves the noise against the spikes by up to two ulps.
 *
 * Noise is uniform on [-1, 1) in 2^21 steps, rounded to the dtype. Weights are of either sign and of magnitude
 * [1/4, 2). All scaling is by powers of two and all sums are exact. */
#ifndef REFTEST_KERNELS_RMSNORM_INPUTS_H
#define REFTEST_KERNELS_RMSNORM_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants. */
enum { RMSNORM_PLAIN = 0, RMSNORM_FUSED_ADD = 1 };

enum { RMSNORM_SPIKES = 32, RMSNORM_SPIKE_ROW = 8 };

/* Indices into the problem's inputs and outputs; -1: the problem has none. */
struct rmsnorm_roles {
	int hidden, residual, weight, eps; /* eps: a Python scalar that gives epsilon */
	int output, updated;               /* updated: hidden + residual, rounded to its dtype */
};

static inline int rmsnorm_named(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

/* By shape, and by name only where shapes leave a choice (two activations, two outputs, activations of rank 1).
 * Complete for every problem that op.match takes. Host only. */
static inline struct rmsnorm_roles rmsnorm_roles_of(const struct op_problem *problem)
{
	struct rmsnorm_roles roles = {-1, -1, -1, -1, -1, -1};
	int rank = problem->output_count > 0 ? problem->outputs[0].rank : 0;

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int flat_weight =
		    rank == 1 && (rmsnorm_named(input->name, "weight") || rmsnorm_named(input->name, "gamma"));

		if (input->rank == OP_SCALAR)
			roles.eps = i;
		else if (input->rank == 1 && (rank != 1 || flat_weight))
			roles.weight = i;
		else if (roles.hidden < 0)
			roles.hidden = i;
		else
			roles.residual = i;
	}
	if (roles.residual >= 0 && rmsnorm_named(problem->inputs[roles.hidden].name, "resid") &&
	    !rmsnorm_named(problem->inputs[roles.residual].name, "resid")) {
		int first = roles.hidden;

		roles.hidden = roles.residual;
		roles.residual = first;
	}
	roles.output = problem->output_count > 0 ? 0 : -1;
	roles.updated = problem->output_count > 1 ? 1 : -1;
	if (roles.updated >= 0 && rmsnorm_named(problem->outputs[0].name, "resid") &&
	    !rmsnorm_named(problem->outputs[1].name, "resid")) {
		roles.output = 1;
		roles.updated = 0;
	}
	return roles;
}

/* Epsilon of a case; NaN while nothing gives it (a probing case). Host only. */
static inline double rmsnorm_eps(const struct op_case *c)
{
	int scalar = rmsnorm_roles_of(c->problem).eps;

	if (scalar >= 0)
		return c->scalar[scalar];
	return c->constant_count > 0 ? c->constants[0].value : (double)float_from_bits(0x7fc00000u);
}

/* Rows and columns of the activations: the last axis is normalised, the others make the rows (at most 2^62 of them,
 * whatever the axes are). Host only. */
static inline void rmsnorm_extent(const struct op_case *c, int64_t *rows, int64_t *columns)
{
	const struct op_arg *hidden = &c->problem->inputs[rmsnorm_roles_of(c->problem).hidden];

	*rows = 1;
	for (int d = 0; d + 1 < hidden->rank; d++) {
		int64_t length = c->axis[hidden->axis[d]];

		*rows = length > 0 && *rows > (INT64_MAX >> 1) / length ? INT64_MAX >> 1 : *rows * length; /* 0: no rows */
	}
	*columns = c->axis[hidden->axis[hidden->rank - 1]];
}

enum rmsnorm_part { RMSNORM_HIDDEN, RMSNORM_RESIDUAL, RMSNORM_WEIGHT };

/* Everything an element depends on; plain data, given to the GPU by value. */
struct rmsnorm_fill {
	uint64_t key;
	int64_t columns;
	int part;          /* enum rmsnorm_part */
	int probe;         /* 1: every row shows epsilon and nothing else */
	int zero_row;      /* row 1 is zeros */
	int tiny;          /* exponent of the tiny rows' scale */
	int least;         /* smallest exponent the dtype has precision for */
	int spikes;        /* in each row from RMSNORM_SPIKE_ROW on */
	int spike, single; /* exponents of a spike's magnitude: one of `spikes`, and the only one of its row */
	int half_ulp; /* exponent of half an ulp of 1 in the activations' dtype; 0: residuals there are plain noise */
	int weight_bits;   /* fraction bits of a weight */
};

/* Smallest exponent e >= from with count * 4^e >= energy. */
static inline int rmsnorm_exponent(int from, double count, double energy)
{
	int e = from;

	while (e < 40 && count * (double)float_power(e) * (double)float_power(e) < energy)
		e++;
	return e;
}

/* Host only. `input` is any tensor input of the problem. */
static inline struct rmsnorm_fill rmsnorm_fill_of(const struct op_case *c, int input)
{
	const struct op_problem *problem = c->problem;
	struct rmsnorm_roles roles = rmsnorm_roles_of(problem);
	enum dtype dtype = problem->inputs[roles.hidden].dtype;
	enum dtype other = roles.residual >= 0 ? problem->inputs[roles.residual].dtype : dtype;
	enum dtype weight = problem->inputs[roles.weight].dtype;
	double noise = roles.residual >= 0 ? 2.0 / 3 : 1.0 / 3; /* mean square of a noise element */
	double eps = rmsnorm_eps(c);
	int half =
	    dtype == DTYPE_FLOAT16 || other == DTYPE_FLOAT16 || problem->outputs[roles.output].dtype == DTYPE_FLOAT16;
	struct rmsnorm_fill f;
	int64_t rows;

	rmsnorm_extent(c, &rows, &f.columns);
	f.key = input_key(c, input);
	f.part = input == roles.weight ? RMSNORM_WEIGHT : input == roles.residual ? RMSNORM_RESIDUAL : RMSNORM_HIDDEN;
	f.probe = c->probe;
	f.zero_row = !(eps == 0);
	f.least = half ? -13 : -40; /* float16: 11 bits at 2^-14, the least normal; then x^2 stays normal in float32 */
	f.tiny = rmsnorm_exponent(f.least, noise, eps > 0 && eps < 1e6 ? eps / 2 : eps == 0 ? 1e-14 : 1e-6);
	f.spikes = f.columns < RMSNORM_SPIKES ? (int)f.columns : RMSNORM_SPIKES;
	f.spike = rmsnorm_exponent(0, f.spikes, 4 * noise * (double)f.columns);
	f.single = rmsnorm_exponent(0, 1, 4 * noise * (double)f.columns);
	f.half_ulp = dtype != other ? 0 : dtype == DTYPE_BFLOAT16 ? -8 : dtype == DTYPE_FLOAT16 ? -11 : 0;
	f.weight_bits = weight == DTYPE_BFLOAT16 ? 7 : weight == DTYPE_FLOAT16 ? 10 : 20;
	return f;
}

HOST_DEVICE static inline float rmsnorm_weight(const struct rmsnorm_fill *f, uint32_t random)
{
	uint32_t fraction = random >> (32 - f->weight_bits);
	float magnitude = (float)((1u << f->weight_bits) + fraction) * float_power(-f->weight_bits - (int)(random % 3));

	return random & 0x100 ? magnitude : -magnitude;
}

/* The probe: |hidden| on [1, 2) times the least power of two, residual 0; so far below any epsilon that the answer's
 * size is x w / sqrt(eps). */
HOST_DEVICE static inline float rmsnorm_probe(const struct rmsnorm_fill *f, uint32_t random)
{
	float magnitude = (float)(128 + (random >> 25)) * float_power(f->least - 7);

	if (f->part == RMSNORM_RESIDUAL)
		return 0;
	return random & 1 ? magnitude : -magnitude;
}

/* A spike of magnitude 2^exponent, or the residual beside it. Hidden and residual must agree in sign, so the sign is
 * of the place, not of the random bits. */
HOST_DEVICE static inline float rmsnorm_spike(const struct rmsnorm_fill *f, int64_t row, int64_t column, int exponent,
                                              float noise)
{
	float sign = (row + column) & 1 ? -1.0f : 1.0f;

	if (f->part == RMSNORM_HIDDEN)
		return sign * float_power(exponent);
	if (f->half_ulp == 0 || (row & 1) || row < RMSNORM_SPIKE_ROW)
		return noise;
	return sign * float_power(exponent + f->half_ulp);
}

HOST_DEVICE static inline float rmsnorm_hurtful(const struct rmsnorm_fill *f, int row, int64_t column, float noise)
{
	switch (row) {
	case 0:
		return noise * float_power(f->tiny);
	case 1:
		return f->zero_row ? 0 : noise;
	case 2:
		return noise * 0.25f + (f->part == RMSNORM_HIDDEN ? 1.0f : 0.0f); /* exact: 23 bits */
	case 3:
		return noise * 1024;
	case 4:
		return column == 0 ? rmsnorm_spike(f, row, column, f->single, noise) : noise;
	case 5:
		return column == f->columns - 1 ? rmsnorm_spike(f, row, column, f->single, noise) : noise;
	case 7:
		return noise * float_power(f->tiny - 3 < f->least ? f->least : f->tiny - 3);
	default:
		return noise;
	}
}

/* Element `index` of the input that `f` was made for, from its random bits: to be rounded to the input's dtype with
 * number_store. */
HOST_DEVICE static inline float rmsnorm_element(const struct rmsnorm_fill *f, int64_t index, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	if (f->part == RMSNORM_WEIGHT)
		return rmsnorm_weight(f, random);
	if (f->probe)
		return rmsnorm_probe(f, random);
	int64_t row = index / f->columns, column = index % f->columns;

	if (row < RMSNORM_SPIKE_ROW)
		return rmsnorm_hurtful(f, (int)row, column, noise);
	int64_t first = (row - RMSNORM_SPIKE_ROW) * f->spikes % f->columns;
	int64_t after = column >= first ? column - first : column - first + f->columns;

	return after < f->spikes ? rmsnorm_spike(f, row, column, f->spike, noise) : noise;
}

#endif
