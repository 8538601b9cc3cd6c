/* trial_internal - the state of one trial. Only files of workers/judge include this header. trial.c decides the order
 * of the steps, the verdict, and which ground truths are tried. These files have the steps of a trial:
 *
 * - trial_custom_inputs.c: the inputs that the definition's own code makes
 * - trial_tensors.c: the tensors of the case, their memory, and the values of the inputs
 * - trial_stage.c: the layout of the shared arena, and the messages to runner and provider
 * - checks_after_run.c: the checks of the shared arena after a run
 * - trial_compare.c: the comparison of the reference's results with a ground truth
 * - trial_diagnosis.c: the cause of a failure
 * - trial_save.c: the tensors of the case as a file, for `verify --save`
 * - trial_checks.c: the checks of a case without ground truth
 * - extra_runs.c: the additional runs for the checks of trial_checks.c; extra_rows.c: the additional runs that change
 *   rows
 * - trial_ground_truths.c: the ground truths of other libraries, and the check that all ground truths agree
 *
 * In identifiers, "contents" means a set of input values. */
#ifndef REFTEST_WORKERS_JUDGE_TRIAL_INTERNAL_H
#define REFTEST_WORKERS_JUDGE_TRIAL_INTERNAL_H

#include <stdbool.h>

#include "dataset/verdict.h"
#include "workers/judge/trial.h"
#include "workers/judge/unit_distance.h"
#include "workers/protocol/job.h"
#include "workers/protocol/layout.h"

enum { TRIAL_CANARY = 0xA5 };

/* The runs of a case: on the first set of input values, on the second set, and on the first set again. If there is only
 * one set, there is no second run. There is only one set if no second set can be made, if the workload provides every
 * input, if the case probes a constant, or if job.runs demands a single set. (If job.runs is JOB_RUNS_SECOND, this is
 * the second set, and RUN_FIRST uses it.) job.runs also determines whether there is a third run. A small case without
 * ground truth has extra runs (extra_runs.c). */
enum trial_run { RUN_FIRST, RUN_SECOND, RUN_AGAIN, RUN_EXTRA, RUN_COUNT };

/* The checks of a case without ground truth, in the order in which the verdict lists them (trial_checks.c). */
enum trial_check_kind {
	TRIAL_CHECK_OUTPUTS,
	TRIAL_CHECK_REPEAT,
	TRIAL_CHECK_SEEDS,
	TRIAL_CHECK_INPUTS_KEPT,
	TRIAL_CHECK_FINITE,
	TRIAL_CHECK_NOT_CONSTANT,
	TRIAL_CHECK_STRIDED,
	TRIAL_CHECK_ROWS,
	TRIAL_CHECK_NUMERICS,
	TRIAL_CHECK_DEVICES,
	TRIAL_CHECKS
};

/* A round: the state for one of the two sets of input values of a case. Large data is behind pointers, because the
 * struct is cleared for each case. */
struct round {
	struct op_case c; /* the case with one of its two sets of input values; c.contents says which set */
	struct input_source scalar[OP_ARGS];
	struct tensor in[OP_ARGS];    /* the inputs, valid while `held` is set; data is NULL if the input is absent or a
				       * Python scalar */
	struct tensor first[OP_ARGS]; /* private copies of the outputs after the first run on this set */
	struct tensor left[OP_ARGS];  /* private copies of inputs that the reference may write to; the data of other
				       * inputs is NULL */
	/* The values that each ground truth computed for the outputs. After the outputs, from index op_own_place on, a
	 * row has the values that inputs must have after the run, if the ground truth computes such values. */
	struct tensor (*truth)[OP_PLACES]; /* one row for each ground truth of the case */
	/* The precision of each ground truth's arithmetic, as one tolerance rule per output. NULL if the arithmetic is
	 * at least as precise as the case's tolerance rules. */
	const struct rule *coarse[GROUND_TRUTHS_MAX];
	bool computed; /* `truth` has builtin's values, but the reference may not have been compared with them yet */
	bool answered[GROUND_TRUTHS_MAX]; /* the ground truth was computed, and the reference was compared with it */
	const char
	    *passed_over[GROUND_TRUTHS_MAX]; /* the reason why a ground truth was skipped; NULL: it was not skipped */
	int asked;		   /* the number of ground truths that are done; the next one is in progress */
	bool judged[OP_ARGS]; /* the reference may write to this input, and its final values have been checked */
	bool ungiven[OP_ARGS]; /* autograd returned None for this gradient, so zeros replace the gradient */
	struct output_verdict *outputs; /* the comparisons of outputs and of written inputs, allocated in the arena of
					 * the trial */
	bool *of_input;                 /* of_input[i]: outputs[i] compares an input that the reference wrote to, not an
					 * output */
	int output_count, output_room;
	double *evidence[OP_ARGS]; /* evidence[output]: what op.judge wrote for op.judge_both, allocated in the arena of the
				    * trial; NULL: nothing yet */
	bool weak;            /* outputs that have only zeros would also pass */
	enum reason missed;   /* the reason why the outputs fail; REASON_NONE: they do not fail */
	struct buf misses;    /* messages about outputs that differ from a ground truth */
};

