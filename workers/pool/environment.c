#include "workers/pool/environment.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* The processes that import torch and run references get only the variables that they need. Every other variable is
 * removed, because it could change a reference's results without changing the fingerprint. Examples of removed
 * variables are PYTHON… (other modules) and TORCH_…, CUBLAS_…, NVIDIA_TF32_OVERRIDE, MKL_…, ONEDNN_…,
 * ATEN_CPU_CAPABILITY, OMP_… (different arithmetic). */
static const char *const reference_environment[] = {
    "PATH=", "LD_LIBRARY_PATH=", "LD_PRELOAD=", /* where programs and libraries are found */
    "HOME=", "TMPDIR=", "XDG_CACHE_HOME=",      /* where kernel compilers keep their caches */
    "CUDA_HOME=", "CUDA_PATH=", "CUDA_CACHE_PATH=", "CUDA_CACHE_DISABLE=", "TRITON_CACHE_DIR=", /* for compilers */
    /* These variables choose the GPU, whose class is part of every fingerprint. */
    "CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "NVIDIA_VISIBLE_DEVICES=",
    /* These variables configure hardware queues, module loading and memory allocation on the GPU. */
    "CUDA_DEVICE_MAX_CONNECTIONS=", "CUDA_MODULE_LOADING=", "PYTORCH_CUDA_ALLOC_CONF=",
    "CUDA_MPS_PIPE_DIRECTORY=", "CUDA_MPS_LOG_DIRECTORY=", "CONDA_PREFIX=", /* MPS; the installation of Python */
    "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "REFTEST_", /* for reftest and its tests */
};

/* These environment variables have a fixed value in every reference's process. Text is UTF-8. Python's sets of
 * strings must have the same order in every process. OpenMP threads must sleep while they wait: spinning threads
 * would slow down the judge, which works while a reference runs. With MKL_CBWR, Intel's MKL, with which torch
 * multiplies on a CPU, adds in the same order in every call. Without this variable the order is not fixed (manual of
 * MKL, "Specifying Code Branches"). */
static const char *const reference_settings[] = {"LC_ALL=C.UTF-8", "PYTHONHASHSEED=0", "PYTHONUTF8=1",
						 "OMP_WAIT_POLICY=passive", "MKL_CBWR=AUTO"};

static bool for_references(const char *variable)
{
	for (size_t i = 0; i < sizeof reference_environment / sizeof *reference_environment; i++)
		if (strncmp(variable, reference_environment[i], strlen(reference_environment[i])) == 0)
			return true;
	return false;
}

char **environment_of_references(struct arena *arena)
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
