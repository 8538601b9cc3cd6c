#include "engine/dataset_truth.h"

#include <string.h>

#include "base/hash.h"
#include "cache/python_dependencies.h"
#include "cache/python_normal_form.h"
#include "dataset/truth_source.h"
#include "workers/protocol/chain_plan.h"
#include "workers/protocol/job.h"

bool is_own_truth(const char *name)
{
	size_t length = strlen(SOLUTION_TRUTH);

	return strcmp(name, TRUTH_NAME) == 0 || strcmp(name, CHAIN_TRUTH) == 0 || strcmp(name, APPROVED_TRUTH) == 0 ||
	       (strncmp(name, SOLUTION_TRUTH, length) == 0 && (name[length] == '\0' || name[length] == ':'));
}

/* Returns whether `form`, a Python text in normal form, is the same code as the reference. */
static bool same_form(const struct buf *form, const struct definition *definition)
{
	struct buf reference = {0};

	python_normal_form(definition->reference, definition->reference_length, &reference);
	bool same = reference.length == form->length && memcmp(reference.data, form->data, form->length) == 0;

	buf_free(&reference);
	return same;
}

bool same_code_as_reference(const struct definition *definition, const char *source, size_t length)
{
	struct buf form = {0};

	python_normal_form(source, length, &form);
	bool same = same_form(&form, definition);

	buf_free(&form);
	return same;
}

static const char *version_of(const struct buf *form, struct arena *arena)
{
	const struct digest digest = digest_of(form->data, form->length);
	char hex[DIGEST_HEX];

	digest_hex(&digest, hex);
	return arena_string(arena, hex);
}

const char *why_truth_is_not_stored(const char *path, const char *source, size_t length, struct arena *arena)
{
	struct python_dependencies words = python_dependencies(source, length);

	if (words.access != ACCESS_OUTSIDE)
		return NULL;
	return arena_printf(arena,
			    "not cached: line %d of %s contains %s, so the ground truth may depend on more than its source code, "
			    "the inputs and torch; the definition is verified in every run until %s is removed",
			    words.line, path, words.what, words.what);
}

struct own_truth dataset_truth_read(const char *path, const struct definition *definition, const struct buf *bytes,
				    const char *why, struct arena *arena)
{
	struct own_truth out = {.truth = {.name = TRUTH_NAME, .program = true, .place = path}};
	struct buf form = {0};

	why = why != NULL ? why : truth_source_error(path, bytes->data, bytes->length, arena);
	if (why == NULL) {
		python_normal_form(bytes->data != NULL ? bytes->data : "", bytes->length, &form);
		out.truth.version = version_of(&form, arena);
		if (same_form(&form, definition))
			why = arena_printf(arena, "%s has the same code as the reference, so it cannot verify the "
						  "reference", path);
		buf_free(&form);
	}
	if (why != NULL) {
		refuse_truth(&out.truth, why, arena);
		return out;
	}
	out.program = (struct truth_program){.name = TRUTH_NAME,
					     .path = path,
					     .source = arena_copy(arena, bytes->data, bytes->length),
					     .entry_point = "run"};
	out.outside = why_truth_is_not_stored(path, bytes->data, bytes->length, arena);
	return out;
}

void refuse_truth(struct truth *truth, const char *why, struct arena *arena)
{
	const struct digest digest = digest_of(why, strlen(why));
	char hex[DIGEST_HEX];

	digest_hex(&digest, hex);
	truth->refused = why;
	truth->version = arena_string(arena, hex);
}

struct own_truth dataset_truth_chain(const struct kernels_api *api, const struct definition *definition, struct arena *arena)
{
	struct own_truth out = {.truth = {.name = CHAIN_TRUTH, .chain = true}};
	struct op_problem *problem = arena_alloc(arena, sizeof *problem);
	struct err why = {""};

	if (definition->chain == NULL) {
		out.truth.chain = false;
		refuse_truth(&out.truth, "the definition has no member \"ground_truth\"", arena);
		return out;
	}
	*problem = problem_of(definition, arena);
	const struct chain_plan *plan = chain_plan_make(api, definition->chain, problem, arena, &why);

	if (plan == NULL)
		refuse_truth(&out.truth, arena_string(arena, why.text), arena);
	else
		out.truth.version = chain_plan_version(plan, arena);
	return out;
}

struct truth dataset_truth_missing(const struct definition *definition, struct arena *arena)
{
	struct truth out = {.name = TRUTH_NAME};

	refuse_truth(&out,
		     arena_printf(arena, "there is no file truths/%s/%s.py", definition->op_type, definition->name),
		     arena);
	return out;
}
