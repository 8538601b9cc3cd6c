/* sandbox_view - builds the tree of files that a reference sees: a read-only selection of the machine's files below an
 * empty root.
 *
 * The root is a small filesystem in memory. Each selected path appears in the root under its own name: the directories
 * of the path are created, its symbolic links are copied, and the file or directory at its end is bind-mounted. Then
 * the machine's own root is detached, and the whole tree becomes read-only. */
#include "workers/sandbox/sandbox_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OLD "/.machine" /* where the machine's root is mounted while the selection is made */

enum { LINKS_MAX = 40 };

/* ---- what is selected ---- */

static const char *const system_paths[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/sys/devices/system/cpu", "/sys/devices/system/node",
};

/* Patterns (glob(3)) of the files that NVIDIA's driver reads. */
static const char *const gpu_paths[] = {
    "/sys/bus/pci", "/sys/devices/pci*", "/sys/module/nvidia*", "/run/opengl-driver", "/etc/nvidia*", "/run/nvidia*/driver",
};

/* On the CPU, /dev/zero is left out, because no limit counts the memory of a shared mapping of /dev/zero. */
static const char *const device_paths[] = {"/dev/null", "/dev/full", "/dev/random", "/dev/urandom"};
static const char *const gpu_device_paths[] = {"/dev/nvidia*", "/dev/zero"};

static void add_patterns(struct sandbox_paths *list, const char *const *patterns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		glob_t found;

		if (glob(patterns[i], GLOB_NOSORT, NULL, &found) != 0)
			continue;
		for (size_t j = 0; j < found.gl_pathc; j++)
			sandbox_paths_add(list, found.gl_pathv[j]);
		globfree(&found);
	}
}

#define ADD(list, patterns) add_patterns(list, patterns, sizeof(patterns) / sizeof *(patterns))

void view_system_paths(struct sandbox_paths *list, bool gpu)
{
	ADD(list, system_paths);
	if (gpu)
		ADD(list, gpu_paths);
}

void view_devices(struct sandbox_paths *list, bool gpu)
{
	ADD(list, device_paths);
	if (gpu)
		ADD(list, gpu_device_paths);
}

/* ---- showing one path ---- */

/* Appends "/name" to a path. Returns -1 if the result is too long. */
static int append(char *path, const char *name, size_t length)
{
	size_t used = strlen(path);

	if (used + 1 + length >= SANDBOX_PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	path[used] = '/';
	memcpy(path + used + 1, name, length);
	path[used + 1 + length] = '\0';
	return 0;
}

static int made(int rc)
{
	return rc == 0 || errno == EEXIST ? 0 : -1;
}

static int bind_to(const char *from, const char *to, bool directory)
{
	int fd;

	if (directory) {
		if (made(mkdir(to, 0755)) != 0)
			return -1;
	} else {
		if ((fd = open(to, O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0644)) < 0)
			return -1;
		close(fd);
	}
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL);
}

/* Follows the symbolic link `path`, whose text is `target`. Puts the text of the link before the names in `rest`. Sets
 * `path` to the directory from which the names in `rest` are resolved. */
static int follow(char *path, char *rest, const char *target)
{
	char joined[SANDBOX_PATH_MAX];
	char *slash = strrchr(path, '/');
	int length = snprintf(joined, sizeof joined, "%s/%s", target, rest);

	if (length < 0 || (size_t)length >= sizeof joined) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(rest, joined, (size_t)length + 1);
	if (target[0] == '/')
		path[0] = '\0';
	else
		*slash = '\0';
	return 0;
}

static int show_link(const char *source, char *path, char *rest)
{
	char target[SANDBOX_PATH_MAX];
	ssize_t length = readlink(source, target, sizeof target - 1);

	if (length < 0)
		return -1;
	target[length] = '\0';
	return made(symlink(target, path)) == 0 ? follow(path, rest, target) : -1;
}

