/* roles - finds the roles of attention inputs by shapes and names. If a definition does not match, the error message
 * says what was expected. */
#include "kernels/common/attention/roles.h"

#include <string.h>

#include "kernels/core/shape_match.h"

/* The roles that attention with whole heads and attention with latent heads have in common. */
#define COMMON_ROLES                                                                                                      \
	OP_ROLE("q", struct attention_roles, query[0]), OP_ROLE("q_pe", struct attention_roles, query[1]),                \
	    OP_ROLE("k", struct attention_roles, key[0]), OP_ROLE("k_pe", struct attention_roles, key[1]),                \
	    OP_ROLE("scale", struct attention_roles, scale), OP_ROLE("qo_indptr", struct attention_roles, qo_indptr),     \
	    OP_ROLE("kv_indptr", struct attention_roles, kv_indptr),                                                      \
	    OP_ROLE("kv_indices", struct attention_roles, kv_indices),                                                    \
	    OP_ROLE("last_page_len", struct attention_roles, last_page_len),                                              \
	    OP_ROLE("sparse", struct attention_roles, sparse), OP_ROLE_OUTPUT("output", struct attention_roles, output),  \
	    OP_ROLE_OUTPUT("lse", struct attention_roles, lse)

const struct op_role attention_role_names[] = {COMMON_ROLES, OP_ROLE("v", struct attention_roles, value), {NULL, 0, false}};
const struct op_role attention_latent_role_names[] = {COMMON_ROLES, {NULL, 0, false}};
const struct op_mode attention_mode_names[] = {{"causal", ATTENTION_CAUSAL, ATTENTION_CAUSAL}, {NULL, 0, 0}};

struct attention_roles attention_no_roles(void)
{
	return (struct attention_roles){.query = {-1, -1},
	                                .key = {-1, -1},
	                                .value = -1,
	                                .scale = -1,
	                                .qo_indptr = -1,
	                                .kv_indptr = -1,
	                                .kv_indices = -1,
	                                .last_page_len = -1,
	                                .sparse = -1,
	                                .output = -1,
	                                .lse = -1};
}

bool attention_is_float(const struct op_arg *arg)
{
	switch (arg->dtype) { /* the dtypes that attention.cu loads */
	case DTYPE_FLOAT64:
	case DTYPE_FLOAT32:
	case DTYPE_FLOAT16:
	case DTYPE_BFLOAT16:
	case DTYPE_FLOAT8_E4M3FN:
	case DTYPE_FLOAT8_E5M2:
		return arg->rank != OP_SCALAR;
	default:
		return false;
	}
}

bool attention_is_integer(const struct op_arg *arg)
{
	return arg->rank != OP_SCALAR && (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64);
}

bool attention_same_axes(const struct op_problem *problem, const struct op_arg *a, const struct op_arg *b, int from,
                         int to)
{
	return match_same_axes(problem, a, from, b, from, to - from);
}

/* Returns a pointer to the member of `roles` for an index vector with this name, or NULL if no role has this name. */
static int *place_of(struct attention_roles *roles, const char *name)
{
	bool of_queries = name[0] == 'q' || name[0] == 'Q' || match_contains(name, "qo_") || match_contains(name, "_q");

	if (match_contains(name, "last"))
		return &roles->last_page_len;
	if (match_contains(name, "indices"))
		return &roles->kv_indices;
	if (match_contains(name, "indptr") || match_contains(name, "cu_seqlens") || match_contains(name, "offsets"))
		return of_queries ? &roles->qo_indptr : &roles->kv_indptr;
	return NULL;
}

static int find_scalar(const struct op_problem *problem, struct attention_roles *roles, int i, struct err *why)
{
	const struct op_arg *input = &problem->inputs[i];

	if (roles->scale >= 0 || !dtype_is_float(input->dtype) || !match_contains(input->name, "scale"))
		return match_refuse(problem, input,
				    "only one scalar: the softmax scale, a float with \"scale\" in its name", why);
	roles->scale = i;
	return 0;
}

static int find_vector(const struct op_problem *problem, struct attention_roles *roles, int i, struct err *why)
{
	const struct op_arg *input = &problem->inputs[i];
	int *place = place_of(roles, input->name);

	if (place == NULL || *place >= 0)
		return match_refuse(problem, input,
				    "an index vector with a name like qo_indptr, kv_indptr, kv_indices or "
				    "kv_last_page_len, and at most one of each",
				    why);
	*place = i;
	return 0;
}

int attention_find_indices(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (input->optional)
			return match_refuse(problem, input, "an input without \"optional\": true", why);
		if (input->rank == OP_SCALAR && find_scalar(problem, roles, i, why) != 0)
			return -1;
		if (input->rank == 1 && attention_is_integer(input) && find_vector(problem, roles, i, why) != 0)
			return -1;
	}
	if (roles->scale < 0)
		return err_set(why, "the inputs lack a Python scalar with the softmax scale");
	if (problem->output_count < 1 || problem->output_count > 2)
		return err_set(why,
		               "expected an output [queries, heads, head dim] and, optionally, a log-sum-exp"
		               " [queries, heads] of float32; the definition has %d outputs",
		               problem->output_count);
	roles->output = problem->output_count == 2 && problem->outputs[0].rank < problem->outputs[1].rank ? 1 : 0;
	roles->lse = problem->output_count == 2 ? 1 - roles->output : -1;
	return 0;
}

