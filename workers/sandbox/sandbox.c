#include "workers/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/sandbox/sandbox_internal.h"

static const char host_name[] = "reftest"; /* references see the same host name on all machines, because fingerprints do
					    * not contain the name */

#define SHOWN __attribute__((visibility("default")))

enum {
	KEEPER_STACK = 16 << 10,
	KEEPERS_MAX = 1024,
	TRIALS_MAX = SANDBOX_LAYERS,
	DROPPED = 1 << 30 /* a bit in the answer of try_layers: if it is set, the other bits are the layers that failed;
			   * otherwise they are the active layers */
};

/* A process that keeps a PID namespace alive. It shares the zygote's memory, but has a stack of its own. */
struct keeper {
	pid_t pid;
	void *stack;
};

struct sandbox {
	uint32_t layers;                    /* the layers that are active in each runner */
	struct sandbox_paths readable, devices;
	char *hidden;                       /* the path of the dataset, if it is below a readable path; else NULL */
	bool gpu;
	const char *folder;                 /* where a runner's own filesystem for temporary files is mounted */
	bool no_programs_gain;              /* limits_drop_capabilities_of_programs succeeded */
	bool filtered;                      /* seccomp_apply_to_zygote succeeded */
	int processes;                      /* how many processes and threads a runner may have */
	int self;                           /* a pidfd of the zygote; -1: none */
	pid_t parent;                       /* the pid of a runner's parent, as the runner sees it; 0: the parent is
					     * outside the runner's PID namespace */
	struct keeper keepers[KEEPERS_MAX];
};

/* ---- lists of paths ---- */

void sandbox_paths_add(struct sandbox_paths *list, const char *path)
{
	char **items = realloc(list->items, ((size_t)list->count + 1) * sizeof *items);
	char *copy = strdup(path);

	if (items == NULL || copy == NULL)
		abort();
	list->items = items;
	items[list->count++] = copy;
}

static void paths_free(struct sandbox_paths *list)
{
	for (int i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct sandbox_paths){0};
}

bool sandbox_is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	while (length > 0 && folder[length - 1] == '/')
		length--;
	return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Returns whether references may read everything below `path`, an absolute path that must exist and must not be the
 * root directory. They may not if a hidden directory is below it. Resolves links. */
static bool may_show(const char *path, const char *const *hidden, int hidden_count)
{
	char *real = realpath(path, NULL);
	bool may = real != NULL && path[0] == '/' && strcmp(real, "/") != 0;

	for (int i = 0; may && i < hidden_count; i++) {
		char *place = realpath(hidden[i], NULL);

		may = place == NULL || !sandbox_is_below(place, real);
		free(place);
	}
	free(real);
	return may;
}

/* ---- namespaces of the zygote ---- */

/* Opens the memory of this process to other processes of the same user, or closes it to them. A process whose memory is
 * closed cannot set up a user namespace or enter the PID namespace of a keeper. Therefore the memory is opened before
 * these operations, and closed again afterwards. */
static void open_memory(bool open)
{
	prctl(PR_SET_DUMPABLE, open, 0, 0, 0);
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = (ssize_t)strlen(text);

	if (fd < 0)
		return -1;
	bool written = write(fd, text, (size_t)length) == length;

	close(fd);
	return written ? 0 : -1;
}

static int map_one(const char *path, unsigned id)
{
	char text[64];

	snprintf(text, sizeof text, "%u %u 1\n", id, id);
	return write_text(path, text);
}

/* Creates a user namespace in which this user and this group have the same ids as outside. No other id exists in the
 * namespace, so even root can read only its own files and files that everybody may read. */
static int enter_user_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER) != 0)
		return -1;
	return map_one("/proc/self/uid_map", uid) == 0 && write_text("/proc/self/setgroups", "deny") == 0
		   ? map_one("/proc/self/gid_map", gid)
		   : -1;
}

/* Moves this process to the new namespaces in `wanted` that the kernel grants. Returns the active layers. If a layer
 * failed and its effects cannot be undone, returns this layer with the bit DROPPED. */
static uint32_t isolate(const struct sandbox *sandbox, uint32_t wanted)
{
	static const struct {
		uint32_t layer;
		int flag;
	} namespaces[] = {{SANDBOX_NETWORK, CLONE_NEWNET}, {SANDBOX_IPC, CLONE_NEWIPC}, {SANDBOX_UTS, CLONE_NEWUTS},
			  {SANDBOX_MOUNT, CLONE_NEWNS}, {SANDBOX_PID, CLONE_NEWPID}};
	uint32_t held = 0;

	if ((wanted & SANDBOX_USER) != 0) {
		if (enter_user_namespace() != 0)
			return DROPPED | SANDBOX_USER;
		held |= SANDBOX_USER;
	}
	for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
		if ((wanted & namespaces[i].layer) != 0 && unshare(namespaces[i].flag) == 0)
			held |= namespaces[i].layer;
	if ((held & SANDBOX_UTS) != 0 && sethostname(host_name, sizeof host_name - 1) != 0)
		return DROPPED | SANDBOX_UTS; /* counts as failed, because references would see the host name of this
					       * machine */
	if ((held & SANDBOX_MOUNT) != 0 && view_build(&sandbox->readable, &sandbox->devices, sandbox->folder, sandbox->hidden) != 0)
		return DROPPED | SANDBOX_MOUNT;
	return held;
}

