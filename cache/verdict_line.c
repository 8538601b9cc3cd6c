#include "cache/verdict_line.h"

#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/hex.h"
#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "cache/checksummed_record.h"

enum { SUM_DIGITS = 16 };

static const uint64_t seed = 0x7265667465737433; /* no other XXH3-64 hash in reftest has this seed */
static const char purpose[] = "reftest verdict 1\n";

static const char *const kinds[] = {
    [SIGNATURE_HMAC_SHA256] = "hmac-sha256:",
    [SIGNATURE_ED25519] = "ed25519:",
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- Writing ----------------------------------------------------------------------------------------------------- */

static bool has_control_character(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
			return true;
	return false;
}

static bool is_printable_name(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length <= VERDICT_LINE_NAME_MAX && !has_control_character(name, length);
}

static bool can_be_shown(const struct case_name *name)
{
	return is_printable_name(name->definition) && is_printable_name(name->case_id);
}

static void put_hex(const unsigned char *bytes, size_t length, struct buf *out)
{
	for (size_t i = 0; i < length; i++)
		buf_add(out, (const char[]){"0123456789abcdef"[bytes[i] >> 4], "0123456789abcdef"[bytes[i] & 15]}, 2);
}

static void put_names(const struct verdict_line *record, struct buf *out)
{
	int count = 0;

	for (int i = 0; i < record->name_count; i++)
		count += can_be_shown(&record->names[i]);
	buf_printf(out, "%d\t", count < VERDICT_LINE_NAMES_MAX ? count : VERDICT_LINE_NAMES_MAX);
	for (int i = 0, put = 0; i < record->name_count && put < VERDICT_LINE_NAMES_MAX; i++) {
		if (!can_be_shown(&record->names[i]))
			continue;
		buf_text(out, record->names[i].definition);
		buf_text(out, "\t");
		buf_text(out, record->names[i].case_id);
		buf_text(out, "\t");
		put++;
	}
}

static void put_content(const struct verdict_line *record, struct buf *out)
{
	if (record->signature_kind == SIGNATURE_NONE)
		buf_text(out, "-");
	else
		buf_text(out, kinds[record->signature_kind]);
	put_hex(record->signature, record->signature_length, out);
	buf_text(out, "\t");
	bool fields = record->fields_length > 0;

	if (!fields)
		put_hex(record->subject.bytes, DIGEST_BYTES, out);
	buf_text(out, fields ? "-\t" : "\t");
	put_names(record, out);
	if (fields)
		buf_add(out, record->fields, record->fields_length);
	else
		buf_text(out, "0\t");
	buf_add(out, record->text, record->length);
}

/* Writes the checksum of the content as hexadecimal digits. */
static void sum_of(const char *content, size_t length, char digits[SUM_DIGITS + 1])
{
	snprintf(digits, SUM_DIGITS + 1, "%016llx",
		 (unsigned long long)XXH3_64bits_withSeed(content, length, seed));
}

int verdict_line_write(const struct verdict_line *record, struct buf *out, struct err *err)
{
	size_t begin = out->length, content = begin + SUM_DIGITS + 1;
	char digits[SUM_DIGITS + 1];

	if (record->length == 0 || record->text[0] != '{' || memchr(record->text, '\n', record->length) != NULL ||
	    memchr(record->text, '\t', record->length) != NULL)
		return err_set(err, "a verdict must be JSON on one line");
	buf_text(out, "0123456789abcdef\t"); /* a placeholder until the checksum is known */
	put_content(record, out);
	if (out->length - begin > VERDICT_LINE_MAX) {
		out->length = begin;
		return err_set(err, "a verdict of %zu bytes is too large for a record, which may have at most %d "
				    "bytes", record->length, VERDICT_LINE_MAX);
	}
	sum_of(out->data + content, out->length - content, digits);
	memcpy(out->data + begin, digits, SUM_DIGITS);
	buf_text(out, "\n");
	return 0;
}

void verdict_line_signed(const struct verdict_line *record, struct buf *out)
{
	buf_text(out, purpose);
	record_put_digest(out, &record->subject);
	record_put_digest(out, &record->witness);
	record_put_u64(out, (uint64_t)record->made);
	record_put_bytes(out, record->text, record->length);
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

struct columns {
	const char *at, *end;
	bool bad; /* true after a column was missing or malformed; every later read then returns an empty column */
};

/* Returns the next column and advances past its TAB. */
static const char *get_column(struct columns *from, size_t *length)
{
	const char *at = from->at, *tab = from->bad ? NULL : memchr(at, '\t', (size_t)(from->end - at));

	*length = 0;
	if (tab == NULL) {
		from->bad = true;
		return "";
	}
	*length = (size_t)(tab - at);
	from->at = tab + 1;
	return at;
}

static int get_count(struct columns *from, int most)
{
	size_t length;
	const char *text = get_column(from, &length);
	int count = 0;

	for (size_t i = 0; i < length && count <= most && !from->bad; i++) {
		from->bad = text[i] < '0' || text[i] > '9';
		count = count * 10 + (text[i] - '0');
	}
	from->bad = from->bad || length == 0 || count > most;
	return from->bad ? 0 : count;
}

/* Decodes `length` hexadecimal digits. Returns false if a character is not a hexadecimal digit, or if there are more
 * than `most` bytes. */
static bool read_hex(const char *digits, size_t length, unsigned char *out, size_t most)
{
	return length % 2 == 0 && length / 2 <= most && hex_read(digits, out, length / 2);
}

static void get_signature(struct columns *from, struct verdict_line *out)
{
	size_t length;
	const char *text = get_column(from, &length);

	if (length == 1 && *text == '-')
		return;
	for (int kind = SIGNATURE_HMAC_SHA256; kind < KINDS; kind++) {
		size_t prefix = strlen(kinds[kind]);

		if (length < prefix || memcmp(text, kinds[kind], prefix) != 0)
			continue;
		out->signature_kind = (enum signature_kind)kind;
		out->signature_length = (length - prefix) / 2;
		from->bad = from->bad ||
			    !read_hex(text + prefix, length - prefix, out->signature, VERDICT_LINE_SIGNATURE_MAX);
		return;
	}
	from->bad = true;
}

static const char *get_name(struct columns *from, struct arena *arena)
{
	size_t length;
	const char *text = get_column(from, &length);

	if (length == 0 || length > VERDICT_LINE_NAME_MAX || has_control_character(text, length)) {
		from->bad = true;
		return "";
	}
	return arena_copy(arena, text, length);
}

static void get_names(struct columns *from, struct arena *arena, struct verdict_line *out)
{
	int count = get_count(from, VERDICT_LINE_NAMES_MAX);
	struct case_name *names =
	    count <= (from->end - from->at) / 4 ? arena_array(arena, (size_t)count, sizeof *names) : NULL;

	for (int i = 0; i < count && names != NULL; i++) {
		names[i].definition = get_name(from, arena);
		names[i].case_id = get_name(from, arena);
	}
	from->bad = from->bad || names == NULL;
	out->names = names;
	out->name_count = from->bad ? 0 : count;
}

static bool get_content(struct columns from, struct arena *arena, struct verdict_line *out)
{
	size_t length, digits;

	get_signature(&from, out);
	const char *subject = get_column(&from, &digits);

	get_names(&from, arena, out);
	out->fields = from.at;
	for (int count = get_count(&from, FIELDS_MAX); count > 0; count--) {
		get_column(&from, &length);
		get_column(&from, &length);
	}
	out->fields_length = (size_t)(from.at - out->fields);
	if (out->fields_length == 2) /* the list of fields is empty */
		out->fields_length = 0;
	out->text = from.at;
	out->length = (size_t)(from.end - from.at);
	if (out->fields_length > 0 ? digits != 1 || *subject != '-'
				   : digits != 2 * DIGEST_BYTES ||
					 !read_hex(subject, digits, out->subject.bytes, DIGEST_BYTES))
		return false;
	return !from.bad && out->length > 0 && *out->text == '{';
}

static const struct verdict *read_verdict(const struct verdict_line *record, struct arena *arena, struct err *err)
{
	struct err why = {""};
	const struct verdict *v = verdict_parse(record->text, record->length, arena, &why);

	if (v == NULL)
		err_set(err, "the verdict of the record cannot be read: %.1500s", why.text);
	return v;
}

static int digests_of_fields(const struct verdict_line *record, struct arena *arena, struct digest *subject,
			     struct digest *witness, struct err *err)
{
	struct fields fields;

	if (fields_read(record->fields, record->fields_length, arena, &fields) != 0)
		return err_set(err, "the fields of the record cannot be read");
	fields_digests(&fields, subject, witness);
	return 0;
}

const struct verdict *verdict_line_read(const char *line, size_t length, struct arena *arena, struct verdict_line *out,
				       struct err *err)
{
	struct columns content = {line + SUM_DIGITS + 1, line + length, false};
	char digits[SUM_DIGITS + 1];

	*out = (struct verdict_line){0};
	if (length <= SUM_DIGITS || length > VERDICT_LINE_MAX || line[SUM_DIGITS] != '\t') {
		err_set(err, "this is not a record of a verdict, or the record is incomplete");
		return NULL;
	}
	sum_of(content.at, (size_t)(content.end - content.at), digits);
	if (memcmp(digits, line, SUM_DIGITS) != 0) {
		err_set(err, "its checksum is wrong");
		return NULL;
	}
	if (!get_content(content, arena, out)) {
		err_set(err, "the line does not have the columns of a stored verdict");
		return NULL;
	}
	struct digest subject, witness;

	if (out->fields_length > 0) {
		if (digests_of_fields(out, arena, &subject, &witness, err) != 0)
			return NULL;
		out->subject = subject;
	}
	const struct verdict *v = read_verdict(out, arena, err);

	if (v == NULL)
		return NULL;
	out->witness = verdict_witness(v);
	out->made = v->time;
	if (out->fields_length > 0 && !digest_equal(&witness, &out->witness)) {
		err_set(err, "the digest of the ground truth, the versions and the device class in the record "
			     "is wrong");
		return NULL;
	}
	return v;
}

/* --- Checking ---------------------------------------------------------------------------------------------------- */

static int check_fields(const struct verdict_line *record, struct arena *arena, struct err *err)
{
	struct digest subject, witness;

	if (record->fields_length == 0)
		return 0;
	if (digests_of_fields(record, arena, &subject, &witness, err) != 0)
		return -1;
	if (!digest_equal(&subject, &record->subject))
		return err_set(err, "the digest of the verified case in the record is wrong");
	if (!digest_equal(&witness, &record->witness))
		return err_set(err, "the digest of the ground truth, the versions and the device class in the record "
		    "is wrong");
	return 0;
}

const struct verdict *verdict_line_check(const struct verdict_line *record, struct arena *arena, struct err *err)
{
	for (int i = 0; i < record->name_count; i++)
		if (!can_be_shown(&record->names[i])) {
			err_set(err, "the name of the definition or of the case in the record has characters that cannot be printed");
			return NULL;
		}
	if (check_fields(record, arena, err) != 0)
		return NULL;
	const struct verdict *v = read_verdict(record, arena, err);

	if (v == NULL)
		return NULL;
	struct digest witness = verdict_witness(v);

	if (!digest_equal(&witness, &record->witness)) {
		err_set(err, "the record and its verdict differ in the ground truth, the versions or the device class");
		return NULL;
	}
	if (v->time != record->made) {
		err_set(err, "the time of the record is %lld, but the time in its verdict is %lld",
		    (long long)record->made,
			(long long)v->time);
		return NULL;
	}
	return v;
}
