/* mistakes - the mistakes that people make in references of appending to paged caches. The table page_mistakes lists
 * all mistakes; enum page_mistake has only those that the oracle simulates. */
#ifndef REFTEST_KERNELS_PAGE_MISTAKES_H
#define REFTEST_KERNELS_PAGE_MISTAKES_H

#include "kernels/core/op.h"

enum page_mistake {
	PAGE_NO_MISTAKE,
	PAGE_TABLE_IGNORED,
	PAGE_INDPTR_IGNORED,
	PAGE_NEXT_PAGE,
	PAGE_NEXT_SLOT,
	PAGE_LAST_PAGE,
	PAGE_LAST_SLOT,
	PAGE_SLOT_IN_BATCH,
	PAGE_HALF_PAGE,
	PAGE_FIRST_SLOT,
	PAGE_POSITION_AS_SLOT,
	PAGE_ADDED,
	PAGE_REST_ZEROED,
	PAGE_PADDING_FIRST,
	PAGE_PADDING_ENDS,
	PAGE_LAST_TOKEN_KEYS,
	PAGE_LAST_TOKEN_VALUES,
	PAGE_FIRST_HEAD_KEYS,
	PAGE_FIRST_HEAD_VALUES,
	PAGE_ADDED_KEYS,
	PAGE_REST_ZEROED_KEYS
};

/* the table ends with a row whose `says` is NULL */
extern const struct op_mistake page_mistakes[];

#endif