/* Waits for the child, which does the work of this process, and then ends this process with the child's exit status or
 * signal. */
static void end_like(pid_t child)
{
	int status = 0;

	syscall(SYS_close_range, 0, ~0U, 0);
	while (waitpid(child, &status, 0) != child)
		if (errno != EINTR)
			_exit(1);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		kill(getpid(), WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Makes this process end when its parent ends. If the parent has already ended, ends this process now. `parent` is the
 * expected result of getppid. */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
}

/* Forks the first process of the new PID namespace, and continues in it; the calling process only waits for its end.
 * When the first process ends, all other processes of the namespace end. */
static int enter_pid_namespace(void)
{
	pid_t child = fork();

	if (child < 0)
		return -1;
	if (child > 0)
		end_like(child);
	end_with(0); /* getppid returns 0, because the parent is outside the namespace */
	return 0;
}

static int open_self(struct sandbox *sandbox)
{
	sandbox->parent = getpid();
	if ((sandbox->layers & SANDBOX_PID) == 0)
		return 0;
	if (enter_pid_namespace() != 0)
		return -1;
	sandbox->parent = 0;
	if ((sandbox->layers & SANDBOX_MOUNT) != 0)
		view_mount_proc(); /* if this fails, the zygote and the runners see the /proc of the machine */
	sandbox->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	return sandbox->self < 0 ? -1 : 0;
}

/* Restricts the zygote once, before it forks runners, which inherit the restrictions. */
static void prepare_runners(struct sandbox *sandbox)
{
	sandbox->no_programs_gain = limits_drop_capabilities_of_programs() == 0;
	sandbox->filtered = seccomp_apply_to_zygote();
}

/* ---- runners ---- */

/* The function of a keeper, which is the first process of a runner's PID namespace. It only waits, with all signals
 * blocked: it shares the memory of the zygote, and could change this memory if it did anything else. */
static int keep(void *unused)
{
	(void)unused;
	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;)
		syscall(SYS_rt_sigsuspend, &(uint64_t){~(uint64_t)0}, sizeof(uint64_t));
	return 0;
}

