/* sandbox_internal - functions shared by the files behind workers/sandbox/sandbox.h. */
#ifndef REFTEST_WORKERS_SANDBOX_SANDBOX_INTERNAL_H
#define REFTEST_WORKERS_SANDBOX_SANDBOX_INTERNAL_H

#include "workers/sandbox/sandbox.h"

#include <stddef.h>

enum {
	SANDBOX_TMP_MIB = 1024,     /* the size of a runner's /tmp, and of the largest file that a reference may write */
	SANDBOX_PATH_MAX = 4096,
	SANDBOX_PROCESSES = 1024,   /* the number of processes and threads of a runner, besides SANDBOX_PER_CORE */
	SANDBOX_PER_CORE = 16,      /* more of them for each core, because libraries start a thread for each core */
	SANDBOX_DESCRIPTORS = 4096
};

/* A list of absolute paths, owned. */
struct sandbox_paths {
	char **items;
	int count;
};

void sandbox_paths_add(struct sandbox_paths *list, const char *path);
void sandbox_paths_free(struct sandbox_paths *list);
/* Is `path` below `folder`, or the folder itself? */
bool sandbox_is_below(const char *path, const char *folder);

/* ---- sandbox_view.c ---- */

/* Appends the system's files and directories that a reference may read. */
void view_system_paths(struct sandbox_paths *list, bool gpu);
/* Appends the devices that a reference may use. */
void view_devices(struct sandbox_paths *list, bool gpu);
/* Replaces all files that this process sees by a read-only selection. `folder` becomes an empty directory, and so does
 * `hidden`, a path without links below a readable one; NULL: none. Needs a mount namespace of its own. On error,
 * returns -1 with errno, and this process must exit. */
int view_build(const struct sandbox_paths *readable, const struct sandbox_paths *devices, const char *folder,
	       const char *hidden);
/* Mounts a /proc of this process's PID namespace. */
int view_mount_proc(void);
/* The same for a runner: without write access to the machine's settings, and with a limit for the number of processes
 * in the namespace. On the CPU, nothing in it is writable; CUDA's driver fails if it cannot name its threads there.
 * Returns the layers that hold. */
uint32_t view_mount_proc_of_runner(int processes, bool gpu);
/* Mounts an empty filesystem of limited size. */
int view_mount_tmp(const char *folder);

/* ---- sandbox_landlock.c ---- */

/* `whole`: the files that this process sees are the selection already. Otherwise the ruleset allows `readable` without
 * `hidden` (a path without links; NULL: none), `devices`, and this process's own files below /proc, which are writable
 * on a GPU only. `folder` is writable. Returns the layers that hold. */
uint32_t landlock_apply(bool whole, bool gpu, const struct sandbox_paths *readable, const struct sandbox_paths *devices,
			const char *hidden, const char *folder);

/* ---- sandbox_seccomp.c ---- */

/* Refuses, in the zygote and all its later children, system calls that neither they nor references need. Without
 * privileges it needs limits_drop_capabilities_of_programs. Returns true if the filter holds. */
bool seccomp_apply_to_zygote(void);
/* In a runner: refuses the other system calls that no reference needs. Returns the layers that hold if the zygote's
 * filter holds, too. */
uint32_t seccomp_apply(bool gpu);

/* ---- sandbox_limits.c ---- */

/* `memory`: the memory is going to be limited by limits_memory. Sets the limits of this process and of those that it
 * starts. Without a user namespace of its own the kernel would count all processes of the user, so their number is not
 * limited. Returns the layers that hold; that of memory holds only after limits_memory, before which no reference is
 * loaded. */
uint32_t limits_apply(bool memory, bool own_users, int processes);
/* If memory runs out, the kernel ends this process and those that it starts before all others. */
bool limits_die_first(void);
/* Limits the memory of each process to what this one has now and `bytes`, at most nine tenths of what is available.
 * Returns the bytes that remain: fewer if a lower limit holds already. Returns -1 if it cannot. */
int64_t limits_memory(int64_t bytes, bool for_now);
/* sandbox_limit_processor_time. */
int limits_processor_time(int64_t seconds, bool for_now);
/* Keeps the programs that this process and its children start from gaining capabilities. The zygote calls it once,
 * because a call for each capability in each runner takes longer than all other limits. */
int limits_drop_capabilities_of_programs(void);
/* Gives up all capabilities of this process. With the function above, for good. */
int limits_drop_capabilities(void);

#endif
