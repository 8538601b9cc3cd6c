/* fingerprint - computes the fields of a definition and their digests, and describes how two lists of fields differ.
 *
 * A tensor is hashed as readable text, for example "bfloat16[batch_size, hidden_size]", so `explain` can print the text
 * unchanged. A reference is hashed in its normal form (cache/python_normal_form.h), and only the digest of that form is
 * stored. */
#include "cache/fingerprint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "cache/python_normal_form.h"
#include "cache/checksummed_record.h"

/* --- Gathering --------------------------------------------------------------------------------------------------- */

static struct digest field_digest(const char *tag, const void *bytes, size_t length)
{
	struct buf stream = {0};

	buf_reserve(&stream, 2 * sizeof(uint64_t) + strlen(tag) + length);
	record_put_u64(&stream, strlen(tag));
	buf_text(&stream, tag);
	record_put_u64(&stream, length);
	buf_add(&stream, bytes, length);
	struct digest digest = digest_of(stream.data, stream.length);

	buf_free(&stream);
	return digest;
}

/* Copies a value for printing. Control characters become spaces, and a value that is too long is cut between two
 * characters. */
static const char *value_copy(struct arena *arena, const char *value)
{
	size_t length = strlen(value);
	char *copy = arena_copy(arena, value, length);

	for (char *at = copy; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7F)
			*at = ' ';
	if (length <= FIELD_VALUE_MAX)
		return copy;
	size_t kept = 0, step;

	while ((step = utf8_length(copy + kept, length - kept)) > 0 && kept + step <= FIELD_VALUE_MAX - 3)
		kept += step;
	memcpy(copy + kept, "...", 4);
	return copy;
}

static void field_append(struct fields *fields, struct arena *arena, struct field field)
{
	if (fields->count == fields->room) {
		int room = fields->room == 0 ? 16 : fields->room * 2;
		struct field *items = arena_array(arena, (size_t)room, sizeof *items);

		if (fields->count > 0)
			memcpy(items, fields->items, (size_t)fields->count * sizeof *items);
		fields->items = items;
		fields->room = room;
	}
	fields->items[fields->count++] = field;
}

void field_add(struct fields *fields, struct arena *arena, const char *tag, const char *value, const void *bytes,
               size_t length)
{
	field_append(fields, arena,
	             (struct field){arena_string(arena, tag), value != NULL ? value_copy(arena, value) : NULL,
	                            field_digest(tag, bytes, length)});
}

void field_text(struct fields *fields, struct arena *arena, const char *tag, const char *text)
{
	field_add(fields, arena, tag, text, text, strlen(text));
}

void field_printf(struct fields *fields, struct arena *arena, const char *tag, const char *format, ...)
{
	struct buf text = {0};
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	buf_reserve(&text, 60); /* 60 bytes are enough for most tensors */
	int length = vsnprintf(text.data, text.room, format, args);

	if (length > 0 && (size_t)length >= text.room) {
		buf_reserve(&text, (size_t)length);
		vsnprintf(text.data, (size_t)length + 1, format, again);
	}
	va_end(again);
	va_end(args);
	field_text(fields, arena, tag, text.data);
	buf_free(&text);
}

struct fields fields_copy(const struct fields *fields, struct arena *arena)
{
	struct fields copy = {0};

	for (int i = 0; i < fields->count; i++)
		field_append(&copy, arena, fields->items[i]);
	return copy;
}

/* Orders fields by tag. No caller should add two fields with the same tag. If one does, the digests of these fields
 * determine their order, so the digest of the list never depends on the order of the calls. */
static int field_order(const void *a, const void *b)
{
	const struct field *one = a, *two = b;
	int order = strcmp(one->tag, two->tag);

	return order != 0 ? order : memcmp(one->digest.bytes, two->digest.bytes, sizeof one->digest.bytes);
}

/* Returns a sorted copy of the fields, which the caller frees, or NULL if there are no fields. */
static struct field *fields_sorted(const struct fields *fields)
{
	size_t count = (size_t)fields->count;

	if (count == 0)
		return NULL;
	struct field *sorted = malloc(count * sizeof *sorted);

	if (sorted == NULL)
		die_no_memory();
	memcpy(sorted, fields->items, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, field_order);
	return sorted;
}

