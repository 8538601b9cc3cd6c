/* test_gradient - gradient cases: the backward problem that is derived from a definition, and its tolerance rules. Each
 * element of the oracle's gradients equals a central difference of the oracle's forward operation. */
#include "tests/unit/recurrence_world.h"

#include "kernels/core/gradient_bounds.h"

extern const struct op gla_op, simple_gla_op, delta_rule_op, gated_delta_rule_op, kda_op, gdn_op;

static const struct op_axis oblong[] = AXES(2, 2, 4, 6), grouped[] = AXES(1, 2, 4, 4), wide[] = AXES(2, 4, 6, 4);

#define HALF_KEY_GATE {"g", DTYPE_BFLOAT16, 4, {B, T, HV, K}, false, NULL}
#define PACKED_KEY_GATE {"g", DTYPE_BFLOAT16, 3, {TOTAL, HV, K}, false, NULL}
#define PACKED_HEAD_GATE {"g", DTYPE_BFLOAT16, 2, {TOTAL, HV}, false, NULL}
#define PACKED_BETA {"beta", DTYPE_FLOAT32, 2, {TOTAL, HV}, false, NULL}
#define BOUND SCALAR("lower_bound", DTYPE_FLOAT32)
#define V_FIRST_STATE {"initial_state", DTYPE_FLOAT32, 4, {B, HV, V, K}, false, NULL}
#define V_FIRST_LAST {"final_state", DTYPE_FLOAT32, 4, {B, HV, V, K}, false, NULL}

