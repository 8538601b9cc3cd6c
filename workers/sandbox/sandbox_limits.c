/* sandbox_limits - sets the resource limits and drops the capabilities of a runner. */
#include "workers/sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIDS_LEAST = 512 }; /* the kernel does not accept a value of pid_max below 301 */

int sandbox_process_limit(void)
{
	long cores = sysconf(_SC_NPROCESSORS_CONF);
	long most = SANDBOX_PROCESSES + (cores > 0 ? cores : 1) * SANDBOX_PER_CORE;

	return most < PIDS_LEAST ? PIDS_LEAST : (int)most;
}

/* Sets only the soft limit of this process, so that the limit can be changed again later. */
static bool set_for_now(__rlimit_resource_t resource, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		return false;
	limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most ? most : limit.rlim_max;
	return setrlimit(resource, &limit) == 0;
}

/* Lowers a limit. If the limit is already lower, does nothing. */
static bool lower(__rlimit_resource_t resource, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		return false;
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
		limit.rlim_max = most;
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) == 0;
}

/* Returns the number of KiB that a file of /proc has after `key`, or 0. */
static uint64_t field_kib(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	char line[256];
	uint64_t kib = 0;

	while (file != NULL && fgets(line, sizeof line, file) != NULL)
		if (strncmp(line, key, strlen(key)) == 0) {
			kib = strtoull(line + strlen(key), NULL, 10);
			break;
		}
	if (file != NULL)
		fclose(file);
	return kib;
}

int64_t sandbox_available_memory(void)
{
	return (int64_t)(field_kib("/proc/meminfo", "MemAvailable:") / 10 * 9 << 10);
}

bool limits_die_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, "1000", 4) == 4;

	if (fd >= 0)
		close(fd);
	return written;
}

int64_t limits_memory(int64_t bytes, bool for_now)
{
	int64_t available = sandbox_available_memory();
	uint64_t used = field_kib("/proc/self/status", "VmData:") << 10;
	struct rlimit limit;

	bytes = bytes < available ? bytes : available;
	if (available <= 0 || bytes < 0 || !(for_now ? set_for_now : lower)(RLIMIT_DATA, (rlim_t)(used + (uint64_t)bytes)) ||
	    getrlimit(RLIMIT_DATA, &limit) != 0)
		return -1;
	return limit.rlim_cur > used ? (int64_t)(limit.rlim_cur - used) : 0;
}

/* At the soft limit, the kernel sends SIGXCPU, which ends the process unless the process ignores it. At the hard limit,
 * the kernel sends SIGKILL. */
int limits_processor_time(int64_t seconds, bool for_now)
{
	struct rusage used;
	struct rlimit limit;

	if (seconds <= 0)
		return 0;
	if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0)
		return -1;
	rlim_t most = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1) + (rlim_t)seconds;
	rlim_t hard = for_now ? limit.rlim_max : most + (rlim_t)seconds;

	limit.rlim_max = hard < limit.rlim_max ? hard : limit.rlim_max;
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	return setrlimit(RLIMIT_CPU, &limit);
}

uint32_t limits_apply(bool memory, bool own_users, int processes)
{
	uint32_t layers = memory ? SANDBOX_MEMORY_LIMIT : 0;

	/* The kernel counts processes for each user in each user namespace, but does not limit the number of processes
	 * of root. */
	if (own_users && lower(RLIMIT_NPROC, (rlim_t)processes) && geteuid() != 0)
		layers |= SANDBOX_PROCESS_LIMIT;
	if (lower(RLIMIT_FSIZE, (rlim_t)SANDBOX_TMP_MIB << 20))
		layers |= SANDBOX_FILE_LIMIT;
	lower(RLIMIT_CORE, 0);
	lower(RLIMIT_MEMLOCK, 0); /* does not affect CUDA, because this limit does not count CUDA's pinned memory */
	lower(RLIMIT_RTPRIO, 0);
	lower(RLIMIT_NOFILE, SANDBOX_DESCRIPTORS);
	lower(RLIMIT_MSGQUEUE, 0);
	lower(RLIMIT_SIGPENDING, SANDBOX_DESCRIPTORS);
	return layers;
}

int limits_drop_capabilities_of_programs(void)
{
	const int locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
			   SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	/* In a process without capabilities, these calls fail. This does no harm, because PR_SET_NO_NEW_PRIVS already
	 * prevents such a process from gaining capabilities. */
	prctl(PR_SET_SECUREBITS, locked, 0, 0, 0);
	for (int i = 0; prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0; i++)
		; /* the loop ends because the call fails after the last capability */
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

int limits_drop_capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return (int)syscall(SYS_capset, &head, none);
}
