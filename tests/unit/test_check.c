/* test_check - the functions with which a family checks inputs that a workload provides. The messages of these
 * functions give the position and the value of the invalid element. Inputs that reftest fills in are not checked. */
#include "tests/unit/trial.h"

#include "kernels/core/input_check.h"

static const struct op_axis axes[] = {{"m", true, 0}, {"n", false, 5}};
static const struct op_arg args[] = {{"x", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL},
                                     {"at", DTYPE_INT64, 1, {0}, false, NULL},
                                     {"t", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
static const struct op_problem problem = PROBLEM("a", "b", axes, args, args);

static void open_case(struct op_case *c, struct tensor *in)
{
	static const int64_t axis[] = {4, 5};

	*c = (struct op_case){.problem = &problem, .axis = axis, .given = 3};
	for (int i = 0; i < 3; i++) {
		in[i] = trial_tensor(&args[i], axis);
		for (int64_t k = 0; in[i].data != NULL && k < in[i].elements; k++)
			dtype_store(in[i].data, in[i].dtype, k, 1);
	}
}

static void nan_is_reported_with_its_place(void **state)
{
	struct tensor in[3];
	struct op_case c;
	struct err err = {""};

	(void)state;
	open_case(&c, in);
	assert_int_equal(check_all_finite(&c, in, &err), 0);
	dtype_store(in[0].data, in[0].dtype, 13, (double)INFINITY);
	assert_int_equal(check_numbers(&c, in, 0, false, "no", &err), 0);
	assert_int_equal(check_numbers(&c, in, 0, true, "which is too much", &err), -1);
	assert_string_equal(err.text, "input 'x' holds infinity at [2, 3]; which is too much");
	dtype_store(in[0].data, in[0].dtype, 13, (double)-INFINITY);
	assert_int_equal(check_all_finite(&c, in, &err), -1);
	assert_non_null(strstr(err.text, "holds -infinity at [2, 3]"));
	dtype_store(in[0].data, in[0].dtype, 19, (double)NAN);
	assert_int_equal(check_numbers(&c, in, 0, false, "no", &err), -1);
	assert_string_equal(err.text, "input 'x' holds NaN at [3, 4]; no");
	free(in[0].data);
	free(in[1].data);
}

static void an_integer_out_of_range_is_reported_with_its_place(void **state)
{
	static const double wrong[] = {-1, 8, 9e18, -9e18};
	struct tensor in[3];
	struct op_case c;
	struct err err = {""};

	(void)state;
	open_case(&c, in);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), 0);
	for (int i = 0; i < COUNT(wrong); i++) {
		dtype_store(in[1].data, in[1].dtype, 2, wrong[i]);
		assert_int_equal(check_integers(&c, in, 1, 0, 7, "there are 8", &err), -1);
		assert_non_null(strstr(err.text, " at [2]; there are 8"));
	}
	free(in[0].data);
	free(in[1].data);
}

static void inputs_that_are_not_provided_or_not_available_are_not_checked(void **state)
{
	struct tensor in[3];
	struct op_case c;
	struct err err = {""};

	(void)state;
	open_case(&c, in);
	dtype_store(in[0].data, in[0].dtype, 0, (double)NAN);
	dtype_store(in[1].data, in[1].dtype, 0, -1);
	c.given = 0;
	assert_int_equal(check_all_finite(&c, in, &err), 0);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), 0);
	c.given = UINT32_MAX;
	assert_int_equal(check_all_finite(&c, in, &err), -1);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), -1);
	/* index -1: the definition has no such input */
	assert_int_equal(check_integers(&c, in, -1, 0, 7, "rows", &err), 0);
	free(in[0].data);
	free(in[1].data);
	in[0].data = in[1].data = NULL;
	assert_int_equal(check_all_finite(&c, in, &err), 0);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nan_is_reported_with_its_place),
	    cmocka_unit_test(an_integer_out_of_range_is_reported_with_its_place),
	    cmocka_unit_test(inputs_that_are_not_provided_or_not_available_are_not_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
