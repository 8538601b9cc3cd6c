/* run_state - defines the structs of a run: its options, its results, and the state that several modules of engine/
 * share. engine/run.h declares the functions of a run.
 *
 * Commands fill in struct run_options from their command line. If you add an option that changes results, add it to
 * context_digest in engine/run_open.c. */
#ifndef REFTEST_ENGINE_RUN_STATE_H
#define REFTEST_ENGINE_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "dataset/dataset.h"
#include "dataset/verdict.h"
#include "engine/cases.h"
#include "engine/approved_reference.h"
#include "engine/dataset_truth.h"
#include "engine/file_digests.h"
#include "engine/equal_cases.h"
#include "engine/accepted_machines.h"
#include "engine/program.h"
#include "engine/run_store.h"
#include "engine/shard.h"
#include "engine/case_runner.h"
#include "engine/summary_lru.h"

struct stored_verdict; /* cache/store.h */
struct up_to_date_calls; /* engine/watcher_answers.h */
struct up_to_date_row;
struct base_references; /* engine/base_references.h */
struct candidates; /* engine/solution_candidates.h */
struct remote_cache; /* engine/remote_cache.h */

struct run_options {
	struct case_options cases;
	/* "auto", "cpu", "cuda", "cuda:N", "cuda:N,M"; NULL: the setting of the dataset if there is one, otherwise
	 * "auto". */
	const char *device;
	const char *device_class; /* --device-class: only verdicts of this class count; NULL: the class of the device */
	const char *python; /* the Python interpreter; NULL: search for one */
	/* The value of --ground-truth; NULL: the setting of the dataset if there is one, otherwise "auto". */
	const char *ground_truth;
	int jobs;           /* --jobs; 0: a default for the machine (engine/job_count.h) */
	/* The run is a part of `watch`, so it leaves cores free for the editor and for single definitions. */
	bool interactive;
	/* --require-containment: what references must not be able to access; NULL: no requirement */
	const char *required;
	int spares;         /* the value of pool_options.spares; 0: a default for the device */
	double timeout_s;
	int64_t memory;     /* --memory: bytes that a reference may use; 0: a default for each definition */
	bool kept_runners;  /* --isolation kept */
	bool force, cached_only, dry_run, staged;
	struct shard shard; /* --shard I/N */
	bool fail_fast;     /* --fail-fast: stop when a result is wrong or invalid */
	bool fail_findings; /* if `fail_fast` is true: stop also when a result has findings */
	/* The value of --accept; NULL: the setting of the dataset if there is one, otherwise nothing. */
	const char *accept;
	unsigned from_settings; /* set by run_defaults: bit 1 << enum setting_id for each setting that took effect */
	/* Computed from `accept` by run_defaults. Bit 1 << kind (enum checked_kind) is set if a `checked` definition of
	 * this kind does not change the exit status. */
	unsigned accept_bits;
	bool ignore_approvals; /* do not compare with approved references */
	bool share;         /* use $REFTEST_REMOTE if it is set */
	bool from_index;    /* --staged: read files from git's index (engine/staged_dataset.h); no watcher is queried */
	bool needs_device;  /* run_open fails with EXIT_UNVERIFIED if --device names a device that cannot be used */
	/* Keep the list of cases in every result; if false, a result that passed may have only counts. */
	bool details;
	/* In a dry run: if some case of a result has no verdict, the cases of this result are freed after on_result. */
	bool forget;
	bool thorough;      /* look up every case instead of using stored summaries */
	/* Create a result for every definition; if false, a definition whose stored summary is "passed" is only
	 * counted. */
	bool each;
	/* The functions that query a running watcher; NULL if no watcher is to be queried. A run that queries a watcher
	 * need not check every file. If `ask_verified` is set, the watcher lists the verified definitions. If
	 * `ask_rows` is also set, the list also has the number of cases of each of these definitions. `ask_names` is
	 * NULL, or an array with the names of `ask_count` definitions, for which the watcher looks up the paths. */
	const struct up_to_date_calls *watcher;
	bool ask_verified, ask_rows;
	const char *const *ask_names;
	int ask_count;
	/* NULL unless the run compares two versions of references (`reftest diff`). `base` has the older versions, and
	 * each of them is the only ground truth of its definition. Such a run neither reads nor stores verdicts. */
	const struct base_references *base;
	/* NULL unless the run verifies solutions instead of references (`verify --solutions`). Such a run neither reads
	 * nor stores verdicts. */
	const struct candidates *candidates;
	/* In a shared pool, the cases of this run start before the queued cases of other runs. Verdicts are reported
	 * immediately, and are stored at the end of the run in one transaction. */
	bool urgent;
};

