/* fingerprint - what a verdict depends on, as two digests over tagged fields: the subject (what was verified) and the
 * witness (what verified it).
 *
 * A field is a tag ("axes.hidden_size") and bytes. Its digest is taken over length, tag, length, bytes; the digest of a
 * list over FINGERPRINT_FORMAT, their number and their digests in the order of the tags: no two different lists of
 * fields meet in one stream. The digest of every field is kept, so that `explain` can name the one that changed; short
 * values are kept too, so that it can say from what to what. */
#ifndef REFTEST_CACHE_FINGERPRINT_H
#define REFTEST_CACHE_FINGERPRINT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "dataset/definition.h"

enum { FINGERPRINT_FORMAT = 1, FIELD_VALUE_MAX = 200 };

struct field {
	const char *tag;
	const char *value; /* what a person may read, at most FIELD_VALUE_MAX bytes (longer ones end in "..."); NULL:
			      only its digest is kept */
	struct digest digest;
};

/* Fields gathered so far. {0} is empty; fields live in the arena given to field_add. */
struct fields {
	struct field *items;
	int count, room;
};

/* Adds one field. `value` is its readable form or NULL; `bytes` is what is hashed. Everything is copied. */
void field_add(struct fields *fields, struct arena *arena, const char *tag, const char *value, const void *bytes,
               size_t length);
/* Shorthand: the text is both what is hashed and what is read. */
void field_text(struct fields *fields, struct arena *arena, const char *tag, const char *text);
void field_printf(struct fields *fields, struct arena *arena, const char *tag, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A list of its own with the same fields in it: what is added to one does not show in the other. */
struct fields fields_copy(const struct fields *fields, struct arena *arena);

/* The digest of a list of fields, in the order of their tags (bytewise), whatever order they were added in. */
struct digest fields_digest(const struct fields *fields);

/* The same of digests that stand in that order already. */
struct digest fields_digest_sorted(const struct digest *digests, int count);

/* The fields of a definition's canonical schema and code: one for the op type, one for each axis, input, output (with
 * its place among the outputs: a tuple maps by order), for the sorted constraints, and for the reference in normal
 * form. Name, tags, description and key order leave no trace. Tolerances are not among them: the caller adds the rule
 * that is applied, wherever it came from. */
void definition_fields(const struct definition *definition, struct arena *arena, struct fields *out);

/* The fields of what would verify a case now (or did: from a verdict). NULL texts are hashed as absent. */
void witness_fields(const char *ground_truth, const char *ground_truth_version, const char *device_class,
                    const char *torch, const char *cuda, struct arena *arena, struct fields *out);

/* Fields as they are stored beside a verdict, and read back: 0, or -1 for damaged bytes (`out` is empty then). A digest
 * that follows from the readable value is left out and made again. What older programs stored is read as well. */
struct buf;
void fields_write(const struct fields *fields, struct buf *out);
int fields_read(const void *bytes, size_t length, struct arena *arena, struct fields *out);

/* What fields_write writes is a head, which says how many there are, and one field behind the other; for who keeps the
 * same field of many lists once. */
void fields_write_head(int count, struct buf *out);
void field_write(const struct field *field, struct buf *out);
int field_read(const void *bytes, size_t length, struct arena *arena, struct field *out); /* 0, or -1 */

/* A sentence for each field in which `then` and `now` differ, in the order of their tags ("axes.hidden_size changed:
 * 4096, now 2048"). Returns how many differ; at most `room` sentences are written. */
int fields_changed(const struct fields *then, const struct fields *now, struct arena *arena, const char **sentences,
                   int room);

#endif
