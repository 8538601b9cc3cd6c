/* sandbox - restricts what a reference can reach. The zygote (python/runner.py) loads this module as
 * libreftest_sandbox.so and calls it in this order:
 *
 *   sandbox_open          once, after the interpreter knows its packages and before torch is imported
 *   sandbox_before_fork   before each fork of a runner
 *   sandbox_after_fork    after the fork, in the zygote
 *   sandbox_enter         after the fork, in the runner, before any code of the reference
 *   sandbox_limit_memory, sandbox_limit_processor_time  in the runner, before it loads a reference
 *   sandbox_end           in the zygote, when a runner has ended
 *   sandbox_reap          in the zygote, after the runner was reaped
 *   sandbox_remove_folder when a runner without an own /tmp has ended
 *
 * sandbox_open moves the zygote to its own user, mount, network, IPC and UTS namespaces. The only files that it then
 * sees are a read-only selection: system libraries, the interpreter with its packages, and devices. Each runner gets
 * its own PID and mount namespace, with its own /proc and an own /tmp of limited size. Each runner also has a Landlock
 * ruleset, a seccomp filter and resource limits, and it has no capabilities.
 *
 * The layers overlap. If this machine refuses some layers, the rest still hold. `layers` says which layers hold; no
 * caller may assume more. The program also links this module, because `reftest doctor` tries every layer. A gap is
 * something that a reference can do if layers are missing; the table of gaps has a name and a sentence for each.
 * docs/containment.md describes the result for users. */
#ifndef REFTEST_WORKERS_SANDBOX_SANDBOX_H
#define REFTEST_WORKERS_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SANDBOX_ABI = 3 };

/* The layers, as bits. */
enum sandbox_layer {
	SANDBOX_USER = 1 << 0,              /* a separate user namespace: no rights over processes outside */
	SANDBOX_MOUNT = 1 << 1,             /* a mount namespace whose files are the read-only selection */
	SANDBOX_NETWORK = 1 << 2,           /* a network namespace without interfaces */
	SANDBOX_IPC = 1 << 3,               /* an IPC namespace */
	SANDBOX_UTS = 1 << 4,               /* a UTS namespace (host name) */
	SANDBOX_PID = 1 << 5,               /* a PID namespace for each runner */
	SANDBOX_PROC = 1 << 6,              /* a /proc that shows only the processes of this PID namespace */
	SANDBOX_TMP = 1 << 7,               /* a /tmp in memory for each runner, of limited size */
	SANDBOX_NO_CAPABILITIES = 1 << 8,   /* no capabilities, and no program that is started can gain any */
	SANDBOX_LANDLOCK_FILES = 1 << 9,    /* Landlock: files (ABI 1) */
	SANDBOX_LANDLOCK_NETWORK = 1 << 10, /* Landlock: TCP (ABI 4) */
	SANDBOX_LANDLOCK_SCOPE = 1 << 11,   /* Landlock: no signals or abstract sockets to processes outside (ABI 6) */
	SANDBOX_SECCOMP = 1 << 12,          /* a filter that refuses all system calls that no reference needs, and all
					     * sockets except local ones */
	SANDBOX_NO_SOCKETS = 1 << 13,       /* the filter refuses local sockets, too; not used on a GPU */
	SANDBOX_PROCESS_LIMIT = 1 << 14,    /* a limit for the number of processes */
	SANDBOX_FILE_LIMIT = 1 << 15,       /* a limit for the size of a file */
	SANDBOX_MEMORY_LIMIT = 1 << 16,     /* a limit for the memory of each process; if memory runs out, the kernel
					     * ends these processes first */
	/* Limits for all processes of a runner together. The pool sets them, and not this module
	 * (workers/pool/control_groups.h). */
	SANDBOX_MEMORY_GROUP = 1 << 17,     /* memory, including shared memory and temporary files in memory */
	SANDBOX_PROCESS_GROUP = 1 << 18,    /* of processes and threads */
	/* The filter refuses memory that does not belong to a process: shared memory without a file, and memfds. This
	 * layer is not used on a GPU. */
	SANDBOX_NO_SHARED_MEMORY = 1 << 19,
	/* The pool adds up the memory of all processes of a runner, and ends a runner that uses too much. The pool adds
	 * this layer by sandbox_with_sum. */
	SANDBOX_MEMORY_SUM = 1 << 20
};

enum { SANDBOX_LAYERS = 21, SANDBOX_ALL = (1 << SANDBOX_LAYERS) - 1 };

/* The layers that the pool adds; sandbox_probe does not try them. */
enum { SANDBOX_OF_POOL = SANDBOX_MEMORY_GROUP | SANDBOX_PROCESS_GROUP | SANDBOX_MEMORY_SUM };

