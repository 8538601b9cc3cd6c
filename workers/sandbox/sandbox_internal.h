/* sandbox_internal - functions shared by the files behind workers/sandbox/sandbox.h. */
#ifndef REFTEST_WORKERS_SANDBOX_SANDBOX_INTERNAL_H
#define REFTEST_WORKERS_SANDBOX_SANDBOX_INTERNAL_H

#include "workers/sandbox/sandbox.h"

#include <stddef.h>

enum {
	SANDBOX_TMP_MIB = 1024,     /* the size of a runner's /tmp, and of the largest file that a reference may write */
	SANDBOX_PATH_MAX = 4096,
	SANDBOX_PROCESSES = 1024,   /* the processes and threads that a runner may have, in addition to
				     * SANDBOX_PER_CORE for each core */
	SANDBOX_PER_CORE = 16,      /* needed because libraries start a thread for each core */
	SANDBOX_DESCRIPTORS = 4096
};

/* A list of absolute paths, owned. */
struct sandbox_paths {
	char **items;
	int count;
};

void sandbox_paths_add(struct sandbox_paths *list, const char *path);
/* Returns whether `path` is `folder` or below it. */
bool sandbox_is_below(const char *path, const char *folder);

/* ---- sandbox_view.c ---- */

/* Appends the system's files and directories that a reference may read. */
void view_system_paths(struct sandbox_paths *list, bool gpu);
/* Appends the devices that a reference may use. */
void view_devices(struct sandbox_paths *list, bool gpu);
/* Replaces all files that this process sees by a read-only selection. `folder` becomes an empty directory, and so does
 * `hidden`, a path without links that is below a readable path (NULL: none). This process needs a separate mount
 * namespace. On error, returns -1 with errno, and this process must exit. */
int view_build(const struct sandbox_paths *readable, const struct sandbox_paths *devices, const char *folder,
	       const char *hidden);
/* Mounts a /proc of this process's PID namespace. */
int view_mount_proc(void);
/* Mounts the /proc of a runner. This /proc gives no write access to the machine's settings, and the number of processes
 * in the namespace is limited. On the CPU, nothing in it is writable. On a GPU, the files of the processes are
 * writable, because CUDA's driver fails if it cannot name its threads there. Returns the layers that hold. */
uint32_t view_mount_proc_of_runner(int processes, bool gpu);
/* Mounts an empty filesystem of limited size. */
int view_mount_tmp(const char *folder);

/* ---- sandbox_landlock.c ---- */

/* Applies a Landlock ruleset to this process. `whole`: the files that this process sees are already restricted to the
 * selection. Otherwise the ruleset allows `readable` without `hidden` (a path without links; NULL: none), `devices`,
 * and this process's own files below /proc, which are writable on a GPU only. `folder` is writable. Returns the layers
 * that hold. */
uint32_t landlock_apply(bool whole, bool gpu, const struct sandbox_paths *readable, const struct sandbox_paths *devices,
			const char *hidden, const char *folder);

/* ---- sandbox_seccomp.c ---- */

/* Refuses system calls that neither the zygote, nor its later children, nor references need. A process without
 * privileges must call limits_drop_capabilities_of_programs first. Returns true if the filter holds. */
bool seccomp_apply_to_zygote(void);
/* In a runner: also refuses the system calls that the zygote needs but references do not. Returns the layers that hold,
 * provided that the zygote's filter holds. */
uint32_t seccomp_apply(bool gpu);

/* ---- sandbox_limits.c ---- */

/* Sets the limits of this process and of the processes that it starts. `memory`: limits_memory will limit the memory
 * later. `own_users`: this process is in a separate user namespace. If it is not, the number of processes is not
 * limited, because the kernel would count all processes of the user. Returns the layers that hold. If `memory` is true,
 * the result includes the memory limit, although limits_memory sets this limit later, before a reference is loaded. */
uint32_t limits_apply(bool memory, bool own_users, int processes);
/* Makes the kernel end this process, and the processes that it starts, before all others if memory runs out. */
bool limits_die_first(void);
/* Limits the memory of each process to the current memory of this process plus `bytes`; the addition is at most nine
 * tenths of the available memory. Returns the bytes that may be added, which are fewer if a lower limit is set already.
 * Returns -1 on error. */
int64_t limits_memory(int64_t bytes, bool for_now);
/* Implements sandbox_limit_processor_time. */
int limits_processor_time(int64_t seconds, bool for_now);
/* Prevents the programs that this process and its children start from gaining capabilities. The zygote calls it once,
 * because a call for each capability in each runner takes longer than all other limits. */
int limits_drop_capabilities_of_programs(void);
/* Drops all capabilities of this process. After limits_drop_capabilities_of_programs, it can never regain them. */
int limits_drop_capabilities(void);

#endif
