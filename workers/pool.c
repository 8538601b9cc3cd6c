/* Tasks wait in a queue until a lane is idle; cases that are tried again wait in another until all are. Children are
 * ordered of the crew as lanes and tasks need them.
 *
 * All descriptors lie in one epoll, which only says that there is something to do: pool_dispatch then looks at
 * everything (lanes are few), so no event can be stale. */
#include "workers/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "workers/lane.h"
#include "workers/machine.h"

struct pool {
	struct yard yard;
	char *python;
	bool warm;               /* pool_warm */
	int spares;              /* that a warm pool keeps ready */
	int wake, timer;         /* eventfd, timerfd */
	int subreaper, dumpable; /* as they were before pool_open */
	struct queue queue;
	int pending;             /* cases submitted and not yet told */
};

/* ---- opening ---- */

static char *copy_text(const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		die_no_memory();
	return copy;
}

static int watch_fd(const struct pool *pool, int fd, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(pool->yard.epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : err_errno(err, "the pool cannot watch");
}

static int open_loop(struct pool *pool, struct err *err)
{
	pool->yard.epoll = epoll_create1(EPOLL_CLOEXEC);
	pool->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pool->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pool->yard.epoll < 0 || pool->wake < 0 || pool->timer < 0)
		return err_errno(err, "the pool's loop cannot be made");
	return watch_fd(pool, pool->wake, err) == 0 ? watch_fd(pool, pool->timer, err) : -1;
}

