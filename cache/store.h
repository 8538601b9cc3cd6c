/* store - keeps verdicts, the fields that each verdict depended on, and facts about files and about the machine, in one
 * LMDB file below <root>/.reftest/.
 *
 * Layout: <root>/.reftest/cache/data.mdb and lock.mdb (LMDB, see cache/lmdb_env.h). Four tables of records
 * (cache/checksummed_record.h):
 *   verdicts   subject and witness (32 bytes)         -> transaction that stored it, JSON text of the verdict
 *   latest     digests of definition, case (32 bytes) -> subject, witness, both names, fields (for explain and status)
 *   files      path relative to the root              -> struct file_seen, summary, blob paths (for unchanged files)
 *   facts      free text                              -> free text (torch's version behind an interpreter, …)
 * Subject and witness are the two digests of a fingerprint (cache/fingerprint.h).
 *
 * A record whose checksum is wrong counts as a miss, never as an error. A store is unusable if it is not an LMDB
 * database, has another format, is truncated, or is corrupt. An unusable store is set aside (renamed, never deleted)
 * with a message, and a new store is created. A process must not have a store open twice. A handle must not be used
 * after a fork or in two threads. Only store_each_file_apart starts a second thread, which ends before the function
 * returns. Every write is one short transaction. If LMDB's map of the file is full, the map is enlarged. On a full disk
 * or in a read-only folder, the stored data can still be read, and each write fails with a message. Results are
 * allocated in the caller's arena. Verdicts are also exported and imported as lines (cache/verdict_line.h). */
#ifndef REFTEST_CACHE_STORE_H
#define REFTEST_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "cache/unchanged_file.h"
#include "cache/verdict_line.h"
#include "dataset/dataset.h"

struct store; /* opaque */

enum cache_answer { CACHE_ERROR = -1, CACHE_MISS = 0, CACHE_HIT = 1 };

struct store_options {
	bool read_only; /* the store is neither created nor changed, as --dry-run, status and explain require */
};

/* Opens or creates <root>/.reftest/cache. Also creates <root>/.reftest/.gitignore, so that git ignores .reftest.
 * Returns NULL with a message if the store cannot be opened. If `read_only` is true, also returns NULL for a damaged
 * store, and for a missing store (with "" in `err`). Writes a message to `note` if a store was set aside, or if the
 * store cannot be written; otherwise sets `note` to "". */
struct store *store_open(const char *root, const struct store_options *options, struct err *note, struct err *err);
void store_close(struct store *store);

/* Checks the pages of the store below `root`. This process must not have the store open. Returns 1, with a message
 * about the damage, if the store is damaged. Returns 0 without a message if LMDB can open the store safely, or if there
 * is no store. Returns 0 with a message if the store cannot be read. */
int store_damage(const char *root, struct err *err);
const char *store_path(const struct store *store); /* <root>/.reftest/cache */
bool store_writable(const struct store *store);    /* also false after a failed write, until a write succeeds */

/* Finds the verdict with this subject and witness. Sets `text` to the verdict's JSON, which verdict_parse reads. */
enum cache_answer store_verdict(struct store *store, const struct digest *subject, const struct digest *witness,
                                struct arena *arena, const char **text, size_t *length, struct err *err);
/* Finds all verdicts on a subject, newest last. Returns the number of verdicts, which may be 0, or -1 on error. */
struct stored_verdict {
	struct digest witness;
	const char *text;
	size_t length;
};
int store_verdicts(struct store *store, const struct digest *subject, struct arena *arena,
                   const struct stored_verdict **out, struct err *err);

/* The last state of a case: its verdict, and the fields that the verdict depended on. */
struct latest {
	struct digest subject, witness;
	const void *fields; /* text that fields_write wrote */
	size_t fields_length;
};
enum cache_answer store_latest(struct store *store, const char *definition, const char *case_id, struct arena *arena,
                               struct latest *out, struct err *err);

/* Stores several verdicts in one transaction, so that they become visible together or not at all. */
struct store_put {
	struct digest subject, witness;
	const char *text; /* written by verdict_write */
	size_t length;
	const char *definition, *case_id; /* "rmsnorm/rmsnorm_h4096" */
	const void *fields;
	size_t fields_length;
	bool keep_verdict; /* false if the verdict is stored already; then only the row of `latest` is written */
};
/* Returns 0. If the transaction fails, stores nothing and returns -1 with a message. */
int store_put(struct store *store, const struct store_put *puts, int count, struct err *err);

/* Calls `visit` for every stored verdict, definition by definition. The record that is passed to `visit` becomes
 * invalid when `visit` returns. `visit` must not use the store. `left` is the number of records still to visit,
 * including this record. Sets `damaged` to the number of rows with wrong checksums; such rows are left unchanged.
 * Returns 0, or -1 with a message. */
typedef void store_verdict_visit(const struct verdict_line *record, int64_t left, void *context);
int store_each_verdict(struct store *store, store_verdict_visit *visit, void *context, int64_t *damaged,
                       struct err *err);

/* Stores records, which the caller must have checked, in one transaction. If a verdict with the same subject and
 * witness is stored already, only one of the two verdicts is kept. If the reference was fully contained for only one of
 * the verdicts (its sandbox had no open gap, workers/sandbox/containment.h), this verdict is kept. Otherwise, the newer
 * verdict is kept, or the stored verdict if both have the same time. A time in the future counts as the present. The
 * row of `latest` for a case is written only if the store does not have this row yet. Adds the counts to `merged`.
 * Returns 0, or -1 with a message if none of the records was stored. */
