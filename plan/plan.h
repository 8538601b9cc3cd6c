/* plan - which cases have a verdict that counts, which must run, and why. Pure: no disk, no clock, no fork. */
#ifndef REFTEST_PLAN_PLAN_H
#define REFTEST_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "dataset/verdict.h"

/* What the run would use, and what it accepts. */
struct policy {
	const char *device;       /* "cpu" or "cuda:0": where a case would run */
	const char *device_class; /* "cpu", "sm_90"; the class whose verdicts count */
	bool elsewhere;           /* --device-class: the class is other machines', and nothing can run here */
	bool any_gpu;             /* --device auto without a GPU: a verdict of any GPU counts too, and counts first */
	const char *torch, *cuda; /* versions that would run the reference; torch NULL: none here, any counts */
	bool force;               /* no stored verdict counts */
	bool cached_only;         /* nothing may run */
};

enum plan_answer { PLAN_CACHED, PLAN_RUN, PLAN_NOT_CACHED };

/* What keeps a stored verdict from counting; the further down the list, the nearer it came. */
enum lack {
	LACK_NOTHING_STORED,
	LACK_DEVICE,
	LACK_TRUTH,
	LACK_VERSION,
	LACK_TORCH,
	LACK_NONE, /* it counts, or would if --force did not have all of them run */
	LACK_COUNT
};

struct decision {
	enum plan_answer answer;
	enum lack lack;  /* of the stored verdict that came nearest */
	int candidate;   /* PLAN_CACHED: index of the stored verdict that counts; -1 otherwise */
	const char *why; /* a sentence for every decision: "no verdict on this subject", "verified by builtin … on sm_90" */
};

/* `stored`: every verdict kept on the case's subject, newest last. `truths`: the ground truths that would
 * be used now, in order; none of them: there is none. A verdict counts if each that it went through is, in its version, the
 * one that would be gone through now. */
struct decision plan_case(const struct policy *policy, const struct truths *truths,
                          const struct verdict *const *stored, int count, struct arena *arena);

#endif