/* --- shapes ------------------------------------------------------------------------------------------------------- */

static bool in_pages(const struct attention_roles *roles)
{
	return roles->kv_indices >= 0 || roles->sparse >= 0;
}

static bool all_const(const struct op_problem *problem, const struct op_arg *arg, int from)
{
	for (int d = from; d < arg->rank; d++)
		if (problem->axes[arg->axis[d]].var)
			return false;
	return true;
}

static int validate_queries(const struct op_problem *problem, const struct attention_roles *roles, struct err *why)
{
	const struct op_arg *first = &problem->inputs[roles->query[0]];

	for (int p = 0; p < ATTENTION_PARTS && roles->query[p] >= 0; p++) {
		const struct op_arg *query = &problem->inputs[roles->query[p]];

		if (query->rank != 3 || !attention_is_float(query) ||
		    !attention_same_axes(problem, first, query, 0, 2) || !all_const(problem, query, 1))
			return match_refuse(problem, query,
					    "[queries, heads, head dim] of floats, where heads and head dim are const",
					    why);
	}
	return 0;
}

/* Returns the number of axes before the head axis in the keys and values. */
static int leading(const struct attention_roles *roles)
{
	return in_pages(roles) ? 2 : 1;
}

/* Checks the shape of one part of the keys, or of the values. All axes except the last must be the same as in key[0];
 * the last axis must be the same as in `last`. */
static int validate_rows(const struct op_problem *problem, const struct attention_roles *roles, int input,
                         const struct op_arg *last, struct err *why)
{
	const struct op_arg *rows = &problem->inputs[input], *first = &problem->inputs[roles->key[0]];
	int lead = leading(roles);
	const char *expected = in_pages(roles)
	                           ? "[pages, page size, kv heads, head dim] or [pages, page size, head dim] of one "
	                             "float dtype in all caches; all axes except pages must be const and equal the "
	                             "axes of the queries and the output"
	                           : "[keys, kv heads, head dim] of floats; all axes except keys must be const and "
	                             "equal the axes of the queries and the output";

	if ((rows->rank != lead + 1 && rows->rank != lead + 2) || rows->rank != first->rank ||
	    !attention_is_float(rows) || rows->dtype != first->dtype ||
	    !attention_same_axes(problem, first, rows, 0, rows->rank - 1) || !all_const(problem, rows, 1) ||
	    !match_same_axis(problem, rows->axis[rows->rank - 1], last->axis[last->rank - 1]))
		return match_refuse(problem, rows, expected, why);
	return 0;
}

static int validate_keys(const struct op_problem *problem, const struct attention_roles *roles, struct err *why)
{
	const struct op_arg *key = &problem->inputs[roles->key[0]], *query = &problem->inputs[roles->query[0]];
	int lead = leading(roles);

	if (in_pages(roles) && key->rank > 2 && problem->axes[key->axis[1]].value > ATTENTION_PAGE)
		return match_refuse(problem, key, "pages of at most 65536 keys", why);
	for (int p = 0; p < ATTENTION_PARTS && roles->key[p] >= 0; p++)
		if (validate_rows(problem, roles, roles->key[p], &problem->inputs[roles->query[p]], why) != 0)
			return -1;
	if (validate_rows(problem, roles, roles->value, &problem->outputs[roles->output], why) != 0)
		return -1;
	if (key->rank == lead + 2) {
		int64_t heads = problem->axes[query->axis[1]].value, kv_heads = problem->axes[key->axis[lead]].value;

		if (heads % kv_heads != 0)
			return err_set(why, "the number of query heads, %lld, is not a multiple of the number of key "
					    "heads, %lld", (long long)heads, (long long)kv_heads);
	}
	return 0;
}

static int validate_outputs(const struct op_problem *problem, const struct attention_roles *roles, struct err *why)
{
	const struct op_arg *output = &problem->outputs[roles->output], *query = &problem->inputs[roles->query[0]];

	if (output->rank != 3 || !attention_is_float(output) || !attention_same_axes(problem, query, output, 0, 2) ||
	    !all_const(problem, output, 1))
		return match_refuse(problem, output,
				    "[queries, heads, head dim] of floats, where queries and heads are the same axes "
				    "as in the query",
				    why);
	if (roles->lse >= 0) {
		const struct op_arg *lse = &problem->outputs[roles->lse];

		if (lse->rank != 2 || lse->dtype != DTYPE_FLOAT32 || !attention_same_axes(problem, query, lse, 0, 2))
			return match_refuse(problem, lse, "[queries, heads] of float32, the base-2 log-sum-exp",
					    why);
	}
	return 0;
}

