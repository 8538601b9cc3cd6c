/* pool - assigns tasks to idle lanes and returns the verdicts. A lane is a judge and its runner.
 *
 * Tasks wait in a queue, the longest first, until a lane is idle. A lane that stays idle takes cases from another lane.
 * A case that must be retried waits in a second queue until all lanes are idle. The zygote starts as many runners as
 * the waiting lanes and tasks need. pool_next adds the versions of torch, CUDA and Python, the time and the duration to
 * each verdict. worth_keeping decides whether a verdict may be stored. A verdict about a transient failure must not be
 * stored. If you add a reason for a transient failure, also add it to reason_is_transient in dataset/verdict.c.
 *
 * All descriptors are in one epoll, which only signals that there is work. pool_dispatch then checks every lane,
 * because there are few lanes. pool_dispatch does not ask which descriptor was ready, so a stale event does no harm. */
#include "workers/pool/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/trace.h"
#include "workers/pool/isolation.h"
#include "workers/pool/lane.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/parallel_cases.h"
#include "workers/sandbox/containment.h"

/* The largest number of runners that are started ahead of need, and how many bytes of GPU memory must be free for each
 * of them (see ahead). */
enum { AHEAD_MOST = 8 };
static const int64_t memory_for_ahead = (int64_t)16 << 30;

struct pool {
	struct pool_shared shared;
	char *python, *root, *required;
	char *driver;            /* the version of the GPU driver; NULL: the device is the CPU, or the version is
				  * unknown */
	bool warm;               /* pool_warm was called */
	int spares;              /* the number of spare runners that a warm pool keeps ready */
	int wake, timer;         /* wake: an eventfd, which makes pool_fd readable at once; timer: a timerfd, which does
				  * so at the next deadline */
	struct pool_guard guard;
	bool guarded;
	struct isolation_reader reader;
	bool own;                /* every definition gets a runner of its own */
	struct queue queue;
	int pending;             /* the number of submitted cases whose results pool_next has not returned yet */
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

	return epoll_ctl(pool->shared.epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0
									     : err_errno(err, "cannot add a descriptor to the pool's epoll");
}

static int open_loop(struct pool *pool, struct err *err)
{
	pool->shared.epoll = epoll_create1(EPOLL_CLOEXEC);
	pool->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pool->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pool->shared.epoll < 0 || pool->wake < 0 || pool->timer < 0)
		return err_errno(err, "cannot create the pool's event loop");
	return watch_fd(pool, pool->wake, err) == 0 ? watch_fd(pool, pool->timer, err) : -1;
}

