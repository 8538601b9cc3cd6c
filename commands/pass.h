/* pass - one walk over selected definitions: what is verified is found, what is stale is run, what was learnt is kept.
 *
 * The same pass serves `verify`, `status` and `explain` (which let nothing run). Definitions come out as outcomes, in
 * path order. A definition whose files and whose run's context are as they were is answered from its summary without
 * being parsed; otherwise it is parsed, its cases are fingerprinted and looked up one by one, and what has no verdict
 * that counts is run. A file that changed while its reference ran keeps nothing of that run. */
#ifndef REFTEST_COMMANDS_PASS_H
#define REFTEST_COMMANDS_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "commands/cases.h"
#include "commands/content.h"
#include "commands/flight.h"
#include "commands/machine_policy.h"
#include "dataset/dataset.h"
#include "dataset/verdict.h"
#include "reftest.h"

struct pass_options {
	struct case_options cases;
	const char *device; /* "auto", "cpu", "cuda", "cuda:N" */
	const char *python; /* NULL: look for one */
	int jobs;           /* 0: as many as suit the machine */
	double timeout_s;
	bool force, cached_only, dry_run, staged;
	bool details;       /* every outcome with its cases; false: a passed one may come with counts alone */
	bool each;          /* an outcome for every definition; false: those answered as passed are only counted */
};

struct case_outcome {
	const struct test_case *test;
	const struct verdict *verdict; /* NULL: nothing is known (it would run, or was interrupted) */
	bool cached;                   /* the verdict was stored by an earlier run */
	bool shared;                   /* another case of this run has the same subject and ran for both */
	bool kept;                     /* it is in the store now */
	const char *why;               /* the decision, as a sentence */
	const char *printed;           /* what the reference printed, when it failed; NULL: nothing */
	struct digest witness;
};

/* Is it a case of --edge, beside the verdict, that did not come out as its convention has it, by the reference's
 * doing? */
bool is_finding(const struct case_outcome *c);

struct outcome {
	const struct dataset_file *file;
	const struct definition *definition; /* NULL: invalid, or answered from the summary */
	enum status status;
	enum reason reason;
	bool known;           /* false: a case has no verdict (dry run, interrupted) */
	int findings;
	bool weak;            /* every case that passed is weak */
	const char *message;  /* of an invalid definition */
	struct case_outcome *cases; /* NULL: answered from the summary */
	int case_count, done; /* done: cases that are decided */
	const struct cases *made; /* NULL like definition */
	struct summary counts; /* filled for all */
	bool from_summary;
	bool changed;         /* a file changed while it ran: nothing was kept */
	struct arena arena;   /* owns everything above */
	struct pass *pass;
	struct look definition_look, workload_look;
	const struct dataset_file *workload; /* NULL: none */
	const struct blob *blobs;
	int blob_count;
	struct digest inputs;
	double started, seconds; /* of the runs of its cases */
};

struct pass {
	struct reftest *reftest;
	const struct pass_options *options;
	struct dataset dataset;
	struct machine_policy machine;
	struct digest context;
	struct contents *contents;
	struct flights flights;
	struct pool *pool;     /* NULL until something must run */
	const struct dataset_file **selected;
	int selected_count;
	struct outcome **outcomes; /* in the order of `selected`, those that were only counted left out */
	int count;
	int answered;          /* definitions that a summary answered as passed and that have no outcome */
	uint64_t answered_elements;
	int64_t cases_run, cases_cached;
	const char *not_kept;  /* NULL, or the sentence why verdicts could not be stored */
	bool interrupted;
	double seconds;
	struct arena arena;
	/* Called when an outcome is final, in the order in which they become so. May be NULL. */
	void (*told)(struct pass *pass, struct outcome *outcome);
};

/* Opens the dataset, the cache and the policy. 0, or with a sentence the exit code that the failure amounts to: EXIT_USAGE
 * for a root or device that the user named and that is none, EXIT_INTERNAL for the rest. */
int pass_open(struct pass *pass, struct reftest *reftest, const struct pass_options *options, struct err *err);

/* Which definitions: names ("rmsnorm_h4096", "rmsnorm/rmsnorm_h4096", a path to the file, a pattern with * or ?),
 * op_types; none of either: all. Every name must select something: -1 with the nearest one otherwise. */
int pass_select(struct pass *pass, const char *const *names, int name_count, const char *const *op_types,
                int op_type_count, struct err *err);

/* Runs. 0, also when interrupted; -1 when the machinery failed. */
int pass_run(struct pass *pass, struct err *err);

void pass_close(struct pass *pass);

/* What the outcome would be with one word: "op_type/name". */
const char *outcome_name(const struct outcome *outcome, struct arena *arena);

#endif
