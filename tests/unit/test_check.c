/* What a family may ask of an input that a workload brings: the place and the value are told, what is not brought is
 * not looked at. */
#include "tests/unit/trial.h"

#include "kernels/check.h"

static const struct op_axis axes[] = {{"m", true, 0}, {"n", false, 5}};
static const struct op_arg args[] = {{"x", DTYPE_BFLOAT16, 2, {0, 1}, false},
                                     {"at", DTYPE_INT64, 1, {0}, false},
                                     {"t", DTYPE_FLOAT32, OP_SCALAR, {0}, false}};
static const struct op_problem problem = PROBLEM("a", "b", axes, args, args);

static void open_case(struct op_case *c, struct tensor *in)
{
	static const int64_t axis[] = {4, 5};

	*c = (struct op_case){.problem = &problem, .axis = axis, .given = 3};
	for (int i = 0; i < 3; i++) {
		in[i] = trial_tensor(&args[i], axis);
		for (int64_t k = 0; in[i].data != NULL && k < in[i].elements; k++)
			number_set(in[i].data, in[i].dtype, k, 1);
	}
}

static void what_is_no_number_is_told_with_its_place(void **state)
{
	struct tensor in[3];
	struct op_case c;
	struct err err = {""};

	(void)state;
	open_case(&c, in);
	assert_int_equal(check_all_finite(&c, in, &err), 0);
	number_set(in[0].data, in[0].dtype, 13, (double)INFINITY);
	assert_int_equal(check_numbers(&c, in, 0, false, "no", &err), 0);
	assert_int_equal(check_numbers(&c, in, 0, true, "which is too much", &err), -1);
	assert_string_equal(err.text, "input 'x' holds infinity at [2, 3]; which is too much");
	number_set(in[0].data, in[0].dtype, 13, (double)-INFINITY);
	assert_int_equal(check_all_finite(&c, in, &err), -1);
	assert_non_null(strstr(err.text, "holds -infinity at [2, 3]"));
	number_set(in[0].data, in[0].dtype, 19, (double)NAN);
	assert_int_equal(check_numbers(&c, in, 0, false, "no", &err), -1);
	assert_string_equal(err.text, "input 'x' holds NaN at [3, 4]; no");
	free(in[0].data);
	free(in[1].data);
}

static void an_integer_out_of_range_is_told_with_its_place(void **state)
{
	static const double wrong[] = {-1, 8, 9e18, -9e18};
	struct tensor in[3];
	struct op_case c;
	struct err err = {""};

	(void)state;
	open_case(&c, in);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), 0);
	for (int i = 0; i < COUNT(wrong); i++) {
		number_set(in[1].data, in[1].dtype, 2, wrong[i]);
		assert_int_equal(check_integers(&c, in, 1, 0, 7, "there are 8", &err), -1);
		assert_non_null(strstr(err.text, " at [2]; there are 8"));
	}
	free(in[0].data);
	free(in[1].data);
}

static void what_is_not_brought_or_not_at_hand_is_in_order(void **state)
{
	struct tensor in[3];
	struct op_case c;
	struct err err = {""};

	(void)state;
	open_case(&c, in);
	number_set(in[0].data, in[0].dtype, 0, (double)NAN);
	number_set(in[1].data, in[1].dtype, 0, -1);
	c.given = 0;
	assert_int_equal(check_all_finite(&c, in, &err), 0);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), 0);
	c.given = UINT32_MAX;
	assert_int_equal(check_all_finite(&c, in, &err), -1);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), -1);
	assert_int_equal(check_integers(&c, in, -1, 0, 7, "rows", &err), 0); /* no such input */
	free(in[0].data);
	free(in[1].data);
	in[0].data = in[1].data = NULL;
	assert_int_equal(check_all_finite(&c, in, &err), 0);
	assert_int_equal(check_integers(&c, in, 1, 0, 7, "rows", &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_no_number_is_told_with_its_place),
	    cmocka_unit_test(an_integer_out_of_range_is_told_with_its_place),
	    cmocka_unit_test(what_is_not_brought_or_not_at_hand_is_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