/* The results of the extra runs that test whether rows along an axis depend on each other. */
enum row_result { ROWS_UNSEEN, ROWS_INDEPENDENT, ROWS_MIXED };
enum { ROW_AXES = 4 /* the maximum number of axes that are examined */ };

/* The kinds of extra runs, in their order (extra_runs.c). */
enum extra_kind { EXTRA_SEEDS, EXTRA_GRADIENTS, EXTRA_INPUTS, EXTRA_STRIDED, EXTRA_ROWS, EXTRA_FLOAT64, EXTRA_ON_CPU, EXTRA_KINDS };

/* The state of the extra runs. */
struct extra {
	bool fit;		   /* the case is small enough for extra runs */
	enum extra_kind kind;	   /* the kind of the current run */
	int item, runs, failures;  /* item: the number of the run within its kind; runs: how many runs were made;
				    * failures: how many of them failed */
	const char *failure;	   /* the message of the first failure */
	const cJSON *answer;	   /* the runner's answer to the current run, while it is read */
	struct round round;	   /* the inputs of the current run, and the dtypes and shapes that its outputs must
				    * have */
	struct tensor out[OP_ARGS]; /* private memory for the outputs of an extra run */
	const struct tensor *first[OP_ARGS]; /* host copies of the first run's outputs; NULL: not copied yet */
	int rows_axis;		   /* the axis whose rows this run changes; -1: none */
	bool rows_alone;	   /* the run uses only the last row; otherwise it uses the rows in reverse order */
	enum row_result rows[ROW_AXES];
	const char *mixed_rows;	   /* a sentence about the first output row that depends on other rows; NULL: none */
	const struct tensor *wide; /* the float64 result of the output that lost most digits; NULL: none */
	int lost_output;	   /* the index of the output that lost most digits */
	double lost_units;	   /* the distance between the output `lost_output` and its float64 result, in units of
				    * the output's dtype */
	bool unstable;		   /* the check `numerics` found that digits are lost, and that another order of steps
				    * in the reference would keep them */
	uint64_t changed_outputs;  /* bit i is set if some input has an effect on output i */
	int without_effect;	   /* the first input that has no effect, or -1 */
	uint64_t by_gradient;	   /* bit i is set if the gradient of the outputs with respect to input i is not zero */
	int examined, gradients;   /* the number of inputs whose effect was examined, and how many of them were examined
				    * by gradients */
	bool all_examined;	   /* the effect of every input was examined */
	bool tensor_left_out;	   /* at least one tensor has equal values in both sets; this may hide the effect of
				    * other inputs */
};

/* The inputs that the definition's own code makes. The struct is all zeros until the code runs. */
struct custom_inputs {
	bool done;		   /* the code has made all sets, and set_job is set */
	enum op_contents contents; /* the set of input values that the code makes now */
	int sets;		   /* the number of sets that the judge has copied */
	int64_t *axis;		   /* the lengths of the axes, from the case and from the shapes of the inputs */
	struct input_source *sources[CONTENTS_COUNT]; /* the sources of the inputs in each set, including those that the
						       * code made */
	void *memory[CONTENTS_COUNT];		      /* device memory with the values; NULL: none */
	const char *alike; /* the reason why there is only one set, such as "the same inputs for another seed"; NULL:
			    * there are two sets */
};

