/* restrict - runs a program on a machine whose kernel lacks layers of the sandbox: installs a seccomp filter that
 * refuses them, and executes the program.
 *
 *   restrict [--no-landlock] [--no-namespaces] [--no-pid-namespaces] [--no-mounts] PROGRAM [ARGUMENT…]
 *
 * --no-landlock: as on a kernel without Landlock. --no-namespaces: as in a container that may create none.
 * --no-pid-namespaces: as on a device whose driver does not work in one. --no-mounts: as in a container that may create
 * namespaces but mount nothing, so that the /proc of the machine stays visible. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LANDLOCK_FIRST = 444, LANDLOCK_LAST = 446,
	PID_NAMESPACES = CLONE_NEWPID,
	NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define JUMP(kind, value, yes, no) BPF_JUMP(BPF_JMP | BPF_K | (kind), (unsigned)(value), yes, no)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (unsigned)(value))

static int install(struct sock_filter *filter, size_t count)
{
	const struct sock_fprog program = {(unsigned short)count, filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) : -1;
}

static int refuse_landlock(void)
{
	struct sock_filter filter[] = {
	    LOAD(nr),
	    JUMP(BPF_JGE, LANDLOCK_FIRST, 0, 2), JUMP(BPF_JGT, LANDLOCK_LAST, 1, 0), ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
	    ANSWER(SECCOMP_RET_ALLOW),
	};

	return install(filter, sizeof filter / sizeof *filter);
}

static int refuse_mounts(void)
{
	struct sock_filter filter[] = {
	    LOAD(nr), JUMP(BPF_JEQ, SYS_mount, 0, 1), ANSWER(SECCOMP_RET_ERRNO | EPERM), ANSWER(SECCOMP_RET_ALLOW),
	};

	return install(filter, sizeof filter / sizeof *filter);
}

static int refuse_namespaces(unsigned flags)
{
	struct sock_filter filter[] = {
	    LOAD(nr),
	    JUMP(BPF_JEQ, SYS_unshare, 2, 0), JUMP(BPF_JEQ, SYS_clone, 1, 0), ANSWER(SECCOMP_RET_ALLOW),
	    LOAD(args[0]), JUMP(BPF_JSET, flags, 0, 1), ANSWER(SECCOMP_RET_ERRNO | EPERM), ANSWER(SECCOMP_RET_ALLOW),
	};

	return install(filter, sizeof filter / sizeof *filter);
}

int main(int argc, char **argv)
{
	int i = 1, rc = 0;

	for (; i < argc && strncmp(argv[i], "--no-", 5) == 0 && rc == 0; i++)
		rc = strcmp(argv[i], "--no-landlock") == 0     ? refuse_landlock()
		     : strcmp(argv[i], "--no-mounts") == 0     ? refuse_mounts()
		     : strcmp(argv[i], "--no-namespaces") == 0 ? refuse_namespaces(NAMESPACES)
							       : refuse_namespaces(PID_NAMESPACES);
	if (rc == 0 && i < argc)
		execv(argv[i], argv + i);
	perror("restrict");
	return 127;
}
