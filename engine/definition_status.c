#include "engine/definition_status.h"

#include <string.h>

#include "base/trace.h"
#include "cache/witness.h"
#include "engine/learnt_rows.h"
#include "engine/remote_cache.h"
#include "engine/definition_files.h"

/* Returns whether a case with the sizes of a workload has a verdict other than `skipped`. */
static bool workload_decides(const struct result *result)
{
	for (int i = 0; i < result->case_count; i++)
		if (!result->cases[i].test->made_up && result->cases[i].verdict != NULL &&
		    result->cases[i].verdict->status != STATUS_SKIPPED)
			return true;
	return false;
}

static void count_case(struct result *result, const struct case_result *c)
{
	struct summary *counts = &result->counts;

	counts->cases++;
	if (c->verdict == NULL) {
		result->known = false;
		return;
	}
	uint32_t *const by_status[] = {
	    [STATUS_PASSED] = &counts->passed, [STATUS_SKIPPED] = &counts->skipped, [STATUS_ERROR] = &counts->errors,
	    [STATUS_FAILED] = &counts->failed, [STATUS_INVALID] = &counts->invalid, [STATUS_CHECKED] = &counts->checked,
	};

	_Static_assert(sizeof by_status / sizeof *by_status == STATUS_COUNT, "struct summary has a count for each status");

	(*by_status[c->verdict->status])++;
	counts->elements += (uint64_t)c->verdict->elements;
	result->findings += c->verdict->finding_count;
	result->findings += case_is_finding(c);
	if (case_is_finding(c) || (c->test->beside && c->verdict->status == STATUS_PASSED))
		return; /* such a case does not change the definition's status (test_case.beside) */
	if (c->test->finer && c->verdict->status == STATUS_SKIPPED && result->run->options->cases.only == NULL)
		return;
	if (c->test->made_up && c->verdict->status == STATUS_SKIPPED && workload_decides(result))
		return;
	if (status_severity(c->verdict->status) > status_severity(result->status)) {
		result->status = c->verdict->status;
		result->reason = c->verdict->reason;
	} else if (c->verdict->status == STATUS_CHECKED && result->status == STATUS_CHECKED && result->reason == REASON_UNATTESTED) {
		/* REASON_UNATTESTED becomes the reason of the result only if every checked case has this reason. */
		result->reason = c->verdict->reason;
	}
	if (c->verdict->status == STATUS_PASSED && !c->verdict->weak)
		result->weak = false;
}

bool case_lacks_verdict(const struct case_result *c)
{
	return c->verdict == NULL || c->verdict->reason == REASON_NOT_CACHED;
}

bool case_was_verified(const struct result *result, const struct case_result *c, struct arena *arena)
{
	const struct run_store records = result->run->records;
	struct latest latest;

	return records.calls != NULL && records.calls->latest(records.self, result_name(result, arena), c->test->id, arena,
							      &latest) == CACHE_HIT;
}

static bool is_stale(struct result *result)
{
	bool lacks = false, known = false;

	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		lacks = lacks || case_lacks_verdict(c);
		known = known || c->cached || (case_lacks_verdict(c) && case_was_verified(result, c, &result->arena));
	}
	return lacks && known;
}

/* The status of a definition is the status of its worst case. A passed case is weak if outputs that are all zeros would
 * pass as well. A definition is skipped if every passed case is weak. */
void resolve_definition(struct result *result)
{
	result->known = true;
	result->weak = true;
	result->status = STATUS_PASSED;
	result->reason = REASON_NONE;
	learn_rows(result);
	for (int i = 0; i < result->case_count; i++)
		count_case(result, &result->cases[i]);
	result->findings += result->made != NULL && result->made->init_failed != NULL;
	result->stale = result->run->options->dry_run && is_stale(result);
	result->weak = result->weak && result->counts.passed > 0;
	if (result->status == STATUS_PASSED && result->known && (result->weak || result->case_count == 0)) {
		result->status = STATUS_SKIPPED;
		result->reason = result->weak ? REASON_WEAK : REASON_NONE;
		result->message = result->weak ? "an output of all zeros would pass every case"
				  : result->made != NULL && result->made->no_sizes != NULL
				      ? result->made->no_sizes
				      : "the options select no case of this definition";
	}
	/* Generic inputs may miss mistakes that the inputs of `init` would show. */
	if (result->status == STATUS_PASSED && result->made != NULL && result->made->init_failed != NULL) {
		result->status = STATUS_CHECKED;
		result->reason = REASON_INPUTS;
		result->message = result->made->init_failed;
	}
	result->counts.status = (uint8_t)result->status;
	result->counts.reason = (uint8_t)result->reason;
	result->counts.weak = result->weak;
}

struct digest resolve_witness(const struct verdict *v, struct arena *arena)
{
	struct fields fields = {0};

	witness_fields(v->ground_truth, verdict_truth_version(v, arena), v->device_class, v->torch, v->cuda, v->python,
		       arena, &fields);
	return fields_digest(&fields);
}

/* The valid verdicts with a case's subject. The verdicts from the store come first, from oldest to newest. The verdicts
 * from the remote cache follow. If only the beginning of a stored verdict was parsed (verdict_head), `stored` has the
 * whole text. */
struct readable {
	const struct verdict **verdicts;
	/* One element for each verdict; NULL if the verdict was parsed completely. */
	const struct stored_verdict **stored;
	/* `here` is the number of verdicts from the store, and `count` is the number of all verdicts. */
	int here, count;
};

