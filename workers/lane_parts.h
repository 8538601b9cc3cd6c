/* lane_parts - what the files behind workers/lane.h have from each other. */
#ifndef REFTEST_WORKERS_LANE_PARTS_H
#define REFTEST_WORKERS_LANE_PARTS_H

#include "workers/lane.h"

/* ---- lane_judge.c ---- */

/* -1: it cannot be started. It is up once it has said hello. */
int lane_judge_start(struct yard *yard, struct lane *lane, struct err *err);
/* What a judge says first. -1: no judge can be had. */
int lane_judge_hello(struct yard *yard, struct lane *lane, const char *line, size_t length, struct err *err);
/* Sends a message; lane_judge_ask: one that wants an answer. */
void lane_judge_tell(struct lane *lane, const char *text, size_t length);
void lane_judge_ask(struct lane *lane, const char *text, size_t length);
/* Answers to what was asked so far are no longer wanted. */
void lane_judge_forget(struct lane *lane);

/* ---- lane_errand.c ---- */

/* The judge's {"provide"}, copied, and the descriptor that came with it (-1: none), which is taken over. */
void lane_errand_take(struct yard *yard, struct lane *lane, const char *line, int fd);
/* Nobody wants the answer any more. The provider is ended if it has been asked: the memory that it works on is the
 * judge's, who is about to use it otherwise. */
void lane_errand_drop(struct yard *yard, struct lane *lane);

#endif
