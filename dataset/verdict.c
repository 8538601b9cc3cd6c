#include "dataset/verdict.h"

#include <math.h>
#include <string.h>

static const struct {
	const char *name;
	enum status_group group;
	int severity;
} statuses[] = {
    [STATUS_PASSED] = {"passed", GROUP_VERIFIED, 0},   [STATUS_SKIPPED] = {"skipped", GROUP_UNVERIFIED, 10},
    [STATUS_ERROR] = {"error", GROUP_WRONG, 20},       [STATUS_FAILED] = {"failed", GROUP_WRONG, 30},
    [STATUS_INVALID] = {"invalid", GROUP_INVALID, 40}, [STATUS_CHECKED] = {"checked", GROUP_UNVERIFIED, 5},
};

_Static_assert(sizeof statuses / sizeof *statuses == STATUS_COUNT, "each status has a row");

static const struct {
	const char *name;
	bool transient; /* the next run of the same case may give another verdict */
	bool limit;
} reasons[REASON_COUNT] = {
    [REASON_SHAPE] = {"shape"},
    [REASON_DTYPE] = {"dtype"},
    [REASON_NUMERIC] = {"numeric"},
    [REASON_NONFINITE] = {"nonfinite"},
    [REASON_NONDETERMINISTIC] = {"nondeterministic"},
    [REASON_MUTATED_INPUT] = {"mutated_input"},
    [REASON_GROUND_TRUTHS_DISAGREE] = {"ground_truths_disagree"},
    [REASON_NO_GROUND_TRUTH] = {"no_ground_truth"},
    [REASON_MEMORY] = {"memory", .transient = true},
    [REASON_MISSING_BLOB] = {"missing_blob", .transient = true},
    [REASON_UNSUPPORTED_DEVICE] = {"unsupported_device", .transient = true},
    [REASON_WEAK] = {"weak"},
    [REASON_RAISED] = {"raised"},
    [REASON_CRASHED] = {"crashed", .transient = true},
    [REASON_TIMEOUT] = {"timeout", .transient = true},
    [REASON_GROUND_TRUTH] = {"ground_truth", .transient = true},
    [REASON_OUT_OF_BOUNDS] = {"out_of_bounds"},
    [REASON_NOT_CACHED] = {"not_cached"},
    [REASON_UNSUPPORTED_DTYPE] = {"unsupported_dtype"},
    [REASON_CHANGED] = {"changed", .transient = true},
    [REASON_MEMORY_LIMIT] = {"memory_limit", .transient = true, .limit = true},
    [REASON_PROCESS_LIMIT] = {"process_limit", .transient = true, .limit = true},
    [REASON_UNKNOWN_DTYPE] = {"unknown_dtype"},
    [REASON_NO_REFERENCE] = {"no_reference"},
    [REASON_INPUTS] = {"inputs"},
    [REASON_CONSTANTS] = {"constants"},
    [REASON_UNSTEADY] = {"unsteady"},
    [REASON_UNATTESTED] = {"unattested"},
    [REASON_FILE_LIMIT] = {"file_limit", .transient = true, .limit = true},
};

static const char *const check_results[CHECK_RESULTS] = {
    [CHECK_HOLDS] = "holds", [CHECK_FAILS] = "fails", [CHECK_NOT_RUN] = "not_run", [CHECK_PROPERTY] = "property"};

bool verdict_is_contained(const struct verdict *verdict)
{
	return verdict->containment != NULL ? strcmp(verdict->containment, "full") == 0 : verdict->torch == NULL;
}

const char *check_result_name(enum check_result result)
{
	return check_results[result];
}

const char *status_name(enum status status)
{
	return statuses[status].name;
}

enum status_group status_group(enum status status)
{
	return statuses[status].group;
}

int status_severity(enum status status)
{
	return statuses[status].severity;
}

const char *reason_name(enum reason reason)
{
	return reasons[reason].name;
}

bool reason_is_transient(enum reason reason)
{
	return reasons[reason].transient;
}

bool reason_is_limit(enum reason reason)
{
	return reasons[reason].limit;
}

bool status_parse(const char *name, enum status *out)
{
	for (int i = 0; i < STATUS_COUNT; i++)
		if (strcmp(statuses[i].name, name) == 0) {
			*out = (enum status)i;
			return true;
		}
	return false;
}

bool reason_parse(const char *name, enum reason *out)
{
	for (int i = REASON_NONE + 1; i < REASON_COUNT; i++)
		if (strcmp(reasons[i].name, name) == 0) {
			*out = (enum reason)i;
			return true;
		}
	return false;
}

double verdict_margin(const struct verdict *verdict)
{
	double margin = (double)NAN;

	for (int i = 0; i < verdict->output_count; i++)
		if (isnan(margin) || verdict->outputs[i].metrics.margin > margin)
			margin = verdict->outputs[i].metrics.margin;
	return margin;
}

const char *verdict_truth_version(const struct verdict *verdict, struct arena *arena)
{
	struct buf text = {0};
	const char *copy;

	if (verdict->tried_count == 0 || (verdict->tried_count == 1 && !verdict->all_tried))
		return verdict->ground_truth_version;
	buf_text(&text, verdict->all_tried ? "all of " : "first of ");
	for (int i = 0; i < verdict->tried_count; i++)
		buf_printf(&text, "%s%s %s", i == 0 ? "" : "; ", verdict->tried[i].name,
		           verdict->tried[i].version == NULL ? "" : verdict->tried[i].version);
	copy = arena_copy(arena, text.data, text.length);
	buf_free(&text);
	return copy;
}
