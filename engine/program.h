/* program - opens and closes the resources that one invocation of reftest uses: the root, the kernels library, the
 * cache, signals. Also defines the exit statuses.
 *
 * main creates one struct program and passes it to the command. The command opens the resources that it needs with the
 * functions below. There are no global variables for resources. */
#ifndef REFTEST_ENGINE_PROGRAM_H
#define REFTEST_ENGINE_PROGRAM_H

#include <stdbool.h>

#include "base/err.h"
#include "cache/store.h"
#include "engine/secrets.h"
#include "kernels/core/kernels_library.h"

/* The exit statuses. Scripts rely on these numbers (docs/json.md). */
enum {
	EXIT_VERIFIED = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,      /* wrong usage, or an invalid definition or workload file */
	EXIT_UNVERIFIED = 3, /* a definition could not be verified on this machine */
	EXIT_INTERNAL = 4,
	EXIT_INTERRUPTED = 130
};

struct settings; /* engine/settings.h */

struct program {
	char **argv;            /* the whole command line, for a watcher that restarts itself */
	const char *root_given; /* --root; NULL: search for the root */
	const char *repos;      /* --repos: the folder with checkouts of libraries; NULL: repos_config.json names them */
	char root[4096];        /* "" until program_root */
	struct settings *settings; /* the dataset's own defaults (engine/settings.h); NULL before program_settings */
	struct kernels kernels; /* opened by program_kernels */
	struct store *store;    /* NULL before program_store; also NULL after it if the cache could not be opened */
	struct secrets secrets; /* the secrets that main took out of the environment */
	/* without a cache, accepted_machines.c stores here what it has learned about torch */
	char *torch_key, *torch_fact;
	int signals;            /* a signalfd for SIGINT, SIGTERM and SIGHUP; -1 before program_signals */
	bool colour;            /* text on stdout has colours */
	bool progress;          /* stderr is a terminal on which lines can be drawn and erased */
};

/* Each of the following functions opens a resource unless it is already open. These functions return 0, or -1 and set
 * `err`. */
int program_root(struct program *program, struct err *err);
/* Reads the settings of the root, which must be known. If the settings have a note (settings->note), prints it on
 * stderr. */
int program_settings(struct program *program, struct err *err);
/* Sets program->root to an absolute path, for commands that must not depend on the working directory. */
int program_root_by_path(struct program *program, struct err *err);
/* Opens the kernels libraries. If the cache is open, the cache remembers the digests of the libraries. */
int program_kernels(struct program *program, struct err *err);
/* Copies the CUDA kernels library to memory that no process can change (base/sealed_library.h). Judges that use a GPU
 * load this copy. This function reports no error. A judge that cannot load the library reports the error. */
void program_cuda_kernels(struct program *program);
/* Blocks SIGINT, SIGTERM and SIGHUP. After this call, read these signals from program->signals. */
int program_signals(struct program *program, struct err *err);

/* Opens the cache of the root. If the cache cannot be opened, the run continues: `store` stays NULL, and `note` gets a
 * message that says why verdicts cannot be stored. Otherwise `note` is "". If `read_only` is true, a missing cache is
 * not an error. */
void program_store(struct program *program, bool read_only, struct err *note);

void program_close(struct program *program);

#endif
