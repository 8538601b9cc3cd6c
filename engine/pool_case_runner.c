#include "engine/pool_case_runner.h"

#include <stddef.h>

static void submit(void *self, const struct task *task)
{
	pool_submit(self, task);
}

static void cancel(void *self, const void *owner)
{
	pool_cancel(self, owner);
}

static int fd(const void *self)
{
	return pool_fd(self);
}

static int dispatch(void *self, struct err *err)
{
	return pool_dispatch(self, err);
}

static void *next_owner(const void *self)
{
	return pool_next_owner(self);
}

static bool next(void *self, struct arena *arena, struct pool_result *out)
{
	return pool_next(self, arena, out);
}

static int pending(const void *self)
{
	return pool_pending(self);
}

static int running(const void *self, struct pool_running *out, int most)
{
	return pool_running(self, out, most);
}

static bool layers(const void *self, uint32_t *out)
{
	return pool_layers(self, out);
}

static struct pool_versions versions(const void *self)
{
	return pool_versions(self);
}

static void close_pool(void *self)
{
	pool_close(self);
}

struct runner pool_runner(struct pool *pool)
{
	static const struct runner_calls calls = {submit,  cancel,  fd,    dispatch, next_owner, next,
						  pending, running, versions, layers,   close_pool};

	return pool == NULL ? (struct runner){NULL, NULL} : (struct runner){&calls, pool};
}
