/* restrict - runs a program as if the kernel or a container did not allow some of the system calls that reftest's
 * sandbox uses. Installs a seccomp filter that refuses these system calls, and executes the program.
 *
 *   restrict [--no-landlock] [--no-namespaces] [--no-pid-namespaces] [--no-mounts] [--container] PROGRAM [ARGUMENT…]
 *
 * Each option imitates a certain system. --no-landlock: a kernel without Landlock. --no-namespaces: a container that
 * may create no namespaces. --no-pid-namespaces: a device whose driver does not work in a PID namespace. --no-mounts: a
 * container that may create namespaces but mount nothing, so that the /proc of the machine stays visible. --container:
 * a container; this option refuses the system calls that the default filter of container programs refuses if a process
 * lacks CAP_SYS_ADMIN. */
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

/* Refuses the system calls in `list`, and clone() if it would create a namespace. */
static int refuse_as_containers_do(void)
{
	static const int list[] = {
	    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_open_tree, SYS_move_mount, SYS_fsopen,
	    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
	    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_open_by_handle_at, SYS_quotactl, SYS_kexec_load,
	    SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot, SYS_swapon, SYS_swapoff,
	    SYS_acct, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_io_uring_setup, SYS_io_uring_enter,
	    SYS_io_uring_register,
	};
	enum { CALLS = sizeof list / sizeof *list };
	struct sock_filter filter[2 * CALLS + 2] = {LOAD(nr)};

	for (size_t i = 0; i < CALLS; i++) {
		filter[1 + 2 * i] = (struct sock_filter)JUMP(BPF_JEQ, list[i], 0, 1);
		filter[2 + 2 * i] = (struct sock_filter)ANSWER(SECCOMP_RET_ERRNO | EPERM);
	}
	filter[2 * CALLS + 1] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	return install(filter, sizeof filter / sizeof *filter) == 0 ? refuse_namespaces(NAMESPACES) : -1;
}

int main(int argc, char **argv)
{
	int i = 1, rc = 0;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0 && rc == 0; i++)
		rc = strcmp(argv[i], "--no-landlock") == 0     ? refuse_landlock()
		     : strcmp(argv[i], "--no-mounts") == 0     ? refuse_mounts()
		     : strcmp(argv[i], "--container") == 0     ? refuse_as_containers_do()
		     : strcmp(argv[i], "--no-namespaces") == 0 ? refuse_namespaces(NAMESPACES)
							       : refuse_namespaces(PID_NAMESPACES);
	if (rc == 0 && i < argc)
		execv(argv[i], argv + i);
	perror("restrict");
	return 127;
}
