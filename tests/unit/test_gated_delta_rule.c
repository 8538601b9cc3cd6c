/* test_gated_delta_rule - tests the family gated_delta_rule, in which each head has a gate, and each token corrects the
 * state. */
#include "tests/unit/recurrence_family.h"

extern const struct op gated_delta_rule_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(2, 4, 32, 32);

static const struct op_arg switched_in[] = {QUERY, KEY, VALUE, HEAD_GATE, BETA, SCALE, STATE,
                                            SCALAR("use_qk_l2norm_in_kernel", DTYPE_BOOL),
                                            SCALAR("use_beta_sigmoid_in_kernel", DTYPE_BOOL),
                                            SCALAR("allow_neg_eigval", DTYPE_BOOL)};
static const struct op_arg packed_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                          {"g", DTYPE_BFLOAT16, 2, {TOTAL, HV}, false, NULL}, A_LOG, HEAD_BIAS,
                                          {"beta", DTYPE_FLOAT32, 2, {TOTAL, HV}, false, NULL}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

#define OF_BOTH OF_GATES, DECAY_OF_THE_TOKEN_BEFORE, OF_DELTA, RECALLED_BEFORE_DECAY, INITIAL_STATE_IGNORED
enum { SWITCHED, PACKED };
static const struct family_problem problems[] = {
    [SWITCHED] = {PROBLEM("gated_delta_rule_switched", "gated_delta_rule", square, switched_in, dense_out),
                  "468c39c306cbb329baaab5e289184e2e", 5,
                  {OF_BOTH, OF_NORMS, NORM_IN_ANY_CASE, SIGMOID_LEFT_OUT, SIGMOID_IN_ANY_CASE, NOT_DOUBLED,
                   DOUBLED_IN_ANY_CASE}},
    [PACKED] = {PROBLEM("gated_delta_rule_varlen", "gated_delta_rule", oblong, packed_in, packed_out),
                "f8dd92c206a1e48402787bfa40877e5b", 4, {OF_BOTH, OF_SOFTPLUS, OF_PACKING}},
};

/* Asks for a doubled beta without a sigmoid. reftest rejects this problem, because some implementations double a beta
 * that is not the result of a sigmoid, and others do not. */
static void double_without_a_sigmoid(struct trial *t, const struct recurrence_roles *roles)
{
	t->c.scalar[roles->doubled] = 1;
	t->c.scalar[roles->sigmoid] = 0;
}

static const struct op_arg a_gate_a_key[] = {QUERY, KEY, VALUE, BETA, KEY_GATE};
static const struct op_arg no_gate[] = {QUERY, KEY, VALUE, BETA};
static const struct op_arg no_beta[] = {QUERY, KEY, VALUE, HEAD_GATE};
static const struct op_arg gate_of_keys[] = {QUERY, KEY, VALUE, BETA, {"g", DTYPE_FLOAT32, 3, {B, T, HQ}, false, NULL}};
static const struct op_arg a_pool[] = {QUERY, KEY, VALUE, HEAD_GATE, BETA,
                                       {"initial_state", DTYPE_FLOAT32, 4, {N, HV, K, V}, false, NULL}};
static const struct refused refused[] = {
    {PROBLEM("x", "gated_delta_rule", oblong, a_gate_a_key, dense_out), "without its last axis"},
    {PROBLEM("x", "gated_delta_rule", oblong, no_gate, dense_out), "the gate g is missing"},
    {PROBLEM("x", "gated_delta_rule", oblong, no_beta, dense_out), "beta is missing"},
    {PROBLEM("x", "gated_delta_rule", oblong, gate_of_keys, dense_out), "without its last axis"},
    {PROBLEM("x", "gated_delta_rule", oblong, a_pool, dense_out), "one state for each sequence of the batch"},
};

int main(void)
{
	struct family gated_delta_rule = {.op = &gated_delta_rule_op,
	                                  .problems = problems,
	                                  .count = COUNT(problems),
	                                  .packed = PACKED,
	                                  .refused = refused,
	                                  .refused_count = COUNT(refused),
	                                  .spoil_scalar = double_without_a_sigmoid,
	                                  .scalar_of = SWITCHED,
	                                  .scalar_part = "sigmoid"};

	return test_family(&gated_delta_rule);
}
