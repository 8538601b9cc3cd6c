/* test_constraint - constraints of a definition are parsed and evaluated as Python parses and evaluates them, and
 * messages say what is wrong. */
#include "dataset/constraint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

enum { BATCH, LEN, PAGES, SIZE, HEADS, AXES };
enum { INDPTR, TABLE, K, SCALE, COUNT, FLAG, INPUTS };

static const struct axis axes[AXES] = {
    {"batch_size", true, 0},  {"len_indptr", true, 0}, {"num_pages", true, 0},
    {"page_size", false, 64}, {"heads", false, 8},
};
static const struct tensor_spec inputs[INPUTS] = {
    {.name = "indptr", .dtype = DTYPE_INT32, .rank = 1, .axis = {LEN}},
    {.name = "table", .dtype = DTYPE_INT64, .rank = 2, .axis = {BATCH, PAGES}},
    {.name = "k", .dtype = DTYPE_BFLOAT16, .rank = 3, .axis = {PAGES, SIZE, HEADS}},
    {.name = "scale", .dtype = DTYPE_FLOAT32, .rank = RANK_SCALAR},
    {.name = "heads", .dtype = DTYPE_INT8, .rank = 0}, /* an input may have the name of an axis */
    {.name = "flag", .dtype = DTYPE_BOOL, .rank = 1, .axis = {BATCH}},
};
static const struct definition definition = {.axes = axes, .axis_count = AXES, .inputs = inputs, .input_count = INPUTS};

static void check(const char *text, const char *sentence)
{
	struct err err = {""};
	enum constraint_answer answer = constraint_evaluate(&definition, text, NULL, NULL, &err);

	assert_true((answer == CONSTRAINT_ERROR) == (sentence != NULL));
	if (sentence != NULL)
		assert_string_equal(err.text, sentence);
}

/* Evaluates `text`. All axes and all inputs are known: indptr {0, 3, 3, 9}, table {{1, 2}, {3, -4}, {5, 6}}, heads 7,
 * flag {1, 0, 1}. */
static enum constraint_answer evaluate(const char *text, struct err *why)
{
	static const int64_t axis[AXES] = {3, 4, 2, 64, 8}, table[] = {1, 2, 3, -4, 5, 6};
	static const int32_t indptr[] = {0, 3, 3, 9};
	static const int8_t heads = 7;
	static const uint8_t flag[] = {1, 0, 1};
	static const float scale = 0.125f;
	const struct constraint_tensor tensors[INPUTS] = {
	    [INDPTR] = {indptr, DTYPE_INT32, 1, {4}},     [TABLE] = {table, DTYPE_INT64, 2, {3, 2}},
	    [SCALE] = {&scale, DTYPE_FLOAT32, RANK_SCALAR, {0}}, [COUNT] = {&heads, DTYPE_INT8, 0, {0}},
	    [FLAG] = {flag, DTYPE_BOOL, 1, {3}},
	};

	return constraint_evaluate(&definition, text, axis, tensors, why);
}

