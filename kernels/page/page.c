/* page - appends tokens to a paged cache: copies each vector to the slot that the page table assigns to its token.
 *
 *   page = kv_indices[kv_indptr[b] + position / page size], slot = position mod page size, for a token of sequence b
 *
 * append_key, append_value [tokens, heads, D] are copied to k_cache, v_cache [pages, page size, heads, D]. Other
 * variants have only keys or only values, have the head axis before the page size, or have keys and values in one cache
 * [pages, 2, …]. In multi-head latent attention, the tensors are ckv and kpe [tokens, width], with caches [pages, page
 * size, width]. The tables are int32 or int64: batch_indices and positions [tokens], kv_indptr [sequences + 1],
 * kv_indices, and kv_last_page_len [sequences] (which is not needed). The outputs are the new caches. The reference may
 * write to the cache inputs if the definition says so (op_in_place_as_said). FlashInfer calls these operations
 * page.append_paged_kv_cache and append_paged_mla_kv_cache.
 *
 * Tolerance: zero. Every element of the caches must equal the ground truth, including slots to which no token is
 * appended.
 *
 * A token of sequence -1 is padding and is not written. If a definition's description mentions padding, the token in
 * the middle of the batch is padding. If the description does not mention padding, only cases of --edge have padding. A
 * workload is invalid if a token's slot is outside the pages of its sequence. It is also invalid if two tokens have the
 * same slot, because the order of two writes to a slot is not defined. */
#include "kernels/core/op.h"

#include <math.h>

#include "kernels/core/coverage.h"
#include "kernels/core/simd.h"
#include "kernels/page/input_values.h"
#include "kernels/page/mistakes.h"
#include "kernels/page/oracle.h"
#include "kernels/page/page_table.h"
#include "kernels/page/roles.h"

/* In a medium case, the number of sequences and the number of tokens are multiples of BLOCK, or one more than a
 * multiple. In the first medium case, the prefix of the first sequence has at least PREFIX tokens and PREFIX_PAGES
 * pages, so that offsets in kv_indptr need more than 15 bits. */
enum { BLOCK = 256, MOST_SEQUENCES = 2 * BLOCK, MOST_TOKENS = 2 * BLOCK + 1, PREFIX = 1 << 17, PREFIX_PAGES = 1 << 15 };

/* The first medium case has at least POOL pages, so that page numbers need more than 8 bits. If 2 * POOL pages are
 * enough for more than POOL_PLACES slots (for example, if a page has 64 slots), the case also has more than POOL_PLACES
 * slots, so that slot numbers need more than 15 bits. These minimums do not apply if the cache would have more than
 * POOL_ELEMENTS elements. If LARGE_POOL pages have at most LARGE_POOL_ELEMENTS elements, the first medium case has at
 * least LARGE_POOL pages instead, so that page numbers need more than 12 bits. */
enum { POOL = 321, POOL_ELEMENTS = 1 << 25, POOL_PLACES = 1 << 15 };
enum { LARGE_POOL = 6145, LARGE_POOL_ELEMENTS = 1 << 23 };

/* Returns the number of pages of the first medium case: `pages`, or the minimum that the comment at POOL describes if
 * this is larger. */
static int64_t pool_of(const struct op_arg *cache, int64_t pages, int64_t page_size, const int64_t *axis)
{
	int64_t page = 1, all = POOL_PLACES / (page_size > 0 ? page_size : 1) + 1;
	int64_t most = all > POOL && all <= 2 * POOL ? all : POOL;

	for (int d = 1; d < cache->rank; d++) {
		int64_t extent = axis[cache->axis[d]] > 0 ? axis[cache->axis[d]] : 1;

		if (extent > POOL_ELEMENTS / most / page)
			return pages;
		page *= extent;
	}
	most = page <= LARGE_POOL_ELEMENTS / LARGE_POOL ? LARGE_POOL : most;
	return pages > most ? pages : most;
}

/* Writes the axes of a case. There are enough pages for 1.5 times `tokens` tokens in up to `filled` sequences, whatever
 * the lengths of the sequences are. At least a third of all pages is unused. If `prefix` is not 0, there may be more
 * pages (pool_of), and kv_indices also lists the pages of the prefix (at least PREFIX_PAGES). */
static void set_axes(const struct op_problem *problem, int variant, int64_t sequences, int64_t filled, int64_t tokens,
                     int64_t prefix, int64_t *axis)
{
	struct page_roles roles = page_roles_of(problem);
	const struct op_arg *append = &problem->inputs[roles.append[0]], *cache = &problem->inputs[roles.cache[0]];
	int size = cache->axis[1 + (variant & PAGE_COMBINED ? 1 : 0) + (variant & PAGE_HND ? 1 : 0)];

	op_start_axes(problem, 1, axis);
	for (int part = 0; part < roles.parts; part++)
		op_set_axis(problem,
		           problem->inputs[roles.append[part]].axis[problem->inputs[roles.append[part]].rank - 1], 128,
		           axis);
	if (append->rank == 3)
		op_set_axis(problem, append->axis[1], 8, axis);
	op_set_axis(problem, size, 16, axis);
	int64_t pages = filled + (3 * tokens + 2 * axis[size] - 1) / (2 * axis[size]), pool = pages + pages / 2 + 2;

	pool = prefix > 0 ? pool_of(cache, pool, axis[size], axis) : pool;

	int64_t before = (prefix + axis[size] - 1) / axis[size];

	op_set_axis(problem, append->axis[0], tokens, axis);
	if (roles.last_page_len >= 0)
		op_set_axis(problem, problem->inputs[roles.last_page_len].axis[0], sequences, axis);
	op_set_axis(problem, problem->inputs[roles.indptr].axis[0], sequences + 1, axis);
	op_set_axis(problem, problem->inputs[roles.indices].axis[0],
	           prefix > 0 ? page_table_own_pages(pool) + (before > PREFIX_PAGES ? before : PREFIX_PAGES) : pages, axis);
	op_set_axis(problem, cache->axis[0], pool, axis);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t sequences[SIZE_COUNT][2] = {{1, 3}, {BLOCK + 1, MOST_SEQUENCES}, {256, 0}},
			     filled[SIZE_COUNT][2] = {{1, 3}, {9, 9}, {256, 0}},
			     tokens[SIZE_COUNT][2] = {{1, 17}, {MOST_TOKENS, BLOCK}, {16384, 0}};
	int count = 0;

	for (int i = 0; i < 2 && tokens[size][i] > 0 && count < room; i++)
		set_axes(problem, variant, sequences[size][i], filled[size][i], tokens[size][i],
		         size == SIZE_MEDIUM && i == 0 ? PREFIX : 0, axis + (int64_t)count++ * problem->axis_count);
	return count;
}

