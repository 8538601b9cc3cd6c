/* reftest - the one struct that owns what a run needs. Made in main, handed to the command, which opens what it wants
 * through the functions below; nothing else keeps state. */
#ifndef REFTEST_H
#define REFTEST_H

#include <stdbool.h>

#include "base/err.h"
#include "cache/store.h"
#include "kernels/library.h"

/* Exit codes: a contract (README). */
enum {
	EXIT_VERIFIED = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,       /* or an invalid definition or workload */
	EXIT_UNVERIFIED = 3,  /* something could not be verified here */
	EXIT_INTERNAL = 4,
	EXIT_INTERRUPTED = 130
};

struct reftest {
	char **argv;            /* the whole command line, to begin anew with */
	const char *root_given; /* --root, NULL: look for it */
	char root[4096];        /* "" until reftest_root */
	struct kernels kernels; /* face NULL until reftest_kernels_library */
	struct store *store;    /* NULL until reftest_store, and when there is none to be had */
	int signals;            /* signalfd of SIGINT, SIGTERM, SIGHUP; -1 until reftest_signals */
	bool colour;            /* stdout is a terminal and NO_COLOR is not set */
	bool progress;          /* stderr is a terminal */
};

int reftest_root(struct reftest *reftest, struct err *err);
/* The same, as a path from / on: for who stays while the working directory may be deleted and made anew. */
int reftest_root_by_path(struct reftest *reftest, struct err *err);
int reftest_kernels_library(struct reftest *reftest, struct err *err);

/* Opens the cache of the root. Without one the run goes on: `store` stays NULL and `note` says why verdicts cannot be
 * kept ("" when all is well, or when a read-only look found nothing). */
void reftest_store(struct reftest *reftest, bool read_only, struct err *note);

/* From here on signals arrive through reftest->signals and interrupt nothing by themselves. */
int reftest_signals(struct reftest *reftest, struct err *err);

#endif
