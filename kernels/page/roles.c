#include "kernels/page/roles.h"

#include <string.h>

#include "base/err.h"
#include "kernels/core/shape_match.h"

/* Finds the role of input `i` by its name. The input is a table of integers. */
static void table_role(const struct op_problem *problem, int i, struct page_roles *roles)
{
	const char *name = problem->inputs[i].name;

	if (strstr(name, "position") != NULL)
		roles->positions = i;
	else if (strstr(name, "indptr") != NULL)
		roles->indptr = i;
	else if (strstr(name, "last_page") != NULL)
		roles->last_page_len = i;
	else if (strstr(name, "batch") != NULL)
		roles->batch_indices = i;
	else
		roles->indices = i;
}

/* Returns the output that belongs to a cache: the output with the cache's name or, if there is none, output number
 * `order`. */
static int output_of(const struct op_problem *problem, int cache, int order)
{
	for (int i = 0; i < problem->output_count; i++)
		if (strcmp(problem->outputs[i].name, problem->inputs[cache].name) == 0)
			return i;
	return order < problem->output_count ? order : -1;
}

/* Float tensors with the token axis are appended, and other float tensors are caches. */
struct page_roles page_roles_of(const struct op_problem *problem)
{
	struct page_roles roles = {{-1, -1}, {-1, -1}, {-1, -1}, 0, 0, -1, -1, -1, -1, -1};
	int token = -1;

	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == 1 && !dtype_is_float(problem->inputs[i].dtype))
			table_role(problem, i, &roles);
	if (roles.positions >= 0)
		token = problem->inputs[roles.positions].axis[0];
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (!dtype_is_float(input->dtype) || input->rank < 2)
			continue;
		if (input->axis[0] == token && strstr(input->name, "cache") == NULL && roles.parts < PAGE_PARTS)
			roles.append[roles.parts++] = i;
		else if (roles.caches < PAGE_PARTS)
			roles.cache[roles.caches++] = i;
	}
	for (int j = 0; j < roles.caches; j++)
		roles.output[j] = output_of(problem, roles.cache[j], j);
	return roles;
}

struct page_extent page_extent_of(const struct op_case *c, int part)
{
	const struct op_problem *problem = c->problem;
	struct page_roles roles = page_roles_of(problem);
	int combined = (c->variant & PAGE_COMBINED) != 0, hnd = (c->variant & PAGE_HND) != 0;
	const struct op_arg *append = &problem->inputs[roles.append[part]];
	const struct op_arg *cache = &problem->inputs[roles.cache[combined ? 0 : part]];
	struct page_extent e;

	e.pages = c->axis[cache->axis[0]];
	e.page_size = c->axis[cache->axis[1 + combined + hnd]];
	e.heads = append->rank == 3 ? c->axis[append->axis[1]] : 1;
	e.width = c->axis[append->axis[append->rank - 1]];
	e.halves = combined ? 2 : 1;
	e.hnd = hnd;
	return e;
}

static bool is_table(const struct op_problem *problem, int input, int axis)
{
	const struct op_arg *arg = &problem->inputs[input];

	return arg->rank == 1 && (axis < 0 || arg->axis[0] == axis) &&
	       (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64);
}

static int match_tables(const struct op_problem *problem, const struct page_roles *roles, struct err *why)
{
	int tables = (roles->last_page_len >= 0) + 4;

	if (roles->positions < 0 || roles->batch_indices < 0 || roles->indptr < 0 || roles->indices < 0)
		return err_set(
		    why, "the inputs must include four tables of integers: batch indices, positions, an indptr and "
			 "page indices");
	int token = problem->inputs[roles->positions].axis[0];

	if (!is_table(problem, roles->positions, token) || !is_table(problem, roles->batch_indices, token) ||
	    !is_table(problem, roles->indptr, -1) || !is_table(problem, roles->indices, -1) ||
	    (roles->last_page_len >= 0 && !is_table(problem, roles->last_page_len, -1)))
		return err_set(
		    why,
		    "the tables must be int32 or int64 with one axis, and batch indices and positions must have one "
		    "entry per token");
	if (tables + roles->parts + roles->caches != problem->input_count)
		return err_set(why, "the definition has %d inputs, but only %d tables, %d appended tensors and %d "
				    "caches were found among them",
		               problem->input_count, tables, roles->parts, roles->caches);
	return 0;
}

/* Returns the layout of `cache`. After its first `at` axes, the cache must have the axis of the page size and all axes
 * of `append` except the token axis. Returns 0 if the page size comes first, PAGE_HND if the heads come first, and -1
 * for any other axes. */
