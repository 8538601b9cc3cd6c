/* sandbox_gaps - the tables of layers and of gaps. A gap is something that a reference can do if layers are missing. */
#include "workers/sandbox/sandbox.h"

#include <stddef.h>
#include <string.h>

static const struct {
	uint32_t layer;
	const char *name;
} layers[] = {
    {SANDBOX_USER, "user_namespace"},
    {SANDBOX_MOUNT, "mount_namespace"},
    {SANDBOX_NETWORK, "network_namespace"},
    {SANDBOX_IPC, "ipc_namespace"},
    {SANDBOX_UTS, "uts_namespace"},
    {SANDBOX_PID, "pid_namespace"},
    {SANDBOX_PROC, "own_proc"},
    {SANDBOX_TMP, "own_tmp"},
    {SANDBOX_NO_CAPABILITIES, "no_capabilities"},
    {SANDBOX_LANDLOCK_FILES, "landlock_files"},
    {SANDBOX_LANDLOCK_NETWORK, "landlock_network"},
    {SANDBOX_LANDLOCK_SCOPE, "landlock_scope"},
    {SANDBOX_SECCOMP, "seccomp"},
    {SANDBOX_NO_SOCKETS, "no_sockets"},
    {SANDBOX_PROCESS_LIMIT, "process_limit"},
    {SANDBOX_FILE_LIMIT, "file_limit"},
    {SANDBOX_MEMORY_LIMIT, "memory_limit"},
    {SANDBOX_MEMORY_GROUP, "memory_group"},
    {SANDBOX_PROCESS_GROUP, "process_group"},
    {SANDBOX_NO_SHARED_MEMORY, "no_shared_memory"},
    {SANDBOX_MEMORY_SUM, "memory_sum"},
};

_Static_assert(sizeof layers / sizeof *layers == SANDBOX_LAYERS, "each layer has a name");

static const struct sandbox_gap gaps[] = {
    {"files", "references can read and change files of your user", SANDBOX_MOUNT | SANDBOX_LANDLOCK_FILES},
    /* Landlock can prevent a process from opening a file, but not from reading or changing the file's attributes. */
    {"attributes", "references can see and change the mode, the owner and the times of files of your user", SANDBOX_MOUNT},
    {"network", "references can reach the network", SANDBOX_NETWORK | SANDBOX_SECCOMP},
    {"local_services", "references can use local services of your user through their sockets", SANDBOX_MOUNT | SANDBOX_NO_SOCKETS},
    {"signals", "references can end and stop other processes of your user, including reftest", SANDBOX_PID | SANDBOX_LANDLOCK_SCOPE},
    /* A reference in a user namespace or a Landlock domain of its own cannot read the memory of processes outside
     * it. */
    {"process_memory", "references can read the memory of other processes of your user",
     SANDBOX_USER | SANDBOX_LANDLOCK_FILES},
    {"process_list", "references can list the processes of this machine", SANDBOX_PROC | SANDBOX_LANDLOCK_FILES},
    {"ipc", "references can use System V memory and message queues of other processes", SANDBOX_IPC | SANDBOX_SECCOMP},
    {"capabilities", "references keep the capabilities of your user", SANDBOX_NO_CAPABILITIES},
    {"kernel", "references can call every interface of the kernel", SANDBOX_SECCOMP},
    {"processes", "references can start processes without limit", SANDBOX_PROCESS_LIMIT | SANDBOX_PROCESS_GROUP},
    {"disk", "references can fill the disk with temporary files", SANDBOX_TMP},
    {"memory", "references can use all of this machine's memory", SANDBOX_MEMORY_SUM | SANDBOX_MEMORY_GROUP},
};

uint32_t sandbox_with_sum(uint32_t held)
{
	const uint32_t needed = SANDBOX_PID | SANDBOX_PROC | SANDBOX_TMP | SANDBOX_MEMORY_LIMIT | SANDBOX_NO_SHARED_MEMORY;

	return (held & needed) == needed ? held | SANDBOX_MEMORY_SUM : held & ~(uint32_t)SANDBOX_MEMORY_SUM;
}

const char *sandbox_layer_name(uint32_t layer)
{
	for (size_t i = 0; i < SANDBOX_LAYERS; i++)
		if (layers[i].layer == layer)
			return layers[i].name;
	return NULL;
}

const struct sandbox_gap *sandbox_gap(int index)
{
	return index >= 0 && (size_t)index < sizeof gaps / sizeof *gaps ? &gaps[index] : NULL;
}

bool sandbox_gap_is_open(const struct sandbox_gap *gap, uint32_t held)
{
	return (gap->closed_by & held) == 0;
}

const struct sandbox_gap *sandbox_gap_named(const char *name)
{
	for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
		if (strcmp(gaps[i].name, name) == 0)
			return &gaps[i];
	return NULL;
}
