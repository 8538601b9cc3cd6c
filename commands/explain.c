/* explain - is a definition verified, stale or unknown; which fields of its fingerprint changed since its last verdict.
 * Looks only: nothing runs, nothing is written. */
#include "commands/command.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "commands/options.h"
#include "commands/pass.h"
#include "commands/report.h"

enum { SENTENCES = 32 };

struct explain_options {
	const char *root, *device, *device_class, *python, *ground_truth;
	bool index, backward, alone;
};

#define AT(member) offsetof(struct explain_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--staged", OPTION_FLAG, AT(index), NULL, "what git's index holds, not the working tree"},
    {"--backward", OPTION_FLAG, AT(backward), NULL, "also the gradients, as verify --backward has them"},
    {"--alone", OPTION_FLAG, AT(alone), NULL, "do not ask a watcher of this root, which may be busy"},
    {"--device", OPTION_TEXT, AT(device), "D", "whose verdicts count: auto, cpu, cuda or cuda:N (default: auto)"},
    {"--device-class", OPTION_TEXT, AT(device_class), "C", "only verdicts of this class count, whoever made them: cpu, sm_90, …"},
    {"--python", OPTION_TEXT, AT(python), "PATH", "the interpreter whose torch counts"},
    {"--ground-truth", OPTION_TEXT, AT(ground_truth), "NAMES", "by whom: auto, all, or names, as verify takes it (default: auto)"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* What was written of a field then; NULL: nothing. */
static const char *value_then(const struct fields *then, const char *tag)
{
	for (int i = 0; i < then->count; i++)
		if (strcmp(then->items[i].tag, tag) == 0)
			return then->items[i].value;
	return NULL;
}

/* How many ground truths the stored verdict went through: verdict_truth_version tells them one after the other. */
static int asked_then(const struct fields *then)
{
	const char *text = value_then(then, "witness.ground_truth_version");
	int count = 1;

	if (text == NULL || strncmp(text, "first of ", sizeof "first of " - 1) != 0)
		return 1;
	while ((text = strstr(text, "; ")) != NULL) {
		count++;
		text += 2;
	}
	return count;
}

/* What a verdict made now would say of who vouches for it, if as many were gone through as then, or all; and if the same one
 * of them decided. */
static struct verdict verdict_now(const struct truths *truths, const struct fields *then, struct arena *arena)
{
	const char *decider = value_then(then, "witness.ground_truth");
	bool all = truths->all && truths->count > 1;
	int asked = all ? truths->count : asked_then(then), at = 0;
	struct witness *witnesses = arena_array(arena, (size_t)truths->count, sizeof *witnesses);

	asked = asked < truths->count ? asked : truths->count;
	for (int i = 0; i < asked; i++) {
		witnesses[i] = (struct witness){.name = truths->items[i].name, .version = truths->items[i].version};
		if (decider != NULL && strcmp(decider, witnesses[i].name) == 0)
			at = i;
	}
	return (struct verdict){.ground_truth = asked > 0 ? witnesses[at].name : NULL,
	                        .ground_truth_version = asked > 0 ? witnesses[at].version : NULL,
	                        .witnesses = witnesses, .witness_count = asked, .all_witnesses = all};
}

/* What would stand beside a verdict made now: the subject's fields and the witness's. */
static struct fields fields_now(const struct outcome *outcome, const struct test_case *test, const struct fields *then,
                                struct arena *arena)
{
	const struct policy *policy = &outcome->pass->machine.policy;
	const struct truths *truths = test->job != NULL ? &test->job->truths : &outcome->truths;
	struct fields all = fields_copy(&test->fields, arena);
	const struct verdict now = verdict_now(truths, then, arena);

	witness_fields(now.ground_truth, verdict_truth_version(&now, arena), policy->device_class, policy->torch, policy->cuda,
	               arena, &all);
	return all;
}

static void explain_stale(const struct outcome *outcome, const struct test_case *test, struct arena *arena)
{
	struct store *store = outcome->pass->reftest->store;
	const char *sentences[SENTENCES];
	struct latest latest;
	struct fields then, now;

	if (store == NULL || store_latest(store, outcome_name(outcome, arena), test->id, arena, &latest, NULL) != CACHE_HIT ||
	    fields_read(latest.fields, latest.fields_length, arena, &then) < 0) {
		printf("    it has never been verified\n");
		return;
	}
	now = fields_now(outcome, test, &then, arena);
	int count = fields_changed(&then, &now, arena, sentences, SENTENCES);

	for (int i = 0; i < count && i < SENTENCES; i++)
		printf("    %s\n", sentences[i]);
	if (count == 0)
		printf("    every field is as it was, but the verdict is no longer in the cache\n");
}

static void explain_case(const struct outcome *outcome, const struct case_outcome *c, struct arena *arena)
{
	const struct verdict *v = c->verdict;

	if (!c->cached && v != NULL && v->reason != REASON_NOT_CACHED) { /* decided by its line or its blob */
		printf("  %s: %s: %s\n", c->test->id, status_name(v->status), v->message != NULL ? v->message : c->why);
	} else if (!c->cached) {
		printf("  %s: stale: %s\n", c->test->id, c->why);
		explain_stale(outcome, c->test, arena);
	} else {
		time_t made = (time_t)v->time;
		struct tm utc;
		char when[32] = "";

		if (gmtime_r(&made, &utc) != NULL)
			strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &utc);
		printf("  %s: %s, %s: %s\n", c->test->id, status_name(v->status), when, c->why);
	}
}

