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

/* A GPU's verdict that counts on a machine without one was made with whatever torch that machine had: nothing that
 * could be used here is better. On this machine's own class the versions must be those that would run now. */
static enum lack lack_of(const struct policy *policy, const char *truth, const char *truth_version,
                         const struct verdict *v)
{
	bool own_class = same(v->device_class, policy->device_class);

	if (!own_class && !(policy->any_gpu && is_gpu(v)))
		return LACK_DEVICE;
	if (!same(v->ground_truth, truth))
		return LACK_TRUTH;
	if (!same(v->ground_truth_version, truth_version))
		return LACK_VERSION;
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

static const char *why_not(const struct policy *policy, const char *truth, const char *truth_version, enum lack lack,
                           const struct verdict *v, struct arena *arena)
{
	switch (lack) {
	case LACK_NOTHING_STORED:
		return "no verdict on this subject is stored";
	case LACK_DEVICE:
		return arena_printf(arena, "its stored verdict is of %s, and %s is asked for", text(v->device_class),
		                    text(policy->device_class));
	case LACK_TRUTH:
		return arena_printf(arena, "its stored verdict is by ground truth %s, and %s would be used now",
		                    text(v->ground_truth), text(truth));
	case LACK_VERSION:
		return arena_printf(arena, "ground truth %s has changed since its stored verdict: %s, now %s",
		                    text(truth), version_text(v->ground_truth_version, arena),
		                    version_text(truth_version, arena));
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
static int choose(const struct policy *policy, const char *truth, const char *truth_version,
                  const struct verdict *const *stored, int count, int *nearest, enum lack *lack)
{
	int chosen = -1;

	*lack = LACK_NOTHING_STORED;
	*nearest = -1;
	for (int i = 0; i < count; i++) {
		enum lack its = lack_of(policy, truth, truth_version, stored[i]);

		if (its == LACK_NONE && (chosen < 0 || is_gpu(stored[i]) || !is_gpu(stored[chosen])))
			chosen = i;
		if (its >= *lack) {
			*lack = its;
			*nearest = i;
		}
	}
	return chosen;
}

struct decision plan_case(const struct policy *policy, const char *truth, const char *truth_version,
                          const struct verdict *const *stored, int count, struct arena *arena)
{
	enum lack lack;
	int nearest, chosen = choose(policy, truth, truth_version, stored, count, &nearest, &lack);
	struct decision decision = {.answer = policy->cached_only ? PLAN_NOT_CACHED : PLAN_RUN, .lack = LACK_NONE,
	                            .candidate = -1, .why = "--force: no stored verdict counts"};

	if (policy->force)
		return decision;
	if (chosen >= 0)
		return (struct decision){PLAN_CACHED, LACK_NONE, chosen, why_cached(policy, stored[chosen], arena)};
	decision.lack = lack;
	decision.why = why_not(policy, truth, truth_version, lack, nearest >= 0 ? stored[nearest] : NULL, arena);
	return decision;
}
