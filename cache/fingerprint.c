/* fingerprint - fields of a definition, their digests, and the sentences that tell two lists apart.
 *
 * What is hashed of a tensor is a text that a person can read as well, "bfloat16[batch_size, hidden_size]", so
 * `explain` needs no second rendering. Texts are put together from names that are identifiers and from numbers; a
 * reference goes in as its normal form (cache/python_form.h), of which only the digest is kept. */
#include "cache/fingerprint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "cache/python_form.h"
#include "cache/record.h"
#include "dataset/packed.h"

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

/* A copy fit to be read: control characters become spaces, what is too long is cut between characters. */
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
	buf_reserve(&text, 60); /* often enough */
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

/* By tag; two fields of one tag, which nobody should add, by digest, so that the order of adding never matters. */
static int field_order(const void *a, const void *b)
{
	const struct field *one = a, *two = b;
	int order = strcmp(one->tag, two->tag);

	return order != 0 ? order : memcmp(one->digest.bytes, two->digest.bytes, sizeof one->digest.bytes);
}

/* A sorted copy; free() it. NULL when there are none. */
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

struct digest fields_digest_sorted(const struct digest *digests, int count)
{
	struct buf stream = {0};

	buf_reserve(&stream, 2 * sizeof(uint32_t) + (size_t)count * DIGEST_BYTES);
	record_put_u32(&stream, FINGERPRINT_FORMAT);
	record_put_u32(&stream, (uint32_t)count);
	for (int i = 0; i < count; i++)
		record_put_digest(&stream, &digests[i]);
	struct digest digest = digest_of(stream.data, stream.length);

	buf_free(&stream);
	return digest;
}

struct digest fields_digest(const struct fields *fields)
{
	struct field *sorted = fields_sorted(fields);
	struct digest *digests = calloc((size_t)fields->count + 1, sizeof *digests);

	if (digests == NULL)
		die_no_memory();
	for (int i = 0; i < fields->count; i++)
		digests[i] = sorted[i].digest;
	struct digest digest = fields_digest_sorted(digests, fields->count);

	free(digests);
	free(sorted);
	return digest;
}

/* --- Definitions ------------------------------------------------------------------------------------------------- */

/* "bfloat16[batch_size, hidden_size]", "float32[]" (0-D), "float32 scalar" */
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

/* What is hashed of an axis says its kind; what is read is the bare value. */
static void axis_field(const struct axis *axis, struct arena *arena, struct fields *out)
{
	const char *tag = arena_printf(arena, "axes.%s", axis->name);

	if (axis->var) {
		field_text(out, arena, tag, "var");
		return;
	}
	const char *text = arena_printf(arena, "const %lld", (long long)axis->value);

	field_add(out, arena, tag, text + strlen("const "), text, strlen(text));
}

/* Which of the tensors that look alike an input is, from 0. run() is called by names, but an op family may tell such by
 * their order: the first state, the first cache. */
static int place_among_alike(const struct definition *definition, int input)
{
	const struct tensor_spec *spec = &definition->inputs[input];
	int before = 0;

	for (int i = 0; i < input && spec->rank > 0; i++) {
		const struct tensor_spec *other = &definition->inputs[i];

		before += other->dtype == spec->dtype && other->rank == spec->rank &&
		          memcmp(other->axis, spec->axis, (size_t)spec->rank * sizeof *spec->axis) == 0;
	}
	return before;
}