static void texts_of_real_definitions_are_understood(void **state)
{
	static const char *const texts[] = {
	    "len_indptr == batch_size + 1",
	    "num_pages == indptr[-1].item()",
	    "page_size % heads == 0",
	    "num_pages >= batch_size",
	    "k.shape[1] == 2 * page_size",
	    "k.shape[-1] == heads",
	    "heads <= num_pages * page_size",
	    "batch_size > 1",
	    " ( batch_size==1 )",
	    "1 <= batch_size < len_indptr <= 2 ** 20",
	    "not batch_size == 0 or False and True",
	    "indptr.max() < num_pages",
	    "indptr.min() >= 0 and table.sum() == 0",
	    "len(indptr) == len_indptr",
	    "max(batch_size, 1, len_indptr) == min(num_pages, 3)",
	    "table[0, -1].item() != table[1][0].item()",
	    "table[0].numel() == num_pages",
	    "scale > 1e-3",
	    "-batch_size // -2 - +3 < .5",
	    "indptr[0] == 0",
	    "heads.item() == 7",
	    "2 ** -1 == 1 / 2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		check(texts[i], NULL);
}

static void text_that_makes_no_sense_is_an_error_with_its_column(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
	    {"", "column 1 of the constraint \"\": expected a value, found the end of the constraint"},
	    {"batch_size +", "column 13 of the constraint \"batch_size +\": expected a value, found the end of the constraint"},
	    {"batch_size = 1",
	     "column 12 of the constraint \"batch_size = 1\": found '=', which does not compare; write '=='"},
	    {"batch == 1",
	     "column 1 of the constraint \"batch == 1\": expected the name of an axis or an input, found 'batch'"},
	    {"(batch_size", "column 12 of the constraint \"(batch_size\": expected ')', found the end of the constraint"},
	    {"batch_size 3", "column 12 of the constraint \"batch_size 3\": expected an operator, found '3'"},
	    {"batch_size in 3", "column 15 of the constraint \"batch_size in 3\": expected a tuple, list or set of numbers, found '3'"},
	    {"batch_size in (1 2)",
	     "column 18 of the constraint \"batch_size in (1 2)\": expected ',' or the end of the sequence, found '2'"},
	    {"batch_size in (1, 2]",
	     "column 20 of the constraint \"batch_size in (1, 2]\": expected ',' or the end of the sequence, found ']'"},
	    {"batch_size not 3", "column 16 of the constraint \"batch_size not 3\": expected 'in' after 'not', found '3'"},
	    {"batch_size in (1, 2) == 1",
	     "column 22 of the constraint \"batch_size in (1, 2) == 1\": expected 'and' or 'or', found '=='"},
	    {"batch_size ^ 1", "column 12 of the constraint \"batch_size ^ 1\": found a character that is not valid here"},
	    {"3x == 1", "column 1 of the constraint \"3x == 1\": expected a decimal number, found '3x'"},
	    {"0x10 == 16", "column 1 of the constraint \"0x10 == 16\": expected a decimal number, found '0x10'"},
	    {"9223372036854775808 > 1", "column 1 of the constraint \"9223372036854775808 > 1\": expected an integer "
	                                "below 2^63, found 9223372036854775808"},
	    {"100000000000000000000000000000000000000000000000 > 1",
	     "column 1 of the constraint \"100000000000000000000000000000000000000000000000 > 1\": expected a number "
	     "of fewer than "
	     "48 characters"},
	    {"1e999 > 1",
	     "column 1 of the constraint \"1e999 > 1\": expected a number that fits a 64-bit float, found 1e999"},
	    {"indptr == 3",
	     "column 1 of the constraint \"indptr == 3\": expected a number, found the tensor indptr; name an "
	     "element, as in indptr[-1].item()"},
	    {"1 + table[0] == 3",
	     "column 5 of the constraint \"1 + table[0] == 3\": expected a number, found the tensor table; "
	     "name an element, as in table[-1].item()"},
	    {"indptr", "column 1 of the constraint \"indptr\": expected a number, found the tensor indptr; name an "
	               "element, as in "
	               "indptr[-1].item()"},
	    {"batch_size and (indptr)",
	     "column 16 of the constraint \"batch_size and (indptr)\": expected a number, found the "
	     "tensor indptr; name an element, as in indptr[-1].item()"},
	    {"indptr[0][0] == 1",
	     "column 1 of the constraint \"indptr[0][0] == 1\": indptr has only 1 dimensions, so another index "
	     "is not allowed"},
	    {"k.shape[0 == 1", "column 15 of the constraint \"k.shape[0 == 1\": expected ']', found the end of the constraint"},
	    {"k[0, 0, 0] == 1", "column 1 of the constraint \"k[0, 0, 0] == 1\": k is bfloat16; a constraint can read "
	                        "only integer tensors"},
	    {"k[0].item() == 1", "column 1 of the constraint \"k[0].item() == 1\": k is bfloat16; a constraint can read "
	                         "only integer tensors"},
	    {"k.sum() == 1",
	     "column 1 of the constraint \"k.sum() == 1\": k is bfloat16; a constraint can read only integer tensors"},
	    {"scale[0] == 1",
	     "column 1 of the constraint \"scale[0] == 1\": scale is a Python scalar and has no elements"},
	    {"indptr.mean() == 1",
	     "column 8 of the constraint \"indptr.mean() == 1\": expected item(), max(), min(), sum(), "
	     "numel() or shape[…], found 'mean'"},
	    {"indptr.item == 1", "column 13 of the constraint \"indptr.item == 1\": expected '()', found '=='"},
	    {"indptr.shape == 1",
	     "column 14 of the constraint \"indptr.shape == 1\": expected '[' after .shape, found '=='"},
	    {"indptr[1:2] == 1",
	     "column 9 of the constraint \"indptr[1:2] == 1\": found a character that is not valid here"},
	    {"indptr[0 == 1", "column 14 of the constraint \"indptr[0 == 1\": expected ']', found the end of the constraint"},
	    {"k.shape[3] == 1",
	     "the constraint \"k.shape[3] == 1\" cannot be evaluated: the index 3 is outside the shape of size 3"},
	    {"k.shape[-4] == 1",
	     "the constraint \"k.shape[-4] == 1\" cannot be evaluated: the index -4 is outside the shape of size 3"},
	    {"len(batch_size) == 1",
	     "column 5 of the constraint \"len(batch_size) == 1\": expected the name of an input, found "
	     "'batch_size'"},
	    {"len(scale) == 1",
	     "column 5 of the constraint \"len(scale) == 1\": scale has no dimensions and therefore no length"},
	    {"max(1) == 1", "column 5 of the constraint \"max(1) == 1\": expected at least two arguments"},
	    {"abs(-9223372036854775807 - 1) == 1",
	     "the constraint \"abs(-9223372036854775807 - 1) == 1\" cannot be evaluated: an integer overflows 64 bits"},
	    {"int(1e19) == 1", "the constraint \"int(1e19) == 1\" cannot be evaluated: an integer overflows 64 bits"},
	    {"math.ceil(1, 2) == 1", "column 12 of the constraint \"math.ceil(1, 2) == 1\": expected ')', found ','"},
	    {"abs(k) == 1", "column 5 of the constraint \"abs(k) == 1\": expected a number, found the tensor k; name an "
			    "element, as in k[-1].item()"},
	    {"math.sqrt(4) == 2", "column 1 of the constraint \"math.sqrt(4) == 2\": expected the name of an axis or an input, "
				  "found 'math'"},
	    {"pow(1, 2) == 1",
	     "column 1 of the constraint \"pow(1, 2) == 1\": expected the name of an axis or an input, found "
	     "'pow'"},
	    {"batch_size == 1 // 0", "the constraint \"batch_size == 1 // 0\" cannot be evaluated: a division by zero"},
	    {"\xC3\xA9 == 1", "column 1 of the constraint \"\xC3\xA9 == 1\": expected the name of an axis or an input, found "
	                      "'\xC3\xA9'"},
	    {"1 == '\xC3\xA9'",
	     "column 6 of the constraint \"1 == '\xC3\xA9'\": found a character that is not valid here"},
	    {"1 2 \xC3\xA9", "column 3 of the constraint \"1 2 \xC3\xA9\": expected an operator, found '2'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(cases[i].text, cases[i].sentence);
}

static void long_and_deep_texts_are_refused(void **state)
{
	struct buf text = {0};
	struct err err;
	static const char *const openings[] = {"(", "-", "not ", "2 ** ", "indptr[", "max(1, ", "abs(", "math.ceil("};

	(void)state;
	for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
		buf_clear(&text);
		while (text.length < 4000)
			buf_text(&text, openings[i]);
		assert_int_equal(constraint_evaluate(&definition, text.data, NULL, NULL, &err), CONSTRAINT_ERROR);
		assert_non_null(strstr(err.text, "expected at most 64 nested operators and parentheses"));
	}
	buf_clear(&text);
	buf_text(&text, "1 == 1");
	while (text.length < 2000)
		buf_text(&text, " and 1 == 1 + 2 * 3 - 6"); /* makes the expression long without deep nesting */
	check(text.data, NULL);
	while (text.length < 5000)
		buf_text(&text, " and 1 == 1");
	assert_int_equal(constraint_evaluate(&definition, text.data, NULL, NULL, &err), CONSTRAINT_ERROR);
	assert_non_null(strstr(err.text, "expected at most 4096 bytes, found 50"));
	buf_free(&text);
}

static void arithmetic_is_that_of_python(void **state)
{
	static const char *const truths[] = {
	    "1 + 2 * 3 == 7",
	    "(1 + 2) * 3 == 9",
	    "7 // 2 == 3",
	    "-7 // 2 == -4",
	    "7 // -2 == -4",
	    "-7 % 3 == 2",
	    "7 % -3 == -2",
	    "-6 % 3 == 0",
	    "7 / 2 == 3.5",
	    "2 ** 10 == 1024",
	    "-2 ** 2 == -4",
	    "2 ** 3 ** 2 == 512",
	    "2 ** -1 == 0.5",
	    "7.5 // 2 == 3",
	    "-7.5 % 2 == 0.5",
	    "-7.5 // 2 == -4.0",
	    "1 - 2 - 3 == -4",
	    "- - 3 == 3",
	    "1 < 2 < 3",
	    "not 1 < 3 < 2",
	    "3 >= 3 > 2 != 1",
	    "True + True == 2",
	    "not 0",
	    "not not 5",
	    "0 or 3 == 3",
	    "(0 or 3) == 3",
	    "(2 and 3) == 3",
	    "(0 and 1 // 0) == 0",
	    "1 or 1 // 0",
	    "not (0 and 1 // 0)",
	    "1 > 2 > 1 // 0 or True",
	    "0 ** 0 == 1",
	    "max(3, 1, 2) == 3",
	    "min(3, 1, 2) == 1",
	    "max(1, 2.5) == 2.5",
	    "math.ceil(5 / 2) == 3 and math.ceil(-2.5) == -2 and math.ceil(4) == 4",
	    "math.floor(5 / 2) == 2 and math.floor (-2.5) == -3",
	    "int(2.9) == 2 and int(-2.9) == -2 and int(7) == 7",
	    "abs(-3) == 3 and abs(2 - 4.5) == 2.5 and abs(0) == 0",
	    "math.ceil(len_indptr / batch_size) * 2 == 4", /* rounds 4 / 3 up */
	    "max(math.ceil(1.5), int(1.9)) == 2",
	    "9007199254740993 != 9007199254740992.0",
	    "-9223372036854775807 - 1 < -9223372036854775807",
	    "(-9223372036854775807 - 1) % -1 == 0",
	    "1e3 == 1000",
	    ".5 + .5 == 1",
	    "3 in (1, 2, 3)",
	    "3 in [3,]",
	    "3 not in {1, 2}",
	    "not 3 in ()",
	    "1 + 2 in (3, 4) and 2.0 in (1, 2)",
	    "(1 == 1) & (2 == 2)",
	    "not (1 == 2) | (2 == 3)",
	    "6 & 3 == 2",  /* in Python, & binds more tightly than == */
	    "4 | 2 & 3 == 6",
	    "1 | 2 + 4 == 7",
	};

	(void)state;
	for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
		struct err why = {""};

		if (evaluate(truths[i], &why) != CONSTRAINT_HOLDS)
			fail_msg("%s: %s", truths[i], why.text);
	}
}

