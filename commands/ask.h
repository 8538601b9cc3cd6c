/* ask - what a running watcher knows of this root: questions through its door (commands/door.h), and the answers. Without
 * a watcher, or with one that verifies otherwise (other sizes, another device), everything here is false at once. With one that is
 * busy an answer takes as long as its work; after a second of that, standard error says what is being waited for. */
#ifndef REFTEST_COMMANDS_ASK_H
#define REFTEST_COMMANDS_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "commands/batches.h"

struct vouched {
	int definitions;  /* verified, every write made before the question included */
	int64_t cases;
	uint64_t elements;
	const char **paths; /* the others: to be looked at; sorted */
	int path_count;
	const struct vouched_row {
		const char *path;
		int cases; /* all of them passed */
	} *rows; /* of each that is vouched for, sorted; only if asked for */
	int row_count;
};

bool ask_verified(const char *root, const struct digest *context, bool rows, struct arena *arena, struct vouched *out);

/* The definitions of these names ("rmsnorm_h4096", "rmsnorm/rmsnorm_h4096"), each of them found. */
bool ask_paths(const char *root, const char *const *names, int count, struct arena *arena, struct vouched *out);

/* The watcher's side: appends the answer to a question; false: not yet. `idle`: nothing is pending. */
bool ask_answer(struct batches *batches, bool idle, const char *question, size_t length, struct buf *out);

#endif