static void input_field(const struct definition *definition, int input, struct arena *arena, struct fields *out)
{
	const struct tensor_spec *spec = &definition->inputs[input];
	int place = place_among_alike(definition, input);
	struct buf text = {0};

	tensor_text(definition, spec, &text);
	if (spec->optional)
		buf_text(&text, ", optional");
	if (place > 0)
		buf_printf(&text, ", after %d alike", place);
	field_text(out, arena, arena_printf(arena, "inputs.%s", spec->name), text.data);
	buf_free(&text);
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

/* Sorted, each hashed with its NUL; read with "; " between them. */
static void constraints_field(const struct definition *definition, struct arena *arena, struct fields *out)
{
	size_t count = (size_t)definition->constraint_count;
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
		axis_field(&definition->axes[i], arena, out);
	for (int i = 0; i < definition->input_count; i++)
		input_field(definition, i, arena, out);
	for (int i = 0; i < definition->output_count; i++)
		output_field(definition, i, arena, out);
	constraints_field(definition, arena, out);
	python_form(definition->reference, definition->reference_length, &form);
	field_add(out, arena, "reference", NULL, form.data, form.length);
	buf_free(&form);
}

static void text_or_absent(struct fields *out, struct arena *arena, const char *tag, const char *text)
{
	field_text(out, arena, tag, text != NULL ? text : "(none)");
}

void witness_fields(const char *ground_truth, const char *ground_truth_version, const char *device_class,
                    const char *torch, const char *cuda, struct arena *arena, struct fields *out)
{
	text_or_absent(out, arena, "witness.ground_truth", ground_truth);
	text_or_absent(out, arena, "witness.ground_truth_version", ground_truth_version);
	text_or_absent(out, arena, "witness.device_class", device_class);
	text_or_absent(out, arena, "witness.torch", torch);
	text_or_absent(out, arena, "witness.cuda", cuda);
}

/* --- On disk ----------------------------------------------------------------------------------------------------- */

/* fields = 0x80000002 u32 . count . field…                  integers and texts as dataset/packed.h has them
 * field  = how octet . tag . value, unless there is none . digest, unless it follows from the value
 *
 * Older: count u32 . { tag bytes . has_value u32 . value bytes . digest }… */
static const uint32_t marker = 0x80000002; /* no older list has so many fields */

/* What is known of a field; `prefix`: what was digested is this and the readable value. */
enum { HOW_DIGEST = 0, HOW_BOTH = 1, HOW_VALUE = 2 };
static const char *const prefixes[] = {"", "const "};
enum { PREFIXES = sizeof prefixes / sizeof *prefixes };

static struct digest digest_of_value(const char *tag, const char *prefix, const char *value)
{
	char text[sizeof "const " + FIELD_VALUE_MAX + 1];
	int length = snprintf(text, sizeof text, "%s%s", prefix, value);

	return field_digest(tag, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static unsigned how_known(const struct field *field)
{
	if (field->value == NULL)
		return HOW_DIGEST;
	for (unsigned i = 0; i < PREFIXES && strlen(field->value) <= FIELD_VALUE_MAX; i++) {
		struct digest digest = digest_of_value(field->tag, prefixes[i], field->value);

		if (digest_equal(&digest, &field->digest))
			return HOW_VALUE + i;
	}
	return HOW_BOTH;
}

static void write_text(const char *text, struct buf *out)
{
	size_t length = strlen(text);

	packed_put(out, length);
	buf_add(out, text, length);
}

void field_write(const struct field *field, struct buf *out)
{
	unsigned how = how_known(field);

	packed_put(out, how);
	write_text(field->tag, out);
	if (how != HOW_DIGEST)
		write_text(field->value, out);
	if (how < HOW_VALUE)
		record_put_digest(out, &field->digest);
}

void fields_write_head(int count, struct buf *out)
{
	record_put_u32(out, marker);
	packed_put(out, (uint64_t)count);
}

void fields_write(const struct fields *fields, struct buf *out)
{
	fields_write_head(fields->count, out);
	for (int i = 0; i < fields->count; i++)
		field_write(&fields->items[i], out);
}

/* A NUL inside would make the text another one. */
static const char *fit_text(const char *text, size_t length, struct arena *arena, bool *bad)
{
	if (text == NULL || (length > 0 && memchr(text, '\0', length) != NULL)) {
		*bad = true;
		return NULL;
	}
	return arena_copy(arena, text, length);
}

static const char *get_text(struct octets *from, struct arena *arena)
{
	uint64_t length = packed_get(from);

	return fit_text((const char *)packed_take(from, length), length, arena, &from->bad);
}

static struct field get_field(struct octets *from, struct arena *arena)
{
	uint64_t how = packed_get(from);
	struct field field = {.tag = get_text(from, arena)};
	const unsigned char *digest;

	if (how != HOW_DIGEST)
		field.value = get_text(from, arena);
	if (how >= HOW_VALUE + PREFIXES || (how >= HOW_VALUE && !from->bad && strlen(field.value) > FIELD_VALUE_MAX))
		from->bad = true;
	if (how < HOW_VALUE && (digest = packed_take(from, DIGEST_BYTES)) != NULL)
		memcpy(field.digest.bytes, digest, DIGEST_BYTES);
	else if (!from->bad)
		field.digest = digest_of_value(field.tag, prefixes[how - HOW_VALUE], field.value);
	return field;
}

int field_read(const void *bytes, size_t length, struct arena *arena, struct field *out)
{
	struct octets from = {bytes, (const unsigned char *)bytes + length, false};

	*out = get_field(&from, arena);
	return !from.bad && from.at == from.end ? 0 : -1;
}

static bool read_new(struct octets from, struct arena *arena, struct fields *out)
{
	uint64_t count = packed_get(&from);

	for (uint64_t i = 0; i < count && !from.bad; i++) {
		struct field field = get_field(&from, arena);

		if (!from.bad)
			field_append(out, arena, field);
	}
	return !from.bad && from.at == from.end;
}

static bool read_old(struct reader from, struct arena *arena, struct fields *out)
{
	uint32_t count = record_get_u32(&from);
	size_t length;

	for (uint32_t i = 0; i < count && !from.bad; i++) {
		const char *text = record_get_bytes(&from, &length);
		struct field field = {.tag = fit_text(text, length, arena, &from.bad)};
		uint32_t has_value = record_get_u32(&from);

		text = record_get_bytes(&from, &length);
		text = fit_text(text, length, arena, &from.bad);
		field.value = has_value != 0 ? text : NULL;
		field.digest = record_get_digest(&from);
		if (!from.bad)
			field_append(out, arena, field);
	}
	return !from.bad && from.left == 0;
}

int fields_read(const void *bytes, size_t length, struct arena *arena, struct fields *out)
{
	struct reader head = {.at = bytes, .left = length};
	struct octets rest = {(const unsigned char *)bytes + (length < 4 ? length : 4),
			      (const unsigned char *)bytes + length, false};

	*out = (struct fields){0};
	if (record_get_u32(&head) == marker
		? read_new(rest, arena, out)
		: read_old((struct reader){.at = bytes, .left = length}, arena, out))
		return 0;
	*out = (struct fields){0};
	return -1;
}

/* --- What changed ------------------------------------------------------------------------------------------------ */

/* Either may be NULL: not there. */
static const char *change_sentence(const struct field *then, const struct field *now, struct arena *arena)
{
	if (then == NULL)
		return now->value != NULL ? arena_printf(arena, "%s is new: %s", now->tag, now->value)
		                          : arena_printf(arena, "%s is new", now->tag);
	if (now == NULL)
		return then->value != NULL ? arena_printf(arena, "%s is gone; it was %s", then->tag, then->value)
		                           : arena_printf(arena, "%s is gone", then->tag);
	if (then->value == NULL || now->value == NULL || strcmp(then->value, now->value) == 0)
		return arena_printf(arena, "%s changed", now->tag);
	return arena_printf(arena, "%s changed: %s, now %s", now->tag, then->value, now->value);
}

int fields_changed(const struct fields *then, const struct fields *now, struct arena *arena, const char **sentences,
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
			sentences[count] = change_sentence(was, is, arena);
		count++;
	}
	free(old);
	free(new);
	return count;
}
