/* numbered_verdicts - builds verdicts whose content is a function of a number, so that a process can check the
 * verdicts that another process stored. */
#ifndef REFTEST_TESTS_NUMBERED_VERDICTS_H
#define REFTEST_TESTS_NUMBERED_VERDICTS_H

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cache/store.h"

/* Builds verdict `number` in the arena. `made` is the verdict's time in seconds since 1970, and `size` is roughly the
 * size of the verdict's text in bytes. */
static inline struct store_put numbered_verdict(struct arena *arena, int number, long long made, size_t size)
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
				  .fields = "1\ttag\t=value\t",
				  .fields_length = sizeof "1\ttag\t=value\t" - 1,
				  .keep_verdict = true};
}

#endif
