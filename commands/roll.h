/* roll - the definitions that a watcher knows, and the last word on each. */
#ifndef REFTEST_COMMANDS_ROLL_H
#define REFTEST_COMMANDS_ROLL_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/hash.h"
#include "dataset/verdict.h"

enum { ROLL_BUCKETS = 4096 };

/* The last word on a definition. */
struct word {
	enum status status;
	enum reason reason;
	uint32_t cases;
	uint64_t elements;
	int64_t batch;        /* in which it was told; 0: never */
	struct digest inputs; /* contents that it is on; zeros: not known */
};

struct roll_entry {
	struct roll_entry *next;
	bool known;         /* false: another word is on its way */
	struct word word;
	char path[];        /* "definitions/rmsnorm/rmsnorm_h4096.json" */
};

struct roll { /* {0} is empty */
	struct roll_entry *bucket[ROLL_BUCKETS];
	int count, known;
	int by_status[STATUS_COUNT]; /* of the known */
	int64_t passed_cases;        /* of those that are known to have passed */
	uint64_t passed_elements;
};

/* NULL: there is no such definition. */
const struct roll_entry *roll_find(struct roll *roll, const char *path);
void roll_set(struct roll *roll, const char *path, const struct word *word);
void roll_doubt(struct roll *roll, const char *path); /* known no more; made if it was not there */
bool roll_forget(struct roll *roll, const char *path); /* false: there was none */

/* The paths of those that are not known to have passed, sorted. */
int roll_doubtful(const struct roll *roll, struct arena *arena, const char ***paths);

/* The paths of those that are known to have failed, sorted: failed, an error, or invalid; not what was skipped. */
int roll_failed(const struct roll *roll, struct arena *arena, const char ***paths);

/* Those that are known to have passed, sorted by path; valid until the roll changes. */
int roll_passed(const struct roll *roll, struct arena *arena, const struct roll_entry ***entries);

/* The paths that begin with `prefix`, sorted. */
int roll_paths(const struct roll *roll, const char *prefix, struct arena *arena, const char ***paths);
void roll_free(struct roll *roll);

#endif