static void read_stored(struct result *result, const struct stored_verdict *stored, struct readable *out)
{
	const struct run_options *options = result->run->options;
	struct arena *arena = &result->arena;
	const struct verdict *verdict = NULL;

	if (!options->details && !options->cases.edge)
		verdict = verdict_head(stored->text, stored->length, arena);
	out->stored[out->count] = verdict != NULL ? stored : NULL;
	if (verdict == NULL)
		verdict = verdict_parse(stored->text, stored->length, arena, NULL);
	if (verdict == NULL)
		return;
	struct digest witness = resolve_witness(verdict, arena);

	if (digest_equal(&witness, &stored->witness)) /* the verdict must have the witness that is in its key */
		out->verdicts[out->count++] = verdict;
}

static struct readable known_verdicts(struct result *result, const struct digest *subject)
{
	const struct run_store records = result->run->records;
	const struct remote_cache *remote = result->run->remote_cache;
	const struct shared_verdict *shared = NULL;
	const struct stored_verdict *stored;
	struct arena *arena = &result->arena;
	struct readable out = {0};
	int count = 0, remote_count = 0;

	if (records.calls != NULL)
		count = records.calls->verdicts(records.self, subject, arena, &stored);
	count = count > 0 ? count : 0;
	while ((shared = remote_cache_verdict(remote, subject, shared)) != NULL)
		remote_count++;
	out.verdicts = arena_array(arena, (size_t)count + (size_t)remote_count, sizeof *out.verdicts);
	out.stored = arena_array(arena, (size_t)count + (size_t)remote_count, sizeof *out.stored);
	for (int i = 0; i < count; i++)
		read_stored(result, &stored[i], &out);
	out.here = out.count;
	while ((shared = remote_cache_verdict(remote, subject, shared)) != NULL) {
		out.stored[out.count] = NULL;
		out.verdicts[out.count++] = shared->verdict;
	}
	return out;
}

void resolve_read_wholly(struct result *result)
{
	bool heads = true;

	for (int i = 0; i < result->case_count; i++)
		heads = heads && result->cases[i].stored != NULL;
	for (int i = 0; i < result->case_count && !heads; i++) {
		struct case_result *c = &result->cases[i];
		const struct verdict *whole =
		    c->stored == NULL ? NULL : verdict_parse(c->stored->text, c->stored->length, &result->arena, NULL);

		c->verdict = whole != NULL ? whole : c->verdict;
		c->stored = NULL;
	}
}

/* Decides whether a stored or remote verdict counts for the case. Sets `known` to the stored and remote verdicts with
 * the case's subject. */
static struct decision decide(struct result *result, const struct case_result *c, struct readable *known)
{
	if (result->outside != NULL) {
		bool cached_only = result->run->options->cached_only;

		*known = (struct readable){0};
		return (struct decision){.answer = cached_only ? RERUN_NOT_CACHED : RERUN_RUN,
					 .lack = LACK_NOTHING_STORED,
					 .candidate = -1,
					 .why = result->outside};
	}
	*known = known_verdicts(result, &c->test->subject);
	return rerun_case(&result->run->machine.policy, &c->test->job->truths, c->after_all, known->verdicts,
			  known->count, &result->arena);
}

bool resolve_known(struct result *result, const struct case_result *c)
{
	struct readable known;

	return decide(result, c, &known).answer == RERUN_CACHED;
}

const struct verdict *resolve_not_run(struct result *result, enum reason reason, const char *message)
{
	struct verdict *verdict = arena_alloc(&result->arena, sizeof *verdict);

	*verdict = (struct verdict){
	    .status = STATUS_SKIPPED, .reason = reason, .message = arena_string(&result->arena, message)};
	return verdict;
}

void resolve_settle(struct result *result, struct case_result *c, const struct verdict *verdict)
{
	c->verdict = verdict;
	result->done++;
}

bool resolve_case(struct result *result, struct case_result *c)
{
	struct run *run = result->run;
	struct readable known;

	if (c->test->decided != NULL) {
		c->why = c->test->decided->reason == REASON_CONSTANTS
			     ? "the case does not run, because the definition's name, description or model contradicts "
			         "the length of an axis"
			     : "the case cannot run, because its workload line is invalid or names an unusable file";
		/* The verdict of an invalid workload line need not be stored, because every run finds the invalid line
		 * again. */
		c->in_store = c->test->decided->status == STATUS_INVALID;
		resolve_settle(result, c, c->test->decided);
		return false;
	}
	struct decision decision = decide(result, c, &known);

	c->why = decision.why;
	trace("plan", "%s/%s %s: %s", result->file->op_type, result->file->name, c->test->id, decision.why);
	if (decision.answer == RERUN_CACHED) {
		c->cached = c->in_store = true;
		c->fetched = decision.candidate >= known.here;
		if (c->fetched)
			c->why = arena_printf(&result->arena, "%s, from %s", decision.why,
					      remote_cache_shown(run->remote_cache));
		c->witness = resolve_witness(known.verdicts[decision.candidate], &result->arena);
		c->stored = known.stored[decision.candidate];
		run->cases_cached++;
		resolve_settle(result, c, known.verdicts[decision.candidate]);
		return false;
	}
	run->misses[decision.lack]++;
	if (decision.answer == RERUN_NOT_CACHED) {
		resolve_settle(result, c, resolve_not_run(result, REASON_NOT_CACHED, decision.why));
		return false;
	}
	if (run->options->dry_run)
		return false;
	if (run->machine.cannot_run != NULL) {
		resolve_settle(result, c, resolve_not_run(result, run->machine.cannot_reason, run->machine.cannot_run));
		return false;
	}
	return true;
}
