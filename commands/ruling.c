#include "commands/ruling.h"

#include <string.h>

#include "base/trace.h"

static void count_case(struct outcome *outcome, const struct case_outcome *c)
{
	struct summary *counts = &outcome->counts;

	counts->cases++;
	if (c->verdict == NULL) {
		outcome->known = false;
		return;
	}
	uint32_t *const by_status[STATUS_COUNT] = {
	    [STATUS_PASSED] = &counts->passed, [STATUS_SKIPPED] = &counts->skipped, [STATUS_ERROR] = &counts->errors,
	    [STATUS_FAILED] = &counts->failed, [STATUS_INVALID] = &counts->invalid,
	};

	(*by_status[c->verdict->status])++;
	counts->elements += (uint64_t)c->verdict->elements;
	outcome->findings += c->verdict->finding_count;
	outcome->findings += is_finding(c);
	if (is_finding(c) || (c->test->beside && c->verdict->status == STATUS_PASSED))
		return; /* beside the verdict, for it and against it */
	if (c->verdict->status > outcome->status) {
		outcome->status = c->verdict->status;
		outcome->reason = c->verdict->reason;
	}
	if (c->verdict->status == STATUS_PASSED && !c->verdict->weak)
		outcome->weak = false;
}

/* The definition's state is its worst case's; weak cases alone are no evidence. */
void ruling_judge(struct outcome *outcome)
{
	outcome->known = true;
	outcome->weak = true;
	outcome->status = STATUS_PASSED;
	outcome->reason = REASON_NONE;
	for (int i = 0; i < outcome->case_count; i++)
		count_case(outcome, &outcome->cases[i]);
	outcome->weak = outcome->weak && outcome->counts.passed > 0;
	if (outcome->status == STATUS_PASSED && outcome->known && (outcome->weak || outcome->case_count == 0)) {
		outcome->status = STATUS_SKIPPED;
		outcome->reason = outcome->weak ? REASON_WEAK : REASON_NONE;
		outcome->message = outcome->weak ? "every case is one that an output of all zeros would have passed"
						 : "no case of it is selected";
	}
	outcome->counts.status = (uint8_t)outcome->status;
	outcome->counts.reason = (uint8_t)outcome->reason;
	outcome->counts.weak = outcome->weak;
}

struct digest ruling_witness(const struct verdict *v, struct arena *arena)
{
	struct fields fields = {0};

	witness_fields(v->ground_truth, verdict_truth_version(v, arena), v->device_class, v->torch, v->cuda, arena,
		       &fields);
	return fields_digest(&fields);
}

/* Every stored verdict on the case's subject that can be read, newest last. */
static int stored_verdicts(struct outcome *outcome, const struct digest *subject, const struct verdict ***out)
{
	const struct stored_verdict *stored;
	struct arena *arena = &outcome->arena;
	int found = 0, count = 0;

	if (outcome->pass->reftest->store != NULL)
		count = store_verdicts(outcome->pass->reftest->store, subject, arena, &stored, NULL);
	*out = arena_array(arena, (size_t)(count > 0 ? count : 0), sizeof **out);
	for (int i = 0; i < count; i++) {
		const struct verdict *verdict = verdict_parse(stored[i].text, stored[i].length, arena, NULL);

		if (verdict == NULL)
			continue;
		struct digest witness = ruling_witness(verdict, arena);

		if (digest_equal(&witness, &stored[i].witness)) /* a record that lies about its witness is none */
			(*out)[found++] = verdict;
	}
	return found;
}

const struct verdict *ruling_not_run(struct outcome *outcome, enum reason reason, const char *message)
{
	struct verdict *verdict = arena_alloc(&outcome->arena, sizeof *verdict);

	*verdict = (struct verdict){
	    .status = STATUS_SKIPPED, .reason = reason, .message = arena_string(&outcome->arena, message)};
	return verdict;
}

void ruling_settle(struct outcome *outcome, struct case_outcome *c, const struct verdict *verdict)
{
	c->verdict = verdict;
	outcome->done++;
}

bool ruling_decide(struct outcome *outcome, struct case_outcome *c)
{
	struct pass *pass = outcome->pass;
	const struct verdict **stored;

	if (c->test->decided != NULL) {
		c->why = "decided from the workload line alone";
		c->kept = c->test->decided->status == STATUS_INVALID; /* the same text is invalid the next time, too */
		ruling_settle(outcome, c, c->test->decided);
		return false;
	}
	int count = stored_verdicts(outcome, &c->test->subject, &stored);
	struct decision decision =
	    plan_case(&pass->machine.policy, &c->test->job->truths, stored, count, &outcome->arena);

	c->why = decision.why;
	trace("plan", "%s/%s %s: %s", outcome->file->op_type, outcome->file->name, c->test->id, decision.why);
	if (decision.answer == PLAN_CACHED) {
		c->cached = c->kept = true;
		c->witness = ruling_witness(stored[decision.candidate], &outcome->arena);
		pass->cases_cached++;
		ruling_settle(outcome, c, stored[decision.candidate]);
		return false;
	}
	if (decision.answer == PLAN_NOT_CACHED) {
		ruling_settle(outcome, c, ruling_not_run(outcome, REASON_NOT_CACHED, decision.why));
		return false;
	}
	if (pass->options->dry_run)
		return false;
	if (pass->machine.cannot_run != NULL) {
		ruling_settle(outcome, c,
			      ruling_not_run(outcome, pass->machine.cannot_reason, pass->machine.cannot_run));
		return false;
	}
	return true;
}
