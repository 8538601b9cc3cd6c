/* gqa_paged - grouped-query attention over a paged cache of keys and values, decode and prefill.
 * kernels/common/attention/forms.h implements the family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/input_values.h"

static const char *const op_types[] = {"gqa_paged", NULL};

static int match(const struct op_problem *problem, struct err *why)
{
	return attention_match(problem, ATTENTION_WHOLE, why);
}

const struct op gqa_paged_op = {
    .name = "gqa_paged",
    .op_types = op_types,
    .match = match,
    .roles = attention_role_names,
    ATTENTION_MEMBERS,
};
