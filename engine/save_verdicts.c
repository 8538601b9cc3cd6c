#include "engine/save_verdicts.h"

#include <string.h>

#include "cache/witness.h"
#include "engine/remote_cache.h"
#include "engine/definition_files.h"

/* Returns whether the store does not contain the verdict yet. */
static bool is_new(const struct case_result *c)
{
	return !c->cached || c->shared || c->fetched;
}

/* Returns whether the `latest` record of the case in the store refers to this verdict. If this returns true, a verdict
 * from the store need not be written again. */
static bool latest_is_current(struct result *result, const char *name, const struct case_result *c)
{
	struct latest latest;

	const struct run_store records = result->run->records;

	return records.calls->latest(records.self, name, c->test->id, &result->arena, &latest) == CACHE_HIT &&
	       digest_equal(&latest.subject, &c->test->subject) && digest_equal(&latest.witness, &c->witness);
}

static bool make_put(struct result *result, const char *name, struct case_result *c, struct store_put *put)
{
	const struct verdict *v = c->verdict;
	struct fields all = fields_copy(&c->test->fields, &result->arena);
	struct buf text = {0}, packed = {0};

	if (v == NULL || c->test->job == NULL || !c->in_store)
		return false;
	/* A verdict that is already in the store needs at most a new `latest` record. It needs none if this record is
	 * current, or if another attempt follows, which will write the record. */
	if (!is_new(c) && (result_needs_next_attempt(result) || latest_is_current(result, name, c)))
		return false;
	witness_fields(v->ground_truth, verdict_truth_version(v, &result->arena), v->device_class, v->torch, v->cuda,
		       v->python, &result->arena, &all);
	if (is_new(c))
		verdict_write(v, &text); /* otherwise, the store already has this text */
	fields_write(&all, &packed);
	*put = (struct store_put){.subject = c->test->subject,
				  .witness = c->witness,
				  .definition = name,
				  .case_id = c->test->id,
				  .keep_verdict = is_new(c)};
	put->text = arena_copy(&result->arena, text.data, text.length);
	put->length = text.length;
	put->fields = arena_copy(&result->arena, packed.data, packed.length);
	put->fields_length = packed.length;
	buf_free(&text);
	buf_free(&packed);
	return true;
}

void save_waiting(struct run *run)
{
	struct later *later = &run->later;
	struct err err = {""};

	if (later->count > 0 && run->records.calls->put(run->records.self, later->puts, later->count, &err) < 0)
		run->not_stored = arena_string(&run->arena, err.text);
	later->count = later->room = 0;
	later->puts = NULL;
	arena_free(&later->arena);
}

/* Defers a write. Copies the strings in `put`, because the result that owns these strings may be freed before the
 * write. */
static void commit_later(struct run *run, const struct store_put *put)
{
	struct later *later = &run->later;

	if (later->count == LATER_MOST)
		save_waiting(run);
	if (later->count == later->room) { /* the old array stays in the arena until save_waiting frees it */
		int room = later->room == 0 ? 64 : later->room * 2;
		struct store_put *puts = arena_array(&later->arena, (size_t)room, sizeof *puts);

		if (later->count > 0)
			memcpy(puts, later->puts, (size_t)later->count * sizeof *puts);
		later->puts = puts;
		later->room = room;
	}
	struct store_put *copy = &later->puts[later->count++];

	*copy = *put;
	copy->text = arena_copy(&later->arena, put->text, put->length);
	copy->fields = arena_copy(&later->arena, put->fields, put->fields_length);
	copy->definition = arena_string(&later->arena, put->definition);
	copy->case_id = arena_string(&later->arena, put->case_id);
}

void save_result(struct result *result)
{
	struct run *run = result->run;
	struct store_put *puts = arena_array(&result->arena, (size_t)result->case_count, sizeof *puts);
	const char *name = result_name(result, &result->arena);
	struct err err = {""};
	int count = 0;

	for (int i = 0; result->outside != NULL && i < result->case_count; i++)
		result->cases[i].in_store = false;
	remote_cache_put(result);
	for (int i = 0; run->records.calls == NULL && i < result->case_count; i++)
		result->cases[i].in_store = false;
	if (run->records.calls == NULL || run->options->dry_run)
		return;
	for (int i = 0; i < result->case_count; i++) {
		if (!make_put(result, name, &result->cases[i], &puts[count]))
			continue;
		if (run->options->urgent || !puts[count].keep_verdict)
			commit_later(run, &puts[count]);
		else
			count++;
	}
	if (count == 0)
		return;
	if (run->records.calls->put(run->records.self, puts, count, &err) == 0)
		return;
	run->not_stored = arena_string(&run->arena, err.text);
	for (int i = 0; i < result->case_count; i++)
		result->cases[i].in_store = result->cases[i].in_store && result->cases[i].cached;
}
