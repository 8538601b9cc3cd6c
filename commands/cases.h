/* cases - a definition's cases: which there are, what each depends on, and which are decided before anything runs.
 *
 * Sources are the family's size presets and the lines of the workload file. A case carries its job (what the judge is
 * told) and its subject fields (what its verdict depends on, the run's device and versions apart). */
#ifndef REFTEST_COMMANDS_CASES_H
#define REFTEST_COMMANDS_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "cache/fingerprint.h"
#include "commands/options.h"
#include "dataset/dataset.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "kernels/library.h"
#include "workers/job.h"

struct shard {
	int number, count; /* 1 to count; count 0: no shards, everything */
};

struct case_options {
	bool size[SIZE_COUNT];
	bool edge; /* the cases of --edge, which are findings beside the verdict */
	bool backward; /* also the gradients of each case, where the family has them */
	bool workloads;
	uint64_t seed;
	struct tolerance tolerance;       /* --atol, --rtol, --hit-ratio; negative = not given */
	struct tolerance by_dtype[DTYPE_COUNT]; /* --tolerance DTYPE=ATOL,RTOL[,HIT] */
	const char *only;                 /* --case ID; NULL: all */
	struct shard shard;               /* --shard I/N */
};

/* What the ids of cases that are gradients end with. */
#define CASE_BACKWARD ":backward"

/* Small and medium, with workloads, seed 0, no tolerance of one's own. */
struct case_options case_options_default(void);

/* "small,large": sets those it names. -1 with a sentence. */
int case_sizes_read(const char *list, bool size[SIZE_COUNT], struct err *err);

/* Content of a blob that a workload names. */
struct blob {
	const char *path;    /* as the workload names it */
	const char *file;    /* where the judge reads it, below the root; NULL: there */
	struct digest content;
	struct file_stat stat; /* of what stands at `path`, when it held that, which was told by reading it at */
	int64_t read_ns;       /* ... this time of the wall clock; both of no meaning with `file` */
	const char *missing; /* NULL, or the sentence with the command that fetches it */
	const char *bad;     /* NULL, or the sentence why it cannot be used */
};

struct test_case {
	const char *id;              /* "small:batch_size=1", "workload:UUID" */
	const char *convention;      /* a case of --edge: what counts there; NULL: an ordinary case */
	bool beside;                 /* such a case that was not asked for by its id: it never moves the verdict */
	bool finer;                  /* in float64, beside another: builtin alone can tell, and skipped it moves no verdict */
	struct job *job;             /* NULL when `decided` */
	struct fields fields;        /* of the subject */
	struct digest subject;
	const struct verdict *decided; /* skipped (missing_blob) or invalid, without running anything; never stored */
};

struct cases {
	struct test_case *items;
	int count;
	const struct op_entry *op; /* the family; NULL: none knows this definition */
	const char *no_truth;      /* op NULL: the sentence why */
	const char *no_gradients;  /* options.backward, and there are no cases for it: the sentence why; NULL */
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
};

/* All cases of a definition. `blobs` has an entry for every path that the workloads name. Everything in `arena`. */
struct cases cases_make(const struct kernels_face *kernels, const struct definition *definition,
                        const struct workload_file *workloads, const struct blob *blobs, int blob_count,
                        const char *root, const struct case_options *options, struct arena *arena);

/* The bounds of an output: a family's rule, and in its place what the definition says itself (`tolerance`). */
struct rule definition_rule(const struct definition *definition, int output, struct rule family);

/* Axis values of a size preset, a row of d->axis_count (at least 1) for each case; returns how many. `rows` has room for
 * SIZE_ROWS of them. `op` NULL: no family knows the definition, and the small size is a guess that its constraints allow. */
enum { SIZE_ROWS = 16 };
int size_rows(const struct op *op, int variant, const struct op_problem *problem, const struct definition *d,
              enum op_size size, int64_t *rows);

#endif
