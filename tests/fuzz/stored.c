/* stored - the fuzz targets for the data in caches, exported files, remote caches and git. This file includes the
 * source file that parses the table of files, because its parser is static. */
#include "cache/store_files.c"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include "cache/export_import.h"
#include "cache/fingerprint.h"
#include "git/index.h"
#include "remote/action_result.h"
#include "remote/message.h"
#include "remote/url.h"
#include "tests/fuzz/feed.h"

/* The input is the body of a row in the table of files, to which the target adds a correct header. Every fourth input
 * is not the body but the whole row, with its header. */
bool feed_row(const struct input *input)
{
	char path[] = "definitions/a/b.json";
	struct arena texts = {0};
	struct file_entry entry = {0};
	struct buf row = {0};

	if (input->number % 4 == 0)
		buf_add(&row, input->bytes, input->length);
	else
		record_write(RECORD_FILE, path, sizeof path - 1, input->bytes, input->length, &row);
	const MDB_val key = {sizeof path - 1, path}, value = {row.length, row.data};
	bool valid = get_entry(&key, &value, &texts, &entry);

	for (int i = 0; valid && i < entry.blob_count; i++)
		hold(input, entry.blobs[i] != NULL && strlen(entry.blobs[i]) <= input->length, "paths come from the row");
	buf_free(&row);
	arena_free(&texts);
	return valid;
}

bool feed_fields(const struct input *input)
{
	struct arena arena = {0};
	struct fields fields = {0}, again = {0};
	struct buf text = {0};
	bool valid = fields_read(input->bytes, input->length, &arena, &fields) >= 0;

	if (valid) {
		struct digest subject, witness;

		fields_digests(&fields, &subject, &witness);
		fields_write(&fields, &text);
		hold(input, fields_read(text.data, text.length, &arena, &again) >= 0 && again.count == fields.count,
		     "fields that are written are read");
	}
	buf_free(&text);
	arena_free(&arena);
	return valid;
}

/* Writes the right checksum into a line, as cache/verdict_line.c does, except for every fourth input. */
static void mend_sum(const struct input *input, struct buf *line)
{
	enum { SUM = 16 };
	char digits[SUM + 1];

	if (input->number % 4 == 0 || line->length <= SUM)
		return;
	snprintf(digits, sizeof digits, "%016llx",
	         (unsigned long long)XXH3_64bits_withSeed(line->data + SUM + 1, line->length - SUM - 1, 0x7265667465737433));
	memcpy(line->data, digits, SUM);
}

bool feed_verdict_line(const struct input *input)
{
	struct arena arena = {0};
	struct verdict_line record = {0};
	struct buf line = {0}, again = {0};
	struct err err = {""};

	buf_add(&line, input->bytes, input->length);
	mend_sum(input, &line);
	const struct verdict *v = verdict_line_read(line.data, line.length, &arena, &record, &err);

	hold(input, (v == NULL) == (err.text[0] != '\0'), "what is refused has a sentence and what is taken has none");
	hold(input, v != NULL || is_sentence(err.text), "the sentence prints");
	if (v != NULL)
		verdict_line_write(&record, &again, &err);
	buf_free(&again);
	buf_free(&line);
	arena_free(&arena);
	return v != NULL;
}

/* The number of refusals that the import of an exported file reports. */
struct refusals {
	const struct input *input;
	int64_t count;
};

static void on_refusal(const char *sentence, int64_t count, void *context)
{
	struct refusals *refusals = context;

	hold(refusals->input, is_sentence(sentence) && count >= 0, "each refusal has a sentence");
	refusals->count++;
}

/* Refuses every record, so that the import needs no store. */
static int refuse_signature(void *context, const struct verdict_line *record, struct err *err)
{
	(void)context;
	(void)record;
	return err_set(err, "nothing is taken");
}

bool feed_archive(const struct input *input)
{
	const struct record_signer signer = {.check = refuse_signature};
	struct refusals refusals = {.input = input};
	struct import_counts counts = {0};
	struct err err = {""};
	struct buf file = {0};
	char path[64];
	int fd = memfd_create("archive", MFD_CLOEXEC);

	buf_reserve(&file, ZSTD_compressBound(input->length));
	size_t packed = input->number % 4 == 0
	                    ? 0
	                    : ZSTD_compress(file.data, file.room, input->bytes, input->length, 1);
	const char *bytes = packed > 0 ? file.data : input->bytes;
	size_t length = packed > 0 ? packed : input->length;

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	bool valid = import_verdicts(NULL, path, &signer, on_refusal, &refusals, &counts, &err) == 0;

	hold(input, valid || is_sentence(err.text), "the sentence prints");
	hold(input, counts.merged.taken + counts.merged.replaced == 0, "nothing is taken that the signer refuses");
	close(fd);
	buf_free(&file);
	return valid;
}

bool feed_message(const struct input *input)
{
	const struct buf in = {.data = (char *)(uintptr_t)input->bytes, .length = input->length};
	struct message message;
	size_t taken = 0, before = 0;
	uint32_t number;
	int rc;

	while ((rc = message_next(&in, &taken, &message)) == 1) {
		hold(input, taken > before && taken <= in.length, "messages follow each other");
		hold(input, message.length <= MESSAGE_MAX, "messages are bounded");
		message_number(&message, &number);
		before = taken;
	}
	return rc == 0 && taken > 0;
}

bool feed_action_result(const struct input *input)
{
	struct action_result result;
	bool valid = action_result_read(input->bytes, input->length, &result);

	if (valid) {
		hold(input, strspn(result.hash, "0123456789abcdef") == SHA256_HEX - 1, "the hash is hexadecimal");
		hold(input,
		     result.value == NULL ||
		         (result.value >= (const unsigned char *)input->bytes && result.size <= input->length),
		     "the value lies in the message");
	}
	return valid;
}

bool feed_url(const struct input *input)
{
	char *text = strndup(input->bytes, input->length);
	struct remote_url url;
	struct err err = {""};
	bool valid = remote_url_parse(text, &url, &err) == 0;

	hold(input, valid || is_sentence(err.text), "the sentence prints");
	hold(input, !valid || url.timeout_ms > 0, "waiting is limited");
	free(text);
	return valid;
}

static bool check_entries(const struct input *input, const struct index *index)
{
	for (int i = 0; i < index->count; i++) {
		hold(input, index->entries[i].path[0] != '\0', "entries have paths");
		hold(input, i == 0 || strcmp(index->entries[i - 1].path, index->entries[i].path) < 0, "paths are sorted");
		hold(input, index_find(index, index->entries[i].path) == &index->entries[i], "each entry is found");
	}
	return true;
}

bool feed_index(const struct input *input)
{
	struct arena arena = {0};
	struct index index = {0};
	struct err err = {""};
	enum index_answer answer = index_parse(input->bytes, input->length, 20, &arena, &index, &err);

	hold(input, (answer == INDEX_BAD) == (err.text[0] != '\0'), "only what is refused has a sentence");
	bool valid = answer == INDEX_OK && check_entries(input, &index);

	arena_free(&arena);
	return valid;
}

bool feed_listing(const struct input *input)
{
	struct arena arena = {0};
	struct index index = {0};
	struct err err = {""};
	bool valid = index_parse_listing(input->bytes, input->length, 20, &arena, &index, &err) == 0 &&
	             check_entries(input, &index);

	arena_free(&arena);
	return valid;
}
