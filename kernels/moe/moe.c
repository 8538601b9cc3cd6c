/* moe - computes a mixture of experts: each token is routed to K of E experts, and each expert is a gated two-layer
 * network.
 *
 *   out[t] = sum of w(t, l) * W2[l] (up * silu(gate)) over the experts l to which token t is routed and which are on
 *   this device, where (up, gate) = W1[l] hidden[t]. "up" is the first half of W1's rows; in the activation family, the
 *   gate is the first half.
 *
 * routing.h defines w. Experts of other devices can be selected. The sum by which routing weights are divided includes
 * the scores of these experts, but they add nothing to the output. Hidden states and weights are floats of 8, 16 or 32
 * bits. Hidden states and weights may have scales per block, or an expert's products may have factors. The oracle does
 * not quantise intermediate values, even if the definition names a kernel that quantises them. A kernel that quantises
 * computes a different operation: the root mean square error of such a kernel is 2.6 % with 8-bit intermediate values,
 * and 11 % with MXFP4 weights.
 *
 * Tolerance. Let s be the standard deviation of an output. With this family's inputs, s is between 0.1 and 1 if the
 * routing's factor is 1, and s is proportional to this factor. If routing weights are inputs, s may be 2. In float32, a
 * reference sums H products for the first layer of an expert, and I products for the second. If n terms are added one
 * after the other, the standard error of the sum is 0.43 * 2^-24 sqrt(n / 2) times the sum's standard deviation, or
 * 1.5e-6 times for n = 7168. In the second layer's sum, the errors of the first layer partly cancel. One output element
 * in 10^7 has an error of 5.5 times the standard error 1.5e-6 s, which is 2^-17 s. Therefore atol is 2^-14. If the
 * routing's factor is above 1, atol is multiplied by the factor. The rtol is one ulp of the output's dtype, because two
 * roundings of nearly the same number differ by at most one ulp. A float32 output is not rounded again, and its rtol is
 * 2^-14, like atol. The measured error of torch in float32 on a CPU, for H = 7168 and a factor of 2.5, is 5e-6, a
 * thirtieth of atol.
 *
 * Every element must be within the tolerance (hit ratio 1), even if operands have 8 bits: float32 represents these
 * operands exactly, and nothing is rounded to 8 bits again. If all scales have an error of 2 %, nearly every element is
 * wrong. If the scale of one block in 56 has an error of 2 %, every second element is wrong. If a workload provides
 * hidden states, weights or scales, s is not known. If s is large, atol is too small to matter, and the error of
 * float32 sums exceeds rtol in elements with |out| < 2^-13 s, which are 1e-4 of all elements. Therefore the hit ratio
 * is 0.999. If a workload provides logits, there are ties: 16-bit logits of real routers tie for one token in 14 to 20,
 * and float32 sigmoids for one token in 10^4. A reference may select any of the tied experts. Therefore one token in 8
 * may differ if logits have 16 bits, and one token in 256 if logits are float32. If the case has fewer than 8 tokens
 * (256 if logits are float32), no token may differ.
 *
 * With this family's own inputs, the selection of experts has no ties or near ties, except between two experts whose
 * matrices are equal (the twins, see traffic.h). op.match refuses definitions with renormalised routing and a bias,
 * with weights packed as 4 bits, or with an activation other than silu. */
#include <math.h>
#include <string.h>

#include "kernels/moe/mistakes.h"
#include "kernels/moe/experts.h"
#include "kernels/moe/input_values.h"
#include "kernels/moe/traffic.h"
#include "kernels/core/coverage.h"
#include "kernels/core/simd.h"

enum { PARALLEL_FROM = 1 << 16, BLOCKS = 256, MOST_TOGETHER = 16 };

static const char *const op_types[] = {"moe", NULL};
static const char *const op_words[] = {"moe", "fused_moe", "mixture_of_experts", NULL};

/* --- match and sizes ---------------------------------------------------------------------------------------------- */

static bool all_const(const struct op_problem *problem, const struct op_arg *arg)
{
	for (int d = 0; d < arg->rank; d++)
		if (problem->axes[arg->axis[d]].var && arg->axis[d] != problem->outputs[0].axis[0])
			return false;
	return true;
}

static int64_t if_var(const struct op_problem *problem, int axis, int64_t value)
{
	return problem->axes[axis].var ? value : problem->axes[axis].value;
}

