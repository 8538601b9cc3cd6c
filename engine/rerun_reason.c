/* rerun_reason - decides whether a stored verdict counts in this run. If a stored verdict counts, its case need not
 * run.
 *
 * A stored verdict that does not count has a "lack". The lack is the first condition that the verdict does not meet
 * (enum lack). If no verdict counts, the run reports the lack of the verdict that meets the most conditions. If several
 * verdicts count, a verdict from a GPU is preferred to a verdict from a CPU. If the kind of device is the same, the
 * newer verdict is preferred. Failed verdicts count in the same way as passed verdicts. */
#include "engine/rerun_reason.h"

#include <string.h>

#include "engine/dataset_truth.h"
#include "workers/sandbox/containment.h"

static bool same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool is_gpu(const struct verdict *v)
{
	return v->device_class != NULL && strncmp(v->device_class, "sm_", 3) == 0;
}

static const struct tried_truth *tried_truth_of(const struct verdict *v, const char *name)
{
	for (int i = 0; i < v->tried_count; i++)
		if (same(v->tried[i].name, name))
			return &v->tried[i];
	return NULL;
}

/* Returns the index of the ground truth in the list, or -1. */
static int index_of(const struct truths *truths, const char *name)
{
	for (int i = 0; i < truths->count; i++)
		if (same(truths->items[i].name, name))
			return i;
	return -1;
}

/* Returns whether every machine with this dataset has the ground truth, so that its version here is its version there.
 * Returns false for libraries. */
static bool is_on_every_machine(const char *name)
{
	return name == NULL || same(name, "builtin") || is_own_truth(name);
}

static enum lack lack_of_one(const struct truth *wanted, const struct tried_truth *w)
{
	if (wanted == NULL || w == NULL || !same(w->name, wanted->name))
		return LACK_TRUTH;
	return same(w->version, wanted->version) ? LACK_NONE : LACK_VERSION;
}

/* Returns true if no ground truth of the verdict could tell whether the reference is right. Such a verdict does not
 * count if this run has more ground truths to try, or if the verdict is from another device class. */
static bool could_not_tell(const struct verdict *v)
{
	return v->tried_count > 0 && !v->all_tried &&
	       (v->reason == REASON_NO_GROUND_TRUTH || v->tried[v->tried_count - 1].coarse);
}

/* Compares the ground truths of a verdict from this device class with those that a run would use now, one by one. */
static enum lack lack_of_own_class(const struct truths *truths, const struct verdict *v, int *at)
{
	if (v->all_tried != (truths->all && truths->count > 1) || (truths->all && v->tried_count < truths->count))
		return LACK_TRUTH;
	for (; *at < v->tried_count; (*at)++) {
		enum lack lack = lack_of_one(*at < truths->count ? &truths->items[*at] : NULL, &v->tried[*at]);

		if (lack != LACK_NONE)
			return lack;
	}
	return LACK_NONE;
}

/* Returns the number of ground truths that `auto` uses before every library that it may use for this definition. A
 * definition with an op family has none (add_available in engine/ground_truths.c). */
static int before_libraries(const struct truths *truths)
{
	int count = 0;

	while (count < truths->count &&
	       (same(truths->items[count].name, CHAIN_TRUTH) || same(truths->items[count].name, TRUTH_NAME)))
		count++;
	return count;
}

/* Returns how many ground truths at the start of the list a run has tried when it has tried the ground truth `name`.
 * Returns -1 if no machine would try `name` now. */
static int tried_through(const struct truths *truths, const char *name)
{
	int index = index_of(truths, name);

	if (is_on_every_machine(name) || truths->option == TRUTHS_NAMED)
		return index < 0 ? -1 : index + 1;
	return before_libraries(truths);
}

/* Compares the ground truths of a verdict from another device class with those that a run would use now. This machine
 * cannot know which libraries, in which versions, the other machine would use now. But it knows builtin and the
 * dataset's own truths, and the verdict must be by all of these that the other machine would try now. A verdict by a
 * library counts even if the library is not installed here: the verdict comes from a GPU, and a machine without a GPU
 * cannot compute a better one. */
