/* arena - memory for one batch of work, freed at once when the batch has been told.
 *
 * Nothing allocated here is freed by itself. An allocation never fails (out of memory ends the program). */
#ifndef REFTEST_BASE_ARENA_H
#define REFTEST_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *block; /* newest block, NULL when empty; {0} is a valid empty arena */
};

/* Zeroed memory aligned for any type; size 0 gives a unique, valid pointer. */
void *arena_alloc(struct arena *arena, size_t size);

/* Zeroed array of `count` elements; an overflowing product ends the program like no memory. */
void *arena_array(struct arena *arena, size_t count, size_t size);

/* Copies with a NUL appended. */
char *arena_copy(struct arena *arena, const void *bytes, size_t length);
char *arena_string(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Frees everything; the arena is empty and usable again. */
void arena_free(struct arena *arena);

#endif
