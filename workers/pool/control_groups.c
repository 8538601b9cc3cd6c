#include "workers/pool/control_groups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trace.h"
#include "workers/sandbox/sandbox.h"

#define PREFIX "reftest-"
#define CONTROLLERS "+memory +pids"

enum { TEXT_MAX = 64 << 10, NAME_SIZE = 300, CLOSE_TRIES = 500, CLOSE_PAUSE_US = 2000 };

/* ---- files of groups ---- */

/* Reads a file into `out`, and appends a NUL. Returns false if the file cannot be read completely. */
static bool read_text(int folder, const char *name, char *out, size_t size)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t got = -1;

	while (fd >= 0 && used < size && (got = read(fd, out + used, size - used)) > 0)
		used += (size_t)got;
	if (fd >= 0)
		close(fd);
	if (got != 0 || used >= size)
		return false;
	out[used] = '\0';
	return true;
}

static bool write_text(int folder, const char *name, const char *text)
{
	int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

/* Writes a text to a file of a group. `group` is the number of the group. */
static bool write_to_group(const struct control_groups *groups, int64_t group, const char *file, const char *text)
{
	char path[NAME_SIZE];

	snprintf(path, sizeof path, "%lld/%s", (long long)group, file);
	return write_text(groups->own, path, text);
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = text; *at != '\0'; at += strspn(at, " \n")) {
		size_t found = strcspn(at, " \n");

		if (found == length && memcmp(at, word, length) == 0)
			return true;
		at += found;
	}
	return false;
}

/* Returns the number after `key` in a text with lines "key number". Returns 0 if there is no such line. */
static long long counter(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n'), at += at != NULL)
		if (strncmp(at, key, length) == 0 && at[length] == ' ')
			return strtoll(at + length, NULL, 10);
	return 0;
}

/* ---- the group of this process ---- */

/* Copies a field of a line of mountinfo. `index` is the number of the field, from 0. Returns false if there is no such
 * field, if it is too long, or if it has an escape such as "\040". */
static bool copy_field(const char *line, int index, char *out, size_t size)
{
	size_t length;

	for (; index > 0; index--) {
		line += strcspn(line, " \n");
		if (*line != ' ')
			return false;
		line++;
	}
	length = strcspn(line, " \n");
	if (length == 0 || length >= size || memchr(line, '\\', length) != NULL)
		return false;
	memcpy(out, line, length);
	out[length] = '\0';
	return true;
}

/* Finds the mount of cgroup v2. Sets `place` to the folder where cgroup v2 is mounted, and `root` to the path of the
 * group that this folder shows: "/", or the group of a container. */
static bool find_mount(const char *mountinfo, char *root, char *place, size_t size)
{
	for (const char *line = mountinfo; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL) {
		const char *kind = strstr(line, " - cgroup2 "), *end = strchr(line, '\n');

		if (kind != NULL && (end == NULL || kind < end))
			return copy_field(line, 3, root, size) && copy_field(line, 4, place, size);
	}
	return false;
}

bool control_groups_folder(const char *cgroup, const char *mountinfo, char *out, size_t size)
{
	char root[2048], place[2048], path[2048];
	const char *line = strncmp(cgroup, "0::", 3) == 0 ? cgroup : strstr(cgroup, "\n0::");

	if (line == NULL || !find_mount(mountinfo, root, place, sizeof root))
		return false;
	line = strchr(line, '/');
	if (line == NULL || !copy_field(line, 0, path, sizeof path) || strstr(path, "/..") != NULL)
		return false;
	size_t shown = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, shown) != 0 || (shown > 0 && path[shown] != '/' && path[shown] != '\0'))
		return false;
	return (size_t)snprintf(out, size, "%s%s", place, path + shown) < size;
}

static int open_own_group(void)
{
	char *cgroup = malloc(TEXT_MAX), *mountinfo = malloc(TEXT_MAX), path[4200];
	int folder = -1;

	if (cgroup != NULL && mountinfo != NULL && read_text(AT_FDCWD, "/proc/self/cgroup", cgroup, TEXT_MAX) &&
	    read_text(AT_FDCWD, "/proc/self/mountinfo", mountinfo, TEXT_MAX) &&
	    control_groups_folder(cgroup, mountinfo, path, sizeof path))
		folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(cgroup);
	free(mountinfo);
	return folder;
}

