/* test_simple_gla - tests the family simple_gla. Each head has a gate, which may be constant, and each token only adds
 * to the state. */
#include "tests/unit/recurrence_family.h"

extern const struct op simple_gla_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(4, 4, 32, 32);

#define GAMMA {"g_gamma", DTYPE_FLOAT32, 1, {HV}, false, NULL}
static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, HEAD_GATE, SCALE, STATE};
static const struct op_arg gamma_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE, GAMMA, CU_SEQLENS, SCALE,
                                         PACKED_STATE};
static const struct op_arg raw_in[] = {QUERY, KEY, VALUE, {"g", DTYPE_BFLOAT16, 3, {B, T, HV}, false, NULL}, A_LOG,
                                       HEAD_BIAS};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};
static const struct op_arg output_alone[] = {OUTPUT};

enum { DENSE, CONSTANT, RAW };
static const struct family_problem problems[] = {
    [DENSE] = {PROBLEM("simple_gla_dense", "simple_gla", oblong, dense_in, dense_out), "cc77a52bd4c03d5ab439ced7bf86a3c1", 4,
               {OF_GATES, DECAY_OF_THE_TOKEN_BEFORE, INITIAL_STATE_IGNORED}},
    [CONSTANT] = {PROBLEM("simple_gla_gamma", "simple_gla", square, gamma_in, packed_out), "74d09c72e5d0045e76bad2d45a02d13e", 5,
                  {OF_GATES, OF_PACKING, INITIAL_STATE_IGNORED}},
    [RAW] = {PROBLEM("simple_gla_gate", "simple_gla", square, raw_in, output_alone), "82eac3ce4db7c5f6fc3bc0974ffb51f9", 3,
             {OF_GATES, OF_SOFTPLUS, DECAY_OF_THE_TOKEN_BEFORE}},
};

static const struct op_arg two[] = {QUERY, KEY, VALUE, HEAD_GATE, GAMMA};
static const struct op_arg none[] = {QUERY, KEY, VALUE};
static const struct op_arg long_gamma[] = {QUERY, KEY, VALUE, {"g_gamma", DTYPE_FLOAT32, 1, {K}, false, NULL}};
static const struct op_arg bias_of_nothing[] = {QUERY, KEY, VALUE, GAMMA, A_LOG};
static const struct op_arg shared_by_three[] = {QUERY, KEY, {"v", DTYPE_BFLOAT16, 4, {B, T, K, V}, false, NULL}, HEAD_GATE};
static const struct op_axis odd[] = AXES(3, 4, 24, 40), wide[] = AXES(2, 4, 520, 40);
static const struct refused refused[] = {
    {PROBLEM("x", "simple_gla", oblong, two, dense_out), "there are two gates, 'g' and 'g_gamma'"},
    {PROBLEM("x", "simple_gla", oblong, none, dense_out), "the gate g is missing"},
    {PROBLEM("x", "simple_gla", oblong, long_gamma, dense_out), "one element for each head of v"},
    {PROBLEM("x", "simple_gla", oblong, bias_of_nothing, dense_out), "need a gate g"},
    {PROBLEM("x", "simple_gla", oblong, shared_by_three, dense_out), "the shape of v"},
    {PROBLEM("x", "simple_gla", odd, dense_in, dense_out), "divides the number of heads of v"},
    {PROBLEM("x", "simple_gla", wide, dense_in, dense_out), "at most 512"},
};

int main(void)
{
	struct family simple_gla = {.op = &simple_gla_op,
	                            .problems = problems,
	                            .count = COUNT(problems),
	                            .packed = CONSTANT,
	                            .refused = refused,
	                            .refused_count = COUNT(refused)};

	return test_family(&simple_gla);
}