/* Writes the axes of a case with `tokens` tokens. Other var axes get small lengths. */
static void set_axes(const struct op_problem *problem, const struct moe_roles *roles, int64_t tokens, int64_t *axis)
{
	const struct op_arg *w2 = &problem->inputs[roles->weights2];

	op_start_axes(problem, 1, axis);
	op_set_axis(problem, w2->axis[0], 16, axis);
	op_set_axis(problem, w2->axis[1], 256, axis);
	op_set_axis(problem, w2->axis[2], 128, axis);
	op_set_axis(problem, problem->inputs[roles->weights1].axis[1], 2 * axis[w2->axis[2]], axis);
	if (roles->logits >= 0)
		op_set_axis(problem, problem->inputs[roles->logits].axis[1], axis[w2->axis[0]], axis);
	if (roles->ids >= 0)
		op_set_axis(problem, problem->inputs[roles->ids].axis[1], 4, axis);
	op_set_axis(problem, problem->outputs[0].axis[0], tokens, axis);
}

/* Checks that the parameters of the routing are consistent with each other, if all of them are known. */
static int match_numbers(const struct op_problem *problem, const struct moe_roles *roles, int variant, struct err *why)
{
	int64_t axis[OP_ARGS * OP_RANK];
	struct op_case c = {.problem = problem, .variant = variant, .axis = axis};
	struct routing routing;

	if (problem->axis_count > (int)(sizeof axis / sizeof *axis))
		return err_set(why, "the definition has %d axes", problem->axis_count);
	c.constant_count = routing_constants(problem, variant, c.constants);
	for (int i = 0; i < c.constant_count; i++)
		if (isnan(c.constants[i].value))
			return 0;
	if (roles->top_k >= 0 || roles->groups >= 0 || roles->kept_groups >= 0 ||
	    !all_const(problem, &problem->inputs[roles->logits >= 0 ? roles->logits : roles->ids]))
		return 0;
	set_axes(problem, roles, 1, axis);
	return routing_of(&c, roles, &routing, why);
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct moe_roles roles = moe_roles_of(problem);
	int variant;

	if (moe_roles_match(problem, &roles, why) != 0)
		return -1;
	variant = routing_variant(problem, &roles, why);
	if (variant < 0 || match_numbers(problem, &roles, variant, why) != 0)
		return -1;
	return variant | (moe_blocks_first(problem, &roles) ? MOE_BLOCKS_FIRST : 0);
}

static bool heavy(const struct op_problem *problem, const struct moe_roles *roles)
{
	const struct op_arg *w2 = &problem->inputs[roles->weights2];
	double count = 3;

	for (int d = 0; d < w2->rank; d++)
		count *= (double)if_var(problem, w2->axis[d], 1);
	return count > 0x1p30;
}

/* Returns true if a case of many tokens takes little longer than a case of few tokens. Many tokens are cheap if most of
 * them are routed to other devices (traffic.h), or if the experts of a token are small. */
static bool many_are_cheap(const struct op_problem *problem, const struct moe_roles *roles, int variant)
{
	struct op_constant constants[OP_CONSTANTS];
	const struct op_arg *w2 = &problem->inputs[roles->weights2];
	double picks = 2, weights = 3;

	if (heavy(problem, roles))
		return false;
	if (roles->logits >= 0 && w2->axis[0] != problem->inputs[roles->logits].axis[1] &&
	    if_var(problem, problem->inputs[roles->logits].axis[1], 0) > if_var(problem, w2->axis[0], 16))
		return true;
	if (roles->ids >= 0)
		picks = (double)if_var(problem, problem->inputs[roles->ids].axis[1], 4);
	else if (routing_constants(problem, variant, constants) > 0)
		picks = constants[0].value; /* NaN if the number of selected experts is not known */
	for (int d = 1; d < w2->rank; d++)
		weights *= (double)if_var(problem, w2->axis[d], 256);
	return picks * weights <= 0x1p22;
}

enum { BLOCK = 256 };

/* Returns the largest number of tokens of a default case. This number is one more than a multiple of BLOCK. */
static int64_t most_tokens(const struct op_problem *problem, const struct moe_roles *roles, int variant)
{
	return (many_are_cheap(problem, roles, variant) ? 2 : 1) * BLOCK + 1;
}

/* Writes the cases of a size preset. The small cases have one token and 16 tokens. The 16 tokens together select only a
 * few experts, because a reference reads all weights of each selected expert. One medium case has 256 tokens, a
 * multiple of usual block sizes, and the other has 513 tokens, or 257 if many tokens would take too long. Some experts
 * have the numbers of tokens that traffic.h describes. If the experts have more than 2^30 weights, there is no case of
 * one token, because a reference would take half a minute for it on two cores. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct moe_roles roles = moe_roles_of(problem);
	const int64_t tokens[SIZE_COUNT][2] = {{1, 16}, {most_tokens(problem, &roles, variant), BLOCK}, {1024, 0}};
	int count = 0;

	for (int i = size == SIZE_SMALL && heavy(problem, &roles); i < 2 && count < room && tokens[size][i] > 0; i++)
		set_axes(problem, &roles, tokens[size][i], axis + (int64_t)count++ * problem->axis_count);
	return count;
}

/* The cases that --edge adds. Tokens that are routed only to other devices need no edge case, because the default cases
 * have such tokens. */
