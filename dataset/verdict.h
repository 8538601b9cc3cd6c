/* verdict - the result of one case, and its JSON form. The judge (the process that compares outputs) sends verdicts in
 * this JSON form, and the store keeps them in this form. verdict.c has the names of statuses; verdict_write.c and
 * verdict_parse.c write and read the JSON. A new field of a verdict must be added to verdict_write, to verdict_parse
 * and to docs/json.md. If a passed verdict can have the field, add the field to verdict_head (dataset/verdict_head.c)
 * too. To add a status or a reason, see "Another status" in docs/architecture.md. */
#ifndef REFTEST_DATASET_VERDICT_H
#define REFTEST_DATASET_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "dataset/definition.h"

/* Stored verdicts contain these numbers, so never change a number. */
enum status {
	STATUS_PASSED = 0,
	STATUS_SKIPPED = 1,
	STATUS_ERROR = 2,
	STATUS_FAILED = 3,
	STATUS_INVALID = 4,
	/* no ground truth could decide the case, but all checks that need no ground truth passed */
	STATUS_CHECKED = 5,
	STATUS_COUNT
};

/* The length of the longest name of a status, which is the width of a column in lists of results. */
enum { STATUS_NAME_MAX = 8 };

/* Why one should trust a definition whose status is `checked`. */
enum checked_kind {
	CHECKED_ONLY,	    /* no ground truth decided the cases, but their checks passed */
	CHECKED_APPROVED,   /* a person approved the reference */
	CHECKED_UNATTESTED, /* a ground truth agrees, but uses a constant whose value only the reference confirms */
	CHECKED_KINDS
};

/* Never renumber. */
enum reason {
	REASON_NONE = 0,
	/* failed */
	REASON_SHAPE = 1, REASON_DTYPE = 2, REASON_NUMERIC = 3, REASON_NONFINITE = 4, REASON_NONDETERMINISTIC = 5,
	REASON_MUTATED_INPUT = 6, REASON_GROUND_TRUTHS_DISAGREE = 7,
	/* skipped */
	REASON_NO_GROUND_TRUTH = 8, REASON_MEMORY = 9, REASON_MISSING_BLOB = 10, REASON_UNSUPPORTED_DEVICE = 11,
	REASON_WEAK = 12, /* every case of the definition would also pass if the output were all zeros */
	/* error */
	REASON_RAISED = 13, REASON_CRASHED = 14, REASON_TIMEOUT = 15, REASON_GROUND_TRUTH = 16,
	REASON_OUT_OF_BOUNDS = 17, /* the reference overwrote the canary bytes around a tensor */
	/* skipped */
	REASON_NOT_CACHED = 18, /* the run has --cached-only, and no verdict of the case is stored */
	/* Gradients need the reference to run in float64, but the reference cannot run in float64. */
	REASON_UNSUPPORTED_DTYPE = 19,
	REASON_CHANGED = 20, /* a tensor file changed after it was hashed */
	/* error: the reference reached a limit of the sandbox (workers/sandbox/sandbox_limits.c); the time limit has a
	 * reason of its own, REASON_TIMEOUT */
	REASON_MEMORY_LIMIT = 21, REASON_PROCESS_LIMIT = 22, REASON_FILE_LIMIT = 23,
	/* skipped: the definition lacks something that a case needs */
	REASON_UNKNOWN_DTYPE = 24, REASON_NO_REFERENCE = 25,
	/* the definition's own code failed to make the inputs; status skipped if reftest chose the axis values,
	 * otherwise error */
	REASON_INPUTS = 26,
	/* failed: the name, the description or the models of the definition contradict the axes of the definition */
	REASON_CONSTANTS = 27,
	/* checked: a ground truth agrees, but the reference may read the clock or the name of the machine */
	REASON_UNSTEADY = 28,
	/* checked: a ground truth agrees, but uses a constant whose value only the outputs of the reference confirm */
	REASON_UNATTESTED = 29,
	REASON_COUNT
};

/* Groups of statuses, in the order of severity. The exit status of reftest, colours and reports depend only on the
 * group of a status. */
enum status_group { GROUP_VERIFIED, GROUP_UNVERIFIED, GROUP_WRONG, GROUP_INVALID };

