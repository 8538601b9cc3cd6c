/* trial_parts - one trial as its parts see it; for the files of workers/trial*.c alone. trial.c has the order, the
 * verdict and who is asked; the others what is done at each step:
 *
 *   trial_arrange.c   tensors of the case, memory, inputs
 *   trial_stage.c     a layout of the arena, and the message that goes with it
 *   trial_found.c     what a run left there
 *   trial_compare.c   that against a ground truth
 *   trial_witness.c   ground truths of other libraries, and whether they agree */
#ifndef REFTEST_WORKERS_TRIAL_PARTS_H
#define REFTEST_WORKERS_TRIAL_PARTS_H

#include <stdbool.h>

#include "dataset/verdict.h"
#include "workers/job.h"
#include "workers/layout.h"
#include "workers/trial.h"

enum { TRIAL_CANARY = 0xA5 };

/* The runs of a case: on the first contents, on the second, and on the first again. A case that has but one set of contents
 * (no family knows it; a workload gives every input; a constant is being probed) leaves the second run out. */
enum trial_run { RUN_FIRST, RUN_SECOND, RUN_AGAIN, RUN_COUNT };

/* What belongs to one of the two contents of a case. */
struct round {
	struct op_case c; /* c.contents says which */
	struct input_source scalar[OP_ARGS];
	struct tensor in[OP_ARGS];    /* the judge's own; data NULL: absent, or a Python scalar. Filled while `held` says so */
	struct tensor first[OP_ARGS]; /* private copies of the outputs after the first run on these contents */
	struct tensor left[OP_ARGS];  /* and of the inputs that may be written to; data NULL: of the others */
	struct tensor truth[TRUTHS_MAX][OP_PLACES]; /* of outputs; builtin's from op_own_place on: of inputs with one of
						       their own */
	const struct rule
	    *coarse[TRUTHS_MAX];   /* by output: what a witness's arithmetic is good for; NULL: for the case's rules */
	bool answered[TRUTHS_MAX]; /* this one's truth is there, and the reference has been compared with it */
	const char *passed_over[TRUTHS_MAX]; /* why a witness decided nothing here; NULL: it was not passed over */
	int asked;		   /* witnesses [0, asked) have been gone through; the next is being asked */
	bool judged[OP_ARGS]; /* what the reference left in this input, which it may write to, is known to be right or
				 wrong */
	bool ungiven[OP_ARGS]; /* autograd gave this output, a gradient, nothing: zeros lie in its place */
	struct output_verdict outputs[TRUTHS_MAX * OP_PLACES]; /* and of the inputs that were written to */
	bool of_input[TRUTHS_MAX * OP_PLACES];		       /* this one of `outputs` is an input's */
	int output_count;
	bool weak;            /* zeros would have passed for every output */
	enum reason missed;   /* why the outputs fail against the ground truth; REASON_NONE: they do not */
	struct buf misses;    /* sentences on outputs that are not as a ground truth has them */
};

struct trial {
	struct court *court;
	struct device *device; /* the court's */
	struct arena arena;
	const struct job *job;	      /* NULL: it could not be read */
	const struct op_entry *entry; /* NULL: no family */
	const struct op *op;
	struct op_constant constants[OP_CONSTANTS];
	struct truths truths;	      /* those of the job, or builtin alone */
	struct witness witness[TRUTHS_MAX];
	struct round round[CONTENTS_COUNT];
	int variant;		/* what op.match returned */
	int judging;		/* the round whose witnesses are being asked */
	int rounds;             /* sets of contents that this case has, 1 or 2 */
	bool probing;           /* the runs are those of the probing case, which comes before the case itself */
	bool held[CONTENTS_COUNT]; /* the inputs of this round lie filled in the judge's memory */
	int64_t input_bytes;	/* of one set of inputs */
	bool one_set;		/* there is memory for one set of inputs only: making one gives the other up */
	bool at_stand;		   /* what is staged lies in the court's stand, for a provider */
	unsigned char *spare;	   /* LAYOUT_ALIGN bytes of private memory, to look at single elements */
	struct layout layout;	   /* of the run under way: inputs, then outputs */
	enum trial_run run;	   /* under way, or the last */
	const char *overwritten;   /* which output overwrites that of the call before; NULL: none does */
	bool decided;		   /* `verdict` has status and reason already */
	struct verdict verdict;
};

/* workers/trial.c: what decides first decides. */
void trial_decide(struct trial *trial, enum status status, enum reason reason, const char *message);
void trial_decide_error(struct trial *trial, const struct err *err);
void trial_add_finding(struct trial *trial, const char *sentence);
bool trial_is_builtin(const struct truth *truth);
int trial_builtin_at(const struct trial *trial);
struct shared *trial_stage_of(struct trial *trial);

/* workers/trial_arrange.c */
int trial_tensor_count(const struct trial *trial);
struct op_leaves trial_leaves(const struct trial *trial, const struct round *round, int input);
bool trial_has_own_truth(const struct trial *trial, const struct round *round, int input);
/* Fills the inputs of a round unless they are. -1: decided. */
int trial_hold_inputs(struct trial *trial, struct round *round);
/* Gives the memory of inputs back if it is more than is kept while a reference runs. */
void trial_drop_inputs(struct trial *trial);
int trial_arrange(struct trial *trial, const int64_t *axis, bool probing);

/* workers/trial_stage.c */
void trial_write_run(struct trial *trial, const struct round *round, struct buf *out);
void trial_write_provide(struct trial *trial, const struct round *round, const char *provider, struct buf *out);
int trial_stage(struct trial *trial, const struct round *round, enum trial_run run, struct err *err);

/* workers/trial_found.c */
const char *trial_hurt_canary(struct trial *trial, struct err *err, int *rc);
void trial_check_canaries(struct trial *trial);
void trial_check_inputs(struct trial *trial, const struct round *round);
const char *trial_wrong_form(struct trial *trial, const struct round *round, int output, const cJSON *said,
			     enum reason *reason);
void trial_check_forms(struct trial *trial, struct round *round, const cJSON *ran);
void trial_check_deterministic(struct trial *trial, const struct round *round);
int trial_copy_what_was_written(struct trial *trial, const struct round *round, struct err *err);
int trial_copy_provided(struct trial *trial, struct tensor *to, struct err *err);

/* workers/trial_compare.c */
struct tensor *trial_on_host(struct trial *trial, struct arena *arena, const struct tensor *tensors, int count,
			     struct err *err);
struct rule trial_rule_for(const struct trial *trial, const struct round *round, int output, int a, int b);
int trial_compare_tensors(struct trial *trial, const struct round *round, int output, const struct tensor *found,
			  const struct tensor *wanted, struct rule rule, const char *truth_name,
			  struct output_verdict *out, const char **miss, struct err *err);
void trial_judge_both(struct trial *trial);
int trial_unjudged_input(const struct trial *trial, const struct round *round);
int trial_compare_with(struct trial *trial, struct round *round, int at);
void trial_pass_over(struct trial *trial, struct round *round, int at, bool accident, const char *why);
void trial_ask_builtin(struct trial *trial, struct round *round, int at);
void trial_ask_builtin_early(struct trial *trial, struct round *round);

/* workers/trial_witness.c */
bool trial_ask_provider(struct trial *trial, struct round *round, int at, struct buf *out);
void trial_take_provided(struct trial *trial, struct round *round, int at, const cJSON *message);
void trial_check_agreement(struct trial *trial, struct round *round);

#endif