static enum lack lack_of_other_class(const struct truths *truths, const struct verdict *v, int *at)
{
	bool all = truths->option == TRUTHS_OF_ALL;
	int through = all ? truths->count : 0;

	if (all && truths->count > 1 && !v->all_tried)
		return LACK_TRUTH;
	for (int i = 0; i < v->tried_count; i++) {
		int its = tried_through(truths, v->tried[i].name);

		if (its < 0)
			return LACK_TRUTH;
		through = its > through ? its : through;
	}
	for (; *at < through; (*at)++) {
		const struct truth *wanted = &truths->items[*at];
		enum lack lack = is_on_every_machine(wanted->name) ? lack_of_one(wanted, tried_truth_of(v, wanted->name))
								    : LACK_NONE;

		if (lack != LACK_NONE)
			return lack;
	}
	return LACK_NONE;
}

/* Compares the list of the verdict's ground truths with the list that a run would use now. A verdict without a list has
 * one ground truth. If the result is LACK_VERSION, sets `*at` to the index in `truths` of a ground truth whose version
 * has changed. */
static enum lack lack_of_truths(const struct truths *truths, bool own_class, const struct verdict *v, int *at)
{
	const struct tried_truth only = {.name = v->ground_truth, .version = v->ground_truth_version};
	struct verdict listed = *v;

	*at = 0;
	if (v->ground_truth == NULL && v->tried_count == 0)
		return truths->count == 0 ? LACK_NONE : LACK_TRUTH;
	if (v->tried_count == 0) {
		listed.tried = &only;
		listed.tried_count = 1;
	}
	if (could_not_tell(v) && (!own_class || v->tried_count < truths->count))
		return LACK_TRUTH;
	return own_class ? lack_of_own_class(truths, &listed, at) : lack_of_other_class(truths, &listed, at);
}

/* Returns whether the judge decided the case without a runner, for example because the inputs are invalid. Such a
 * verdict is never `passed`. No reference ran, so the verdict counts whatever torch is installed and whatever
 * --require-containment says. */
static bool ran_no_reference(const struct verdict *v)
{
	return v->torch == NULL && v->containment == NULL && v->status != STATUS_PASSED;
}

bool verdict_is_in_order(const struct verdict *v, const char *after)
{
	return v->after == NULL || same(v->after, after);
}

/* Returns the first condition that a stored verdict does not meet. A verdict from this machine's own device class must
 * have the versions of torch, CUDA and Python that are installed here. On a machine without a GPU, a verdict from a GPU
 * may have any versions, because this machine cannot compute a better verdict. */
static enum lack lack_of(const struct policy *policy, const struct truths *truths, const char *after,
			 const struct verdict *v)
{
	bool asked_for = same(v->device_class, policy->device_class), own_class = asked_for && !policy->foreign_class;
	int at;

	if (!asked_for && !(policy->any_gpu && is_gpu(v)))
		return LACK_DEVICE;
	enum lack lack = lack_of_truths(truths, own_class, v, &at);

	if (lack != LACK_NONE)
		return lack;
	if (ran_no_reference(v))
		return LACK_NONE;
	if (own_class && policy->torch != NULL &&
	    (!same(v->torch, policy->torch) || !same(v->cuda, policy->cuda) || !same(v->python, policy->python)))
		return LACK_TORCH;
	if (!containment_suffices(v->containment, policy->required))
		return LACK_CONTAINMENT;
	return verdict_is_in_order(v, after) ? LACK_NONE : LACK_ORDER;
}

static const char *text(const char *given)
{
	return given != NULL ? given : "none";
}

/* Shortens a digest of sources to "1a2b3c4d". Returns other versions unchanged. */
static const char *version_text(const char *version, struct arena *arena)
{
	bool digest = version != NULL && strlen(version) == DIGEST_HEX - 1 &&
	              strspn(version, "0123456789abcdef") == DIGEST_HEX - 1;

	return digest ? arena_copy(arena, version, 8) : text(version);
}

