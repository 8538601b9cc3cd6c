/* test_delta_rule - tests the family delta_rule, in which each token corrects the state and the state never decays. */
#include "tests/unit/recurrence_family.h"

extern const struct op delta_rule_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(2, 2, 32, 32);

static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, BETA, SCALE, STATE};
static const struct op_arg packed_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                          {"b", DTYPE_FLOAT32, 2, {TOTAL, HV}, false, NULL}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

enum { DENSE, PACKED, NORMED, DOUBLED };
static const struct family_problem problems[] = {
    [DENSE] = {PROBLEM("delta_rule_dense", "delta_rule", oblong, dense_in, dense_out), "4ffab0e26c84da55dc911f19340ce0b7", 3,
               {OF_DELTA, INITIAL_STATE_IGNORED, SIGMOID_IN_ANY_CASE, NORM_IN_ANY_CASE}},
    [PACKED] = {PROBLEM("delta_rule_varlen", "delta_rule", oblong, packed_in, packed_out), "3b1a2b67da46b4c82e4996f6c5c56bcf", 4,
                {OF_DELTA, OF_PACKING, INITIAL_STATE_IGNORED, SIGMOID_LEFT_OUT, DOUBLED_IN_ANY_CASE}},
    [NORMED] = {PROBLEM("delta_rule_qk_l2norm", "delta_rule", square, dense_in, dense_out), "d00dd6664511e44d5a373c74e81c8b62",
                4, {OF_DELTA, OF_NORMS, INITIAL_STATE_IGNORED}},
    [DOUBLED] = {PROBLEM("delta_rule_neg-eigval", "delta_rule", square, packed_in, packed_out),
                 "b43702841d9f49b20687263ff0720842", 4,
                 {OF_DELTA, OF_PACKING, INITIAL_STATE_IGNORED, SIGMOID_LEFT_OUT, NOT_DOUBLED}},
};

static const struct op_arg no_beta[] = {QUERY, KEY, VALUE};
static const struct op_arg gated[] = {QUERY, KEY, VALUE, BETA, HEAD_GATE};
static const struct op_arg beta_a_value[] = {QUERY, KEY, VALUE, {"beta", DTYPE_FLOAT32, 4, {B, T, HV, V}, false, NULL}};
static const struct op_arg rates[] = {QUERY, KEY, VALUE, BETA, A_LOG};
static const struct op_arg long_row[] = {QUERY, KEY, VALUE, BETA, CU_SEQLENS};
static const struct op_arg strange[] = {QUERY, KEY, VALUE, BETA, {"mask", DTYPE_BOOL, 2, {B, T}, false, NULL}};
static const struct refused refused[] = {
    {PROBLEM("x", "delta_rule", oblong, no_beta, dense_out), "beta is missing"},
    {PROBLEM("x", "delta_rule", oblong, gated, dense_out), "the inputs include a gate"},
    {PROBLEM("x", "delta_rule", oblong, beta_a_value, dense_out), "'beta' is"},
    {PROBLEM("x", "delta_rule", oblong, rates, dense_out), "need a gate g"},
    {PROBLEM("x", "delta_rule", oblong, long_row, dense_out), "or [1, total, heads, dim]"},
    {PROBLEM("x", "delta_rule", oblong, strange, dense_out), "'mask' is"},
};

int main(void)
{
	struct family delta_rule = {.op = &delta_rule_op,
	                            .problems = problems,
	                            .count = COUNT(problems),
	                            .packed = PACKED,
	                            .refused = refused,
	                            .refused_count = COUNT(refused)};

	return test_family(&delta_rule);
}