static const struct op_edge edges[] = {
    {"no_tokens", "if the input has no tokens, the output has no tokens"},
    {"one_token", "with one token, only the experts to which the token is routed have work"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	return op_edge_rows(sizes, problem, variant, edge - 1, axis);
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

static bool is_given(const struct op_case *c, int input)
{
	return input >= 0 && (c->given >> input & 1) != 0;
}

static bool numbers_given(const struct op_case *c, const struct moe_roles *roles)
{
	const int inputs[] = {roles->hidden,	  roles->weights1,  roles->weights2,  roles->hidden_scale,
			      roles->scale1,	  roles->scale2,    roles->factor_up, roles->factor_gate,
			      roles->factor_down, roles->id_weights};

	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
		if (is_given(c, inputs[i]))
			return true;
	return roles->id_weights < 0 && is_given(c, roles->ids);
}

/* Returns the fraction of tokens whose output may differ from the ground truth, because a near tie may change which
 * experts are selected. */
static double undecided(const struct op_case *c, const struct moe_roles *roles)
{
	int64_t tokens = c->axis[c->problem->outputs[0].axis[0]], one_in = 256;

	if (!is_given(c, roles->logits) && !is_given(c, roles->bias))
		return 0;
	if (c->problem->inputs[roles->logits].dtype != DTYPE_FLOAT32)
		one_in = 8;
	return tokens > 0 ? (double)(tokens / one_in) / (double)tokens : 0;
}

static struct rule rule(const struct op_case *c, int output)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	double factor = roles.scaling >= 0 ? fabs(c->scalar[roles.scaling]) : 1, rtol = 0x1p-14;
	struct rule r;

	if (c->problem->outputs[output].dtype != DTYPE_FLOAT32)
		rtol = c->problem->outputs[output].dtype == DTYPE_BFLOAT16 ? 0x1p-7 : 0x1p-10;
	r = (struct rule){factor > 1 ? 0x1p-14 * factor : 0x1p-14, rtol, 1 - undecided(c, &roles)};
	if (numbers_given(c, &roles))
		r.hit_ratio -= 0.001;
	return r;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* Returns the number of this device's first expert. In cases of more than 16 tokens, this device is the last one if the
 * number of tokens is even; otherwise, it is in the middle of all devices. If `uneven` is true, the offset is not a
 * multiple of the number of local experts. */
static int64_t offset_of(const struct moe_extent *e, bool uneven)
{
	int64_t others = e->experts - e->local, middle, offset = others / 3;

	if (e->local < 1 || others < 1)
		return 0;
	if (e->tokens > 16 && e->tokens % 2 == 0)
		return others;
	middle = e->experts / 2 / e->local * e->local;
	if (offset % e->local == 0)
		offset++;
	return !uneven ? middle : offset == middle ? offset - 1 : offset;
}

/* Returns the value of a Python scalar. If only scalars determine the routing, 2 of 4 groups are kept in the first set
 * of values, and other numbers of groups in the second set. A reference may cache a result with the value of one scalar
 * as the key, although the result also depends on other scalars. To reveal this, each small case has one scalar with
 * the same value in both sets, while other scalars differ: the factor in the case of one token (2.5, as in
 * DeepSeek-V3), and the offset in the case of 16 tokens. If there is no case of one token, both scalars differ in the
 * case of 16 tokens. With one token, the offset of the second set is 0. With more than 16 tokens, the factor is below 1
 * in the first set and exactly 1 in the second. These values are tested because a reference may treat a factor of 1, or
 * an offset of 0, as an absent scalar. The factor is the only scalar with a default, which is 1. */
static double scalar(const struct op_case *c, int input)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct moe_extent e = moe_extent_of(c, &roles);
	bool second = c->contents == CONTENTS_SECOND, grouped = e.experts % 4 == 0 && e.experts >= 16;
	bool few = e.tokens > 1 && e.tokens <= 16;

	if ((c->absent >> input & 1) != 0)
		return input == roles.scaling ? 1 : (double)NAN;
	if (input == roles.offset)
		return second && e.tokens == 1 ? 0 : (double)offset_of(&e, few && (second || !heavy(c->problem, &roles)));
	if (input == roles.scaling)
		return e.tokens == 1 ? 2.5 : few ? (second ? 1.75 : 2.5) : second ? 1 : 0.625;
	if (input == roles.groups)
		return !grouped ? 1 : second ? 2 : 4;
	if (input == roles.kept_groups)
		return !grouped ? 1 : second ? 1 : 2;
	if (e.experts <= 2)
		return second && e.experts == 2 ? 2 : 1;
	return !second ? 2 : e.experts >= 16 ? 3 : 1;
}

/* Returns the exponent e for which `size` * 2^e is between `wanted` / 2 and `wanted`. The exponent is the same on every
 * machine, because the function only compares and multiplies by powers of two. */
static int exponent_for(double size, double wanted)
{
	int exponent = 0;

	while (exponent > -40 && size > wanted) {
		size /= 2;
		exponent--;
	}
	while (exponent < 40 && 2 * size <= wanted) {
		size *= 2;
		exponent++;
	}
	return exponent;
}

static bool is_narrow(const struct op_case *c, int input)
{
	return dtype_bits(c->problem->inputs[input].dtype) == 8;
}

/* Returns the root mean square of an input. The root mean square is 0.58 for uniform numbers without scales. With
 * scales, it is 1.32 times as large, because the root mean square of a scale is 1.32. */
static double size_of(int scale)
{
	return 0.58 * (scale >= 0 ? 1.32 : 1);
}

/* Returns the input that is multiplied by a power of two to scale a matrix product: the factor if there is one, else
 * the scale, else the weights. */
static int carrier(int factor, int scale, int weights)
{
	return factor >= 0 ? factor : scale >= 0 ? scale : weights;
}

struct exponents {
	int hidden, hidden_scale, weights1, weights2; /* exponents of the powers of two by which elements are
						       * multiplied; CODES: the elements resemble quantised data */
	int first, second; /* first: the exponent of the factors for "up" and for the gate; second: the exponent of the
			    * factor for the second product */
	int up;            /* the exponent of the factor of "up" minus that of the gate */
};

/* CODES is the exponent of numbers that resemble quantised data. Their largest magnitude is 448, which is 7/8 *
 * 2^CODES_LARGER. In the other set of values, magnitudes are below 1. */
enum { CODES = 6, CODES_LARGER = 9, SUBNORMAL = -5, STEEPER = 3, STEEPEST = 6, LOUDER = 3, LOUDEST = 16, WEIGHTY = 4, LOUD = 10 };

/* Moves a power of two from a product's scale or factor (exponent `product`) to its weights (exponent `weights`). */
static void share(bool quantiser, int *weights, int *product)
{
	*weights = quantiser ? CODES : *product > 0 ? 0 : *product < SUBNORMAL ? SUBNORMAL : *product;
	*product -= quantiser ? CODES_LARGER : *weights;
}

/* Returns true if the dtype of an input represents numbers beyond the range of float16. */
static bool is_wide(const struct op_case *c, int input)
{
	return input >= 0 && (c->problem->inputs[input].dtype == DTYPE_FLOAT32 ||
	                      c->problem->inputs[input].dtype == DTYPE_BFLOAT16);
}

/* Makes some scales and factors of the second set of values large, and others smaller by the same factor, so that
 * products do not change. In a case of one token or of BLOCK tokens, the scales of the hidden states and the factors of
 * "up" are large. In other cases, the scales or factors of the first product and the factors of the second product are
 * large. A single token may select no steep expert; of BLOCK tokens, some select one. */
static void make_loud(const struct op_case *c, const struct moe_roles *roles, struct exponents *x)
{
	int64_t tokens = c->axis[c->problem->outputs[0].axis[0]];
	int loud = tokens == 1 || tokens == BLOCK ? LOUD : -LOUD;

	if (is_wide(c, roles->hidden_scale) && is_wide(c, roles->factor_up >= 0 ? roles->factor_up : roles->scale1)) {
		x->hidden_scale += loud;
		x->first -= loud;
	}
	if (is_wide(c, roles->factor_up) && is_wide(c, roles->factor_down) && roles->factor_up != roles->factor_gate) {
		x->up += loud;
		x->second -= loud;
	}
}

static struct exponents exponents_of(const struct op_case *c, const struct moe_roles *roles)
{
	struct moe_extent e = moe_extent_of(c, roles);
	double factor = roles->factor_up >= 0 ? 1.32 : 1;
	double first = sqrt((double)e.hidden) * size_of(roles->hidden_scale) * factor * size_of(roles->scale1);
	double second = sqrt((double)e.intermediate) * factor * size_of(roles->scale2);
	struct exponents x = {0};
	bool quantiser = c->contents == CONTENTS_FIRST, carried = roles->factor_up >= 0 || roles->scale1 >= 0;

	x.first = exponent_for(first, 2);
	first = ldexp(first, x.first);
	/* the root mean square of up * silu(gate) is about 0.6 first^2 */
	x.second = exponent_for(second * 0.6 * first * first, 1);
	if (carried && is_narrow(c, roles->weights1))
		share(quantiser, &x.weights1, &x.first);
	if (carried && is_narrow(c, roles->weights2))
		share(quantiser, &x.weights2, &x.second);
	if (is_narrow(c, roles->hidden) && quantiser && (carried || roles->hidden_scale >= 0)) {
		x.hidden = CODES;
		*(roles->hidden_scale >= 0 ? &x.hidden_scale : &x.first) -= CODES_LARGER;
	} else if (!is_narrow(c, roles->hidden) && !quantiser) {
		bool wide = is_wide(c, roles->hidden) && is_wide(c, carrier(roles->factor_up, roles->scale1, roles->weights1));

		x.hidden = wide ? LOUDEST : LOUDER;
		x.first -= x.hidden;
	} else if (!is_narrow(c, roles->hidden) && !carried && !is_narrow(c, roles->weights1)) {
		x.hidden = x.first - WEIGHTY;
		x.first = WEIGHTY;
	}
	if (!quantiser)
		make_loud(c, roles, &x);
	return x;
}

/* Scales an input so that every second expert is steep (input_values.h). `parts` is the number of elements per expert
 * in this input. If `gate` is true, the input belongs to the gate and is scaled up; if `halves` is also true, only the
 * second half of an expert's elements is scaled. If `gate` is false, the input belongs to the second product and is
 * scaled down. */
static void make_steep(const struct op_case *c, struct moe_fill *f, int64_t parts, bool gate, bool halves)
{
	int64_t expert = c->contents == CONTENTS_FIRST ? parts : 0;

	f->period = 2 * parts;
	f->from = expert + (gate && halves ? parts / 2 : 0);
	f->until = expert + parts;
	f->extra = c->contents == CONTENTS_FIRST ? STEEPER : STEEPEST;
	f->extra = gate ? f->extra : -f->extra;
}

/* Returns true if the gates of some experts can be scaled by a power of two. This is not possible for 8-bit weights
 * without a scale, which cannot represent the scaled values. */
static bool can_be_steep(const struct op_case *c, const struct moe_roles *roles)
{
	if (roles->factor_gate >= 0)
		return true;
	if (roles->scale1 >= 0)
		return c->axis[c->problem->inputs[roles->scale1].axis[1]] % 2 == 0;
	return !is_narrow(c, roles->weights1) && !is_narrow(c, roles->weights2);
}

static void set_steepness(const struct op_case *c, const struct moe_roles *roles, int input, struct moe_fill *f)
{
	const struct op_arg *arg = &c->problem->inputs[input];
	int64_t parts = 1;

	if (!can_be_steep(c, roles))
		return;
	for (int d = 1; d < arg->rank; d++)
		parts *= c->axis[arg->axis[d]];
	if (input == roles->factor_gate || (roles->factor_gate < 0 && input == carrier(-1, roles->scale1, roles->weights1)))
		make_steep(c, f, parts, true, input != roles->factor_gate);
	else if (input == carrier(roles->factor_down, roles->scale2, roles->weights2))
		make_steep(c, f, parts, false, false);
}

struct moe_fill moe_fill_of(const struct op_case *c, const struct moe_roles *roles, int input)
{
	struct moe_fill f = {.key = input_key(c, input), .kind = MOE_STRUCTURE};
	struct exponents x = exponents_of(c, roles);

	if (input == roles->logits || input == roles->bias || input == roles->ids || input == roles->id_weights)
		return f;
	if (input == roles->weights1 || input == roles->weights2)
		f.kind = is_narrow(c, input) ? MOE_UNIFORM : MOE_FINE;
	else
		f.kind = input == roles->hidden ? MOE_UNIFORM : MOE_SCALE;
	f.exponent = input == roles->hidden ? x.hidden : input == roles->hidden_scale ? x.hidden_scale :
		     input == roles->weights1 ? x.weights1 : input == roles->weights2 ? x.weights2 : 0;
	f.times = f.kind == MOE_UNIFORM && f.exponent == CODES ? 7 : 1;
	if (input == carrier(roles->factor_up, roles->scale1, roles->weights1) || input == roles->factor_gate)
		f.exponent += x.first;
	if (input == roles->factor_up)
		f.exponent += x.up;
	if (input == carrier(roles->factor_down, roles->scale2, roles->weights2))
		f.exponent += x.second;
	set_steepness(c, roles, input, &f);
	return f;
}

/* A table of the bits of all possible elements of kind MOE_UNIFORM. The index of an element is the random byte from
 * which the element is computed. */
struct codes {
	uint32_t bits[256];
	int bytes; /* the size of an element of the dtype */
};

static struct codes codes_of(const struct moe_fill *f, enum dtype dtype)
{
	struct codes codes = {.bytes = dtype_bits(dtype) / 8};

	for (uint32_t i = 0; i < 256; i++) {
		struct philox random = {{i, 0, 0, 0}};

		dtype_store_float(&codes.bits[i], dtype, 0, moe_element(f, 0, &random));
	}
	return codes;
}

/* Stores `count` elements of the C type `type`, one for each random byte. A random word has four bytes, and some bytes
 * of the last word may not be needed. */
#define STORE(type)                                                                                                    \
	{                                                                                                              \
		type *to = (type *)out + first;                                                                        \
		int64_t whole = count / 4;                                                                             \
                                                                                                                       \
		for (int64_t i = 0; i < whole; i++) {                                                                  \
			to[4 * i] = (type)codes->bits[random[i] & 255];                                                \
			to[4 * i + 1] = (type)codes->bits[random[i] >> 8 & 255];                                       \
			to[4 * i + 2] = (type)codes->bits[random[i] >> 16 & 255];                                      \
			to[4 * i + 3] = (type)codes->bits[random[i] >> 24];                                            \
		}                                                                                                      \
		for (int64_t i = 4 * whole; i < count; i++)                                                            \
			to[i] = (type)codes->bits[random[i / 4] >> 8 * (i % 4) & 255];                                 \
	}

static void store_bytes(const struct codes *codes, const uint32_t *random, int64_t first, int64_t count, void *out)
{
	if (codes->bytes == 1)
		STORE(uint8_t)
	else if (codes->bytes == 2)
		STORE(uint16_t)
	else if (codes->bytes == 4)
		STORE(uint32_t)
}

/* Computes elements of kind MOE_FINE as moe_element does, two from each random word. The multiplication by 2^extra is
 * exact. */
WIDE static void make_fine(const struct moe_fill *f, int64_t start, const uint32_t *random, int64_t count, float *values)
{
	float unit = float_power(f->exponent - 15), extra = float_power(f->extra);

	for (int64_t i = 0; i < (count + 1) / 2; i++) {
		values[2 * i] = (float)((int)(random[i] & 0xffff) - 32768) * unit;
		values[2 * i + 1] = (float)((int)(random[i] >> 16) - 32768) * unit;
	}
	if (f->period == 0)
		return;
	for (int64_t at = -(start % f->period); at < count; at += f->period) { /* for each period that overlaps with
										* `values` */
		int64_t from = at + f->from > 0 ? at + f->from : 0, until = at + f->until < count ? at + f->until : count;

		for (int64_t i = from; i < until; i++)
			values[i] *= extra;
	}
}

/* Fills the elements of BLOCKS Philox blocks, starting with block `first`. */
static void fill_blocks(const struct moe_fill *f, const struct codes *codes, int64_t first, struct tensor *out)
{
	int together = moe_together(f->kind);
	int64_t start = first * together, left = out->elements - start;
	int64_t count = left < BLOCKS * together ? left : BLOCKS * together;
	struct philox random[BLOCKS];

	philox_run(f->key, first, (count + together - 1) / together, (uint32_t *)random);
	if (f->kind == MOE_UNIFORM)
		store_bytes(codes, (const uint32_t *)random, start, count, out->data);
	else {
		float values[BLOCKS * MOST_TOGETHER];

		if (f->kind == MOE_FINE)
			make_fine(f, start, (const uint32_t *)random, count, values);
		else
			for (int64_t i = 0; i < count; i++)
				values[i] = moe_element(f, start + i, &random[i / together]);
		dtype_store_float_run(out->data, out->dtype, start, count, values);
	}
}

static void fill_bulk(const struct moe_fill *f, struct tensor *out)
{
	int64_t blocks = (out->elements + moe_together(f->kind) - 1) / moe_together(f->kind);
	struct codes codes = codes_of(f, out->dtype);

#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t first = 0; first < blocks; first += BLOCKS)
		fill_blocks(f, &codes, first, out);
}

struct moe_copy moe_copy_of(const struct op_case *c, const struct moe_roles *roles, int input)
{
	const struct op_arg *arg = &c->problem->inputs[input], *w2 = &c->problem->inputs[roles->weights2];
	struct routing routing;
	int64_t from, to, parts = 1;

	if (input == roles->logits || input == roles->hidden || input == roles->hidden_scale || arg->rank < 1 ||
	    arg->axis[0] != w2->axis[0] || routing_of(c, roles, &routing, NULL) != 0 ||
	    !traffic_twins(c, roles, &routing, &from, &to))
		return (struct moe_copy){0, 0, 0};
	for (int d = 1; d < arg->rank; d++)
		parts *= c->axis[arg->axis[d]];
	return (struct moe_copy){dtype_bytes(arg->dtype, from * parts), dtype_bytes(arg->dtype, to * parts),
				 dtype_bytes(arg->dtype, parts)};
}

static void copy_twin(const struct op_case *c, const struct moe_roles *roles, int input, struct tensor *out)
{
	struct moe_copy copy = moe_copy_of(c, roles, input);

	if (copy.bytes > 0)
		memcpy((char *)out->data + copy.to, (char *)out->data + copy.from, (size_t)copy.bytes);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct moe_fill f = moe_fill_of(c, &roles, input);
	struct routing routing;

	if (routing_of(c, &roles, &routing, err) != 0 || moe_extent_check(c, &roles, err) != 0)
		return -1;
	if (f.kind == MOE_STRUCTURE)
		traffic_fill(c, &roles, &routing, input, out);
	else {
		fill_bulk(&f, out);
		copy_twin(c, &roles, input, out);
	}
	return 0;
}

/* --- checks of a workload's inputs -------------------------------------------------------------------------------- */

static int check_ids(const struct op_case *c, const struct moe_roles *roles, const struct tensor *ids, struct err *err)
{
	struct moe_extent e = moe_extent_of(c, roles);

	for (int64_t i = 0; i < ids->elements; i++) {
		int64_t id = (int64_t)dtype_load(ids->data, ids->dtype, i);
		int64_t expert = roles->id_weights < 0 ? id >> 16 : id;

		if (expert < 0 || expert >= e.experts)
			return err_set(err, "%s lists expert %lld at flat index %lld, but the experts are numbered "
					    "0 to %lld",
				       c->problem->inputs[roles->ids].name, (long long)expert, (long long)i,
				       (long long)e.experts - 1);
		if (roles->id_weights < 0 && !isfinite(float_from_bf16((uint16_t)(id & 0xffff))))
			return err_set(err, "%s has, in the element at flat index %lld, a routing weight that is NaN or infinite",
				       c->problem->inputs[roles->ids].name, (long long)i);
	}
	return 0;
}

static int check_finite(const struct op_case *c, int input, const struct tensor *in, struct err *err)
{
	for (int64_t i = 0; i < in->elements; i++)
		if (!isfinite(dtype_load(in->data, in->dtype, i)))
			return err_set(
			    err,
			    "%s has a value that is NaN or infinite at flat index %lld; all values must be finite",
			    c->problem->inputs[input].name, (long long)i);
	return 0;
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct moe_extent e = moe_extent_of(c, &roles);
	struct routing routing;

	if (routing_of(c, &roles, &routing, err) != 0)
		return -1;
	if (e.offset < 0 || e.offset > e.experts - e.local)
		return err_set(err, "this device has %lld experts from number %lld on, but there are only %lld experts, numbered from 0",
			       (long long)e.local, (long long)e.offset, (long long)e.experts);
	for (int i = 0; i < c->problem->input_count; i++) {
		if (in[i].data == NULL)
			continue;
		if (i == roles.ids && check_ids(c, &roles, &in[i], err) != 0)
			return -1;
		if (i != roles.ids && check_finite(c, i, &in[i], err) != 0)
			return -1;
	}
	return 0;
}

/* --- ranges that the default cases cover -------------------------------------------------------------------------- */

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	struct moe_roles roles = moe_roles_of(problem);

	if (axis != problem->outputs[0].axis[0])
		return (struct op_reach){0, 0};
	return (struct op_reach){most_tokens(problem, &roles, variant), BLOCK};
}