/* Returns the names of the ground truths as text, such as "builtin" or "all of flashinfer and builtin". */
static const char *ground_truths_text(const struct truths *truths, struct arena *arena)
{
	const char *text = truths->count == 0 ? "none" : truths->items[0].name;

	for (int i = 1; truths->all && i < truths->count; i++)
		text = arena_printf(arena, "%s%s%s", text, i < truths->count - 1 ? ", " : " and ", truths->items[i].name);
	return truths->all && truths->count > 1 ? arena_printf(arena, "all of %s", text) : text;
}

static const char *verdict_truth_text(const struct verdict *v, struct arena *arena)
{
	return v->all_tried ? arena_printf(arena, "%s (and others, which agreed)", text(v->ground_truth))
	                        : text(v->ground_truth);
}

/* Lists the ground truths whose versions have changed: "fla (0.6, now 0.7) and builtin (1a2b3c4d, now 5e6f7a8b)". */
static const char *changed_text(const struct truths *truths, const struct verdict *v, int *count, struct arena *arena)
{
	const char *text = "";

	*count = 0;
	for (int i = 0; i < truths->count; i++) {
		const struct tried_truth *then = tried_truth_of(v, truths->items[i].name);

		if (then == NULL || same(then->version, truths->items[i].version))
			continue;
		text = arena_printf(arena, "%s%s%s (%s, now %s)", text, *count == 0 ? "" : " and ", then->name,
		                    version_text(then->version, arena), version_text(truths->items[i].version, arena));
		(*count)++;
	}
	return text;
}

/* If the verdict is from --ground-truth all, lists the ground truths that were installed or removed since it was
 * stored: "; it lacks fla and torch; sglang is no longer available". Returns "" for any other verdict, because without
 * --ground-truth all, a run need not use every available ground truth. */
static const char *absent_text(const struct truths *truths, const struct verdict *v, struct arena *arena)
{
	const char *lacks = "", *gone = "";

	if (!v->all_tried || !truths->all)
		return "";
	for (int i = 0; i < truths->count; i++)
		if (tried_truth_of(v, truths->items[i].name) == NULL)
			lacks = arena_printf(arena, "%s%s%s", lacks, lacks[0] == '\0' ? "; it lacks " : " and ",
			                     truths->items[i].name);
	for (int i = 0; i < v->tried_count; i++)
		if (index_of(truths, v->tried[i].name) < 0)
			gone = arena_printf(arena, "%s; %s is no longer available", gone, text(v->tried[i].name));
	return arena_printf(arena, "%s%s", lacks, gone);
}

/* Returns the result of absent_text, followed by the ground truths whose versions have changed: "; builtin (1a2b3c4d,
 * now 5e6f7a8b) changed". */
static const char *difference_text(const struct truths *truths, const struct verdict *v, struct arena *arena)
{
	int count = 0;
	const char *changed = v->all_tried && truths->all ? changed_text(truths, v, &count, arena) : "";

	return arena_printf(arena, "%s%s%s%s", absent_text(truths, v, arena), count > 0 ? "; " : "", changed,
	                    count > 0 ? " changed" : "");
}

/* Describes the ground truths whose versions have changed, and the ground truths that were added or removed. */
static const char *version_changed(const struct truths *truths, bool own_class, const struct verdict *v,
                                   struct arena *arena)
{
	int at = 0, count = 0;
	const char *changed = v->all_tried ? changed_text(truths, v, &count, arena) : "";

	if (count > 1)
		return arena_printf(arena, "ground truths have changed since the verdict was stored: %s%s", changed,
		                    absent_text(truths, v, arena));
	lack_of_truths(truths, own_class, v, &at);
	const struct truth *now = &truths->items[at];
	const struct tried_truth *then = tried_truth_of(v, now->name);

