/* machine - what this machine has to verify with: the interpreter and its torch, GPUs, memory. */
#ifndef REFTEST_WORKERS_MACHINE_H
#define REFTEST_WORKERS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* The interpreter: `given` (--python), else $REFTEST_PYTHON, else <root>/.venv, else the .venv of the checkout that the
 * binary was built in, else python3 on PATH. Absolute path in `out`; -1: none can be executed. */
int machine_python(const char *given, const char *root, char *out, size_t size, struct err *err);

/* Where a Python file of this program lies: what the environment variable names, else beside the sources of the checkout
 * that the program was built in, else where `make install` puts it. */
int machine_script(const char *name, const char *variable, char *out, size_t size, struct err *err);

struct torch_facts {
	const char *version;      /* "2.13.0+cpu" */
	const char *cuda;         /* "13.0"; NULL: a CPU build */
	const char *python;       /* "3.11.7" */
	const char *version_file; /* torch/version.py that said so: its content is the fact's key */
	const char *proof;        /* lines for machine_torch_holds; NULL: none, ask again each time */
};

/* Asks the interpreter where its torch is and reads torch/version.py, without importing torch (some 50 ms). 1: found,
 * 0: that interpreter has no torch, -1: it could not be run. */
int machine_torch(const char *python, struct arena *arena, struct torch_facts *out, struct err *err);

/* What providers there are for a device of this class, and why others are not: the JSON object that `provider.py --matrix`
 * prints. -1: it could not be asked. */
int machine_providers(const char *python, const char *device_class, struct arena *arena, const char **out,
                      struct err *err);
/* A key for that answer, from files alone: the interpreter as above, the class, the tables' stats. With it, and the
 * folders' stamps in the answer, an earlier answer can be believed. */
const char *machine_providers_key(const char *python, const char *device_class, struct arena *arena);
/* Is it the same program still that `python` starts, and are the folders in which it looks for packages as they were? */
bool machine_providers_hold(const char *python, const char *answer);

/* Does `python` start the very program that gave this proof (a launcher never does: only the program itself is known by its
 * path), and are the places where that looks for packages as they were? Starts nothing. */
bool machine_torch_holds(const char *python, const char *proof);

/* A key for what machine_torch would say, from files alone: the interpreter's path and stat, PYTHONPATH, VIRTUAL_ENV.
 * With it, the proof and the content of version_file, an earlier answer can be believed. */
const char *machine_torch_key(const char *python, struct arena *arena);

/* GPUs by the driver's own files (no CUDA call): 0 when there is no NVIDIA driver. `key` (may be NULL) gets a text that
 * changes when driver or GPUs do. */
int machine_gpus(struct arena *arena, const char **key);

int machine_cores(void); /* that this process may run on */

#endif
