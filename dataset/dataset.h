/* dataset - which files a root holds: the walk, and nothing of what is in them. */
#ifndef REFTEST_DATASET_DATASET_H
#define REFTEST_DATASET_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"

/* What stat says of a file, as far as it tells whether it changed. */
struct file_stat {
	uint64_t inode, size;
	int64_t mtime_ns, ctime_ns; /* since 1970 */
};

/* The name of a content in whatever keeps contents (git: SHA-1 or SHA-256). `length` 0: it has none. */
struct object_name {
	unsigned char length, bytes[32];
};

struct dataset_file {
	const char *op_type;  /* folder below definitions/ or workloads/ */
	const char *name;     /* stem: "rmsnorm_h4096" */
	const char *path;     /* relative to the root: "definitions/rmsnorm/rmsnorm_h4096.json" */
	struct file_stat stat;	   /* zeros in a dataset that was listed */
	struct object_name object; /* of a listed one */
};

struct dataset {
	char root[4096];                     /* as given, for messages */
	int fd;                              /* of the root; owned */
	const struct dataset_file *definitions; /* sorted by path (bytewise) */
	int definition_count;
	const struct dataset_file *workloads;   /* sorted by path */
	int workload_count;
	const struct dataset_file *const *workload_of; /* one a definition: its workload file, NULL if it has none */
	struct arena workload_memory;           /* owned: what was found by the second thread */
	const char *const *problems; /* a sentence for each folder that could not be read */
	int problem_count;
	bool some;   /* made by dataset_some */
	bool listed; /* made by dataset_listed */
};

/* The root that somebody named: `given` (--root) if not NULL, else $REFTEST_ROOT, $FIB_DATASET_PATH. NULL: nobody did. */
const char *dataset_named_root(const char *given);

/* Where the dataset is: `given` (--root) if not NULL, else $REFTEST_ROOT, $FIB_DATASET_PATH, the nearest parent of the
 * working directory that has definitions/. 0, or -1 with a sentence that says how to name one. */
int dataset_find_root(const char *given, char *root, size_t size, struct err *err);

/* Walks definitions/ and workloads/ two levels deep (op_type/name), following symbolic links to folders. Hidden names,
 * other suffixes and editors' leftovers ("x.json~", ".x.json.swp") are no part of it. The two are walked side by side
 * by two threads, which are gone when this returns: the kernel's part of 20 000 stats is most of a run in which nothing
 * changed. */
int dataset_scan(const char *root, struct arena *arena, struct dataset *out, struct err *err);

/* The same of only some: the definitions at these paths (relative to the root, sorted, each once) with their workload
 * files, at one stat each. What is not there, or is no definition's path, is left out. */
int dataset_some(const char *root, const char *const *paths, int count, struct arena *arena, struct dataset *out,
                 struct err *err);

/* Makes `problems` those of the folders, as a whole walk would find them, without looking at the files in them: for who
 * has been told what is in a dataset, but not what nobody could look at. */
void dataset_look_at_folders(struct dataset *dataset, struct arena *arena);

/* The same of files that somebody else lists and whose contents he has (git's index): paths relative to the root,
 * sorted, each once; what is no definition or workload file is left out. Nothing is looked at but the root itself. */
struct listed_file {
	const char *path; /* must live as long as the dataset */
	struct object_name object;
};
int dataset_listed(const char *root, const struct listed_file *files, int count, struct arena *arena,
		   struct dataset *out, struct err *err);
void dataset_close(struct dataset *dataset);

/* Is this the path of a definition, or of a workload file ("workloads/x/y.jsonl")? Then `out` gets the path of the
 * definition that it belongs to. Says nothing of whether there is such a file. */
bool dataset_definition_path(const char *path, char *out, size_t size);

/* The workload file that belongs to a definition of this dataset, NULL if there is none. */
const struct dataset_file *dataset_workload(const struct dataset *dataset, const struct dataset_file *definition);

bool object_name_equal(const struct object_name *a, const struct object_name *b); /* false if either is none */

struct file_stat file_stat_of(const struct stat *st);

#endif
