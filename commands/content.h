/* content - what a run's files hold, by digest: believed from an earlier look while a file's stat stands still, read
 * anew otherwise. The looks of this run are gathered and written back in one transaction. */
#ifndef REFTEST_COMMANDS_CONTENT_H
#define REFTEST_COMMANDS_CONTENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cache/store.h"
#include "commands/cases.h"
#include "dataset/dataset.h"

struct contents; /* opaque */
struct staged;	 /* commands/staged.h */

/* Reads the table of files. `staged` NULL: files are the disk's; else those of git's index, of which `dataset` is, and
 * what is compared is the name that git gave a content. `store` may be NULL: then every file is read. Lives in `arena`.
 * Of a dataset of only some definitions (dataset_some) only their rows are read, and their files whatever their stat
 * says: who names them has heard that they changed. */
struct contents *contents_open(struct store *store, const struct dataset *dataset, struct staged *staged,
			       struct arena *arena, struct err *err);

/* What the table holds of a definition of the dataset (its content may be out of date); NULL: it was never seen. */
const struct file_entry *contents_entry(const struct contents *contents, const struct dataset_file *definition);

/* The digest of a dataset file. Believed, or read: then `bytes` gets what was hashed (`bytes->length` 0 and `*read`
 * false otherwise). `need_bytes`: read in any case. -1 with a sentence: it cannot be read (it vanished, too large). */
struct look {
	struct file_seen seen;
	bool read;   /* bytes were read in this run */
	bool absent; /* it is not there any more: that is why the look failed */
	bool remote; /* or why: git's index has it, and only a remote has the content */
};
int contents_look(struct contents *contents, const struct dataset_file *file, size_t limit, bool need_bytes,
                  struct buf *bytes, struct look *out, struct err *err);

/* A blob below the root: hashed as a whole, or believed. Never fails: what is wrong is in the blob. `to_run`: the judge
 * may have to read it, so one that only git has is put where he can. */
struct blob contents_blob(struct contents *contents, const char *path, bool to_run, struct arena *arena);

/* Does the file of the dataset, or the blob, still hold what was hashed, the blob at no time anything else? The disk's
 * are read unless their stat proves it; what came out of git's index is what it was. */
bool contents_unchanged(struct contents *contents, const struct dataset_file *file, const struct digest *content);
bool contents_blob_unchanged(struct contents *contents, const struct blob *blob);

/* Notes an entry to be written back by contents_write (copied), if it says something new. */
void contents_note(struct contents *contents, const struct file_entry *entry);
int contents_write(struct contents *contents, struct err *err);

#endif