static pid_t start_keeper(struct keeper *keeper)
{
	sigset_t all, before;

	keeper->stack = mmap(NULL, KEEPER_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (keeper->stack == MAP_FAILED)
		return -1;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	keeper->pid = clone(keep, (char *)keeper->stack + KEEPER_STACK, CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_NEWPID,
			    NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (keeper->pid < 0)
		munmap(keeper->stack, KEEPER_STACK);
	return keeper->pid;
}

/* Waits until a keeper has ended. A keeper ends only after its runner has been reaped. */
static void reap_keeper(struct keeper *keeper)
{
	kill(keeper->pid, SIGKILL);
	while (waitpid(keeper->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	munmap(keeper->stack, KEEPER_STACK);
	*keeper = (struct keeper){0};
}

static struct keeper *find_keeper(struct sandbox *sandbox, pid_t pid)
{
	for (int i = 0; i < KEEPERS_MAX; i++)
		if (sandbox->keepers[i].pid == pid)
			return &sandbox->keepers[i];
	return NULL;
}

SHOWN pid_t sandbox_before_fork(struct sandbox *sandbox)
{
	struct keeper *keeper = find_keeper(sandbox, 0);
	int pidfd;

	if ((sandbox->layers & SANDBOX_PID) == 0)
		return 0;
	if (keeper == NULL || start_keeper(keeper) < 0)
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, keeper->pid, 0);
	open_memory(true);
	bool entered = pidfd >= 0 && setns(pidfd, CLONE_NEWPID) == 0;
	int problem = errno;

	open_memory(false);
	if (!entered) {
		if (pidfd >= 0)
			close(pidfd);
		reap_keeper(keeper);
		errno = problem;
		return -1;
	}
	close(pidfd);
	return keeper->pid;
}

SHOWN int sandbox_after_fork(struct sandbox *sandbox)
{
	return (sandbox->layers & SANDBOX_PID) == 0 ? 0 : setns(sandbox->self, CLONE_NEWPID);
}

SHOWN void sandbox_end(struct sandbox *sandbox, pid_t pid)
{
	if (pid > 0 && find_keeper(sandbox, pid) != NULL)
		kill(pid, SIGKILL);
}

SHOWN void sandbox_reap(struct sandbox *sandbox, pid_t pid)
{
	struct keeper *keeper = pid <= 0 ? NULL : find_keeper(sandbox, pid);

	if (keeper != NULL)
		reap_keeper(keeper);
}

/* Adds the layers that a runner's own mount namespace provides. */
static uint32_t mount_own(const struct sandbox *sandbox, uint32_t held)
{
	uint32_t layers = 0;

	if ((held & SANDBOX_MOUNT) == 0 || unshare(CLONE_NEWNS) != 0)
		return 0;
	if ((held & SANDBOX_PID) != 0)
		layers |= view_mount_proc_of_runner(sandbox->processes, sandbox->gpu);
	if (view_mount_tmp(sandbox->folder) == 0)
		layers |= SANDBOX_TMP;
	return layers;
}

SHOWN uint32_t sandbox_enter(struct sandbox *sandbox, const char *folder)
{
	const uint32_t namespaces =
	    SANDBOX_USER | SANDBOX_MOUNT | SANDBOX_NETWORK | SANDBOX_IPC | SANDBOX_UTS | SANDBOX_PID;
	uint32_t held = sandbox->layers & namespaces;

	open_memory(true); /* gives this process access to its own files below /proc */
	if (sandbox->self >= 0)
		close(sandbox->self);
	bool first = limits_die_first(); /* must be done while /proc is writable */

	held |= mount_own(sandbox, held);
	/* For RLIMIT_NPROC, the kernel counts the processes of all runners together, so one reference could use up the
	 * limit of another. Therefore this limit is used only if the kernel has no limit for each PID namespace. */
	held |= limits_apply(first && !sandbox->gpu, (held & SANDBOX_USER) != 0 && (held & SANDBOX_PROCESS_LIMIT) == 0,
			     sandbox->processes);
	if (sandbox->no_programs_gain && limits_drop_capabilities() == 0)
		held |= SANDBOX_NO_CAPABILITIES;
	if ((held & SANDBOX_PID) == 0 || (held & SANDBOX_PROC) == 0)
		open_memory(false); /* closes the memory of this process again, because the runners of other references
				     * can find this process in /proc */
	end_with(sandbox->parent);
	bool whole = (held & SANDBOX_MOUNT) != 0 && (held & SANDBOX_PROC) != 0;

	held |= landlock_apply(whole, sandbox->gpu, &sandbox->readable, &sandbox->devices, sandbox->hidden,
			       (held & SANDBOX_TMP) != 0 ? sandbox->folder : folder);
	if ((held & (SANDBOX_PROC | SANDBOX_LANDLOCK_FILES)) == 0)
		held &= ~(uint32_t)SANDBOX_MEMORY_LIMIT; /* references could write to /proc, and so undo
							  * limits_die_first; the limit then does not count as active */
	return sandbox->filtered ? held | seccomp_apply(sandbox->gpu) : held;
}

SHOWN int64_t sandbox_limit_memory(struct sandbox *sandbox, int64_t bytes, int for_now)
{
	return sandbox->gpu ? bytes : limits_memory(bytes, for_now != 0);
}

SHOWN int sandbox_limit_processor_time(int64_t seconds, int for_now)
{
	return limits_processor_time(seconds, for_now != 0);
}

/* ---- trials ---- */

/* Isolates this process, starts a runner, and writes the runner's layers to the descriptor `answer`. */
static void try_layers(struct sandbox *sandbox, uint32_t wanted, int answer)
{
	uint32_t held = isolate(sandbox, wanted);
	pid_t runner;
	int status;

	if ((held & DROPPED) != 0)
		goto leave;
	sandbox->layers = held;
	held = DROPPED | SANDBOX_PID;
	if (open_self(sandbox) != 0)
		goto leave;
	prepare_runners(sandbox);
	if (sandbox_before_fork(sandbox) < 0 || (runner = fork()) < 0)
		goto leave;
	if (runner > 0) {
		waitpid(runner, &status, 0);
		_exit(0);
	}
	held = sandbox_enter(sandbox, "/tmp");
leave:
	if (write(answer, &held, sizeof held) != sizeof held)
		_exit(1);
	_exit(0);
}

/* Tries layers in a child process. Returns the answer of try_layers. If there is no answer, returns DROPPED and the
 * bits of all layers, which means that all layers failed. */
static uint32_t try_in_child(const struct sandbox *sandbox, uint32_t wanted)
{
	uint32_t held = 0;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return DROPPED | SANDBOX_ALL;
	child = fork();
	if (child == 0) {
		struct sandbox *copy = malloc(sizeof *copy);

		if (copy == NULL)
			_exit(1);
		*copy = *sandbox;
		close(ends[0]);
		prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* opens the memory, because a process whose memory is closed cannot
						     * set up namespaces */
		try_layers(copy, wanted, ends[1]);
	}
	close(ends[1]);
	ssize_t got;

	while ((got = read(ends[0], &held, sizeof held)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return child > 0 && got == sizeof held ? held : DROPPED | SANDBOX_ALL;
}

/* Finds the layers that this machine grants. Tries all layers, and then tries again without those that failed. */
static uint32_t find_layers(const struct sandbox *sandbox)
{
	uint32_t wanted = SANDBOX_ALL, answer; /* SANDBOX_ALL includes the layers that the pool provides, but no answer
					        * contains them */

	for (int i = 0; i < TRIALS_MAX; i++) {
		answer = try_in_child(sandbox, wanted);
		if ((answer & DROPPED) == 0)
			return answer;
		wanted &= ~(answer & ~(uint32_t)DROPPED);
	}
	return 0;
}

static void free_sandbox(struct sandbox *sandbox)
{
	paths_free(&sandbox->readable);
	paths_free(&sandbox->devices);
	free(sandbox->hidden);
	if (sandbox->self >= 0)
		close(sandbox->self);
	free(sandbox);
}

/* ---- opening ---- */

/* If the dataset is below a readable path, returns the path of the dataset with all links resolved, because the dataset
 * must then be hidden. Otherwise returns NULL. */
static char *find_hidden(const struct sandbox_paths *readable, const char *dataset)
{
	char *place = realpath(dataset, NULL);
	bool below = false;

	for (int i = 0; place != NULL && !below && i < readable->count; i++) {
		char *real = realpath(readable->items[i], NULL);

		below = real != NULL && sandbox_is_below(place, real) && strcmp(place, real) != 0;
		free(real);
	}
	if (below)
		return place;
	free(place);
	return NULL;
}

static struct sandbox *new_sandbox(const char *const *paths, int path_count, const char *const *hidden, int hidden_count,
				   bool gpu)
{
	struct sandbox *sandbox = calloc(1, sizeof *sandbox);

	if (sandbox == NULL)
		return NULL;
	sandbox->self = -1;
	sandbox->gpu = gpu;
	sandbox->processes = sandbox_process_limit();
	view_system_paths(&sandbox->readable, gpu);
	view_devices(&sandbox->devices, gpu);
	for (int i = 0; i < path_count; i++)
		if (may_show(paths[i], hidden, hidden_count))
			sandbox_paths_add(&sandbox->readable, paths[i]);
	sandbox->hidden = hidden_count > 0 ? find_hidden(&sandbox->readable, hidden[0]) : NULL;
	sandbox->folder = "/tmp";
	for (int i = 0; i < sandbox->readable.count; i++)
		if (sandbox_is_below(sandbox->readable.items[i], "/tmp"))
			sandbox->folder = "/scratch"; /* the interpreter is below /tmp, and a new /tmp would hide it */
	return sandbox;
}

SHOWN uint32_t sandbox_probe(bool gpu)
{
	struct sandbox *sandbox = new_sandbox(NULL, 0, NULL, 0, gpu);
	uint32_t layers = sandbox == NULL ? 0 : find_layers(sandbox);

	if (sandbox != NULL)
		free_sandbox(sandbox);
	return layers;
}

SHOWN struct sandbox *sandbox_open(const char *const *paths, int path_count, const char *const *hidden, int hidden_count,
				   int gpu, char *message, int message_size)
{
	const uint32_t namespaces =
	    SANDBOX_USER | SANDBOX_MOUNT | SANDBOX_NETWORK | SANDBOX_IPC | SANDBOX_UTS | SANDBOX_PID;
	struct sandbox *sandbox = new_sandbox(paths, path_count, hidden, hidden_count, gpu != 0);

	if (sandbox == NULL)
		return NULL;
	open_memory(true);
	sandbox->layers = find_layers(sandbox);
	if (isolate(sandbox, sandbox->layers & namespaces) != (sandbox->layers & namespaces) || open_self(sandbox) != 0) {
		snprintf(message, (size_t)message_size, "the sandbox for references cannot be set up, although an "
							"earlier test of it succeeded: %s",
			 strerror(errno));
		free_sandbox(sandbox);
		return NULL;
	}
	prepare_runners(sandbox);
	open_memory(false);
	return sandbox;
}

SHOWN uint32_t sandbox_layers(const struct sandbox *sandbox)
{
	return sandbox->layers;
}

SHOWN const char *sandbox_folder(const struct sandbox *sandbox)
{
	return sandbox->folder;
}

SHOWN int sandbox_abi(void)
{
	return SANDBOX_ABI;
}
