/* input_values - computes the inputs of an attention case, and its tolerance rules.
 *
 * Bounds. Values v are uniform on [-1, 1), with a standard deviation of 0.58. If a query sees n keys whose logits have
 * variance s^2, about max(1, n e^-s^2) keys have most of the weight. If n > e^(s^2), the standard deviation of an
 * output is therefore 0.58 sqrt(e^(s^2) / n).
 *
 *   output  atol is 2^-12. Where logits are small, outputs computed in float32 are within 1e-6 of the truth. Where
 *           queries are 32 times as large as usual (input_values.h), a logit of 500 may be off by 1e-4. An error of
 *           1e-4 in a logit changes a weight w by 1e-4 w (1 - w) and the output by 5e-5. If a reference rounds weights
 *           to bfloat16, each weight is off by 1e-3 and the output by 2e-4 to 1e-3. Where values of opposite sign
 *           cancel, outputs are near 0, and this error exceeds the tolerance. In long sequences, outputs are smaller.
 *           Therefore atol also has an upper limit, which depends on n. For n up to 2 e^(s^2), the limit is 2^-8, which
 *           is 1/150 of the standard deviation of v. For larger n, the limit is halved each time n becomes four times
 *           as large. rtol is 1e-2 for bfloat16, because the final rounding may differ by an ulp (2^-7). For float16,
 *           rtol is 2^-9, which is two ulps. For float32, rtol is 1e-3.
 *   lse     atol is 2^-13 and rtol is 1e-5. Where queries are large, a logit has a magnitude of about 500, and is a
 *           float32 sum of 128 to 576 products. The error of such a logit is up to 1e-4 (measured: 3e-5), and |lse| is
 *           about 400. An error of 2 % in the scale changes lse by 0.05 in most rows. */
#include "kernels/common/attention/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/lengths.h"
#include "kernels/common/attention/sequence_plan.h"
#include "kernels/common/attention/sizes.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"
#include "kernels/core/default_tolerance.h"

/* --- pages -------------------------------------------------------------------------------------------------------- */

/* Returns the number of pages that sequence b shares with sequence 0: they are the first pages of both. The last page
 * of a sequence is never shared. */
static int64_t shared_pages(const struct attention_plan *plan, int64_t b)
{
	int64_t own = plan->entries[b + 1] - plan->entries[b], first = plan->entries[1];
	int64_t most = own < first ? own : first;

	return b > 0 && b % 8 >= 2 && b % 8 <= 4 && most > 1 ? most / 2 : 0;
}

/* Returns how many pages sequences use: shared pages count once. */
static int64_t pages_used(const struct attention_plan *plan)
{
	int64_t used = plan->entries[plan->batch];

	for (int64_t b = 0; b < plan->batch; b++)
		used -= shared_pages(plan, b);
	return used;
}

/* Returns the values of kv_indices, allocated by malloc. Returns NULL with an error message in `err` if the caches have
 * no page. */
static int64_t *page_numbers(const struct op_case *c, const struct attention_roles *roles,
                             const struct attention_plan *plan, struct err *err)
{
	struct attention_extent e = attention_extent_of(c, roles);
	int64_t *numbers = take(e.entries, sizeof *numbers), next = 0;

	if (e.pages == 0 && e.entries > 0) {
		err_set(err, "%lld page numbers are needed, but the caches have no page", (long long)e.entries);
		free(numbers);
		return NULL;
	}
	int64_t *order = take(e.pages, sizeof *order);

	philox_shuffle_ends(attention_plan_key(c, roles) ^ 1, e.pages, pages_used(plan), order);
	for (int64_t b = 0; b < plan->batch; b++) {
		int64_t first = plan->entries[b], shared = shared_pages(plan, b);

		for (int64_t i = first; i < plan->entries[b + 1]; i++)
			numbers[i] = i - first < shared ? numbers[i - first] : order[next++ % e.pages];
	}
	free(order);
	return numbers;
}

/* --- sparse rows -------------------------------------------------------------------------------------------------- */

/* In sparse attention, the list of key rows that one query sees. Queries list only some of the rows (row_at). These
 * rows are numbered from 0 to `reachable` - 1. Entry j of the list is the row with the number (start + j * stride) %
 * reachable. */
