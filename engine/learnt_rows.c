#include "engine/learnt_rows.h"

#include <string.h>

/* Returns the check `rows` of a verdict, and sets `at` to its index. Returns NULL if the verdict has no such check. */
static const struct check *rows_of(const struct verdict *v, int *at)
{
	for (*at = 0; v != NULL && *at < v->check_count; (*at)++)
		if (v->checks[*at].axis_count > 0)
			return &v->checks[*at];
	return NULL;
}

/* Returns the first case before case `end` whose check `rows` examined this axis, or NULL if there is none. `*holds`
 * gets the result. */
static const struct case_result *first_about(const struct result *result, const char *axis, int end, bool *holds)
{
	for (int i = 0; i < end; i++) {
		int at;
		const struct check *rows = rows_of(result->cases[i].verdict, &at);

		for (int k = 0; rows != NULL && k < rows->axis_count; k++)
			if (strcmp(rows->axes[k].name, axis) == 0) {
				*holds = rows->axes[k].holds;
				return &result->cases[i];
			}
	}
	return NULL;
}

/* Finds the first axis along which the rows are dependent in case `number`, but independent in the first case that
 * examined the axis. Returns a sentence about this axis. If no axis has changed in this way, returns NULL. */
static const char *what_broke(const struct result *result, int number, const struct check *rows, struct arena *arena)
{
	for (int k = 0; k < rows->axis_count; k++) {
		bool holds = false;
		const struct case_result *first =
		    rows->axes[k].holds ? NULL : first_about(result, rows->axes[k].name, number, &holds);

		if (first != NULL && holds)
			return arena_printf(arena, "rows along '%s' are independent of each other in case %s, but not in this case: %s",
					    rows->axes[k].name, first->test->id, rows->evidence);
	}
	return NULL;
}

static struct verdict *with_failed_check(const struct verdict *verdict, int at, const char *evidence, struct arena *arena)
{
	struct verdict *out = arena_alloc(arena, sizeof *out);
	struct check *checks = arena_array(arena, (size_t)verdict->check_count, sizeof *checks);

	*out = *verdict;
	memcpy(checks, out->checks, (size_t)out->check_count * sizeof *checks);
	checks[at].result = CHECK_FAILS;
	checks[at].evidence = evidence;
	out->checks = checks;
	return out;
}

/* Returns a copy of the verdict with a finding about the check. If a ground truth decided the case, this copy is used
 * instead of a failed verdict. */
static const struct verdict *with_finding(const struct case_result *c, int at, const char *evidence, struct arena *arena)
{
	struct verdict *out = with_failed_check(c->verdict, at, evidence, arena);
	const char **findings = arena_array(arena, (size_t)out->finding_count + 1, sizeof *findings);

	for (int i = 0; i < out->finding_count; i++)
		findings[i] = out->findings[i];
	findings[out->finding_count++] = arena_printf(arena, "%s: %s", out->checks[at].name, evidence);
	out->findings = findings;
	return out;
}

static const struct verdict *failed(const struct case_result *c, int at, const char *evidence, struct arena *arena)
{
	struct verdict *out = with_failed_check(c->verdict, at, evidence, arena);
	bool known = job_inputs_are_known(c->test->job);

	out->status = known ? STATUS_FAILED : STATUS_SKIPPED;
	out->reason = known ? REASON_NUMERIC : REASON_NO_GROUND_TRUTH;
	out->message = known ? evidence
			     : arena_printf(arena, "The check %s fails: %s. The inputs are generic and may be invalid for this "
						   "operation", out->checks[at].name, evidence);
	return out;
}

void learn_rows(struct result *result)
{
	for (int i = 1; i < result->case_count; i++) {
		struct case_result *c = &result->cases[i];
		int at;
		const struct check *rows = rows_of(c->verdict, &at);
		bool decided = rows != NULL && c->verdict->status == STATUS_PASSED && c->test->job->checks;
		const char *evidence = rows != NULL && rows->result != CHECK_FAILS && (decided || c->verdict->status == STATUS_CHECKED)
					   ? what_broke(result, i, rows, &result->arena)
					   : NULL;

		if (evidence != NULL)
			c->verdict = decided ? with_finding(c, at, evidence, &result->arena) : failed(c, at, evidence, &result->arena);
	}
}