	return arena_printf(arena, "ground truth %s has changed since the verdict was stored: %s, now %s%s", now->name,
			    version_text(then != NULL ? then->version : v->ground_truth_version, arena),
			    version_text(now->version, arena), absent_text(truths, v, arena));
}

static const char *why_not(const struct policy *policy, const struct truths *truths, enum lack lack,
                           const struct verdict *v, struct arena *arena)
{
	switch (lack) {
	case LACK_NOTHING_STORED:
		return "no verdict for this version of the case is stored";
	case LACK_DEVICE:
		return arena_printf(arena, "the stored verdict is from %s, and this run needs %s", text(v->device_class),
		                    text(policy->device_class));
	case LACK_TRUTH:
		if (could_not_tell(v) && same(v->ground_truth, ground_truths_text(truths, arena)))
			return arena_printf(arena, "ground truth %s gave no verdict for the case, but this run can try "
			    "other ground truths",
					    text(v->ground_truth));
		return arena_printf(arena, "the stored verdict is by ground truth %s, and this run would use %s%s",
				    verdict_truth_text(v, arena), ground_truths_text(truths, arena),
				    difference_text(truths, v, arena));
	case LACK_VERSION:
		return version_changed(truths, same(v->device_class, policy->device_class) && !policy->foreign_class, v, arena);
	case LACK_CONTAINMENT:
		return arena_printf(arena, "when the stored verdict was made, the reference could reach %s, but this run requires "
					   "--require-containment %s",
				    v->containment == NULL ? "an unknown part of the machine" : v->containment,
				    policy->required);
	case LACK_ORDER:
		return "when the stored verdict was made, other cases had run before this case than in a run of all cases, "
		       "and the reference may keep something from one case to the next";
	default:
		if (same(v->torch, policy->torch) && same(v->cuda, policy->cuda))
			return arena_printf(arena, "the stored verdict is from %s%s, and this run would use Python %s",
					    v->python != NULL ? "Python " : "an unknown version of Python",
					    v->python != NULL ? v->python : "", text(policy->python));
		return arena_printf(arena,
		                    "the stored verdict is from torch %s (CUDA %s), and this run would use torch %s (CUDA "
				    "%s)",
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

/* Returns the index of the verdict that counts, or -1 if none counts. If several count, verdicts from a GPU are
 * preferred to verdicts from a CPU, and then newer verdicts to older ones. Also finds the verdict that meets the most
 * conditions: sets `*nearest` to its index, and `*lack` to the first condition that this verdict does not meet. */
static int choose(const struct policy *policy, const struct truths *truths, const char *after,
		  const struct verdict *const *stored, int count, int *nearest, enum lack *lack)
{
	int chosen = -1;

	*lack = LACK_NOTHING_STORED;
	*nearest = -1;
	for (int i = 0; i < count; i++) {
		enum lack its = lack_of(policy, truths, after, stored[i]);

		if (its == LACK_NONE && (chosen < 0 || is_gpu(stored[i]) || !is_gpu(stored[chosen])))
			chosen = i;
		if (its >= *lack) {
			*lack = its;
			*nearest = i;
		}
	}
	return chosen;
}

struct decision rerun_case(const struct policy *policy, const struct truths *truths, const char *after,
			   const struct verdict *const *stored, int count, struct arena *arena)
{
	enum lack lack;
	int nearest, chosen = choose(policy, truths, after, stored, count, &nearest, &lack);
	struct decision decision = {.answer = policy->cached_only ? RERUN_NOT_CACHED : RERUN_RUN, .lack = LACK_NONE,
	                            .candidate = -1, .why = "--force runs every case"};

	if (policy->force)
		return decision;
	if (chosen >= 0)
		return (struct decision){RERUN_CACHED, LACK_NONE, chosen, why_cached(policy, stored[chosen], arena)};
	decision.lack = lack;
	decision.why = why_not(policy, truths, lack, nearest >= 0 ? stored[nearest] : NULL, arena);
	return decision;
}
