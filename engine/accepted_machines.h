/* accepted_machines - chooses the device and the Python interpreter with which cases run on this machine. Also decides
 * which stored verdicts a run on this machine accepts.
 *
 * The versions of an interpreter (Python, torch, CUDA) and the class of a GPU are queried once and stored in the cache.
 * The key of a cache entry changes whenever the installed version may have changed, so that the version is queried
 * again. If all versions are in the cache, a run starts no process to query them.
 *
 * The witness of a verdict is the digest of everything that verified the case: the ground truth, the device class,
 * torch, CUDA and Python. A new field of the witness (witness_fields in cache/fingerprint.c) must also be added to
 * context_digest in engine/run_open.c. */
#ifndef REFTEST_ENGINE_ACCEPTED_MACHINES_H
#define REFTEST_ENGINE_ACCEPTED_MACHINES_H

#include "base/arena.h"
#include "base/err.h"
#include "engine/ground_truths.h"
#include "engine/program.h"
#include "engine/rerun_reason.h"

struct machine_policy {
	struct policy policy;
	const char *const *devices; /* the devices on which cases run; the first is policy.device */
	int device_count;
	const char *python;      /* absolute path of the Python interpreter; NULL: no interpreter was found */
	const char *torch_key;   /* the cache key of the interpreter's torch version; NULL: no interpreter was found */
	struct truth_choice truths;
	bool no_device;          /* --device names a device that cannot be used; `cannot_run` says why */
	/* The reason why no case can run on this machine (no torch, no such device); NULL if cases can run. */
	const char *cannot_run;
	enum reason cannot_reason;
	const char *accepted; /* the device class from --device-class if it differs from this machine's class; else
			       * NULL */
};

/* Finds the interpreter, the device and the ground truths of this machine. `device` is a text for devices_read
 * (engine/devices.h). Prints a sentence for each GPU that the run does not use. `ground_truth` is the value of
 * --ground-truth. If it is NULL, the dataset's setting is used, or "auto" if the dataset has none. Returns -1 and sets
 * `err` if the device or the ground truth is unknown or cannot be queried. */
int machine_policy(struct program *program, const char *device, const char *python, const char *ground_truth,
                   struct arena *arena, struct machine_policy *out, struct err *err);

/* Deletes the stored torch version from the cache, or from memory if there is no cache. Call this if a reference ran
 * with a torch version that differs from the stored one. */
void machine_forget_torch(struct program *program, const struct machine_policy *policy);

/* Applies the option --device-class: the run accepts only stored verdicts of this device class ("cpu", "sm_90"), from
 * any machine and any torch version. If this machine has another class, no case can run, and `cannot_run` gets the
 * reason. Returns -1 and sets `err` for an unknown class. */
int machine_accept(struct machine_policy *policy, const char *device_class, struct arena *arena, struct err *err);

#endif