static void contents_are_read_within_bounds(void **state)
{
	static const char *const truths[] = {
	    "indptr[-1].item() == 9",
	    "indptr[-4] == 0",
	    "indptr[3] == 9",
	    "indptr.max() == 9",
	    "indptr.min() == 0",
	    "indptr.sum() == 15",
	    "indptr.numel() == 4",
	    "len(indptr) == 4",
	    "indptr[batch_size] == 9",
	    "table[1, 1] == -4",
	    "table[1][1].item() == -4",
	    "table[-1][-1] == 6",
	    "table[1].sum() == -1",
	    "table[2].max() == 6",
	    "table.min() == -4",
	    "table[0].shape[0] == 2",
	    "table.shape[-1] == 2",
	    "table[0].numel() == 2",
	    "scale == 0.125",
	    "heads == 8",
	    "heads.item() == 7",
	    "flag.sum() == 2",
	    "flag[1] == 0",
	    "table[indptr[0], 1] == 2",
	    "k.shape[1] == 64",
	    "k.numel() == 2 * 64 * 8",
	};

	(void)state;
	for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
		struct err why = {""};

		if (evaluate(truths[i], &why) != CONSTRAINT_HOLDS)
			fail_msg("%s: %s", truths[i], why.text);
	}
}

static void a_broken_constraint_is_reported_with_its_values(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"len_indptr == batch_size + 2", "len_indptr == batch_size + 2: 4 == 3 + 2 is false"},
	    {"num_pages == indptr[-1].item()", "num_pages == indptr[-1].item(): 2 == 9 is false"},
	    {"table[batch_size - 1, 0] < 0 and scale > 1",
	     "table[batch_size - 1, 0] < 0 and scale > 1: 5 < 0 and 0.125 > 1 is false"},
	    {"max(batch_size, 7) == len(indptr)", "max(batch_size, 7) == len(indptr): 7 == 4 is false"},
	    {"1 == 2", "1 == 2: 1 == 2 is false"},
	    {"not batch_size", "not batch_size: not 3 is false"},
	    {"page_size in (16, 32)", "page_size in (16, 32): 64 in (16, 32) is false"},
	    {"batch_size not in (2, 3)", "batch_size not in (2, 3): 3 not in (2, 3) is false"},
	};
	struct err why;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(evaluate(cases[i].text, &why), CONSTRAINT_BROKEN);
		assert_string_equal(why.text, cases[i].why);
	}
}

