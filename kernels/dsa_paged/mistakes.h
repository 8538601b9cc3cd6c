/* mistakes - the mistakes that people make in references of sparse attention and of its indexer. The table lists all
 * mistakes. The enum numbers the mistakes that the oracle of the indexer simulates. The mistakes of sparse attention
 * are numbered in kernels/common/attention/attention.h. */
#ifndef REFTEST_KERNELS_DSA_PAGED_MISTAKES_H
#define REFTEST_KERNELS_DSA_PAGED_MISTAKES_H

#include "kernels/common/attention/attention.h"
#include "kernels/core/op.h"

enum indexer_mistake {
	INDEXER_NO_MISTAKE = ATTENTION_MISTAKES, /* smaller numbers are mistakes of attention */
	INDEXER_NO_RELU,
	INDEXER_RELU_LAST,     /* relu is applied to the sum over the heads */
	INDEXER_NO_WEIGHTS,
	INDEXER_SOFTMAX_WEIGHTS,
	INDEXER_NO_SCALES,
	INDEXER_DIVIDED_SCALES,
	INDEXER_LIMITED_PRODUCTS, /* products of queries and keys are at most the largest float16 number */
	INDEXER_SCALE_AFTER_KEY, /* the cache is read as if each key were followed by its scale */
	INDEXER_INTEGERS,        /* elements of keys are read as signed integers */
	INDEXER_SMALLEST,
	INDEXER_MAGNITUDES,
	INDEXER_FIRST_KEYS,
	INDEXER_LAST_KEYS,
	INDEXER_ONE_LESS,
	INDEXER_PLACES,          /* the positions of keys in the sequence are listed, not their rows in the cache */
	INDEXER_WHOLE_PAGES,     /* lengths are rounded up to whole pages */
	INDEXER_ZEROS,           /* unused entries are 0 instead of -1 */
	INDEXER_NO_ZERO_SCORES,  /* keys of score 0 are never selected */
};

/* the table ends with a row whose `says` is NULL */
extern const struct op_mistake dsa_mistakes[];

#endif
