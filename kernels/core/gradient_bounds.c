#include "kernels/core/gradient_bounds.h"

#include <math.h>
#include <stdio.h>

#include "base/err.h"
#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/random_inputs.h"

/* The elements of a given gradient (the gradient of the loss with respect to an output) are multiples of 2^-GIVEN_BITS,
 * which bfloat16 represents exactly. ELEMENT is the factor 8 in the bound of single elements. If a tensor has fewer
 * than PARALLEL_FROM elements, one thread is faster than several. */
static const double TINY = 1e-8; /* the addend in flash-linear-attention's get_err_ratio */
enum { GIVEN_BITS = 7, ELEMENT = 8 };
enum { PARALLEL_FROM = 1 << 20 };

int gradient_input_of(const struct op_problem *gradients, int output)
{
	const struct op_arg *arg = &gradients->outputs[output];
	size_t prefix = gradient_is_slope(arg) ? sizeof GRADIENT_SLOPE : sizeof GRADIENT_OF_INPUT;

	return op_input_index(gradients, arg->name + prefix - 1);
}

int gradient_stepping(const struct op_problem *gradients, int step)
{
	return op_input_index(gradients, gradients->inputs[step].name + sizeof GRADIENT_STEP - 1);
}

int gradient_step_of(const struct op_problem *gradients, int input)
{
	for (int i = 0; i < gradients->input_count; i++)
		if (gradient_is_step(&gradients->inputs[i]) && gradient_stepping(gradients, i) == input)
			return i;
	return -1;
}

/* Finds the input by counting: the gradients of outputs are inputs of the gradient problem, in the order of the
 * outputs. */
int gradient_given_of(const struct op_problem *gradients, int forward_output)
{
	for (int i = 0; i < gradients->input_count; i++)
		if (gradient_is_given(&gradients->inputs[i]) && forward_output-- == 0)
			return i;
	return -1;
}

static void fill_given(const struct op_case *c, int input, struct tensor *out)
{
	uint64_t key = input_key(c, input);

#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t b = 0; b < (out->elements + 3) / 4; b++) {
		struct philox random = philox_block(key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < out->elements; i++)
			dtype_store_float(out->data, out->dtype, 4 * b + i, uniform_signed(random.word[i], GIVEN_BITS));
	}
}

/* Computes the step of an input. On entry, `out` contains the values of the input; on return, `out` contains the
 * step. */
static void make_step(const struct op_case *c, int input, struct tensor *out)
{
	uint64_t key = input_key(c, input);

	for (int64_t i = 0; i < out->elements; i++) {
		double size = dtype_load(out->data, out->dtype, i) * 0x1p-16;

		dtype_store(out->data, out->dtype, i, (philox_bits(key, i) & 1) != 0 ? size : -size);
	}
}

int gradient_fill(const struct op_case *c, int input, struct tensor *out,
		  int (*fill)(const struct op_case *c, int input, struct tensor *out, struct err *err), struct err *err)
{
	struct gradient_forward forward;
	const struct op_arg *arg = &c->problem->inputs[input];

	if (gradient_is_given(arg)) {
		fill_given(c, input, out);
		return 0;
	}
	if (!gradient_is_step(arg))
		return fill(gradient_forward_of(c, &forward), input, out, err);
	if (fill(gradient_forward_of(c, &forward), gradient_stepping(c->problem, input), out, err) != 0)
		return -1;
	make_step(c, input, out);
	return 0;
}

double gradient_slope(const struct op_case *c, const struct tensor *in, int input, const double *gradient)
{
	const struct tensor *step = &in[gradient_step_of(c->problem, input)];
	double slope = 0;

	for (int64_t i = 0; i < step->elements; i++)
		slope += gradient[i] * dtype_load(step->data, step->dtype, i);
	return slope;
}

/* The root mean squares of the truth and of reference - truth. A root mean square is NaN or infinite if any element
 * is. */
struct sizes {
	double truth, difference;
};

static struct sizes sizes_of(const struct tensor *reference, const struct tensor *truth)
{
	struct sizes sum = {0};
	double count = truth->elements > 0 ? (double)truth->elements : 1;

	for (int64_t i = 0; i < truth->elements; i++) {
		double t = dtype_load(truth->data, truth->dtype, i);
		double d = dtype_load(reference->data, reference->dtype, i) - t;

		sum.truth += t * t;
		sum.difference += d * d;
	}
	return (struct sizes){sqrt(sum.truth / count), sqrt(sum.difference / count)};
}

/* Writes the message about a gradient that misses its bound, for example "gradient 'd_g': the error ratio … is 0.7, but
 * at most 0.02 is allowed; the worst element, at [0, 3, 1], is 0, and the ground truth is 0.25". */
static void say_miss(const char *name, const struct metrics *m, struct rule rule, const struct sizes *sizes,
		     const struct tensor *truth, struct err *why)
{
	double ratio = sizes->difference / (sizes->truth + TINY);
	char what[256], place[128] = "", worst[256] = "";

	if (m->nan_reference > m->nan_ground_truth || m->inf_reference > m->inf_ground_truth)
		snprintf(what, sizeof what, "%lld elements are NaN and %lld are infinite", (long long)m->nan_reference,
			 (long long)m->inf_reference);
	else if (!(sizes->difference <= rule.atol + rule.rtol * (sizes->truth + TINY)))
		snprintf(what, sizeof what,
			 "the error ratio RMS(difference) / RMS(ground truth) is %.3g, but at most %.3g is allowed",
			 ratio, rule.rtol);
	else
		snprintf(what, sizeof what, "%lld of %lld elements differ from the ground truth by more than %.3g + "
		    "%.3g * |ground truth|",
			 (long long)(m->elements - m->hits), (long long)m->elements,
			 ELEMENT * (rule.atol + rule.rtol * sizes->truth), ELEMENT * rule.rtol);
	if (m->worst_count > 0)
		snprintf(worst, sizeof worst, "; the worst element, at %s, is %.5g, and the ground truth is %.5g",
			 check_place(truth, m->worst[0].index, place, sizeof place), m->worst[0].reference,
			 m->worst[0].ground_truth);
	err_set(why, "gradient '%s': %s%s", name, what, worst);
}

void gradient_weigh(const struct op_case *c, int output, struct rule rule, const struct tensor *reference,
		    const struct tensor *truth, struct metrics *metrics, struct err *why)
{
	struct sizes sizes = sizes_of(reference, truth);
	double bound = rule.atol + rule.rtol * (sizes.truth + TINY);
	double ratio = sizes.difference == 0 ? 0 : sizes.difference / bound;
	struct rule element = {ELEMENT * (rule.atol + rule.rtol * sizes.truth), ELEMENT * rule.rtol, rule.hit_ratio};

	compare_host(reference->data, truth->data, truth->dtype, truth->elements, element, metrics);
	if (truth->elements > 0 && !(ratio <= 1))
		metrics->passed = false;
	if (truth->elements > 0 && !(ratio <= metrics->margin))
		metrics->margin = isnan(ratio) ? INFINITY : ratio;
	metrics->zeros_would_pass = metrics->zeros_would_pass && !(sizes.truth > bound);
	if (!metrics->passed)
		say_miss(c->problem->outputs[output].name, metrics, rule, &sizes, truth, why);
}
