/* library - dlopen, and the checks that a library is of this build: of the same layout of structs, and for the CUDA one
 * of the same sources as the CPU one. The loader and the libraries come from one make; a stale one is an error with the
 * remedy, never a guess. */
#include "kernels/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static const char cpu_name[] = "libreftest_kernels.so", cuda_name[] = "libreftest_kernels_cuda.so";

/* folder/name into `out`; -1 if it does not fit. */
static int join(const char *folder, const char *name, char *out, size_t size, struct err *err)
{
	if (snprintf(out, size, "%s/%s", folder, name) < (int)size)
		return 0;
	return err_set(err, "%.200s…: the path of the kernels library is too long", folder);
}

/* The path of the CPU library into `out`: where $REFTEST_KERNELS says, else beside the binary, else where make install
 * puts it. */
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
	return err_set(err, "%s is neither in %s nor in %s: run make, or name its folder in REFTEST_KERNELS", cpu_name,
		       folder, place);
}

/* The face that `path` exports under `symbol`, and its handle; NULL with the sentence. */
static const void *load(const char *path, const char *symbol, void **handle, struct err *err)
{
	const void *face;

	*handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (*handle == NULL) {
		err_set(err, "%s cannot be loaded (%s)", path, dlerror());
		return NULL;
	}
	face = dlsym(*handle, symbol);
	if (face == NULL) {
		err_set(err, "%s is no kernels library: it has no %s", path, symbol);
		dlclose(*handle);
		*handle = NULL;
	}
	return face;
}

int kernels_open(struct kernels *kernels, struct err *err)
{
	*kernels = (struct kernels){0};
	if (find_library(kernels->path, sizeof kernels->path, err) != 0)
		return -1;
	kernels->face = load(kernels->path, "reftest_kernels", &kernels->handle, err);
	if (kernels->face == NULL)
		return -1;
	if (kernels->face->abi == KERNELS_ABI)
		return 0;
	err_set(err, "%s is of another build (version %d, this program needs %d): run make", kernels->path,
	        kernels->face->abi, KERNELS_ABI);
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

int kernels_open_cuda(struct kernels *kernels, struct err *err)
{
	const char *slash = strrchr(kernels->path, '/');
	const struct kernels_cuda_face *face;
	char folder[PATH_MAX];

	if (kernels->cuda != NULL)
		return 0;
	snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 0 : (int)(slash - kernels->path), kernels->path);
	if (join(folder, cuda_name, kernels->cuda_path, sizeof kernels->cuda_path, err) != 0)
		return -1;
	if (access(kernels->cuda_path, F_OK) != 0)
		return err_set(err, "%s is not there: make builds it where it finds nvcc", kernels->cuda_path);
	face = load(kernels->cuda_path, "reftest_kernels_cuda", &kernels->cuda_handle, err);
	if (face == NULL)
		return -1;
	if (face->abi != KERNELS_ABI || strcmp(face->digest, kernels->face->digest) != 0) {
		close_cuda(kernels);
		return err_set(err, "%s and %s are of different builds: run make", kernels->cuda_path, kernels->path);
	}
	kernels->cuda = face;
	return 0;
}

void kernels_close(struct kernels *kernels)
{
	close_cuda(kernels);
	if (kernels->handle != NULL)
		dlclose(kernels->handle);
	kernels->handle = NULL;
	kernels->face = NULL;
}
