/* sandbox - restricts what a reference can reach. The zygote (python/runner.py) loads this module as
 * libreftest_sandbox.so and calls it in this order:
 *
 *   sandbox_open          once, after the interpreter has found its packages and before torch is imported
 *   sandbox_before_fork   before each fork of a runner
 *   sandbox_after_fork    after the fork, in the zygote
 *   sandbox_enter         after the fork, in the runner, before any code of the reference
 *   sandbox_limit_memory, sandbox_limit_processor_time  in the runner, before it loads a reference
 *   sandbox_end           in the zygote, when a runner has ended
 *   sandbox_reap          in the zygote, after the runner was reaped
 *   sandbox_remove_folder when a runner without a /tmp of its own has ended
 *
 * sandbox_open moves the zygote to new user, mount, network, IPC and UTS namespaces. The zygote then sees only a
 * read-only selection of files: system libraries, the interpreter with its packages, and devices. Each runner gets a
 * PID and a mount namespace of its own, with its own /proc and /tmp; the size of /tmp is limited. Each runner also has
 * a Landlock ruleset, a seccomp filter and resource limits, and it has no capabilities.
 *
 * The layers overlap. If this machine refuses some layers, the others are still active. sandbox_layers returns the
 * active layers, and a caller must not rely on any other layer. This module is also linked into the program, because
 * `reftest doctor` tries every layer. A gap is something that a reference can do if layers are missing. The table of
 * gaps has a name and a sentence for each gap. docs/containment.md describes the gaps for users. */
#ifndef REFTEST_WORKERS_SANDBOX_SANDBOX_H
#define REFTEST_WORKERS_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SANDBOX_ABI = 3 };

/* The layers of the sandbox. Each layer is one bit. */
enum sandbox_layer {
	SANDBOX_USER = 1 << 0,              /* a user namespace of its own: the process has no rights over processes
					     * outside this namespace */
	SANDBOX_MOUNT = 1 << 1,             /* a mount namespace with only a read-only selection of files */
	SANDBOX_NETWORK = 1 << 2,           /* a network namespace without interfaces */
	SANDBOX_IPC = 1 << 3,               /* an IPC namespace */
	SANDBOX_UTS = 1 << 4,               /* a UTS namespace (host name) */
	SANDBOX_PID = 1 << 5,               /* a PID namespace for each runner */
	SANDBOX_PROC = 1 << 6,              /* a /proc that shows only the processes of this PID namespace */
	SANDBOX_TMP = 1 << 7,               /* a /tmp in memory, of limited size, for each runner */
	SANDBOX_NO_CAPABILITIES = 1 << 8,   /* no capabilities; programs that the runner starts cannot gain any */
	SANDBOX_LANDLOCK_FILES = 1 << 9,    /* Landlock (ABI 1) restricts the use of files */
	SANDBOX_LANDLOCK_NETWORK = 1 << 10, /* Landlock (ABI 4) refuses TCP */
	SANDBOX_LANDLOCK_SCOPE = 1 << 11,   /* Landlock (ABI 6) refuses signals and abstract sockets to processes
					     * outside the runner */
	SANDBOX_SECCOMP = 1 << 12,          /* a filter that refuses all system calls that no reference needs, and all
					     * sockets except local ones */
	SANDBOX_NO_SOCKETS = 1 << 13,       /* the filter also refuses local sockets; not used on a GPU */
	SANDBOX_PROCESS_LIMIT = 1 << 14,    /* a limit for the number of processes */
	SANDBOX_FILE_LIMIT = 1 << 15,       /* a limit for the size of a file */
	SANDBOX_MEMORY_LIMIT = 1 << 16,     /* a limit for the memory of each process; if memory runs out, the kernel
					     * ends these processes first */
	/* Limits for all processes of a runner together. The pool sets these limits, not this module
	 * (workers/pool/control_groups.h). */
	SANDBOX_MEMORY_GROUP = 1 << 17,     /* a limit for memory, including shared memory and temporary files in
					     * memory */
	SANDBOX_PROCESS_GROUP = 1 << 18,    /* a limit for the number of processes and threads */
	/* The filter refuses memory that does not belong to a process: shared memory without a file, and memfds. This
	 * layer is not used on a GPU. */
	SANDBOX_NO_SHARED_MEMORY = 1 << 19,
	/* The pool adds up the memory of all processes of a runner, and ends a runner that uses too much.
	 * sandbox_with_sum adds this layer. */
	SANDBOX_MEMORY_SUM = 1 << 20
};

enum { SANDBOX_LAYERS = 21, SANDBOX_ALL = (1 << SANDBOX_LAYERS) - 1 };

/* The layers that the pool provides, so sandbox_probe does not try them. */
enum { SANDBOX_OF_POOL = SANDBOX_MEMORY_GROUP | SANDBOX_PROCESS_GROUP | SANDBOX_MEMORY_SUM };

