/* fingerprint - computes two digests of everything that a verdict depends on. The subject is the digest of what was
 * verified. The witness is the digest of what the subject was verified with: the ground truth and its version, the
 * device class, and the versions of torch, CUDA and Python. The subject and the witness are computed from tagged fields.
 *
 * A field is a tag ("axes.hidden_size") and bytes. The digest of a field is computed from the length of the tag, the
 * tag, the length of the bytes, and the bytes. The digest of a list is computed from FINGERPRINT_FORMAT, the number of
 * fields, and the digests of the fields in the order of the tags. Therefore the bytes that are hashed are different for
 * any two different lists. The store keeps the digest of every field, so that `explain` can name the field that
 * changed. The store also keeps short values, so that `explain` can show the old and the new value.
 *
 * A new field of the definition schema also needs a field in definition_fields. Anything else on which verdicts begin
 * to depend, for example a version, also needs a field in witness_fields and in context_digest of engine/run_open.c.
 * Without these fields, reftest would still report the old result after a change of the definition or the version. */
#ifndef REFTEST_CACHE_FINGERPRINT_H
#define REFTEST_CACHE_FINGERPRINT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "dataset/definition.h"
#include "dataset/verdict.h"

enum { FINGERPRINT_FORMAT = 1, FIELD_VALUE_MAX = 200 };

struct field {
	const char *tag;
	/* The readable form, or NULL if only the digest is stored. A value longer than FIELD_VALUE_MAX bytes is cut and
	 * ends in "...". */
	const char *value;
	struct digest digest;
};

/* A list of fields. {0} is the empty list. The arena that is passed to field_add owns the fields. */
struct fields {
	struct field *items;
	int count, room;
};

/* Adds one field. `value` is the readable form of the field, or NULL. `bytes` are hashed. All arguments are copied. */
void field_add(struct fields *fields, struct arena *arena, const char *tag, const char *value, const void *bytes,
               size_t length);
/* Adds a field with a text that is both the hashed form and the readable form. */
void field_text(struct fields *fields, struct arena *arena, const char *tag, const char *text);
void field_printf(struct fields *fields, struct arena *arena, const char *tag, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns a copy of the list. If a field is later added to one of the two lists, the other list does not get the
 * field. */
struct fields fields_copy(const struct fields *fields, struct arena *arena);

/* Returns the digest of a list. The fields are hashed in the bytewise order of their tags, so the order in which they
 * were added does not matter. */
struct digest fields_digest(const struct fields *fields);

/* Adds the fields of a definition: one for the op type, one for each axis, input and output, one for the sorted
 * constraints, and one for the reference in normal form. The field of an output contains the output's index, because
 * run() returns a tuple in the order of the outputs. Two more fields contain the order of the axes and the order of the
 * inputs, because op families may read both orders. Apart from these orders, the order of the JSON keys does not change
 * the fields. Name, description and tags do not change the fields, either: the caller adds fields for what follows from
 * them. Tolerances are not included: the caller adds a field for the tolerance rule that applies. */
void definition_fields(const struct definition *definition, struct arena *arena, struct fields *out);

/* Computes both digests of a list of fields. The witness is computed from the fields that witness_fields adds, and the
 * subject from all other fields. */
void fields_digests(const struct fields *fields, struct digest *subject, struct digest *witness);

/* fields_write writes fields as one line of text, which is stored together with a verdict. fields_read reads such a
 * line and returns 0. If the line is damaged, fields_read returns -1 and an empty list. */
struct buf;
enum { FIELDS_MAX = 4096 };
void fields_write(const struct fields *fields, struct buf *out);
int fields_read(const void *bytes, size_t length, struct arena *arena, struct fields *out);

/* For each field in which the lists `then` and `now` differ, writes a sentence such as "axes.hidden_size changed: 4096,
 * now 2048". The sentences are in the order of the tags. Writes at most `room` sentences. Returns the number of
 * differences. */
int fields_changed(const struct fields *then, const struct fields *now, struct arena *arena, const char **string_list,
		   int room);

#endif