const char *status_name(enum status status);
enum status_group status_group(enum status status);
/* Returns the severity of a status. A definition gets the most severe status of its cases. */
int status_severity(enum status status);
const char *reason_name(enum reason reason); /* NULL for REASON_NONE */
/* Returns true if the next run of the case may give another verdict. Such verdicts are not stored. */
bool reason_is_transient(enum reason reason);
bool reason_is_limit(enum reason reason); /* the reference reached a limit of memory, processes or files */
bool status_parse(const char *name, enum status *out);
bool reason_parse(const char *name, enum reason *out);

struct output_verdict {
	const char *name, *ground_truth; /* ground_truth: "builtin", "flashinfer", … */
	enum status status;              /* passed or failed */
	enum reason reason;
	double atol, rtol,
	    /* atol, rtol and hit_ratio are the bounds of the tolerance rule. In the JSON, this hit_ratio is the member
	     * "hit_ratio_needed"; the member "hit_ratio" is the ratio that was measured. */
	    hit_ratio;
	int rank;
	int64_t shape[RANK_MAX];         /* needed to write the worst elements with one index for each dimension */
	/* The values are equal, but some of their bits differ (0 and -0, or two kinds of NaN); false if the bits were
	 * not compared. */
	bool other_bits;
	struct metrics metrics;
};

struct named_value {
	/* A hidden constant and the source that confirms it, such as "model:llama-3.1-8b" or "unattested". */
	const char *name, *source;
	double value;
};

/* A ground truth of a case. Lists of ground truths are in order of preference, with the most preferred first. */
struct truth {
	/* For example "builtin" and the digest of the family's sources, or "flashinfer" and "0.7.2 (table …)". */
	const char *name, *version;
	const char *refused; /* the reason why this ground truth cannot be used; NULL: it can be used */
	/* The ground truth is Python source in the dataset. The pool (workers/pool/) runs it in a separate process. */
	bool program;
	const char *place; /* the file of the ground truth, for messages; NULL: there is none */
	bool chain;   /* the ground truth is the definition's chain of operations, which the judge computes */
	/* The reason why this ground truth may contain the same mistake as the reference, for example "ada wrote both".
	 * It is the end of a sentence in a message. If all ground truths that decide a case have such a text, the case
	 * is `checked` instead of passed. NULL: the ground truth is independent. */
	const char *related;
};

/* The value of --ground-truth: "auto", "all", or a list of names. "auto,solution" is a value of "auto". */
enum truth_option { TRUTHS_OF_AUTO, TRUTHS_OF_ALL, TRUTHS_NAMED };

/* The ground truths for a case. If `all` is false, the ground truths are tried in order until one of them decides the
 * case. If `all` is true, all ground truths run and must agree. */
struct truths {
	const struct truth *items;
	int count;
	bool all;
	/* With "auto" and "all", another machine may use libraries that are not in this list. With "all", a list of one
	 * ground truth has `all` = false. */
	enum truth_option option;
};

/* the maximum number of ground truths of a case; `verify` reports an error if there are more */
enum { GROUND_TRUTHS_MAX = 16 };

/* A ground truth that was tried. Lists of tried ground truths are in the order in which they were tried. In the JSON,
 * such a list is the member "witnesses"; elsewhere in the program, "witness" means a digest (cache/fingerprint.h). */
struct tried_truth {
	const char *name, *version;
	/* NULL if the ground truth computed the outputs; otherwise a message that says why it did not decide the
	 * case. */
	const char *passed_over;
	/* a transient error prevented this ground truth from deciding the case: a dead process, a timeout, no memory */
	bool accident;
	bool not_asked;          /* the ground truth was not called, because an earlier one decided the case */
	bool not_built;          /* the library of this ground truth failed to compile its kernels */
	/* The arithmetic of this ground truth is less precise than the tolerance rules of the case require. Such a
	 * ground truth cannot decide the case alone. */
	bool coarse;
	/* seconds: the time to compute the outputs. prepared: the time to import and compile the ground truth before
	 * its first computation. */
	double seconds;
	double prepared;
	/* The largest margin (see metrics.margin) among the outputs when this ground truth is compared with builtin.
	 * The margin is known only if all ground truths were tried. If this ground truth was not compared with builtin,
	 * or is builtin itself, the value is NaN, and the JSON omits it. */
	double margin;
};