struct store_merged {
	/* kept: number of records that were not stored, because another verdict with their subject and witness was
	 * kept */
	int64_t taken, replaced, kept;
};
int store_merge(struct store *store, const struct verdict_line *records, int count, struct store_merged *merged,
                struct err *err);

/* Appends the keys of all stored verdicts to `keys`, sorted. Returns 0, or -1 with a message. */
int store_verdict_keys(struct store *store, struct buf *keys, struct err *err);

/* The subjects and definitions of the current dataset, whose rows store_gc keeps. */
struct store_needs {
	const struct digest *subjects;    /* the subjects of all cases, sorted bytewise */
	int subject_count;
	/* digest_of("op_type/name") of each definition, sorted bytewise; store_gc keeps the last states of the cases of
	 * these definitions. */
	const struct digest *definitions;
	int definition_count;
	/* The keys that store_verdict_keys found before the dataset was read. store_gc keeps every verdict whose key is
	 * not among them: another process stored this verdict later, perhaps for a definition that was edited after
	 * this process had read it. */
	const struct buf *stored;
	int days; /* store_gc keeps a verdict that is at most this many days older than the newest verdict */
};
struct store_swept {
	int64_t verdicts, latest, files; /* number of rows of each table that are not needed */
	int64_t damaged;                 /* number of rows with wrong checksums */
	int64_t bytes_before, bytes_after;
};
/* Removes rows that are not needed. Then compacts the file, if this makes the file at most half as large. If `dry_run`
 * is true, only counts the rows. Returns 0, or -1 with a message. */
int store_gc(struct store *store, const struct store_needs *needs, bool dry_run, struct store_swept *swept,
	     struct err *err);

/* Checks every page and every row, and passes a message for each invalid page or row to `tell`. Returns 0 if everything
 * was checked, or -1 with a message. */
struct store_inspected {
	int64_t rows, bad;
};
typedef void store_complaint(const char *sentence, void *context);
int store_inspect(struct store *store, store_complaint *tell, void *context, struct store_inspected *out,
                  struct err *err);

/* The stored result of a definition. While `context` and `inputs` are unchanged, `verify` and `status` report this
 * result without parsing the definition. A new member must also be added to put_summary and get_summary
 * (cache/store_files.c), to count_case (engine/definition_status.c) and to take_summary (engine/definition_files.c). A
 * new member also needs a new RECORD_FORMAT (cache/checksummed_record.h). */
struct summary {
	/* Digest of everything on which the results of all definitions depend (context_digest in engine/run_open.c). */
	struct digest context;
	struct digest inputs;  /* digest of the contents of the definition, its workload file and its blobs */
	uint8_t status, reason, weak, pad;
	uint32_t cases, passed, failed, errors, skipped, invalid, checked;
	uint64_t elements;
};

struct file_entry {
	const char *path;
	struct file_seen seen;
	bool has_summary;
	struct summary summary;
	/* Paths that the workload file names, relative to the root; sorted, without duplicates. */
	const char *const *blobs;
	int blob_count;
};

/* Visits all entries whose path starts with `prefix`, in the order of the paths, in one pass over the table. An entry
 * and its texts are valid only until `visit` returns. `visit` must not use the store. Returns 0, or -1 with a
 * message. */
typedef void store_visit(const struct file_entry *entry, void *context);
int store_each_file(struct store *store, const char *prefix, store_visit *visit, void *context, struct err *err);

/* Visits all entries in two threads, each in the order of the paths. A second thread calls `inside` for the entries
 * whose path starts with `prefix`. The calling thread calls `others` for all other entries. The two visitors must share
 * no data. The second thread ends before the function returns. The last byte of the prefix must be below 255. Use this
 * function for stores with thousands of entries. */
struct file_visitor {
	store_visit *visit;
	void *context;
};
int store_each_file_apart(struct store *store, const char *prefix, const struct file_visitor *inside,
			  const struct file_visitor *others, struct err *err);

/* Copies the entries whose path starts with `prefix` to an array in `arena`. This is several times slower than
 * store_each_file. Returns the number of entries, or -1 on error. */
int store_files(struct store *store, const char *prefix, struct arena *arena, const struct file_entry **out,
                struct err *err);
/* Writes and deletes many entries in one transaction. A path that cannot be a key of LMDB (empty, or longer than 511
 * bytes) is not stored. A file with such a path is therefore read in each run. */
int store_put_files(struct store *store, const struct file_entry *entries, int count, const char *const *removed,
                    int removed_count, struct err *err);

/* Reads the stored text of a small fact about the machine, for example a version. A key has 1 to 511 bytes. */
enum cache_answer store_fact(struct store *store, const char *key, struct arena *arena, const char **value,
                             struct err *err);
int store_put_fact(struct store *store, const char *key, const char *value, struct err *err);

/* hits, misses, damaged: counts since store_open. `reftest cache stats` and tests read these numbers. */
struct store_stats {
	int64_t hits, misses, damaged;
	int64_t verdicts, files, latest, facts; /* number of rows of each table */
	int64_t bytes;                          /* size of the file in bytes */
	/* number of stores that were set aside and still exist, and the bytes of their files */
	int64_t aside, quarantine_bytes;
	bool checked;                           /* every page was checked when the store was opened */
};
int store_stats(struct store *store, struct store_stats *out, struct err *err);

#endif