struct trial {
	struct judge_context *context;
	struct device *device; /* the device of the context */
	struct arena arena;
	const struct job *job;	      /* NULL if the job could not be parsed */
	/* If the definition's code makes inputs: one job for each set of input values, with the scalars of this set.
	 * Otherwise NULL. */
	const struct job *set_job[CONTENTS_COUNT];
	struct custom_inputs custom;
	const bool *guessed_axis; /* for each axis, whether its length is a guess; NULL: no length is a guess */
	const struct op_entry *entry; /* NULL if the case has no op family */
	const struct op *op;
	struct op_constant constants[OP_CONSTANTS];
	struct truths truths;	      /* the ground truths to try: the job's list, or only builtin */
	struct tried_truth tried[GROUND_TRUTHS_MAX];
	struct round round[CONTENTS_COUNT];
	int variant;		/* the variant of the op family that op.match found */
	int judging;		/* the index of the round for which ground truths are being tried */
	int rounds;             /* the number of sets of input values of this case, 1 or 2 */
	bool probing;           /* the current run is that of the probing case, which comes before the actual case */
	bool held[CONTENTS_COUNT]; /* held[i]: the inputs of set i are in the judge's memory */
	int64_t input_bytes;	/* the size in bytes of one set of inputs */
	bool one_set;		/* the memory has room for only one set of inputs, so filling one set overwrites the
				 * other */
	struct shared_memory *answer_memory; /* the memory in which the case is staged for the process that computes a
					      * ground truth; NULL: the case is staged in the shared arena */
	unsigned char *spare;	   /* LAYOUT_ALIGN bytes of private memory, used to read single elements */
	struct layout layout;	   /* the layout of the current run: inputs, then outputs */
	enum trial_run run;	   /* the current run, or the last one if no run is in progress */
	bool seed_changed;	   /* RUN_AGAIN had a different seed from the first run */
	const char *seed_matters;  /* the first tensor that differed when the seed was different; NULL: none */
	uint64_t overwrites;	   /* bit i is set if output i used the memory of an output of an earlier run */
	struct check checks[TRIAL_CHECKS]; /* a check whose name is NULL was not run */
	struct extra extra;
	struct latency latencies[LATENCIES_MAX]; /* empty unless the job asks for latencies */
	int latency_count;
	bool decided;		   /* the status and the reason of `verdict` are final */
	struct verdict verdict;
};

/* workers/judge/trial.c. The first decision about status and reason is final: trial_decide ignores later decisions. */
void trial_decide(struct trial *trial, enum status status, enum reason reason, const char *message);
void trial_decide_error(struct trial *trial, const struct err *err);
void trial_add_finding(struct trial *trial, const char *sentence);
bool trial_is_builtin(const struct truth *truth);
int trial_builtin_at(const struct trial *trial);
struct shared_memory *trial_stage_of(struct trial *trial);
enum trial_answer trial_give_verdict(struct trial *trial, struct buf *out);
bool trial_is_last_run(const struct trial *trial);
/* Returns the round (the set of input values) that a run uses. */
struct round *trial_round_of_run(struct trial *trial, enum trial_run run);

/* workers/judge/trial_custom_inputs.c */
bool trial_needs_custom_inputs(const struct trial *trial);
/* Writes the message that asks the definition's code for the next set of inputs. */
enum trial_answer trial_ask_custom_inputs(struct trial *trial, struct buf *out);
/* Returns the message "PLACE: FUNCTION made no inputs for this case: SENTENCE". */
const char *trial_inputs_message(struct trial *trial, const char *sentence);
void trial_free_custom_inputs(struct trial *trial);

/* workers/judge/trial_tensors.c */
int trial_tensor_count(const struct trial *trial);
struct op_in_place trial_in_place(const struct trial *trial, const struct round *round, int input);
/* Fills the inputs of a round, unless they are already in memory. If they cannot be filled, sets the status of the case
 * and returns -1. */
int trial_hold_inputs(struct trial *trial, struct round *round);
/* Frees the inputs if they are larger than the limit for inputs that stay in memory while a reference runs. */
void trial_drop_inputs(struct trial *trial);
int trial_arrange(struct trial *trial, const int64_t *axis, bool probing);

/* workers/judge/trial_stage.c */
/* Writes the value of a Python scalar, or null for an omitted input. */
void trial_write_value(struct buf *out, const struct input_source *scalar);
/* Writes the name, dtype, shape and offset of a tensor as an object without its closing brace. */
void trial_write_place(const struct trial *trial, struct buf *out, int index, const char *name,
		       const struct tensor *tensor);
