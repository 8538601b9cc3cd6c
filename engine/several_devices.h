/* several_devices - makes one runner (engine/case_runner.h) that distributes its tasks among the runners of several
 * devices.
 *
 * All tasks wait in one queue, the longest first. A device gets a task whenever it has fewer tasks than it may have at
 * a time, so a faster device gets more tasks. If the runner of a device fails, the device is no longer used, and its
 * cases without a result go back to the queue. A case for which a device lacks memory is tried once on another device,
 * because another process may use that memory. */
#ifndef REFTEST_ENGINE_SEVERAL_DEVICES_H
#define REFTEST_ENGINE_SEVERAL_DEVICES_H

#include "engine/case_runner.h"

struct device_runner {
	const char *name; /* "cuda:0"; must stay valid */
	struct runner runner;
	int lanes; /* the number of tasks on which the device works at a time */
};

/* Called with a sentence when a device is left out. */
typedef void device_note(const char *sentence);

/* The result owns the runners of the devices, and calls `closed` with `context` after it has closed them. If the
 * process has no descriptor left, closes the runners, sets `err` and returns a runner whose `calls` is NULL. */
struct runner several_devices(const struct device_runner *devices, int count, device_note *note,
			      void (*closed)(void *context), void *context, struct err *err);

#endif
