#include "kernels/page/mistakes.h"

#include "kernels/core/mistakes.h"

const struct op_mistake page_mistakes[] = {
    {.says = "the page table was ignored: entry i was taken to be page i", .in_oracle = PAGE_TABLE_IGNORED},
    {.says = "the offsets of sequences (indptr) were ignored: every sequence read the table of pages from the start", .in_oracle = PAGE_INDPTR_IGNORED},
    {.says = "tokens were written to the page of the next entry in the page table", .in_oracle = PAGE_NEXT_PAGE},
    {.says = "tokens were written to the next slot of their page", .in_oracle = PAGE_NEXT_SLOT},
    {.says = "tokens were written to the last page of their sequence", .in_oracle = PAGE_LAST_PAGE},
    {.says = "the slot was computed from the length of the last page, not from the token's position", .in_oracle = PAGE_LAST_SLOT},
    {.says = "the slot was computed from the token's index in the batch, not from its position", .in_oracle = PAGE_SLOT_IN_BATCH},
    {.says = "the page size was halved", .in_oracle = PAGE_HALF_PAGE},
    {.says = "the slot was the page's number, as if each page held only one token", .in_oracle = PAGE_FIRST_SLOT},
    {.says = "the slot was the token's position, and the page table was not used", .in_oracle = PAGE_POSITION_AS_SLOT},
    {.says = "the caches hold the sums of their old contents and the new tokens, not the new tokens alone", .in_oracle = PAGE_ADDED},
    {.says = "new keys were added to the old contents of the cache, not written over them", .in_oracle = PAGE_ADDED_KEYS},
    {.says = "in the caches, all slots without a new token were set to 0", .in_oracle = PAGE_REST_ZEROED},
    {.says = "in the cache of keys, all slots without a new token were set to 0", .in_oracle = PAGE_REST_ZEROED_KEYS},
    {.says = "padding tokens were written as tokens of the first sequence", .in_oracle = PAGE_PADDING_FIRST},
    {.says = "the tokens after the first padding token were ignored", .in_oracle = PAGE_PADDING_ENDS},
    {.says = "the key of the last token was not written", .in_oracle = PAGE_LAST_TOKEN_KEYS},
    {.says = "the value of the last token was not written", .in_oracle = PAGE_LAST_TOKEN_VALUES},
    {.says = "only the keys of the first head were written", .in_oracle = PAGE_FIRST_HEAD_KEYS},
    {.says = "only the values of the first head were written", .in_oracle = PAGE_FIRST_HEAD_VALUES},
    {.says = "nothing was written: the caches are unchanged", .before = before_set, .role = "batch_indices", .by = -1},
    {.says = "the first of the two tensors to append was not written", .after = after_input, .role = "output", .other = "cache"},
    {.says = "the second of the two tensors to append was not written", .after = after_input, .role = "output_other", .other = "cache_other"},
    {.says = "values were written to the cache of keys", .before = before_copy, .role = "append", .other = "append_other"},
    {.says = "keys were written to the cache of values", .before = before_copy, .role = "append_other", .other = "append"},
    {.says = "keys and values were swapped", .before = before_swap, .role = "append", .other = "append_other"},
    {.says = NULL},
};
