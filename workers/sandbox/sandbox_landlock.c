/* sandbox_landlock - applies the Landlock ruleset of a runner: read-only files, a writable /tmp, no TCP, and no signals
 * or abstract sockets to processes outside the runner. This file defines the constants of Landlock, because the
 * installed header may be older than the running kernel (docs.kernel.org/userspace-api/landlock.html). */
#include "workers/sandbox/sandbox_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, /* the numbers of these system calls, which are the
								    * same on all architectures */
	RULESET_VERSION = 1, RULE_PATH_BENEATH = 1
};

enum {
	EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15,
	READ = EXECUTE | READ_FILE | READ_DIR,
	ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV, /* the rights that apply to files */
	DEVICE = READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | IOCTL_DEV,
	EVERYTHING = (1 << 16) - 1
};

struct ruleset {
	uint64_t files, network, scope;
};

struct path_rule {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

/* What each version of Landlock added. Landlock before version 3 does not refuse truncate(2), so it does not protect
 * files. */
static const struct version {
	struct ruleset handled;
	size_t size; /* the size of struct ruleset in this version */
	uint32_t layers;
} versions[] = {
    {{(1 << 13) - 1, 0, 0}, 8, 0},
    {{(1 << 14) - 1, 0, 0}, 8, 0},
    {{(1 << 15) - 1, 0, 0}, 8, SANDBOX_LANDLOCK_FILES},
    {{(1 << 15) - 1, 3, 0}, 16, SANDBOX_LANDLOCK_FILES | SANDBOX_LANDLOCK_NETWORK},
    {{(1 << 16) - 1, 3, 0}, 16, SANDBOX_LANDLOCK_FILES | SANDBOX_LANDLOCK_NETWORK},
    {{(1 << 16) - 1, 3, 3}, 24, SANDBOX_LANDLOCK_FILES | SANDBOX_LANDLOCK_NETWORK | SANDBOX_LANDLOCK_SCOPE},
};

/* Files in /proc and /sys that libraries read. */
static const char *const kernel_files[] = {
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/proc/devices", "/proc/version",
    "/proc/driver", "/proc/sys/vm", "/proc/sys/kernel/osrelease",
};

/* Returns the version of Landlock that the kernel has, or 0. */
static int landlock_version(void)
{
	long version = syscall(CREATE_RULESET, NULL, (size_t)0, RULESET_VERSION);

	return version < 0 ? 0 : (int)version;
}

/* Allows `rights` below a path. If the path does not exist, adds no rule. */
static void allow(int ruleset, const char *path, uint64_t rights, uint64_t handled)
{
	struct path_rule rule = {rights & handled, open(path, O_PATH | O_CLOEXEC)};
	struct stat st;

	if (rule.parent < 0)
		return;
	if (fstat(rule.parent, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed &= ON_FILES;
	syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
	close(rule.parent);
}

/* Allows reading below a path, but not below `hidden`. Landlock rules cannot have exceptions. Therefore, if `hidden` is
 * below the path, the path itself gets no rule. Instead, in each directory from the path down to `hidden`, every entry
 * gets a rule, except the entry that leads to `hidden`. As a result, these directories cannot be listed. A symbolic
 * link gets no rule, because the rule would allow its target. */
static void allow_around(int ruleset, const char *path, const char *hidden, uint64_t rights, uint64_t handled)
{
	char *real = hidden == NULL ? NULL : realpath(path, NULL), entry[SANDBOX_PATH_MAX];
	DIR *folder = real == NULL || !sandbox_is_below(hidden, real) ? NULL : opendir(real);

	if (folder == NULL) {
		if (real == NULL || !sandbox_is_below(hidden, real))
			allow(ruleset, path, rights, handled);
		free(real);
		return;
	}
	for (const struct dirent *found; strcmp(real, hidden) != 0 && (found = readdir(folder)) != NULL;)
		if (found->d_type != DT_LNK && strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0 &&
		    snprintf(entry, sizeof entry, "%s/%s", real, found->d_name) < (int)sizeof entry)
			allow_around(ruleset, entry, hidden, rights, handled);
	closedir(folder);
	free(real);
}

static void allow_each(int ruleset, const struct sandbox_paths *paths, uint64_t rights, uint64_t handled)
{
	for (int i = 0; i < paths->count; i++)
		allow(ruleset, paths->items[i], rights, handled);
}

static void allow_selection(int ruleset, const struct sandbox_paths *readable, const struct sandbox_paths *devices,
			    const char *hidden, uint64_t handled)
{
	for (int i = 0; i < readable->count; i++)
		allow_around(ruleset, readable->items[i], hidden, READ, handled);
	allow_each(ruleset, devices, DEVICE, handled);
	for (size_t i = 0; i < sizeof kernel_files / sizeof *kernel_files; i++)
		allow(ruleset, kernel_files[i], READ_FILE | READ_DIR, handled);
}

uint32_t landlock_apply(bool whole, bool gpu, const struct sandbox_paths *readable, const struct sandbox_paths *devices,
			const char *hidden, const char *folder)
{
	const int newest = sizeof versions / sizeof *versions;
	int abi = landlock_version();

	if (abi < 1)
		return 0;
	const struct version *version = &versions[(abi < newest ? abi : newest) - 1];
	uint64_t handled = version->handled.files;
	int ruleset = (int)syscall(CREATE_RULESET, &version->handled, version->size, 0);

	if (ruleset < 0)
		return 0;
	if (whole)
		allow(ruleset, "/", READ, handled);
	else
		allow_selection(ruleset, readable, devices, hidden, handled);
	if (whole)
		allow(ruleset, "/dev", DEVICE, handled);
	/* on a GPU, the files are writable, because CUDA's driver writes the names of its threads to them */
	allow(ruleset, "/proc/self", gpu ? READ | WRITE_FILE | TRUNCATE : READ, handled);
	if (folder != NULL)
		allow(ruleset, folder, EVERYTHING, handled);
	int rc = (int)syscall(RESTRICT_SELF, ruleset, 0);

	close(ruleset);
	return rc == 0 ? version->layers : 0;
}
