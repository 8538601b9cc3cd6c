/* sentences - texts that are told one a line, in an arena, as many as there are. */
#ifndef REFTEST_COMMANDS_SENTENCES_H
#define REFTEST_COMMANDS_SENTENCES_H

#include <string.h>

#include "base/arena.h"

struct sentences {
	struct arena *arena;
	const char **items;
	int count, room;
};

static inline void sentences_add(struct sentences *s, const char *text)
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
