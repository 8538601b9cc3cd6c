#include "kernels/common/norm/rms_input_values.h"

#include "kernels/common/norm/rms_roles.h"
#include "kernels/core/simd.h"

/* Returns the smallest exponent e, at least `from`, for which count * 4^e >= energy. */
static int least_exponent(int from, double count, double energy)
{
	int e = from;

	while (e < 40 && count * (double)float_power(e) * (double)float_power(e) < energy)
		e++;
	return e;
}

/* Returns true if an activation is float16. The inputs of such a case are chosen so that all sums of hidden state and
 * residual are in the range of float16, and every row is scaled by at least 2^-13, above the subnormal numbers of
 * float16. */
static bool has_half(const struct op_problem *problem, const struct rms_roles *roles)
{
	bool half = problem->inputs[roles->hidden].dtype == DTYPE_FLOAT16;

	if (roles->residual >= 0)
		half |= problem->inputs[roles->residual].dtype == DTYPE_FLOAT16;
	for (int i = 0; i < problem->output_count; i++)
		half |= problem->outputs[i].dtype == DTYPE_FLOAT16;
	return half;
}

bool rms_is_loud(const struct op_problem *problem)
{
	struct rms_roles roles = rms_roles_of(problem);

	return !has_half(problem, &roles) && problem->inputs[roles.weight].dtype != DTYPE_FLOAT16;
}

bool rms_is_exact(const struct op_case *c)
{
	int64_t rows, columns;

	rms_extent(c, &rows, &columns);
	return rows == 1 && c->contents == CONTENTS_SECOND && c->given == 0 && c->edge == 0 && !c->probe;
}

struct rms_recipe rms_recipe_of(const struct op_case *c, int offset, int input)
{
	const struct op_problem *problem = c->problem;
	struct rms_roles roles = rms_roles_of(problem);
	enum dtype dtype = problem->inputs[roles.hidden].dtype;
	enum dtype other = roles.residual >= 0 ? problem->inputs[roles.residual].dtype : dtype;
	enum dtype weight = problem->inputs[roles.weight].dtype;
	double noise = roles.residual >= 0 ? 2.0 / 3 : 1.0 / 3; /* the mean square of the noise or, if there is a
								 * residual, of the sum of two noises */
	double eps = rms_eps(c);
	bool half = has_half(problem, &roles);
	struct rms_recipe f;
	int64_t rows;

	rms_extent(c, &rows, &f.columns);
	f.key = input_key(c, input);
	f.part = input == roles.weight ? RMS_WEIGHT : input == roles.residual ? RMS_RESIDUAL : RMS_HIDDEN;
	f.probe = c->probe;
	f.zero_row = !(eps == 0);
	f.exact = rms_is_exact(c);
	f.second = c->contents == CONTENTS_SECOND;
	f.has_residual = roles.residual >= 0 && (c->absent >> roles.residual & 1) == 0;
	/* `least` is larger in float16, where numbers below 2^-14 are subnormal and have fewer than 11 significant
	 * bits. For other dtypes, x^2 must be a normal number in float32. */
	f.huge = half ? 14 : 20;
	f.least = half ? -13 : -40;
	f.tiny = least_exponent(f.least, noise, eps > 0 && eps < 1e6 ? eps / 2 : eps == 0 ? 1e-14 : 1e-6);
	f.spikes = f.columns < RMS_SPIKES ? (int)f.columns : RMS_SPIKES;
	f.spike = least_exponent(0, f.spikes, 4 * noise * (double)f.columns);
	f.single = least_exponent(0, 1, 4 * noise * (double)f.columns);
	f.half_ulp = dtype != other ? 0 : dtype == DTYPE_BFLOAT16 ? -8 : dtype == DTYPE_FLOAT16 ? -11 : 0;
	f.weight_bits = weight == DTYPE_BFLOAT16 || f.exact ? 7 : weight == DTYPE_FLOAT16 ? 10 : 20;
	f.loud = f.second && rms_is_loud(problem) ? RMS_LOUD : 0;
	f.offset = offset;
	return f;
}

WIDE static void make_row(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                          float *values)
{
	const struct rms_recipe *f = recipe;

	for (int64_t i = 0; i < count; i++)
		values[i] = rms_at(f, row, column + i, random[i]);
}

int rms_fill(const struct op_case *c, int offset, int input, struct tensor *out, struct err *err)
{
	struct rms_roles roles = rms_roles_of(c->problem);

	if (input != roles.hidden && input != roles.residual && input != roles.weight)
		return err_set(err, "input %d of %s is not a tensor", input, c->problem->name);
	const struct rms_recipe f = rms_recipe_of(c, offset, input);
	input_fill(out, f.key, f.columns, make_row, &f);
	return 0;
}
