/* cases_internal - declarations for the files that together make the cases of a definition. cases.c decides which cases
 * there are and makes their jobs. cases_bounds.c makes the tolerance rules of the cases, and cases_subject.c makes the
 * fields of their subjects. */
#ifndef REFTEST_ENGINE_CASES_INTERNAL_H
#define REFTEST_ENGINE_CASES_INTERNAL_H

#include "engine/cases.h"

/* The state of cases_make, which builds the cases of one definition. */
struct maker {
	const struct kernels_api *kernels;
	const struct definition *definition;
	struct op_problem problem;
	const struct blob *blobs;
	int blob_count, variant, room;
	const char *root, *environment; /* environment: variables that may change results (environment_that_counts) */
	const struct case_options *options;
	enum job_asks asks; /* selects what the next cases verify: outputs or gradients */
	bool in_float64;
	/* A message if the architecture of a model contradicts the definition's axes (models/attested_dimensions.h),
	 * else NULL. */
	const char *contradiction;
	const struct workload_file *workloads;
	const struct workload *line; /* the workload line of the next case; NULL: none */
	bool chosen_axes; /* reftest chose the axis values of the next cases (job.chosen_axes) */
	enum job_runs runs; /* on which sets of input values the reference runs in the next cases (job.runs) */
	bool checks; /* the next case has checks besides the comparison with its ground truth (job.checks) */
	const struct op *gradient; /* NULL if this definition has no ground truth of gradients */
	struct arena *arena;
	struct fields shared; /* the fingerprint fields that all cases of the definition share */
	struct cases out;
	bool without_init; /* the definition's `init` failed, so the inputs are generic */
};

/* Returns the op that generates the inputs of the cases and checks their results. It is the family's op or the family's
 * gradient op. Returns NULL if there is no such op. */
const struct op *maker_op(const struct maker *m);
/* Returns the blob with this use and path, or NULL if there is no such blob. */
const struct blob *maker_blob(const struct maker *m, enum blob_use use, const char *path);
/* Returns whether the case sets the value of this axis. If it does not, the value follows from the inputs that the
 * definition's code makes. */
bool maker_gives_axis(const struct maker *m, const struct input_source *inputs, int axis);

/* Returns the tolerance rules of a case. Without a family, each output has the default rule of its dtype, or the
 * tolerance of the workload line. A workload line never changes the tolerance rules of a family. A tolerance in the
 * dataset's settings overrides these rules, a tolerance in the definition overrides the settings, and an option on the
 * command line overrides everything. A definition's tolerances apply to its outputs, but not to gradients. */
const struct rule *make_rules(const struct maker *m, const struct op_case *c);

/* Descriptions of Python scalars may state the default value of the scalar. Adds these defaults to `fields`. They are
 * part of the subject, because a description may say that a certain number stands for the default value.
 * cases_subject.c adds fields for the other facts that descriptions contribute. */
void described_default_fields(struct maker *m, struct fields *fields);
/* Sets the fields of a case's subject: everything that its verdict depends on, except the ground truth, the device and
 * the versions. Also sets the digest of these fields. Set `c->job` before the call. */
void subject_fields(struct maker *m, struct test_case *c);

#endif