static int layout_of(const struct op_arg *append, const struct op_arg *cache, int at)
{
	int heads = append->rank == 3 ? append->axis[1] : -1, width = append->axis[append->rank - 1];

	if (cache->rank != at + append->rank || cache->axis[cache->rank - 1] != width)
		return -1;
	if (heads < 0 || cache->axis[at + 1] == heads)
		return 0;
	return cache->axis[at] == heads ? PAGE_HND : -1;
}

static int match_caches(const struct op_problem *problem, const struct page_roles *roles, struct err *why)
{
	bool combined = roles->caches == 1 && roles->parts == 2;
	int variant = -1;
	char shape[256];

	for (int part = 0; part < roles->parts; part++) {
		const struct op_arg *append = &problem->inputs[roles->append[part]];
		const struct op_arg *cache = &problem->inputs[roles->cache[combined ? 0 : part]];
		bool pair =
		    cache->rank > 1 && !problem->axes[cache->axis[1]].var && problem->axes[cache->axis[1]].value == 2;
		int layout = append->rank > 3 || (combined && !pair) ? -1 : layout_of(append, cache, combined ? 2 : 1);

		if (layout < 0 || (part > 0 && layout != variant))
			return err_set(why, "cache '%s' has shape %s; its pages cannot hold the rows of '%s'",
			               cache->name, op_shape_text(problem, cache, shape, sizeof shape), append->name);
		if (append->dtype != cache->dtype || append->dtype == DTYPE_FLOAT4_E2M1)
			return err_set(why,
			               "'%s' is %s and cache '%s' is %s; only copies without conversion are supported",
			               append->name, dtype_name(append->dtype), cache->name, dtype_name(cache->dtype));
		variant = layout;
	}
	return combined ? variant | PAGE_COMBINED : variant;
}

static int match_outputs(const struct op_problem *problem, const struct page_roles *roles, struct err *why)
{
	if (problem->output_count != roles->caches || (roles->caches == 2 && roles->output[0] == roles->output[1]))
		return err_set(why, "the definition has %d outputs; it must return its %d caches",
		               problem->output_count, roles->caches);
	for (int j = 0; j < roles->caches; j++) {
		const struct op_arg *cache = &problem->inputs[roles->cache[j]],
				    *output = &problem->outputs[roles->output[j]];

		if (!match_same_shape(cache, output) || cache->dtype != output->dtype)
			return err_set(why, "output '%s' must have the shape and dtype of cache '%s'", output->name,
			               cache->name);
	}
	return 0;
}

static bool is_latent(const struct op_problem *problem, const struct page_roles *roles)
{
	for (int part = 0; part < roles->parts; part++)
		if (problem->inputs[roles->append[part]].rank != 2)
			return false;
	return true;
}

int page_match(const struct op_problem *problem, struct err *why)
{
	struct page_roles roles = page_roles_of(problem);

	if (roles.parts < 1 || roles.caches < 1 || (roles.caches != roles.parts && roles.caches != 1))
		return err_set(
		    why,
		    "the definition has %d tensors with a row per token and %d caches; it must have one of each, two "
		    "of each, or two tensors and one cache",
		    roles.parts, roles.caches);
	if (match_tables(problem, &roles, why) != 0 || match_outputs(problem, &roles, why) != 0)
		return -1;
	int layout = match_caches(problem, &roles, why);
	bool padded = problem->description != NULL && strstr(problem->description, "padding") != NULL;

	return layout < 0 ? layout : layout | (padded ? PAGE_PADDED : 0) | (is_latent(problem, &roles) ? PAGE_LATENT : 0);
}

const struct op_role page_role_names[] = {
    OP_ROLE("append", struct page_roles, append[0]),
    OP_ROLE("append_other", struct page_roles, append[1]),
    OP_ROLE("cache", struct page_roles, cache[0]),
    OP_ROLE("cache_other", struct page_roles, cache[1]),
    OP_ROLE("batch_indices", struct page_roles, batch_indices),
    OP_ROLE("positions", struct page_roles, positions),
    OP_ROLE("indptr", struct page_roles, indptr),
    OP_ROLE("indices", struct page_roles, indices),
    OP_ROLE("last_page_len", struct page_roles, last_page_len),
    OP_ROLE_OUTPUT("output", struct page_roles, output[0]),
    OP_ROLE_OUTPUT("output_other", struct page_roles, output[1]),
    {NULL, 0, false},
};

void page_bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct page_roles *)out = page_roles_of(problem);
}

const struct op_mode page_mode_names[] = {
    {"hnd", PAGE_HND, PAGE_HND},
    {"combined", PAGE_COMBINED, PAGE_COMBINED},
    {"padded", PAGE_PADDED, PAGE_PADDED},
    {"latent", PAGE_LATENT, PAGE_LATENT},
    {NULL, 0, 0},
};
