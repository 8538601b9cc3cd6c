/* device_queue - makes one runner (engine/case_runner.h) from the runners of several devices, and distributes tasks
 * among them.
 *
 * All tasks wait in one queue, the longest first. A device gets a new task whenever it has room for one, so a faster
 * device gets more tasks. If the runner of a device fails, the device is not used any more, and its cases without a
 * result go back to the queue. If a device lacks memory for a case, the case is tried once on another device, because
 * another process may be using the memory of the first device. */
#ifndef REFTEST_ENGINE_DEVICE_QUEUE_H
#define REFTEST_ENGINE_DEVICE_QUEUE_H

#include "engine/case_runner.h"

struct device_runner {
	const char *name; /* "cuda:0"; must stay valid */
	struct runner runner;
	int lanes; /* the number of tasks on which the device works at the same time */
};

/* Called with a sentence when a device is left out. */
typedef void device_note(const char *sentence);

/* The returned runner owns the runners of the devices. When the returned runner is closed, it closes the runners of the
 * devices, and then calls closed(context). If the process has no free descriptor, device_queue closes the runners of
 * the devices, sets `err`, and returns a runner whose `calls` is NULL. */
struct runner device_queue(const struct device_runner *devices, int count, device_note *note,
			      void (*closed)(void *context), void *context, struct err *err);

#endif
