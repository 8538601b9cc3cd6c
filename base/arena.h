/* arena - an allocator whose memory is all freed in one call.
 *
 * A single allocation cannot be freed. An allocation never fails: if memory runs out, the program exits. */
#ifndef REFTEST_BASE_ARENA_H
#define REFTEST_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *block; /* newest block; NULL if the arena is empty, so {0} is a valid empty arena */
};

/* Returns zeroed memory aligned for any type. Size 0 gives a unique, valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* Returns a zeroed array of `count` elements. If `count` times the element size overflows, the program exits as if
 * memory had run out. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* The next three functions copy a text and append a NUL to the copy. */
char *arena_copy(struct arena *arena, const void *bytes, size_t length);
char *arena_string(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Frees everything; the arena is then empty and can be used again. */
void arena_free(struct arena *arena);

#endif
