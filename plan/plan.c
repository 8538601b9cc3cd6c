/* plan - one case, the verdicts stored on its subject, and what this run would use: does one of them count?
 *
 * Each stored verdict either counts or lacks something, and lacks are ordered by how near the verdict came; the
 * sentence tells of the one that came nearest. Of those that count a GPU's goes before the CPU's, then the newest.
 * Nothing else is looked at: a stored failure counts like a stored success. */
#include "plan/plan.h"

#include <string.h>

static bool same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_gpu(const struct verdict *v)
{
	return v->device_class != NULL && strncmp(v->device_class, "sm_", 3) == 0;
}

static struct witness only_witness(const struct verdict *v)
{
	return (struct witness){.name = v->ground_truth, .version = v->ground_truth_version};
}

/* A library that verified on another machine's GPU need not be installed on this one, which has none: of what would be
 * used here, nothing is better. The sources of builtin are the same everywhere. */
static enum lack lack_of_witness(const struct truths *truths, int at, bool own_class, const struct witness *w)
{
	const struct truth *builtin = truths->count > 0 ? &truths->items[truths->count - 1] : NULL;
	const struct truth *wanted = at < truths->count ? &truths->items[at] : NULL;

	if (!own_class && !same(w->name, "builtin") && w->name != NULL)
		return LACK_NONE;
	if (!own_class && builtin != NULL && same(builtin->name, "builtin"))
		wanted = builtin;
	if (wanted == NULL || !same(w->name, wanted->name))
		return LACK_TRUTH;
	return same(w->version, wanted->version) ? LACK_NONE : LACK_VERSION;
}

/* Did all that were asked leave the decision to others, who were not there? Then whoever has others asks them. */
static bool could_not_tell(const struct verdict *v)
{
	return v->witness_count > 0 && !v->all_witnesses &&
	       (v->reason == REASON_NO_GROUND_TRUTH || v->witnesses[v->witness_count - 1].coarse);
}

/* Each that the verdict went through, in order, against each that would be gone through now. */
static enum lack lack_of_truths(const struct truths *truths, bool own_class, const struct verdict *v, int *at)
{
	struct witness only = only_witness(v);
	const struct witness *witnesses = v->witness_count > 0 ? v->witnesses : &only;
	int count = v->witness_count > 0 ? v->witness_count : 1;
	int first = 0;

	at = at == NULL ? &first : at;
	*at = 0;
	if (v->ground_truth == NULL && v->witness_count == 0)
		return truths->count == 0 ? LACK_NONE : LACK_TRUTH;
	if (own_class && (v->all_witnesses != (truths->all && truths->count > 1) || (truths->all && count < truths->count)))
		return LACK_TRUTH;
	if (could_not_tell(v) && (!own_class || count < truths->count))
		return LACK_TRUTH;
	for (; *at < count; (*at)++) {
		enum lack lack = lack_of_witness(truths, *at, own_class, &witnesses[*at]);

		if (lack != LACK_NONE)
			return lack;
	}
	return LACK_NONE;
}

/* A GPU's verdict that counts on a machine without one was made with whatever libraries and torch that machine had: nothing
 * that could be used here is better. On this machine's own class the versions must be those that would run now. */
static enum lack lack_of(const struct policy *policy, const struct truths *truths, const struct verdict *v)
{
	bool asked_for = same(v->device_class, policy->device_class), own_class = asked_for && !policy->elsewhere;

	if (!asked_for && !(policy->any_gpu && is_gpu(v)))
		return LACK_DEVICE;
	enum lack lack = lack_of_truths(truths, own_class, v, NULL);

	if (lack != LACK_NONE)
		return lack;
	if (own_class && policy->torch != NULL && (!same(v->torch, policy->torch) || !same(v->cuda, policy->cuda)))
		return LACK_TORCH;
	return LACK_NONE;
}

static const char *text(const char *given)
{
	return given != NULL ? given : "none";
}

/* "1a2b3c4d" for the digest of sources; other versions as they are. */
static const char *version_text(const char *version, struct arena *arena)
{
	bool digest = version != NULL && strlen(version) == DIGEST_HEX - 1 &&
	              strspn(version, "0123456789abcdef") == DIGEST_HEX - 1;

	return digest ? arena_copy(arena, version, 8) : text(version);
}

/* "builtin", "all of flashinfer and builtin" */
static const char *truths_text(const struct truths *truths, struct arena *arena)
{
	const char *text = truths->count == 0 ? "none" : truths->items[0].name;

	for (int i = 1; truths->all && i < truths->count; i++)
		text = arena_printf(arena, "%s%s%s", text, i < truths->count - 1 ? ", " : " and ", truths->items[i].name);
	return truths->all && truths->count > 1 ? arena_printf(arena, "all of %s", text) : text;
}

static const char *verdict_truth_text(const struct verdict *v, struct arena *arena)
{
	return v->all_witnesses ? arena_printf(arena, "%s among others that agreed", text(v->ground_truth))
	                        : text(v->ground_truth);
}

static const struct witness *witness_of(const struct verdict *v, const char *name)
{
	for (int i = 0; i < v->witness_count; i++)
		if (same(v->witnesses[i].name, name))
			return &v->witnesses[i];
	return NULL;
}

static bool asked_now(const struct truths *truths, const char *name)
{
	for (int i = 0; i < truths->count; i++)
		if (same(truths->items[i].name, name))
			return true;
	return false;
}

