/* carry - two loops. Out: store ─▶ portable records ─▶ archive in memory ─▶ file. In: file ─▶ blocks ─▶ records that
 * agree with themselves ─▶ batches ─▶ store. A batch is bounded by what it takes in memory, and is one transaction. */
#include "cache/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trace.h"

enum { BATCH = 256 << 20, READ_STEP = 1 << 20, THREADS_MAX = 16, SHARE_LEAST = 1000 };

/* --- Out --------------------------------------------------------------------------------------------------------- */

struct outgoing {
	struct archive_writer writer;
	const struct carry_seal *seal; /* NULL: none */
	struct carried_out *out;
};

static void add_verdict(const struct portable *record, void *context)
{
	struct outgoing *going = context;
	struct portable sealed = *record;
	unsigned char room[CARRY_SIGNATURE_MAX];
	struct err why;

	if (going->seal != NULL)
		going->seal->sign(going->seal->context, &sealed, room);
	if (archive_add(&going->writer, &sealed, &why) == 0) {
		going->out->verdicts++;
		return;
	}
	going->out->left++;
	trace("cache", "not exported: %s", why.text);
}

static int write_out(const struct buf *file, struct err *err)
{
	for (size_t at = 0; at < file->length;) {
		ssize_t n = write(STDOUT_FILENO, file->data + at, file->length - at);

		if (n < 0 && errno != EINTR)
			return err_errno(err, "standard output cannot be written");
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int carry_out(struct store *store, const char *path, const struct carry_seal *seal, struct carried_out *out,
	      struct err *err)
{
	struct outgoing going = {.out = out, .seal = seal};
	struct buf file = {0};
	int64_t damaged;

	*out = (struct carried_out){0};
	archive_begin(&going.writer, &file);
	int answer = store_each_verdict(store, add_verdict, &going, &damaged, err);

	archive_end(&going.writer);
	out->left += damaged;
	out->bytes = (int64_t)file.length;
	if (answer == 0)
		answer =
		    strcmp(path, "-") == 0 ? write_out(&file, err) : file_replace(path, file.data, file.length, err);
	buf_free(&file);
	return answer < 0 ? -1 : 0;
}

/* --- In ---------------------------------------------------------------------------------------------------------- */

static int read_in(struct buf *out, struct err *err)
{
	for (;;) {
		buf_reserve(out, READ_STEP);
		ssize_t n = read(STDIN_FILENO, out->data + out->length, READ_STEP);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "standard input cannot be read");
		if (n == 0)
			return 0;
		out->length += (size_t)n;
		if (out->length > ARCHIVE_MAX)
			return err_set(err, "standard input has more than %d bytes, and no file is taken that has",
				       ARCHIVE_MAX);
	}
}

static int read_archive(const char *path, struct buf *out, struct err *err)
{
	if (strcmp(path, "-") == 0)
		return read_in(out, err);
	switch (file_read(AT_FDCWD, path, ARCHIVE_MAX, out, NULL, err)) {
	case FILE_OK:
		return 0;
	case FILE_ABSENT:
		return err_set(err, "%s: there is no such file", path);
	default:
		return -1;
	}
}

struct incoming {
	struct store *store;
	const struct carry_seal *seal; /* NULL: none */
	struct carried_in *in;
	archive_refused *refused;
	void *context;
	struct arena arena; /* of the records below */
	struct portable *records;
	int count, room;
	size_t bytes;
};

static void refuse(const char *sentence, int64_t count, void *context)
{
	struct incoming *coming = context;

	coming->in->refused += count;
	coming->in->whole = false;
	coming->refused(sentence, count, coming->context);
}

/* --- Whether they agree with themselves, on all processors -------------------------------------------------------- */

/* Every `step`th record of the batch from `first` on. */
struct share {
	const struct portable *records;
	bool *good;
	int first, step, count;
};

static void *check_share(void *context)
{
	const struct share *share = context;

	for (int i = share->first; i < share->count; i += share->step)
		share->good[i] = portable_check(&share->records[i], NULL) == 0;
	return NULL;
}

static int threads_for(int count)
{
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1, most = count / SHARE_LEAST + 1;

	cores = cores < THREADS_MAX ? cores : THREADS_MAX;
	return cores < most ? cores : most;
}

/* The first share is this thread's own; one that cannot get a thread is, too. */
static void check_all(const struct portable *records, int count, bool *good)
{
	struct share shares[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	bool begun[THREADS_MAX] = {false};
	int step = threads_for(count);

	for (int i = step - 1; i >= 0; i--) {
		shares[i] = (struct share){records, good, i, step, count};
		begun[i] = i > 0 && pthread_create(&threads[i], NULL, check_share, &shares[i]) == 0;
		if (!begun[i])
			check_share(&shares[i]);
	}
	for (int i = 1; i < step; i++)
		if (begun[i])
			pthread_join(threads[i], NULL);
}

static void refuse_record(struct incoming *coming, const struct portable *record, const struct err *why)
{
	const struct portable_name *name = record->name_count > 0 ? &record->names[0] : NULL;
	struct err sentence;
	char hex[DIGEST_HEX];

	digest_hex(&record->subject, hex);
	err_set(&sentence, "%s %s (subject %.8s): %.1000s",
		name != NULL ? err_show(name->definition).text : "a verdict",
		name != NULL ? err_show(name->case_id).text : "without a name", hex, why->text);
	refuse(sentence.text, 1, coming);
}

/* Leaves in the batch what agrees with itself. */
static void sift(struct incoming *coming)
{
	bool *good = calloc((size_t)coming->count + 1, sizeof *good);
	int left = 0;

	if (good == NULL)
		die_no_memory();
	check_all(coming->records, coming->count, good);
	for (int i = 0; i < coming->count; i++) {
		struct err why;

		if (good[i]) {
			coming->records[left++] = coming->records[i];
			continue;
		}
		portable_check(&coming->records[i], &why);
		refuse_record(coming, &coming->records[i], &why);
	}
	coming->count = left;
	free(good);
}

static int keep_batch(struct incoming *coming, struct err *err)
{
	sift(coming);
	int answer = store_merge(coming->store, coming->records, coming->count, &coming->in->merged, err);

	coming->count = 0;
	coming->bytes = 0;
	arena_free(&coming->arena);
	return answer;
}

static void take(struct incoming *coming, const struct portable *record)
{
	struct err why;

	if (coming->seal != NULL && coming->seal->check(coming->seal->context, record, &why) != 0) {
		refuse_record(coming, record, &why);
		return;
	}
	if (coming->count == coming->room) {
		coming->room = coming->room == 0 ? 4096 : coming->room * 2;
		coming->records = realloc(coming->records, (size_t)coming->room * sizeof *coming->records);
		if (coming->records == NULL)
			die_no_memory();
	}
	coming->records[coming->count++] = *record;
	coming->bytes += record->length + record->fields_length;
}

static int take_blocks(struct incoming *coming, struct archive_reader *reader, struct err *err)
{
	const struct portable *records;
	int count;

	while (archive_next(reader, &coming->arena, &records, &count) > 0) {
		for (int i = 0; i < count; i++)
			take(coming, &records[i]);
		if (coming->bytes >= BATCH && keep_batch(coming, err) != 0)
			return -1;
	}
	return keep_batch(coming, err);
}

int carry_in(struct store *store, const char *path, const struct carry_seal *seal, archive_refused *refused, void *context,
	     struct carried_in *in, struct err *err)
{
	struct incoming coming = {.store = store, .seal = seal, .in = in, .refused = refused, .context = context};
	struct archive_reader reader;
	struct buf file = {0};
	struct err why;

	*in = (struct carried_in){.whole = true};
	int answer = read_archive(path, &file, err);

	if (answer == 0 && (answer = archive_open(&reader, file.data, file.length, refuse, &coming, &why)) != 0)
		err_set(err, "%s cannot be imported: %.1500s", path, why.text);
	if (answer == 0) {
		answer = take_blocks(&coming, &reader, err);
		archive_close(&reader);
	}
	free(coming.records);
	arena_free(&coming.arena);
	buf_free(&file);
	return answer;
}
