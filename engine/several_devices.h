/* several_devices - one runner (engine/case_runner.h) that spreads its tasks over the runners of several devices.
 *
 * All tasks wait in one queue, the longest first. A device gets a task when it has fewer tasks than its share, so a
 * device that is faster gets more of them. If the runner of a device fails, the device is left out: its cases without a
 * result go back to the queue. A case for which a device lacks memory is tried once on another device, because another
 * process may use that memory. */
#ifndef REFTEST_ENGINE_SEVERAL_DEVICES_H
#define REFTEST_ENGINE_SEVERAL_DEVICES_H

#include "engine/case_runner.h"

struct device_runner {
	const char *name; /* "cuda:0"; must stay valid */
	struct runner runner;
	int lanes; /* how many tasks it works on at a time */
};

/* Called with a sentence when a device is left out. */
typedef void device_note(const char *sentence);

/* The result owns the runners of the devices, and calls `closed` with `context` after it has closed them. Returns a
 * runner without calls, and a message, if the process has no descriptor left; the runners are then closed. */
struct runner several_devices(const struct device_runner *devices, int count, device_note *note,
			      void (*closed)(void *context), void *context, struct err *err);

#endif