struct digest fields_digest(const struct fields *fields)
{
	struct field *sorted = fields_sorted(fields);
	struct buf stream = {0};

	buf_reserve(&stream, 2 * sizeof(uint32_t) + (size_t)fields->count * DIGEST_BYTES);
	record_put_u32(&stream, FINGERPRINT_FORMAT);
	record_put_u32(&stream, (uint32_t)fields->count);
	for (int i = 0; i < fields->count; i++)
		record_put_digest(&stream, &sorted[i].digest);
	struct digest digest = digest_of(stream.data, stream.length);

	buf_free(&stream);
	free(sorted);
	return digest;
}

void fields_digests(const struct fields *fields, struct digest *subject, struct digest *witness)
{
	struct field *items = calloc((size_t)fields->count + 1, sizeof *items);
	struct fields part[2] = {{.items = items}, {.items = items}};

	if (items == NULL)
		die_no_memory();
	/* The fields of the subject are put at the front of the array, and the fields of the witness at the back. */
	for (int i = 0; i < fields->count; i++)
		if (strncmp(fields->items[i].tag, "witness.", strlen("witness.")) != 0)
			items[part[0].count++] = fields->items[i];
		else
			items[fields->count - ++part[1].count] = fields->items[i];
	part[1].items = items + part[0].count;
	*subject = fields_digest(&part[0]);
	*witness = fields_digest(&part[1]);
	free(items);
}

/* --- Definitions ------------------------------------------------------------------------------------------------- */

/* Writes the dtype and shape of a tensor, for example "bfloat16[batch_size, hidden_size]", "float32[]" for a tensor
 * without dimensions, or "float32 scalar". */
static void tensor_text(const struct definition *definition, const struct tensor_spec *spec, struct buf *out)
{
	buf_text(out, dtype_name(spec->dtype));
	if (spec->rank == RANK_SCALAR) {
		buf_text(out, " scalar");
		return;
	}
	buf_text(out, "[");
	for (int i = 0; i < spec->rank; i++)
		buf_printf(out, "%s%s", i > 0 ? ", " : "", definition->axes[spec->axis[i]].name);
	buf_text(out, "]");
}

/* Adds the field for an axis. For a const axis, the text that is hashed is for example "const 4096", and the text that
 * `explain` shows is "4096". */
static void axis_field(const struct axis *axis, const char *expression, struct arena *arena, struct fields *out)
{
	const char *tag = arena_printf(arena, "axes.%s", axis->name);

	if (axis->var) {
		field_text(out, arena, tag, expression != NULL ? arena_printf(arena, "= %s", expression) : "var");
		return;
	}
	const char *text = arena_printf(arena, "const %lld", (long long)axis->value);

	field_add(out, arena, tag, text + strlen("const "), text, strlen(text));
}

static void input_field(const struct definition *definition, int input, struct arena *arena, struct fields *out)
{
	const struct tensor_spec *spec = &definition->inputs[input];
	struct buf text = {0};

	tensor_text(definition, spec, &text);
	if (spec->optional)
		buf_text(&text, ", optional");
	if (spec->param != NULL)
		buf_printf(&text, ", argument %s", spec->param);
	field_text(out, arena, arena_printf(arena, "inputs.%s", spec->name), text.data);
	buf_free(&text);
}

/* Adds the names of the axes and of the inputs in their order. The order of inputs matters if some inputs may be passed
 * by position (python/arguments.py), and if an op family distinguishes inputs by their order, such as the K cache and
 * the V cache. Families may also search the axes in their order. */
static void order_fields(const struct definition *definition, struct arena *arena, struct fields *out)
{
	struct buf axes = {0}, inputs = {0};

	for (int i = 0; i < definition->axis_count; i++)
		buf_printf(&axes, "%s%s", i > 0 ? ", " : "", definition->axes[i].name);
	for (int i = 0; i < definition->input_count; i++)
		buf_printf(&inputs, "%s%s", i > 0 ? ", " : "", definition->inputs[i].name);
	field_text(out, arena, "axes", axes.data != NULL ? axes.data : "");
	field_text(out, arena, "inputs", inputs.data != NULL ? inputs.data : "");
	buf_free(&axes);
	buf_free(&inputs);
}