static int validate_sequences(const struct op_problem *problem, const struct attention_roles *roles, struct err *why)
{
	if (roles->sparse >= 0) {
		const struct op_arg *sparse = &problem->inputs[roles->sparse];

		if (!attention_same_axes(problem, sparse, &problem->inputs[roles->query[0]], 0, 1))
			return match_refuse(problem, sparse, "[queries, largest number of keys of a query]", why);
		return 0;
	}
	if (roles->kv_indptr < 0)
		return err_set(why, "the inputs lack the index vector kv_indptr");
	if (roles->kv_indices < 0 && roles->qo_indptr < 0)
		return err_set(why, "the inputs lack the index vector qo_indptr, which assigns the queries to "
			"sequences");
	if (roles->qo_indptr >= 0 &&
	    !attention_same_axes(problem, &problem->inputs[roles->qo_indptr], &problem->inputs[roles->kv_indptr], 0, 1))
		return match_refuse(problem, &problem->inputs[roles->qo_indptr],
				    "an index vector with the shape of kv_indptr", why);
	if (roles->last_page_len >= 0 && roles->kv_indices < 0)
		return match_refuse(problem, &problem->inputs[roles->last_page_len],
				    "no last page lengths, because the inputs do not include kv_indices", why);
	return 0;
}

/* Checks that every tensor has a role. */
static int validate_parts(const struct op_problem *problem, const struct attention_roles *r, struct err *why)
{
	const int parts[] = {r->query[0],  r->query[1],  r->key[0],     r->key[1],        r->value, r->scale,
	                     r->qo_indptr, r->kv_indptr, r->kv_indices, r->last_page_len, r->sparse};

	for (int i = 0; i < problem->input_count; i++) {
		bool known = false;

		for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
			known = known || parts[p] == i;
		if (!known)
			return match_refuse(problem, &problem->inputs[i], "no input of this shape and dtype", why);
	}
	return 0;
}

int attention_validate(const struct op_problem *problem, const struct attention_roles *roles, struct err *why)
{
	if (validate_parts(problem, roles, why) != 0 || validate_queries(problem, roles, why) != 0 ||
	    validate_keys(problem, roles, why) != 0 || validate_outputs(problem, roles, why) != 0)
		return -1;
	return validate_sequences(problem, roles, why);
}

/* --- causal or not ------------------------------------------------------------------------------------------------ */

/* Returns 1 if the text says "causal", 0 if it says "not causal", and -1 if it says neither. */
static int causal_in(const char *text)
{
	static const char *const not_causal[] = {"noncausal",        "non_causal",   "non-causal",
	                                         "not causal",       "no causal",    "without causal",
	                                         "without a causal", "causal:false", "causal=false"};

	for (size_t i = 0; text != NULL && i < sizeof not_causal / sizeof *not_causal; i++)
		if (match_contains(text, not_causal[i]))
			return 0;
	return text != NULL && match_contains(text, "causal") ? 1 : -1;
}

bool attention_is_causal(const struct op_problem *problem, const struct attention_roles *roles)
{
	int said = causal_in(problem->name);

	if (roles->qo_indptr < 0)
		return false; /* in decode, a causal mask hides no key */
	for (int i = 0; said < 0 && i < problem->tag_count; i++)
		said = causal_in(problem->tags[i]);
	if (said < 0)
		said = causal_in(problem->description);
	return said == 1;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

struct attention_extent attention_extent_of(const struct op_case *c, const struct attention_roles *roles)
{
	const struct op_arg *query = &c->problem->inputs[roles->query[0]], *key = &c->problem->inputs[roles->key[0]];
	const struct op_arg *output = &c->problem->outputs[roles->output];
	int lead = leading(roles);
	struct attention_extent e = {0};

	e.queries = c->axis[query->axis[0]];
	e.heads = c->axis[query->axis[1]];
	e.kv_heads = key->rank == lead + 2 ? c->axis[key->axis[lead]] : 1;
	for (int p = 0; p < ATTENTION_PARTS && roles->query[p] >= 0; p++)
		e.dim[p] = c->axis[c->problem->inputs[roles->query[p]].axis[2]];
	e.value_dim = c->axis[output->axis[2]];
	e.pages = c->axis[key->axis[0]];
	e.page_size = lead == 2 ? c->axis[key->axis[1]] : 1;
	e.rows = e.pages * e.page_size;
	e.entries = e.rows;
	if (roles->kv_indices >= 0)
		e.entries = c->axis[c->problem->inputs[roles->kv_indices].axis[0]];
	if (roles->sparse >= 0)
		e.entries = c->axis[c->problem->inputs[roles->sparse].axis[1]];
	if (roles->kv_indptr >= 0) {
		int64_t length = c->axis[c->problem->inputs[roles->kv_indptr].axis[0]];

		e.batch = length > 0 ? length - 1 : 0;
	}
	return e;
}
