/* pass - one walk over selected definitions: what is verified is found, what is stale is run, what was learnt is kept.
 *
 * The same pass serves `verify`, `status` and `explain` (which let nothing run). Definitions come out as outcomes, in
 * path order. A definition whose files and whose run's context are as they were is answered from its summary without
 * being parsed; otherwise it is parsed, its cases are fingerprinted and looked up one by one, and what has no verdict
 * that counts is run. A file that changed while its reference ran keeps nothing of that run.
 *
 * This file is the walk; what a definition's files hold is commands/outcome.h, what counts and what it comes to
 * commands/ruling.h, what is stored commands/keep.h, and which definitions a user's words name commands/select.h. */
#ifndef REFTEST_COMMANDS_PASS_H
#define REFTEST_COMMANDS_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "commands/cases.h"
#include "commands/content.h"
#include "commands/flight.h"
#include "commands/machine_policy.h"
#include "commands/recall.h"
#include "dataset/dataset.h"
#include "dataset/verdict.h"
#include "reftest.h"

struct stored_verdict; /* cache/store.h */
struct vouched_row;    /* commands/ask.h */
struct sharing;        /* commands/sharing.h */

struct pass_options {
	struct case_options cases;
	const char *device; /* "auto", "cpu", "cuda", "cuda:N" */
	const char *device_class; /* --device-class: whose verdicts count; NULL: as the device has it */
	const char *python; /* NULL: look for one */
	const char *ground_truth; /* as truths_choose takes it; NULL: the first available */
	int jobs;           /* 0: as many as suit the machine */
	int spares;         /* pool_options.spares; 0: as many as suit the device */
	double timeout_s;
	bool force, cached_only, dry_run, staged;
	bool share;         /* through $REFTEST_REMOTE, if that is set */
	bool from_index;    /* --staged: files are those of git's index (commands/staged.h); no watcher is asked */
	bool details;       /* every outcome with its cases; false: a passed one may come with counts alone */
	bool thorough;      /* no summary is an answer: every case is looked up */
	bool each;          /* an outcome for every definition; false: those answered as passed are only counted */
	/* A running watcher may answer (commands/ask.h): that all is verified but what it names, or where these names are. */
	bool ask_verified, ask_rows; /* ask_rows: and what it is that it vouches for */
	const char *const *ask_names;
	int ask_count;
	bool urgent;        /* what must run goes before what other passes have waiting in the same pool, and verdicts are
	                       told before they are stored, all of them in one transaction at the end */
};

struct case_outcome {
	const struct test_case *test;
	const struct verdict *verdict; /* NULL: nothing is known (it would run, or was interrupted) */
	bool cached;                   /* the verdict was stored by an earlier run */
	bool shared;                   /* another case of this run has the same subject and ran for both */
	bool fetched;                  /* cached, but not here: the remote had it */
	bool kept;                     /* it is in the store now */
	const char *why;               /* the decision, as a sentence */
	const char *printed;           /* what the reference printed, when it failed; NULL: nothing */
	struct digest witness;
	const struct stored_verdict *stored; /* `verdict` is only the head of it; NULL: it is whole */
};

/* Is it a case of --edge, beside the verdict, that did not come out as its convention has it, by the reference's
 * doing? */
bool is_finding(const struct case_outcome *c);

struct outcome {
	const struct dataset_file *file;
	struct truths truths; /* what its cases are verified by */
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
	bool recalled;        /* from that of an earlier time (commands/recall.h): `latest` of its cases is another content's */
	bool changed;         /* a file changed while it ran: nothing was kept */
	bool put_back;        /* and changed back, without a trace: nobody will hear of it */
	const char *outside;  /* NULL, or the sentence why no verdict on it counts later: it may depend on more than its text */
	bool waiting;         /* for the pool; false: final */
	bool elsewhere;       /* every case of it belongs to another shard */
	bool dropped;         /* pass_drop: nobody wants it any more */
	struct arena arena;   /* owns everything above */
	struct pass *pass;
	struct look definition_look, workload_look;
	const struct dataset_file *workload; /* NULL: none */
	const struct blob *blobs;
	int blob_count;
	struct digest inputs; /* of all these contents */
	double started, seconds; /* of the runs of its cases */
};

