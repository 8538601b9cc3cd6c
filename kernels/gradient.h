/* gradient - the gradients of an operation, as a problem of their own.
 *
 * To a definition with inputs x and outputs y belongs the problem whose inputs are x and, for each y of floats, what
 * the loss changes by it; and whose outputs are what the loss changes by each x of floats:
 *
 *   inputs    q, k, …, grad:output, grad:final_state      "grad:" + an output's name, in its dtype and shape
 *   outputs   d_q, d_k, …                                  "d_" + an input's name, in its dtype and shape
 *
 * In float64, whatever the definition declares, a case asks for more: how the loss changes when one input takes a step,
 * (loss(x + step) - loss(x - step)) / 2, from two more runs forwards. That is the definition's own function, which its
 * gradients must belong to, and the truth of it is the sum of truth d_x times step:
 *
 *   inputs    step:q, step:k, …                            2^-16 of the input's elements, of either sign
 *   outputs   slope_q, slope_k, …                          a number each
 *
 * A zero takes no step: gates that are logarithms end there. A difference over both sides is off by the square of the
 * step, 2^-32, and by 1e-5 where references add as much to a norm. Terms of either sign cancel, so that a sum may be a
 * hundredth of what they are: slopes may be off by 1 % (a wrong formula is by more).
 *
 * So everything that is done with a definition's tensors (inputs by name and seed, canaries, two runs, comparison) is
 * done with those of its gradients.
 *
 * How far gradients may be off (gradient_weigh). rule.rtol bounds the error ratio of the whole tensor (atol is 0 unless
 * somebody asks for more),
 *
 *   RMS(reference - truth) <= atol + rtol (RMS(truth) + 1e-8)
 *
 * which is how flash-linear-attention's own tests hold gradients (fla/utils: get_err_ratio, assert_close). A ratio over
 * everything does not see one wrong row of thousands, so no element may be off by more than
 *
 *   8 (atol + rtol (RMS(truth) + |truth|))
 *
 * either. Noise that is spread over 10^7 elements and meets the ratio reaches 5.3 of its deviations; 8 leave room for
 * its being larger where the terms that are summed are. With a ratio of 0.005 an element that is wholly wrong is seen
 * once it is larger than a 24th of the tensor's RMS; with 0.02, than a fifth. Zeros never pass for a truth that is not
 * all zero. */
#ifndef REFTEST_KERNELS_GRADIENT_H
#define REFTEST_KERNELS_GRADIENT_H

#include <string.h>

#include "base/arena.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRADIENT_OF_OUTPUT "grad:"
#define GRADIENT_OF_INPUT  "d_"
#define GRADIENT_STEP	   "step:"
#define GRADIENT_SLOPE	   "slope_"

/* Is it the gradient of an output, among the inputs of such a problem? */
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

/* Does an input or output take part in differentiation? */
static inline bool gradient_takes(const struct op_arg *arg)
{
	return arg->rank != OP_SCALAR && (arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_BFLOAT16 ||
					  arg->dtype == DTYPE_FLOAT16 || arg->dtype == DTYPE_FLOAT64);
}

/* The problem of a definition's gradients; `absent`: inputs that the case does not have, by index. All in `arena`. */
struct op_problem gradient_problem(const struct op_problem *forward, const bool *absent, bool in_float64,
				   struct arena *arena);

/* The definition's own case behind a case of its gradients. Outputs that are no floats are not among `outputs`; in
 * float64, dtypes are float32 (those of tensors tell what they are). */
struct gradient_forward {
	struct op_arg inputs[OP_ARGS], outputs[OP_ARGS];
	struct op_problem problem;
	struct op_case c;
};
/* Fills `out`, which `c` must outlive, and gives its case. */
const struct op_case *gradient_forward_of(const struct op_case *c, struct gradient_forward *out);
struct op_problem gradient_forward_problem(const struct op_problem *gradients, struct gradient_forward *out);

/* The input whose gradient, or slope, an output is; the input that is the gradient of an output of the forward problem.
 */
int gradient_input_of(const struct op_problem *gradients, int output);
int gradient_given_of(const struct op_problem *gradients, int forward_output);
/* The input that a step is of; the step that input `input` takes. */
int gradient_stepping(const struct op_problem *gradients, int step);
int gradient_step_of(const struct op_problem *gradients, int input);

/* op.fill, given that of the definition's own inputs. Gradients of outputs are uniform on [-1, 1). */
int gradient_fill(const struct op_case *c, int input, struct tensor *out,
		  int (*fill)(const struct op_case *c, int input, struct tensor *out, struct err *err),
		  struct err *err);
/* The truth of a slope, from the truth of that input's gradient. */
double gradient_slope(const struct op_case *c, const struct tensor *in, int input, const double *gradient);

/* op.weigh. */
void gradient_weigh(const struct op_case *c, int output, struct rule rule, const struct tensor *reference,
		    const struct tensor *truth, struct metrics *metrics, struct err *why);

#ifdef __cplusplus
}
#endif
#endif
