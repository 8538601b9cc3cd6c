/* lane_internal - functions that are shared by the files that implement workers/pool/lane.h. */
#ifndef REFTEST_WORKERS_POOL_LANE_INTERNAL_H
#define REFTEST_WORKERS_POOL_LANE_INTERNAL_H

#include <cjson/cJSON.h>

#include "workers/pool/lane.h"

enum { BLAME_MS = 30000 }; /* the time in which a judge must give the verdict about a failed case */

/* ---- lane.c ---- */

/* Kills the judge. After the judge has been reaped, a new judge is started when the lane needs one. */
void lane_kill_judge(struct pool_shared *shared, struct lane *lane);
/* Gives the case an error verdict without a judge, because the judge has failed. */
void lane_verdict_without_judge(struct pool_shared *shared, struct lane *lane, enum reason reason, const char *message);
/* Kills the runner, and asks the judge for the verdict of a case in which the reference failed. */
void lane_blame_child(struct pool_shared *shared, struct lane *lane, const char *reason, const char *message);
/* Asks the judge for the verdict of a case for which the definition's code could not make the inputs. `accident` means
 * that the failure is transient, and `raised` means that the code raised an exception. */
void lane_blame_inputs(struct pool_shared *shared, struct lane *lane, const char *message, int64_t line, bool accident,
		       bool raised);
/* Kills the runner, but keeps its printed text, which is returned with the next verdict. */
void lane_drop_child(struct pool_shared *shared, struct lane *lane);
const struct job *lane_current_job(const struct lane *lane);
/* Continues with the next case of the lane's work, if there is one. */
void lane_next_case(struct pool_shared *shared, struct lane *lane);
/* Returns the size in bytes of the largest case of a task. */
int64_t lane_largest_case(const struct task *task);
/* Writes the members "memory", "memory_has_room" and "processor_time" of a message "load". */
void lane_write_limits(const struct pool_shared *shared, const struct task *task, int64_t memory, struct buf *out);
/* Sends a child the files that the definition's code may read. Returns -1 with a message if the content of a file has
 * changed. */
int lane_send_reads(const struct task *task, struct child *child, struct err *err);
/* Writes the member "fitting" of a message. This member says how the runner calls a function whose parameters differ
 * from the inputs of the definition (definition_fits_arguments): it lists the parameters to which no case passes a
 * value, and names the parameter that gets each input. */
void lane_write_fitting(const struct definition *definition, struct buf *out);
/* Writes the member "attributes" of a message "load", unless `attributes` (see struct task) is NULL. */
void lane_write_attributes(const char *attributes, struct buf *out);
/* Returns the text that a child printed, or NULL if it printed nothing. The caller frees the text. */
char *lane_printed(struct child *child);
/* Returns the deadline of a case that starts now. */
int64_t lane_case_deadline(const struct pool_shared *shared);
/* If the message says what the code in a runner used outside its process, such as "opened /etc/hostname", records this
 * text with `who` before it, such as "it opened /etc/hostname". If several messages have such texts, only the first
 * text is recorded. A verdict with such a text is not stored. */
void lane_reached(struct lane *lane, const char *who, const cJSON *message);

/* ---- lane_retry.c ---- */

/* Queues the case, to retry it when no other lane works, and continues with the next case. `attacked` means that
 * something killed or stopped a process of the case. */
void lane_retry_alone(struct pool_shared *shared, struct lane *lane, bool attacked);
/* Does the same with the case and all cases after it, because the reference cannot be loaded now. */
void lane_retry_rest_alone(struct pool_shared *shared, struct lane *lane);
/* Returns whether a case must run again. If so, prepares the new run; the caller must then ignore the verdict
 * `text`. */
bool lane_runs_again(struct pool_shared *shared, struct lane *lane, const char *text, size_t length);
/* Returns whether other processes of the pool used memory since the lane's runner got its reference. If they did and
 * the case fails for lack of memory, the case is retried while no other case runs, and its first verdict does not
 * count. */
