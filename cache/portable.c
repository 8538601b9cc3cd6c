/* portable - see the header for the layout. The checksum finds accidents; whoever reads on needs bounds against a
 * writer of another mind, and portable_check against one that writes nonsense with a good checksum. */
#include "cache/portable.h"

#include <string.h>

#include <xxhash.h>

#include "cache/fingerprint.h"
#include "cache/record.h"
#include "dataset/packed.h"
#include "dataset/verdict.h"

static const char magic[4] = "rfvt";
static const uint64_t seed = 0x7265667465737431; /* apart from every other XXH3-64 in use */
static const char purpose[] = "reftest verdict 1\n";

static void put_i64(struct buf *out, int64_t value)
{
	record_put_u64(out, (uint64_t)value);
}

/* --- Writing ----------------------------------------------------------------------------------------------------- */

void portable_body(const struct portable *record, struct buf *out)
{
	record_put_u32(out, (uint32_t)record->signature_kind);
	record_put_bytes(out, record->signature, record->signature_length);
	record_put_digest(out, &record->subject);
	record_put_digest(out, &record->witness);
	put_i64(out, record->made);
	record_put_bytes(out, record->text, record->length);
	record_put_bytes(out, record->fields, record->fields_length);
	record_put_u32(out, (uint32_t)record->name_count);
	for (int i = 0; i < record->name_count; i++) {
		record_put_text(out, record->names[i].definition);
		record_put_text(out, record->names[i].case_id);
	}
}

int portable_write(const struct portable *record, struct buf *out, struct err *err)
{
	size_t begin = out->length;

	if (record->length > PORTABLE_MAX || record->fields_length > PORTABLE_MAX ||
	    record->name_count > PORTABLE_NAMES_MAX || record->signature_length > PORTABLE_SIGNATURE_MAX)
		return err_set(err, "a verdict of %zu bytes is more than travels (%d)", record->length, PORTABLE_MAX);
	buf_add(out, magic, sizeof magic);
	record_put_u32(out, PORTABLE_VERSION);
	record_put_u32(out, 0); /* the length, once it is known */
	portable_body(record, out);
	size_t length = out->length - begin - PORTABLE_HEAD;

	if (length > PORTABLE_MAX) {
		out->length = begin;
		return err_set(err, "a verdict of %zu bytes is more than travels (%d)", length, PORTABLE_MAX);
	}
	struct buf size = {0};

	record_put_u32(&size, (uint32_t)length);
	memcpy(out->data + begin + 8, size.data, size.length);
	buf_free(&size);
	record_put_u64(out, XXH3_64bits_withSeed(out->data + begin, out->length - begin, seed));
	return 0;
}