static const struct op_edge edges[] = {
    {"no_tokens", "without tokens to append, the caches stay unchanged"},
    {"padding", "a token of sequence -1 is padding and is not written"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	set_axes(problem, variant, 3, 3, edge == PAGE_EDGE_NO_TOKENS ? 0 : 17, 0, axis);
	return problem->axes[problem->inputs[page_roles_of(problem).positions].axis[0]].var;
}

static struct rule rule(const struct op_case *c, int output)
{
	(void)c;
	(void)output;
	return (struct rule){0, 0, 1};
}

/* The reference may append to the caches in place if the definition says so. */
static struct op_in_place in_place(const struct op_case *c, int input)
{
	struct page_roles roles = page_roles_of(c->problem);

	for (int j = 0; j < roles.caches; j++)
		if (input == roles.cache[j])
			return op_in_place_as_said(c, input, roles.output[j]);
	return (struct op_in_place){OP_KEPT, true};
}

/* In the default cases, the values of batch_indices and positions must reach the ends of their ranges. The other tables
 * have no range, because any valid entry is allowed. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct page_roles roles = page_roles_of(problem);
	enum dtype dtype = problem->inputs[input].dtype;

	(void)variant;
	if (input == roles.positions)
		*out = (struct op_range){0, PREFIX};
	else if (input == roles.batch_indices)
		*out = (struct op_range){0, 250};
	else if (dtype_is_float(dtype))
		*out = (struct op_range){-ldexp(1.9, page_reach(dtype)), ldexp(1.9, page_reach(dtype))};
	else
		return false;
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	struct page_roles roles = page_roles_of(problem);

	(void)variant;
	if (axis == problem->inputs[roles.positions].axis[0])
		return (struct op_reach){MOST_TOKENS, BLOCK};
	if (roles.last_page_len >= 0 && axis == problem->inputs[roles.last_page_len].axis[0])
		return (struct op_reach){MOST_SEQUENCES, BLOCK};
	return (struct op_reach){axis == problem->inputs[roles.indptr].axis[0] ? MOST_SEQUENCES + 1 : 0, 0};
}

WIDE static void make_elements(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                               float *values)
{
	int reached = *(const int *)recipe;

	(void)row;
	(void)column;
	for (int64_t i = 0; i < count; i++)
		values[i] = page_element(random[i], reached);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	int reached = page_reach(out->dtype);

	if (!dtype_is_float(out->dtype))
		return page_table_fill(c, input, out, err);
	input_fill(out, input_key(c, input), out->elements, make_elements, &reached);
	return 0;
}

static const char *const op_types[] = {"page", "page_append", "append_paged_kv_cache", NULL};
static const char *const op_words[] = {"append_paged_kv_cache", "append_paged_mla_kv_cache", "page_append", NULL};

static double page_size(const struct coverage_view *view, const struct op_coverage *row)
{
	(void)row;
	return (double)page_extent_of(view->c, 0).page_size;
}

static const struct op_coverage coverage[] = {
    {"layout", coverage_switch, .other = "hnd",
     .values = {{"NHD", 0, 0, "has pages [page size, heads, D]"}, {"HND", 1, 1, "has pages [heads, page size, D]"}}},
    {"keys and values", coverage_mode, .role = "latent|combined",
     .values = {{"two caches", 0, 0, "has a cache of keys and one of values"}, {"latent", 1, 1, "has latent caches (MLA)"},
		{"one cache", 2, 2, "has keys and values in one cache"}}},
    {"page size", page_size,
     .values = {{"1", 1, 1, "has pages of size 1"}, {"16", 16, 16, "has pages of size 16"},
		{"32", 32, 32, "has pages of size 32"}, {"64", 64, 64, "has pages of size 64"},
		{"other", 0, 0x1p62, NULL}}},
    {"padding", coverage_switch, .other = "padded",
     .values = {{"tokens", 1, 1, "has tokens that are padding"}, {"none", 0, 0, "has no tokens that are padding"}}},
    {"dtype", coverage_dtype, .role = "cache",
     .values = {COVERAGE_DTYPE(DTYPE_BFLOAT16, "bfloat16"), COVERAGE_DTYPE(DTYPE_FLOAT16, "float16"),
		COVERAGE_DTYPE(DTYPE_FLOAT8_E4M3FN, "float8_e4m3fn"), {"other", 0, DTYPE_COUNT, NULL}}},
    {.name = NULL},
};

const struct op page_op = {
    .name = "page",
    .op_types = op_types,
    .words = op_words,
    .match = page_match,
    .roles = page_role_names,
    .bind = page_bind,
    .mistakes = page_mistakes,
    .modes = page_mode_names,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .range = range,
    .reach = reach,
    .in_place = in_place,
    .fill = fill,
    .check = page_check,
    .oracle = page_oracle,
};
