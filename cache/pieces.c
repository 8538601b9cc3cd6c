#include "cache/pieces.h"

#include <string.h>

#include <xxhash.h>

#include "cache/fingerprint.h"

static const uint64_t seed = 0x7265667465737432; /* apart from every other XXH3-64 in use */

struct known_field known_field_of(const void *octets, size_t length, struct arena *arena)
{
	struct field field;

	if (field_read(octets, length, arena, &field) != 0)
		return (struct known_field){.bad = true};
	return (struct known_field){.tag = field.tag,
				    .digest = field.digest,
				    .witness = strncmp(field.tag, "witness.", strlen("witness.")) == 0};
}

int known_field_order(const struct known_field *a, const struct known_field *b)
{
	int order = strcmp(a->tag, b->tag);

	return order != 0 ? order : memcmp(a->digest.bytes, b->digest.bytes, DIGEST_BYTES);
}

void sums_add(struct sums *sums, const struct known_field *field)
{
	sums->of[field->witness][sums->count[field->witness]++] = field->digest;
}

uint64_t record_checksum(const struct portable *record, struct buf *scratch)
{
	buf_clear(scratch);
	portable_body(record, scratch);
	return XXH3_64bits_withSeed(scratch->data, scratch->length, seed);
}

struct digest verdict_witness(const struct verdict *v)
{
	struct fields fields = {0};
	struct arena arena = {0};

	witness_fields(v->ground_truth, verdict_truth_version(v, &arena), v->device_class, v->torch, v->cuda, &arena,
		       &fields);
	struct digest witness = fields_digest(&fields);

	arena_free(&arena);
	return witness;
}

size_t record_whole(const struct portable *record)
{
	size_t all = record->length + record->fields_length + record->signature_length + 64;

	for (int i = 0; i < record->name_count; i++)
		all += strlen(record->names[i].definition) + strlen(record->names[i].case_id) + 8;
	return all;
}
