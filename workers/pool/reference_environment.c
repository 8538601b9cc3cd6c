#include "workers/pool/reference_environment.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* The processes that import torch and run references get only the environment variables that they need. Every other
 * variable is removed, because it could change a reference's results without changing the fingerprint. For example,
 * PYTHON… could load other modules, and TORCH_…, CUBLAS_…, NVIDIA_TF32_OVERRIDE, MKL_…, ONEDNN_…, ATEN_CPU_CAPABILITY
 * and OMP_… could change the arithmetic. */
static const struct variable {
	const char *name; /* a name and "=", or the beginning of several names */
	bool counts;      /* the value may change what a reference computes, so the variable is part of the subject of a
			   * verdict (the part of the fingerprint that says what is verified) */
} reference_environment[] = {
    /* These variables say where programs and libraries are found. LD_PRELOAD and LD_LIBRARY_PATH are part of the subject
     * of a verdict, because a library that they name may replace any function: for example, those of libm or of the
     * OpenMP library. The values of the other variables need not be part of the subject, because every fingerprint has
     * the versions of torch, CUDA and Python that these variables select. */
    {"PATH=", false}, {"LD_LIBRARY_PATH=", true}, {"CONDA_PREFIX=", false}, {"LD_PRELOAD=", true},
    {"HOME=", false}, {"TMPDIR=", false}, {"XDG_CACHE_HOME=", false}, /* replaced by the runner's own folder */
    /* compilers need these variables */
    {"CUDA_HOME=", false}, {"CUDA_PATH=", false}, {"CUDA_CACHE_PATH=", false}, {"CUDA_CACHE_DISABLE=", false},
    {"TRITON_CACHE_DIR=", false},
    /* These variables choose the GPU, whose class is part of every fingerprint. */
    {"CUDA_VISIBLE_DEVICES=", false}, {"CUDA_DEVICE_ORDER=", false}, {"NVIDIA_VISIBLE_DEVICES=", false},
    /* These variables configure hardware queues, module loading and memory allocation on the GPU. */
    {"CUDA_DEVICE_MAX_CONNECTIONS=", false}, {"CUDA_MODULE_LOADING=", false}, {"PYTORCH_CUDA_ALLOC_CONF=", false},
    {"CUDA_MPS_PIPE_DIRECTORY=", false}, {"CUDA_MPS_LOG_DIRECTORY=", false},
    /* these variables are for reftest itself and for its tests */
    {"ASAN_OPTIONS=", false}, {"LSAN_OPTIONS=", false}, {"UBSAN_OPTIONS=", false}, {"REFTEST_TEST", false},
    {"REFTEST_FAKE_TORCH=", false},
};

/* Environment variables that have the same value in every reference's process. LC_ALL and PYTHONUTF8 make all text
 * UTF-8. With PYTHONHASHSEED, Python's sets of strings have the same order in every process. OMP_WAIT_POLICY makes
 * OpenMP threads sleep while they wait. Spinning threads would slow down the judge, which works while a reference runs.
 * On a CPU, torch multiplies with Intel's MKL. MKL_CBWR makes MKL add in the same order in every call; without this
 * variable, the order can change from call to call (manual of MKL, "Specifying Code Branches"). With
 * glibc.malloc.hugetlb=1, glibc asks for huge pages (manual of glibc, "Memory Allocation Tunables"), so that new
 * tensors take fewer page faults. With mmap_threshold=33554432 (32 MiB, the largest value that glibc accepts), the
 * memory of freed tensors of at most 32 MiB is reused, because Linux would have to clear new pages. The memory of
 * larger tensors is returned to the system at once, because free space between such tensors would count as memory that
 * the reference uses. In small cases on the CPU, keep_freed_memory in python/runner.py changes this, so that the memory
 * of larger tensors is also reused. Torch aligns its tensors, so glibc cuts a few bytes from both ends of the block of
 * each tensor. With glibc's caches of small blocks, other data would be allocated in these few bytes, and the rest of
 * the block would be too small for the next tensor of the same size. With tcache_count=0 and mxfast=0, there are no
 * such caches: when the tensor is freed, glibc joins the few bytes with the rest of the block again. When torch is
 * imported, it runs the plug-ins of other packages (entry points of the group torch.backends), which may change any
 * function of torch. With TORCH_DEVICE_BACKEND_AUTOLOAD=0, it does not run them. They add kinds of devices that reftest
 * does not use. */
static const char *const reference_settings[] = {
    "LC_ALL=C.UTF-8", "PYTHONHASHSEED=0", "PYTHONUTF8=1", "OMP_WAIT_POLICY=passive",
    "TORCH_DEVICE_BACKEND_AUTOLOAD=0", "MKL_CBWR=AUTO", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=536870912:glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0",
};

/* Returns the row for a variable "NAME=value", or NULL if references do not get it. */
static const struct variable *row_of(const char *variable)
{
	for (size_t i = 0; i < sizeof reference_environment / sizeof *reference_environment; i++)
		if (strncmp(variable, reference_environment[i].name, strlen(reference_environment[i].name)) == 0)
			return &reference_environment[i];
	return NULL;
}

/* Appends each variable of `row` that has a value to the lines `text`. */
static const char *add_values(const struct variable *row, const char *text, struct arena *arena)
{
	for (char **at = environ; *at != NULL; at++)
		if (row_of(*at) == row && strcmp(*at, row->name) != 0)
			text = text == NULL ? arena_string(arena, *at) : arena_printf(arena, "%s\n%s", text, *at);
	return text;
}

/* The lines have the order of the table, because the order of `environ` differs from shell to shell. */
const char *environment_that_counts(struct arena *arena)
{
	const char *text = NULL;

	for (size_t i = 0; i < sizeof reference_environment / sizeof *reference_environment; i++)
		if (reference_environment[i].counts)
			text = add_values(&reference_environment[i], text, arena);
	return text;
}

char **environment_of_references(struct arena *arena)
{
	size_t count = 0, kept = 0, settings = sizeof reference_settings / sizeof *reference_settings;

	while (environ[count] != NULL)
		count++;
	char **out = arena_array(arena, count + settings + 1, sizeof *out);

	for (size_t i = 0; i < count; i++)
		if (row_of(environ[i]) != NULL)
			out[kept++] = environ[i];
	for (size_t i = 0; i < settings; i++)
		out[kept++] = arena_string(arena, reference_settings[i]);
	return out;
}
