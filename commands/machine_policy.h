/* machine_policy - which verdicts count on this machine, and where what has none would run.
 *
 * The versions behind an interpreter and the class of a GPU are asked for once and remembered in the cache under keys
 * that change when they may have changed, so that a run in which nothing is stale starts no other program. */
#ifndef REFTEST_COMMANDS_MACHINE_POLICY_H
#define REFTEST_COMMANDS_MACHINE_POLICY_H

#include "base/arena.h"
#include "base/err.h"
#include "commands/truths.h"
#include "plan/plan.h"
#include "reftest.h"

struct machine_policy {
	struct policy policy;
	const char *python;      /* absolute; NULL: none */
	const char *torch_key;   /* of the fact that says which torch it has; NULL: none was looked for */
	struct truth_choice truths;
	const char *cannot_run;  /* NULL, or the sentence why nothing can run here (no torch, no such device) */
	enum reason cannot_reason;
	const char *accepted; /* the class of --device-class that this machine has not; NULL: its own counts */
};

/* `device`: "auto", "cpu", "cuda", "cuda:N"; `ground_truth` as truths_choose has it. -1: not a device's or ground truth's
 * name, or nothing can be said of it. */
int machine_policy(struct reftest *reftest, const char *device, const char *python, const char *ground_truth,
                   struct arena *arena, struct machine_policy *out, struct err *err);

/* What ran had another torch than was said: it is asked again the next time. */
void machine_forget_torch(const struct reftest *reftest, const struct machine_policy *policy);

/* --device-class: only verdicts of this class ("cpu", "sm_90") count, whichever machine made them, with whatever torch
 * that had. On a machine of another class nothing can run any more, and the reason says so. -1: no class's name. */
int machine_accept(struct machine_policy *policy, const char *device_class, struct arena *arena, struct err *err);

#endif
