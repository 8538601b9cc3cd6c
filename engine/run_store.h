/* run_store - the interface through which a run reads and writes verdicts and the digests of files. The implementations
 * are the store on disk (engine/disk_store.h) and, in unit tests, a fake that records its calls. */
#ifndef REFTEST_ENGINE_RUN_STORE_H
#define REFTEST_ENGINE_RUN_STORE_H

#include <stdbool.h>

#include "cache/hit_counts.h"
#include "cache/store.h"

/* Each member except `count` does the same as the function of this name in cache/store.h: for example, `verdicts` does
 * the same as store_verdicts. The first argument of every call is run_store.self. */
struct run_store_calls {
	int (*verdicts)(void *self, const struct digest *subject, struct arena *arena, const struct stored_verdict **out);
	enum cache_answer (*latest)(void *self, const char *definition, const char *case_id, struct arena *arena,
				    struct latest *out);
	int (*put)(void *self, const struct store_put *puts, int count, struct err *err);
	bool (*writable)(const void *self);
	int (*each_file)(void *self, const char *prefix, store_visit *visit, void *context, struct err *err);
	/* If this member is NULL, the run calls each_file instead. */
	int (*each_file_apart)(void *self, const char *prefix, const struct file_visitor *inside,
			       const struct file_visitor *others, struct err *err);
	int (*put_files)(void *self, const struct file_entry *entries, int count, struct err *err);
	/* Adds a run to the counters of `reftest cache stats`. */
	void (*count)(void *self, const struct cache_stats *run);
};

struct run_store {
	const struct run_store_calls *calls; /* NULL: the run stores nothing, and `self` is unused */
	void *self;
};

#endif
