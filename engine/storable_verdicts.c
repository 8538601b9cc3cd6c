#include "engine/storable_verdicts.h"

#include <string.h>

#include "cache/python_dependencies.h"

/* Examines the Python source `text`, which messages call `name` ("the reference", "init"). Returns why verdicts that
 * depend on this source must not be stored, or NULL if they may be stored. */
static const char *storable_text(const struct definition *definition, const char *name, const char *text, size_t length,
				 struct arena *arena)
{
	struct python_dependencies words =
	    python_dependencies_besides(text, length, definition->reads, definition->read_count);

	if (words.access != ACCESS_OUTSIDE)
		return NULL;
	return arena_printf(
	    arena,
	    "not cached: line %d of %s contains %s, so the outputs may depend on more than the reference's "
	    "source code, the inputs and torch; the definition is verified in every run until %s is removed",
	    words.line, name, words.what, words.what);
}

const char *storable_reference(const struct definition *definition, bool with_init, struct arena *arena)
{
	const char *message = storable_text(definition, "the reference", definition->reference,
					    definition->reference_length, arena);

	if (message != NULL || !with_init)
		return message;
	return storable_text(definition, "init", definition->init, strlen(definition->init), arena);
}

const char *storable_attributes(const struct definition *definition, const char *text, size_t length,
				struct arena *arena)
{
	struct python_dependencies words =
	    python_dependencies_besides(text, length, definition->reads, definition->read_count);

	return words.own_attributes[0] == '\0' ? NULL : arena_string(arena, words.own_attributes);
}

static void add_attributes(const char *text, struct buf *out)
{
	struct python_dependencies words = python_dependencies(text, strlen(text));

	buf_printf(out, "%s%s", out->length > 0 && words.own_attributes[0] != '\0' ? " " : "", words.own_attributes);
}

const char *storable_program_attributes(const struct truth_program *program, struct arena *arena)
{
	struct buf all = {0};

	if (program->source != NULL)
		add_attributes(program->source, &all);
	for (int i = 0; program->source == NULL && i < program->file_count; i++)
		add_attributes(program->files[i].content, &all);
	const char *out = all.length == 0 ? NULL : arena_copy(arena, all.data, all.length);

	buf_free(&all);
	return out;
}

static const char *unsteady_text(const char *name, const char *text, size_t length, struct arena *arena)
{
	struct python_dependencies words = python_dependencies(text, length);

	if (words.unsteady[0] == '\0')
		return NULL;
	return arena_printf(arena,
			    "the definition can be checked, but not verified: line %d of %s contains %s, so the reference may read the "
			    "clock or the machine's name and give other outputs in another run; to have the definition verified, remove %s",
			    words.unsteady_line, name, words.unsteady, words.unsteady);
}

const char *storable_unsteady(const struct definition *definition, bool with_init, struct arena *arena)
{
	const char *message = unsteady_text("the reference", definition->reference, definition->reference_length, arena);

	if (message != NULL || !with_init)
		return message;
	return unsteady_text("init", definition->init, strlen(definition->init), arena);
}

const char *storable_reached(const char *reached, struct arena *arena)
{
	return arena_printf(
	    arena,
	    "not cached: when the reference ran, %s, so the outputs may depend on more than the reference's source "
	    "code, the inputs and torch; the definition is verified in every run until the reference no longer does this",
	    reached);
}

/* Returns whether a tensor file was changed before the judge read it, even if the file was restored later. */
static bool found_other_tensors(const struct result *result)
{
	for (int i = 0; i < result->case_count; i++)
		if (result->cases[i].verdict != NULL && result->cases[i].verdict->reason == REASON_CHANGED)
			return true;
	return false;
}

void storable_after_run(struct result *result, bool unchanged)
{
	if (unchanged && !found_other_tensors(result))
		return;
	result->changed = true;
	result->put_back = unchanged;
	for (int i = 0; i < result->case_count; i++)
		result->cases[i].in_store = result->cases[i].in_store && result->cases[i].cached;
}

bool storable_for_subject(const struct verdict *verdict)
{
	return verdict->reason != REASON_CHANGED && verdict->reason != REASON_MISSING_BLOB;
}
