#include "commands/address.h"

#include <stdio.h>
#include <string.h>

#include "cache/fingerprint.h"
#include "cache/portable.h"

static struct digest_text {
	char hex[DIGEST_HEX];
} hex_of(const struct digest *digest)
{
	struct digest_text text;

	digest_hex(digest, text.hex);
	return text;
}

static void add_exact(struct addresses *to, const struct digest *subject, const struct digest *witness)
{
	snprintf(to->text[to->count++], ADDRESS, "verdict %d %s %s", PORTABLE_VERSION, hex_of(subject).hex,
		 hex_of(witness).hex);
}

static void add_kind(struct addresses *to, const struct digest *subject, const char *truth, const char *version,
		     const char *kind)
{
	struct fields fields = {0};
	struct arena arena = {0};

	field_text(&fields, &arena, "truth", truth != NULL ? truth : "");
	field_text(&fields, &arena, "version", version != NULL ? version : "");
	field_text(&fields, &arena, "kind", kind);
	struct digest digest = fields_digest(&fields);

	snprintf(to->text[to->count++], ADDRESS, "verdict %d %s any %s", PORTABLE_VERSION, hex_of(subject).hex,
		 hex_of(&digest).hex);
	arena_free(&arena);
}

static bool is_gpu(const char *device_class)
{
	return strncmp(device_class, "sm_", 3) == 0;
}

struct addresses addresses_of(const struct digest *subject, const struct digest *witness, const struct verdict *v)
{
	struct addresses all = {.count = 0};
	struct arena arena = {0};

	add_exact(&all, subject, witness);
	if (v->device_class != NULL)
		add_kind(&all, subject, v->ground_truth, verdict_truth_version(v, &arena), v->device_class);
	if (v->device_class != NULL && is_gpu(v->device_class))
		add_kind(&all, subject, v->ground_truth, verdict_truth_version(v, &arena), "gpu");
	arena_free(&arena);
	return all;
}

struct addresses addresses_wanted(const struct policy *policy, const struct digest *subject, const struct truths *truths)
{
	struct addresses all = {.count = 0};
	struct fields fields = {0};
	struct arena arena = {0};
	const char *truth = truths->count > 0 ? truths->items[0].name : NULL;
	const char *version = truths->count > 0 ? truths->items[0].version : NULL;

	if (policy->torch != NULL) {
		witness_fields(truth, version, policy->device_class, policy->torch, policy->cuda, &arena, &fields);
		struct digest witness = fields_digest(&fields);

		add_exact(&all, subject, &witness);
	} else {
		add_kind(&all, subject, truth, version, policy->device_class);
	}
	if (policy->any_gpu)
		add_kind(&all, subject, truth, version, "gpu");
	arena_free(&arena);
	return all;
}
