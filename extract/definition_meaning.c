#include "extract/definition_meaning.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cache/python_normal_form.h"

static void add(struct meaning *meaning, const char *key, const char *value)
{
	meaning->fields[meaning->count++] = (struct meaning_field){key, value};
}

static const char *printed(const cJSON *value, struct arena *arena)
{
	char *text = value != NULL ? cJSON_PrintUnformatted(value) : NULL;
	const char *copy = arena_string(arena, text != NULL ? text : "null");

	cJSON_free(text);
	return copy;
}

static void add_axes(struct meaning *meaning, const cJSON *axes, struct arena *arena)
{
	const cJSON *axis;

	cJSON_ArrayForEach(axis, axes)
		add(meaning, arena_printf(arena, "axes.%s", axis->string),
		    cJSON_IsNumber(json_member(axis, "value")) ? printed(json_member(axis, "value"), arena) : "var");
}

/* Adds a field for each tensor. The field includes the tensor's position, because the order of inputs and outputs is
 * part of the meaning. */
static void add_tensors(struct meaning *meaning, const char *kind, const cJSON *tensors, struct arena *arena)
{
	const cJSON *tensor;
	int place = 0;

	cJSON_ArrayForEach(tensor, tensors)
		add(meaning, arena_printf(arena, "%s.%s", kind, tensor->string),
		    arena_printf(arena, "%d: %s %s%s", place++, printed(json_member(tensor, "shape"), arena),
				 printed(json_member(tensor, "dtype"), arena), cJSON_IsTrue(json_member(tensor, "optional")) ? " optional" : ""));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_constraints(struct meaning *meaning, const cJSON *constraints, struct arena *arena)
{
	int count = cJSON_GetArraySize(constraints);
	const char **texts = arena_array(arena, (size_t)count, sizeof *texts);

	for (int i = 0; i < count; i++)
		texts[i] = printed(cJSON_GetArrayItem(constraints, i), arena);
	qsort(texts, (size_t)count, sizeof *texts, by_text);
	for (int i = 0; i < count; i++)
		add(meaning, arena_printf(arena, "constraints.%s", texts[i]), "");
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct meaning_field *)a)->key, ((const struct meaning_field *)b)->key);
}

struct meaning meaning_of(const cJSON *definition, struct arena *arena)
{
	static const char *const lists[] = {"axes", "inputs", "outputs", "constraints"};
	const char *reference = json_text_of(definition, "reference");
	struct meaning meaning = {.reference = arena_string(arena, reference != NULL ? reference : "")};
	struct buf form = {0};
	size_t room = 1;

	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		room += (size_t)cJSON_GetArraySize(json_member(definition, lists[i]));
	meaning.fields = arena_array(arena, room, sizeof *meaning.fields);
	add_axes(&meaning, json_member(definition, "axes"), arena);
	add_tensors(&meaning, "inputs", json_member(definition, "inputs"), arena);
	add_tensors(&meaning, "outputs", json_member(definition, "outputs"), arena);
	add_constraints(&meaning, json_member(definition, "constraints"), arena);
	if (reference != NULL)
		python_normal_form(reference, strlen(reference), &form);
	/* the value is the normal form in hexadecimal digits, because the normal form itself may contain NUL bytes */
	struct buf hex = {0};

	for (size_t i = 0; i < form.length; i++)
		buf_printf(&hex, "%02x", (unsigned char)form.data[i]);
	add(&meaning, "reference", arena_string(arena, hex.data != NULL ? hex.data : ""));
	buf_free(&hex);
	buf_free(&form);
	qsort(meaning.fields, (size_t)meaning.count, sizeof *meaning.fields, by_key);
	return meaning;
}

bool meaning_equal(const struct meaning *a, const struct meaning *b)
{
	for (int i = 0; i < a->count && a->count == b->count; i++)
		if (strcmp(a->fields[i].key, b->fields[i].key) != 0 || strcmp(a->fields[i].value, b->fields[i].value) != 0)
			return false;
	return a->count == b->count;
}

static const char *value_of(const struct meaning *meaning, const char *key)
{
	for (int i = 0; i < meaning->count; i++)
		if (strcmp(meaning->fields[i].key, key) == 0)
			return meaning->fields[i].value;
	return NULL;
}

static bool is_interface(const char *key)
{
	return strcmp(key, "reference") != 0 && strncmp(key, "constraints.", strlen("constraints.")) != 0;
}

static bool has_interface_of(const struct meaning *a, const struct meaning *b)
{
	for (int i = 0; i < a->count; i++) {
		const char *other = value_of(b, a->fields[i].key);

		if (is_interface(a->fields[i].key) && (other == NULL || strcmp(other, a->fields[i].value) != 0))
			return false;
	}
	return true;
}

bool meaning_same_interface(const struct meaning *a, const struct meaning *b)
{
	return has_interface_of(a, b) && has_interface_of(b, a);
}

static void write_value(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, ", \"%s\": ", name);
	if (value == NULL)
		buf_text(out, "null");
	else
		buf_json_string(out, *value == '\0' ? "present" : value);
}

/* Writes the two values of a field. For the field "reference", writes the source texts of the references, because its
 * values are normal forms, which people cannot read. */
static void write_difference(struct buf *out, const char *key, const struct meaning *ours, const struct meaning *theirs, const char **comma)
{
	const bool text = strcmp(key, "reference") == 0;

	buf_printf(out, "%s{\"field\": ", *comma);
	buf_json_string(out, key);
	write_value(out, "ours", text ? ours->reference : value_of(ours, key));
	write_value(out, "theirs", text ? theirs->reference : value_of(theirs, key));
	buf_text(out, "}");
	*comma = ", ";
}

void meaning_write_differences(const struct meaning *ours, const struct meaning *theirs, struct buf *out)
{
	const char *comma = "";

	for (int i = 0; i < ours->count; i++) {
		const char *other = value_of(theirs, ours->fields[i].key);

		if (other == NULL || strcmp(other, ours->fields[i].value) != 0)
			write_difference(out, ours->fields[i].key, ours, theirs, &comma);
	}
	for (int i = 0; i < theirs->count; i++)
		if (value_of(ours, theirs->fields[i].key) == NULL)
			write_difference(out, theirs->fields[i].key, ours, theirs, &comma);
}
