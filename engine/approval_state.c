#include "engine/approval_state.h"

#include <string.h>

struct truths approval_add_truth(const struct result *result, const struct truths *truths, struct arena *arena)
{
	struct truth *items;
	struct truths out = *truths;

	if (result->approved.code != APPROVED_OTHER_CODE || result->made->op != NULL || truths->count == GROUND_TRUTHS_MAX)
		return out;
	for (int i = 0; i < truths->count; i++)
		if (truths->items[i].refused == NULL)
			return out;
	items = arena_array(arena, (size_t)truths->count + 1, sizeof *items);
	if (truths->count > 0)
		memcpy(items, truths->items, (size_t)truths->count * sizeof *items);
	items[out.count++] = result->approved.truth.truth;
	out.items = items;
	return out;
}

/* Returns whether the approved reference decided the case. A skipped case shows nothing, even if the outputs were
 * compared before a check failed. */
static bool is_compared(const struct case_result *c)
{
	const struct verdict *v = c->verdict;

	return v != NULL && v->ground_truth != NULL && strcmp(v->ground_truth, APPROVED_TRUTH) == 0 &&
	       v->output_count > 0 && v->status != STATUS_SKIPPED;
}

static bool differs(const struct case_result *c)
{
	return is_compared(c) && c->verdict->status == STATUS_FAILED;
}

static int cases_that(const struct result *result, bool (*holds)(const struct case_result *c))
{
	int count = 0;

	for (int i = 0; i < result->case_count; i++)
		count += holds(&result->cases[i]);
	return count;
}

/* Returns whether the approved reference is a ground truth of this result. */
static bool decides(const struct result *result)
{
	for (int i = 0; i < result->truths.count; i++)
		if (strcmp(result->truths.items[i].name, APPROVED_TRUTH) == 0)
			return true;
	return false;
}

bool approval_has_run(const struct result *result, const char *id)
{
	return decides(result) && approval_names(result->approved.approval, id);
}

enum approval_state approval_state_of(const struct result *result)
{
	if (result->approved.code == APPROVED_NONE || result->made == NULL || result->made->op != NULL)
		return APPROVAL_ABSENT;
	switch (result->approved.code) {
	case APPROVED_SAME_CODE:
		return result->truths.count == 0 || result->status != STATUS_PASSED ? APPROVAL_SAME : APPROVAL_ABSENT;
	case APPROVED_OTHER_SCHEMA:
		return APPROVAL_OTHER_SCHEMA;
	case APPROVED_UNREADABLE:
		return APPROVAL_UNREADABLE;
	default:
		break;
	}
	if (!decides(result))
		return APPROVAL_ABSENT;
	if (cases_that(result, differs) > 0)
		return APPROVAL_DIFFERS;
	return result->case_count > 0 && cases_that(result, is_compared) == result->case_count ? APPROVAL_AGREES
												: APPROVAL_NOT_COMPARED;
}

const char *approval_state_name(enum approval_state state)
{
	static const char *const names[] = {
	    [APPROVAL_ABSENT] = NULL,           [APPROVAL_SAME] = "same",
	    [APPROVAL_AGREES] = "agrees",       [APPROVAL_DIFFERS] = "differs",
	    [APPROVAL_NOT_COMPARED] = "not_compared", [APPROVAL_OTHER_SCHEMA] = "other_schema",
	    [APPROVAL_UNREADABLE] = "unreadable",
	};

	_Static_assert(sizeof names / sizeof *names == APPROVAL_STATES, "each state has a name");
	return names[state];
}

/* Returns a sentence about `state`. The approval must be readable; `when` is the date and the note of the approval. */
static const char *sentence_of(const struct result *result, enum approval_state state, const char *when, struct arena *arena)
{
	switch (state) {
	case APPROVAL_SAME:
		return arena_printf(arena, "approved: the reference is the one that was approved on %s", when);
	case APPROVAL_AGREES:
		return arena_printf(arena, "approved: all cases agree, within the bounds, with the reference that was approved on %s",
				    when);
	case APPROVAL_DIFFERS:
		return arena_printf(arena,
				    "differs from the approved reference: %d of %d cases differ from the reference that was approved on %s; "
				    "if the change is right, run `reftest approve %s/%s`",
				    cases_that(result, differs), result->case_count, when, result->file->op_type,
				    result->file->name);
	case APPROVAL_OTHER_SCHEMA:
		return arena_printf(arena,
				    "not approved: the approval of %s does not count, because the schema of the definition "
				    "has changed since then; run `reftest approve %s/%s`",
				    when, result->file->op_type, result->file->name);
	default:
		return arena_printf(arena,
				    "not approved: only %d of %d cases were compared with the reference that was "
				    "approved on %s, so the approval does not count",
				    cases_that(result, is_compared), result->case_count, when);
	}
}

const char *approval_sentence(const struct result *result, struct arena *arena)
{
	enum approval_state state = approval_state_of(result);
	const struct approval *approval = result->approved.approval;

	if (state == APPROVAL_ABSENT)
		return NULL;
	if (approval == NULL)
		return arena_printf(arena, "approved: %s", result->approved.trouble);
	return sentence_of(result, state,
			   *approval->note == '\0' ? approval->date : arena_printf(arena, "%s (%s)", approval->date, approval->note),
			   arena);
}

static bool approval_holds(const struct result *result)
{
	if (!result->known || result->status != STATUS_CHECKED)
		return false;
	enum approval_state state = approval_state_of(result);

	return state == APPROVAL_SAME || state == APPROVAL_AGREES;
}

enum checked_kind checked_kind_of(const struct result *result)
{
	return approval_holds(result)		       ? CHECKED_APPROVED
	       : result->reason == REASON_UNATTESTED ? CHECKED_UNATTESTED
						       : CHECKED_ONLY;
}