static const struct op_arg by_key[] = {QUERY, KEY, VALUE, HALF_KEY_GATE, SCALE, STATE};
static const struct op_arg no_state[] = {QUERY, KEY, VALUE, HEAD_GATE};
static const struct op_arg gamma_packed[] = {
    PACKED_QUERY, PACKED_KEY, PACKED_VALUE, {"g_gamma", DTYPE_FLOAT32, 1, {HV}, false, NULL}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg ungated[] = {QUERY, KEY, VALUE, BETA, SCALE, STATE};
static const struct op_arg softplus_packed[] = {
    PACKED_QUERY, PACKED_KEY, PACKED_VALUE, PACKED_HEAD_GATE, A_LOG, HEAD_BIAS,
    PACKED_BETA,  CU_SEQLENS, PACKED_STATE};
static const struct op_arg turned[] = {QUERY, KEY, VALUE, HEAD_GATE, BETA, V_FIRST_STATE};
static const struct op_arg bounded[] = {
    QUERY, KEY, VALUE, HALF_KEY_GATE, A_LOG, {"dt_bias", DTYPE_FLOAT32, 2, {HV, K}, false, NULL}, BETA, BOUND};
static const struct op_arg softplus_by_key[] = {
    PACKED_QUERY, PACKED_KEY, PACKED_VALUE, PACKED_KEY_GATE, A_LOG, {"dt_bias", DTYPE_FLOAT32, 1, {FLAT}, false, NULL},
    PACKED_BETA,  CU_SEQLENS, PACKED_STATE};
static const struct op_arg gated_net[] = {PACKED_QUERY,
					  PACKED_KEY,
					  PACKED_VALUE,
					  {"state", DTYPE_FLOAT32, 4, {N, HV, V, K}, true, NULL},
					  A_LOG,
					  {"a", DTYPE_BFLOAT16, 2, {TOTAL, HV}, false, NULL},
					  HEAD_BIAS,
					  {"b", DTYPE_BFLOAT16, 2, {TOTAL, HV}, false, NULL},
					  CU_SEQLENS,
					  SCALE};
static const struct op_arg gated_net_out[] = {PACKED_OUTPUT, {"new_state", DTYPE_FLOAT32, 4, {N, HV, V, K}, false, NULL}};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, output_alone[] = {OUTPUT},
			   turned_out[] = {OUTPUT, V_FIRST_LAST};
static const struct op_arg packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

static const struct {
	const struct op *op;
	struct op_problem problem;
	bool packed;
} forms[] = {
    {&gla_op, PROBLEM("gla", "gla", oblong, by_key, dense_out), false},
    {&gla_op, PROBLEM("gla_qk_l2norm", "gla", grouped, by_key, dense_out), false},
    {&simple_gla_op, PROBLEM("simple_gla", "simple_gla", oblong, no_state, output_alone), false},
    {&simple_gla_op, PROBLEM("simple_gla_gamma", "simple_gla", wide, gamma_packed, packed_out), true},
    {&delta_rule_op, PROBLEM("delta_rule_qk_l2norm", "delta_rule", oblong, ungated, dense_out), false},
    {&gated_delta_rule_op,
     PROBLEM("gated_beta_sigmoid_neg_eigval", "gated_delta_rule", wide, softplus_packed, packed_out), true},
    {&gated_delta_rule_op, PROBLEM("gated_v_first", "gated_delta_rule", grouped, turned, turned_out), false},
    {&kda_op, PROBLEM("kda_beta_sigmoid", "kda", wide, bounded, output_alone), false},
    {&kda_op, PROBLEM("kda", "kda", grouped, softplus_by_key, packed_out), true},
    {&gdn_op, PROBLEM("gdn_prefill", "gdn", wide, gated_net, gated_net_out), true},
    {&gdn_op, PROBLEM("gdn_l2norm_k_last", "gdn", grouped, gated_net, gated_net_out), true},
};

/* --- the problem -------------------------------------------------------------------------------------------------- */

static void a_problem_of_gradients_is_derived_and_reversed(void **state)
{
	const struct op_problem *forward = &forms[0].problem;
	bool absent[OP_ARGS] = {false};
	struct gradient_forward back;
	struct arena arena = {0};

	(void)state;
	struct op_problem made = gradient_problem(forward, absent, false, &arena);

	assert_int_equal(made.input_count, 8);
	assert_int_equal(made.output_count, 5); /* the gradients of q, k, v, g and initial_state; the scale has no
						 * gradient */
	assert_string_equal(made.inputs[0].name, "q");
	assert_string_equal(made.inputs[6].name, "grad:output");
	assert_string_equal(made.inputs[7].name, "grad:final_state");
	assert_string_equal(made.outputs[3].name, "d_g");
	assert_true(made.inputs[6].dtype == DTYPE_BFLOAT16 && made.outputs[4].dtype == DTYPE_FLOAT32);
	assert_int_equal(gradient_input_of(&made, 4), 5);
	assert_int_equal(gradient_given_of(&made, 1), 7);
	struct op_problem again = gradient_forward_problem(&made, &back);

	assert_int_equal(again.input_count, forward->input_count);
	assert_int_equal(again.output_count, forward->output_count);
	for (int i = 0; i < again.input_count; i++)
		assert_string_equal(again.inputs[i].name, forward->inputs[i].name);
	assert_string_equal(again.outputs[1].name, "final_state");

	absent[5] = true;
	assert_int_equal(gradient_problem(forward, absent, false, &arena).output_count, 4);
	made = gradient_problem(forward, absent, true, &arena);
	assert_int_equal(made.input_count, 12);
	assert_int_equal(made.output_count, 8);
	assert_string_equal(made.inputs[8].name, "step:q");
	assert_string_equal(made.outputs[7].name, "slope_g");
	assert_true(made.inputs[0].dtype == DTYPE_FLOAT64 && made.outputs[7].rank == 0);
	assert_int_equal(gradient_input_of(&made, 7), 3);
	assert_int_equal(gradient_step_of(&made, 3), 11);
	assert_int_equal(gradient_stepping(&made, 11), 3);
	assert_true(gradient_forward_problem(&made, &back).inputs[0].dtype == DTYPE_FLOAT32);
	arena_free(&arena);
}

/* --- tolerance rules of gradients --------------------------------------------------------------------------------- */

enum { ROWS = 100000, COLUMNS = 16 };

static bool passes_by(struct rule rule, const float *found, const float *truth, const char *says)
{
	static const struct op_arg one = {.name = "d_q", .dtype = DTYPE_FLOAT32, .rank = 2};
	const struct op_problem problem = {.outputs = &one, .output_count = 1};
	const struct op_case c = {.problem = &problem};
	struct tensor a = {.dtype = DTYPE_FLOAT32, .rank = 2, .shape = {ROWS, COLUMNS}, .elements = ROWS * COLUMNS},
		      b = a;
	struct metrics metrics = {0};
	struct err why = {""};

	a.data = (void *)(uintptr_t)found;
	b.data = (void *)(uintptr_t)truth;
	gradient_weigh(&c, 0, rule, &a, &b, &metrics, &why);
	if (!metrics.passed && (says == NULL || strstr(why.text, says) == NULL))
		fail_msg("it says: %s", why.text);
	assert_true(metrics.passed == (metrics.margin <= 1));
	return metrics.passed;
}

static bool passes(const float *found, const float *truth, const char *says)
{
	return passes_by((struct rule){0, 0.005, 1}, found, truth, says);
}

static void gradients_are_held_as_a_whole_and_one_by_one(void **state)
{
	float *truth = malloc(sizeof *truth * ROWS * COLUMNS), *found = malloc(sizeof *found * ROWS * COLUMNS);

	(void)state;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		truth[i] = uniform_signed(philox_bits(1, i), 20);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		found[i] = 1.0049f * truth[i];
	assert_true(passes(found, truth, NULL));
	for (int i = 0; i < ROWS * COLUMNS; i++)
		found[i] = 1.0051f * truth[i];
	assert_false(
	    passes(found, truth, "the error ratio RMS(difference) / RMS(ground truth) is 0.0051, but at most 0.005 is allowed"));

	assert_true(passes_by((struct rule){0.1, 0, 1}, found, truth, NULL));
	assert_true(passes_by((struct rule){0, 0, 1}, truth, truth, NULL));
	assert_false(passes_by((struct rule){0, 0, 1}, found, truth, "at most 0 is allowed"));

	/* If one row of 100000 rows is zero, the error ratio is only 0.003, although a whole row is wrong. */
	memcpy(found, truth, sizeof *truth * ROWS * COLUMNS);
	memset(found + 777 * COLUMNS, 0, sizeof *found * COLUMNS);
	assert_false(passes(found, truth, "elements differ from the ground truth by more than"));
	assert_false(passes(found, truth, "at [777, "));
	memcpy(found, truth, sizeof *truth * ROWS * COLUMNS);
	found[ROWS * COLUMNS - 1] = NAN;
	assert_false(passes(found, truth, "1 elements are NaN"));
	memset(found, 0, sizeof *found * ROWS * COLUMNS);
	assert_false(passes(found, truth, "is 1, but at most 0.005 is allowed"));
	memset(truth, 0, sizeof *truth * ROWS * COLUMNS);
	assert_true(passes(found, truth, NULL));
	found[0] = 1e-9f;
	assert_false(passes(found, truth, "differ from the ground truth by more than"));
	free(found);
	free(truth);
}

/* --- gradients against differences of the forward operation ------------------------------------------------------- */

struct world {
	const struct op *op;
	struct arena arena;
	struct op_problem problem;
	struct op_case c;
	struct gradient_forward forward;
	struct tensor in[OP_ARGS], gradients[OP_ARGS], out[OP_ARGS];
	int64_t axis[TRIAL_AXES];
};

static void open_world(struct world *w, int form, int64_t tokens, bool with_state, uint64_t seed)
{
	const struct op_problem *forward = &forms[form].problem;
	bool absent[OP_ARGS] = {false};
	struct err err = {""};

	*w = (struct world){.op = forms[form].op};
	for (int a = 0; a < forward->axis_count; a++)
		w->axis[a] = forward->axes[a].var ? 2 : forward->axes[a].value;
	w->axis[forms[form].packed ? TOTAL : T] = tokens;
	w->axis[OFFSETS] = 3;
	for (int i = 0; i < forward->input_count; i++)
		absent[i] = !with_state && forward->inputs[i].optional;
	w->problem = gradient_problem(forward, absent, true, &w->arena);
	w->c = (struct op_case){.problem = &w->problem, .axis = w->axis, .seed = seed};
	w->c.variant = w->op->match(forward, &err);
	if (w->c.variant < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < w->problem.input_count; i++)
		if (w->problem.inputs[i].rank == OP_SCALAR)
			w->c.scalar[i] = w->op->gradient->scalar(&w->c, i);
	for (int i = 0; i < w->problem.input_count; i++) {
		w->in[i] = trial_tensor(&w->problem.inputs[i], w->axis);
		if (i < forward->input_count && absent[i]) {
			free(w->in[i].data);
			w->in[i].data = NULL;
		} else if (w->in[i].rank != OP_SCALAR && w->op->gradient->fill(&w->c, i, &w->in[i], &err) != 0) {
			fail_msg("%s", err.text);
		}
	}
	for (int i = 0; i < w->problem.output_count; i++)
		w->gradients[i] = trial_tensor(&w->problem.outputs[i], w->axis);
	gradient_forward_of(&w->c, &w->forward);
	for (int i = 0; i < w->forward.problem.output_count; i++) {
		struct op_arg arg = w->forward.problem.outputs[i];

		arg.dtype = DTYPE_FLOAT64;
		w->out[i] = trial_tensor(&arg, w->axis);
	}
	if (w->op->gradient->oracle(&w->c, w->in, w->gradients, &err) != 0)
		fail_msg("%s", err.text);
}

static void close_world(struct world *w)
{
	for (int i = 0; i < OP_ARGS; i++) {
		free(w->in[i].data);
		free(w->gradients[i].data);
		free(w->out[i].data);
	}
	arena_free(&w->arena);
}

/* Computes the loss: the sum of all elements of the outputs, each multiplied by its given gradient. */
static double loss(struct world *w)
{
	struct err err = {""};
	double sum = 0;

	if (w->op->oracle(&w->forward.c, w->in, w->out, &err) != 0)
		fail_msg("%s", err.text);
	for (int k = 0; k < w->forward.problem.output_count; k++) {
		const struct tensor *given = &w->in[gradient_given_of(&w->problem, k)];

		for (int64_t i = 0; i < given->elements; i++)
			sum +=
			    dtype_load(given->data, given->dtype, i) * dtype_load(w->out[k].data, w->out[k].dtype, i);
	}
	return sum;
}

static double by_difference(struct world *w, struct tensor *x, int64_t index)
{
	double value = dtype_load(x->data, x->dtype, index), step = 1e-5 * fmax(fabs(value), 0.1), ends[2];

	for (int end = 0; end < 2; end++) {
		dtype_store(x->data, x->dtype, index, end == 0 ? value + step : value - step);
		ends[end] = loss(w);
	}
	dtype_store(x->data, x->dtype, index, value);
	return (ends[0] - ends[1]) / (2 * step);
}

static void move(struct tensor *x, const struct tensor *step, double times)
{
	for (int64_t i = 0; i < x->elements; i++)
		dtype_store(x->data, x->dtype, i,
			    dtype_load(x->data, x->dtype, i) + times * dtype_load(step->data, step->dtype, i));
}

static double slope_of(struct world *w, int input)
{
	const struct tensor *step = &w->in[gradient_step_of(&w->problem, input)];
	double ends[2];

	move(&w->in[input], step, 1);
	ends[0] = loss(w);
	move(&w->in[input], step, -2);
	ends[1] = loss(w);
	move(&w->in[input], step, 1);
	return (ends[0] - ends[1]) / 2;
}

static void assert_gradient(struct world *w, int output, const char *name)
{
	struct tensor *gradient = &w->gradients[output], *x = &w->in[gradient_input_of(&w->problem, output)];
	double size = 0;

	for (int64_t i = 0; i < gradient->elements; i++)
		size = fmax(size, fabs(dtype_load(gradient->data, gradient->dtype, i)));
	assert_true(size > 0);
	for (int64_t i = 0; i < gradient->elements; i += gradient->elements / 24 + 1) {
		double truth = dtype_load(gradient->data, gradient->dtype, i), found = by_difference(w, x, i);

		if (!(fabs(found - truth) <= 1e-6 * size))
			fail_msg("%s: %s at %lld is %.9g, by differences %.9g", name, w->problem.outputs[output].name,
				 (long long)i, truth, found);
	}
}

static void the_oracles_gradients_are_those_of_its_forward(void **state)
{
	(void)state;
	for (int form = 0; form < COUNT(forms); form++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			struct world w;

			open_world(&w, form, 5, seed < 2, seed);
			for (int i = 0; i < w.problem.output_count; i++)
				if (!gradient_is_slope(&w.problem.outputs[i]))
					assert_gradient(&w, i, forms[form].problem.name);
			for (int i = 0; i < w.problem.output_count; i++) {
				if (!gradient_is_slope(&w.problem.outputs[i]))
					continue;
				double truth = dtype_load(w.gradients[i].data, DTYPE_FLOAT64, 0);
				double found = slope_of(&w, gradient_input_of(&w.problem, i));

				if (!(fabs(found - truth) <= 1e-4 * fabs(truth) + 1e-12))
					fail_msg("%s: %s is %.9g, by differences %.9g", forms[form].problem.name,
						 w.problem.outputs[i].name, truth, found);
			}
			close_world(&w);
		}
}

/* The oracle stores the state after every 64th token, and recomputes the states between them. */
static void long_sequences_go_back_from_stretch_to_stretch(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, 2, 150, true, 0);
	for (int i = 0; i < w.problem.output_count; i++)
		if (!gradient_is_slope(&w.problem.outputs[i]))
			assert_gradient(&w, i, "150 tokens");
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_problem_of_gradients_is_derived_and_reversed),
	    cmocka_unit_test(gradients_are_held_as_a_whole_and_one_by_one),
	    cmocka_unit_test(the_oracles_gradients_are_those_of_its_forward),
	    cmocka_unit_test(long_sequences_go_back_from_stretch_to_stretch),
	};

	return cmocka_run_group_tests_name("gradient", tests, NULL, NULL);
}
