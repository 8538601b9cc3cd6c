/* rerun_reason - decides for a case whether a stored verdict counts or whether the case must run. Also gives the
 * reason. These functions read no files, use no clock and start no process.
 *
 * A verdict "counts" if the run may report it and need not run the case. If you add a reason for running a case again,
 * add a value to enum lack, its name to cli/cache.c, and its counter to cache/hit_counts.h. */
#ifndef REFTEST_ENGINE_RERUN_REASON_H
#define REFTEST_ENGINE_RERUN_REASON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "dataset/verdict.h"

/* The device and the versions with which a run would verify a case now, and the options that restrict which verdicts
 * count. */
struct policy {
	const char *device;       /* "cpu" or "cuda:0": where a case would run */
	const char *device_class; /* the class whose verdicts count: "cpu", "sm_90" */
	/* --device-class names a class that this machine does not have, so no case can run here. */
	bool foreign_class;
	/* true for --device auto on a machine without a GPU: verdicts from any GPU also count, and are preferred. */
	bool any_gpu;
	const char *torch, *cuda, *python; /* the installed versions; if `torch` is NULL, verdicts from any version of
					    * torch, CUDA and Python count */
	const char *required;     /* --require-containment; NULL: verdicts count with any containment */
	bool force;               /* no stored verdict counts */
	bool cached_only;         /* nothing may run */
};

enum rerun_answer { RERUN_CACHED, RERUN_RUN, RERUN_NOT_CACHED };

/* The first condition that a stored verdict does not meet. The conditions are checked in the order of this list. The
 * numbers are the indexes of the counters on disk (cache/hit_counts.h). */
enum lack {
	LACK_NOTHING_STORED,
	LACK_DEVICE,
	LACK_TRUTH,
	LACK_VERSION,
	LACK_TORCH,
	LACK_NONE, /* the verdict meets every condition (but with --force, no stored verdict counts) */
	/* These values have the largest numbers, because counters on disk already use the smaller numbers. Their
	 * conditions are therefore checked last. */
	LACK_CONTAINMENT,
	LACK_ORDER,
	LACK_COUNT
};

struct decision {
	enum rerun_answer answer;
	/* Of the stored verdict that meets the most conditions: the first condition that it does not meet. */
	enum lack lack;
	int candidate;   /* index of the stored verdict that counts; -1: none counts */
	const char *why; /* the reason for the decision: "no verdict for this version of the case is stored", "stored verdict by
			  * builtin on sm_90" */
};

/* Returns whether the reference gave this verdict after the same cases as in a run of all cases (`after`). A reference
 * that keeps something from one case to the next may pass a case alone, and fail it after other cases. */
bool verdict_is_in_order(const struct verdict *v, const char *after);

/* Decides one case. `after` is verdict.after of the case in a run of all cases. `stored` contains every verdict that is
 * stored for the case's subject, the newest last. `truths` contains the ground truths that would be used now, in order;
 * it may be empty. A verdict counts only if it comes from the same ground truths, in the same versions, that a run would
 * use now. If the verdict is from another device class, this is required only of builtin and of the dataset's own ground
 * truths, because the other machine has its own libraries. A verdict by a library then counts only for
 * --ground-truth auto, for all, or if the library is named. */
struct decision rerun_case(const struct policy *policy, const struct truths *truths, const char *after,
			   const struct verdict *const *stored, int count, struct arena *arena);

#endif