struct rows_seen {
	int64_t reachable, start, stride, most, width; /* most: the largest number of different rows that a list can have */
	int64_t query, queries; /* the query's number, and the number of queries */
	int64_t kind;           /* equal to `query`, except that the second set of values exchanges 0 and 4
				 * (input_values.h) */
	uint64_t key;
};

static int64_t gcd(int64_t a, int64_t b)
{
	while (b != 0) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static struct rows_seen rows_seen_by(const struct attention_extent *e, enum op_contents contents, uint64_t key,
				     int64_t query)
{
	bool exchanged = contents == CONTENTS_SECOND && (query == 0 || query == 4);
	struct rows_seen r = {.reachable = e->rows - e->rows / 8,
	                      .stride = 1,
	                      .width = e->entries,
	                      .query = query,
	                      .queries = e->queries,
	                      .kind = exchanged ? 4 - query : query,
	                      .key = key};
	struct philox random = philox_block(key, (uint64_t)query + (UINT64_C(1) << 40));

	r.most = r.width < r.reachable ? r.width : r.reachable;
	if (r.reachable > 1) {
		int64_t limit = r.reachable < 1 << 20 ? r.reachable : 1 << 20;

		r.start = (int64_t)(((uint64_t)random.word[0] << 31 | random.word[1] >> 1) % (uint64_t)r.reachable);
		r.stride = 1 + random.word[2] % (limit - 1);
		while (gcd(r.stride, r.reachable) != 1)
			r.stride = r.stride % limit + 1;
	}
	return r;
}

/* Returns the number of rows that a query with number 8 or more sees; the other entries of its list are -1. For queries
 * 8 to 22, these numbers are near powers of two. Of the later queries, only the last query and those whose number is
 * near a power of two (attention_near_power) see rows. The others see none, because a reference that loops over queries
 * takes time for each query that sees a row. */
static int64_t few_rows(const struct rows_seen *r)
{
	if (r->query < 8 + 15)
		return (16 << (r->query - 8) / 3) + (r->query - 8) % 3 - 1;
	return attention_near_power(r->query) || r->query + 1 == r->queries ? 1 + r->query % 2 : 0;
}

static bool is_seen(const struct rows_seen *r, int64_t j)
{
	if (r->kind >= 8)
		return j < few_rows(r) && j < r->most;
	switch (r->kind) {
	case 1:
		return j < 1 && r->most > 0;
	case 2:
		return j < r->most && j != r->most / 2;
	case 3:
		return false;
	case 4:
		return j < 100 && j < (r->most + 1) / 2;
	case 5:
		return j < r->most && (philox_bits(r->key, r->query * r->width + j) & 1) != 0;
	case 7:
		return j >= r->width - 2 && r->reachable > 1;
	default:
		return j < r->most;
	}
}

enum { SPARE = 7 }; /* the row that only query 1 lists */

/* Returns the row at entry j of the query's list, or -1 if the entry lists no row. No query lists the rows 15, 23, 31,
 * …. */
static int64_t row_at(const struct rows_seen *r, int64_t j)
{
	if (!is_seen(r, j))
		return -1;
	int64_t at = (r->start + j * r->stride) % r->reachable;

	if (r->kind == 1 && r->reachable > SPARE)
		return SPARE;
	return at + at / 7;
}

/* --- which rows are used ------------------------------------------------------------------------------------------ */

static bool is_structure(const struct attention_roles *roles, int input)
{
	return input == roles->qo_indptr || input == roles->kv_indptr || input == roles->kv_indices ||
	       input == roles->last_page_len || input == roles->sparse;
}

bool attention_is_structure(const struct op_case *c, int input)
{
	return attention_is_integer(&c->problem->inputs[input]);
}

/* Returns true if the workload, not the plan, provides at least one of the inputs that determine which rows are
 * read. */
static bool structure_is_given(const struct op_case *c, const struct attention_roles *roles)
{
	for (int i = 0; i < c->problem->input_count; i++)
		if (is_structure(roles, i) && (c->given >> i & 1) != 0)
			return true;
	return false;
}

static void mark_sparse(const struct op_case *c, const struct attention_roles *roles, uint8_t *used)
{
	struct attention_extent e = attention_extent_of(c, roles);
	uint64_t key = attention_plan_key(c, roles);

	for (int64_t t = 0; t < e.queries; t++) {
		struct rows_seen r = rows_seen_by(&e, c->contents, key, t);

		for (int64_t j = 0; j < e.entries && (t < 8 || j < few_rows(&r)); j++) {
			int64_t row = row_at(&r, j);

			if (row >= 0)
				used[row] = r.kind == 1 && row == SPARE ? ATTENTION_LONE : ATTENTION_USED;
		}
	}
}

/* Returns true if sequence b has only one key, and no other sequence uses the page of this key. */
static bool is_lone(const struct attention_plan *plan, const int64_t *numbers, int64_t b)
{
	int64_t page = plan->entries[b];

	if (plan->entries[b + 1] - page != 1 || plan->last[b] != 1)
		return false;
	for (int64_t i = 0; i < plan->entries[plan->batch]; i++)
		if (i != page && numbers[i] == numbers[page])
			return false;
	return true;
}

static int mark_pages(const struct op_case *c, const struct attention_roles *roles, uint8_t *used, struct err *err)
{
	struct attention_extent e = attention_extent_of(c, roles);
	struct attention_plan plan = attention_plan_of(c, roles);
	int64_t *numbers = page_numbers(c, roles, &plan, err);

	for (int64_t b = 0; numbers != NULL && b < plan.batch; b++)
		for (int64_t i = plan.entries[b]; i < plan.entries[b + 1]; i++)
			memset(used + numbers[i] * e.page_size, ATTENTION_USED,
			       (size_t)(i + 1 < plan.entries[b + 1] ? e.page_size : plan.last[b]));
	for (int64_t b = 0; numbers != NULL && b < plan.batch; b++)
		if (is_lone(&plan, numbers, b))
			used[numbers[plan.entries[b]] * e.page_size] = ATTENTION_LONE;
	attention_plan_free(&plan);
	free(numbers);
	return numbers == NULL ? -1 : 0;
}

/* For a case without pages, marks each key as used or as lone (input_values.h). */
static void mark_keys(const struct op_case *c, const struct attention_roles *roles, uint8_t *used)
{
	struct attention_plan plan = attention_plan_of(c, roles);

	memset(used, ATTENTION_USED, (size_t)attention_extent_of(c, roles).rows);
	for (int64_t b = 0; b < plan.batch; b++)
		if (plan.entries[b + 1] - plan.entries[b] == 1)
			used[plan.entries[b]] = ATTENTION_LONE;
	attention_plan_free(&plan);
}

int attention_used(const struct op_case *c, const struct attention_roles *roles, int input, uint8_t **used,
                   struct err *err)
{
	bool is_query = input == roles->query[0] || input == roles->query[1];
	int rc = 0;

	*used = NULL;
	if (is_query || structure_is_given(c, roles))
		return 0;
	*used = take(attention_extent_of(c, roles).rows, 1);
	if (roles->sparse >= 0)
		mark_sparse(c, roles, *used);
	else if (roles->kv_indices < 0)
		mark_keys(c, roles, *used);
	else
		rc = mark_pages(c, roles, *used, err);
	if (rc != 0) {
		free(*used);
		*used = NULL;
	}
	return rc;
}

enum { PARALLEL_FROM = 1 << 18 }; /* if the tensor has fewer elements, one thread is faster than several */

enum { SMALL_CASES = 2 }; /* the number of cases in every small preset of attention */
static const double LARGEST_SCALE = 1.25;

/* Returns the scale that models use, 1 / sqrt(head dim). For latent heads, the scale is 1 / sqrt(128 + r), whatever the
 * size of the latent: DeepSeek's models have a head dim of 128 without the rotary part r, and latents of 512
 * elements. */
static double canonical_scale(const struct attention_roles *roles, const struct attention_extent *e)
{
	return 1 / sqrt((double)(roles->query[1] < 0 ? e->dim[0] : 128 + e->dim[1]));
}

/* Returns the index of the case in the small preset, or -1 if the case is not in it. */
static int small_number(const struct op_case *c, attention_sizes_of *sizes)
{
	int64_t count = c->problem->axis_count, *rows = take(SMALL_CASES * count, sizeof *rows);
	int found = -1;

	for (int i = sizes(c->problem, c->variant, SIZE_SMALL, rows, SMALL_CASES) - 1; i >= 0; i--)
		if (memcmp(rows + i * count, c->axis, (size_t)count * sizeof *rows) == 0)
			found = i;
	free(rows);
	return found;
}

double attention_scale(const struct op_case *c, attention_sizes_of *sizes)
{
	const double of_small[SMALL_CASES] = {1, LARGEST_SCALE};
	const struct attention_roles found = attention_roles_of(c->problem), *roles = &found;
	struct attention_extent e = attention_extent_of(c, roles);
	double canonical = canonical_scale(roles, &e);
	int small;

	if (c->contents == CONTENTS_FIRST || (c->absent >> roles->scale & 1) != 0)
		return canonical;
	small = small_number(c, sizes);
	return small >= 0 ? of_small[small] : 0.65 * canonical;
}

double attention_scalar(const struct op_case *c, int input)
{
	(void)input;
	return attention_scale(c, attention_sizes);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* Returns the variance of a logit if queries are uniform on [-2^exponent, 2^exponent) and keys are uniform on [-1,
 * 1). */
static double logit_variance(const struct op_case *c, const struct attention_roles *roles, int exponent)
{
	struct attention_extent e = attention_extent_of(c, roles);
	double scale = c->scalar[roles->scale], size = (double)float_power(exponent);

	return scale * scale * (double)(e.dim[0] + e.dim[1]) * size * size / 9;
}

/* Returns the smallest exponent for which the standard deviation of the logits is at least 2.5 / sqrt(2). The standard
 * deviation is then below 2.5 sqrt(2). */
static int query_exponent(const struct op_case *c, const struct attention_roles *roles)
{
	int exponent = -8;

	while (exponent < 8 && logit_variance(c, roles, exponent) < 2.5 * 2.5 / 2)
		exponent++;
	return exponent;
}

/* The first element of a deep query (input_values.h) is -2^e, and the first element of every key is at least 1/2.
 * Returns the smallest e for which all logits of the query are at most -65536. If the case has no deep queries, returns
 * ATTENTION_NO_DEEP. */
static int deep_exponent(const struct op_case *c, const struct attention_roles *roles)
{
	enum dtype dtype = c->problem->inputs[roles->query[0]].dtype;
	double scale = c->scalar[roles->scale];
	bool wide = dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT32;

	if (c->contents == CONTENTS_FIRST || c->given != 0 || !wide || !(scale > 0x1p-20 && scale < 0x1p20))
		return ATTENTION_NO_DEEP;
	return 17 - (int)floor(log2(scale));
}

/* Returns true if the dtype represents numbers beyond the range of float16. */
static bool is_wide(enum dtype dtype)
{
	return dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64;
}

/* Lone keys (input_values.h) and their values are multiplied by a power of 2 with one of these exponents. LOUD is for
 * dtypes with a greater range than float16. LOUD_HALF and LOUD_HALF_KEY are for float16, in which the sum of a value of
 * 2^14 and ordinary values is still finite. */
enum { LOUD = 18, LOUD_HALF = 14, LOUD_HALF_KEY = 10 };

static int loud_exponent(enum dtype dtype, int half)
{
	return is_wide(dtype) ? LOUD : dtype == DTYPE_FLOAT16 ? half : 0;
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Lone keys (input_values.h) and their values are multiplied by a power of 2. Returns the exponent of this power for
 * `input`. The elements also fit in the dtype of the queries, because a reference may convert keys and values to that
 * dtype. The values also fit in the dtype of the output. */
static int loud_of(const struct op_case *c, const struct attention_roles *roles, int input)
{
	bool value = input == roles->value, first = input == roles->key[0], second = input == roles->key[1];
	int half = value ? LOUD_HALF : LOUD_HALF_KEY;
	int loud = least(loud_exponent(c->problem->inputs[input].dtype, half),
			 loud_exponent(c->problem->inputs[roles->query[0]].dtype, half));

	if (roles->query[1] >= 0 && (c->contents == CONTENTS_FIRST ? second : first))
		return 0;
	return value ? least(loud, loud_exponent(c->problem->outputs[roles->output].dtype, half)) : loud;
}

struct attention_recipe attention_recipe_of(const struct op_case *c, const struct attention_roles *roles, int input)
{
	const struct op_arg *arg = &c->problem->inputs[input];
	struct attention_extent e = attention_extent_of(c, roles);
	struct attention_recipe f = {.key = input_key(c, input)};

	f.is_query = input == roles->query[0] || input == roles->query[1];
	f.dim = c->axis[arg->axis[arg->rank - 1]];
	f.row = f.dim * (f.is_query ? e.heads : e.kv_heads);
	f.exponent = query_exponent(c, roles);
	f.deep = deep_exponent(c, roles);
	f.loud = loud_of(c, roles, input);
	f.is_key = input == roles->key[0] || input == roles->key[1];
	f.part = input == roles->query[0] || input == roles->key[0] ? 0 : 1;
	f.most = arg->dtype == DTYPE_FLOAT8_E4M3FN ? 8 : 15;
	f.bits = arg->dtype == DTYPE_FLOAT16 ? 10 : arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_FLOAT64 ? 20 : 7;
	return f;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static void fill_numbers(struct tensor *out, const int64_t *numbers, int64_t count, int64_t beyond)
{
	for (int64_t i = 0; i < out->elements; i++)
		dtype_store(out->data, out->dtype, i, (double)(i < count ? numbers[i] : beyond));
}

static void fill_sparse(const struct op_case *c, const struct attention_roles *roles, struct tensor *out)
{
	struct attention_extent e = attention_extent_of(c, roles);
	uint64_t key = attention_plan_key(c, roles);

	for (int64_t t = 0; t < e.queries; t++) {
		struct rows_seen r = rows_seen_by(&e, c->contents, key, t);

		for (int64_t j = 0; j < e.entries; j++)
			dtype_store(out->data, out->dtype, t * e.entries + j, (double)row_at(&r, j));
	}
}

/* Writes the lengths of the last pages. If a sequence has no page in the plan, its length is 0. But if the workload
 * provides other index tensors, the sequence may have a page according to them. Therefore its length is then 1. */
static void fill_last(const struct op_case *c, const struct attention_roles *roles, const struct attention_plan *plan,
                      struct tensor *out)
{
	fill_numbers(out, plan->last, plan->batch, 1);
	for (int64_t i = 0; structure_is_given(c, roles) && i < out->elements; i++)
		if (attention_integer(out, i) < 1)
			dtype_store(out->data, out->dtype, i, 1);
}

static int fill_structure(const struct op_case *c, const struct attention_roles *roles, int input, struct tensor *out,
                          struct err *err)
{
	if (input == roles->sparse) {
		fill_sparse(c, roles, out);
		return 0;
	}
	struct attention_plan plan = attention_plan_of(c, roles);
	int64_t *numbers = NULL;
	int rc = 0;

	if (input == roles->qo_indptr) {
		fill_numbers(out, plan.queries, plan.batch + 1, 0);
	} else if (input == roles->kv_indptr) {
		fill_numbers(out, plan.entries, plan.batch + 1, 0);
	} else if (input == roles->last_page_len) {
		fill_last(c, roles, &plan, out);
	} else if ((numbers = page_numbers(c, roles, &plan, err)) != NULL) {
		fill_numbers(out, numbers, out->elements, 0);
	} else {
		rc = -1;
	}
	free(numbers);
	attention_plan_free(&plan);
	return rc;
}

/* Computes consecutive elements of one head. `at` is row * heads + head. */
WIDE static void make_head(const void *recipe, int64_t at, int64_t column, int64_t count, const uint32_t *random,
                           float *values)
{
	const struct attention_recipe *f = recipe;
	int64_t heads = f->row / f->dim, row = at / heads, head = at % heads;

	for (int64_t i = 0; i < count; i++)
		values[i] = attention_value(f, row, head, column + i, random[i]);
}

/* Fills a tensor of keys or values. Computes no random numbers for rows that are not used. */
static void fill_rows(const struct attention_recipe *f, struct tensor *out)
{
	int64_t rows = f->row > 0 ? out->elements / f->row : 0, size = dtype_bytes(out->dtype, f->row);
	char *blank = take(size, 1);

	for (int64_t i = 0; i < f->row; i++)
		dtype_store_float(blank, out->dtype, i, NAN);
#pragma omp parallel for schedule(static, 64) if (out->elements >= PARALLEL_FROM)
	for (int64_t row = 0; row < rows; row++)
		if (f->used[row] == ATTENTION_UNUSED)
			memcpy((char *)out->data + row * size, blank, (size_t)size);
		else
			input_fill_range(out, f->key, f->dim, make_head, f, row * f->row, (row + 1) * f->row);
	free(blank);
}

int attention_fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	const struct attention_roles found = attention_roles_of(c->problem), *roles = &found;

	if (attention_is_structure(c, input))
		return fill_structure(c, roles, input, out, err);

	struct attention_recipe f = attention_recipe_of(c, roles, input);
	uint8_t *used;

	if (attention_used(c, roles, input, &used, err) != 0)
		return -1;
	f.used = used;
	if (used != NULL && f.row % 4 == 0)
		fill_rows(&f, out);
	else
		input_fill(out, f.key, f.dim, make_head, &f);
	free(used);
	return 0;
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

enum { PLANNED = 1 << 16 }; /* longest_of computes no plan for a case with more sequences */

/* Returns the number of keys of the longest sequence, or the number of all keys, which is an upper bound. If the
 * workload provides the lengths, returns the upper bound, because the lengths may not be loaded yet. If there are more
 * than PLANNED sequences, also returns the upper bound: their plan may not fit in memory, because the size of the case
 * is checked only after the tolerances are computed. */
static double longest_of(const struct op_case *c, const struct attention_roles *roles)
{
	struct attention_extent e = attention_extent_of(c, roles);

	if (roles->sparse >= 0 || structure_is_given(c, roles) || e.batch > PLANNED)
		return (double)e.entries * (double)(roles->sparse >= 0 ? 1 : e.page_size);

	struct attention_plan plan = attention_plan_of(c, roles);
	double longest = (double)plan.longest;

	attention_plan_free(&plan);
	return longest;
}

struct rule attention_rule(const struct op_case *c, int output)
{
	const struct attention_roles found = attention_roles_of(c->problem), *roles = &found;
	enum dtype dtype = c->problem->outputs[output].dtype;
	struct rule rule = {0x1p-8, 1e-2, 1};
	double weighty;

	if (output == roles->lse)
		return (struct rule){0x1p-13, 1e-5, 1};
	if (dtype == DTYPE_FLOAT16)
		rule.rtol = 0x1p-9;
	else if (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64)
		rule.rtol = 1e-3;
	else if (dtype != DTYPE_BFLOAT16)
		return rule_default(dtype);
	weighty = 2 * exp(logit_variance(c, roles, query_exponent(c, roles)));
	for (double longest = longest_of(c, roles); longest > weighty; longest /= 4)
		rule.atol /= 2;
	rule.atol = rule.atol < 0x1p-12 ? rule.atol : 0x1p-12;
	return rule;
}

/* --- ranges that default cases cover ------------------------------------------------------------------------------ */

/* Writes the range of an input's values. Returns false for offsets, page numbers and row numbers: they only have to be
 * valid, so their range says nothing about a case. */
bool attention_range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	const struct attention_roles found = attention_roles_of(problem), *roles = &found;
	const struct op_arg *key = &problem->inputs[roles->key[0]];
	int part = roles->query[1] >= 0 ? roles->query[1] : roles->key[0];
	const struct op_arg *last = &problem->inputs[part];
	int64_t dim = problem->axes[last->axis[last->rank - 1]].value + (roles->query[1] >= 0 ? 128 : 0);

	(void)variant;
	if (input == roles->last_page_len && !problem->axes[key->axis[1]].var) {
		*out = (struct op_range){1, (double)problem->axes[key->axis[1]].value};
		return true;
	}
	if (input == roles->scale) /* this range contains every scale that attention_scalar returns */
		*out = (struct op_range){0.651 / sqrt((double)dim), LARGEST_SCALE};
	else if (input == roles->query[0] || input == roles->query[1])
		*out = (struct op_range){-100, 100};
	else
		*out = (struct op_range){-0.99, 0.99};
	return !is_structure(roles, input);
}
