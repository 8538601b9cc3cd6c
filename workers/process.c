#include "workers/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

extern char **environ;

enum { FDS_MAX = 8, FD_ABOVE = 16 /* copies lie above every place they may have to go to */ };

static int set_attributes(posix_spawnattr_t *attributes)
{
	const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawnattr_setflags(attributes, flags) != 0 || posix_spawnattr_setpgroup(attributes, 0) != 0 ||
	    posix_spawnattr_setsigmask(attributes, &none) != 0 || posix_spawnattr_setsigdefault(attributes, &all) != 0)
		return -1;
	return 0;
}

/* Copies of `fds` out of the way, so that no dup2 overwrites one that is still needed. -1 entries become /dev/null. */
static int copy_fds(const int *fds, int count, int *copies, struct err *err)
{
	for (int i = 0; i < count; i++) {
		int null = fds[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

		copies[i] = fcntl(fds[i] < 0 ? null : fds[i], F_DUPFD_CLOEXEC, FD_ABOVE);
		if (copies[i] < 0)
			err_errno(err, "no descriptor left for a worker");
		if (null >= 0)
			close(null);
		if (copies[i] < 0)
			return -1;
	}
	return 0;
}

static int spawn(struct process *process, const char *path, char *const argv[], char *const envp[], const int *copies,
                 int count, struct err *err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int rc = ENOMEM;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	if (set_attributes(&attributes) != 0)
		goto leave;
	for (int i = 0; i < count; i++)
		if ((rc = posix_spawn_file_actions_adddup2(&actions, copies[i], i)) != 0)
			goto leave;
	rc = posix_spawn(&process->pid, path, &actions, &attributes, argv, envp);
leave:
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (rc == 0)
		return 0;
	errno = rc;
	process->pid = 0;
	return err_errno(err, "%s cannot be started", path);
}

int process_start(struct process *process, const char *path, char *const argv[], char *const envp[], const int *fds,
                  int fd_count, struct err *err)
{
	int copies[FDS_MAX], rc = -1;

	*process = (struct process){0, -1};
	memset(copies, -1, sizeof copies);
	if (fd_count <= FDS_MAX && copy_fds(fds, fd_count, copies, err) == 0)
		rc = spawn(process, path, argv, envp, copies, fd_count, err);
	for (int i = 0; i < FDS_MAX; i++)
		if (copies[i] >= 0)
			close(copies[i]);
	if (rc == 0)
		process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	return rc;
}

static bool is_ours_alone(const char *variable)
{
	static const char *const names[] = {"REFTEST_CACHE_KEY=", "REFTEST_REMOTE="};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

char **process_environment(const char *more, struct arena *arena)
{
	size_t count = 0, kept = 0;

	while (environ[count] != NULL)
		count++;
	char **out = arena_array(arena, count + 2, sizeof *out);

	for (size_t i = 0; i < count; i++)
		if (!is_ours_alone(environ[i]))
			out[kept++] = environ[i];
	if (more != NULL)
		out[kept++] = arena_string(arena, more);
	return out;
}

/* What references find in their environment, and torch when it starts: what is needed to run at all. Whatever else is set
 * might change what a reference computes and stands in no fingerprint, so it is not there: no PYTHON… (modules from
 * elsewhere), no TORCH_…, CUBLAS_…, NVIDIA_TF32_OVERRIDE, MKL_…, ONEDNN_…, ATEN_CPU_CAPABILITY, OMP_… (other arithmetic). */
static const char *const reference_environment[] = {
    "PATH=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", /* how programs and libraries are found */
    "HOME=", "TMPDIR=", "XDG_CACHE_HOME=",      /* where compilers of kernels keep what they made */
    "CUDA_HOME=", "CUDA_PATH=", "CUDA_CACHE_PATH=", "CUDA_CACHE_DISABLE=", "TRITON_CACHE_DIR=", /* the same, on a GPU */
    "CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "NVIDIA_VISIBLE_DEVICES=",  /* which GPU: its class is in the witness */
    "CUDA_DEVICE_MAX_CONNECTIONS=", "CUDA_MODULE_LOADING=", "PYTORCH_CUDA_ALLOC_CONF=", /* how its memory and queues are used */
    "CUDA_MPS_PIPE_DIRECTORY=", "CUDA_MPS_LOG_DIRECTORY=", "CONDA_PREFIX=",             /* of whom an interpreter is part */
    "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "REFTEST_", /* ours, and of our tests */
};

/* Set to one value for all: texts as UTF-8; sets of strings in one order, whichever process it is; threads of OpenMP that
 * sleep while they wait, for those that spin take the cores from the judge, which works while a reference runs; sums of
 * Intel's MKL, with which torch multiplies on a CPU, in the same order in every call (its manual, "Specifying Code Branches":
 * without this, neither the schedule nor the order of reductions is fixed). */
static const char *const reference_settings[] = {"LC_ALL=C.UTF-8", "PYTHONHASHSEED=0", "PYTHONUTF8=1",
						 "OMP_WAIT_POLICY=passive", "MKL_CBWR=AUTO"};

static bool for_references(const char *variable)
{
	for (size_t i = 0; i < sizeof reference_environment / sizeof *reference_environment; i++)
		if (strncmp(variable, reference_environment[i], strlen(reference_environment[i])) == 0)
			return !is_ours_alone(variable);
	return false;
}

char **process_reference_environment(struct arena *arena)
{
	size_t count = 0, kept = 0, settings = sizeof reference_settings / sizeof *reference_settings;

	while (environ[count] != NULL)
		count++;
	char **out = arena_array(arena, count + settings + 1, sizeof *out);

	for (size_t i = 0; i < count; i++)
		if (for_references(environ[i]))
			out[kept++] = environ[i];
	for (size_t i = 0; i < settings; i++)
		out[kept++] = arena_string(arena, reference_settings[i]);
	return out;
}

bool process_ended(struct process *process, int *status)
{
	if (process->pid == 0 || waitpid(process->pid, status, WNOHANG) != process->pid)
		return false;
	if (process->pidfd >= 0)
		close(process->pidfd);
	*process = (struct process){0, -1};
	return true;
}

void process_kill(const struct process *process)
{
	if (process->pid == 0)
		return;
	kill(-process->pid, SIGKILL);
	kill(process->pid, SIGKILL);
}

struct process_end process_end(int status)
{
	struct process_end end;

	if (WIFSIGNALED(status)) {
		int number = WTERMSIG(status);
		const char *name = sigabbrev_np(number), *meaning = sigdescr_np(number);

		snprintf(end.text, sizeof end.text, "signal %d (%s%s, %s)", number, name == NULL ? "" : "SIG",
		         name == NULL ? "unknown" : name, meaning == NULL ? "unknown" : meaning);
	} else {
		snprintf(end.text, sizeof end.text, "exit status %d", WEXITSTATUS(status));
	}
	return end;
}

bool process_was_killed(int status)
{
	static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT};

	for (size_t i = 0; WIFSIGNALED(status) && i < sizeof signals / sizeof signals[0]; i++)
		if (WTERMSIG(status) == signals[i])
			return true;
	return false;
}

/* Parent and session of a process, from /proc/PID/stat: "PID (name) state ppid pgrp session …". The name may hold
 * anything, parentheses too: what counts stands behind the last one. */
static bool parent_and_session(const char *pid, pid_t *parent, pid_t *session)
{
	char path[64], text[1024];
	const char *end;
	size_t length;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	if ((file = fopen(path, "re")) == NULL)
		return false;
	length = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[length] = '\0';
	end = strrchr(text, ')');
	return end != NULL && sscanf(end + 1, " %*c %d %*d %d", parent, session) == 2;
}

int process_end_orphans(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t self = getpid(), own = getsid(0), parent, session;
	int found = 0;

	while (proc != NULL && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !parent_and_session(entry->d_name, &parent, &session) || parent != self || session == own)
			continue;
		found++;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, WNOHANG);
	}
	if (proc != NULL)
		closedir(proc);
	return found;
}