void trial_write_run(struct trial *trial, const struct round *round, struct buf *out);
void trial_write_provide(struct trial *trial, const struct round *round, const char *provider, struct buf *out);
void trial_write_truth(struct trial *trial, const struct round *round, const char *name, struct buf *out);
int trial_stage(struct trial *trial, const struct round *round, enum trial_run run, struct err *err);
/* Sets `parts` to the parts of the shared arena in which canaries must be. `parts` has room for trial->layout.gap_count
 * parts. Returns their number. */
int trial_canary_parts(const struct trial *trial, struct shared_part *parts);

/* workers/judge/checks_after_run.c */
const char *trial_overwritten_canary(struct trial *trial, struct err *err, int *rc);
void trial_check_canaries(struct trial *trial);
/* How a tensor in the shared arena differs from its private copy. Only the first element whose bits differ is examined.
 * DIFFERS_UNKNOWN means that it is not known whether any values differ: the two values of this element are equal (0 and
 * -0), one of them is NaN, or an error has set the status of the case. */
enum trial_difference { DIFFERS_NOT, DIFFERS_IN_VALUE, DIFFERS_UNKNOWN };
enum trial_difference trial_first_difference(struct trial *trial, int tensor_index, const struct tensor *copy);
void trial_check_inputs(struct trial *trial, const struct round *round);
/* Returns a message about the first input that a ground truth changed in its memory, or NULL. Ignores inputs that a
 * reference may write to. */
const char *trial_changed_by_truth(struct trial *trial, const struct round *round);
/* output_shapes.c: `said` is the runner's description of the output. trial_wrong_form returns NULL if the output has
 * the shape and dtype that the definition declares. Otherwise trial_wrong_form returns a message and sets `reason`.
 * trial_check_shape sets the status of the case if the shape or the dtype differs. */
const char *trial_wrong_form(struct trial *trial, const struct round *round, int output, const cJSON *said,
			     enum reason *reason);
void trial_check_shape(struct trial *trial, const struct round *round, int output, const cJSON *said);

void trial_check_forms(struct trial *trial, struct round *round, const cJSON *ran);
/* The reference may overwrite some inputs with outputs. Checks that it overwrote all of these inputs, or none of them.
 * If it overwrote only some of them, a caller could not know which inputs have new values. Ignores an input whose
 * values the operation does not change, because such an input does not show whether the reference wrote to it. */
void trial_check_replaced(struct trial *trial, const struct round *round);
/* Call this after RUN_AGAIN. Returns whether the seed may be the cause of a difference: RUN_AGAIN had another seed than
 * the first run, and a tensor differs between the two runs. If so, the caller must repeat RUN_AGAIN with the first
 * run's seed. After that, trial_check_deterministic compares the repeated run with the first run. */
bool trial_needs_first_seed(struct trial *trial, const struct round *round);
/* Returns whether RUN_AGAIN must seed the generators differently from the first run, because the check `seeds` needs
 * this. */
bool trial_changes_seed(const struct trial *trial);
void trial_check_deterministic(struct trial *trial, const struct round *round);
int trial_copy_what_was_written(struct trial *trial, const struct round *round, struct err *err);
int trial_copy_provided(struct trial *trial, const struct round *round, struct tensor *to, struct err *err);

/* workers/judge/trial_compare.c */
struct tensor *trial_on_host(struct trial *trial, struct arena *arena, const struct tensor *tensors, int count,
			     struct err *err);
struct rule trial_rule_for(const struct trial *trial, const struct round *round, int output, int a, int b);
int trial_compare_tensors(struct trial *trial, const struct round *round, int output, const struct tensor *found,
			  const struct tensor *wanted, struct rule rule, const char *truth_name,
			  struct output_verdict *out, double *evidence, const char **miss, struct err *err);
void trial_judge_both(struct trial *trial);
int trial_unjudged_input(const struct trial *trial, const struct round *round);
int trial_compare_with(struct trial *trial, struct round *round, int at);
void trial_pass_over(struct trial *trial, struct round *round, int at, bool accident, const char *why);
void trial_ask_builtin(struct trial *trial, struct round *round, int at);
/* Computes the definition's chain of operations, and compares the outputs with the result. */
void trial_ask_chain(struct trial *trial, struct round *round, int at);
/* If it is certain that the outputs must be compared with builtin, and this has not been done yet, computes builtin and
 * compares the outputs with it. */
void trial_ask_builtin_early(struct trial *trial, struct round *round);

/* workers/judge/trial_diagnosis.c */
/* Adds the cause of a failure to the verdict. Call this only when the status is final. */
void trial_diagnose(struct trial *trial);

