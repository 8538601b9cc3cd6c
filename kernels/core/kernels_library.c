/* kernels_library - loads the kernels libraries with dlopen and checks that they belong to this build. Each library
 * must have the digest that make wrote into this program. Both libraries must have the same struct layout as the
 * program, and both must be built from the same sources. One run of make builds the program and the libraries. If a
 * library is from an older build, the error message says to run make. */
#include "kernels/core/kernels_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#include "library_digests.h"

static const char cpu_name[] = "libreftest_kernels.so", cuda_name[] = "libreftest_kernels_cuda.so";

/* Writes folder/name to `out`. Returns -1 if `out` is too small. */
static int join(const char *folder, const char *name, char *out, size_t size, struct err *err)
{
	if (snprintf(out, size, "%s/%s", folder, name) < (int)size)
		return 0;
	return err_set(err, "the path of the kernels library is too long: %.200s…", folder);
}

static int find_library(char *out, size_t size, struct err *err)
{
	static const char *const places[] = {"", "/../lib/reftest"};
	const char *given = getenv("REFTEST_KERNELS");
	char folder[PATH_MAX], place[PATH_MAX + 32];

	if (given != NULL && *given != '\0')
		return join(given, cpu_name, out, size, err);
	if (file_program_directory(folder, sizeof folder, err) != 0)
		return -1;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(place, sizeof place, "%s%s", folder, places[i]);
		if (join(place, cpu_name, out, size, err) != 0)
			return -1;
		if (access(out, F_OK) == 0)
			return 0;
	}
	return err_set(err, "%s is neither in %s nor in %s: run make, or set REFTEST_KERNELS to the folder that "
		"contains it", cpu_name,
		       folder, place);
}

/* Returns the address of `symbol` in a library that was loaded from `path`. If the library has no such symbol, unloads
 * it and returns NULL with a message in `err`. */
static const void *find(const char *path, const char *symbol, void **handle, struct err *err)
{
	const void *api = dlsym(*handle, symbol);

	if (api == NULL) {
		err_set(err, "%s is not a kernels library: it does not export %s", path, symbol);
		dlclose(*handle);
		*handle = NULL;
	}
	return api;
}

/* Loads the CPU library. Idle OpenMP threads of a judge must sleep, because the reference needs the cores. The variable
 * OMP_WAIT_POLICY makes them sleep. libgomp reads this variable only when it is loaded, which happens here. Afterwards,
 * the user's value is restored for the processes that this program starts. */
static void *load_with_sleeping_threads(const char *path, const struct digest_memory *memory, struct err *err)
{
	static const char setting[] = "OMP_WAIT_POLICY";
	const char *given = getenv(setting);
	char *before = given == NULL ? NULL : strdup(given);

	setenv(setting, "passive", 1);
	void *handle = sealed_library_open(path, KERNELS_LIBRARY_DIGEST, memory, err);

	if (before != NULL)
		setenv(setting, before, 1);
	else
		unsetenv(setting);
	free(before);
	return handle;
}

int kernels_open(struct kernels *kernels, const struct digest_memory *memory, struct err *err)
{
	*kernels = (struct kernels){.cuda_library = -1};
	if (find_library(kernels->path, sizeof kernels->path, err) != 0)
		return -1;
	kernels->handle = load_with_sleeping_threads(kernels->path, memory, err);
	if (kernels->handle == NULL)
		return -1;
	kernels->api = find(kernels->path, "reftest_kernels", &kernels->handle, err);
	if (kernels->api == NULL)
		return -1;
	if (kernels->api->abi == KERNELS_ABI)
		return 0;
	err_set(err, "%s is from another build (version %d, but this program needs %d): run make", kernels->path,
	        kernels->api->abi, KERNELS_ABI);
	kernels_close(kernels);
	return -1;
}

static void close_cuda(struct kernels *kernels)
{
	if (kernels->cuda_handle != NULL)
		dlclose(kernels->cuda_handle);
	kernels->cuda_handle = NULL;
	kernels->cuda = NULL;
}

int kernels_seal_cuda(struct kernels *kernels, const struct digest_memory *memory, struct err *err)
{
	const char *slash = strrchr(kernels->path, '/');
	char folder[PATH_MAX];

	if (kernels->cuda_library >= 0)
		return 0;
	snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 0 : (int)(slash - kernels->path), kernels->path);
	if (join(folder, cuda_name, kernels->cuda_path, sizeof kernels->cuda_path, err) != 0)
		return -1;
	if (access(kernels->cuda_path, F_OK) != 0)
		return err_set(err, "%s does not exist: run make on a machine with nvcc", kernels->cuda_path);
	kernels->cuda_library = sealed_library_copy(kernels->cuda_path, CUDA_LIBRARY_DIGEST, memory, err);
	return kernels->cuda_library < 0 ? -1 : 0;
}

int kernels_open_cuda(struct kernels *kernels, struct err *err)
{
	const struct kernels_cuda_api *api;

	if (kernels->cuda != NULL)
		return 0;
	if (kernels_seal_cuda(kernels, NULL, err) != 0)
		return -1;
	kernels->cuda_handle = sealed_library_load(kernels->cuda_library, kernels->cuda_path, err);
	if (kernels->cuda_handle == NULL)
		return -1;
	api = find(kernels->cuda_path, "reftest_kernels_cuda", &kernels->cuda_handle, err);
	if (api == NULL)
		return -1;
	if (api->abi != KERNELS_ABI || strcmp(api->digest, kernels->api->digest) != 0) {
		close_cuda(kernels);
		return err_set(err, "%s and %s are of different builds: run make", kernels->cuda_path, kernels->path);
	}
	kernels->cuda = api;
	return 0;
}

void kernels_close(struct kernels *kernels)
{
	close_cuda(kernels);
	if (kernels->handle != NULL)
		dlclose(kernels->handle);
	kernels->handle = NULL;
	kernels->api = NULL;
	if (kernels->cuda_library >= 0)
		close(kernels->cuda_library);
	kernels->cuda_library = -1;
}
