/* mistakes - mistakes that references of attention may contain. */
#include <math.h>

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/shared_mistakes.h"
#include "kernels/core/dtype_convert.h"

/* The mistake: every last page counts as full. */
static bool full_pages(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *lengths = variation_change(v, variation_input(v, mistake->role));
	int keys = variation_input(v, "k");
	int64_t page = keys < 0 || v->in[keys].rank < 2 ? 1 : v->in[keys].shape[1];

	for (int64_t b = 0; lengths != NULL && b < lengths->elements; b++)
		dtype_store(lengths->data, lengths->dtype, b, (double)page);
	return lengths != NULL && page > 1;
}

/* Returns the index of the entry that a reference with the mistake reads instead of entry j of a sequence. The sequence
 * has the entries first … first + entries - 1. */
typedef int64_t entry_index(int64_t first, int64_t entries, int64_t j);

static int64_t from_start(int64_t first, int64_t entries, int64_t j) { return (void)first, (void)entries, j; }
static int64_t from_end(int64_t first, int64_t entries, int64_t j) { return first + entries - 1 - j; }

static bool read_entries(struct op_variation *v, entry_index *index)
{
	int indices = variation_input(v, "kv_indices"), indptr = variation_input(v, "kv_indptr");

	if (indices < 0 || indptr < 0 || v->in[indices].data == NULL || v->in[indptr].data == NULL)
		return false;
	struct tensor old = v->in[indices];
	const struct tensor *offsets = &v->in[indptr];
	struct tensor *entries = variation_change(v, indices);

	for (int64_t b = 0; b + 1 < offsets->elements; b++) {
		int64_t first = attention_integer(offsets, b), count = attention_integer(offsets, b + 1) - first;

		for (int64_t j = 0; j < count; j++)
			dtype_store(entries->data, entries->dtype, first + j,
				    (double)attention_integer(&old, index(first, count, j)));
	}
	return true;
}

static bool pages_from_start(struct op_variation *v, const struct op_mistake *mistake)
{
	return (void)mistake, read_entries(v, from_start);
}

static bool pages_reversed(struct op_variation *v, const struct op_mistake *mistake)
{
	return (void)mistake, read_entries(v, from_end);
}

bool attention_scale_of_both_parts(struct op_variation *v, const struct op_mistake *mistake)
{
	int q = variation_input(v, "q"), rotary = variation_input(v, "q_pe");

	return q >= 0 && rotary >= 0 &&
	       variation_scale(v, mistake->role, 1 / sqrt((double)(v->in[q].shape[v->in[q].rank - 1] + v->in[rotary].shape[v->in[rotary].rank - 1])));
}

/* With the mistake, the scale is 1 / sqrt(n). Returns n, which is `dim`, or the head dim if `dim` is 0. Returns 0 if
 * `dim` is not 0 but equals the head dim: the table of mistakes has a row with `dim` 0, which is the same mistake. */
static double dim_of(const struct op_variation *v, double dim)
{
	int q = variation_input(v, "q");
	double heads = q < 0 ? 0 : (double)v->in[q].shape[v->in[q].rank - 1];

	return dim <= 0 ? heads : dim == heads ? 0 : dim;
}

bool attention_scale_of_dim(struct op_variation *v, const struct op_mistake *mistake)
{
	double dim = dim_of(v, mistake->by);

	return dim > 0 && variation_scale(v, mistake->role, 1 / sqrt(dim));
}

bool attention_scale_of_one(struct op_variation *v, const struct op_mistake *mistake)
{
	int scale = variation_input(v, mistake->role);
	double dim = dim_of(v, mistake->by);

	if (scale < 0 || dim <= 0)
		return false;
	if (v->c.scalar[scale] == 1)
		v->c.scalar[scale] = 1 / sqrt(dim);
	return true;
}

bool attention_first_query(struct op_variation *v, const struct op_mistake *mistake)
{
	const struct op_mistake first = {.role = mistake->role, .by = 0}, second = {.role = mistake->other, .by = 0};

	return variation_input(v, mistake->other) >= 0 && before_first(v, &first) && before_first(v, &second);
}

bool attention_unscaled_rotary(struct op_variation *v, const struct op_mistake *mistake)
{
	int scale = variation_input(v, mistake->other);

	if (scale < 0 || v->c.scalar[scale] == 0)
		return false;

	const struct op_mistake change = {.role = mistake->role, .by = 1 / v->c.scalar[scale]};

	return before_scale(v, &change);
}

/* Returns the length of the last axis of the input with this role, or 0 if there is no such input. */
static int64_t length_of(const struct op_variation *v, const char *role)
{
	int at = variation_input(v, role);

	return at < 0 || v->in[at].rank < 1 ? 0 : v->in[at].shape[v->in[at].rank - 1];
}

bool attention_no_tail(struct op_variation *v, const struct op_mistake *mistake)
{
	int64_t length = length_of(v, mistake->role), kept = length_of(v, mistake->other);
	struct tensor *q = kept < 1 || kept >= length ? NULL : variation_change(v, variation_input(v, mistake->role));

	for (int64_t i = 0; q != NULL && i < q->elements; i++)
		if (i % length >= kept)
			dtype_store(q->data, q->dtype, i, 0);
	return q != NULL;
}

bool attention_keys_for_values(struct op_variation *v, const struct op_mistake *mistake)
{
	int64_t kept = length_of(v, mistake->role), length = length_of(v, mistake->other);
	struct tensor *values = kept < 1 || kept >= length ? NULL : variation_change(v, variation_input(v, mistake->role));

	if (values == NULL)
		return false;

	const struct tensor *keys = &v->in[variation_input(v, mistake->other)];

	if (values->elements / kept != keys->elements / length)
		return false;
	for (int64_t i = 0; i < values->elements; i++)
		dtype_store(values->data, values->dtype, i, dtype_load(keys->data, keys->dtype, i / kept * length + i % kept));
	return true;
}

const struct op_mistake attention_mistakes[] = {
    ATTENTION_SHARED_MISTAKES,
    {.says = "a query attended to all keys in the page of its own key", .in_oracle = ATTENTION_MASK_PAGES},
    {.says = "the last page of every sequence was full", .before = full_pages, .role = "last_page_len"},
    {.says = "the last page had one key too few", .in_oracle = ATTENTION_ONE_SHORT},
    {.says = "the last page of every sequence was left out", .in_oracle = ATTENTION_LAST_PAGE},
    {.says = "the page table was ignored: entry i was taken to be page i", .before = before_iota, .role = "kv_indices"},
    {.says = "every sequence read the page table from the start of the table", .before = pages_from_start},
    {.says = "the pages of a sequence were read in reverse order", .before = pages_reversed},
    {.says = NULL},
};
