/* dataset - finds the files of a dataset: scans the folders below the root, without reading the contents of files. */
#ifndef REFTEST_DATASET_DATASET_H
#define REFTEST_DATASET_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"

/* The fields of stat that show whether a file changed. */
struct file_stat {
	uint64_t inode, size;
	int64_t mtime_ns, ctime_ns; /* since 1970 */
};

/* The object id of a file's content in git (SHA-1 or SHA-256). `length` 0 means that there is no id. */
struct object_name {
	unsigned char length, bytes[32];
};

struct dataset_file {
	const char *op_type;  /* directory below definitions/, workloads/, truths/ or approved/ */
	const char *name;     /* the file's name without the suffix: "rmsnorm_h4096" */
	const char *path;     /* relative to the root: "definitions/rmsnorm/rmsnorm_h4096.json" */
	struct file_stat stat;            /* zero if the dataset comes from dataset_listed */
	bool has_hard_links;              /* the file has other names, through which it may be written */
	const struct object_name *object; /* NULL unless the dataset comes from dataset_listed */
};

struct dataset {
	char root[4096];                     /* the root as the user gave it, for messages */
	int fd;                              /* descriptor of the root; owned by the dataset */
	const struct dataset_file *definitions; /* sorted by path (bytewise) */
	int definition_count;
	const struct dataset_file *workloads;   /* sorted by path */
	int workload_count;
	const struct dataset_file *const *workload_of; /* for each definition, its workload file, or NULL */
	const struct dataset_file *truths;      /* sorted by path */
	int truth_count;
	const struct dataset_file *approvals;   /* sorted by path */
	int approval_count;
	struct arena workload_memory;           /* owns the paths and messages of the second thread of dataset_scan */
	/* The lists of files that dataset_scan allocated; the dataset owns them. NULL if the dataset does not come from
	 * dataset_scan. */
	void *walked[4];
	const char *const *problems; /* one message for each directory or file that could not be read */
	int problem_count;
	bool some;   /* filled by dataset_some */
	bool listed; /* filled by dataset_listed */
};

/* Returns the root that the user set: `given` (the value of --root) if it is not NULL, otherwise the value of
 * $REFTEST_ROOT or $FIB_DATASET_PATH. Returns NULL if the user set none of these. */
const char *dataset_named_root(const char *given);

/* Finds the root of the dataset. The root is `given` (--root) if it is not NULL, otherwise $REFTEST_ROOT or
 * $FIB_DATASET_PATH. If the user set none of these, the root is the working directory, or its nearest parent that
 * contains definitions/. Returns 0, or -1 with a message that says how the user can name a dataset. */
int dataset_find_root(const char *given, char *root, size_t size, struct err *err);

/* Returns the root of the innermost dataset that contains the absolute path `full`, or NULL. Sets `below` to the path
 * of `full` relative to the dataset's root; "." is the root itself. */
const char *dataset_around(const char *full, const char **below, struct arena *arena);

/* Scans definitions/, workloads/, truths/ and approved/ two levels deep (op_type/name). Follows links to directories.
 * Ignores hidden names, names with another suffix, and files that editors leave behind ("x.json~", ".x.json.swp"). One
 * thread scans definitions/, and another thread scans the other folders. The two threads end before the function
 * returns. Two threads are faster, because a run in which no file has changed spends most of its time in stat, which is
 * called once for each file (about 20 000 times for a large dataset). */
int dataset_scan(const char *root, struct arena *arena, struct dataset *out, struct err *err);

/* Finds selected definitions, with their workload files, truths and approvals. `paths` are the paths of the
 * definitions: relative to the root, sorted, without duplicates. Calls stat once for each file. Omits each path that
 * does not exist, or that is not the path of a definition. */
int dataset_some(const char *root, const char *const *paths, int count, struct arena *arena, struct dataset *out,
                 struct err *err);

/* Checks that the folders of the dataset can be read, and sets `problems` to the messages about those that cannot. Does
 * not call stat for the files in the folders. Call this if the list of files comes from git's index: the index does not
 * show which folders cannot be read. */
void dataset_look_at_folders(struct dataset *dataset, struct arena *arena);

/* Fills a dataset with the files that the caller lists, for example from git's index. Paths are relative to the root,
 * sorted, without duplicates. Files are omitted if they are not definitions, workloads, truths or approvals.
 * dataset_listed opens the root directory, but none of the files. The list and its paths must live as long as the
 * dataset. */
struct listed_file {
	const char *path;
	struct object_name object;
};
int dataset_listed(const char *root, const struct listed_file *files, int count, struct arena *arena,
		   struct dataset *out, struct err *err);
void dataset_close(struct dataset *dataset);

/* Returns true if `path` has the form of the path of a definition, of a workload file ("workloads/x/y.jsonl"), of a
 * truth ("truths/x/y.py") or of an approval ("approved/x/y.json"). In this case, sets `out` to the path of the
 * definition that the file belongs to. Does not check that the file exists. */
bool dataset_definition_path(const char *path, char *out, size_t size);

/* Returns the workload file of a definition in this dataset, or NULL if the definition has none. */
const struct dataset_file *dataset_workload(const struct dataset *dataset, const struct dataset_file *definition);

/* Returns the file in truths/ that contains the ground truth of `definition`, or NULL if there is none. */
const struct dataset_file *dataset_truth(const struct dataset *dataset, const struct dataset_file *definition);

/* Returns the file in approved/ that contains the approved reference of `definition` (dataset/approval.h), or NULL if
 * there is none. */
const struct dataset_file *dataset_approval(const struct dataset *dataset, const struct dataset_file *definition);

/* returns false if `a` or `b` is not an object id (`length` 0) */
bool object_name_equal(const struct object_name *a, const struct object_name *b);

struct file_stat file_stat_of(const struct stat *st);

#endif
