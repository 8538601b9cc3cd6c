/* export_import - writes the verdicts of a store to a file (`reftest cache export`), and reads such a file into a store
 * (`reftest cache import`).
 *
 * An exported file is compressed with zstd. Unpacked, it is text:
 *
 *   "reftest verdicts", TAB, format, TAB, an upper bound on the number of verdicts, LF
 *   one line for each verdict (cache/verdict_line.h)
 *   "end", TAB, the number of verdicts, LF
 *
 * Exported files may be joined with `cat`. Each line has its own checksum. If a file is damaged or truncated, every
 * complete line before the damage is imported, and often also lines after the damage. The sizes of the file, of a line,
 * and of the unpacked file are limited. */
#ifndef REFTEST_CACHE_EXPORT_IMPORT_H
#define REFTEST_CACHE_EXPORT_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cache/store.h"
#include "cache/verdict_line.h"

enum {
	EXPORT_FORMAT = 3,
	EXPORT_FILE_MAX = 1 << 30, /* the most bytes that an imported file may have */
};

/* Functions that sign exported records and check the signatures of imported records; remote/signature.h has the
 * implementation. If the pointer to this struct is NULL, records are not signed, and every imported record is
 * accepted. */
struct record_signer {
	void *context;
	void (*sign)(void *context, struct verdict_line *record);
	/* Returns 0, or -1 with a message if the record is refused. */
	int (*check)(void *context, const struct verdict_line *record, struct err *err);
};

struct export_counts {
	int64_t verdicts;
	int64_t left_out; /* number of rows that are damaged or too large for a line */
	int64_t bytes;	  /* size of the file */
};

/* Writes every verdict to the file `path`, or to standard output if `path` is "-". The file is replaced completely or
 * not at all. Returns 0, or -1. */
int export_verdicts(struct store *store, const char *path, const struct record_signer *signer,
		    struct export_counts *out,
		    struct err *err);

struct import_counts {
	struct store_merged merged;
	int64_t refused; /* number of verdicts that are damaged or missing, or whose signature was refused */
	bool unusable;	 /* the file does not exist, or is not an exported file that this program can read */
	bool whole;	 /* false if the file was changed after the export, or if a verdict was refused */
};

/* import_verdicts calls this function for each part of the file that cannot be imported. `count` is the number of
 * verdicts in that part. `sentence` says where in the file the part is, and why the part is not imported. */
typedef void import_refused(const char *sentence, int64_t count, void *context);

/* Imports the verdicts in the file `path`, or in standard input if `path` is "-", into the store. One transaction
 * stores many verdicts. Returns 0, even if some verdicts were refused. Returns -1 with an error message if the file
 * cannot be read, if it is not an exported file, or if the store cannot be written. After an error, the verdicts of the
 * earlier transactions stay in the store. */
int import_verdicts(struct store *store, const char *path, const struct record_signer *signer, import_refused *refused,
		    void *context, struct import_counts *in, struct err *err);

#endif