static void close_loop(struct pool *pool)
{
	const int fds[] = {pool->yard.epoll, pool->wake, pool->timer};

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void free_pool(struct pool *pool)
{
	close_loop(pool);
	free(pool->yard.device);
	free(pool->python);
	free(pool->yard.lanes);
	free(pool);
}

static void lay_out(struct pool *pool, const struct pool_options *options)
{
	struct yard *yard = &pool->yard;
	int cores = machine_cores(), usual = strcmp(options->device, "cpu") == 0 ? SPARES_CPU : SPARES_GPU;

	yard->device = copy_text(options->device);
	pool->python = copy_text(options->python);
	yard->timeout_s = options->timeout_s;
	yard->staged = options->staged;
	pool->spares = options->spares < 1 ? usual : options->spares > SPARES_MOST ? SPARES_MOST : options->spares;
	yard->lane_count = options->lanes < 1 ? 1 : options->lanes;
	yard->threads = cores / yard->lane_count < 1 ? 1 : cores / yard->lane_count;
	yard->lanes = calloc((size_t)yard->lane_count, sizeof *yard->lanes);
	if (yard->lanes == NULL)
		die_no_memory();
	for (int i = 0; i < yard->lane_count; i++)
		lane_open(&yard->lanes[i]);
}

struct pool *pool_open(const struct pool_options *options, struct err *err)
{
	struct pool *pool = calloc(1, sizeof *pool);
	struct yard *yard;

	if (pool == NULL)
		die_no_memory();
	yard = &pool->yard;
	lay_out(pool, options);
	if (open_loop(pool, err) != 0 || crew_open(&yard->crew, pool->python, yard->device, yard->lane_count + pool->spares,
	                                           yard->threads, yard->epoll, err) != 0) {
		free_pool(pool);
		return NULL;
	}
	provider_open(&yard->provider, pool->python, yard->device, yard->threads, yard->epoll, yard->timeout_s);
	prctl(PR_GET_CHILD_SUBREAPER, &pool->subreaper);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pool->dumpable = prctl(PR_GET_DUMPABLE);
	prctl(PR_SET_DUMPABLE, 0);
	return pool;
}

static void wake(struct pool *pool)
{
	const uint64_t one = 1;

	if (write(pool->wake, &one, sizeof one) < 0)
		return; /* the counter is full: it is readable as it is */
}

void pool_warm(struct pool *pool)
{
	pool->warm = true;
	wake(pool);
}

void pool_submit(struct pool *pool, const struct task *task)
{
	if (task->job_count <= 0)
		return;
	(task->urgent ? queue_push_first : queue_push)(&pool->queue, work_new(task));
	pool->pending += task->job_count;
	wake(pool);
}

/* ---- the clock ---- */

static void arm_timer(struct pool *pool)
{
	int64_t deadline = crew_deadline(&pool->yard.crew), of_provider = provider_deadline(&pool->yard.provider);
	struct itimerspec spec = {0};

	for (int i = 0; i < pool->yard.lane_count; i++) {
		int64_t of_lane = lane_deadline(&pool->yard.lanes[i]);

		deadline = of_lane < deadline ? of_lane : deadline;
	}
	deadline = of_provider < deadline ? of_provider : deadline;
	if (deadline != INT64_MAX) {
		spec.it_value.tv_sec = deadline / 1000;
		spec.it_value.tv_nsec = deadline % 1000 * 1000000 + 1; /* all zero would disarm it */
	}
	timerfd_settime(pool->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* ---- scheduling ---- */

static bool any_alone(const struct pool *pool)
{
	for (int i = 0; i < pool->yard.lane_count; i++)
		if (pool->yard.lanes[i].work != NULL && pool->yard.lanes[i].work->alone)
			return true;
	return false;
}

/* An idle lane, one with a judge that has nothing left to do if there is one. */
static struct lane *idle_lane(struct pool *pool)
{
	struct lane *any = NULL;

	for (int i = 0; i < pool->yard.lane_count; i++) {
		struct lane *lane = &pool->yard.lanes[i];

		if (lane->phase != LANE_IDLE)
			continue;
		if (lane->up && lane->stale == 0)
			return lane;
		if (any == NULL || lane->up)
			any = lane;
	}
	return any;
}

static void hand_out(struct pool *pool)
{
	struct lane *lane;

	while (!any_alone(pool) && (lane = idle_lane(pool)) != NULL) {
		struct work *work = queue_pop(&pool->queue);

		if (work == NULL && !yard_busy(&pool->yard, lane))
			work = queue_pop(&pool->yard.alone);
		if (work == NULL)
			return;
		lane_give(lane, work);
	}
}

/* May those that are kept warm be made now? Not beside a reference that somebody waits for: it would take its time. But on a
 * GPU contexts are made at so many a second, whenever that is, and a burst of saves that has used up the spares
 * would wait for each. */
static bool may_refill(const struct pool *pool, int waiting, int working)
{
	if (!pool->warm || any_alone(pool) || queue_length(&pool->yard.alone) > 0) /* that one is to have the memory */
		return false;
	if (strcmp(pool->yard.device, "cpu") == 0)
		return waiting == 0 && working == 0;
	return working == 0 || crew_spares(&pool->yard.crew) < SPARES_LOW;
}

/* As many spares as lanes are waiting and tasks are queued for, and those that are kept warm. */
static int spares_wanted(const struct pool *pool)
{
	int waiting = 0, working = 0, queued = queue_length(&pool->queue) + queue_length(&pool->yard.alone);

	for (int i = 0; i < pool->yard.lane_count; i++) {
		const struct lane *lane = &pool->yard.lanes[i];

		waiting += lane->phase == LANE_WAITING && lane->work->failure == NULL && lane->child == NULL;
		working += lane->phase == LANE_WORKING;
	}
	waiting += queued;
	int wanted = waiting < pool->yard.lane_count ? waiting : pool->yard.lane_count;

	return pool->spares > wanted && may_refill(pool, waiting, working) ? pool->spares : wanted;
}

static int schedule(struct pool *pool, struct err *err)
{
	hand_out(pool);
	for (int i = 0; i < pool->yard.lane_count; i++)
		if (lane_advance(&pool->yard, &pool->yard.lanes[i], err) != 0)
			return -1;
	if (pool->warm && lane_warm(&pool->yard, &pool->yard.lanes[0], err) != 0)
		return -1;
	return crew_want(&pool->yard.crew, spares_wanted(pool), err);
}

/* ---- the face ---- */

int pool_fd(const struct pool *pool)
{
	return pool->yard.epoll;
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) > 0)
		;
}

int pool_dispatch(struct pool *pool, struct err *err)
{
	int64_t now = clock_ms();

	drain(pool->wake);
	drain(pool->timer);
	if (crew_dispatch(&pool->yard.crew, now, err) != 0)
		return -1;
	for (int i = 0; i < pool->yard.lane_count; i++)
		if (lane_dispatch(&pool->yard, &pool->yard.lanes[i], now, err) != 0)
			return -1;
	yard_dispatch_provider(&pool->yard, now);
	if (schedule(pool, err) != 0)
		return -1;
	arm_timer(pool);
	return 0;
}

/* Accidents are not to be remembered: the same case may end otherwise tomorrow. */
static bool worth_keeping(const struct result *result, const struct verdict *verdict)
{
	switch (verdict->reason) {
	case REASON_MEMORY:
	case REASON_MISSING_BLOB:
	case REASON_CHANGED:
	case REASON_UNSUPPORTED_DEVICE:
	case REASON_CRASHED:
	case REASON_TIMEOUT:
	case REASON_GROUND_TRUTH:
		return false;
	default:
		for (int i = 0; i < verdict->witness_count; i++)
			if (verdict->witnesses[i].accident)
				return false;
		return !result->accident;
	}
}

bool pool_next(struct pool *pool, struct arena *arena, struct pool_result *out)
{
	struct result *result = results_pop(&pool->yard.results);
	const struct verdict *parsed;
	struct verdict *verdict;
	struct err err = {""};

	if (result == NULL)
		return false;
	pool->pending--;
	verdict = arena_alloc(arena, sizeof *verdict);
	parsed = verdict_parse(result->text, result->length, arena, &err);
	if (parsed != NULL)
		*verdict = *parsed;
	else
		*verdict = (struct verdict){.status = STATUS_ERROR, .reason = REASON_GROUND_TRUTH, .device = pool->yard.device,
		                            .message = arena_string(arena, err.text)};
	verdict->torch = pool->yard.crew.torch[0] == '\0' ? NULL : arena_string(arena, pool->yard.crew.torch);
	verdict->cuda = pool->yard.crew.cuda[0] == '\0' ? NULL : arena_string(arena, pool->yard.crew.cuda);
	verdict->seconds = result->seconds;
	verdict->time = result->time;
	*out = (struct pool_result){result->owner, result->job, verdict,
	                            worth_keeping(result, verdict) && result->reached == NULL,
	                            result->reached == NULL ? NULL : arena_string(arena, result->reached),
	                            result->printed == NULL ? NULL : arena_string(arena, result->printed)};
	result_free(result);
	return true;
}

void *pool_next_owner(const struct pool *pool)
{
	return pool->yard.results.first == NULL ? NULL : pool->yard.results.first->owner;
}

int pool_pending(const struct pool *pool)
{
	return pool->pending;
}

int pool_spares(const struct pool *pool)
{
	return crew_spares(&pool->yard.crew);
}

const char *pool_device_class(const struct pool *pool)
{
	return pool->yard.device_class[0] == '\0' ? NULL : pool->yard.device_class;
}

const char *pool_torch(const struct pool *pool)
{
	return pool->yard.crew.torch[0] == '\0' ? NULL : pool->yard.crew.torch;
}

void pool_cancel(struct pool *pool, const void *owner)
{
	struct yard *yard = &pool->yard;

	pool->pending -= queue_cancel(&pool->queue, owner) + queue_cancel(&yard->alone, owner);
	pool->pending -= results_cancel(&yard->results, owner);
	for (int i = 0; i < yard->lane_count; i++) {
		struct lane *lane = &yard->lanes[i];

		if (lane->work == NULL || lane->work->task.owner != owner)
			continue;
		pool->pending -= work_left(lane->work);
		lane_cancel(yard, lane);
	}
	wake(pool);
}

void pool_close(struct pool *pool)
{
	int64_t deadline = clock_ms() + 1000;
	struct result *result;
	struct work *work;

	if (pool == NULL)
		return;
	for (int i = 0; i < pool->yard.lane_count; i++)
		process_kill(&pool->yard.lanes[i].judge);
	provider_close(&pool->yard.provider);
	crew_close(&pool->yard.crew);
	for (int i = 0; i < pool->yard.lane_count; i++)
		lane_close(&pool->yard.lanes[i], deadline);
	while ((work = queue_pop(&pool->queue)) != NULL || (work = queue_pop(&pool->yard.alone)) != NULL)
		work_free(work);
	while ((result = results_pop(&pool->yard.results)) != NULL)
		result_free(result);
	prctl(PR_SET_CHILD_SUBREAPER, pool->subreaper);
	prctl(PR_SET_DUMPABLE, pool->dumpable);
	free_pool(pool);
}