static void what_cannot_be_evaluated_is_an_error(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"indptr[4] == 1", "the index 4 is outside indptr of size 4"},
	    {"indptr[-5].item() == 1", "the index -5 is outside indptr of size 4"},
	    {"table[3].sum() == 1", "the index 3 is outside table of size 3"},
	    {"table[3].shape[0] == 2", "the index 3 is outside table of size 3"},
	    {"table[1 // 0, 0] == 1", "a division by zero"},
	    {"2 ** 64 == 0", "an integer overflows 64 bits"},
	    {"table[3, 0] == 1", "the index 3 is outside table of size 3"},
	    {"table[0, 2] == 1", "the index 2 is outside table of size 2"},
	    {"indptr[9223372036854775807] == 1", "the index 9223372036854775807 is outside indptr of size 4"},
	    {"indptr[0.5] == 1", "an index is not an integer"},
	    {"indptr.item() == 1", "indptr has 4 elements, but .item() needs exactly one"},
	    {"1 % 0 == 1", "a division by zero"},
	    {"1 // 0.0 == 1", "a division by zero"},
	    {"1 / 0 == 1", "a division by zero"},
	    {"1 in (2, 1 // 0)", "a division by zero"},
	    {"1 & 2.5", "an operand of & is not an integer"},
	    {"1 // 0 == 2 ** 64", "a division by zero"}, /* the message names the first of the two errors */
	    {"0 ** -1 == 1", "a power is not a finite number"},
	    {"9223372036854775807 + 1 > 0", "an integer overflows 64 bits"},
	    {"-9223372036854775807 - 2 < 0", "an integer overflows 64 bits"},
	    {"9223372036854775807 * 2 > 0", "an integer overflows 64 bits"},
	    {"2 ** 63 > 0", "an integer overflows 64 bits"},
	    {"3 ** 9223372036854775807 > 0", "an integer overflows 64 bits"},
	    {"(-9223372036854775807 - 1) // -1 > 0", "an integer overflows 64 bits"},
	    {"-(-9223372036854775807 - 1) > 0", "an integer overflows 64 bits"},
	};
	struct err why;
	char sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(evaluate(cases[i].text, &why), CONSTRAINT_ERROR);
		snprintf(sentence, sizeof sentence, "the constraint \"%s\" cannot be evaluated: %s", cases[i].text,
		         cases[i].why);
		assert_string_equal(why.text, sentence);
	}
	assert_int_equal(evaluate("batch_size ==", &why), CONSTRAINT_ERROR);
	assert_string_equal(why.text, "column 14 of the constraint \"batch_size ==\": expected a value, found the end of the constraint");
}

