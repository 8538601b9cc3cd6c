/* gqa_ragged - grouped-query attention over keys and values that are stored one sequence after the other (prefill
 * without a cache). kernels/common/attention/forms.h implements the family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/input_values.h"

static const char *const op_types[] = {"gqa_ragged", NULL};

static int match(const struct op_problem *problem, struct err *why)
{
	return attention_match(problem, ATTENTION_RAGGED, why);
}

const struct op gqa_ragged_op = {
    .name = "gqa_ragged",
    .op_types = op_types,
    .match = match,
    .roles = attention_role_names,
    ATTENTION_MEMBERS,
};