struct case_result {
	const struct test_case *test;
	const struct verdict *verdict; /* NULL if there is no verdict, because of a dry run or an interrupt */
	bool cached;                   /* an earlier run stored the verdict */
	bool shared;                   /* the verdict comes from an equal case of this run */
	bool fetched;                  /* the verdict was found in the remote cache and not in the local store */
	bool in_store;                 /* the verdict is in the store */
	bool executes;                 /* the case was submitted to the runner and does not wait for an equal case */
	/* The seconds that the case took when it ran last (remembered_seconds); 0 if this is unknown, if the run is
	 * urgent, or if `executes` is false. */
	double remembered;
	const char *why;               /* the reason why the case ran, or why a stored verdict counts */
	/* verdict.after of this case (engine/case_order.h). after: as this run runs the case; NULL: it does not run.
	 * after_all: in a run of all cases. Both are NULL if test->job is NULL. */
	const char *after, *after_all;
	struct digest equal;           /* cases of a run with the same digest run only once */
	/* The text that the reference printed, if the case failed; NULL if it printed nothing. */
	const char *printed;
	struct digest witness;         /* digest of the ground truths, device class and versions that produced the
					* verdict (cache/fingerprint.h) */
	/* If only a part of the verdict was parsed, the stored text of the verdict; otherwise NULL. */
	const struct stored_verdict *stored;
};

/* The contents of a definition's files while the definition is planned. The buffers are reused for the next
 * definition. */
struct result_bytes {
	struct buf definition, workload, truth, approval;
};

struct result {
	const struct dataset_file *file;
	struct truths truths; /* the ground truths that the cases use */
	const struct definition *definition; /* NULL if the definition is invalid or the result comes from a summary */
	enum status status;
	enum reason reason;
	bool known;           /* every case has a verdict; false after a dry run or an interrupt */
	/* In a dry run: at least one case would have to run, but the store has a verdict of at least one case, possibly
	 * for an older version of the definition. If `stale` is false and a verdict is missing, the definition was
	 * never verified (unknown). */
	bool stale;
	/* A later run with the same contents of the files would take the verdict of every case from the store. */
	bool in_store;
	int findings;
	bool weak;            /* every passed case is weak: outputs that are all zeros would pass as well */
	const char *message;  /* why the definition is invalid */
	struct case_result *cases; /* NULL if the result comes from a summary */
	int case_count, done; /* `done` is the number of cases with a verdict */
	int planned;          /* the number of cases that were looked up and, if they must run, submitted */
	int attempt;          /* the number of op families that were tried and rejected (result_needs_next_attempt) */
	bool stateless;       /* the store says that the reference keeps nothing from one case to the next */
	bool in_order;        /* all cases run again, because some had run in another order (case_order_is_broken) */
	bool unsure;          /* an op family was rejected, and the verdict of one of its cases is not in the store */
	const struct cases *made; /* the cases of this attempt; NULL if `definition` is NULL */
	struct workload_file lines; /* the lines of the workload file */
	struct summary counts; /* always set */
	bool from_summary;
	/* The result comes from a summary in the watcher's memory (engine/summary_lru.h). The `latest` records in the
	 * store are not updated for such a result, so they may still refer to verdicts on other contents of the
	 * definition's files. */
	bool from_lru;
	bool changed;         /* a file changed while the cases ran, so no verdict was stored */
	/* `changed` is true, but the file has its old content again, so no watch event will follow. */
	bool put_back;
	/* Why no verdict of the definition is stored (the reference may depend on more than its inputs); NULL: verdicts
	 * are stored. */
	const char *outside;
	/* Why verdicts of the definition can be `checked` at best, and not `passed`; NULL: they can be `passed`. */
	const char *unsteady;
	bool waiting;         /* some case of the result waits for the pool; false if the result is final */
	bool dropped;	      /* run_drop removed the result */
	struct arena arena;   /* owns everything above */
	struct run *run;
	struct stat_check definition_check, workload_check, truth_check, approval_check;
	const struct dataset_file *workload; /* the workload file; NULL: there is no workload file */
	const struct dataset_file *truth; /* the file with the dataset's own truth; NULL: there is none */
	const char *truth_trouble; /* why `truth` cannot be read; NULL: no such problem */
	const struct dataset_file *approval; /* the file with the approved reference; NULL: there is none */
	const char *approval_trouble; /* why `approval` cannot be read; NULL: no such problem */
	struct approved_reference approved; /* the contents of the approval file; valid if `definition` is not NULL */
	/* The dataset's own ground truths of the definition. The first element is the file in truths/ or, if
	 * run_options.base is set, the older version of the reference. The second element is the definition's chain.
	 * Then come its solutions and, if a solution is verified, the reference. Valid if `definition` is not NULL. */
	const struct own_truth *own_truths;
	int own_truth_count;
	int candidate; /* the number of the solution that is verified, from 1; 0 if the reference is verified */
	const struct blob *blobs;
	int blob_count;
	struct digest inputs; /* digest of the contents of the definition, the workload file, the truth, the approval and
				* the blobs */
	/* started: the time at which the first case began to wait for the pool, or 0 if no case had to run; seconds:
	 * the time from then until all cases were finished */
	double started, seconds;
};