bool lane_memory_was_shared(const struct pool_shared *shared, const struct lane *lane);
/* Returns whether the spare runners use GPU memory. */
bool lane_spares_hold_memory(const struct pool_shared *shared);

/* ---- lane_maker.c ---- */

/* Passes the judge's {"make"} or {"store"} on to the maker, the process that runs the definition's code for inputs.
 * Each maker is used for only one case. `fd` is the descriptor that came with the message (-1: none), and is closed
 * later. */
void lane_maker_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd);
/* Gives a spare runner to a lane that waits for a maker. Returns -1 if the memory of the runner cannot be limited. */
int lane_maker_advance(struct pool_shared *shared, struct lane *lane, struct err *err);
/* Handles the messages and the end of the maker. */
void lane_maker_read(struct pool_shared *shared, struct lane *lane);
/* Kills the maker, if there is one, and drops the judge's message to it. */
void lane_maker_drop(struct pool_shared *shared, struct lane *lane);
/* Reports that the maker has not answered within `limit` seconds. */
void lane_maker_late(struct pool_shared *shared, struct lane *lane, double limit);

/* Sends the source code of a ground truth to a new runner. Returns -1 if the runner's memory cannot be limited. */
int lane_load_truth(struct pool_shared *shared, struct lane *lane, struct child *child, const struct truth_program *program,
		    struct err *err);

/* ---- lane_time_limit.c ---- */

/* Kills the judge or the runner if its deadline has passed at time `now`. Returns -1 if no judge can be started. */
int lane_check_timeouts(struct pool_shared *shared, struct lane *lane, int64_t now, struct err *err);

/* ---- lane_judge.c ---- */

/* Starts the judge of a lane. Returns -1 if this fails. `lane->up` becomes true when the judge's first message
 * arrives. */
int lane_judge_start(struct pool_shared *shared, struct lane *lane, struct err *err);
/* Handles the first message of a judge. Returns -1 if no judge can be started. */
int lane_judge_hello(struct pool_shared *shared, struct lane *lane, const char *line, size_t length, struct err *err);
/* lane_judge_tell sends a message to the judge. lane_judge_ask also counts the message in `outstanding`, because the
 * judge will answer it. */
void lane_judge_tell(struct lane *lane, const char *text, size_t length);
void lane_judge_ask(struct lane *lane, const char *text, size_t length);
/* Marks all answers that the judge has not sent yet as stale, so that they are ignored when they arrive. */
void lane_judge_forget(struct lane *lane);

/* ---- lane_truth.c ---- */

void lane_truth_open(struct lane *lane);
/* Handles the judge's request {"truth": name, "run": …}. `fd` is the descriptor that came with the request (-1: none),
 * and is closed later. */
void lane_truth_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd);
/* If a request waits for a runner, assigns a spare runner to it. Returns -1 if the runner's memory cannot be
 * limited. */
int lane_truth_advance(struct pool_shared *shared, struct lane *lane, struct err *err);
/* Handles the messages, the end and the timeout of the ground truth's runner. */
void lane_truth_dispatch(struct pool_shared *shared, struct lane *lane, int64_t now_ms);
/* Cancels the request for a ground truth and kills its runner. */
void lane_truth_drop(struct pool_shared *shared, struct lane *lane);
/* Frees the lane's request for a ground truth. Call this after the zygote and all runners have ended. */
void lane_truth_close(struct lane *lane);

/* ---- lane_provider.c ---- */

/* Pauses the timeout of the case until lane_answer_judge is called. */
void lane_pause_timeout(struct lane *lane);
/* Sends the answer to a request for a ground truth to the judge. `text` is a JSON object. */
void lane_answer_judge(struct lane *lane, const char *text);

/* Keeps a copy of the judge's {"provide"} until the provider is free. `fd` is the descriptor that came with the message
 * (-1: none), and is closed later. */
void lane_provider_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd);
/* Cancels the lane's request to the provider. If the provider is working on the request, kills the provider, because it
 * would otherwise write to memory that the judge is about to use again. */
void lane_provider_drop(struct pool_shared *shared, struct lane *lane);

#endif
