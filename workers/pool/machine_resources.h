/* machine_resources - finds the resources of this machine: the Python interpreter and its torch, the providers (other
 * libraries with ground truths), GPUs, cores. machine_providers_key builds the key under which the list of providers
 * is cached. */
#ifndef REFTEST_WORKERS_POOL_MACHINE_RESOURCES_H
#define REFTEST_WORKERS_POOL_MACHINE_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* Writes the absolute path of the Python interpreter to `out`. The interpreter is the first of these that is set or
 * exists: `given` (--python), $REFTEST_PYTHON, <root>/.venv, the .venv of the checkout in which the binary was built,
 * the virtual environment into which pip installed the binary (if torch is there, too), or python3 on PATH. Returns -1
 * if there is no interpreter that can be executed. */
int machine_python(const char *given, const char *root, char *out, size_t size, struct err *err);

/* Returns whether `make install` or a wheel installed this program. An installed program has no checkout in which make
 * could build. */
bool machine_installed(void);

/* Writes the path of one of reftest's own Python files to `out`. If the environment variable `variable` is set, its
 * value is the path. Otherwise the path is that of the file in the source checkout, or, if there is no checkout, that
 * of the file that `make install` installed. Returns -1 if one of reftest's own Python files has changed since the
 * build. */
int machine_script(const char *name, const char *variable, char *out, size_t size, struct err *err);

/* Runs `python words[0] …` (at most three words) with descriptor `input` (-1: /dev/null) as stdin, and appends its
 * stdout to `out`. Returns -1 if the interpreter could not be run, failed, printed more than about `most` bytes, or
 * printed nothing for half a minute. */
int machine_ask_python(const char *python, const char *const words[], char *const environment[], int input, size_t most,
		       struct buf *out, struct err *err);

struct torch_facts {
	const char *version;      /* "2.13.0+cpu" */
	const char *cuda;         /* "13.0"; NULL: a CPU build */
	const char *python;       /* "3.11.7" */
	const char *version_file; /* path of torch/version.py; this struct may be cached only as long as the content of
				   * this file is the same */
	const char *proof;        /* text that machine_torch_holds checks; NULL: machine_torch must be called each
				   * time */
};

/* Returns the command that installs torch for the interpreter `python` (NULL: there is none), or upgrades it, in a
 * virtual environment. The command uses a virtual environment, because other interpreters often belong to the system,
 * and pip may not change the packages of the system. */
const char *machine_pip_torch(const char *python, bool upgrade, struct arena *arena);

/* Finds the interpreter's torch and reads torch/version.py. Runs the interpreter (about 50 ms) but does not import
 * torch. Returns 1 if torch was found, 0 if the interpreter has no torch, and -1 if the interpreter could not be
 * run. */
int machine_torch(const char *python, struct arena *arena, struct torch_facts *out, struct err *err);

/* Writes the JSON object that `provider.py --matrix` prints to `out`: the libraries that can be used on a device of
 * this class, and the reasons why other libraries cannot be used. Returns -1 if the script could not be run. */
int machine_providers(const char *python, const char *device_class, struct arena *arena, const char **out,
                      struct err *err);
/* The key under which the answer of machine_providers is cached. The key contains the interpreter (as in
 * machine_torch_key), the device class, and the stat data of the library tables. No process is started to build the
 * key. If the key is unchanged and machine_providers_hold is true, the cached answer is valid. */
const char *machine_providers_key(const char *python, const char *device_class, struct arena *arena);
/* Returns whether `answer`, the cached answer of machine_providers, is still valid. The answer is valid if `python`
 * still starts the same interpreter, and if the directories in which the interpreter searches for packages are
 * unchanged. */
bool machine_providers_hold(const char *python, const char *answer);

/* Returns whether `proof`, from an earlier call of machine_torch, is still valid. The proof is valid if `python` still
 * starts the same interpreter, and if the directories in which the interpreter searches for packages are unchanged.
 * Returns false for a launcher script, which may choose another interpreter at each start. Starts no process. */
bool machine_torch_holds(const char *python, const char *proof);

/* The key under which the answer of machine_torch is cached: the interpreter's path and stat, PYTHONPATH,
 * VIRTUAL_ENV. If the key and the content of version_file are unchanged and machine_torch_holds is true, the cached
 * answer is valid. */
const char *machine_torch_key(const char *python, struct arena *arena);

/* Counts the GPUs in the NVIDIA driver's files, without a CUDA call. Returns 0 if there is no NVIDIA driver. If `key`
 * is not NULL, sets it to a text that changes when the driver or the GPUs change. */
int machine_gpus(struct arena *arena, const char **key);

/* Reads the version of the driver, "580.159.04", from the text of /proc/driver/nvidia/version. Returns false if the
 * text contains no version, or if the version does not fit into `out`. */
bool machine_driver_version(const char *text, char *out, size_t size);

/* Returns the version of this machine's NVIDIA driver, in `arena`, or NULL if it is not known. */
const char *machine_driver(struct arena *arena);

int machine_cores(void); /* number of cores that this process may use */

#endif
