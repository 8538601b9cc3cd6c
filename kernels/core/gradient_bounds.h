/* gradient_bounds - derives from a definition a problem whose outputs are gradients, fills the inputs of this problem,
 * and applies bounds to gradients.
 *
 * The inputs of the gradient problem are the inputs of the definition and, for each floating-point output of the
 * definition, the gradient of the loss with respect to this output. The outputs of the gradient problem are the
 * gradients of the loss with respect to the floating-point inputs of the definition:
 *
 *   inputs    q, k, …, grad:output, grad:final_state      "grad:" + an output's name, in its dtype and shape
 *   outputs   d_q, d_k, …                                  "d_" + an input's name, in its dtype and shape
 *
 * In addition, one gradient case checks slopes. This case runs in float64, whatever the declared dtypes are. A slope is
 * the change of the loss when a step is added to one input: (loss(x + step) - loss(x - step)) / 2. A slope needs two
 * more forward runs, which call the forward function of the definition itself, because the gradients must be the
 * derivative of that function. The true slope is the sum of step times the true d_x over all elements. The case that
 * checks slopes has these further inputs and outputs:
 *
 *   inputs    step:q, step:k, …                            each element is 2^-16 or -2^-16 times the input's element
 *   outputs   slope_q, slope_k, …                     one number each
 *
 * If an element is zero, its step is zero, too: another step could make a gate positive, and a gate that is a logarithm
 * must not be positive. The relative error of a central difference is about the square of the step, 2^-32. If a
 * reference adds 1e-5 to a norm, the error of the slope is about 1e-5. The slope is a sum of terms of both signs, and
 * may be only a hundredth as large as these terms; its relative error is then a hundred times as large. Slopes may
 * therefore have an error of 1 %. With a wrong formula, the error is larger.
 *
 * The runner and the judge treat the tensors of a gradient problem like those of a definition: inputs depend on name
 * and seed, canaries surround the tensors, the reference runs twice, and outputs are compared with the truth.
 *
 * Bounds of gradients (gradient_weigh): rule.rtol bounds the error ratio of the whole tensor, and rule.atol is usually
 * 0. The ratio must satisfy
 *
 *   RMS(reference - truth) <= atol + rtol (RMS(truth) + 1e-8)
 *
 * as in flash-linear-attention's own tests of gradients (fla/utils: get_err_ratio, assert_close). A ratio over the
 * whole tensor does not detect one wrong row among thousands. Therefore, the error of each element must also be at most
 *
 *   8 (atol + rtol (RMS(truth) + |truth|))
 *
 * If 10^7 errors have a normal distribution, the largest of them is 5.3 times their standard deviation. The errors of a
 * gradient vary more than that, because they are larger where the summed terms are larger. Therefore the factor is 8.
 * With an rtol of 0.005, an element that is 0 by mistake is detected if its true value exceeds 1/24 of the tensor's
 * RMS. With an rtol of 0.02, the true value must exceed 1/5 of the RMS. A gradient of zeros passes only if the truth
 * consists of zeros. */
#ifndef REFTEST_KERNELS_CORE_GRADIENT_BOUNDS_H
#define REFTEST_KERNELS_CORE_GRADIENT_BOUNDS_H

#include <string.h>

#include "base/arena.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRADIENT_OF_OUTPUT "grad:"
#define GRADIENT_OF_INPUT  "d_"
#define GRADIENT_STEP	   "step:"
#define GRADIENT_SLOPE	   "slope_"

/* Returns true if this input of a gradient problem is the given gradient of an output. */
static inline bool gradient_is_given(const struct op_arg *input)
{
	return strncmp(input->name, GRADIENT_OF_OUTPUT, sizeof GRADIENT_OF_OUTPUT - 1) == 0;
}

static inline bool gradient_is_step(const struct op_arg *input)
{
	return strncmp(input->name, GRADIENT_STEP, sizeof GRADIENT_STEP - 1) == 0;
}

static inline bool gradient_is_slope(const struct op_arg *output)
{
	return strncmp(output->name, GRADIENT_SLOPE, sizeof GRADIENT_SLOPE - 1) == 0;
}

/* Returns true if this input or output has a gradient in the gradient problem. */
static inline bool gradient_takes(const struct op_arg *arg)
{
	return arg->rank != OP_SCALAR && (arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_BFLOAT16 ||
					  arg->dtype == DTYPE_FLOAT16 || arg->dtype == DTYPE_FLOAT64);
}

/* Returns the gradient problem of a definition. absent[i] is true if the case omits input i. All memory is allocated
 * from `arena`. */
struct op_problem gradient_problem(const struct op_problem *forward, const bool *absent, bool in_float64,
				   struct arena *arena);

/* The forward case that belongs to a gradient case: the case of the definition itself. `outputs` contains only the
 * floating-point outputs. In a float64 case, the problem declares float32 for every float tensor, although the tensors
 * are float64. */
struct gradient_forward {
	struct op_arg inputs[OP_ARGS], outputs[OP_ARGS];
	struct op_problem problem;
	struct op_case c;
};
/* Writes the forward case of `c` to `out`, and returns a pointer to it. `c` must outlive `out`. */
const struct op_case *gradient_forward_of(const struct op_case *c, struct gradient_forward *out);
struct op_problem gradient_forward_problem(const struct op_problem *gradients, struct gradient_forward *out);

/* For an output of the gradient problem, which is the gradient or the slope of an input, gradient_input_of returns this
 * input. For an output of the forward problem, gradient_given_of returns the input that contains the output's given
 * gradient. */
int gradient_input_of(const struct op_problem *gradients, int output);
int gradient_given_of(const struct op_problem *gradients, int forward_output);
/* In the gradient problem, each input "step:x" is the step of an input x. gradient_stepping returns the index of x for
 * the index of "step:x", and gradient_step_of returns the index of "step:x" for the index of x. */
int gradient_stepping(const struct op_problem *gradients, int step);
int gradient_step_of(const struct op_problem *gradients, int input);

/* Implements op.fill for a gradient problem. `fill` is the op.fill of the forward family. The given gradients of
 * outputs are uniform on [-1, 1). */
int gradient_fill(const struct op_case *c, int input, struct tensor *out,
		  int (*fill)(const struct op_case *c, int input, struct tensor *out, struct err *err),
		  struct err *err);
/* Returns the true slope of an input, computed from the input's true gradient. */
double gradient_slope(const struct op_case *c, const struct tensor *in, int input, const double *gradient);

/* Implements op.weigh for a gradient problem. Applies the bounds that the comment at the top of this file describes. */
void gradient_weigh(const struct op_case *c, int output, struct rule rule, const struct tensor *reference,
		    const struct tensor *truth, struct metrics *metrics, struct err *why);

#ifdef __cplusplus
}
#endif
#endif