static void sums_and_empty_tensors_are_watched(void **state)
{
	static const int64_t axis[AXES] = {2, 0, 1, 64, 8}, table[] = {INT64_MAX, 1};
	static const int32_t nothing = 0;
	const struct constraint_tensor tensors[INPUTS] = {[INDPTR] = {&nothing, DTYPE_INT32, 1, {0}},
	                                                  [TABLE] = {table, DTYPE_INT64, 2, {2, 1}}};
	struct err why;

	(void)state;
	assert_int_equal(constraint_evaluate(&definition, "table.sum() > 0", axis, tensors, &why), CONSTRAINT_ERROR);
	assert_int_equal(constraint_evaluate(&definition, "indptr.max() > 0", axis, tensors, &why), CONSTRAINT_ERROR);
	assert_string_equal(
	    why.text, "the constraint \"indptr.max() > 0\" cannot be evaluated: indptr is empty and has neither a "
		      "largest nor a smallest element");
	assert_int_equal(constraint_evaluate(&definition, "indptr[-1] == 0", axis, tensors, &why), CONSTRAINT_ERROR);
	assert_int_equal(constraint_evaluate(&definition, "indptr.sum() == 0", axis, tensors, &why), CONSTRAINT_HOLDS);
	assert_int_equal(constraint_evaluate(&definition, "indptr.numel() == 0", axis, tensors, &why),
	                 CONSTRAINT_HOLDS);
}

