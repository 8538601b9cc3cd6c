#include "kernels/dsa_paged/mistakes.h"

#include "kernels/common/attention/shared_mistakes.h"

/* Applies `change` to the list of keys of each query in sparse attention. An entry of -1 stands for no key. */
static bool change_lists(struct op_variation *v, void (*change)(struct tensor *lists, int64_t first, int64_t length, double by), double by)
{
	struct tensor *lists = variation_change(v, variation_input(v, "sparse"));

	if (lists == NULL || lists->rank != 2)
		return false;
	for (int64_t i = 0; i < lists->shape[0]; i++)
		change(lists, i * lists->shape[1], lists->shape[1], by);
	return true;
}

/* Replaces each negative entry with the number `by`. */
static void fill_list(struct tensor *lists, int64_t first, int64_t length, double by)
{
	for (int64_t i = first; i < first + length; i++)
		if (attention_integer(lists, i) < 0)
			dtype_store(lists->data, lists->dtype, i, by);
}

/* Sets all entries after the first -1 to -1. */
static void end_list(struct tensor *lists, int64_t first, int64_t length, double by)
{
	bool ended = false;

	(void)by;
	for (int64_t i = first; i < first + length; i++) {
		ended = ended || attention_integer(lists, i) < 0;
		if (ended)
			dtype_store(lists->data, lists->dtype, i, -1);
	}
}

/* Sets each entry that is equal to `by`, the number of a row of the cache, to -1. */
static void skip_row(struct tensor *lists, int64_t first, int64_t length, double by)
{
	for (int64_t i = first; i < first + length; i++)
		if ((double)attention_integer(lists, i) == by)
			dtype_store(lists->data, lists->dtype, i, -1);
}

static void halve_list(struct tensor *lists, int64_t first, int64_t length, double by)
{
	(void)by;
	for (int64_t i = first + length / 2; i < first + length; i++)
		dtype_store(lists->data, lists->dtype, i, -1);
}

static bool padding_is_row_0(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_lists(v, fill_list, mistake->by);
}

static bool padding_is_last_row(struct op_variation *v, const struct op_mistake *mistake)
{
	int k = variation_input(v, "k");

	(void)mistake;
	return k >= 0 && v->in[k].rank == 3 && change_lists(v, fill_list, (double)(v->in[k].shape[0] * v->in[k].shape[1] - 1));
}

static bool padding_ends(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_lists(v, end_list, mistake->by);
}

static bool row_0_is_padding(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_lists(v, skip_row, mistake->by);
}

static bool half_of_list(struct op_variation *v, const struct op_mistake *mistake)
{
	return change_lists(v, halve_list, mistake->by);
}

/* Ignores the page table: in the row of every sequence, sets entry i to page i. */
static bool table_ignored(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *table = variation_change(v, variation_input(v, mistake->role));

	for (int64_t i = 0; table != NULL && table->rank == 2 && i < table->elements; i++)
		dtype_store(table->data, table->dtype, i, (double)(i % table->shape[1]));
	return table != NULL && table->rank == 2;
}

const struct op_mistake dsa_mistakes[] = {
    ATTENTION_SHARED_MISTAKES,
    {.says = "entries that are -1 in the list of keys were read as row 0", .before = padding_is_row_0, .by = 0},
    {.says = "entries that are -1 in the list of keys were read as the last row", .before = padding_is_last_row},
    {.says = "the entries after the first -1 in the list of keys were ignored", .before = padding_ends},
    {.says = "entries that are 0 in the list of keys were skipped, like entries that are -1", .before = row_0_is_padding, .by = 0},
    {.says = "the second half of the list of keys was not read", .before = half_of_list},
    {.says = "every query used the first query's list of keys", .before = before_first, .role = "sparse", .by = 0},
    {.says = "every sequence used the weights of the first sequence", .before = before_first, .role = "weights", .by = 0},
    {.says = "relu was not applied to the scores", .in_oracle = INDEXER_NO_RELU},
    {.says = "relu was applied to the sum over the heads, not to the dot product of each head", .in_oracle = INDEXER_RELU_LAST, .narrower = {INDEXER_NO_RELU}},
    {.says = "the weights of the heads were left out", .in_oracle = INDEXER_NO_WEIGHTS},
    {.says = "softmax was applied to the weights of the heads", .in_oracle = INDEXER_SOFTMAX_WEIGHTS},
    {.says = "the scales of keys were left out", .in_oracle = INDEXER_NO_SCALES},
    {.says = "products of queries and keys were limited to 65504, the largest number of float16", .in_oracle = INDEXER_LIMITED_PRODUCTS},
    {.says = "keys were divided by their scales, not multiplied by them", .in_oracle = INDEXER_DIVIDED_SCALES},
    {.says = "the scale of a key was read right after this key, not after the last key of the page", .in_oracle = INDEXER_SCALE_AFTER_KEY},
    {.says = "the bytes of keys were read as integers, not as float8_e4m3fn", .in_oracle = INDEXER_INTEGERS},
    {.says = "the keys with the smallest scores were chosen", .in_oracle = INDEXER_SMALLEST},
    {.says = "the keys whose scores have the largest magnitudes were chosen", .in_oracle = INDEXER_MAGNITUDES},
    {.says = "the first keys were chosen, whatever their scores", .in_oracle = INDEXER_FIRST_KEYS},
    {.says = "the last keys were chosen, whatever their scores", .in_oracle = INDEXER_LAST_KEYS},
    {.says = "top_k - 1 keys were chosen, not top_k", .in_oracle = INDEXER_ONE_LESS},
    {.says = "the list of keys contained positions in the sequence, not row numbers of the cache", .in_oracle = INDEXER_PLACES},
    {.says = "the lengths of sequences were rounded up to whole pages", .in_oracle = INDEXER_WHOLE_PAGES},
    {.says = "entries without a chosen key were set to 0, not to -1", .in_oracle = INDEXER_ZEROS},
    {.says = "keys whose score is 0 were never chosen", .in_oracle = INDEXER_NO_ZERO_SCORES},
    {.says = "the page table was ignored: entry i was taken to be page i", .before = table_ignored, .role = "table"},
    {.says = NULL},
};