/* The writes to the store that are delayed until the end of the run. An urgent run delays all its writes. Other runs
 * delay only the `latest` records of cases for which a stored verdict counted. */
enum { LATER_MOST = 4096 };
struct later {
	struct store_put *puts; /* NULL: nothing is deferred */
	int count, room;
	struct arena arena;
};

enum {
	TICK_MS = 100,	  /* see on_tick */
	RUNNING_MOST = 16 /* the progress shows the cases of at most this many lanes */
};

struct run {
	struct program *program;
	const struct run_options *options;
	struct run_options filled; /* if run_open filled in defaults, `options` points to this member */
	struct dataset dataset;
	struct machine_policy machine;
	struct digest context;
	struct file_digests *digests;
	struct staged *staged;	 /* git's index, for --staged; NULL: files are read from disk */
	struct equal_cases *equal_cases; /* either `own_equal_cases` or a table that several runs share */
	struct equal_cases own_equal_cases;
	struct architectures architectures; /* the architectures of the models that the definitions name */
	struct later later;
	struct remote_cache *remote_cache; /* NULL: not used */
	struct summary_lru *summary_lru;   /* summaries that a watcher remembers; NULL: none */
	struct run_store records; /* {0}: the run stores nothing */
	struct runner runner;  /* {0} until the first case must run, or until run_lend is called */
	bool lent;
	const struct dataset_file **selected;
	int selected_count;
	struct result **results; /* in the order of `selected`; definitions that are only counted have no result */
	int count;
	const char **problems; /* messages about unreadable folders that may contain selected definitions */
	int problem_count;
	int visited;           /* the number of planned definitions in `selected` */
	int waiting;	       /* the number of results that wait for the pool */
	int other_shard;	       /* the number of definitions that have no result, because they belong to other
					* shards */
	int answered;	       /* the number of definitions that have no result, because their stored summary is
				* "passed" */
	uint64_t answered_elements;
	int up_to_date; /* the number of definitions that a watcher reports as verified; they are not in `dataset` */
	const struct up_to_date_row *up_to_date_rows; /* the definitions that a watcher reports as verified, sorted by
						       * path; NULL without ask_rows */
	uint64_t up_to_date_elements;
	int64_t cases_run, cases_cached;
	/* the number of cases in cases_cached that got the verdict of an equal case of this run */
	int64_t cases_shared;
	/* For each reason why a stored verdict does not count: the number of cases with this reason. */
	int64_t misses[LACK_COUNT];
	int64_t cases_planned; /* the number of cases that had to run or, with --dry-run, would have to run */
	int64_t cases_wrong;   /* the number of cases that ran and failed or raised an error */
	double seconds_of_cases; /* the sum of the seconds of the cases that ran */
	/* what the references of this run were able to access, in the form of verdict.containment; NULL: no reference
	 * ran */
	const char *containment;
	/* One sentence for each gap in `containment`; "" if there was no gap; NULL: no reference ran. */
	const char *gaps;
	const char *not_stored;  /* the reason why verdicts could not be stored; NULL: they could be stored */
	bool interrupted;
	bool stopped; /* fail_fast ended the run */
	double started, seconds;
	struct result_bytes bytes;
	struct arena arena;
	/* Called when a result becomes final. May be NULL. */
	void (*on_result)(struct run *run, struct result *result);
	/* Called for each definition that is only counted, which happens if run_options.each is false. The result is
	 * freed after the call. May be NULL. */
	void (*on_counted)(struct run *run, const struct result *result);
	/* run_to_end calls this while the run lasts, at most every TICK_MS milliseconds, to show the progress. May be
	 * NULL. */
	void (*on_tick)(struct run *run);
	double ticked; /* when on_tick was called last: seconds of the monotonic clock */
	/* Called by run_to_end when every selected definition is planned. Some results may be final already. May be
	 * NULL. */
	void (*on_planned)(struct run *run);
	/* Called for each blob (tensor file) in a workload, before the blob is checked. May be NULL. */
	void (*on_blob)(struct run *run, const char *blob);
};

#endif