/* Widens `out`, the range of values that the default cases must cover, by the range of the values that are computed
 * from `f`. Uniform numbers must reach nine tenths of their limits. Scales and factors are a power of two times numbers
 * from 0.5 to 2; some of these numbers must be below 1.2, and some above. */
static void widen(const struct moe_fill *f, struct op_range *out)
{
	int low = f->exponent + (f->extra < 0 ? f->extra : 0), high = f->exponent + (f->extra > 0 ? f->extra : 0);
	double least = f->kind == MOE_SCALE ? ldexp(1.2, low) : ldexp(-0.9 * f->times, high);
	double most = f->kind == MOE_SCALE ? ldexp(1.2, high) : ldexp(0.9 * f->times, high);

	out->least = fmin(out->least, least);
	out->most = fmax(out->most, most);
}

/* Logits range from values for which sigmoids and softmaxes saturate to values for which they vanish, and biases have
 * both signs. The scaling factor is above 1 in some cases and below 1 in others. Hidden states, weights and scales
 * resemble quantised data in one set; in the other, numbers are below 1 and scales are around 1. Given experts have no
 * range, because the number of any existing expert is valid. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct moe_roles roles = moe_roles_of(problem);
	int64_t axis[OP_ARGS * OP_RANK];
	struct op_case c = {.problem = problem, .variant = variant, .axis = axis};

	*out = (struct op_range){0, 0};
	if (input == roles.scaling)
		*out = (struct op_range){0.625, 2.5};
	else if (input == roles.logits)
		*out = (variant & MOE_METHOD) == MOE_RENORMALISE ? (struct op_range){-106, 100} : (struct op_range){-5, 4};
	else if (input == roles.bias)
		*out = (struct op_range){-0.9, 0.4};
	else if (input == roles.id_weights)
		*out = (struct op_range){-1.5, 1.9};
	if (out->most > 0)
		return true;
	if (input == roles.ids || problem->inputs[input].rank == OP_SCALAR ||
	    problem->axis_count > (int)(sizeof axis / sizeof *axis))
		return false;
	set_axes(problem, &roles, 16, axis);
	*out = (struct op_range){INFINITY, -INFINITY};
	for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
		struct moe_fill f;

		c.contents = (enum op_contents)contents;
		f = moe_fill_of(&c, &roles, input);
		widen(&f, out);
	}
	return true;
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct routing routing;

	if (routing_of(c, &roles, &routing, err) != 0 || moe_extent_check(c, &roles, err) != 0)
		return -1;
	return experts_oracle(c, &roles, &routing, in, &out[0], err);
}

static const struct op_mode modes[] = {
    {"given", MOE_METHOD, MOE_GIVEN},
    {"deepseek", MOE_METHOD, MOE_DEEPSEEK},
    {"renormalise", MOE_METHOD, MOE_RENORMALISE},
    {"llama4", MOE_METHOD, MOE_LLAMA4},
    {"weights_on_input", MOE_WEIGHT_ON_INPUT, MOE_WEIGHT_ON_INPUT},
    {"blocks_first", MOE_BLOCKS_FIRST, MOE_BLOCKS_FIRST},
    {NULL, 0, 0},
};

static double local_part(const struct coverage_view *view, const struct op_coverage *row)
{
	struct moe_roles roles = moe_roles_of(view->c->problem);
	struct moe_extent e = moe_extent_of(view->c, &roles);

	(void)row;
	return e.experts > 0 ? (double)e.local / (double)e.experts : (double)NAN;
}

static double groups(const struct coverage_view *view, const struct op_coverage *row)
{
	struct moe_roles roles = moe_roles_of(view->c->problem);
	struct routing routing;

	(void)row;
	return routing_of(view->c, &roles, &routing, NULL) == 0 ? (double)routing.groups : (double)NAN;
}

static const struct op_coverage coverage[] = {
    {"routing", coverage_mode, .role = "given|deepseek|renormalise|llama4",
     .values = {{"given", 1, 1, "gets the chosen experts"}, {"DeepSeek", 2, 2, "routes as DeepSeek-V3"},
		{"renormalised", 3, 3, "renormalises the weights of the chosen experts"},
		{"Llama 4", 4, 4, "routes as Llama 4"}}},
    {"weights", coverage_dtype, .role = "weights1",
     .values = {{"float8", DTYPE_FLOAT8_E4M3FN, DTYPE_FLOAT8_E5M2, "has float8 weights"},
		{"bfloat16", DTYPE_BFLOAT16, DTYPE_BFLOAT16, "has bfloat16 weights"}, {"other", 0, DTYPE_COUNT, NULL}}},
    COVERAGE_OPTION("scales of weights", "scale1", "of blocks", "has scales of blocks of weights", "none",
		    "has weights without scales of blocks"),
    COVERAGE_OPTION("factors of experts", "factor_up", "given", "has a factor for each expert", "none",
		    "has no factors of experts"),
    COVERAGE_OPTION("scales of hidden states", "hidden_scale", "given", "has scales of hidden states", "none",
		    "has hidden states without scales"),
    COVERAGE_OPTION("routing bias", "bias", "given", "has a routing bias", "none", "has no routing bias"),
    {"local experts", local_part,
     .values = {{"all", 1, 1, "has all experts on one device"}, {"some", 0, 0.9999, "has only some of the experts on one device"}}},
    {"groups", groups,
     .values = {{"one", 0, 1, "has one group of experts"}, {"several", 2, 0x1p62, "has several groups of experts"}}},
    COVERAGE_ROWS("output"),
    {.name = NULL},
};

const struct op moe_op = {
    .name = "moe",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = moe_role_names,
    .bind = moe_bind,
    .modes = modes,
    .mistakes = moe_mistakes,
    .coverage = coverage,
    .sizes = sizes,
    .medium_runs = LAST_MEDIUM_RUNS_TWICE,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = routing_constants,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
