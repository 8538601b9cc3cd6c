#include "engine/disk_store.h"

#include <stddef.h>

static struct store *store_of(const void *self)
{
	return ((const struct program *)self)->store;
}

static int verdicts(void *self, const struct digest *subject, struct arena *arena, const struct stored_verdict **out)
{
	return store_verdicts(store_of(self), subject, arena, out, NULL);
}

static enum cache_answer latest(void *self, const char *definition, const char *case_id, struct arena *arena,
				struct latest *out)
{
	return store_latest(store_of(self), definition, case_id, arena, out, NULL);
}

static int put(void *self, const struct store_put *puts, int count, struct err *err)
{
	return store_put(store_of(self), puts, count, err);
}

static bool writable(const void *self)
{
	return store_writable(store_of(self));
}

static int each_file(void *self, const char *prefix, store_visit *visit, void *context, struct err *err)
{
	return store_each_file(store_of(self), prefix, visit, context, err);
}

static int each_file_apart(void *self, const char *prefix, const struct file_visitor *inside,
			   const struct file_visitor *others, struct err *err)
{
	return store_each_file_apart(store_of(self), prefix, inside, others, err);
}

static int put_files(void *self, const struct file_entry *entries, int count, struct err *err)
{
	return store_put_files(store_of(self), entries, count, NULL, 0, err);
}

static void count(void *self, const struct cache_stats *run)
{
	hit_counts_add(((const struct program *)self)->root, run);
}

struct run_store disk_store(struct program *program)
{
	static const struct run_store_calls calls = {verdicts,	latest,		 put,	    writable,
						     each_file, each_file_apart, put_files, count};

	return program->store == NULL ? (struct run_store){NULL, NULL} : (struct run_store){&calls, program};
}
