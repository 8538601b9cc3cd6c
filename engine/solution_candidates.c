#include "engine/solution_candidates.h"

#include <string.h>

#include "base/hash.h"

/* Returns the result of the definition's reference in the earlier run that verified the references, or NULL if that run
 * has no such result. */
static const struct result *reference_of(const struct candidates *candidates, const struct dataset_file *file)
{
	for (int i = 0; i < candidates->references->count; i++)
		if (strcmp(candidates->references->results[i]->file->path, file->path) == 0)
			return candidates->references->results[i];
	return NULL;
}

const struct own_truth *candidate_of(const struct result *result)
{
	int at = OWN_TRUTHS + result->candidate - 1;

	return result->candidate > 0 && at < result->own_truth_count ? &result->own_truths[at] : NULL;
}

static void decide(struct result *result, enum status status, enum reason reason, const char *message)
{
	result->status = status;
	result->reason = reason;
	result->message = message;
	result->known = true;
	result->counts.status = (uint8_t)status;
	result->counts.reason = (uint8_t)reason;
}

bool candidate_decided(struct result *result)
{
	const struct result *reference = reference_of(result->run->options->candidates, result->file);
	const struct own_truth *solution = candidate_of(result);
	bool verified = reference != NULL && reference->known &&
			(reference->status == STATUS_PASSED || reference->status == STATUS_CHECKED);

	if (solution == NULL || solution->invalid)
		decide(result, STATUS_INVALID, REASON_NONE,
		       solution == NULL ? "the solution was removed while the run read it" : solution->truth.refused);
	else if (solution->program.name == NULL)
		decide(result, STATUS_SKIPPED, REASON_UNSUPPORTED_DEVICE, solution->truth.refused);
	else if (!verified)
		decide(result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
		       arena_printf(&result->arena, "the reference is not verified: its status is %s",
				    reference == NULL || !reference->known ? "unknown" : status_name(reference->status)));
	else
		return false;
	return true;
}

struct own_truth candidate_reference_truth(const struct result *result, struct arena *arena)
{
	const struct definition *d = result->definition;
	const struct result *reference = reference_of(result->run->options->candidates, result->file);
	const struct digest digest = digest_of(d->reference, d->reference_length);
	char hex[DIGEST_HEX];

	digest_hex(&digest, hex);
	return (struct own_truth){
	    .truth = {.name = REFERENCE_TRUTH,
		      .version = arena_string(arena, hex),
		      .program = true,
		      .related = reference != NULL && reference->status == STATUS_PASSED
				     ? NULL
				     : "no ground truth verified the reference"},
	    .program = {.name = REFERENCE_TRUTH,
			.path = result->file->path,
			.source = d->reference,
			.entry_point = d->entry_point}};
}
