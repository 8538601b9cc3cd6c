/* test_kda - tests the family kda. Each key element of each head has a gate, and each token corrects the state. A gate
 * is given directly, through softplus, or with a lower bound. */
#include "tests/unit/recurrence_family.h"

extern const struct op kda_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(2, 2, 32, 32);

static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, KEY_GATE, BETA, SCALE, STATE};
static const struct op_arg long_in[] = {{"q", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HQ, K}, false, NULL},
                                        {"k", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HQ, K}, false, NULL},
                                        {"v", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HV, V}, false, NULL},
                                        {"g", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HV, K}, false, NULL}, A_LOG,
                                        {"dt_bias", DTYPE_FLOAT32, 1, {FLAT}, false, NULL},
                                        {"beta", DTYPE_FLOAT16, 3, {ONE, TOTAL, HV}, false, NULL}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg bounded_in[] = {QUERY, KEY, VALUE, KEY_GATE, A_LOG,
                                           {"dt_bias", DTYPE_FLOAT32, 2, {HV, K}, false, NULL}, BETA,
                                           SCALAR("lower_bound", DTYPE_FLOAT32)};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, output_alone[] = {OUTPUT};
static const struct op_arg long_out[] = {{"o", DTYPE_FLOAT32, 4, {ONE, TOTAL, HV, V}, false, NULL}, PACKED_LAST};

#define OF_BOTH OF_KEY_GATES, OF_DELTA, RECALLED_BEFORE_DECAY
enum { NORMED, LONG, BOUNDED };
static const struct family_problem problems[] = {
    [NORMED] = {PROBLEM("kda_v_first_qk_l2norm", "kda", square, dense_in, dense_out), "dcb7fa7e0706e021dd83748dccdbf6f4", 5,
                {OF_BOTH, OF_NORMS, INITIAL_STATE_IGNORED}},
    [LONG] = {PROBLEM("kda_varlen_beta_sigmoid", "kda", oblong, long_in, long_out), "dff2f2e9c282b0b1bbb2b933f959e81c", 4,
              {OF_BOTH, OF_SOFTPLUS, OF_PACKING, SIGMOID_LEFT_OUT}},
    [BOUNDED] = {PROBLEM("kda_lower_bound", "kda", oblong, bounded_in, output_alone), "226f5a0e3db626bb7b78c25b67dc77c5", 3,
                 {OF_BOTH, BOUND_IGNORED, BIAS_LEFT_OUT, RATE_LEFT_OUT, RATE_WITHOUT_EXPONENTIAL,
                  SIGMOID_IN_ANY_CASE}},
};

static void bound_by_nothing(struct trial *t, const struct recurrence_roles *roles)
{
	t->c.scalar[roles->lower_bound] = 0;
}

static const struct op_arg a_gate_a_head[] = {QUERY, KEY, VALUE, BETA, HEAD_GATE};
static const struct op_arg gamma_alone[] = {QUERY, KEY, VALUE, BETA, {"g_gamma", DTYPE_FLOAT32, 1, {HV}, false, NULL}};
static const struct op_arg short_bias[] = {QUERY, KEY, VALUE, KEY_GATE, BETA, A_LOG, HEAD_BIAS};
static const struct op_arg slots[] = {QUERY, KEY, VALUE, KEY_GATE, BETA, STATE,
                                      {"ssm_state_indices", DTYPE_INT32, 1, {B}, false, NULL}};
static const struct refused refused[] = {
    {PROBLEM("x", "kda", oblong, a_gate_a_head, dense_out), "followed by the last axis of q"},
    {PROBLEM("x", "kda", oblong, gamma_alone, dense_out), "the gate g is missing"},
    {PROBLEM("x", "kda", oblong, short_bias, dense_out), "or the same elements in one axis"},
    {PROBLEM("x", "kda", oblong, slots, dense_out), "'ssm_state_indices' is"},
};

int main(void)
{
	struct family kda = {.op = &kda_op,
	                     .problems = problems,
	                     .count = COUNT(problems),
	                     .packed = LONG,
	                     .refused = refused,
	                     .refused_count = COUNT(refused),
	                     .spoil_scalar = bound_by_nothing,
	                     .scalar_of = BOUNDED,
	                     .scalar_part = "below 0"};

	return test_family(&kda);
}