static void close_loop(struct pool *pool)
{
	const int fds[] = {pool->shared.epoll, pool->wake, pool->timer};

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void free_pool(struct pool *pool)
{
	close_loop(pool);
	free(pool->shared.device);
	free(pool->driver);
	free(pool->python);
	free(pool->root);
	free(pool->required);
	free(pool->shared.lanes);
	free(pool);
}

static char *driver_of_machine(void)
{
	struct arena arena = {0};
	const char *driver = machine_driver(&arena);
	char *copy = driver == NULL ? NULL : copy_text(driver);

	arena_free(&arena);
	return copy;
}

static void lay_out(struct pool *pool, const struct pool_options *options)
{
	struct pool_shared *shared = &pool->shared;
	int cores = options->cores > 0 ? options->cores : machine_cores(), usual = strcmp(options->device, "cpu") == 0 ? SPARES_CPU : SPARES_GPU;

	shared->device = copy_text(options->device);
	pool->driver = strcmp(options->device, "cpu") == 0 ? NULL : driver_of_machine();
	pool->python = copy_text(options->python);
	pool->root = copy_text(options->root == NULL ? "" : options->root);
	pool->required = options->required == NULL ? NULL : copy_text(options->required);
	shared->timeout_s = options->timeout_s;
	shared->memory = options->memory;
	shared->staged = options->staged;
	shared->judge = options->judge;
	pool->own = options->own;
	isolation_open(&pool->reader);
	pool->spares = options->spares < 1 ? usual : options->spares > SPARES_MOST ? SPARES_MOST : options->spares;
	shared->lane_count = options->lanes < 1 ? 1 : options->lanes;
	shared->threads = cores / shared->lane_count < 1 ? 1 : cores / shared->lane_count;
	shared->lanes = calloc((size_t)shared->lane_count, sizeof *shared->lanes);
	if (shared->lanes == NULL)
		die_no_memory();
	for (int i = 0; i < shared->lane_count; i++)
		lane_open(&shared->lanes[i]);
}

struct pool_guard pool_guard_open(void)
{
	struct pool_guard guard;

	prctl(PR_GET_CHILD_SUBREAPER, &guard.subreaper);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	guard.dumpable = prctl(PR_GET_DUMPABLE);
	prctl(PR_SET_DUMPABLE, 0);
	return guard;
}

void pool_guard_close(const struct pool_guard *guard)
{
	prctl(PR_SET_CHILD_SUBREAPER, guard->subreaper);
	prctl(PR_SET_DUMPABLE, guard->dumpable);
}

struct pool *pool_open(const struct pool_options *options, struct err *err)
{
	struct pool *pool = calloc(1, sizeof *pool);
	struct pool_shared *shared;

	if (pool == NULL)
		die_no_memory();
	shared = &pool->shared;
	lay_out(pool, options);
	if (open_loop(pool, err) != 0 ||
	    zygote_open(&shared->runners, pool->python, shared->device, pool->root,
			3 * shared->lane_count + pool->spares + AHEAD_MOST, /* three runners for each lane: one for the
								 * reference, one for a maker of inputs, one for a
								 * ground truth */
			shared->threads, shared->epoll, err) != 0) {
		free_pool(pool);
		return NULL;
	}
	shared->runners.required = pool->required;
	provider_open(&shared->provider, pool->python, shared->device, shared->threads, shared->epoll,
		      shared->timeout_s);
	if (options->libraries)
		provider_ready(&shared->provider);
	pool->guarded = options->guarded;
	if (!pool->guarded)
		pool->guard = pool_guard_open();
	return pool;
}

static void wake(struct pool *pool)
{
	const uint64_t one = 1;

	if (write(pool->wake, &one, sizeof one) < 0)
		return; /* the counter of the eventfd is at its maximum, so the eventfd is already readable */
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
	struct queued *work = queued_new(task);

	isolation_by_task(work, pool->own);
	(task->urgent ? queue_push_first : queue_push)(&pool->queue, work);
	pool->pending += task->job_count;
	wake(pool);
}

/* ---- deadlines ---- */

static void arm_timer(struct pool *pool)
{
	int64_t deadline = zygote_deadline(&pool->shared.runners),
		of_provider = provider_deadline(&pool->shared.provider);
	struct itimerspec spec = {0};

	for (int i = 0; i < pool->shared.lane_count; i++) {
		int64_t of_lane = lane_deadline(&pool->shared.lanes[i]);

		deadline = of_lane < deadline ? of_lane : deadline;
	}
	deadline = of_provider < deadline ? of_provider : deadline;
	deadline = pool->reader.deadline_ms < deadline ? pool->reader.deadline_ms : deadline;
	if (deadline != INT64_MAX) {
		spec.it_value.tv_sec = deadline / 1000;
		spec.it_value.tv_nsec = deadline % 1000 * 1000000 + 1; /* adds 1, because the value 0 would disarm the
								        * timer */
	}
	timerfd_settime(pool->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* ---- scheduling ---- */

static bool any_alone(const struct pool *pool)
{
	for (int i = 0; i < pool->shared.lane_count; i++)
		if (pool->shared.lanes[i].work != NULL && pool->shared.lanes[i].work->alone)
			return true;
	return false;
}

/* Returns an idle lane, if possible one with a running judge that has finished its cancelled work. Returns NULL if no
 * lane is idle. */
static struct lane *idle_lane(struct pool *pool)
{
	struct lane *any = NULL;

	for (int i = 0; i < pool->shared.lane_count; i++) {
		struct lane *lane = &pool->shared.lanes[i];

		if (lane->phase != LANE_IDLE)
			continue;
		if (lane->up && lane->stale == 0)
			return lane;
		if (any == NULL || lane->up)
			any = lane;
	}
	return any;
}

/* A busy lane gives cases to an idle lane only if the remaining work of the busy lane takes at least this many seconds.
 * The reason is that the idle lane needs a runner of its own for these cases. On a GPU the limit is higher, because a
 * new runner must create a CUDA context. */
#define SEPARATE_CPU_S 0.2
#define SEPARATE_GPU_S 1.0

/* Returns the task with the longest remaining time among the tasks from which an idle lane can take cases. Returns NULL
 * if there is no such task. */
static struct queued *separable_work(const struct pool *pool)
{
	double most = strcmp(pool->shared.device, "cpu") == 0 ? SEPARATE_CPU_S : SEPARATE_GPU_S;
	struct queued *longest = NULL;

	if (pool->queue.first != NULL || pool->shared.alone.first != NULL || any_alone(pool))
		return NULL;
	for (int i = 0; i < pool->shared.lane_count; i++) {
		struct queued *work = pool->shared.lanes[i].work;
		double seconds = work == NULL ? 0 : parallel_cases_seconds(work);

		if (seconds >= most) {
			most = seconds;
			longest = work;
		}
	}
	return longest;
}

/* Takes cases from the lane with the most remaining work. Returns NULL if there is no such lane, or if it is not known
 * yet whether another lane may run these cases. */
static struct queued *separate(const struct pool *pool)
{
	struct queued *longest = separable_work(pool), *part;

	if (longest == NULL || longest->separable != SEPARABLE_YES)
		return NULL;
	part = parallel_cases_take(longest);
	trace("pool", "%s: %d cases go to another lane", part->task.name, part->task.job_count);
	return part;
}

static void hand_out(struct pool *pool)
{
	struct lane *lane;

	while (!any_alone(pool) && (lane = idle_lane(pool)) != NULL) {
		struct queued *work = queue_pop(&pool->queue);

		if (work == NULL && !pool_shared_busy(&pool->shared, lane))
			work = queue_pop(&pool->shared.alone);
		if (work == NULL)
			work = separate(pool);
		if (work == NULL)
			return;
		lane_give(&pool->shared, lane, work);
	}
}

/* Returns whether spare runners may be started now. On the CPU, no spare runner is started while a case runs or waits,
 * because its start would take CPU time from the reference. On a GPU, new spare runners are started even during a run
 * if few are left. The reason is that the driver creates only a few CUDA contexts per second: without spare runners, a
 * user who saves many files in a short time would wait for a context after each file. */
static bool may_refill(const struct pool *pool, int waiting, int working)
{
	if (!pool->warm || any_alone(pool) ||
	    queue_length(&pool->shared.alone) > 0) /* spare runners would use memory that a case of this queue needs */
		return false;
	if (strcmp(pool->shared.device, "cpu") == 0)
		return waiting == 0 && working == 0;
	return working == 0 || zygote_spares(&pool->shared.runners) < SPARES_LOW;
}

/* Adds to `demand` the runner that a task needs. */
static void demand_for(struct runner_demand *demand, const struct queued *work)
{
	if (work->isolation == ISOLATION_OWN)
		demand->fresh++;
	else
		demand->any++;
}

/* Returns for how many queued tasks runners are started in addition to those for as many tasks as there are lanes. On a
 * GPU, the driver creates only a few CUDA contexts per second, so the many short tasks at the end of a run would wait
 * for contexts. A run begins with its longest tasks, and these contexts can be created while the long tasks run. Each
 * context uses GPU memory, so the number depends on the memory that is free. A warm pool starts none ahead, because
 * their memory would stay in use after the run; nor does a pool in which a case lacked memory. */
static int ahead(const struct pool *pool)
{
	int64_t by_memory = pool->shared.runners.gpu_free / memory_for_ahead;

	if (pool->warm || pool->shared.alone.first != NULL)
		return 0;
	return by_memory < AHEAD_MOST ? (int)by_memory : AHEAD_MOST;
}

/* Adds to `demand` the runners that the queued tasks need, but only for as many tasks as there are lanes, and for
 * `ahead` more. While a case runs alone, no queued task gets a lane, so queued tasks need no runners. (The function
 * has_room in lane.c would even kill runners that were started for them.) `released` is the number of working lanes
 * whose runners other tasks can use later. A new runner needs a long time to create its CUDA context. Therefore, on a
 * GPU, up to `released` - 1 of the queued tasks that may share a runner get no new runner: they wait for a runner that
 * another task has used. On the CPU, all queued tasks get new runners, because it is faster to fork a runner than to
 * remove a reference from one. */
static void demand_of_queue(const struct pool *pool, int released, struct runner_demand *demand)
{
	struct runner_demand queued = {0, 0};
	int most = pool->shared.lane_count + ahead(pool);

	if (any_alone(pool))
		return;
	for (const struct queued *work = pool->queue.first; work != NULL && queued.fresh + queued.any < most; work = work->next)
		demand_for(&queued, work);
	demand->fresh += queued.fresh + queue_length(&pool->shared.alone);
	if (strcmp(pool->shared.device, "cpu") != 0 && released > 1)
		queued.any = queued.any > released - 1 ? queued.any - (released - 1) : 0;
	demand->any += queued.any;
}

/* Returns how many spare runners are needed: one for each waiting lane and each queued task, but at most one for each
 * lane, and `ahead` more. If the pool is warm and spare runners may be started now, returns at least pool->spares. */
static struct runner_demand spares_wanted(const struct pool *pool)
{
	int working = 0, released = 0, most = pool->shared.lane_count + ahead(pool);
	struct runner_demand demand = {0, 0};

	for (int i = 0; i < pool->shared.lane_count; i++) {
		const struct lane *lane = &pool->shared.lanes[i];

		if (lane->phase == LANE_WAITING && lane->work->failure == NULL && lane->child == NULL)
			demand_for(&demand, lane->work);
		demand.fresh += lane_wants_maker(lane) + lane_truth_waits(lane);
		working += lane->phase == LANE_WORKING;
		released += lane->phase == LANE_WORKING && lane->work->isolation == ISOLATION_KEPT;
	}
	demand_of_queue(pool, released, &demand);
	int waiting = demand.fresh + demand.any;

	demand.fresh = demand.fresh < most ? demand.fresh : most;
	demand.any = demand.any < most - demand.fresh ? demand.any : most - demand.fresh;
	if (pool->spares > demand.fresh + demand.any && may_refill(pool, waiting, working))
		return (struct runner_demand){pool->spares, 0};
	return demand;
}

/* ---- which tasks may share a runner, and which may have several runners ---- */

static bool asks(const struct queued *work, int64_t number)
{
	return work != NULL && work->question == number && (number != 0 || work->isolation == ISOLATION_UNKNOWN);
}

/* Returns the task about which the isolation reader was asked in question `number`. If `number` is 0, returns the next
 * task about which the reader must still be asked whether it may share a runner. */
static struct queued *task_of_question(struct pool *pool, int64_t number)
{
	for (int i = 0; i < pool->shared.lane_count; i++)
		if (asks(pool->shared.lanes[i].work, number))
			return pool->shared.lanes[i].work;
	for (struct queued *work = pool->queue.first; work != NULL; work = work->next)
		if (asks(work, number))
			return work;
	return NULL;
}

/* Returns a task from which an idle lane could take cases if the isolation reader said that this is allowed. Returns
 * NULL if there is no such task, or if the reader has already been asked about the task. */
static struct queued *task_to_separate(struct pool *pool)
{
	struct queued *work = idle_lane(pool) == NULL ? NULL : separable_work(pool);

	return work != NULL && work->separable == SEPARABLE_UNKNOWN && work->question == 0 ? work : NULL;
}

/* Reads the reader's answers, and asks about the next task. Ignores an answer about a task that has been cancelled. */
static int read_texts(struct pool *pool, int64_t now_ms, struct err *err)
{
	struct isolation_answer answer;
	struct queued *work;

	while (isolation_next(&pool->reader, &pool->shared.runners, now_ms, &answer)) {
		work = answer.question != 0 ? task_of_question(pool, answer.question) : NULL;
		if (work != NULL)
			isolation_apply(work, &answer);
		free(answer.why);
	}
	work = task_of_question(pool, 0);
	if (work == NULL)
		work = task_to_separate(pool);
	return work == NULL ? 0 : isolation_ask(&pool->reader, &pool->shared.runners, work, err);
}

/* Ends the processes that are needed only if a run has several definitions. */
static void end_shared_runners(struct pool *pool)
{
	if (pool->pending > 0 || pool_shared_busy(&pool->shared, NULL))
		return;
	zygote_drop_used(&pool->shared.runners);
	isolation_close(&pool->reader, &pool->shared.runners);
}

static int schedule(struct pool *pool, struct err *err)
{
	hand_out(pool);
	for (int i = 0; i < pool->shared.lane_count; i++)
		if (lane_advance(&pool->shared, &pool->shared.lanes[i], err) != 0)
			return -1;
	if (pool->warm && lane_warm(&pool->shared, &pool->shared.lanes[0], err) != 0)
		return -1;
	return zygote_want(&pool->shared.runners, spares_wanted(pool), err);
}

/* ---- the interface ---- */

int pool_fd(const struct pool *pool)
{
	return pool->shared.epoll;
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) > 0)
		;
}

static void tick(struct pool *pool)
{
	for (int i = 0; i < pool->shared.lane_count; i++) {
		struct lane *lane = &pool->shared.lanes[i];

		lane_seconds_turn(&lane->clock, lane_part(lane), pool->shared.seconds);
	}
}

int pool_dispatch(struct pool *pool, struct err *err)
{
	int64_t now = clock_ms();

	tick(pool);
	drain(pool->wake);
	drain(pool->timer);
	if (zygote_dispatch(&pool->shared.runners, now, err) != 0)
		return -1;
	for (int i = 0; i < pool->shared.lane_count; i++)
		if (lane_dispatch(&pool->shared, &pool->shared.lanes[i], now, err) != 0)
			return -1;
	pool_shared_dispatch_provider(&pool->shared, now);
	end_shared_runners(pool);
	if (read_texts(pool, now, err) != 0 || schedule(pool, err) != 0)
		return -1;
	tick(pool);
	arm_timer(pool);
	return 0;
}

/* Returns whether this verdict may be stored. A verdict about a transient failure must not be stored, because the same
 * case can give another result later. */
static bool worth_keeping(const struct answer *answer, const struct verdict *verdict)
{
	for (int i = 0; i < verdict->tried_count; i++)
		if (verdict->tried[i].accident)
			return false;
	return !reason_is_transient(verdict->reason) && !answer->accident;
}

/* Returns what references can reach (workers/sandbox/containment.h), or NULL if no zygote has reported it yet. */
static const char *containment_of(const struct pool *pool, struct arena *arena)
{
	char text[CONTAINMENT_TEXT];
	uint32_t layers;

	if (!pool_layers(pool, &layers))
		return NULL;
	containment_write(layers, text);
	return arena_string(arena, text);
}

bool pool_next(struct pool *pool, struct arena *arena, struct pool_result *out)
{
	static const char *const isolations[] = {
	    [ISOLATION_UNKNOWN] = NULL, [ISOLATION_OWN] = "own", [ISOLATION_KEPT] = "kept"};
	struct answer *answer = answers_pop(&pool->shared.answers);
	const struct verdict *parsed;
	struct verdict *verdict;
	struct err err = {""};

	if (answer == NULL)
		return false;
	pool->pending--;
	verdict = arena_alloc(arena, sizeof *verdict);
	parsed = verdict_parse(answer->text, answer->length, arena, &err);
	if (parsed != NULL)
		*verdict = *parsed;
	else
		*verdict = (struct verdict){.status = STATUS_ERROR,
					    .reason = REASON_GROUND_TRUTH,
					    .device = pool->shared.device,
					    .message = arena_string(arena, err.text)};
	verdict->torch = pool->shared.runners.torch[0] == '\0' ? NULL : arena_string(arena, pool->shared.runners.torch);
	verdict->cuda = pool->shared.runners.cuda[0] == '\0' ? NULL : arena_string(arena, pool->shared.runners.cuda);
	verdict->python = pool->shared.runners.python_version[0] == '\0' ? NULL
			  : arena_string(arena, pool->shared.runners.python_version);
	verdict->driver = pool->driver == NULL ? NULL : arena_string(arena, pool->driver);
	verdict->containment = containment_of(pool, arena);
	verdict->isolation = isolations[answer->isolation];
	verdict->isolation_reason = answer->own_because == NULL ? NULL : arena_string(arena, answer->own_because);
	verdict->seconds = answer->seconds;
	verdict->time = answer->time;
	*out = (struct pool_result){answer->owner, answer->job, verdict,
	                            worth_keeping(answer, verdict) && answer->reached == NULL,
	                            answer->stateless == STATELESS_YES,
	                            answer->follows,
	                            answer->reached == NULL ? NULL : arena_string(arena, answer->reached),
	                            answer->printed == NULL ? NULL : arena_string(arena, answer->printed)};
	answer_free(answer);
	return true;
}

void *pool_next_owner(const struct pool *pool)
{
	return pool->shared.answers.first == NULL ? NULL : pool->shared.answers.first->owner;
}

int pool_pending(const struct pool *pool)
{
	return pool->pending;
}

int pool_running(const struct pool *pool, struct pool_running *out, int most)
{
	const struct pool_shared *shared = &pool->shared;
	int count = 0;

	for (int i = 0; i < shared->lane_count && count < most; i++) {
		const struct lane *lane = &shared->lanes[i];
		bool served = shared->served == lane && shared->provider.doing.length > 0;

		if (lane->work == NULL)
			continue;
		out[count++] = (struct pool_running){
		    .lane = i,
		    .owner = lane->work->task.owner,
		    .job = lane->work->task.jobs[lane->work->job],
		    .started = lane->phase == LANE_WORKING ? lane->started : 0,
		    .preparing = served ? shared->provider.doing.data : NULL,
		};
	}
	return count;
}

int pool_spares(const struct pool *pool)
{
	return zygote_spares(&pool->shared.runners);
}

struct pool_versions pool_versions(const struct pool *pool)
{
	const struct zygote *runners = &pool->shared.runners;

	return (struct pool_versions){runners->torch[0] == '\0' ? NULL : runners->torch,
				      runners->python_version[0] == '\0' ? NULL : runners->python_version};
}

bool pool_layers(const struct pool *pool, uint32_t *out)
{
	*out = pool->shared.runners.layers;
	return pool->shared.runners.torch[0] != '\0';
}

void pool_cancel(struct pool *pool, const void *owner)
{
	struct pool_shared *shared = &pool->shared;

	pool->pending -= queue_cancel(&pool->queue, owner) + queue_cancel(&shared->alone, owner);
	pool->pending -= answers_cancel(&shared->answers, owner);
	for (int i = 0; i < shared->lane_count; i++) {
		struct lane *lane = &shared->lanes[i];

		if (lane->work == NULL || lane->work->task.owner != owner)
			continue;
		pool->pending -= queued_left(lane->work);
		lane_cancel(shared, lane);
	}
	wake(pool);
}

void pool_close(struct pool *pool)
{
	int64_t deadline = clock_ms() + 1000;
	struct answer *answer;
	struct queued *work;

	if (pool == NULL)
		return;
	tick(pool);
	lane_seconds_trace(pool->shared.seconds, pool->shared.lane_count);
	for (int i = 0; i < pool->shared.lane_count; i++)
		process_kill(&pool->shared.lanes[i].judge);
	provider_close(&pool->shared.provider);
	zygote_close(&pool->shared.runners);
	for (int i = 0; i < pool->shared.lane_count; i++)
		lane_close(&pool->shared.lanes[i], deadline);
	while ((work = queue_pop(&pool->queue)) != NULL || (work = queue_pop(&pool->shared.alone)) != NULL)
		queued_free(work);
	while ((answer = answers_pop(&pool->shared.answers)) != NULL)
		answer_free(answer);
	if (!pool->guarded)
		pool_guard_close(&pool->guard);
	free_pool(pool);
}
