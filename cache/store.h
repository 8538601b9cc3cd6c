/* store - verdicts, what they depended on, and which files were seen, in one LMDB file below <root>/.reftest/.
 *
 * Layout: <root>/.reftest/cache/data.mdb and lock.mdb (LMDB, see cache/env.h). Four tables of records (cache/record.h):
 *   verdicts   subject . witness (32 bytes)           -> when it was put, the verdict, as verdict_parse reads it
 *   latest     digests of definition . case (32 bytes) -> subject, witness, both names, fields (for explain and status)
 *   files      path relative to the root              -> struct file_seen, summary, blob paths (no-change runs)
 *   facts      free text                              -> free text (torch's version behind an interpreter, …)
 * A record that does not check out is a miss, counted, never an error. A store that is no LMDB database, of another
 * format, truncated or garbled is set aside (renamed, never deleted) with a sentence, and a new one begun. One process
 * opens it once; no handle crosses a fork, nor is it used by two threads. Every write is one short transaction; a full
 * map is grown; on a full disk or in a read-only folder what was kept stays and is read, and each write says why it was
 * not kept. Everything returned lives in the caller's arena. Verdicts also leave it and come in as portable records. */
#ifndef REFTEST_CACHE_STORE_H
#define REFTEST_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "cache/portable.h"
#include "dataset/dataset.h"

enum { STORE_FORMAT = 1 };

struct store; /* opaque */

enum cache_answer { CACHE_ERROR = -1, CACHE_MISS = 0, CACHE_HIT = 1 };

struct store_options {
	bool read_only; /* --dry-run, status, explain: never creates anything */
};

/* Opens (makes) <root>/.reftest/cache, and beside it a .gitignore that ignores .reftest. NULL with a sentence when
 * there is nothing to be had at all; in read_only mode also when nothing is there yet (then err is ""), or when what is
 * there is damaged. `note` gets a sentence when something was set aside or the store cannot be written, else "". */
struct store *store_open(const char *root, const struct store_options *options, struct err *note, struct err *err);
void store_close(struct store *store);

/* Looks at the pages of what lies below `root`, before anything is opened. 1 with the sentence what is damaged; 0: nothing
 * that LMDB could stumble over, or nothing is there, or (with a sentence) it cannot be read. */
int store_damage(const char *root, struct err *err);
const char *store_path(const struct store *store); /* <root>/.reftest/cache */
bool store_writable(const struct store *store);    /* false also after a write that failed, until one succeeds */

/* A verdict by subject and witness, in the form in which verdict_parse reads it; not necessarily in that in which it was
 * put: a verdict's JSON is kept packed (dataset/packed.h). */
enum cache_answer store_verdict(struct store *store, const struct digest *subject, const struct digest *witness,
                                struct arena *arena, const char **text, size_t *length, struct err *err);
/* All verdicts on a subject, newest last. Returns how many (0: miss), -1 on error. */
struct stored_verdict {
	struct digest witness;
	const char *text;
	size_t length;
};
int store_verdicts(struct store *store, const struct digest *subject, struct arena *arena,
                   const struct stored_verdict **out, struct err *err);

/* What was last seen of a case: which verdict, and the fields it depended on. */
struct latest {
	struct digest subject, witness;
	const void *fields; /* as fields_write made them */
	size_t fields_length;
};
enum cache_answer store_latest(struct store *store, const char *definition, const char *case_id, struct arena *arena,
                               struct latest *out, struct err *err);
/* Every case id recorded for a definition, in order. Returns how many, -1 on error. */
int store_latest_ids(struct store *store, const char *definition, struct arena *arena, const char *const **out,
                     struct err *err);

/* One batch of writes in one transaction: verdicts become visible together or not at all. */
struct store_put {
	struct digest subject, witness;
	const char *text; /* verdict_write's */
	size_t length;
	const char *definition, *case_id; /* "rmsnorm/rmsnorm_h4096" */
	const void *fields;
	size_t fields_length;
	bool keep_verdict; /* false: only `latest` is moved to this subject and witness (a cached answer) */
};
/* 0; or -1 with the sentence why nothing of this batch could be kept. */
int store_put(struct store *store, const struct store_put *puts, int count, struct err *err);

/* Visits every verdict as it travels, the cases of a definition beside each other. What it points at is gone when `visit`
 * returns, and `visit` must not use the store. `damaged` gets how many rows did not check out, and are left where they
 * are. 0, or -1 with the sentence. */
typedef void store_verdict_visit(const struct portable *record, void *context);
int store_each_verdict(struct store *store, store_verdict_visit *visit, void *context, int64_t *damaged,
                       struct err *err);