/* workers/judge/trial_save.c */
/* If the job names a file, writes the tensors of the case to it. If this fails, no incomplete file remains. */
void trial_save(struct trial *trial);

/* workers/judge/trial_latency.c */
/* Records the latencies that the answer of a process reports. `name` is the reference or a ground truth. Only the first
 * latencies for a name are recorded. `name` must stay valid until the trial is closed. */
void trial_note_latency(struct trial *trial, const char *name, const cJSON *message);
/* Records how long a single call took. */
void trial_note_seconds(struct trial *trial, const char *name, double seconds);

/* workers/judge/trial_checks.c */
#define TRIAL_SEEDS_HOLD "another seed of the generators of torch, NumPy and Python gives the same bits"
/* Returns whether the case has no op family, so that checks determine its status. */
bool trial_is_checked(const struct trial *trial);
/* Returns whether the job requests checks (job.checks) in addition to the ground truth of an op family. */
bool trial_has_checks_beside(const struct trial *trial);
/* Records the result of a check. If a check fails several times, the first failure is kept. `evidence` must stay valid
 * until the trial is closed. */
void trial_note_check(struct trial *trial, enum trial_check_kind kind, enum check_result result, const char *evidence);
/* Records that the reference changed an input. `sentence` says which input changed, and where. */
void trial_note_written_input(struct trial *trial, int input, const char *sentence);
/* Runs the checks that need no extra run, after the last run of the case. */
void trial_make_checks(struct trial *trial);
/* If a check fails, sets the status and the reason. If no check fails and `alone` is true, sets the status `checked`
 * with the message `why`. `alone` means that no ground truth was computed for at least one set of input values, and
 * `why` is the reason. */
void trial_decide_by_checks(struct trial *trial, bool alone, const char *why);
/* Adds the checks to the verdict. Call this only when the status is final. If the case has an op family, adds only the
 * checks that were run, and a finding for each check that fails or shows that digits are lost. */
void trial_list_checks(struct trial *trial);

/* workers/judge/extra_runs.c */
/* Returns whether a case gets extra runs if its tensors have `bytes` bytes. */
bool extra_runs_fit(const struct trial *trial, int64_t bytes);
/* Returns how many bytes an output of an extra run may need. This is more than the output itself needs, because one
 * extra run has outputs in float64. */
int64_t extra_runs_bytes(const struct tensor *output);
/* Stages the next extra run and writes the message to the runner. Returns false if there is no further extra run. */
bool extra_runs_next(struct trial *trial, struct buf *out);
/* Reads the results of the current extra run. */
void extra_runs_read(struct trial *trial, const cJSON *ran);
/* Records that the runner ended in the current extra run. After this, there is no further extra run. */
void extra_runs_end(struct trial *trial, const char *message);
/* Two outputs count as equal if their distance is at most this number of units of the declared dtype. Computing a sum
 * in another order changes the sum by a few units. */
enum { EXTRA_SAME_UNITS = 16 };
/* Compares an output of this run with the same output of the first run. Returns the largest distance, in units of the
 * declared dtype, or NaN if the output cannot be read. `order` says which elements correspond; NULL: those with the
 * same index. */
double extra_output_distance(struct trial *trial, int output, const struct row_order *order);
/* Returns the field "extra" of the message, which says how the runner must call the reference. Returns NULL if the
 * current run is not an extra run. */
const char *extra_run_mode(const struct trial *trial);

/* workers/judge/extra_rows.c: the functions for the check `rows`, which extra_runs.c calls. */
int extra_rows_count(const struct trial *trial);
bool extra_rows_prepare(struct trial *trial, int item);
/* Call this after trial_stage. Overwrites the inputs in the shared memory with the rows of this run. */
int extra_rows_stage(struct trial *trial, struct err *err);
void extra_rows_read(struct trial *trial, int item);
void extra_rows_finish(struct trial *trial);

/* workers/judge/trial_ground_truths.c */
/* Writes the request for ground truth `at` to `out`, and returns true. If this ground truth cannot be requested, skips
 * it and returns false. */
bool trial_ask_provider(struct trial *trial, struct round *round, int at, struct buf *out);
void trial_take_provided(struct trial *trial, struct round *round, int at, const cJSON *said, const cJSON *message);
void trial_check_agreement(struct trial *trial, struct round *round);

#endif
