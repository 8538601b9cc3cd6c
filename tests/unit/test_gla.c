/* test_gla - tests the family gla, in which each element of a head's keys has a gate, and tokens only add to the
 * state. */
#include "tests/unit/recurrence_family.h"

extern const struct op gla_op;

static const struct op_axis oblong[] = AXES(2, 2, 24, 40), grouped[] = AXES(2, 4, 32, 32);

static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, KEY_GATE, SCALE, STATE};
static const struct op_arg packed_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                          {"gk", DTYPE_BFLOAT16, 3, {TOTAL, HV, K}, false, NULL}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg normed_in[] = {QUERY, KEY, VALUE, KEY_GATE};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

enum { DENSE, PACKED, NORMED };
static const struct family_problem problems[] = {
    [DENSE] = {PROBLEM("gla_dense", "gla", oblong, dense_in, dense_out), "65204095d620243f12cfde47bdf874a3", 4,
               {OF_KEY_GATES, INITIAL_STATE_IGNORED}},
    [PACKED] = {PROBLEM("gla_varlen", "gla", grouped, packed_in, packed_out), "bcf11e8d0a11e222c9c7994534a56d1e", 5,
                {OF_KEY_GATES, OF_PACKING, INITIAL_STATE_IGNORED}},
    [NORMED] = {PROBLEM("gla_qk_l2norm", "gla", grouped, normed_in, dense_out), "24ee6ba50455680953254f3b2ad3ca34", 5,
                {OF_KEY_GATES, OF_NORMS}},
};

static const struct op_arg no_gate[] = {QUERY, KEY, VALUE, SCALE};
static const struct op_arg a_gate_a_head[] = {QUERY, KEY, VALUE, HEAD_GATE};
static const struct op_arg alpha[] = {QUERY, KEY, VALUE, {"alpha", DTYPE_FLOAT32, 4, {B, T, HV, K}, false, NULL}};
static const struct op_arg beta[] = {QUERY, KEY, VALUE, KEY_GATE, BETA};
static const struct op_arg bias_alone[] = {QUERY, KEY, VALUE, KEY_GATE, {"dt_bias", DTYPE_FLOAT32, 2, {HV, K}, false, NULL}};
static const struct op_arg no_offsets[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                           {"g", DTYPE_FLOAT32, 3, {TOTAL, HV, K}, false, NULL}};
static const struct op_arg optional_gate[] = {QUERY, KEY, VALUE, {"g", DTYPE_FLOAT32, 4, {B, T, HV, K}, true, NULL}};
static const struct op_arg no_state[] = {LAST};
static const struct op_arg square_state[] = {OUTPUT, {"final_state", DTYPE_FLOAT32, 4, {B, HV, K, K}, false, NULL}};
static const struct refused refused[] = {
    {PROBLEM("x", "gla", oblong, no_gate, dense_out), "the gate g is missing"},
    {PROBLEM("x", "gla", oblong, a_gate_a_head, dense_out), "followed by the last axis of q"},
    {PROBLEM("x", "gla", oblong, alpha, dense_out), "'alpha' is"},
    {PROBLEM("x", "gla", oblong, beta, dense_out), "the inputs include beta"},
    {PROBLEM("x", "gla", oblong, bias_alone, dense_out), "which determine how the gate uses dt_bias"},
    {PROBLEM("x", "gla", oblong, no_offsets, packed_out), "need cu_seqlens"},
    {PROBLEM("x", "gla", oblong, optional_gate, dense_out), "an input without \"optional\": true"},
    {PROBLEM("x", "gla", oblong, dense_in, no_state), "no output has a value for each token"},
    {PROBLEM("x", "gla", oblong, dense_in, square_state), "expected floats [sequences, heads of v, K, V]"},
};

int main(void)
{
	struct family gla = {.op = &gla_op,
	                     .problems = problems,
	                     .count = COUNT(problems),
	                     .packed = PACKED,
	                     .refused = refused,
	                     .refused_count = COUNT(refused)};

	return test_family(&gla);
}
