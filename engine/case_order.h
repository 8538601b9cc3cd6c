/* case_order - makes sure that the verdicts of a reference that keeps something from one case to the next come from
 * runs in which the same cases ran before.
 *
 * The cases of a definition run one after another in one process. A reference may keep something there, for example a
 * table that its first call makes. It may then pass a case that runs alone, and fail the same case after others.
 * Therefore a verdict says which cases ran before it (verdict.after), unless it is known that the reference keeps
 * nothing. A verdict counts only if the same cases run before in a run of all cases that the options select. If one case
 * of such a reference must run, all of them run. */
#ifndef REFTEST_ENGINE_CASE_ORDER_H
#define REFTEST_ENGINE_CASE_ORDER_H

#include "engine/run_state.h"

/* verdict.after of a case whose process was started after an earlier case had run: it is equal to no case_result.after_all,
 * so the verdict counts in this run only. */
#define AFTER_OTHER "other"

/* The cases that have been submitted so far to run in one process. Initialise it with zeros. */
struct cases_before {
	bool any;
	struct digest digest;
};

/* Returns the value of verdict.after for a case that runs after these cases, allocated in `arena`. */
const char *cases_before_text(const struct cases_before *before, struct arena *arena);
void cases_before_add(struct cases_before *before, const struct test_case *test);

/* Returns whether the first case runs before the other cases are submitted, in a process of its own. */
bool case_order_first_alone(const struct result *result);

/* Sets case_result.after_all and case_result.equal of every case. Call this when the cases have been made. */
void case_order_set(struct result *result);

/* Returns whether a stored verdict says that the reference keeps nothing from one case to the next. Returns false if a
 * ground truth of the definition may keep something. */
bool case_order_is_stateless(const struct result *result);

/* Call this when the planned cases from number `from` on were looked up in the store. Returns whether those that have a
 * stored verdict must run, too, because others of them must run and the reference may keep something. */
bool case_order_needs_all(const struct result *result, int from);

/* Returns a digest for case_result.equal that no case of another definition has. */
struct digest case_order_own(struct result *result, const struct case_result *c);

/* Returns whether this run made a verdict for which other cases had run before than in a run of all cases, because a case
 * of an equal definition ran instead of a case of this definition. If a process of this definition ended, another attempt
 * would not help, so AFTER_OTHER is ignored for a case that ran itself. */
bool case_order_is_broken(const struct result *result);

#endif
