/* sandbox_seccomp - installs the filters for system calls. If references need a call that is refused, change the tables
 * of this file, docs/containment.md, and the reference in tests/hostile/references that tries the call.
 *
 * The filters refuse system calls that torch, CUDA, Triton and compilers never make. A refused call returns an error
 * that a caller can handle. The tables list refused calls, not allowed calls, because each release of a library may
 * make other calls. A call that is newer than the tables fails with ENOSYS, as if the kernel did not have it. The
 * filters are written as tables of instructions, so that no library is needed to build them.
 *
 * There are two filters. The zygote installs the larger filter once, and all runners inherit it. This saves time,
 * because it takes long to install a filter: the kernel computes the filter's result for every system call. Each runner
 * adds the smaller filter, which refuses the calls that only the zygote or the sandbox needs. */
#include "workers/sandbox/sandbox_internal.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

enum {
	NEWEST_CALL = 466, /* the number of removexattrat (Linux 6.13); newer calls were not examined */
	OTHER_ABI = 1 << 30, /* on x86-64 this bit marks the calls of the x32 ABI */
	NO_KIND = -1, IOPRIO_PROCESS = 1,
	TERMINAL_INPUT = 0x5412, TERMINAL_SELECTION = 0x541c, /* ioctls that simulate input to a terminal, such as a
							       * typed command */
	NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
};

/* The system calls with which the zygote and each new runner build the sandbox. */
static const int refused_to_runners[] = {SYS_unshare, SYS_setns, SYS_mount, SYS_umount2};

/* System calls that are refused in the zygote and in all runners, whatever their arguments are. A call without a name
 * in older headers is given by its number, which is the same on all architectures. */
static const int refused[] = {
    /* calls that act on other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd, SYS_process_madvise,
    SYS_process_mrelease, SYS_migrate_pages, SYS_move_pages,
    /* memory and messages that other processes can find by their number or name */
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_semget, SYS_semop, SYS_semctl,
    SYS_semtimedop, SYS_mq_open, SYS_mq_unlink,
    /* namespaces and mounts */
    SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, 457 /* statmount */, 458 /* listmount */,
    SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_fanotify_init, SYS_fanotify_mark, SYS_quotactl, SYS_quotactl_fd,
    SYS_inotify_init1, SYS_inotify_add_watch, /* Landlock does not prevent a process from watching directories that it
					       * may not read */
    /* parts of the kernel that no reference needs, and that had many security bugs in the past */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_memfd_secret, SYS_personality, SYS_lookup_dcookie,
    /* calls that change the machine */
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot, SYS_swapon,
    SYS_swapoff, SYS_acct, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
    SYS_sethostname, SYS_setdomainname, SYS_vhangup, SYS_nfsservctl,
#if defined(__x86_64__)
    SYS_uselib, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_create_module, SYS_sysfs, SYS__sysctl,
    SYS_inotify_init,
#endif
};

enum {
	REFUSED = sizeof refused / sizeof *refused,
	REFUSED_TO_RUNNERS = sizeof refused_to_runners / sizeof *refused_to_runners
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), yes, no)
#define GREATER(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)(value), yes, no)
#define ANY_BIT(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)(value), yes, no)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (unsigned)(value))
#define REFUSE ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define UNKNOWN ANSWER(SECCOMP_RET_ERRNO | ENOSYS)
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)

#ifdef THIS_ARCHITECTURE

/* no_sockets refuses socket(2), but not socketpair(2), which makes pairs of connected sockets. It is used only on the
 * CPU. On a GPU, local_sockets is used, because CUDA's driver opens a socket of the family AF_UNIX in each process. */
static const struct sock_filter no_sockets[] = {EQUAL(SYS_socket, 0, 1), REFUSE};
static const struct sock_filter local_sockets[] = {
    EQUAL(SYS_socket, 0, 4), LOAD(args[0]), EQUAL(AF_UNIX, 0, 1), ALLOW, REFUSE,
};

/* The beginning of both filters: the checks for calls of another architecture, and for calls that are newer than the
 * tables. */
static const struct sock_filter before[] = {
    LOAD(arch), EQUAL(THIS_ARCHITECTURE, 1, 0), UNKNOWN, LOAD(nr),
    ANY_BIT(OTHER_ABI, 1, 0), GREATER(NEWEST_CALL, 0, 1), UNKNOWN,
};

/* Refuses memfd_create, and mappings of shared memory without a file, because the memory limit of a process does not
 * count such memory. Is not used on a GPU, because CUDA's driver and its libraries use such memory. */
static const struct sock_filter no_shared_memory[] = {
    EQUAL(SYS_memfd_create, 0, 1), REFUSE,
    EQUAL(SYS_mmap, 0, 5), LOAD(args[3]), ANY_BIT(MAP_ANONYMOUS, 0, 2), ANY_BIT(MAP_SHARED, 0, 1), REFUSE, ALLOW,
};

