#include "engine/device_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "workers/pool/definition_order.h"

/* A task that was given to a device. */
struct given {
	struct given *next;
	struct queued *work;
	bool *done;  /* for each job, whether it has a result */
	int left;    /* the number of jobs without a result */
	bool second; /* this is the second device; the first one lacked memory for this task */
};

enum device_state { DEVICE_USED, DEVICE_FAILING /* the runner failed, but still has results to take */, DEVICE_OUT };

struct device {
	struct device_runner own;
	enum device_state state;
	struct err why; /* if `state` is DEVICE_FAILING, the reason why the runner failed */
	struct given *given;
	int tasks;
};

struct several {
	struct device *devices;
	int count;
	int turn; /* the index of the device that is asked first for the next result */
	struct queue queue;
	int pending;
	int epoll, wake;
	struct arena arena; /* owns the lists of jobs that went back to the queue */
	device_note *note;
	void (*closed)(void *context);
	void *context;
};

/* ---- tasks ---- */

static void give(struct device *device, struct queued *work, bool second)
{
	struct given *given = calloc(1, sizeof *given);

	if (given == NULL || (given->done = calloc((size_t)work->task.job_count, sizeof *given->done)) == NULL)
		die_no_memory();
	given->work = work;
	given->left = work->task.job_count;
	given->second = second;
	given->next = device->given;
	device->given = given;
	device->tasks++;
	device->own.runner.calls->submit(device->own.runner.self, &work->task);
}

/* Removes the task at `*at` from the device, and returns the task's queue entry. */
static struct queued *take_back(struct device *device, struct given **at)
{
	struct given *given = *at;
	struct queued *work = given->work;

	*at = given->next;
	free(given->done);
	free(given);
	device->tasks--;
	return work;
}

static bool more_wait_than_lanes(const struct several *s)
{
	int lanes = 0;

	for (int i = 0; i < s->count; i++)
		lanes += s->devices[i].state == DEVICE_USED ? s->devices[i].own.lanes : 0;
	return queue_length(&s->queue) > lanes;
}

/* Returns how many more tasks a device may get. A device gets some tasks in advance, because each runner needs time to
 * create a CUDA context. While many tasks wait, a device gets one task for each lane in advance. While few tasks wait,
 * it gets only one task in advance, so that the other tasks stay in the queue for the device that is free first. */
static int room_of(const struct device *device, bool many)
{
	return device->own.lanes + (many ? device->own.lanes : 1) - device->tasks;
}

/* Of the devices that may get more tasks, returns the device that may get the most (room_of). Returns NULL if there is
 * none. */
static struct device *free_device(const struct several *s)
{
	bool many = more_wait_than_lanes(s);
	struct device *best = NULL;

	for (int i = 0; i < s->count; i++) {
		struct device *device = &s->devices[i];
		int room = room_of(device, many);

		if (device->state == DEVICE_USED && room > 0 && (best == NULL || room > room_of(best, many)))
			best = device;
	}
	return best;
}

static void hand_out(struct several *s)
{
	struct device *device;

	while (s->queue.first != NULL && (device = free_device(s)) != NULL)
		give(device, queue_pop(&s->queue), false);
}

static void wake(const struct several *s)
{
	const uint64_t one = 1;

	if (write(s->wake, &one, sizeof one) < 0)
		return; /* the write fails only if the descriptor is readable already */
}

static void submit(void *self, const struct task *task)
{
	struct several *s = self;
	struct queued *work;

	if (task->job_count <= 0)
		return;
	work = queued_new(task);
	(task->urgent ? queue_push_first : queue_push)(&s->queue, work);
	s->pending += task->job_count;
	wake(s);
}

static void cancel(void *self, const void *owner)
{
	struct several *s = self;

	s->pending -= queue_cancel(&s->queue, owner);
	for (int i = 0; i < s->count; i++) {
		struct device *device = &s->devices[i];
		struct given **at = &device->given;

		if (device->state != DEVICE_OUT)
			device->own.runner.calls->cancel(device->own.runner.self, owner);
		while (*at != NULL)
			if ((*at)->work->task.owner == owner) {
				s->pending -= (*at)->left;
				queued_free(take_back(device, at));
			} else {
				at = &(*at)->next;
			}
	}
	wake(s);
}

/* ---- a device fails ---- */

/* Returns a queue entry with the jobs of a task that have no result yet, or NULL if every job has a result. */
static struct queued *unfinished(struct several *s, const struct given *given)
{
	struct task task = given->work->task;
	const struct job **jobs = arena_array(&s->arena, (size_t)task.job_count, sizeof *jobs);
	double *seconds = arena_array(&s->arena, (size_t)task.job_count, sizeof *seconds);
	int count = 0;