/* Writes that can wait: a verdict that counts already and is only noted as the latest, and all of an urgent pass. */
enum { LATER_MOST = 4096 };
struct later {
	struct store_put *puts; /* NULL: none yet */
	int count, room;
	struct arena arena;
};

struct pass {
	struct reftest *reftest;
	const struct pass_options *options;
	struct dataset dataset;
	struct machine_policy machine;
	struct digest context;
	struct contents *contents;
	struct staged *staged;	 /* NULL: files are the disk's */
	struct flights *flights; /* its own, or shared with other passes */
	struct flights own_flights;
	struct later later;
	struct sharing *sharing; /* NULL: with nobody */
	struct recall *recall; /* NULL: nothing is remembered of contents that are gone */
	struct pool *pool;     /* NULL until something must run; or lent by who made the pass */
	bool lent;
	const struct dataset_file **selected;
	int selected_count;
	struct outcome **outcomes; /* in the order of `selected`, those that were only counted left out */
	int count;
	const char **problems; /* a sentence for each folder that could not be read and may hold what was selected */
	int problem_count;
	int visited;           /* of `selected` */
	int waiting;           /* outcomes that wait for the pool */
	int elsewhere;         /* definitions of which every case belongs to another shard, and that have no outcome */
	int answered;          /* definitions that a summary answered as passed and that have no outcome */
	uint64_t answered_elements;
	int vouched;           /* definitions that a running watcher vouches for, and that are not in `dataset` */
	const struct vouched_row *vouched_rows; /* ask_rows: as many, sorted by path; else NULL */
	uint64_t vouched_elements;
	int64_t cases_run, cases_cached;
	int64_t misses[LACK_COUNT]; /* cases that no stored verdict answered, by what the nearest lacked */
	int64_t cases_planned; /* those that had to run, or have to */
	const char *not_kept;  /* NULL, or the sentence why verdicts could not be stored */
	bool interrupted;
	double started, seconds;
	struct buf definition_bytes, workload_bytes;
	struct arena arena;
	/* Called when an outcome is final, in the order in which they become so. May be NULL. */
	void (*told)(struct pass *pass, struct outcome *outcome);
	/* Called for those that are only counted (pass_options.each is false); the outcome is gone afterwards. May be NULL. */
	void (*counted)(struct pass *pass, const struct outcome *outcome);
	/* Called for each blob that a workload names, before anything of it is looked at. May be NULL. */
	void (*looks_at)(struct pass *pass, const char *blob);
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

/* ---- The same in steps, for who has a loop of his own (watch) and a pool that outlives the pass -------------------- */

/* pass_open and pass_select in one, for the definitions at these paths alone (dataset_some), so that nothing else of the
 * dataset is looked at; `paths` NULL: for all. Root, kernels and store of `reftest` are open already; `machine` and the
 * options must outlive the pass. */
int pass_open_some(struct pass *pass, struct reftest *reftest, const struct pass_options *options,
                   const struct machine_policy *machine, const char *const *paths, int count, struct err *err);

/* A pool as the options have it. NULL with the sentence why there can be none. */
struct pool *pass_open_pool(const struct reftest *reftest, const struct pass_options *options,
                            const struct machine_policy *machine, struct err *err);

/* From here on what must run is given to `pool`, which the pass does not close. NULL: to one that it opens itself. Passes
 * that share `flights` (NULL: its own) share their runs too, and are to be closed together. */
void pass_lend(struct pass *pass, struct pool *pool, struct flights *flights);

int pass_begin(struct pass *pass, struct err *err);
bool pass_visit(struct pass *pass); /* plans one definition more; false: all are planned */
bool pass_done(const struct pass *pass); /* every outcome is final */
void pass_end(struct pass *pass);   /* keeps what was learnt */

/* Takes what the pool has and gives it to the passes that it belongs to. */
void pass_take_results(struct pool *pool);

/* The pool is no more: everything that waits for it is told `why`. */
void pass_give_up(struct pass *pass, const char *why);

/* A file of the definition at `path` has changed: what is being done about the old text is given up, nothing more is
 * told of it, and who waited for one of its cases runs it himself. true: it was not final yet. */
bool pass_drop(struct pass *pass, const char *path);

/* What the outcome would be with one word: "op_type/name". */
const char *outcome_name(const struct outcome *outcome, struct arena *arena);

#endif