/* The result of a check that needs no ground truth. CHECK_PROPERTY: the check found a property of the reference that is
 * not a fault, but that users should know about. */
enum check_result { CHECK_HOLDS, CHECK_FAILS, CHECK_NOT_RUN, CHECK_PROPERTY, CHECK_RESULTS };

/* An axis that a check examined, and whether the check holds along this axis. */
struct check_axis {
	const char *name;
	bool holds;
};

struct check {
	const char *name; /* "repeat" */
	enum check_result result;
	const char *evidence; /* a sentence that says what was compared, or why the check did not run; never NULL */
	const struct check_axis *axes; /* for the check "rows": the axes along which rows were exchanged */
	int axis_count;
};

/* A small picture that shows where an output of a failed case differs, and by how much (kernels/core/miss_map.h). */
enum { DIFFERENCE_SIDE = 32, DIFFERENCE_LEVELS = 32 };
struct difference_map {
	const char *output;
	/* The names of two axes of the output: the rows of the picture run along row_axis, and its columns along
	 * column_axis. NULL: the output has no such axis. */
	const char *row_axis, *column_axis;
	int64_t row_length, column_length;  /* the lengths of row_axis and column_axis; 1 for NULL */
	/* One string for each row, with one character for each column: the level of the largest error there, 0 to 9 or
	 * a to v. */
	const char *const *heat;
	int rows;
	int64_t histogram[DIFFERENCE_LEVELS]; /* the number of elements of each level */
};

/* How long the runs of one kind took, in seconds: the median, and the 10th and 90th percentiles. If `runs` is 0,
 * nothing was measured. */
struct latency_spread {
	double median, low, high;
	int runs;
};

/* The latency of the reference or of a ground truth. A latency does not affect the status. */
struct latency {
	const char *name; /* "reference", "builtin", "flashinfer" */
	bool cuda_events; /* true: measured with CUDA events; false: with the wall clock */
	struct latency_spread warm, cold; /* cold: after a flush of the L2 cache; only if cuda_events is true */
};

enum { LATENCIES_MAX = GROUND_TRUTHS_MAX + 1 };

/* The margin of an earlier verdict that has the same subject and witness (two digests, see cache/fingerprint.h), but
 * another version of the GPU's driver. */
struct driver_margin {
	const char *driver;
	enum status status;
	int64_t time; /* time of the earlier verdict in Unix seconds */
	double margin;
};

enum { DRIVER_MARGINS_MAX = 16 };

/* The maximum number of checks of a case, and of axes of a check. */
enum { CHECKS_MAX = 32, CHECK_AXES_MAX = 16 };

const char *check_result_name(enum check_result result); /* "holds" */

