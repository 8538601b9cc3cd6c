#include "engine/remote_keys.h"

#include <stdio.h>
#include <string.h>

#include "cache/fingerprint.h"
#include "cache/witness.h"

/* The version of the format of keys and records; each key contains it, so records of another version are not found. */
enum { SCHEME = 2 };

static struct digest_text {
	char hex[DIGEST_HEX];
} hex_of(const struct digest *digest)
{
	struct digest_text text;

	digest_hex(digest, text.hex);
	return text;
}

static void add_exact(struct remote_keys *to, const struct digest *subject, const struct digest *witness)
{
	snprintf(to->text[to->count++], REMOTE_KEY_SIZE, "verdict %d %s %s", SCHEME, hex_of(subject).hex,
		 hex_of(witness).hex);
}

static void add_kind(struct remote_keys *to, const struct digest *subject, const char *truth, const char *version,
		     const char *kind)
{
	struct fields fields = {0};
	struct arena arena = {0};

	field_text(&fields, &arena, "truth", truth != NULL ? truth : "");
	field_text(&fields, &arena, "version", version != NULL ? version : "");
	field_text(&fields, &arena, "kind", kind);
	struct digest digest = fields_digest(&fields);

	snprintf(to->text[to->count++], REMOTE_KEY_SIZE, "verdict %d %s any %s", SCHEME, hex_of(subject).hex,
		 hex_of(&digest).hex);
	arena_free(&arena);
}

static bool is_gpu(const char *device_class)
{
	return device_class != NULL && strncmp(device_class, "sm_", 3) == 0;
}

static bool is_builtin(const char *name)
{
	return name != NULL && strcmp(name, "builtin") == 0;
}

/* If the ground truth builtin is one of the verdict's ground truths, returns its name and version. Otherwise both are
 * NULL in the result. */
static struct truth builtin_of(const struct verdict *v)
{
	struct truth found = {0};

	if (v->tried_count == 0 && is_builtin(v->ground_truth))
		return (struct truth){.name = v->ground_truth, .version = v->ground_truth_version};
	for (int i = 0; i < v->tried_count; i++)
		if (is_builtin(v->tried[i].name))
			found = (struct truth){.name = v->tried[i].name, .version = v->tried[i].version};
	return found;
}

/* Returns whether the verdict would count on a machine that has no GPU, but has this version of the ground truth
 * builtin. */
static bool counts_without_gpu(const struct verdict *v, const struct truth *builtin, struct arena *arena)
{
	static const struct policy no_gpu = {.device_class = "cpu", .any_gpu = true};
	static const struct truth any = {.name = "builtin", .version = ""};
	struct truths truths = {builtin->name != NULL ? builtin : &any, 1, false, TRUTHS_OF_AUTO};

	if (v->ground_truth == NULL && v->tried_count == 0)
		truths.count = 0;
	return is_gpu(v->device_class) && rerun_case(&no_gpu, &truths, v->after, &v, 1, arena).answer == RERUN_CACHED;
}

static bool through_several(const struct verdict *v)
{
	return v->tried_count > 1 || v->all_tried;
}

/* Adds the key for verdicts that come from one device class and to which several ground truths contributed. If `torch`
 * is NULL, the key applies to any version of torch and of Python. */
static void add_several(struct remote_keys *to, const struct digest *subject, bool all, const char *torch,
			const char *cuda, const char *python, const char *device_class)
{
	struct arena arena = {0};
	const char *version =
	    torch == NULL ? "" : arena_printf(&arena, "torch %s, cuda %s, Python %s", torch, cuda != NULL ? cuda : "none",
					      python != NULL ? python : "unknown");

	add_kind(to, subject, all ? "all of several" : "first of several", version, device_class);
	arena_free(&arena);
}

/* Adds the keys under which a machine looks for the verdict if the machine has the verdict's device class. */
static void add_own(struct remote_keys *to, const struct digest *subject, const struct digest *witness,
		    const struct verdict *v)
{
	if (v->device_class == NULL) {
		add_exact(to, subject, witness);
	} else if (!through_several(v)) {
		add_exact(to, subject, witness);
		add_kind(to, subject, v->ground_truth, v->ground_truth_version, v->device_class);
	} else {
		add_several(to, subject, v->all_tried, v->torch != NULL ? v->torch : "none", v->cuda,
			    v->python, v->device_class);
		add_several(to, subject, v->all_tried, NULL, NULL, NULL, v->device_class);
	}
}

/* Adds the key for verdicts by this version of the ground truth builtin on a kind of device ("sm_90", "gpu"). If
 * `builtin->name` is NULL, the key applies to verdicts by any library. */
static void add_by(struct remote_keys *to, const struct digest *subject, const struct truth *builtin, const char *kind)
{
	add_kind(to, subject, builtin->name != NULL ? builtin->name : "library",
		 builtin->name != NULL ? builtin->version : "", kind);
}

struct remote_keys remote_keys_of(const struct digest *subject, const struct digest *witness, const struct verdict *v)
{
	struct remote_keys all = {.count = 0};
	struct arena arena = {0};
	struct truth builtin = builtin_of(v);
	bool alone = v->tried_count == 0 && (v->ground_truth == NULL || builtin.name != NULL);

	add_own(&all, subject, witness, v);
	if (counts_without_gpu(v, &builtin, &arena)) {
		if (!alone)
			add_by(&all, subject, &builtin, v->device_class);
		if (v->ground_truth == NULL && v->tried_count == 0)
			add_kind(&all, subject, NULL, NULL, "gpu");
		else
			add_by(&all, subject, &builtin, "gpu");
	}
	arena_free(&arena);
	return all;
}

/* Adds the keys under which verdicts from another kind of device ("sm_90", "gpu", "cpu") are stored. */
static void add_others(struct remote_keys *to, const struct digest *subject, const struct truths *truths,
		       const char *kind)
{
	static const struct truth library = {0};
	const struct truth *last = truths->count > 0 ? &truths->items[truths->count - 1] : NULL;

	if (last == NULL)
		add_kind(to, subject, NULL, NULL, kind);
	else if (is_builtin(last->name))
		add_by(to, subject, last, kind);
	if (last != NULL && strcmp(kind, "cpu") != 0)
		add_by(to, subject, &library, kind);
}

static void want_own(struct remote_keys *to, const struct policy *policy, const struct digest *subject,
		     const struct truths *truths)
{
	struct fields fields = {0};
	struct arena arena = {0};
	const char *truth = truths->count > 0 ? truths->items[0].name : NULL;
	const char *version = truths->count > 0 ? truths->items[0].version : NULL;
	bool several = truths->count > 1, alone = !several || !truths->all;

	if (alone && policy->torch != NULL) {
		witness_fields(truth, version, policy->device_class, policy->torch, policy->cuda, policy->python, &arena,
			       &fields);
		struct digest witness = fields_digest(&fields);

		add_exact(to, subject, &witness);
	} else if (alone) {
		add_kind(to, subject, truth, version, policy->device_class);
	}
	if (several)
		add_several(to, subject, truths->all, policy->torch, policy->cuda, policy->python, policy->device_class);
	arena_free(&arena);
}

struct remote_keys remote_keys_wanted(const struct policy *policy, const struct digest *subject,
				      const struct truths *truths)
{
	struct remote_keys all = {.count = 0};

	if (policy->foreign_class)
		add_others(&all, subject, truths, policy->device_class);
	else
		want_own(&all, policy, subject, truths);
	if (policy->any_gpu)
		add_others(&all, subject, truths, "gpu");
	return all;
}
