/* sandbox_internal - functions that are shared by the files that implement workers/sandbox/sandbox.h. */
#ifndef REFTEST_WORKERS_SANDBOX_SANDBOX_INTERNAL_H
#define REFTEST_WORKERS_SANDBOX_SANDBOX_INTERNAL_H

#include "workers/sandbox/sandbox.h"

#include <stddef.h>

enum {
	SANDBOX_TMP_MIB = 1024,     /* the size in MiB of a runner's /tmp, and of the largest file that a reference may
				     * write */
	SANDBOX_PATH_MAX = 4096,
	SANDBOX_PROCESSES = 1024,   /* how many processes and threads a runner may have, in addition to SANDBOX_PER_CORE
				     * for each core */
	SANDBOX_PER_CORE = 16,      /* more cores allow more processes, because libraries start a thread for each
				     * core */
	SANDBOX_DESCRIPTORS = 4096
};

/* A list of absolute paths. The list owns the memory of the paths. */
struct sandbox_paths {
	char **items;
	int count;
};

void sandbox_paths_add(struct sandbox_paths *list, const char *path);
/* Returns whether `path` is `folder` or below it. */
bool sandbox_is_below(const char *path, const char *folder);

/* ---- sandbox_view.c ---- */

/* Appends the files and directories of the system that a reference may read. */
void view_system_paths(struct sandbox_paths *list, bool gpu);
/* Appends the devices that a reference may use. */
void view_devices(struct sandbox_paths *list, bool gpu);
/* Replaces all files that this process sees by a read-only selection. `folder` becomes an empty directory. If `hidden`
 * is not NULL, it also becomes an empty directory. `hidden` must be below a readable path, and must contain no symbolic
 * links. This process needs a mount namespace of its own. On error, returns -1 with errno, and this process must
 * exit. */
int view_build(const struct sandbox_paths *readable, const struct sandbox_paths *devices, const char *folder,
	       const char *hidden);
/* Mounts a /proc that belongs to this process's PID namespace. */
int view_mount_proc(void);
/* Mounts the /proc of a runner, and limits the number of processes in its namespace. The machine's settings are not
 * writable in this /proc. On the CPU, nothing in it is writable. On a GPU, the files of the processes are writable,
 * because CUDA's driver fails if it cannot name its threads there. Returns the active layers. */
uint32_t view_mount_proc_of_runner(int processes, bool gpu);
/* Mounts an empty filesystem of limited size at `folder`. */
int view_mount_tmp(const char *folder);

/* ---- sandbox_landlock.c ---- */

/* Applies a Landlock ruleset to this process. `whole` means that this process already sees only the read-only selection
 * of files (view_build). If `whole` is false, the ruleset allows access only to `readable`, to `devices`, and to this
 * process's own files below /proc, which are writable only on a GPU. It allows no access to `hidden`, a path without
 * symbolic links (NULL: none). `folder` is writable. Returns the active layers. */
uint32_t landlock_apply(bool whole, bool gpu, const struct sandbox_paths *readable, const struct sandbox_paths *devices,
			const char *hidden, const char *folder);

/* ---- sandbox_seccomp.c ---- */

/* Refuses system calls that the zygote, its later children and references do not need. A process without privileges
 * must call limits_drop_capabilities_of_programs first. Returns true if the filter is installed. */
bool seccomp_apply_to_zygote(void);
/* In a runner: also refuses the system calls that only the zygote needs. Returns the active layers; the result is right
 * only if the zygote's filter is installed. */
uint32_t seccomp_apply(bool gpu);

/* ---- sandbox_limits.c ---- */

/* Sets the limits of this process and of the processes that it starts. Returns the active layers. If `memory` is true,
 * the result includes SANDBOX_MEMORY_LIMIT, although this function does not limit the memory: limits_memory must be
 * called before a reference is loaded. `own_users` means that this process is in a user namespace of its own. If
 * `own_users` is false, the number of processes is not limited, because the kernel would count all processes of the
 * user. */
uint32_t limits_apply(bool memory, bool own_users, int processes);
/* Makes the kernel end this process, and the processes that it starts, before all others if memory runs out. */
bool limits_die_first(void);
/* Limits the memory of this process, and of each process that it starts, to the current memory of this process plus
 * `bytes`. If nine tenths of the memory that is available on this machine are less than `bytes`, they replace `bytes`.
 * Returns by how many bytes the memory may grow; this number is smaller if a lower limit is already set. Returns -1 on
 * error. */
int64_t limits_memory(int64_t bytes, bool for_now);
/* Implements sandbox_limit_processor_time. */
int limits_processor_time(int64_t seconds, bool for_now);
/* After this call, programs that this process and its children start cannot gain capabilities. The zygote calls this
 * function once for all runners, because it makes a system call for each capability. In each runner, these calls would
 * take longer than setting all other limits. */
int limits_drop_capabilities_of_programs(void);
/* Drops all capabilities of this process. The process can never regain them if limits_drop_capabilities_of_programs was
 * called before. */
int limits_drop_capabilities(void);

#endif