void portable_signed(const struct portable *record, struct buf *out)
{
	buf_text(out, purpose);
	record_put_digest(out, &record->subject);
	record_put_digest(out, &record->witness);
	put_i64(out, record->made);
	record_put_bytes(out, record->text, record->length);
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

/* Counted bytes, copied; a NUL inside would make a text another one. */
static const char *get_text(struct reader *from, struct arena *arena, size_t *length)
{
	const char *bytes = record_get_bytes(from, length);

	if (bytes == NULL || (*length > 0 && memchr(bytes, '\0', *length) != NULL)) {
		from->bad = true;
		return "";
	}
	return arena_copy(arena, bytes, *length);
}

static void get_names(struct reader *from, struct arena *arena, struct portable *out)
{
	uint32_t count = record_get_u32(from);
	size_t length;

	if (count > PORTABLE_NAMES_MAX || count > from->left / 8) {
		from->bad = true;
		return;
	}
	struct portable_name *names = arena_array(arena, count, sizeof *names);

	for (uint32_t i = 0; i < count; i++) {
		names[i].definition = get_text(from, arena, &length);
		names[i].case_id = get_text(from, arena, &length);
	}
	out->names = names;
	out->name_count = (int)count;
}

static bool get_body(struct reader from, struct arena *arena, struct portable *out)
{
	*out = (struct portable){0};
	out->signature_kind = (enum signature_kind)record_get_u32(&from);
	const char *signature = record_get_bytes(&from, &out->signature_length);

	if (signature == NULL || out->signature_length > PORTABLE_SIGNATURE_MAX)
		return false;
	out->signature = arena_copy(arena, signature, out->signature_length);
	out->subject = record_get_digest(&from);
	out->witness = record_get_digest(&from);
	out->made = (int64_t)record_get_u64(&from);
	out->text = get_text(&from, arena, &out->length);
	const char *fields = record_get_bytes(&from, &out->fields_length);

	if (fields == NULL)
		return false;
	out->fields = arena_copy(arena, fields, out->fields_length);
	get_names(&from, arena, out);
	return !from.bad && from.left == 0;
}

enum portable_answer portable_read(const void *bytes, size_t length, struct arena *arena, struct portable *out,
				   size_t *used, struct err *err)
{
	struct reader head = {.at = bytes, .left = length};

	*used = 0;
	if (length > 0 && memcmp(bytes, magic, length < sizeof magic ? length : sizeof magic) != 0) {
		err_set(err, "no record begins here");
		return PORTABLE_LOST;
	}
	if (length < PORTABLE_HEAD)
		return PORTABLE_SHORT;
	head.at += sizeof magic;
	head.left -= sizeof magic;
	uint32_t version = record_get_u32(&head), size = record_get_u32(&head);

	if (size > PORTABLE_MAX) {
		err_set(err, "it says that it has %u bytes, and none has more than %d", size, PORTABLE_MAX);
		return PORTABLE_LOST;
	}
	if (head.left < (size_t)size + PORTABLE_TAIL)
		return PORTABLE_SHORT;
	struct reader body = {.at = head.at, .left = size}, tail = {.at = head.at + size, .left = PORTABLE_TAIL};

	*used = PORTABLE_HEAD + (size_t)size + PORTABLE_TAIL;
	if (record_get_u64(&tail) != XXH3_64bits_withSeed(bytes, PORTABLE_HEAD + (size_t)size, seed)) {
		err_set(err, "its checksum is wrong");
		return PORTABLE_DAMAGED;
	}
	if (version < 1 || version > PORTABLE_VERSION) {
		err_set(err, "it is of version %u, and this program knows versions up to %d", version, PORTABLE_VERSION);
		return PORTABLE_NEWER;
	}
	if (get_body(body, arena, out))
		return PORTABLE_WHOLE;
	err_set(err, "its parts do not fit into it");
	return PORTABLE_DAMAGED;
}

/* --- Believing --------------------------------------------------------------------------------------------------- */

int64_t portable_made(const char *text, size_t length)
{
	/* A quote inside a string is escaped, so this stands nowhere but where the key does. */
	static const char key[] = "\"time\": ";
	struct packed_parts parts;

	if (verdict_is_packed(text, length))
		return packed_split(text, length, &parts) && parts.time > 0 ? parts.time : 0;
	const char *at = memmem(text, length, key, sizeof key - 1), *end = text + length;
	int64_t made = 0;

	if (at == NULL)
		return 0;
	for (at += sizeof key - 1; at < end && *at >= '0' && *at <= '9' && made < INT64_MAX / 100; at++)
		made = made * 10 + (*at - '0');
	return made;
}

static bool is_witness_field(const struct field *field)
{
	return strncmp(field->tag, "witness.", strlen("witness.")) == 0;
}

/* Do the fields digest to what the record says? */
static int check_fields(const struct portable *record, struct arena *arena, struct err *err)
{
	struct fields all, part[2] = {{0}, {0}};

	if (record->fields_length == 0)
		return 0;
	if (fields_read(record->fields, record->fields_length, arena, &all) != 0)
		return err_set(err, "its fields cannot be read");
	part[0].items = arena_array(arena, (size_t)all.count, sizeof(struct field));
	part[1].items = arena_array(arena, (size_t)all.count, sizeof(struct field));
	for (int i = 0; i < all.count; i++) {
		struct fields *to = &part[is_witness_field(&all.items[i])];

		to->items[to->count++] = all.items[i];
	}
	struct digest subject = fields_digest(&part[0]), witness = fields_digest(&part[1]);

	if (!digest_equal(&subject, &record->subject))
		return err_set(err, "its fields are those of another subject");
	if (!digest_equal(&witness, &record->witness))
		return err_set(err, "its fields are those of another witness");
	return 0;
}

static int check_verdict(const struct portable *record, struct arena *arena, struct err *err)
{
	struct fields fields = {0};
	struct err why = {""};
	const struct verdict *v = verdict_parse(record->text, record->length, arena, &why);

	if (v == NULL)
		return err_set(err, "its verdict cannot be read: %.1500s", why.text);
	witness_fields(v->ground_truth, verdict_truth_version(v, arena), v->device_class, v->torch, v->cuda, arena, &fields);
	struct digest witness = fields_digest(&fields);

	if (!digest_equal(&witness, &record->witness))
		return err_set(err, "its verdict was given by another witness than it says");
	if (v->time != record->made)
		return err_set(err, "it says that it was made at %lld, and its verdict %lld", (long long)record->made,
			       (long long)v->time);
	return 0;
}

bool portable_name_is_fit(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length > PORTABLE_NAME_MAX)
		return false;
	for (; *name != '\0'; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7F)
			return false;
	return true;
}

int portable_check(const struct portable *record, struct err *err)
{
	struct arena arena = {0};
	int answer = 0;

	for (int i = 0; i < record->name_count && answer == 0; i++)
		if (!portable_name_is_fit(record->names[i].definition) || !portable_name_is_fit(record->names[i].case_id))
			answer = err_set(err, "it names no definition and case");
	if (answer == 0)
		answer = check_fields(record, &arena, err);
	if (answer == 0)
		answer = check_verdict(record, &arena, err);
	arena_free(&arena);
	return answer;
}
