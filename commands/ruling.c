#include "commands/ruling.h"

#include <string.h>

#include "base/trace.h"
#include "commands/sharing.h"

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
	if (c->test->finer && c->verdict->status == STATUS_SKIPPED && outcome->pass->options->cases.only == NULL)
		return;
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
	/* What a shard has of a definition may well be its weak cases alone: who has them all judges. */
	outcome->weak = outcome->weak && outcome->counts.passed > 0 && outcome->pass->options->cases.shard.count == 0;
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

/* Verdicts on a case's subject, as far as they can be read: newest last those of the store, then those that the remote
 * has. Those of the store may be no more than heads; then `stored` has their whole text. */
struct readable {
	const struct verdict **verdicts;
	const struct stored_verdict **stored; /* of each; NULL: the verdict is whole */
	int here, count;                      /* those of the store; all of them */
};

static void read_stored(struct outcome *outcome, const struct stored_verdict *stored, struct readable *out)
{
	const struct pass_options *options = outcome->pass->options;
	struct arena *arena = &outcome->arena;
	const struct verdict *verdict = NULL;

	if (!options->details && !options->cases.edge)
		verdict = verdict_head(stored->text, stored->length, arena);
	out->stored[out->count] = verdict != NULL ? stored : NULL;
	if (verdict == NULL)
		verdict = verdict_parse(stored->text, stored->length, arena, NULL);
	if (verdict == NULL)
		return;
	struct digest witness = ruling_witness(verdict, arena);

	if (digest_equal(&witness, &stored->witness)) /* a record that lies about its witness is none */
		out->verdicts[out->count++] = verdict;
}

static struct readable known_verdicts(struct outcome *outcome, const struct digest *subject)
{
	const struct sharing *sharing = outcome->pass->sharing;
	const struct shared_verdict *shared = NULL;
	const struct stored_verdict *stored;
	struct arena *arena = &outcome->arena;
	struct readable out = {0};
	int count = 0, elsewhere = 0;

	if (outcome->pass->reftest->store != NULL)
		count = store_verdicts(outcome->pass->reftest->store, subject, arena, &stored, NULL);
	count = count > 0 ? count : 0;
	while ((shared = sharing_verdict(sharing, subject, shared)) != NULL)
		elsewhere++;
	out.verdicts = arena_array(arena, (size_t)count + (size_t)elsewhere, sizeof *out.verdicts);
	out.stored = arena_array(arena, (size_t)count + (size_t)elsewhere, sizeof *out.stored);
	for (int i = 0; i < count; i++)
		read_stored(outcome, &stored[i], &out);
	out.here = out.count;
	while ((shared = sharing_verdict(sharing, subject, shared)) != NULL) {
		out.stored[out.count] = NULL;
		out.verdicts[out.count++] = shared->verdict;
	}
	return out;
}

void ruling_read_wholly(struct outcome *outcome)
{
	bool heads = true;

	for (int i = 0; i < outcome->case_count; i++)
		heads = heads && outcome->cases[i].stored != NULL;
	for (int i = 0; i < outcome->case_count && !heads; i++) {
		struct case_outcome *c = &outcome->cases[i];
		const struct verdict *whole =
		    c->stored == NULL ? NULL : verdict_parse(c->stored->text, c->stored->length, &outcome->arena, NULL);

		c->verdict = whole != NULL ? whole : c->verdict;
		c->stored = NULL;
	}
}

/* What the policy makes of them. */
static struct decision decide(struct outcome *outcome, const struct case_outcome *c, struct readable *known)
{
	if (outcome->outside != NULL) {
		bool cached_only = outcome->pass->options->cached_only;

		*known = (struct readable){0};
		return (struct decision){.answer = cached_only ? PLAN_NOT_CACHED : PLAN_RUN, .lack = LACK_NOTHING_STORED,
		                         .candidate = -1, .why = outcome->outside};
	}
	*known = known_verdicts(outcome, &c->test->subject);
	return plan_case(&outcome->pass->machine.policy, &c->test->job->truths, known->verdicts, known->count,
	                 &outcome->arena);
}

bool ruling_known(struct outcome *outcome, const struct case_outcome *c)
{
	struct readable known;

	return decide(outcome, c, &known).answer == PLAN_CACHED;
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
	struct readable known;

	if (c->test->decided != NULL) {
		c->why = "decided from the workload line alone";
		c->kept = c->test->decided->status == STATUS_INVALID; /* the same text is invalid the next time, too */
		ruling_settle(outcome, c, c->test->decided);
		return false;
	}
	struct decision decision = decide(outcome, c, &known);

	c->why = decision.why;
	trace("plan", "%s/%s %s: %s", outcome->file->op_type, outcome->file->name, c->test->id, decision.why);
	if (decision.answer == PLAN_CACHED) {
		c->cached = c->kept = true;
		c->fetched = decision.candidate >= known.here;
		if (c->fetched)
			c->why = arena_printf(&outcome->arena, "%s, from %s", decision.why, sharing_shown(pass->sharing));
		c->witness = ruling_witness(known.verdicts[decision.candidate], &outcome->arena);
		c->stored = known.stored[decision.candidate];
		pass->cases_cached++;
		ruling_settle(outcome, c, known.verdicts[decision.candidate]);
		return false;
	}
	pass->misses[decision.lack]++;
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