	for (int i = 0; i < task.job_count; i++)
		if (!given->done[i]) {
			seconds[count] = task.seconds == NULL ? 0 : task.seconds[i];
			jobs[count++] = task.jobs[i];
		}
	task.jobs = jobs;
	task.seconds = task.seconds == NULL ? NULL : seconds;
	task.job_count = count;
	return count == 0 ? NULL : queued_new(&task);
}

static bool any_used(const struct several *s)
{
	for (int i = 0; i < s->count; i++)
		if (s->devices[i].state == DEVICE_USED)
			return true;
	return false;
}

static void close_device(struct device *device)
{
	if (device->state != DEVICE_OUT)
		device->own.runner.calls->close(device->own.runner.self);
	device->state = DEVICE_OUT;
	while (device->given != NULL)
		queued_free(take_back(device, &device->given));
}

/* Puts the cases of a failed device back into the queue. If this was the last device, returns -1 with the reason. */
static int leave_out(struct several *s, struct device *device, struct err *err)
{
	char sentence[sizeof(struct err) + 128];

	if (!any_used(s))
		return err_set(err, "%s: %s", device->own.name, device->why.text);
	snprintf(sentence, sizeof sentence, "%s is no longer used, and its cases run on the other devices: %s",
	    device->own.name,
		 device->why.text);
	s->note(sentence);
	for (const struct given *given = device->given; given != NULL; given = given->next) {
		struct queued *work = unfinished(s, given);

		if (work != NULL)
			(work->task.urgent ? queue_push_first : queue_push)(&s->queue, work);
	}
	close_device(device);
	return 0;
}

static bool has_results(const struct device *device)
{
	return device->state != DEVICE_OUT && device->own.runner.calls->next_owner(device->own.runner.self) != NULL;
}

static int dispatch_device(struct several *s, struct device *device, struct err *err)
{
	if (device->state == DEVICE_USED && device->own.runner.calls->dispatch(device->own.runner.self, &device->why) != 0) {
		device->state = DEVICE_FAILING;
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, device->own.runner.calls->fd(device->own.runner.self), NULL);
		wake(s);
	}
	return device->state == DEVICE_FAILING && !has_results(device) ? leave_out(s, device, err) : 0;
}

static int dispatch(void *self, struct err *err)
{
	struct several *s = self;
	uint64_t count;

	while (read(s->wake, &count, sizeof count) > 0)
		;
	hand_out(s);
	for (int i = 0; i < s->count; i++)
		if (dispatch_device(s, &s->devices[i], err) != 0)
			return -1;
	hand_out(s);
	return 0;
}

/* ---- results ---- */

/* Returns the device whose results are taken next, or NULL if there is no result. */
static struct device *next_device(const struct several *s)
{
	for (int i = 0; i < s->count; i++) {
		struct device *device = &s->devices[(s->turn + i) % s->count];

		if (has_results(device))
			return device;
	}
	return NULL;
}

static void *next_owner(const void *self)
{
	const struct device *device = next_device(self);

	return device == NULL ? NULL : device->own.runner.calls->next_owner(device->own.runner.self);
}

/* Finds the task of the device that contains the job of `result`. Sets `index` to the index of the job in the task.
 * Returns NULL if there is no such task. */
static struct given **given_with(struct device *device, const struct pool_result *result, int *index)
{
	for (struct given **at = &device->given; *at != NULL; at = &(*at)->next)
		for (*index = 0; *index < (*at)->work->task.job_count; ++*index)
			if ((*at)->work->task.owner == result->owner && (*at)->work->task.jobs[*index] == result->job)
				return at;
	return NULL;
}

/* Moves a case away from the device `not_here`, which lacked memory for it. Of the other devices, the device with the
 * fewest tasks gets the case. Returns false if there is no other device. */
static bool try_elsewhere(struct several *s, const struct device *not_here, const struct given *given, int index)
{
	struct task one = given->work->task;
	struct device *best = NULL;

	for (int i = 0; i < s->count; i++) {
		struct device *device = &s->devices[i];

		if (device != not_here && device->state == DEVICE_USED && (best == NULL || device->tasks < best->tasks))
			best = device;
	}
	if (best == NULL)
		return false;
	one.jobs += index;
	one.seconds += one.seconds == NULL ? 0 : index;
	one.job_count = 1;
	give(best, queued_new(&one), true);
	return true;
}

