/* carry - the store's verdicts into an archive file, and those of any number of files into the store. */
#ifndef REFTEST_CACHE_CARRY_H
#define REFTEST_CACHE_CARRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/archive.h"
#include "cache/store.h"

/* Whose word counts (commands/signing.h has one). NULL in its place: anybody's, and nothing is signed. */
enum { CARRY_SIGNATURE_MAX = 64 };
struct carry_seal {
	void *context;
	void (*sign)(void *context, struct portable *record, unsigned char room[CARRY_SIGNATURE_MAX]);
	int (*check)(void *context, const struct portable *record, struct err *err); /* -1 with the sentence: refused */
};

struct carried_out {
	int64_t verdicts;
	int64_t left;  /* that do not check out here, or are too large to travel */
	int64_t bytes; /* of the file */
};

/* Writes every verdict to `path` (replaced as a whole or not at all), or to standard output for "-". 0, or -1. */
int carry_out(struct store *store, const char *path, const struct carry_seal *seal, struct carried_out *out,
	      struct err *err);

struct carried_in {
	struct store_merged merged;
	int64_t refused; /* records that did not check out */
	bool whole;	 /* the file is as it was written */
};

/* Merges the file `path`, or standard input for "-". What does not check out is told to `refused` and left; what does
 * is kept, some thousands of verdicts in a transaction. 0, also if something was refused; -1 with the sentence: it
 * could not be read, is no archive, or the store could not be written (transactions before that stay). */
int carry_in(struct store *store, const char *path, const struct carry_seal *seal, archive_refused *refused, void *context,
	     struct carried_in *in, struct err *err);

#endif