static void output_field(const struct definition *definition, int place, struct arena *arena, struct fields *out)
{
	const struct tensor_spec *spec = &definition->outputs[place];
	struct buf text = {0};

	tensor_text(definition, spec, &text);
	buf_printf(&text, ", place %d", place);
	field_text(out, arena, arena_printf(arena, "outputs.%s", spec->name), text.data);
	buf_free(&text);
}

static int text_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the field for the constraints. The text that is hashed contains the sorted constraints, each followed by a NUL.
 * The text that `explain` shows contains the sorted constraints, separated by "; ". */
static void constraints_field(const struct definition *definition, struct arena *arena, struct fields *out)
{
	size_t count = (size_t)definition->constraint_count + (size_t)definition->unchecked_count;
	const char **sorted = arena_array(arena, count, sizeof *sorted);
	struct buf bytes = {0}, text = {0};

	if (count > 0)
		memcpy(sorted, definition->constraints, count * sizeof *sorted);
	qsort(sorted, count, sizeof *sorted, text_order);
	for (size_t i = 0; i < count; i++) {
		buf_add(&bytes, sorted[i], strlen(sorted[i]) + 1);
		buf_printf(&text, "%s%s", i > 0 ? "; " : "", sorted[i]);
	}
	field_add(out, arena, "constraints", count > 0 ? text.data : "none", bytes.data, bytes.length);
	buf_free(&bytes);
	buf_free(&text);
}

void definition_fields(const struct definition *definition, struct arena *arena, struct fields *out)
{
	struct buf form = {0};

	field_text(out, arena, "op_type", definition->op_type);
	for (int i = 0; i < definition->axis_count; i++)
		axis_field(&definition->axes[i],
			   definition->axis_expressions != NULL ? definition->axis_expressions[i] : NULL, arena, out);
	for (int i = 0; i < definition->input_count; i++)
		input_field(definition, i, arena, out);
	for (int i = 0; i < definition->left_out_count; i++)
		field_text(out, arena, arena_printf(arena, "inputs.%s", definition->left_out[i]), "left out");
	order_fields(definition, arena, out);
	for (int i = 0; i < definition->output_count; i++)
		output_field(definition, i, arena, out);
	constraints_field(definition, arena, out);
	if (definition->entry_point != NULL && strcmp(definition->entry_point, "run") != 0)
		field_text(out, arena, "entry_point", definition->entry_point);
	python_normal_form(definition->reference, definition->reference_length, &form);
	field_add(out, arena, "reference", NULL, form.data, form.length);
	buf_free(&form);
}

/* --- On disk ----------------------------------------------------------------------------------------------------- */

/*   fields  = count, TAB, and for each field: tag, TAB, content, TAB
 *   content = "=" and the hashed text; or the digest (32 hexadecimal digits); or the digest, "=" and the readable value
 *
 * If the hashed text begins with "const ", the readable value is the rest of the text. For example, the readable value
 * of "const 4096" is "4096". */
static const char unshown[] = "const ";

enum { UNSHOWN = sizeof unshown - 1, DIGEST_DIGITS = DIGEST_HEX - 1, TEXT_MAX = FIELD_VALUE_MAX + UNSHOWN };

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_printable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
			return false;
	return true;
}

/* Finds the text that was hashed: either the readable value, or `unshown` followed by the readable value. Returns false
 * if neither text has the digest of the field. */
static bool hashed_text(const struct field *field, char out[TEXT_MAX + 1])
{
	if (strlen(field->value) > FIELD_VALUE_MAX)
		return false;
	for (int i = 0; i < 2; i++) {
		snprintf(out, TEXT_MAX + 1, "%s%s", i == 0 ? "" : unshown, field->value);
		struct digest digest = field_digest(field->tag, out, strlen(out));

		if (digest_equal(&digest, &field->digest))
			return i == 1 || !has_prefix(out, unshown);
	}
	return false;
}

static void write_field(const struct field *field, struct buf *out)
{
	bool shown = field->value != NULL && is_printable(field->value, strlen(field->value));
	char text[TEXT_MAX + 1], hex[DIGEST_HEX];

	buf_text(out, field->tag);
	buf_text(out, "\t");
	if (shown && hashed_text(field, text)) {
		buf_text(out, "=");
		buf_text(out, text);
	} else {
		digest_hex(&field->digest, hex);
		buf_text(out, hex);
		buf_text(out, shown ? "=" : "");
		buf_text(out, shown ? field->value : "");
	}
	buf_text(out, "\t");
}