/* Takes one result from a device. Returns false if the result must be ignored, because its case runs again on another
 * device. */
static bool take(struct several *s, struct device *device, struct arena *arena, struct pool_result *out)
{
	bool counts = true;
	int index;

	if (!device->own.runner.calls->next(device->own.runner.self, arena, out))
		return false;
	struct given **at = given_with(device, out, &index);

	if (at == NULL)
		return true;
	(*at)->done[index] = true;
	(*at)->left--;
	if (out->verdict->reason == REASON_MEMORY && !(*at)->second)
		counts = !try_elsewhere(s, device, *at, index);
	if ((*at)->left == 0)
		queued_free(take_back(device, at));
	return counts;
}

static bool next(void *self, struct arena *arena, struct pool_result *out)
{
	struct several *s = self;
	struct device *device;

	while ((device = next_device(s)) != NULL) {
		s->turn = (int)(device - s->devices + 1) % s->count;
		if (take(s, device, arena, out)) {
			s->pending--;
			wake(s);
			return true;
		}
	}
	return false;
}

/* ---- the rest of the interface ---- */

static int fd(const void *self)
{
	return ((const struct several *)self)->epoll;
}

static int pending(const void *self)
{
	return ((const struct several *)self)->pending;
}

/* Lanes are numbered across all devices: the lanes of each device continue the numbers of the device before it. */
static int running(const void *self, struct pool_running *out, int most)
{
	const struct several *s = self;
	int count = 0, lanes = 0;

	for (int i = 0; i < s->count; i++) {
		const struct device *device = &s->devices[i];
		int more = device->state == DEVICE_USED
			       ? device->own.runner.calls->running(device->own.runner.self, out + count, most - count)
			       : 0;

		for (int k = 0; k < more; k++)
			out[count + k].lane += lanes;
		count += more;
		lanes += device->own.lanes;
	}
	return count;
}

static struct pool_versions versions(const void *self)
{
	const struct several *s = self;
	struct pool_versions found = {NULL, NULL};

	for (int i = 0; i < s->count && found.torch == NULL; i++)
		if (s->devices[i].state != DEVICE_OUT)
			found = s->devices[i].own.runner.calls->versions(s->devices[i].own.runner.self);
	return found;
}

/* Reports a layer of the sandbox as present only if the runners of all devices have it. */
static bool layers(const void *self, uint32_t *out)
{
	const struct several *s = self;
	bool known = false;
	uint32_t one;

	*out = UINT32_MAX;
	for (int i = 0; i < s->count; i++)
		if (s->devices[i].state != DEVICE_OUT &&
		    s->devices[i].own.runner.calls->layers(s->devices[i].own.runner.self, &one)) {
			*out &= one;
			known = true;
		}
	return known;
}

static void close_all(void *self)
{
	struct several *s = self;
	struct queued *work;

	for (int i = 0; i < s->count; i++)
		close_device(&s->devices[i]);
	while ((work = queue_pop(&s->queue)) != NULL)
		queued_free(work);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->wake >= 0)
		close(s->wake);
	if (s->closed != NULL)
		s->closed(s->context);
	arena_free(&s->arena);
	free(s->devices);
	free(s);
}

static int watch(const struct several *s, int descriptor, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0
		   ? 0
		   : err_errno(err, "cannot wait for the processes of several devices");
}

static int open_loop(struct several *s, struct err *err)
{
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll < 0 || s->wake < 0)
		return err_errno(err, "cannot wait for the processes of several devices");
	for (int i = 0; i < s->count; i++)
		if (watch(s, s->devices[i].own.runner.calls->fd(s->devices[i].own.runner.self), err) != 0)
			return -1;
	return watch(s, s->wake, err);
}

struct runner device_queue(const struct device_runner *devices, int count, device_note *note,
			      void (*closed)(void *context), void *context, struct err *err)
{
	static const struct runner_calls calls = {submit,  cancel,  fd,	   dispatch, next_owner, next,
						  pending, running, versions, layers,   close_all};
	struct several *s = calloc(1, sizeof *s);

	if (s == NULL || (s->devices = calloc((size_t)count, sizeof *s->devices)) == NULL)
		die_no_memory();
	s->count = count;
	s->note = note;
	s->closed = closed;
	s->context = context;
	for (int i = 0; i < count; i++)
		s->devices[i].own = devices[i];
	if (open_loop(s, err) != 0) {
		close_all(s);
		return (struct runner){NULL, NULL};
	}
	return (struct runner){&calls, s};
}