/* Calls that are refused only with certain arguments. clone3 fails with ENOSYS, because its flags are in memory, which
 * a filter cannot read; the C library then calls clone. All arguments that are examined here are ints, so it is enough
 * to load the lower 32 bits of each. */
static const struct sock_filter by_argument[] = {
    EQUAL(SYS_clone3, 0, 1), UNKNOWN,
    EQUAL(SYS_clone, 0, 4), LOAD(args[0]), ANY_BIT(NAMESPACES, 0, 1), REFUSE, ALLOW,
    EQUAL(SYS_prlimit64, 0, 4), LOAD(args[0]), EQUAL(0, 1, 0), REFUSE, ALLOW, /* process 0 is the calling process */
    EQUAL(SYS_ioctl, 0, 5), LOAD(args[1]), EQUAL(TERMINAL_INPUT, 1, 0), EQUAL(TERMINAL_SELECTION, 0, 1), REFUSE, ALLOW,
};

/* Calls that a process may use only on itself. Landlock and user namespaces do not prevent a process from slowing down
 * other processes of its user with these calls. The argument that names the process must be 0, which means the calling
 * process. If `kind` is NO_KIND, this is the first argument of the call. Otherwise it is the second argument, and the
 * first argument must be `kind`, which says that the second argument names a process. */
static const struct own_call {
	int call, kind;
} own_calls[] = {
    {SYS_sched_setscheduler, NO_KIND}, {SYS_sched_setparam, NO_KIND}, {SYS_sched_setattr, NO_KIND},
    {SYS_sched_setaffinity, NO_KIND}, {SYS_setpriority, PRIO_PROCESS}, {SYS_ioprio_set, IOPRIO_PROCESS},
};

enum { OWN_CALLS = sizeof own_calls / sizeof *own_calls };

enum { MOST_INSTRUCTIONS = 256 };

struct program {
	struct sock_filter filter[MOST_INSTRUCTIONS];
	int count;
};

static void add(struct program *program, const struct sock_filter *instructions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		program->filter[program->count++] = instructions[i];
}

#define ADD(program, instructions) add(program, instructions, sizeof(instructions) / sizeof *(instructions))

static void add_own_call(struct program *program, const struct own_call *own)
{
	const struct sock_filter process[] = {EQUAL(own->call, 0, 4), LOAD(args[0]), EQUAL(0, 1, 0), REFUSE, ALLOW};
	const struct sock_filter kind_and_process[] = {
	    EQUAL(own->call, 0, 6), LOAD(args[0]), EQUAL(own->kind, 0, 2), LOAD(args[1]), EQUAL(0, 1, 0), REFUSE, ALLOW,
	};

	if (own->kind == NO_KIND)
		ADD(program, process);
	else
		ADD(program, kind_and_process);
}

static void refuse(struct program *program, const int *calls, int count)
{
	for (int i = 0; i < count; i++)
		add(program, (const struct sock_filter[]){EQUAL(calls[i], 0, 1), REFUSE}, 2);
}

_Static_assert(sizeof before / sizeof *before + 2 * REFUSED + 1 <= MOST_INSTRUCTIONS, "the zygote's filter fits");
_Static_assert((sizeof before + sizeof by_argument + sizeof local_sockets + sizeof no_shared_memory) / sizeof *before + 7 * OWN_CALLS +
			       2 * REFUSED_TO_RUNNERS + 1 <= MOST_INSTRUCTIONS, "the runners' filter fits");

static bool install(struct program *program)
{
	add(program, (const struct sock_filter[]){ALLOW}, 1);

	const struct sock_fprog given = {(unsigned short)program->count, program->filter};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &given) == 0;
}

bool seccomp_apply_to_zygote(void)
{
	struct program program = {.count = 0};

	ADD(&program, before);
	refuse(&program, refused, REFUSED);
	return install(&program);
}

uint32_t seccomp_apply(bool gpu)
{
	struct program program = {.count = 0};

	ADD(&program, before);
	ADD(&program, by_argument);
	for (int i = 0; i < OWN_CALLS; i++)
		add_own_call(&program, &own_calls[i]);
	refuse(&program, refused_to_runners, REFUSED_TO_RUNNERS);
	if (gpu) {
		ADD(&program, local_sockets);
	} else {
		ADD(&program, no_sockets);
		ADD(&program, no_shared_memory);
	}
	if (!install(&program))
		return 0;
	return gpu ? SANDBOX_SECCOMP : SANDBOX_SECCOMP | SANDBOX_NO_SOCKETS | SANDBOX_NO_SHARED_MEMORY;
}

#else

bool seccomp_apply_to_zygote(void)
{
	return false;
}

uint32_t seccomp_apply(bool gpu)
{
	(void)gpu; /* the system calls of this architecture were not examined, so there is no filter */
	return 0;
}

#endif