/* Returns whether this process is the only one in the group. */
static bool is_alone(int group)
{
	char text[64], *end;

	return read_text(group, "cgroup.procs", text, sizeof text) && strtoll(text, &end, 10) == (long long)getpid() &&
	       strcmp(end, "\n") == 0;
}

/* Returns whether the system has delegated this group to this process. The root of all groups, which has no file
 * "cgroup.type", is never delegated. */
static bool is_delegated(int group)
{
	char text[TEXT_MAX / 16];

	return read_text(group, "cgroup.type", text, sizeof text) && strcmp(text, "domain\n") == 0 &&
	       read_text(group, "cgroup.controllers", text, sizeof text) && has_word(text, "memory") && has_word(text, "pids") &&
	       faccessat(group, ".", W_OK, AT_EACCESS) == 0 && faccessat(group, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
	       faccessat(group, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0 && is_alone(group);
}

bool control_groups_delegated(void)
{
	int group = open_own_group();
	bool delegated = group >= 0 && is_delegated(group);

	if (group >= 0)
		close(group);
	return delegated;
}

/* ---- removing ---- */

static DIR *open_list(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (list == NULL && fd >= 0)
		close(fd);
	return list;
}

/* Kills the processes of the runners' groups below `folder`, and then removes the groups that are empty. Does not kill
 * the processes of the group "main", because one of them may be a command of the user. */
static void remove_below(int folder)
{
	DIR *list = open_list(folder);
	struct dirent *entry;
	char path[NAME_SIZE];

	while (list != NULL && (entry = readdir(list)) != NULL) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/cgroup.kill", entry->d_name);
		if (strcmp(entry->d_name, "main") != 0)
			write_text(folder, path, "1");
		unlinkat(folder, entry->d_name, AT_REMOVEDIR);
	}
	if (list != NULL)
		closedir(list);
}

/* Removes the groups of reftest processes that ended without a call of control_groups_close. */
static void remove_leftovers(int parent)
{
	DIR *list = open_list(parent);
	struct dirent *entry;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		char *end;
		long pid = strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0
			       ? strtol(entry->d_name + sizeof PREFIX - 1, &end, 10)
			       : 0;

		if (pid <= 0 || *end != '\0' || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		int folder = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (folder >= 0) {
			remove_below(folder);
			close(folder);
		}
		unlinkat(parent, entry->d_name, AT_REMOVEDIR);
	}
	if (list != NULL)
		closedir(list);
}

/* ---- opening and closing ---- */

static void go_back(struct control_groups *groups)
{
	write_text(groups->own, "cgroup.subtree_control", "-memory -pids");
	write_text(groups->parent, "cgroup.subtree_control", "-memory -pids");
	write_text(groups->parent, "cgroup.procs", "0");
	unlinkat(groups->own, "main", AT_REMOVEDIR);
	unlinkat(groups->parent, groups->name, AT_REMOVEDIR);
}

static bool move_below(struct control_groups *groups)
{
	return mkdirat(groups->own, "main", 0755) == 0 && write_text(groups->own, "main/cgroup.procs", "0") &&
	       write_text(groups->parent, "cgroup.subtree_control", CONTROLLERS) &&
	       write_text(groups->own, "cgroup.subtree_control", CONTROLLERS);
}

static void drop(struct control_groups *groups)
{
	if (groups->own >= 0)
		close(groups->own);
	if (groups->parent >= 0)
		close(groups->parent);
	groups->own = groups->parent = -1;
}

void control_groups_open(struct control_groups *groups)
{
	*groups = (struct control_groups){.parent = open_own_group(), .own = -1};
	snprintf(groups->name, sizeof groups->name, PREFIX "%ld", (long)getpid());
	if (groups->parent < 0 || !is_delegated(groups->parent)) {
		drop(groups);
		return;
	}
	remove_leftovers(groups->parent);
	if (mkdirat(groups->parent, groups->name, 0755) == 0)
		groups->own = openat(groups->parent, groups->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (groups->own < 0 || !move_below(groups)) {
		trace("runners", "no control groups: %s", strerror(errno));
		go_back(groups);
		drop(groups);
	}
}

void control_groups_close(struct control_groups *groups)
{
	if (!control_groups_used(groups))
		return;
	go_back(groups);
	/* waits for at most a second, because a process with a CUDA context takes long to end */
	for (int i = 0; i < CLOSE_TRIES; i++) {
		remove_below(groups->own);
		if (unlinkat(groups->parent, groups->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			break;
		usleep(CLOSE_PAUSE_US);
	}
	drop(groups);
}

bool control_groups_used(const struct control_groups *groups)
{
	return groups->own >= 0;
}

/* ---- the group of a runner ---- */

static bool remove_now(const struct control_groups *groups, int64_t group)
{
	char name[32];

	snprintf(name, sizeof name, "%lld", (long long)group);
	return unlinkat(groups->own, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

void control_group_remove(struct control_groups *groups, int64_t group)
{
	int64_t *place = NULL;

	if (group <= 0 || !control_groups_used(groups))
		return;
	write_to_group(groups, group, "cgroup.kill", "1"); /* Linux before 5.14 does not have this file; there, only the
							    * sandbox kills the processes */
	for (int i = 0; i < CONTROL_GROUPS_DYING; i++) {
		if (groups->dying[i] != 0 && remove_now(groups, groups->dying[i]))
			groups->dying[i] = 0;
		if (groups->dying[i] == 0)
			place = &groups->dying[i];
	}
	if (!remove_now(groups, group) && place != NULL)
		*place = group; /* the group is removed later; if `dying` has no free entry, control_groups_close
		* removes it */
}

int64_t control_group_add(struct control_groups *groups, int *fd)
{
	int64_t group = groups->last + 1;
	char name[64], most[32];

	*fd = -1; /* set below; the caller must close the descriptor */
	if (!control_groups_used(groups))
		return 0;
	groups->last = group;
	snprintf(name, sizeof name, "%lld", (long long)group);
	snprintf(most, sizeof most, "%d", sandbox_process_limit());
	if (mkdirat(groups->own, name, 0755) != 0)
		return 0;
	write_to_group(groups, group, "memory.swap.max", "0");   /* Linux without swap does not have this file */
	write_to_group(groups, group, "memory.oom.group", "1");  /* if the group runs out of memory, the kernel must end
								  * all its processes */
	snprintf(name, sizeof name, "%lld/cgroup.procs", (long long)group);
	if (write_to_group(groups, group, "pids.max", most))
		*fd = openat(groups->own, name, O_WRONLY | O_CLOEXEC);
	if (*fd < 0) {
		remove_now(groups, group);
		return 0;
	}
	return group;
}

static bool has_process(const struct control_groups *groups, int64_t group)
{
	char path[NAME_SIZE];

	snprintf(path, sizeof path, "%lld/cgroup.procs", (long long)group);
	int fd = openat(groups->own, path, O_RDONLY | O_CLOEXEC);
	char byte;
	bool has = fd >= 0 && read(fd, &byte, 1) == 1;

	if (fd >= 0)
		close(fd);
	return has;
}

int control_group_limit_memory(const struct control_groups *groups, int64_t group, int64_t bytes)
{
	char path[NAME_SIZE], text[64];
	int64_t available = sandbox_available_memory();

	if (available > 0 && bytes > available)
		bytes = available;
	snprintf(path, sizeof path, "%lld/memory.current", (long long)group);
	if (!has_process(groups, group) || !read_text(groups->own, path, text, sizeof text))
		return -1;
	int64_t used = strtoll(text, NULL, 10);

	snprintf(text, sizeof text, "%lld", (long long)(bytes > INT64_MAX - used ? INT64_MAX : used + bytes));
	return write_to_group(groups, group, "memory.max", text) ? 0 : -1;
}

bool control_group_ran_out_of_memory(const struct control_groups *groups, int64_t group)
{
	char path[NAME_SIZE], text[1024];

	snprintf(path, sizeof path, "%lld/memory.events", (long long)group);
	return group > 0 && control_groups_used(groups) && read_text(groups->own, path, text, sizeof text) &&
	       counter(text, "oom") > 0 && counter(text, "oom_kill") > 0;
}
