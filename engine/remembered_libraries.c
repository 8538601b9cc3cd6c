#include "engine/remembered_libraries.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "dataset/dataset.h"

enum { KEY_MAX = 511, DIGEST_SIZE = 65 };

/* Writes the key under which the cache stores the digest of the library at `path`. Returns false if the path is too
 * long for a key. */
static bool make_key(const char *path, char key[KEY_MAX + 1])
{
	return snprintf(key, KEY_MAX + 1, "library %s", path) <= KEY_MAX;
}

static bool known(void *self, const char *path, const struct stat *st, const char *digest)
{
	char key[KEY_MAX + 1], stored[DIGEST_SIZE];
	struct arena arena = {0};
	struct file_seen seen = {0};
	const struct file_stat now = file_stat_of(st);
	const char *value;

	bool found = self != NULL && make_key(path, key) && store_fact(self, key, &arena, &value, NULL) == CACHE_HIT &&
		     sscanf(value, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %64s", &seen.stat.inode,
			    &seen.stat.size, &seen.stat.mtime_ns, &seen.stat.ctime_ns, &seen.read_ns, stored) == 6 &&
		     strcmp(stored, digest) == 0 && file_seen_holds(&seen, &now);

	arena_free(&arena);
	return found;
}

static void remember(void *self, const char *path, const struct stat *st, int64_t read_ns, const char *digest)
{
	char key[KEY_MAX + 1];
	struct arena arena = {0};
	const struct file_stat stat = file_stat_of(st);

	if (self != NULL && store_writable(self) && make_key(path, key))
		store_put_fact(self, key,
			       arena_printf(&arena, "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %s",
					    stat.inode, stat.size, stat.mtime_ns, stat.ctime_ns, read_ns, digest), NULL);
	arena_free(&arena);
}

struct digest_memory remembered_libraries(struct store *store)
{
	return (struct digest_memory){known, remember, store};
}
