#include "engine/approved_reference.h"

#include <string.h>

#include "cache/fingerprint.h"
#include "cache/python_normal_form.h"

/* Returns a digest of inputs, outputs, axes and constraints, without the code. */
static struct digest schema_digest(const struct definition *definition, struct arena *arena)
{
	struct fields all = {0}, kept = {0};

	definition_fields(definition, arena, &all);
	kept.items = arena_array(arena, (size_t)all.count, sizeof *kept.items);
	kept.room = all.count;
	for (int i = 0; i < all.count; i++)
		if (strcmp(all.items[i].tag, "reference") != 0 && strcmp(all.items[i].tag, "entry_point") != 0)
			kept.items[kept.count++] = all.items[i];
	return fields_digest(&kept);
}

enum approved_code approved_reference_compare(const struct definition *now, const struct approval *approval,
					      struct arena *arena)
{
	const struct definition *then = approval->definition;
	const struct digest here = schema_digest(now, arena), there = schema_digest(then, arena);

	if (now->entry_point == NULL || !digest_equal(&here, &there))
		return APPROVED_OTHER_SCHEMA;
	return strcmp(now->entry_point, then->entry_point) == 0 &&
		       same_code_as_reference(now, then->reference, then->reference_length)
		   ? APPROVED_SAME_CODE
		   : APPROVED_OTHER_CODE;
}

/* Returns the approved reference as a ground truth. The version of this ground truth is the digest of the approved
 * code. */
static struct own_truth truth_of(const char *path, const struct definition *definition, struct arena *arena)
{
	struct buf form = {0};
	char hex[DIGEST_HEX];

	python_normal_form(definition->reference, definition->reference_length, &form);
	buf_printf(&form, "\n%s", definition->entry_point);
	const struct digest digest = digest_of(form.data, form.length);

	buf_free(&form);
	digest_hex(&digest, hex);
	return (struct own_truth){
	    .truth = {.name = APPROVED_TRUTH,
		      .version = arena_string(arena, hex),
		      .program = true,
		      .related = "no ground truth shows that the approved reference is right"},
	    .program = {.name = APPROVED_TRUTH,
			.path = path,
			.source = definition->reference,
			.entry_point = definition->entry_point},
	    .outside = why_truth_is_not_stored(path, definition->reference, definition->reference_length, arena)};
}

struct approved_reference approved_reference_read(const char *path, const struct definition *definition,
						  const struct buf *bytes, const char *why, struct arena *arena)
{
	struct approved_reference out = {.code = APPROVED_UNREADABLE};
	struct err err = {""};

	if (why == NULL)
		out.approval = approval_load(path, definition->op_type, definition->name, bytes->data, bytes->length, arena, &err);
	if (out.approval == NULL) {
		out.trouble = why != NULL ? why : arena_string(arena, err.text);
		return out;
	}
	out.code = approved_reference_compare(definition, out.approval, arena);
	if (out.code == APPROVED_OTHER_CODE)
		out.truth = truth_of(path, out.approval->definition, arena);
	return out;
}