/* "fla (0.6, now 0.7) and builtin (1a2b3c4d, now 5e6f7a8b)": those that are there as they were, but for their versions. */
static const char *changed_text(const struct truths *truths, const struct verdict *v, int *count, struct arena *arena)
{
	const char *text = "";

	*count = 0;
	for (int i = 0; i < truths->count; i++) {
		const struct witness *then = witness_of(v, truths->items[i].name);

		if (then == NULL || same(then->version, truths->items[i].version))
			continue;
		text = arena_printf(arena, "%s%s%s (%s, now %s)", text, *count == 0 ? "" : " and ", then->name,
		                    version_text(then->version, arena), version_text(truths->items[i].version, arena));
		(*count)++;
	}
	return text;
}

/* Of a verdict by all that were there, against those that are there now: "; it lacks fla and torch; sglang is there no
 * more". "" of others, which went through as many as it took. */
static const char *absent_text(const struct truths *truths, const struct verdict *v, struct arena *arena)
{
	const char *lacks = "", *gone = "";

	if (!v->all_witnesses || !truths->all)
		return "";
	for (int i = 0; i < truths->count; i++)
		if (witness_of(v, truths->items[i].name) == NULL)
			lacks = arena_printf(arena, "%s%s%s", lacks, lacks[0] == '\0' ? "; it lacks " : " and ",
			                     truths->items[i].name);
	for (int i = 0; i < v->witness_count; i++)
		if (!asked_now(truths, v->witnesses[i].name))
			gone = arena_printf(arena, "%s; %s is there no more", gone, text(v->witnesses[i].name));
	return arena_printf(arena, "%s%s", lacks, gone);
}

/* The same, and "; builtin (1a2b3c4d, now 5e6f7a8b) changed". */
static const char *difference_text(const struct truths *truths, const struct verdict *v, struct arena *arena)
{
	int count = 0;
	const char *changed = v->all_witnesses && truths->all ? changed_text(truths, v, &count, arena) : "";

	return arena_printf(arena, "%s%s%s%s", absent_text(truths, v, arena), count > 0 ? "; " : "", changed,
	                    count > 0 ? " changed" : "");
}

/* One whose version is another, or all of them, and who is there besides or no more. */
static const char *version_changed(const struct truths *truths, bool own_class, const struct verdict *v,
                                   struct arena *arena)
{
	int at = 0, count = 0;
	const char *changed = v->all_witnesses ? changed_text(truths, v, &count, arena) : "";

	if (count > 1)
		return arena_printf(arena, "ground truths %s have changed since its stored verdict%s", changed,
		                    absent_text(truths, v, arena));
	lack_of_truths(truths, own_class, v, &at);
	at = at < truths->count ? at : truths->count - 1;
	return arena_printf(arena, "ground truth %s has changed since its stored verdict: %s, now %s%s",
	                    truths->items[at].name,
	                    version_text(at < v->witness_count ? v->witnesses[at].version : v->ground_truth_version, arena),
	                    version_text(truths->items[at].version, arena), absent_text(truths, v, arena));
}

static const char *why_not(const struct policy *policy, const struct truths *truths, enum lack lack,
                           const struct verdict *v, struct arena *arena)
{
	switch (lack) {
	case LACK_NOTHING_STORED:
		return "no verdict on this subject is stored";
	case LACK_DEVICE:
		return arena_printf(arena, "its stored verdict is of %s, and %s is asked for", text(v->device_class),
		                    text(policy->device_class));
	case LACK_TRUTH:
		return arena_printf(arena, "its stored verdict is by ground truth %s, and %s would be used now%s",
		                    verdict_truth_text(v, arena), truths_text(truths, arena), difference_text(truths, v, arena));
	case LACK_VERSION:
		return version_changed(truths, same(v->device_class, policy->device_class) && !policy->elsewhere, v, arena);
	default:
		return arena_printf(arena,
		                    "its stored verdict is of torch %s (CUDA %s), and torch %s (CUDA %s) would run now",
		                    text(v->torch), text(v->cuda), text(policy->torch), text(policy->cuda));
	}
}

static const char *why_cached(const struct policy *policy, const struct verdict *v, struct arena *arena)
{
	const char *torch =
	    policy->torch == NULL || !same(v->device_class, policy->device_class) ? text(v->torch) : NULL;

	return arena_printf(arena, "stored verdict by %s on %s%s%s",
	                    v->ground_truth != NULL ? v->ground_truth : "no ground truth", text(v->device_class),
	                    torch != NULL ? " with torch " : "", torch != NULL ? torch : "");
}

/* The newest of those that count; a GPU's before the CPU's. -1: none counts, and `*nearest` came nearest. */
static int choose(const struct policy *policy, const struct truths *truths,
                  const struct verdict *const *stored, int count, int *nearest, enum lack *lack)
{
	int chosen = -1;

	*lack = LACK_NOTHING_STORED;
	*nearest = -1;
	for (int i = 0; i < count; i++) {
		enum lack its = lack_of(policy, truths, stored[i]);

		if (its == LACK_NONE && (chosen < 0 || is_gpu(stored[i]) || !is_gpu(stored[chosen])))
			chosen = i;
		if (its >= *lack) {
			*lack = its;
			*nearest = i;
		}
	}
	return chosen;
}

struct decision plan_case(const struct policy *policy, const struct truths *truths,
                          const struct verdict *const *stored, int count, struct arena *arena)
{
	enum lack lack;
	int nearest, chosen = choose(policy, truths, stored, count, &nearest, &lack);
	struct decision decision = {.answer = policy->cached_only ? PLAN_NOT_CACHED : PLAN_RUN, .lack = LACK_NONE,
	                            .candidate = -1, .why = "--force: no stored verdict counts"};

	if (policy->force)
		return decision;
	if (chosen >= 0)
		return (struct decision){PLAN_CACHED, LACK_NONE, chosen, why_cached(policy, stored[chosen], arena)};
	decision.lack = lack;
	decision.why = why_not(policy, truths, lack, nearest >= 0 ? stored[nearest] : NULL, arena);
	return decision;
}
