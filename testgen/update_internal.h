/* update_internal - updates one generated file (testgen/update_file.c). Builds a class for each definition, and
 * replaces the file if its bytes differ and no user edited it. testgen/update.c calls these functions for every
 * file. */
#ifndef REFTEST_TESTGEN_UPDATE_INTERNAL_H
#define REFTEST_TESTGEN_UPDATE_INTERNAL_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/string_list.h"
#include "dataset/dataset.h"
#include "engine/program.h"
#include "engine/sparse_checkout.h"
#include "testgen/test_list.h"
#include "testgen/update.h"
#include "testgen/update_stamps.h"

/* A test file that should exist, and its definitions. */
struct group {
	const char *file; /* "test_rmsnorm.py" */
	const struct dataset_file *const *members;
	int count;
	const char *refused; /* why the file cannot be generated, or NULL */
};

/* Files that are reported in one message: the name of the first file, and the number of files. */
struct mentioned_files {
	const char *first; /* NULL: none */
	int count;
};

struct file_update {
	struct program *program;
	const struct dataset *dataset;
	const struct update_options *options;
	struct arena *arena;
	struct update_result *out; /* the result: it has the counts so far, and gets `messages`, `problems` and
				    * `changed` at the end */
	struct string_list messages, problems, changed;
	struct test_list test_list;
	struct stamps stamps;  /* the records of the last update */
	struct stamps fresh;   /* the records of this update; the array has room for one record of each group */
	struct digest context; /* a digest of what affects all files, such as the version of reftest */
	struct sparse sparse;
	struct mentioned_files unwritten; /* test files that were not written, because they are in git but not checked out */
	struct mentioned_files untouched; /* test files that were not removed, because their definitions are not checked out */
};

/* Adds a message to `messages` and to `problems` (struct update_result). */
void update_file_report(struct file_update *r, const char *sentence);

/* Returns whether the record of the group's file is still valid. If the record is valid, the file is counted and needs
 * no update. */
bool update_file_noted(struct file_update *r, const struct group *group, const struct note *note);

/* Adds the old record of a file to the new records, because this update does not check the file. */
void update_file_keep_note(struct file_update *r, const struct note *note);

/* Updates the group's file. Depending on the options, only prints the new text, or only reports that the file is out of
 * date. Returns 0, or -1 and sets `err` if the file cannot be written. */
int update_file_of(struct file_update *r, const struct group *group, struct err *err);

/* Returns 1 if a missing file may be created. Returns 0, and records the file, if the file is in git but not checked
 * out. Returns -1 and sets `err` on error. */
int update_file_may_write(struct file_update *r, const char *file, struct err *err);

/* Returns 1 if a file without definitions may be removed. Returns 0, and records the file, if a definition to which the
 * file belongs is in git but not checked out. Returns -1 and sets `err` on error. */
int update_file_may_remove(struct file_update *r, const char *file, struct err *err);

/* Reports the files that update_file_may_write and update_file_may_remove recorded. */
void update_file_report_sparse(struct file_update *r);

/* Updates file number `index` of the files that all tests use (testgen/support_files.h). Returns 0, or -1 and sets
 * `err`. */
int update_file_shipped(struct file_update *r, int index, struct err *err);

/* Removes a generated file, and reports the removal with the reason `why`. */
int update_file_remove(struct file_update *r, const char *file, const char *why, struct err *err);

#endif