static const char *outcome_word(const struct outcome *outcome)
{
	bool any = false;

	for (int i = 0; i < outcome->case_count; i++)
		any = any || outcome->cases[i].cached;
	if (outcome->status == STATUS_PASSED)
		return "verified";
	if (outcome->reason == REASON_NOT_CACHED)
		return any ? "stale" : "unknown";
	return status_name(outcome->status);
}

static void explain_outcome(const struct outcome *outcome)
{
	struct arena arena = {0};

	printf("%s/%s is %s\n", outcome->file->op_type, outcome->file->name, outcome_word(outcome));
	if (outcome->message != NULL)
		printf("  %s\n", outcome->message);
	for (int i = 0; outcome->made != NULL && i < outcome->made->constant_count; i++) {
		const struct op_constant *constant = &outcome->made->constants[i];

		printf("  %s = %g (%s)%s%s\n", constant->name, constant->value, constant->source,
		       constant->conflict[0] != '\0' ? "; " : "", constant->conflict);
	}
	if (outcome->made != NULL && outcome->made->op == NULL)
		printf("  %s\n", outcome->made->no_truth);
	for (int i = 0; i < outcome->case_count; i++)
		explain_case(outcome, &outcome->cases[i], &arena);
	arena_free(&arena);
}

static int exit_code(const struct pass *pass)
{
	enum status worst = STATUS_PASSED;

	for (int i = 0; i < pass->count; i++)
		if (pass->outcomes[i]->status > worst)
			worst = pass->outcomes[i]->status;
	static const int codes[STATUS_COUNT] = {EXIT_VERIFIED, EXIT_UNVERIFIED, EXIT_FAILED, EXIT_FAILED, EXIT_USAGE};

	return pass->problem_count > 0 ? EXIT_USAGE : codes[worst];
}

static int run(struct reftest *reftest, const struct explain_options *o, const struct words *names, struct err *err)
{
	struct pass_options options = {.device = o->device, .device_class = o->device_class, .python = o->python,
	                               .ground_truth = o->ground_truth, .cached_only = true, .dry_run = true,
	                               .each = true, .from_index = o->index, .details = true,
	                               .cases = case_options_default(), .ask_names = names->items,
	                               .ask_count = o->alone ? 0 : names->count};
	struct pass pass;
	int code = EXIT_INTERNAL;

	options.cases.backward = o->backward;
	reftest->root_given = o->root != NULL ? o->root : reftest->root_given;
	code = pass_open(&pass, reftest, &options, err);
	if (code == 0) {
		if (pass_select(&pass, names->items, names->count, NULL, 0, err) < 0) {
			code = EXIT_USAGE;
		} else if (pass_run(&pass, err) < 0) {
			code = EXIT_INTERNAL;
		} else {
			report_problems(&pass);
			for (int i = 0; i < pass.count; i++)
				explain_outcome(pass.outcomes[i]);
			code = exit_code(&pass);
		}
	}
	pass_close(&pass);
	return code;
}

int command_explain(struct reftest *reftest, int argc, char **argv)
{
	struct explain_options o = {.device = "auto", .ground_truth = "auto"};
	struct told told;

	if (options_begin(&told, "explain [options] NAME…", rows, ROWS, argc, argv, &o)) {
		if (told.names.count == 0)
			err_set(&told.err,
				"explain needs the name of a definition, as in `reftest explain rmsnorm_h4096`");
		else
			told.code = run(reftest, &o, &told.names, &told.err);
	}
	return options_end(&told);
}
