/* explain - prints whether a definition is verified, stale or unknown, and which fields of its fingerprint have changed
 * since its last verdict. The command executes no case and writes no file. */
#include "cli/command.h"
#include "cache/witness.h"
#include "cli/command_line.h"
#include "cli/operands.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "cli/cached_run.h"
#include "cli/shared_options.h"
#include "engine/approval_state.h"
#include "engine/definition_files.h"
#include "engine/definition_status.h"
#include "report/exit_status.h"
#include "report/text.h"

enum { SENTENCES = 32 };

static const struct option_row rows[] = {
    ROW_ROOT,
    ROW_INDEX,
    ROW_BACKWARD,
    ROW_ALONE,
    ROW_DEVICE_OF_VERDICTS,
    ROW_DEVICE_CLASS,
    ROW_PYTHON,
    ROW_GROUND_TRUTH,
    ROW_REQUIRE_CONTAINMENT,
    ROW_ACCEPT,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Returns the value of a field in the stored record, or NULL if the record has no readable value for the field. */
static const char *value_then(const struct fields *then, const char *tag)
{
	for (int i = 0; i < then->count; i++)
		if (strcmp(then->items[i].tag, tag) == 0)
			return then->items[i].value;
	return NULL;
}

/* Returns the number of ground truths that were tried for the stored verdict, including the ground truth from which the
 * verdict comes. If all ground truths had to agree (--ground-truth all), returns 1 instead. Returns 0 if the store no
 * longer has the verdict. */
static int asked_then(struct store *store, const struct latest *latest, struct arena *arena)
{
	const struct stored_verdict *stored;
	int count = store_verdicts(store, &latest->subject, arena, &stored, NULL);

	for (int i = 0; i < count; i++) {
		const struct verdict *v = digest_equal(&stored[i].witness, &latest->witness)
					      ? verdict_parse(stored[i].text, stored[i].length, arena, NULL)
					      : NULL;

		if (v != NULL)
			return v->tried_count > 1 && !v->all_tried ? v->tried_count : 1;
	}
	return 0;
}

/* Makes a verdict that lists the ground truths which a run would try now. A run tries one ground truth after the other
 * until one yields a verdict. How many it will try is not known in advance; `asked` is the number to assume. With
 * --ground-truth all, the function lists all of them. The ground truth of the new verdict is that of the stored
 * verdict or, if this is not in the list, the first one. */
static struct verdict verdict_now(const struct truths *truths, const struct fields *then, int asked, struct arena *arena)
{
	const char *decider = value_then(then, "witness.ground_truth");
	bool all = truths->all && truths->count > 1;
	int at = 0;
	struct tried_truth *tried = arena_array(arena, (size_t)truths->count, sizeof *tried);

	asked = all || asked > truths->count ? truths->count : asked;
	for (int i = 0; i < asked; i++) {
		tried[i] = (struct tried_truth){.name = truths->items[i].name, .version = truths->items[i].version};
		if (decider != NULL && strcmp(decider, tried[i].name) == 0)
			at = i;
	}
	return (struct verdict){.ground_truth = asked > 0 ? tried[at].name : NULL,
	                        .ground_truth_version = asked > 0 ? tried[at].version : NULL,
	                        .tried = tried, .tried_count = asked, .all_tried = all};
}

static bool is_value_then(const struct fields *then, const char *version)
{
	const char *value = value_then(then, "witness.ground_truth_version");

	return value == version || (value != NULL && version != NULL && strcmp(value, version) == 0);
}

/* Finds how many ground truths were tried for a verdict that is no longer in the store. The field
 * witness.ground_truth_version, whose value is still stored, depends on this number. Returns the smallest number with
 * which verdict_now yields the stored value, or 1 if no number does. */
static int asked_if_unchanged(const struct truths *truths, const struct fields *then, struct arena *arena)
{
	for (int i = 1; i <= truths->count; i++) {
		const struct verdict now = verdict_now(truths, then, i, arena);

		if (is_value_then(then, verdict_truth_version(&now, arena)))
			return i;
	}
	return 1;
}

/* Returns the fields that a new verdict of the case would have. The fields of the subject describe what is verified.
 * The fields of the witness describe the ground truth, the device and the libraries. */
static struct fields fields_now(const struct result *result, const struct test_case *test, const struct latest *latest,
				const struct fields *then, struct arena *arena)
{
	const struct policy *policy = &result->run->machine.policy;
	const struct truths *truths = test->job != NULL ? &test->job->truths : &result->truths;
	struct fields all = fields_copy(&test->fields, arena);
	int asked = asked_then(result->run->program->store, latest, arena);
	const struct verdict now =
	    verdict_now(truths, then, asked > 0 ? asked : asked_if_unchanged(truths, then, arena), arena);

	witness_fields(now.ground_truth, verdict_truth_version(&now, arena), policy->device_class, policy->torch, policy->cuda,
		       policy->python, arena, &all);
	return all;
}

static void explain_stale(const struct result *result, const struct test_case *test, struct arena *arena)
{
	struct store *store = result->run->program->store;
	const char *string_list[SENTENCES];
	struct latest latest;
	struct fields then, now;

	if (store == NULL ||
	    store_latest(store, result_name(result, arena), test->id, arena, &latest, NULL) != CACHE_HIT ||
	    fields_read(latest.fields, latest.fields_length, arena, &then) < 0) {
		show_print(stdout, "    the case has never been verified\n");
		return;
	}
	now = fields_now(result, test, &latest, &then, arena);
	int count = fields_changed(&then, &now, arena, string_list, SENTENCES);

	for (int i = 0; i < count && i < SENTENCES; i++)
		show_print(stdout, "    %s\n", string_list[i]);
	if (count == 0)
		show_print(stdout, "    nothing that the verdict depends on has changed, but the verdict is no longer "
		    "in the cache\n");
}

static void explain_checks(const struct verdict *v)
{
	for (int i = 0; i < v->check_count; i++)
		show_print(stdout, "    %s %s: %s\n", v->checks[i].name, check_result_name(v->checks[i].result),
			   v->checks[i].evidence);
}

static void explain_isolation(const struct verdict *v, const char *indent)
{
	if (v->isolation != NULL)
		show_print(stdout, "%sisolation %s%s%s\n", indent, v->isolation, v->isolation_reason != NULL ? ": " : "",
			   v->isolation_reason != NULL ? v->isolation_reason : "");
}

static bool equal_texts(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Compares the members `isolation` and `isolation_reason` of the stored verdicts of all cases. If they are the same in
 * all verdicts, returns one of the verdicts, otherwise NULL. */
static const struct verdict *common_isolation(const struct result *result)
{
	const struct verdict *first = NULL;

	for (int i = 0; i < result->case_count; i++) {
		const struct verdict *v = result->cases[i].cached ? result->cases[i].verdict : NULL;

		if (v == NULL)
			continue;
		first = first == NULL ? v : first;
		if (!equal_texts(v->isolation, first->isolation) || !equal_texts(v->isolation_reason, first->isolation_reason))
			return NULL;
	}
	return first;
}

/* `isolated` is true if the lines about the definition already say how its cases were isolated. */
static void explain_case(const struct result *result, const struct case_result *c, bool isolated, struct arena *arena)
{
	const struct verdict *v = c->verdict;

	if (!c->cached && v != NULL && v->reason != REASON_NOT_CACHED) {
		/* The case did not run, because its workload line is invalid or a blob is missing. */
		show_print(stdout, "  %s: %s: %s\n", c->test->id, status_name(v->status), v->message != NULL ? v->message : c->why);
	} else if (!c->cached) {
		show_print(stdout, "  %s: %s: %s\n", c->test->id, case_was_verified(result, c, arena) ? "stale" : "unknown",
			   c->why);
		explain_stale(result, c->test, arena);
	} else {
		time_t made = (time_t)v->time;
		struct tm utc;
		char when[32] = "";

		if (gmtime_r(&made, &utc) != NULL)
			strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &utc);
		show_print(stdout, "  %s: %s, %s: %s\n", c->test->id, status_name(v->status), when, c->why);
		if (!isolated)
			explain_isolation(v, "    ");
		explain_checks(v);
	}
}

static const char *result_word(const struct result *result)
{
	return result->status == STATUS_PASSED ? "verified" : report_status(result);
}

static void explain_result(const struct result *result)
{
	const struct verdict *isolated = common_isolation(result);
	struct arena arena = {0};

	show_print(stdout, "%s/%s is %s\n", result->file->op_type, result->file->name, result_word(result));
	if (result->message != NULL)
		show_print(stdout, "  %s\n", result->message);
	for (int i = 0; result->made != NULL && i < result->made->constant_count; i++) {
		const struct op_constant *constant = &result->made->constants[i];

		show_print(stdout, "  %s = %g (%s)%s%s\n", constant->name, constant->value, constant->source,
		       constant->conflict[0] != '\0' ? "; " : "", constant->conflict);
	}
	if (result->definition != NULL && result->definition->fi_api != NULL)
		show_print(stdout, "  fi_api = %s\n", result->definition->fi_api);
	if (result->definition != NULL && result->definition->hf_id != NULL)
		show_print(stdout, "  hf_id = %s\n", result->definition->hf_id);
	if (result->unsteady != NULL)
		show_print(stdout, "  %s\n", result->unsteady);
	if (approval_sentence(result, &arena) != NULL)
		show_print(stdout, "  %s\n", approval_sentence(result, &arena));
	if (result->made != NULL && result->made->how_matched != NULL)
		show_print(stdout, "  %s\n", result->made->how_matched);
	if (result->made != NULL && result->made->op == NULL)
		show_print(stdout, "  %s\n", result->made->no_truth);
	if (isolated != NULL)
		explain_isolation(isolated, "  ");
	for (int i = 0; i < result->case_count; i++)
		explain_case(result, &result->cases[i], isolated != NULL, &arena);
	arena_free(&arena);
}

static int exit_code(const struct run *run)
{
	enum status_group worst = run->problem_count > 0 ? GROUP_INVALID : GROUP_VERIFIED;

	for (int i = 0; i < run->count; i++)
		if (exit_group_of_result(run->results[i]) > worst)
			worst = exit_group_of_result(run->results[i]);
	return exit_status_of_group(worst);
}

static int show(struct run *run, const void *command, struct err *err)
{
	(void)command, (void)err;
	for (int i = 0; i < run->count; i++)
		explain_result(run->results[i]);
	return exit_code(run);
}

static int run(struct program *program, const struct shared_options *o, struct words *names, struct arena *arena,
	       struct err *err)
{
	struct cached_run look = {.names = names, .show = show, .command = o};

	if (shared_options_read(o, program, &look.options, err) < 0 ||
	    (!o->index && operands_root(program, names, arena, err) < 0))
		return EXIT_USAGE;
	look.options.details = look.options.needs_device = true;
	look.options.ask_names = names->items;
	look.options.ask_count = names->count;
	return cached_run(program, &look, err);
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (command_line_begin(&line, &command_explain, argc, argv, &o)) {
		fold_output();
		if (line.names.count == 0)
			err_set(&line.err,
				"explain needs the name of a definition, as in `reftest explain rmsnorm_h4096`");
		else
			line.code = run(program, &o, &line.names, &line.arena, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "explain why a definition is verified, stale or unknown",
    .synopsis = "[options] NAME…",
    .description =
	"Prints the status of each case of a definition. For a stale case, prints what changed since the last verdict, "
	"such as the reference, the inputs or the version of torch. No case runs and no file is written.",
    .operands = OPERANDS_DEFINITIONS,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
