#include "commands/keep.h"

#include <string.h>

#include "commands/sharing.h"

/* Is the verdict one that the store does not have yet? */
static bool is_new(const struct case_outcome *c)
{
	return !c->cached || c->shared || c->fetched;
}

/* A cached answer needs a row only where `latest` points elsewhere. */
static bool latest_is_current(struct outcome *outcome, const char *name, const struct case_outcome *c)
{
	struct latest latest;

	return store_latest(outcome->pass->reftest->store, name, c->test->id, &outcome->arena, &latest, NULL) ==
		   CACHE_HIT &&
	       digest_equal(&latest.subject, &c->test->subject) && digest_equal(&latest.witness, &c->witness);
}

static bool make_put(struct outcome *outcome, const char *name, struct case_outcome *c, struct store_put *put)
{
	const struct verdict *v = c->verdict;
	struct fields all = fields_copy(&c->test->fields, &outcome->arena);
	struct buf text = {0}, packed = {0};

	if (v == NULL || c->test->job == NULL || !c->kept)
		return false;
	if (!is_new(c) && latest_is_current(outcome, name, c))
		return false;
	witness_fields(v->ground_truth, verdict_truth_version(v, &outcome->arena), v->device_class, v->torch, v->cuda,
	               &outcome->arena, &all);
	if (is_new(c))
		verdict_write(v, &text); /* else it is in the store already */
	fields_write(&all, &packed);
	*put = (struct store_put){.subject = c->test->subject, .witness = c->witness, .definition = name,
	                          .case_id = c->test->id, .keep_verdict = is_new(c)};
	put->text = arena_copy(&outcome->arena, text.data, text.length);
	put->length = text.length;
	put->fields = arena_copy(&outcome->arena, packed.data, packed.length);
	put->fields_length = packed.length;
	buf_free(&text);
	buf_free(&packed);
	return true;
}

void keep_waiting(struct pass *pass)
{
	struct later *later = &pass->later;
	struct err err = {""};

	if (later->count > 0 && store_put(pass->reftest->store, later->puts, later->count, &err) < 0)
		pass->not_kept = arena_string(&pass->arena, err.text);
	later->count = later->room = 0;
	later->puts = NULL;
	arena_free(&later->arena);
}

/* Copies the put: its outcome may be gone when it is written. */
static void keep_later(struct pass *pass, const struct store_put *put)
{
	struct later *later = &pass->later;

	if (later->count == LATER_MOST)
		keep_waiting(pass);
	if (later->count == later->room) { /* half of it is left behind in the arena, until all of it is written */
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

/* One transaction for the verdicts of a definition. */
void keep_outcome(struct outcome *outcome)
{
	struct pass *pass = outcome->pass;
	struct store *store = pass->reftest->store;
	struct store_put *puts = arena_array(&outcome->arena, (size_t)outcome->case_count, sizeof *puts);
	const char *name = outcome_name(outcome, &outcome->arena);
	struct err err = {""};
	int count = 0;

	for (int i = 0; outcome->outside != NULL && i < outcome->case_count; i++)
		outcome->cases[i].kept = false;
	sharing_put(outcome);
	if (store == NULL || pass->options->dry_run)
		return;
	for (int i = 0; i < outcome->case_count; i++) {
		if (!make_put(outcome, name, &outcome->cases[i], &puts[count]))
			continue;
		if (pass->options->urgent || !puts[count].keep_verdict)
			keep_later(pass, &puts[count]);
		else
			count++;
	}
	if (count == 0)
		return;
	if (store_put(store, puts, count, &err) == 0)
		return;
	pass->not_kept = arena_string(&pass->arena, err.text);
	for (int i = 0; i < outcome->case_count; i++)
		outcome->cases[i].kept = outcome->cases[i].kept && outcome->cases[i].cached;
}
