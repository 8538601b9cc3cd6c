/* gemma_rmsnorm inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * A row of the activations is a case of its own. Rows 0 … 7 are those that have hurt people:
 *
 *   row 0, 7  tiny: the mean square is about epsilon (row 7: a 64th of it), so a wrong epsilon, or none, shows; row 0
 *             so that a batch of one shows it too
 *   row 1     zeros: only epsilon keeps it finite
 *   row 2     shifted: 1 + noise / 4, whose variance is nothing like its mean square
 *   row 3     huge: noise on [-1024, 1024)
 *   row 4, 5  noise and one outlier, in the first column, in the last
 *   row 6     plain noise
 *   row r>=8  noise and 32 equal spikes, in columns 32 (r - 8) and following, wrapping at the end: they hold 3/4 or
 *             more of the row's energy, so a column that is left out moves the whole row. In even rows of a fused add
 *             the residual of a spike is half an ulp of it, so that a sum which is rounded before the mean loses it
 *
 * Noise is uniform on [-1, 1). A weight w is applied as 1 + w; |w| is a fraction of 2^0 … 2^-5, of either sign, as
 * small and as large as trained ones are. */
#ifndef REFTEST_KERNELS_GEMMA_RMSNORM_INPUTS_H
#define REFTEST_KERNELS_GEMMA_RMSNORM_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants. */
enum { GEMMA_PLAIN = 0, GEMMA_FUSED_ADD = 1 };

enum { GEMMA_SPIKES = 32, GEMMA_SPIKE_ROW = 8 };

/* Indices into the problem's inputs and outputs; -1: the problem has none. */
struct gemma_roles {
	int hidden, residual, weight, eps; /* eps: a Python scalar */
	int output, updated;               /* updated: hidden + residual, rounded to its dtype */
};

/* By shape; by name only which activation is the residual. Complete for what op.match takes. Host only. */
static inline struct gemma_roles gemma_roles_of(const struct op_problem *problem)
{
	struct gemma_roles roles = {-1, -1, -1, -1, -1, -1};

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (input->rank == OP_SCALAR)
			roles.eps = i;
		else if (input->rank == 1)
			roles.weight = i;
		else if (roles.residual < 0 && strstr(input->name, "resid") != NULL)
			roles.residual = i;
		else if (roles.hidden < 0)
			roles.hidden = i;
		else
			roles.residual = i;
	}
	for (int i = 0; i < problem->output_count; i++) {
		if (roles.updated < 0 && problem->output_count > 1 && strstr(problem->outputs[i].name, "resid") != NULL)
			roles.updated = i;
		else if (roles.output < 0)
			roles.output = i;
		else
			roles.updated = i;
	}
	return roles;
}

/* Host only. */
static inline double gemma_eps(const struct op_case *c)
{
	int scalar = gemma_roles_of(c->problem).eps;

	return scalar >= 0 ? c->scalar[scalar] : c->constant_count > 0 ? c->constants[0].value : 0;
}

enum gemma_part { GEMMA_HIDDEN, GEMMA_RESIDUAL, GEMMA_WEIGHT };

/* Everything an element depends on; plain data, given to the GPU by value. */
struct gemma_fill {
	uint64_t key;
	int64_t columns;
	int part;        /* enum gemma_part */
	int tiny, least; /* exponents of a tiny row's scale, and of the smallest that the dtype has precision for */
	int spikes, spike, single; /* how many in a row; exponents of their magnitude, and of a single one's */
	int half_ulp;              /* exponent of half an ulp of 1; 0: residuals of spikes are plain noise */
};

/* Smallest exponent e >= from with count * 4^e >= energy. Host only. */
static inline int gemma_exponent(int from, double count, double energy)
{
	int e = from;

	while (e < 40 && count * (double)float_power(e) * (double)float_power(e) < energy)
		e++;
	return e;
}

/* Host only. `input` is a tensor. */
static inline struct gemma_fill gemma_fill_of(const struct op_case *c, int input)
{
	const struct op_problem *problem = c->problem;
	struct gemma_roles roles = gemma_roles_of(problem);
	const struct op_arg *hidden = &problem->inputs[roles.hidden];
	int same = roles.residual >= 0 && problem->inputs[roles.residual].dtype == hidden->dtype;
	double eps = gemma_eps(c), noise = roles.residual >= 0 ? 2.0 / 3 : 1.0 / 3; /* mean square of an element */
	struct gemma_fill f;

	f.key = input_key(c, input);
	f.columns = c->axis[hidden->axis[hidden->rank - 1]];
	f.part = input == roles.weight ? GEMMA_WEIGHT : input == roles.residual ? GEMMA_RESIDUAL : GEMMA_HIDDEN;
	f.least = hidden->dtype == DTYPE_FLOAT16 ? -13 : -40;
	f.tiny = gemma_exponent(f.least, noise, eps > 0 && eps < 1e6 ? eps / 2 : 1e-14);
	f.spikes = f.columns < GEMMA_SPIKES ? (int)f.columns : GEMMA_SPIKES;
	f.spike = gemma_exponent(0, f.spikes, 4 * noise * (double)f.columns);
	f.single = gemma_exponent(0, 1, 4 * noise * (double)f.columns);
	f.half_ulp = !same ? 0 : hidden->dtype == DTYPE_BFLOAT16 ? -8 : hidden->dtype == DTYPE_FLOAT16 ? -11 : 0;
	return f;
}

/* A spike, or the residual beside it, which agrees with it in sign. */
HOST_DEVICE static inline float gemma_spike(const struct gemma_fill *f, int64_t row, int64_t column, int exponent,
                                            float noise)
{
	float sign = (row + column) & 1 ? -1.0f : 1.0f;

	if (f->part == GEMMA_HIDDEN)
		return sign * float_power(exponent);
	if (f->half_ulp == 0 || (row & 1) || row < GEMMA_SPIKE_ROW)
		return noise;
	return sign * float_power(exponent + f->half_ulp);
}

HOST_DEVICE static inline float gemma_hurtful(const struct gemma_fill *f, int row, int64_t column, float noise)
{
	switch (row) {
	case 0:
		return noise * float_power(f->tiny);
	case 1:
		return 0;
	case 2:
		return noise * 0.25f + (f->part == GEMMA_HIDDEN ? 1.0f : 0.0f); /* exact: 23 bits */
	case 3:
		return noise * 1024;
	case 4:
		return column == 0 ? gemma_spike(f, row, column, f->single, noise) : noise;
	case 5:
		return column == f->columns - 1 ? gemma_spike(f, row, column, f->single, noise) : noise;
	case 7:
		return noise * float_power(f->tiny - 3 < f->least ? f->least : f->tiny - 3);
	default:
		return noise;
	}
}

/* Element `index` from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float gemma_element(const struct gemma_fill *f, int64_t index, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	if (f->part == GEMMA_WEIGHT)
		return noise * float_power(-(int)(random % 6));
	int64_t row = index / f->columns, column = index % f->columns;

	if (row < GEMMA_SPIKE_ROW)
		return gemma_hurtful(f, (int)row, column, noise);
	int64_t first = (row - GEMMA_SPIKE_ROW) * f->spikes % f->columns;
	int64_t after = column >= first ? column - first : column - first + f->columns;

	return after < f->spikes ? gemma_spike(f, row, column, f->spike, noise) : noise;
}

#endif
