/* foretold - verdicts whose contents follow from their number, for processes that hold each other to them. */
#ifndef REFTEST_TESTS_FORETOLD_H
#define REFTEST_TESTS_FORETOLD_H

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cache/store.h"

/* Verdict `number`, made at `made` (seconds since 1970), with some `size` octets of text; in the arena. */
static inline struct store_put foretold(struct arena *arena, int number, long long made, size_t size)
{
	char *text = arena_alloc(arena, size + 64);
	int head = snprintf(text, 64, "{\"number\": %d, \"time\": %lld} ", number, made);

	memset(text + head, 'a' + number % 26, size);
	return (struct store_put){.subject = digest_of(&number, sizeof number),
				  .witness = digest_of("w", 1),
				  .text = text,
				  .length = (size_t)head + size,
				  .definition = "norm/n",
				  .case_id = arena_printf(arena, "case %d", number),
				  .fields = "fields",
				  .fields_length = 6,
				  .keep_verdict = true};
}

#endif
