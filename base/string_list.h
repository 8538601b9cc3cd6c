/* string_list - a growing list of strings in an arena. */
#ifndef REFTEST_BASE_STRING_LIST_H
#define REFTEST_BASE_STRING_LIST_H

#include <string.h>

#include "base/arena.h"

struct string_list {
	struct arena *arena;
	const char **items;
	int count, room;
};

static inline void string_list_add(struct string_list *s, const char *text)
{
	if (s->count == s->room) {
		const char **more = arena_array(s->arena, (size_t)s->room * 2 + 16, sizeof *more);

		if (s->count > 0)
			memcpy(more, s->items, (size_t)s->count * sizeof *more);
		s->items = more;
		s->room = s->room * 2 + 16;
	}
	s->items[s->count++] = text;
}

#endif
