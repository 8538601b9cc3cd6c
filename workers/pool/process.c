#include "workers/pool/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

enum { FDS_MAX = 8, FD_ABOVE = 16 /* the lowest descriptor number that copy_fds gives to a copy */ };

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

/* Copies `fds` to high descriptor numbers, so that a later dup2 does not overwrite a descriptor that is still needed. A
 * descriptor of -1 becomes /dev/null. */
static int copy_fds(const int *fds, int count, int *copies, struct err *err)
{
	for (int i = 0; i < count; i++) {
		int null = fds[i] < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;

		copies[i] = fcntl(fds[i] < 0 ? null : fds[i], F_DUPFD_CLOEXEC, FD_ABOVE);
		if (copies[i] < 0)
			err_errno(err, "cannot duplicate a descriptor for a worker");
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
	/* Closes all other descriptors, because workers must not get the descriptors that this program inherited, for
	 * example from the user's shell. */
	if ((rc = posix_spawn_file_actions_addclosefrom_np(&actions, count)) != 0)
		goto leave;
	rc = posix_spawn(&process->pid, path, &actions, &attributes, argv, envp);
leave:
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (rc == 0)
		return 0;
	errno = rc;
	process->pid = 0;
	return err_errno(err, "cannot start %s", path);
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

/* Only programs with the leak sanitizer have this function. A forked process calls this function before `_exit`,
 * because `_exit` does not check for leaks. */
void __lsan_do_leak_check(void) __attribute__((weak));

/* Resets ignored signals to their defaults, because a forked process ignores the same signals as its parent. Leaves
 * signal handlers as they are, because this program has no handlers, and the handlers of a sanitizer must stay. */
static void heed_signals(void)
{
	struct sigaction now;
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
			signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Sets the descriptors, the process group and the signals of a forked process, as process_start does. Returns false if
 * this fails. */
static bool become_worker(const char *name, pid_t parent, const int *copies, int count)
{
	setpgid(0, 0);
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	heed_signals();
	for (int i = 0; i < count; i++)
		if (dup2(copies[i], i) < 0)
			return false;
	closefrom(count);
	return getppid() == parent;
}

static _Noreturn void run_worker(int (*run)(void *context), void *context)
{
	int status = run(context);

	if (__lsan_do_leak_check != NULL)
		__lsan_do_leak_check();
	_exit(status); /* exit() would write the parent's buffered output a second time */
}

int process_fork(struct process *process, const char *name, int (*run)(void *context), void *context, const int *fds,
		 int fd_count, struct err *err)
{
	int copies[FDS_MAX], rc = -1;
	pid_t parent = getpid(), pid = -1;

	*process = (struct process){0, -1};
	memset(copies, -1, sizeof copies);
	if (fd_count <= FDS_MAX && copy_fds(fds, fd_count, copies, err) == 0) {
		fflush(NULL); /* writes the buffered output now, because an exiting worker would otherwise write it a
			       * second time */
		pid = fork();
		rc = pid < 0 ? err_errno(err, "cannot fork a process for %s", name) : 0;
	}
	if (pid == 0) {
		if (!become_worker(name, parent, copies, fd_count))
			_exit(EXIT_FAILURE);
		run_worker(run, context);
	}
	for (int i = 0; i < FDS_MAX; i++)
		if (copies[i] >= 0)
			close(copies[i]);
	if (rc != 0)
		return rc;
	setpgid(pid, pid); /* parent and child both call setpgid, because it is not known which of them runs first */
	process->pid = pid;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return 0;
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

void process_let_continue(int pidfd)
{
	if (pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0);
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
