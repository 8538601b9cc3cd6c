/* confusions - the mistakes that people make in references of attention. */
#include "kernels/common/attention/attention.h"
#include "kernels/core/confusion.h"

#define LN_2 0.69314718055994530942

/* Every last page is full. */
static bool full_pages(struct op_variation *v, const struct op_confusion *confusion)
{
	struct tensor *lengths = variation_change(v, variation_input(v, confusion->role));
	int keys = variation_input(v, "k");
	int64_t page = keys < 0 || v->in[keys].rank < 2 ? 1 : v->in[keys].shape[1];

	for (int64_t b = 0; lengths != NULL && b < lengths->elements; b++)
		dtype_store(lengths->data, lengths->dtype, b, (double)page);
	return lengths != NULL && page > 1;
}

/* Where sequence b reads its entry j of `entries` in all; the sequence has the entries first … first + entries - 1. */
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

static bool pages_from_start(struct op_variation *v, const struct op_confusion *confusion)
{
	return (void)confusion, read_entries(v, from_start);
}

static bool pages_reversed(struct op_variation *v, const struct op_confusion *confusion)
{
	return (void)confusion, read_entries(v, from_end);
}

const struct op_confusion attention_confusions[] = {
    {.says = "lse were a natural logarithm, not one of base 2", .after = after_scale, .role = "lse", .by = LN_2},
    {.says = "lse were converted to base 2 twice", .after = after_scale, .role = "lse", .by = 1 / LN_2},
    {.says = "lse of a query without keys were 0, not -infinity", .after = after_infinity, .role = "lse", .by = 0},
    {.says = "the scale were left out", .before = before_set, .role = "scale", .by = 1},
    {.says = "the scale were 1 / sqrt(head dim), not the given one", .before = before_root_scale, .role = "scale", .other = "q"},
    {.says = "the causal mask were shifted by one: a query sees one key too many", .mistake = ATTENTION_MASK_LATE},
    {.says = "the causal mask were shifted by one: a query does not see its own key", .mistake = ATTENTION_MASK_EARLY},
    {.says = "the causal mask were aligned at the first key, not at the last", .mistake = ATTENTION_MASK_AT_START},
    {.says = "there were no causal mask", .mistake = ATTENTION_NO_MASK},
    {.says = "there were a causal mask", .mistake = ATTENTION_MASKED},
    {.says = "the last key of every sequence were left out", .mistake = ATTENTION_LAST_KEY},
    {.says = "kv heads were tiled, not interleaved (head h reads kv head h modulo the number of kv heads)", .before = before_tile, .after = after_tile, .role = "q", .other = "k"},
    {.says = "query heads were grouped as [heads of a group, kv heads], not as [kv heads, heads of a group]", .before = before_tile, .role = "q", .other = "k"},
    {.says = "every last page were full", .before = full_pages, .role = "last_page_len"},
    {.says = "the last page had one key less", .before = before_add, .role = "last_page_len", .by = -1},
    {.says = "the page table were ignored: page i is number i", .before = before_iota, .role = "kv_indices"},
    {.says = "every sequence read the page table from its start", .before = pages_from_start},
    {.says = "the pages of a sequence were read in reverse order", .before = pages_reversed},
    {.says = "keys were used for values", .before = before_copy, .role = "v", .other = "k"},
    {.says = "values were used for keys", .before = before_copy, .role = "k", .other = "v"},
    {.says = "the rotary part (q_pe, k_pe) were left out", .before = before_set, .role = "q_pe", .by = 0},
    {.says = "logits were rounded to bfloat16", .mistake = ATTENTION_ROUNDED_LOGITS},
    {.says = "probabilities were rounded to bfloat16", .mistake = ATTENTION_ROUNDED_WEIGHTS},
    {.says = "the exponentials were not divided by their sum", .mistake = ATTENTION_NOT_DIVIDED},
    {.says = "the softmax were left out", .mistake = ATTENTION_RAW_WEIGHTS},
    {.says = "the softmax had base 2", .mistake = ATTENTION_BASE_2},
    {.says = NULL},
};