static bool is_mounted_already(const char *from, const char *to)
{
	struct stat a, b;

	return lstat(from, &a) == 0 && lstat(to, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Moves the first name of the path `rest` to `name`. Returns the length of the name, or 0 if `rest` has none. */
static size_t next_name(char *rest, char *name)
{
	size_t start = strspn(rest, "/"), length = strcspn(rest + start, "/");

	if (length > NAME_MAX)
		length = NAME_MAX;
	memcpy(name, rest + start, length);
	name[length] = '\0';
	memmove(rest, rest + start + length, strlen(rest + start + length) + 1);
	return length;
}

/* Makes one path of the machine visible under its own name. Skips a path that does not exist, or that this process
 * cannot see. */
static int show(const char *wanted)
{
	char path[SANDBOX_PATH_MAX] = "", rest[SANDBOX_PATH_MAX], name[NAME_MAX + 1], source[SANDBOX_PATH_MAX + sizeof OLD];
	struct stat st;
	int links = 0;
	size_t length;

	if ((size_t)snprintf(rest, sizeof rest, "%s", wanted) >= sizeof rest)
		return 0;
	while ((length = next_name(rest, name)) > 0) {
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			char *slash = strrchr(path, '/');

			if (slash != NULL)
				*slash = '\0';
			continue;
		}
		if (append(path, name, length) != 0)
			return 0;
		snprintf(source, sizeof source, OLD "%s", path);
		if (lstat(source, &st) != 0)
			return 0;
		if (S_ISLNK(st.st_mode)) {
			if (++links > LINKS_MAX || show_link(source, path, rest) != 0)
				return links > LINKS_MAX ? 0 : -1;
		} else if (is_mounted_already(source, path)) {
			continue;
		} else if (strspn(rest, "/") == strlen(rest)) {
			return bind_to(source, path, S_ISDIR(st.st_mode));
		} else if (made(mkdir(path, 0755)) != 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- the whole ---- */

static int enter_empty_root(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("reftest", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m,nr_inodes=4k") != 0 ||
	    mkdir("/tmp" OLD, 0700) != 0 || syscall(SYS_pivot_root, "/tmp", "/tmp" OLD) != 0)
		return -1;
	return chdir("/");
}

static int show_all(const struct sandbox_paths *paths)
{
	for (int i = 0; i < paths->count; i++)
		if (show(paths->items[i]) != 0)
			return -1;
	return 0;
}

/* Mounts an empty directory over `hidden`. If `hidden` is NULL, does nothing. */
static int cover(const struct sandbox_paths *readable, const char *hidden)
{
	if (hidden == NULL)
		return 0;
	if (mount("hidden", hidden, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m,nr_inodes=4k") != 0)
		return -1;
	for (int i = 0; i < readable->count; i++) /* makes the readable paths below the hidden directory
						   * visible again, such as packages */
		if (sandbox_is_below(readable->items[i], hidden) && show(readable->items[i]) != 0)
			return -1;
	return 0;
}

/* Makes the directories and links that every program expects. /dev/shm is a link to the folder for temporary files, so
 * one size limit applies to both. */
static int make_places(const char *folder)
{
	const char *const folders[] = {folder, "/tmp", "/proc", "/dev"};
	const char *const links[][2] = {
	    {"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
	    {"/proc/self/fd/2", "/dev/stderr"}, {folder, "/dev/shm"},
	};

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (made(mkdir(folders[i], 0755)) != 0)
			return -1;
	for (size_t i = 0; i < sizeof links / sizeof *links; i++)
		if (made(symlink(links[i][0], links[i][1])) != 0)
			return -1;
	return 0;
}

static int set_tree_read_only(void)
{
	struct mount_attr change = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};

	return (int)syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &change, sizeof change);
}

enum { PROC_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC };

static int set_read_only(const char *path)
{
	if (mount(path, path, NULL, MS_BIND, NULL) != 0)
		return errno == ENOENT ? 0 : -1;
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | PROC_FLAGS, NULL);
}

/* Prevents writes to the files of /proc that configure the machine. This is needed only if the user is root, because
 * only root can write to these files. The rest of /proc stays writable, because CUDA's driver fails if it cannot name
 * its threads there. */
static int protect_proc(void)
{
	static const char *const paths[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"};

	for (size_t i = 0; geteuid() == 0 && i < sizeof paths / sizeof *paths; i++)
		if (set_read_only(paths[i]) != 0)
			return -1;
	return 0;
}

/* Makes the machine's /proc writable again, except the files that configure the machine. Call this if the process has
 * no /proc of its own. */
static int open_proc(void)
{
	return mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND | PROC_FLAGS, NULL) == 0 ? protect_proc() : 0;
}

int view_build(const struct sandbox_paths *readable, const struct sandbox_paths *devices, const char *folder,
	       const char *hidden)
{
	if (enter_empty_root() != 0 || make_places(folder) != 0)
		return -1;
	if (mount(OLD "/proc", "/proc", NULL, MS_BIND | MS_REC, NULL) != 0 || show_all(readable) != 0 ||
	    cover(readable, hidden) != 0 || show_all(devices) != 0)
		return -1;
	if (umount2(OLD, MNT_DETACH) != 0 || rmdir(OLD) != 0)
		return -1;
	return set_tree_read_only() == 0 ? open_proc() : -1;
}

int view_mount_tmp(const char *folder)
{
	char options[64];

	snprintf(options, sizeof options, "mode=0700,size=%dm,nr_inodes=64k", SANDBOX_TMP_MIB);
	return mount("tmp", folder, "tmpfs", MS_NOSUID | MS_NODEV, options);
}

/* Limits the number of pids in this PID namespace. Since Linux 6.14, each PID namespace has a pid_max of its own. This
 * limit also applies to root; RLIMIT_NPROC does not. */
static uint32_t limit_pids(int processes)
{
	int fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
	char text[32];
	int length = snprintf(text, sizeof text, "%d", processes);
	bool written = fd >= 0 && write(fd, text, (size_t)length) == length;

	if (fd >= 0)
		close(fd);
	return written ? SANDBOX_PROCESS_LIMIT : 0;
}

int view_mount_proc(void)
{
	return mount("proc", "/proc", "proc", PROC_FLAGS, NULL);
}

/* Makes a runner's /proc read-only on the CPU. On a GPU, the files of the processes stay writable, because CUDA's
 * driver fails if it cannot name its threads in /proc. Nothing else in /proc needs to be writable. */
static int protect_proc_of_runner(bool gpu)
{
	return gpu ? protect_proc() : mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | PROC_FLAGS, NULL);
}

uint32_t view_mount_proc_of_runner(int processes, bool gpu)
{
	uint32_t layers = SANDBOX_PROC;

	if (view_mount_proc() != 0)
		return 0;
	layers |= limit_pids(processes);
	return protect_proc_of_runner(gpu) == 0 ? layers : 0;
}
