/* take - allocates working memory for the oracles and fills of op families. */
#ifndef REFTEST_KERNELS_CORE_TAKE_H
#define REFTEST_KERNELS_CORE_TAKE_H

#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

/* Returns zeroed memory for `count` elements of `size` bytes, with room for at least one element. The caller must free
 * it. Ends the program if memory runs out. */
static inline void *take(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

/* Like take, but does not clear the memory. Use it for large buffers that the caller fills. */
static inline void *take_dirty(int64_t count, size_t size)
{
	void *memory = malloc(((size_t)count + 1) * size);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

#endif