/* Adds SANDBOX_MEMORY_SUM to `layers` if these layers make a complete sum of a runner's memory possible. For this, a
 * separate /proc must show all processes of the runner, and every other place for data must be limited. */
uint32_t sandbox_with_sum(uint32_t layers);

/* Returns the name of a layer, "user_namespace"; `layer` is one bit. */
const char *sandbox_layer_name(uint32_t layer);

/* What a reference may be able to do if layers are missing. */
struct sandbox_gap {
	const char *name;     /* "network", as in JSON and in the option --require-containment */
	const char *sentence; /* "references can reach the network" */
	uint32_t closed_by;   /* the gap is closed if at least one of these layers holds */
};

/* Returns the gap number `index` of the table, or NULL after the last. */
const struct sandbox_gap *sandbox_gap(int index);
bool sandbox_gap_is_open(const struct sandbox_gap *gap, uint32_t layers);
/* Returns the gap with this name, or NULL. */
const struct sandbox_gap *sandbox_gap_named(const char *name);

struct sandbox; /* opaque; it lives as long as its process */

/* `paths` are the files and directories that a reference may read in addition to the system's: the interpreter's
 * prefixes and packages. `hidden` are directories that no entry of `paths` may contain: first the dataset, then home
 * directories. Entries of `paths` that contain such a directory are left out. The dataset is also hidden if it is below
 * a directory of the system, such as /usr. `gpu`: the devices and files of NVIDIA's driver are readable, too. This
 * process must have one thread. Layers that the machine refuses are left out. Returns NULL with a message if the
 * machine broke a layer that it had granted a moment before; this process is then unusable. */
struct sandbox *sandbox_open(const char *const *paths, int path_count, const char *const *hidden, int hidden_count,
			     int gpu, char *message, int message_size);
/* The layers that hold for runners, found by a trial in sandbox_open. */
uint32_t sandbox_layers(const struct sandbox *sandbox);
/* The folder of each runner's own temporary files: /tmp, or another folder if the interpreter is below /tmp. */
const char *sandbox_folder(const struct sandbox *sandbox);

/* Makes the next fork of this process create a runner in a new PID namespace. Returns the pid of the process that keeps
 * the namespace alive, or 0 if runners have no PID namespace. Returns -1 with errno on error. */
pid_t sandbox_before_fork(struct sandbox *sandbox);
/* Makes later forks create ordinary children. Returns 0, or -1 with errno. */
int sandbox_after_fork(struct sandbox *sandbox);
/* In the new runner: adds the remaining layers and returns those that hold. `folder` is a directory for temporary
 * files, used if runners have no /tmp of their own. Layers that failed are missing in the result. The caller compares
 * the result with sandbox_layers, and ends the runner if a layer is missing. */
uint32_t sandbox_enter(struct sandbox *sandbox, const char *folder);
/* In the runner, before it loads a reference: limits the memory of each process of the runner to the current memory of
 * this process plus `bytes`. The addition is at most nine tenths of the memory that is available on this machine.
 * Returns the bytes that may be added, or -1 if they cannot be limited. If `for_now` is true, a later call may raise
 * the limit, and so may the process itself; use this only for references whose source code cannot call setrlimit
 * (python/isolation.py). On a GPU nothing is limited, because the limit would also count the address space that the
 * driver reserves. */
int64_t sandbox_limit_memory(struct sandbox *sandbox, int64_t bytes, int for_now);
/* In the runner, before it loads a reference: limits the processor time that each process of the runner may use. This
 * process may use `seconds` more than it has used until now; 0: no limit. `for_now` means the same as for
 * sandbox_limit_memory. Returns 0, or -1 with errno. */
int sandbox_limit_processor_time(int64_t seconds, int for_now);
int sandbox_process_limit(void);        /* the number of processes and threads that a runner may have */
int64_t sandbox_available_memory(void); /* nine tenths of the memory that is available now; 0: unknown */
/* Kills all processes of a runner's PID namespace. `keeper` is the result of sandbox_before_fork; 0: does nothing. */
void sandbox_end(struct sandbox *sandbox, pid_t keeper);
/* Frees a PID namespace. Call this after sandbox_end, and after the runner was reaped: earlier, the call would never
 * return. */
void sandbox_reap(struct sandbox *sandbox, pid_t keeper);

/* Removes a directory with everything in it that this process may remove. A reference may have changed anything in
 * it. */
void sandbox_remove_folder(const char *path);

/* Tries all layers in a child process and returns those that hold. */
uint32_t sandbox_probe(bool gpu);

/* Returns SANDBOX_ABI, by which python/sandbox.py detects the library of another build. */
int sandbox_abi(void);

#endif
