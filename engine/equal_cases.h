/* equal_cases - executes equal cases of one run only once. Two cases are equal if their digests test_case.execution are
 * equal (engine/cases.h). The functions below call this digest `subject`. For example, a definition and its copy under
 * another name have equal cases. While one case runs, the cases that are equal to it wait for its verdict. */
#ifndef REFTEST_ENGINE_EQUAL_CASES_H
#define REFTEST_ENGINE_EQUAL_CASES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/hash.h"

struct result;

struct waiter {
	struct result *result;
	int case_index;
	struct waiter *next; /* the next waiting case with the same subject; NULL: none */
};

struct equal_cases_entry {
	struct digest subject;
	struct waiter first; /* the case that runs; the list continues with the cases that wait for it */
	struct equal_cases_entry *next;
};

enum { EQUAL_CASES_BUCKETS = 1024 };

struct equal_cases {
	/* Hash table with the subject as the key; empty if no case is running. */
	struct equal_cases_entry *bucket[EQUAL_CASES_BUCKETS];
};

/* Adds a case. Returns true if no case with this subject is running; the caller must then run the added case. Otherwise
 * returns false, and the added case waits for the verdict of the running case. */
bool equal_cases_join(struct equal_cases *equal_cases, const struct digest *subject, struct result *result,
		      int case_index, struct arena *arena);

/* Removes a case. If other cases wait for the removed case, returns one of these, and the caller must run it. Otherwise
 * returns NULL. */
const struct waiter *equal_cases_leave(struct equal_cases *equal_cases, const struct digest *subject,
				       const struct result *result, int case_index);

/* Call this when a case has finished. Removes the entry of this subject. Returns the cases with this subject; the first
 * one is the case that ran. Returns NULL if no case with this subject was running. */
const struct waiter *equal_cases_finish(struct equal_cases *equal_cases, const struct digest *subject);

#endif
