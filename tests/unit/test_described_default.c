/* test_described_default - whether a description says that a value of a Python scalar, such as 0, stands for the
 * default of this scalar. With such a value, an operation gives the same results as with the default. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/core/described_default.h"

static void a_description_gives_the_number_that_stands_for_the_default(void **state)
{
	static const struct {
		const char *text;
		double number; /* NaN: the text gives no number */
	} cases[] = {
	    {"Factor on the output; 0 stands for 1/sqrt(head_size).", 0},
	    {"Scale. If 0, 1/sqrt(head_size) is used.", 0},
	    {"Scale.\nWhen the scale is zero, the default of 1 / sqrt(d)", 0},
	    {"Defaults to 1/sqrt(d) if it is 0.0.", 0},
	    {"softmax scale (0 = 1/sqrt(128 + 64))", 0},
	    {"0: K ** -0.5", 0},
	    {"Window; -1 disables it", -1},
	    {"-1 means the default", -1},
	    {"Pass 0 for the default.", 0},
	    {"Scale factor. Default is 1/sqrt(head_size).", NAN},
	    {"Softmax scale. Default is (1/sqrt(128 + 64) = 1/sqrt(192)), based on head dimensions.", NAN},
	    {"The first expert; default is 0: no offset", NAN},
	    {"Defaults to 0: disabled", NAN},
	    {"Strength of the correction, from 0 to 1.", NAN},
	    {"The least gate, below 0; by default -5", NAN},
	    {"If 0, the output is 0. The default is 1.", NAN},
	    {"10 stands for 1/sqrt(d), and so does 1/0 or 0.05", NAN},
	    {"The number that stands for padding, -1 by default.", NAN},
	    {"0", NAN},
	    {"0 stands for", NAN},
	    {"", NAN},
	    {NULL, NAN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct op_arg arg = {.name = "s", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR, .description = cases[i].text};
		double number = NAN;

		if (described_default(&arg, &number) == isnan(cases[i].number) ||
		    (!isnan(cases[i].number) && number != cases[i].number))
			fail_msg("\"%s\" gives %g, not %g", cases[i].text, number, cases[i].number);
	}
}

static void a_clause_longer_than_the_buffer_is_cut(void **state)
{
	char text[2048];
	struct op_arg arg = {.name = "s", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR, .description = text};
	double number = 7;

	(void)state;
	for (size_t i = 0; i + 1 < sizeof text; i++)
		text[i] = "if 0 default "[i % 13];
	text[sizeof text - 1] = '\0';
	assert_true(described_default(&arg, &number) && number == 0);
	for (size_t i = 0; i < 1024; i++)
		text[i] = 'x';
	assert_false(described_default(&arg, &number));
}

static void tensors_and_switches_have_no_such_number(void **state)
{
	struct op_arg arg = {.name = "s", .dtype = DTYPE_FLOAT32, .rank = 0, .description = "0 means the default"};
	double number;

	(void)state;
	assert_false(described_default(&arg, &number));
	arg.rank = OP_SCALAR;
	arg.dtype = DTYPE_BOOL;
	assert_false(described_default(&arg, &number));
}

/* The function op.scalar of a made-up family: it has one scalar, whose default is 0.125. In variant 1, the scalar has
 * no default. */
static double scalar(const struct op_case *c, int input)
{
	if ((c->absent >> input & 1) == 0)
		return 3;
	return c->variant == 1 ? (double)NAN : 0.125;
}

static void a_number_that_stands_for_the_default_omits_the_scalar(void **state)
{
	static const struct op_arg args[] = {
	    {.name = "s", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR, .description = "0 stands for 1/sqrt(64)"}};
	static const struct op op = {.name = "one", .scalar = scalar};
	const struct op_problem problem = {.inputs = args, .input_count = 1};
	struct op_case c = {.problem = &problem};

	(void)state;
	described_set_scalar(&op, &c, 0, 0.5);
	assert_true(c.scalar[0] == 0.5 && c.absent == 0);
	described_set_scalar(&op, &c, 0, 0);
	assert_true(c.scalar[0] == 0.125 && c.absent == 1);
	c = (struct op_case){.problem = &problem, .variant = 1};
	described_set_scalar(&op, &c, 0, 0);
	assert_true(c.scalar[0] == 0 && c.absent == 0);
	described_set_scalar(NULL, &c, 0, 0);
	assert_true(c.scalar[0] == 0 && c.absent == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_description_gives_the_number_that_stands_for_the_default),
	    cmocka_unit_test(a_clause_longer_than_the_buffer_is_cut),
	    cmocka_unit_test(tensors_and_switches_have_no_such_number),
	    cmocka_unit_test(a_number_that_stands_for_the_default_omits_the_scalar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
