/* control_groups - a control group (cgroup v2) for each runner. The group limits the number of the runner's processes,
 * and the memory that all of these processes use together.
 *
 * Control groups are used only if the system has delegated the group of this process. A group is delegated if this
 * process may change it and is the only process in it, and if the group has the controllers "memory" and "pids". In
 * cgroup v2, a group that has controllers for its children may not have processes of its own. Therefore
 * control_groups_open moves this process to a child group:
 *
 *   GROUP                  the group in which this process was started
 *   GROUP/reftest-PID      made by this process; leftovers of ended processes are removed
 *   GROUP/reftest-PID/main this process, its judges, the zygote and the providers
 *   GROUP/reftest-PID/N    a runner and all processes that its reference starts
 *
 * control_groups_close moves this process back and removes its groups. No other process is ever moved, and nothing
 * outside GROUP is changed. */
#ifndef REFTEST_WORKERS_POOL_CONTROL_GROUPS_H
#define REFTEST_WORKERS_POOL_CONTROL_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTROL_GROUPS_DYING = 64 };

struct control_groups {
	int parent, own;  /* descriptors of the folders GROUP and GROUP/reftest-PID; -1: control groups are not used */
	char name[32];    /* the name "reftest-PID" */
	int64_t last;     /* the number of the group of the newest runner */
	int64_t dying[CONTROL_GROUPS_DYING]; /* the numbers of groups that could not be removed yet; 0: an unused
					      * entry */
};

/* Finds the folder of this process's group from the texts of /proc/self/cgroup and /proc/self/mountinfo, and writes it
 * to `out`. Returns false if this process has no group, or if the folder is not visible. */
bool control_groups_folder(const char *cgroup, const char *mountinfo, char *out, size_t size);

/* Moves this process to the group GROUP/reftest-PID/main. If GROUP is not delegated, changes nothing, and control
 * groups are not used. This process must have no children. */
void control_groups_open(struct control_groups *groups);
void control_groups_close(struct control_groups *groups);
bool control_groups_used(const struct control_groups *groups);
/* Returns whether the system has delegated the group of this process. Changes nothing. */
bool control_groups_delegated(void);

/* Makes a group for a runner, and limits the number of processes in the group. Returns the number of the group, or 0 if
 * it cannot be made. A process moves itself to the group by writing "0" to *fd. */
int64_t control_group_add(struct control_groups *groups, int *fd);
/* Limits the memory of a group to its current memory plus `bytes` (or plus sandbox_available_memory, if this is less).
 * Returns -1 if that fails, or if no process is in the group, because the limit would then have no effect. */
int control_group_limit_memory(const struct control_groups *groups, int64_t group, int64_t bytes);
/* Returns whether the kernel ended a process of the group because the group reached its memory limit. */
bool control_group_ran_out_of_memory(const struct control_groups *groups, int64_t group);
/* Kills the processes of a group and removes it, at once or later. */
void control_group_remove(struct control_groups *groups, int64_t group);

#endif