struct verdict {
	enum status status;
	enum reason reason;
	const char *message;       /* a message that says what failed and where, and may contain a traceback; or NULL */
	bool second_set;           /* the failure occurs only with the second set of input values */
	bool weak;
	const char *device_class;  /* "cpu", "sm_90" */
	const char *device;        /* "cpu", "cuda:0" */
	const char *ground_truth;  /* NULL: none */
	/* For builtin, this is the digest of the family's sources. NULL if ground_truth is NULL. */
	const char *ground_truth_version;
	/* The ground truths that were tried, up to the one that decided the case. If the list is empty, only
	 * `ground_truth` was tried. */
	const struct tried_truth *tried;
	int tried_count;
	bool all_tried;        /* all available ground truths were tried and had to agree */
	const char *torch;         /* the version that ran the reference, "2.13.0+cpu"; NULL: unknown */
	const char *cuda;          /* CUDA version that torch was built for, "13.0"; NULL: a CPU build */
	const char *python;        /* the version of Python that ran the reference, "3.11.7"; NULL: unknown, as in a
				    * verdict of an older version of reftest */
	/* Version of the GPU's driver, "580.159.04"; NULL if it is unknown, or on a CPU. The driver is not a part of
	 * the witness, so the store replaces an older verdict that differs only in the driver. Then `drivers` of the
	 * new verdict contains the margin of the older verdict, for `reftest drift`. */
	const char *driver;
	const struct driver_margin *drivers; /* margins on other versions of the driver, oldest first */
	int driver_count;
	/* "full": the reference could access only its inputs and outputs. Any other text lists, separated by commas,
	 * what it could access besides these (docs/containment.md). NULL: what it could access is unknown, as in a
	 * verdict of an older version of reftest. If both `containment` and `torch` are NULL, no reference ran. */
	const char *containment;
	/* "kept": the process that ran the reference runs several definitions. "own": the process ran only this
	 * definition; `isolation_reason` says why. NULL: unknown, as in a verdict of an older version of reftest. */
	const char *isolation, *isolation_reason;
	/* The cases that ran before this case in the same process: a digest of them, "none", or "other" if the process
	 * of the earlier cases ended and another one ran this case. NULL if this does not matter, because the reference
	 * keeps nothing from one case to the next (is_stateless in python/isolation.py), or if no reference ran. */
	const char *after;
	const struct latency *latencies; /* set only by `reftest bench` */
	int latency_count;
	double seconds;            /* wall-clock time of the case */
	int64_t time;              /* time of the verdict in Unix seconds */
	int64_t elements;          /* number of output elements that were compared */
	int reference_line;        /* the line that raised an exception, counted inside the reference; 0: unknown */
	const struct output_verdict *outputs;
	int output_count;
	const struct named_value *constants;
	int constant_count;
	const char *const *findings; /* messages that do not affect the status */
	int finding_count;
	/* The cause of a failure. diagnosis: the mistakes that together explain all outputs (none if no cause was
	 * found); each text completes the sentence "behaves as if …". diagnosed: reftest tried every mistake that it
	 * knows, so no other known mistake is the cause. regions: sentences that say where an output differs. */
	const char *const *diagnosis;
	int diagnosis_count;
	bool diagnosed;
	const char *const *regions;
	int region_count;
	const struct difference_map *differences;
	int difference_count;
	/* The results of the checks that need no ground truth, in the order in which the checks were made. Empty if no
	 * check was made. */
	const struct check *checks;
	int check_count;
};

/* Returns one text with the versions of all ground truths of the verdict, for the fingerprint. If there is a single
 * ground truth, the text is its version. */
const char *verdict_truth_version(const struct verdict *verdict, struct arena *arena);

/* Returns the margin of a verdict, which is the largest error of its outputs in units of the bound. Returns NaN if no
 * output was compared. */
double verdict_margin(const struct verdict *verdict);

/* Returns whether the reference could access only its inputs and outputs. Also returns true if no reference ran. */
bool verdict_is_contained(const struct verdict *verdict);

/* Writes one JSON object on one line, without a newline. verdict_parse reads this form and restores every double
 * exactly. */
void verdict_write(const struct verdict *verdict, struct buf *out);

/* Parses the JSON. Returns NULL with a message if the text is not a verdict. The text may come from a damaged file, so
 * the parser checks everything. The verdict is allocated in `arena`. */
const struct verdict *verdict_parse(const char *text, size_t length, struct arena *arena, struct err *err);

/* Returns the time in a verdict's text, or 0 if the text has no time. Does not parse the rest of the text. */
int64_t verdict_time(const char *text, size_t length);

/* A faster verdict_parse for callers that need only the status and the versions: outputs and constants may be missing
 * from the result. The text must have the exact form that verdict_write writes, and the verdict must be passed, not
 * weak, and without findings. Returns NULL for all other texts; the caller then calls verdict_parse. The result is
 * allocated in `arena`. */
const struct verdict *verdict_head(const char *text, size_t length, struct arena *arena);

/* Writes a JSON list of the ground truths that were tried. */
void verdict_write_tried(const struct verdict *verdict, struct buf *out);

/* Writes the cause of a failure as JSON: two lists of sentences. */
void verdict_write_diagnosis(const struct verdict *verdict, struct buf *out);
void verdict_write_regions(const struct verdict *verdict, struct buf *out);
void verdict_write_differences(const struct verdict *verdict, struct buf *out);

void verdict_write_checks(const struct verdict *verdict, struct buf *out);

void verdict_write_latencies(const struct verdict *verdict, struct buf *out);

/* Writes the array of outputs for the command line (schema 1 in docs/json.md). */
void verdict_write_outputs(const struct verdict *verdict, struct buf *out);

#endif