/* Takes records (which portable_check found in order) in one transaction. Of equal subject and witness the newer verdict
 * stays, of equally new ones that which is here; a time that has not come yet counts as now. What a case was last seen to
 * be is taken only where nothing is known. Counts are added to `merged`. 0, or -1: nothing of these was kept. */
struct store_merged {
	int64_t taken, replaced, kept; /* kept: there was one as new or newer */
};
int store_merge(struct store *store, const struct portable *records, int count, struct store_merged *merged,
                struct err *err);

/* What the present tree needs, for store_sweep. */
struct store_needs {
	const struct digest *subjects;    /* of all its cases, sorted bytewise */
	int subject_count;
	const struct digest *definitions; /* digest_of("op_type/name") of each, sorted bytewise: what they were last seen to
	                                     be is kept, too */
	int definition_count;
	int days; /* a verdict made within so many days before the newest one is kept */
};
struct store_swept {
	int64_t verdicts, latest, files; /* rows that nobody needs */
	int64_t damaged;                 /* that did not check out */
	int64_t bytes_before, bytes_after;
};
/* Removes what nobody needs and makes the file smaller if that pays; `dry_run`: only counts. 0, or -1. */
int store_sweep(struct store *store, const struct store_needs *needs, bool dry_run, struct store_swept *swept,
                struct err *err);

/* Looks at every page and every row, and tells `tell` a sentence for each that is not as it should be. 0 when all were
 * looked at, or -1 with a sentence. */
struct store_inspected {
	int64_t rows, bad;
};
typedef void store_complaint(const char *sentence, void *context);
int store_inspect(struct store *store, store_complaint *tell, void *context, struct store_inspected *out,
                  struct err *err);

/* What was seen of a file: its stat, its content, and for a definition the answer that was given. */
struct file_seen {
	struct file_stat stat;
	int64_t read_ns;       /* wall clock just before the file was read */
	struct digest content;
	struct object_name object; /* git's name of this content, once its index showed it under one */
};

struct summary {           /* of a definition, valid while `context` and `inputs` are the present ones */
	struct digest context; /* everything that is the same for all definitions of a run */
	struct digest inputs;  /* contents of the definition, its workload file and its blobs */
	uint8_t status, reason, weak, pad;
	uint32_t cases, passed, failed, errors, skipped, invalid;
	uint64_t elements;
};

struct file_entry {
	const char *path;
	struct file_seen seen;
	bool has_summary;
	struct summary summary;
	const char *const *blobs; /* paths that the workload file names, relative to the root; sorted, no doubles */
	int blob_count;
};

/* Trusted only if the file had been still for STORE_RACY_MS when it was read: a later write in the same tick of the
 * filesystem's clock would leave the same stat ("racily clean", as git has it). */
enum { STORE_RACY_MS = 2000 };
bool file_seen_holds(const struct file_seen *seen, const struct file_stat *now);

/* Visits all entries whose path begins with `prefix`, sorted by path, in one pass over the table. An entry and its
 * texts are gone when `visit` returns, and it must not use the store. 0, or -1 with the sentence. */
typedef void store_visit(const struct file_entry *entry, void *context);
int store_each_file(struct store *store, const char *prefix, store_visit *visit, void *context, struct err *err);

/* The same as an array in `arena`; costs several times as much. Returns how many, -1 on error. */
int store_files(struct store *store, const char *prefix, struct arena *arena, const struct file_entry **out,
                struct err *err);
/* Writes and deletes many entries in one transaction. A path that is no key of LMDB's (empty, longer than 511 bytes) is
 * not remembered: its file is simply read each time. */
int store_put_files(struct store *store, const struct file_entry *entries, int count, const char *const *removed,
                    int removed_count, struct err *err);

/* Small facts about the machine. Keys have 1 to 511 bytes. */
enum cache_answer store_fact(struct store *store, const char *key, struct arena *arena, const char **value,
                             struct err *err);
int store_put_fact(struct store *store, const char *key, const char *value, struct err *err);

/* Counters since store_open, and sizes, for `cache stats` and tests. */
struct store_stats {
	int64_t hits, misses, damaged;
	int64_t verdicts, files, latest, facts; /* rows */
	int64_t bytes;                          /* of the file */
	int64_t aside, aside_bytes;             /* stores that were set aside and are still there; of their files */
	bool checked;                           /* every page was looked at when the store was opened */
};
int store_stats(struct store *store, struct store_stats *out, struct err *err);

#endif