/* Adds SANDBOX_MEMORY_SUM to `layers` if these layers ensure that a reference cannot use much memory besides that of
 * the runner's processes, and that the runner's own /proc shows all of these processes. Otherwise removes it. */
uint32_t sandbox_with_sum(uint32_t layers);

/* Returns the name of a layer, such as "user_namespace". `layer` has one bit. */
const char *sandbox_layer_name(uint32_t layer);

/* Something that a reference may be able to do if layers are missing. */
struct sandbox_gap {
	const char *name;     /* a name such as "network", for JSON and for the option --require-containment */
	const char *sentence; /* a sentence such as "references can reach the network" */
	uint32_t closed_by;   /* one of these layers is enough to close the gap */
};

/* Returns gap number `index` (from 0) of the table, or NULL after the last one. */
const struct sandbox_gap *sandbox_gap(int index);
bool sandbox_gap_is_open(const struct sandbox_gap *gap, uint32_t layers);
/* Returns the gap with this name, or NULL. */
const struct sandbox_gap *sandbox_gap_named(const char *name);

struct sandbox; /* an opaque type; the process needs it until it ends, so no function frees it */

/* `paths` are the files and directories that the Python interpreter needs, such as sys.prefix and the packages. A
 * reference may read them, and also the files of the system. `hidden` are directories that a reference must not see:
 * first the dataset, then home directories. An entry of `paths` that contains a hidden directory is left out. The
 * dataset is also hidden if it is below a directory of the system, such as /usr. If `gpu` is true, the devices and
 * files of NVIDIA's driver are also readable. This process must have only one thread. Layers that the machine refuses
 * are left out. Returns NULL with a message if the machine refuses a layer that it has just granted in a trial; this
 * process is then unusable. */
struct sandbox *sandbox_open(const char *const *paths, int path_count, const char *const *hidden, int hidden_count,
			     int gpu, char *message, int message_size);
/* Returns the layers that are active in each runner. sandbox_open has found them in a trial. */
uint32_t sandbox_layers(const struct sandbox *sandbox);
/* Returns the folder for the runner's own temporary files: /tmp, or another folder if the interpreter is below /tmp. */
const char *sandbox_folder(const struct sandbox *sandbox);

/* After this call, the next fork of this process creates a runner in a new PID namespace. Returns the pid of the
 * process that keeps the namespace alive (the keeper), or 0 if runners have no PID namespace. Returns -1 with errno on
 * error. */
pid_t sandbox_before_fork(struct sandbox *sandbox);
/* After this call, forks create ordinary children again. Returns 0, or -1 with errno. */
int sandbox_after_fork(struct sandbox *sandbox);
/* In the new runner: adds the remaining layers, and returns all active layers. If runners have no /tmp of their own,
 * `folder` is the directory for temporary files. A layer that failed is missing in the result. The caller compares the
 * result with sandbox_layers, and ends the runner if a layer is missing. */
uint32_t sandbox_enter(struct sandbox *sandbox, const char *folder);
/* In the runner, before it loads a reference: limits the memory of each process of the runner. The limit is the current
 * memory of this process plus `bytes`. If nine tenths of the memory that is available on this machine are less than
 * `bytes`, they replace `bytes`. Returns by how many bytes the memory may grow, or -1 if the memory cannot be limited.
 * If `for_now` is true, a later call can raise the limit, and so can the process itself; use this only for references
 * whose source code cannot call setrlimit (python/isolation.py). On a GPU, nothing is limited, because the limit would
 * also count the address space that the driver reserves. */
int64_t sandbox_limit_memory(struct sandbox *sandbox, int64_t bytes, int for_now);
/* In the runner, before it loads a reference: limits the processor time that each process of the runner may use. This
 * process may use `seconds` seconds more than it has used until now. If `seconds` is 0, there is no limit. `for_now`
 * means the same as for sandbox_limit_memory. Returns 0, or -1 with errno. */
int sandbox_limit_processor_time(int64_t seconds, int for_now);
int sandbox_process_limit(void);        /* returns how many processes and threads a runner may have */
int64_t sandbox_available_memory(void); /* returns nine tenths of the memory that is available now; 0: unknown */
/* Kills all processes of a runner's PID namespace. `keeper` is the result of sandbox_before_fork; if it is 0, does
 * nothing. */
void sandbox_end(struct sandbox *sandbox, pid_t keeper);
/* Frees a PID namespace. Call this after sandbox_end and after the runner was reaped, because the call would otherwise
 * never return. */
void sandbox_reap(struct sandbox *sandbox, pid_t keeper);

/* Removes a directory and everything in it, as far as this process is permitted to. A reference may have changed
 * anything in it. */
void sandbox_remove_folder(const char *path);

/* Tries all layers in a child process and returns those that this machine grants. */
uint32_t sandbox_probe(bool gpu);

/* Returns SANDBOX_ABI. With this number, python/sandbox.py detects a library of another build. */
int sandbox_abi(void);

#endif
