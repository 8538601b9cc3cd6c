/* verdict - what came of one case, and its JSON form, which is also what travels from the judge and what is stored. */
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

/* Never renumber. The order is also how bad a state is: a definition's state is the worst of its cases', where
 * STATUS_PASSED < STATUS_SKIPPED < STATUS_ERROR < STATUS_FAILED < STATUS_INVALID. */
enum status {
	STATUS_PASSED = 0,
	STATUS_SKIPPED = 1,
	STATUS_ERROR = 2,
	STATUS_FAILED = 3,
	STATUS_INVALID = 4,
	STATUS_COUNT
};

/* Never renumber. */
enum reason {
	REASON_NONE = 0,
	/* failed */
	REASON_SHAPE = 1, REASON_DTYPE = 2, REASON_NUMERIC = 3, REASON_NONFINITE = 4, REASON_NONDETERMINISTIC = 5,
	REASON_MUTATED_INPUT = 6, REASON_GROUND_TRUTHS_DISAGREE = 7,
	/* skipped */
	REASON_NO_GROUND_TRUTH = 8, REASON_MEMORY = 9, REASON_MISSING_BLOB = 10, REASON_UNSUPPORTED_DEVICE = 11,
	REASON_WEAK = 12, /* a definition all of whose cases an output of zeros would have passed */
	/* error */
	REASON_RAISED = 13, REASON_CRASHED = 14, REASON_TIMEOUT = 15, REASON_GROUND_TRUTH = 16,
	REASON_OUT_OF_BOUNDS = 17, /* a canary beside a tensor was overwritten */
	/* skipped */
	REASON_NOT_CACHED = 18, /* --cached-only, and no verdict is stored */
	REASON_UNSUPPORTED_DTYPE = 19, /* the reference cannot be run in float64, where its gradients would be held finer */
	REASON_CHANGED = 20, /* a tensor file did not hold any more what was hashed */
	REASON_COUNT
};

const char *status_name(enum status status);
const char *reason_name(enum reason reason); /* NULL for REASON_NONE */
bool status_parse(const char *name, enum status *out);
bool reason_parse(const char *name, enum reason *out);

struct output_verdict {
	const char *name, *ground_truth; /* ground_truth: "builtin", "flashinfer", … */
	enum status status;              /* passed or failed */
	enum reason reason;
	double atol, rtol,
	    hit_ratio; /* the rule; JSON "hit_ratio" is the measured one, the rule's is "hit_ratio_needed" */
	int rank;
	int64_t shape[RANK_MAX];         /* to write worst places as multi-dimensional indices */
	struct metrics metrics;
};

struct named_value {
	const char *name, *source; /* a hidden constant and where it is attested: "model:llama-3.1-8b", "unattested" */
	double value;
};

/* A ground truth that could be used, most preferred first. */
struct truth {
	const char *name, *version; /* "builtin" and the digest of the family's sources; "flashinfer", "0.7.2 (table …)" */
};

/* What is to verify a case: the first of these that gives an answer, or all of them, which then have to agree. */
struct truths {
	const struct truth *items;
	int count;
	bool all;
};

enum { TRUTHS_MAX = 16 }; /* that one case may be held against; verify refuses to leave one out */

/* A ground truth that was asked, in this order. */
struct witness {
	const char *name, *version;
	const char *passed_over; /* NULL: it gave the outputs; else the sentence why it decided nothing */
	bool accident;           /* passed over for what may be gone tomorrow: a dead process, a timeout, no memory */
	bool coarse;             /* its arithmetic is coarser than the case's rules: it does not decide alone */
	double seconds;          /* that its answer took, and those it needed before, once, to import and to compile */
	double prepared;
	double margin;           /* all were asked: the largest against builtin, as metrics.margin; NaN, and absent
	                          * from the JSON: not compared, as builtin is not with itself */
};

struct verdict {
	enum status status;
	enum reason reason;
	const char *message;       /* NULL or sentences: what failed, where; a traceback */
	bool weak;
	const char *device_class;  /* "cpu", "sm_90" */
	const char *device;        /* "cpu", "cuda:0" */
	const char *ground_truth;  /* NULL: none */
	const char *ground_truth_version; /* builtin: digest of the family's sources; NULL with ground_truth NULL */
	const struct witness *witnesses; /* those asked up to the one that decided; none: ground_truth alone */
	int witness_count;
	bool all_witnesses;        /* all that there were have been asked, and had to agree */
	const char *torch;         /* "2.13.0+cpu": version that ran the reference; NULL unknown */
	const char *cuda;          /* CUDA version that torch was built for, "13.0"; NULL: a CPU build */
	double seconds;            /* wall time of the case */
	int64_t time;              /* Unix seconds when it was made */
	int64_t elements;          /* output elements compared */
	int reference_line;        /* line inside the reference at which it raised; 0 unknown */
	const struct output_verdict *outputs;
	int output_count;
	const struct named_value *constants;
	int constant_count;
	const char *const *findings; /* sentences beside the verdict */
	int finding_count;
};

/* Its witnesses' versions in one text, as they belong to the fingerprint; a verdict by its only one has that version. */
const char *verdict_truth_version(const struct verdict *verdict, struct arena *arena);

/* One JSON object on one line, no newline, exactly what `verdict_parse` reads back: doubles keep every bit. */
void verdict_write(const struct verdict *verdict, struct buf *out);

/* Of the JSON, or of its packed form (dataset/packed.h). NULL with a sentence when the text is no verdict (it may come
 * from a damaged file). All in `arena`. */
const struct verdict *verdict_parse(const char *text, size_t length, struct arena *arena, struct err *err);

/* The head alone of a verdict that passed, is not weak and has no findings: outputs and constants may be left out, for
 * who needs to know no more than that it counts. NULL: not such a one, or not as verdict_write writes it; then verdict_parse
 * says what it is. All in `arena`. */
const struct verdict *verdict_head(const char *text, size_t length, struct arena *arena);

/* The list of witnesses, as JSON. */
void verdict_write_witnesses(const struct verdict *verdict, struct buf *out);

/* The fields of the outputs array as the command line prints them (schema 1 in the README). */
void verdict_write_outputs(const struct verdict *verdict, struct buf *out);

#endif
