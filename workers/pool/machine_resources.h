/* machine_resources - finds the resources of this machine: the Python interpreter and its torch, the providers (other
 * libraries with ground truths), GPUs and cores. */
#ifndef REFTEST_WORKERS_POOL_MACHINE_RESOURCES_H
#define REFTEST_WORKERS_POOL_MACHINE_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* Writes the absolute path of the Python interpreter to `out`. The interpreter is the first of these that is set or
 * exists: `given` (the value of --python), $REFTEST_PYTHON, <root>/.venv, the .venv of the checkout in which the
 * program was built, the virtual environment into which pip installed the program (if it also has torch), and python3
 * on PATH. Returns -1 if there is no interpreter that can be executed. */
int machine_python(const char *given, const char *root, char *out, size_t size, struct err *err);

/* Returns whether `make install` or a wheel installed this program. An installed program has no checkout in which make
 * could build. */
bool machine_installed(void);

/* Writes the path of one of reftest's own Python files to `out`. If the environment variable `variable` is set, its
 * value is the path. Otherwise the path is that of the file in the source checkout or, if there is no checkout, of the
 * file that `make install` installed. Returns -1 if one of reftest's own Python files has changed since the build. */
int machine_script(const char *name, const char *variable, char *out, size_t size, struct err *err);

/* Runs `python` with the arguments `words` (at most three). Its standard input is the descriptor `input` (-1:
 * /dev/null). Appends its standard output to `out`. Returns -1 if the interpreter could not be run, failed, printed
 * more than about `most` bytes, or printed nothing for half a minute. */
int machine_ask_python(const char *python, const char *const words[], char *const environment[], int input, size_t most,
		       struct buf *out, struct err *err);

struct torch_facts {
	const char *version;      /* the version of torch, such as "2.13.0+cpu" */
	const char *cuda;         /* the version of CUDA, such as "13.0"; NULL: torch is a CPU build */
	const char *python;       /* the version of Python, such as "3.11.7" (python/packages.py) */
	const char *version_file; /* the path of torch/version.py; these facts may be cached only while the content of
				   * this file stays the same */
	const char *proof;        /* a text that machine_torch_holds checks; NULL: these facts must not be cached */
};

/* Returns the command that installs torch for the interpreter `python` or, if `upgrade` is true, the command that
 * upgrades torch. `python` is NULL if there is no interpreter. The command uses a virtual environment, because other
 * interpreters often belong to the system, whose packages pip may not change. */
const char *machine_pip_torch(const char *python, bool upgrade, struct arena *arena);

/* Finds the interpreter's torch and reads torch/version.py. Runs the interpreter (about 50 ms) but does not import
 * torch. Returns 1 if torch was found, 0 if the interpreter has no torch, and -1 if the interpreter could not be
 * run. */
int machine_torch(const char *python, struct arena *arena, struct torch_facts *out, struct err *err);

/* Sets `out` to the JSON object that `provider.py --matrix` prints. The object lists the libraries that can be used on
 * a device of this class, and the reasons why other libraries cannot be used. Returns -1 if the script could not be
 * run. */
int machine_providers(const char *python, const char *device_class, struct arena *arena, const char **out,
                      struct err *err);
/* Returns the key under which the result of machine_providers is cached. The key includes the interpreter (as in
 * machine_torch_key), the device class, and the sizes, inodes, mtimes and ctimes of reftest's Python files and of the
 * library tables. No process is started. A cached result is valid if the key is unchanged and machine_providers_hold returns
 * true. */
const char *machine_providers_key(const char *python, const char *device_class, struct arena *arena);
/* Returns whether `answer`, a cached result of machine_providers, is still valid: `python` still starts the same
 * interpreter, and the directories in which this interpreter searches for packages are unchanged. */
bool machine_providers_hold(const char *python, const char *answer);

/* Returns whether `proof`, from an earlier call of machine_torch, is still valid: `python` still starts the same
 * interpreter, and the directories in which this interpreter searches for packages are unchanged. Returns false for a
 * launcher script, which may choose another interpreter at each start. Starts no process. */
bool machine_torch_holds(const char *python, const char *proof);

/* Returns the key under which the result of machine_torch is cached. The key includes the path, size, inode, mtime and
 * ctime of the interpreter, the values of PYTHONPATH and VIRTUAL_ENV, and the digest of environment_that_counts. A cached
 * result is valid if the key and the content of version_file are unchanged and machine_torch_holds returns true. */
const char *machine_torch_key(const char *python, struct arena *arena);

/* Counts the GPUs by the files of the NVIDIA driver, without calling CUDA. Returns 0 if there is no NVIDIA driver. If
 * `key` is not NULL, sets it to a text that changes when the driver or the GPUs change. */
int machine_gpus(struct arena *arena, const char **key);

/* Reads the version of the driver, such as "580.159.04", from the text of /proc/driver/nvidia/version. Returns false if
 * the text has no version, or if the version does not fit into `out`. */
bool machine_driver_version(const char *text, char *out, size_t size);

/* Returns the version of this machine's NVIDIA driver, allocated in `arena`, or NULL if the version is not known. */
const char *machine_driver(struct arena *arena);

int machine_cores(void); /* returns the number of cores that this process may use */

#endif