static void what_is_not_given_is_unknown(void **state)
{
	static const int64_t axis[AXES] = {3, -1, 2, 64, 8};
	static const struct {
		const char *text;
		enum constraint_answer answer;
		const char *why;
	} cases[] = {
	    {"len_indptr == batch_size + 1", CONSTRAINT_UNKNOWN, "len_indptr == batch_size + 1 needs len_indptr"},
	    {"num_pages == indptr[-1].item()", CONSTRAINT_UNKNOWN, "num_pages == indptr[-1].item() needs indptr"},
	    {"table[0, 1].item() == 1", CONSTRAINT_UNKNOWN, "table[0, 1].item() == 1 needs table"},
	    {"table[indptr[0]].sum() == 1", CONSTRAINT_UNKNOWN, "table[indptr[0]].sum() == 1 needs indptr"},
	    {"scale > 0", CONSTRAINT_UNKNOWN, "scale > 0 needs scale"},
	    {"heads.item() > 0", CONSTRAINT_UNKNOWN, "heads.item() > 0 needs heads"},
	    /* a shape is known even if the values of the tensor are not */
	    {"k.shape[0] == 2 and table.numel() == 6 and len(k) == 2", CONSTRAINT_HOLDS, ""},
	    {"table[0].shape[0] == 3", CONSTRAINT_BROKEN, "table[0].shape[0] == 3: 2 == 3 is false"},
	    {"table[indptr[0]].shape[0] == 2", CONSTRAINT_HOLDS, ""},
	    {"indptr.shape[0] == 3", CONSTRAINT_UNKNOWN, "indptr.shape[0] == 3 needs len_indptr"},
	    /* Operands are evaluated from left to right. A known left operand can determine the result although the
	     * right one is unknown. If the left operand is unknown, the result is unknown, whatever the right one
	     * is. */
	    {"batch_size == 3 or scale > 0", CONSTRAINT_HOLDS, ""},
	    {"scale > 0 or batch_size == 3", CONSTRAINT_UNKNOWN, "scale > 0 or batch_size == 3 needs scale"},
	    {"batch_size == 4 and scale > 0", CONSTRAINT_BROKEN,
	     "batch_size == 4 and scale > 0: 3 == 4 and scale > 0 is false"},
	    {"scale < batch_size < 3", CONSTRAINT_BROKEN, "scale < batch_size < 3: scale < 3 < 3 is false"},
	    {"not scale", CONSTRAINT_UNKNOWN, "not scale needs scale"},
	    {"max(scale, 1) > 0", CONSTRAINT_UNKNOWN, "max(scale, 1) > 0 needs scale"},
	    {"len_indptr in (1, 2)", CONSTRAINT_UNKNOWN, "len_indptr in (1, 2) needs len_indptr"},
	    {"batch_size in (len_indptr, 3)", CONSTRAINT_HOLDS, ""},
	    {"batch_size in (len_indptr, 4)", CONSTRAINT_UNKNOWN, "batch_size in (len_indptr, 4) needs len_indptr"},
	    {"max(1, scale) > 0", CONSTRAINT_UNKNOWN, "max(1, scale) > 0 needs scale"},
	    {"indptr.item() == 1", CONSTRAINT_UNKNOWN, "indptr.item() == 1 needs indptr"},
	    {"indptr.numel() == 4", CONSTRAINT_UNKNOWN, "indptr.numel() == 4 needs indptr"},
	    {"k[0].shape[0] == page_size", CONSTRAINT_HOLDS, ""},
	    {"batch_size == 4 and table[batch_size - 1, 0] > 0", CONSTRAINT_BROKEN,
	     "batch_size == 4 and table[batch_size - 1, 0] > 0: 3 == 4 and table[3 - 1, 0] > 0 is false"},
	    {"table[7, 0] == 1", CONSTRAINT_ERROR,
	     "the constraint \"table[7, 0] == 1\" cannot be evaluated: the index 7 is outside table of size 3"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err why = {""};

		assert_int_equal(constraint_evaluate(&definition, cases[i].text, axis, NULL, &why), cases[i].answer);
		assert_string_equal(why.text, cases[i].why);
	}
}

static void contents_are_known_one_by_one(void **state)
{
	static const int64_t none[AXES] = {-1, -1, -1, 64, 8},
			     huge[AXES] = {(int64_t)1 << 40, 4, (int64_t)1 << 40, 64, 8};
	static const int64_t table[] = {1, 2, 3, 4};
	const struct constraint_tensor tensors[INPUTS] = {[TABLE] = {table, DTYPE_INT64, 2, {2, 2}}};
	struct err why;

	(void)state;
	assert_int_equal(constraint_evaluate(&definition, "len(table) == 2", none, tensors, &why), CONSTRAINT_HOLDS);
	assert_int_equal(constraint_evaluate(&definition, "table.numel() == 4", none, tensors, &why), CONSTRAINT_HOLDS);
	assert_int_equal(constraint_evaluate(&definition, "table[1, 1] == 4", none, tensors, &why), CONSTRAINT_HOLDS);
	assert_int_equal(constraint_evaluate(&definition, "table[indptr[0], 1] == 2", none, tensors, &why),
	                 CONSTRAINT_UNKNOWN);
	assert_string_equal(why.text, "table[indptr[0], 1] == 2 needs indptr");
	assert_int_equal(constraint_evaluate(&definition, "table.numel() > 0", huge, NULL, &why), CONSTRAINT_UNKNOWN);
	const struct constraint_tensor flat[INPUTS] = {
	    [TABLE] = {table, DTYPE_INT64, 1, {4}}}; /* the definition declares another rank */

	assert_int_equal(constraint_evaluate(&definition, "table[1, 1] == 4", none, flat, &why), CONSTRAINT_UNKNOWN);
}

static void axes_are_solved_from_one_another(void **state)
{
	static const char *const texts[] = {"num_pages == indptr[-1].item()", "page_size >= 1",
	                                    "num_pages * 2 >= len_indptr", "(len_indptr - 1) * heads == num_pages",
	                                    "len_indptr == batch_size + 1"};
	struct definition with = definition;
	int64_t axis[AXES] = {5, -1, -1, 64, 8};

	(void)state;
	with.constraints = texts;
	with.constraint_count = 5;
	assert_int_equal(constraint_solve(&with, axis), 2);
	assert_int_equal(axis[LEN], 6);
	assert_int_equal(axis[PAGES], 40);
	assert_int_equal(axis[BATCH], 5);
	assert_int_equal(constraint_solve(&with, axis), 0);
	int64_t unsolvable[AXES] = {-1, -1, -1, 64, 8};

	assert_int_equal(constraint_solve(&with, unsolvable), 0);
}

static void equations_that_are_linear_in_one_axis_are_solved(void **state)
{
	static const struct {
		const char *text;
		int64_t batch;
	} equations[] = {
	    {"page_size == 2 * batch_size", 32},	 {"batch_size + 1 == 4", 3},   {"3 * (batch_size - 2) == heads + 1", 5},
	    {"heads - 2 == batch_size - heads", 14}, {"7 * batch_size == 0", 0}, {"64 - batch_size == batch_size", 32},
	};

	(void)state;
	for (size_t i = 0; i < sizeof equations / sizeof *equations; i++) {
		struct definition with = definition;
		int64_t axis[AXES] = {-1, -1, -1, 64, 8};

		with.constraints = &equations[i].text;
		with.constraint_count = 1;
		assert_int_equal(constraint_solve(&with, axis), 1);
		assert_int_equal(axis[BATCH], equations[i].batch);
		assert_int_equal(axis[LEN], -1);
	}
}

static void axes_are_not_solved_to_nonsense(void **state)
{
	static const char *const texts[] = {"batch_size == 1 - 2",
	                                    "batch_size == 7 / 2",
	                                    "batch_size == 2 ** 60",
	                                    "batch_size == 1 // 0",
	                                    "batch_size == 4 or batch_size == 5",
	                                    "batch_size + 5 == 4",
	                                    "2 * batch_size == 5",
	                                    "batch_size * batch_size == 16",
	                                    "batch_size // 2 == 4",
	                                    "batch_size * len_indptr == 4",
	                                    "2 * batch_size >= 4",
	                                    "2 * batch_size == 4 and 1",
	                                    "batch_size - batch_size == 0",
	                                    "batch_size * 2 ** 52 == 2 ** 54",
	                                    "4 // batch_size == 2",
	                                    "batch_size % 8 == 0",
	                                    "batch_size % 1000 == 4",
	                                    "min(batch_size, 70000) == 4",
	                                    "batch_size == 3 == 3",
	                                    "batch_size >= 4",
	                                    "batch_size == indptr[0]",
	                                    "-batch_size == 4",
	                                    "batch_size =="};
	struct definition with = definition;
	int64_t axis[AXES] = {-1, -1, -1, 64, 8};

	(void)state;
	with.constraints = texts;
	with.constraint_count = sizeof texts / sizeof *texts;
	assert_int_equal(constraint_solve(&with, axis), 0);
	assert_int_equal(axis[BATCH], -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(texts_of_real_definitions_are_understood),
	    cmocka_unit_test(text_that_makes_no_sense_is_an_error_with_its_column),
	    cmocka_unit_test(long_and_deep_texts_are_refused),
	    cmocka_unit_test(arithmetic_is_that_of_python),
	    cmocka_unit_test(contents_are_read_within_bounds),
	    cmocka_unit_test(a_broken_constraint_is_reported_with_its_values),
	    cmocka_unit_test(what_cannot_be_evaluated_is_an_error),
	    cmocka_unit_test(sums_and_empty_tensors_are_watched),
	    cmocka_unit_test(what_is_not_given_is_unknown),
	    cmocka_unit_test(contents_are_known_one_by_one),
	    cmocka_unit_test(axes_are_solved_from_one_another),
	    cmocka_unit_test(axes_are_not_solved_to_nonsense),
	    cmocka_unit_test(equations_that_are_linear_in_one_axis_are_solved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