void fields_write(const struct fields *fields, struct buf *out)
{
	buf_printf(out, "%d\t", fields->count);
	for (int i = 0; i < fields->count; i++)
		write_field(&fields->items[i], out);
}

/* Returns the text up to the next TAB, and skips the TAB. Returns NULL if there is no TAB, or if another control
 * character comes before it. */
static const char *get_column(const char **at, const char *end, struct arena *arena)
{
	const char *begin = *at, *tab = memchr(begin, '\t', (size_t)(end - begin));

	if (tab == NULL || !is_printable(begin, (size_t)(tab - begin)))
		return NULL;
	*at = tab + 1;
	return arena_copy(arena, begin, (size_t)(tab - begin));
}

static bool read_field(const char **at, const char *end, struct arena *arena, struct fields *out)
{
	const char *tag = get_column(at, end, arena), *content = tag != NULL ? get_column(at, end, arena) : NULL;
	struct field field = {.tag = tag};
	char hex[DIGEST_HEX] = "";

	if (content == NULL)
		return false;
	if (*content == '=') {
		field.digest = field_digest(tag, content + 1, strlen(content + 1));
		field.value = content + 1 + (has_prefix(content + 1, unshown) ? UNSHOWN : 0);
	} else {
		snprintf(hex, sizeof hex, "%s", content);
		if (!digest_parse(hex, &field.digest))
			return false;
		content += DIGEST_DIGITS;
		if (*content != '\0' && *content != '=')
			return false;
		field.value = *content == '=' ? content + 1 : NULL;
	}
	if (field.value != NULL && strlen(field.value) > FIELD_VALUE_MAX)
		return false;
	field_append(out, arena, field);
	return true;
}

static bool read_text(const char *at, const char *end, struct arena *arena, struct fields *out)
{
	const char *digits = get_column(&at, end, arena);
	char *rest = NULL;
	long count = digits != NULL ? strtol(digits, &rest, 10) : -1;

	if (count < 0 || count > FIELDS_MAX || *digits < '0' || *digits > '9' || *rest != '\0')
		return false;
	while (count > 0 && read_field(&at, end, arena, out))
		count--;
	return count == 0 && at == end;
}

int fields_read(const void *bytes, size_t length, struct arena *arena, struct fields *out)
{
	*out = (struct fields){0};
	if (length > 0 && read_text(bytes, (const char *)bytes + length, arena, out))
		return 0;
	*out = (struct fields){0};
	return -1;
}

/* --- What changed ------------------------------------------------------------------------------------------------ */

/* Returns a sentence about one changed field. `then` is NULL if the field is new, and `now` is NULL if the field is
 * gone. */
static const char *change_sentence(const struct field *then, const struct field *now, struct arena *arena)
{
	if (then == NULL)
		return now->value != NULL ? arena_printf(arena, "%s is new: %s", now->tag, now->value)
		                          : arena_printf(arena, "%s is new", now->tag);
	if (now == NULL)
		return then->value != NULL ? arena_printf(arena, "%s was removed; it was %s", then->tag, then->value)
		                           : arena_printf(arena, "%s is gone", then->tag);
	if (then->value == NULL || now->value == NULL || strcmp(then->value, now->value) == 0)
		return arena_printf(arena, "%s changed", now->tag);
	return arena_printf(arena, "%s changed: %s, now %s", now->tag, then->value, now->value);
}

int fields_changed(const struct fields *then, const struct fields *now, struct arena *arena, const char **string_list,
		   int room)
{
	struct field *old = fields_sorted(then), *new = fields_sorted(now);
	int count = 0;

	for (int i = 0, j = 0; i < then->count || j < now->count;) {
		int order = i == then->count ? 1 : j == now->count ? -1 : strcmp(old[i].tag, new[j].tag);
		const struct field *was = order <= 0 ? &old[i++] : NULL, *is = order >= 0 ? &new[j++] : NULL;

		if (was != NULL && is != NULL && digest_equal(&was->digest, &is->digest))
			continue;
		if (count < room)
			string_list[count] = change_sentence(was, is, arena);
		count++;
	}
	free(old);
	free(new);
	return count;
}
