#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct arena_block {
	struct arena_block *older;
	size_t used, room;
	_Alignas(ALIGNMENT) unsigned char bytes[];
};

static struct arena_block *block_new(struct arena_block *older, size_t size)
{
	bool large = size > BLOCK_BYTES;
	size_t room = large ? size : BLOCK_BYTES;
	struct arena_block *block = large ? calloc(1, sizeof *block + room) : malloc(sizeof *block + room);

	if (block == NULL)
		die_no_memory();
	block->older = older;
	block->used = 0;
	block->room = room;
	return block;
}

/* Large blocks come from calloc, so the kernel allocates a page of a large block only when the program first accesses
 * the page. */
void *arena_alloc(struct arena *arena, size_t size)
{
	if (size > SIZE_MAX / 2)
		die_no_memory();
	size = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (arena->block == NULL || arena->block->room - arena->block->used < size)
		arena->block = block_new(arena->block, size);
	void *memory = arena->block->bytes + arena->block->used;

	arena->block->used += size;
	return size > BLOCK_BYTES ? memory : memset(memory, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size)
		die_no_memory();
	return arena_alloc(arena, count * size);
}

char *arena_copy(struct arena *arena, const void *bytes, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);

	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

char *arena_string(struct arena *arena, const char *text)
{
	return arena_copy(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	char few[128]; /* long enough for most texts */
	int length = vsnprintf(few, sizeof few, format, args);
	char *text = arena_alloc(arena, (size_t)(length < 0 ? 0 : length) + 1);

	if (length > 0 && (size_t)length < sizeof few)
		memcpy(text, few, (size_t)length + 1);
	else if (length > 0)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void arena_free(struct arena *arena)
{
	struct arena_block *block = arena->block;

	while (block != NULL) {
		struct arena_block *older = block->older;

		free(block);
		block = older;
	}
	arena->block = NULL;
}
