/* carry - two loops. Out: store ─▶ portable records ─▶ archive in memory ─▶ file. In: file ─▶ blocks ─▶ records that
 * agree with themselves ─▶ batches ─▶ store. Blocks are read on all processors, some of them at a time. A batch is
 * bounded by what it takes in memory, and is one transaction. */
#include "cache/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trace.h"
#include "dataset/packed.h"

enum { BATCH = 256 << 20, READ_STEP = 1 << 20, THREADS_MAX = 16, WINDOW = 16 };

/* --- Out --------------------------------------------------------------------------------------------------------- */

struct outgoing {
	struct archive_writer writer;
	const struct carry_seal *seal; /* NULL: none */
	struct carried_out *out;
	struct buf packed; /* a verdict that was not */
};

static void add_verdict(const struct portable *record, void *context)
{
	struct outgoing *going = context;
	struct portable sealed = *record;
	unsigned char room[CARRY_SIGNATURE_MAX];
	struct err why;

	buf_clear(&going->packed); /* older rows hold JSON; what is signed is what travels */
	if (verdict_pack(record->text, record->length, &going->packed)) {
		sealed.text = going->packed.data;
		sealed.length = going->packed.length;
	}
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
	buf_free(&going.packed);
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
	struct buf arenas;  /* struct arena: of the records below */
	struct buf records; /* struct portable */
	size_t bytes;	    /* of the records */
};

static void refuse(const char *sentence, int64_t count, void *context)
{
	struct incoming *coming = context;

	coming->in->refused += count;
	coming->in->whole = false;
	coming->refused(sentence, count, coming->context);
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

/* --- Blocks, on all processors ------------------------------------------------------------------------------------ */

/* Blocks that are read at the same time, and the next of them that nobody has begun with. */
struct window {
	struct archive_block blocks[WINDOW];
	int count;
	atomic_int next;
};

static void *read_blocks(void *context)
{
	struct window *window = context;

	for (int i; (i = atomic_fetch_add(&window->next, 1)) < window->count;) {
		struct archive_block *block = &window->blocks[i];

		archive_read(block);
		for (int k = 0; k < block->count; k++)
			if (!block->found[k].agrees)
				block->found[k].agrees = portable_check(&block->found[k], NULL) == 0;
	}
	return NULL;
}

static int threads_for(int blocks)
{
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	cores = cores < THREADS_MAX ? cores : THREADS_MAX;
	return cores < blocks ? cores : blocks;
}

/* This thread takes part; where none can be begun, it does all. */
static void read_window(struct window *window)
{
	pthread_t threads[THREADS_MAX];
	int more = threads_for(window->count) - 1, begun = 0;

	atomic_store(&window->next, 0);
	while (begun < more && pthread_create(&threads[begun], NULL, read_blocks, window) == 0)
		begun++;
	read_blocks(window);
	while (begun > 0)
		pthread_join(threads[--begun], NULL);
}

/* --- Batches ------------------------------------------------------------------------------------------------------ */

static int keep_batch(struct incoming *coming, struct err *err)
{
	const struct portable *records = (const struct portable *)(const void *)coming->records.data;
	struct arena *arenas = (struct arena *)(void *)coming->arenas.data;
	int answer = store_merge(coming->store, records, (int)(coming->records.length / sizeof *records),
				 &coming->in->merged, err);

	for (size_t i = 0; i < coming->arenas.length / sizeof *arenas; i++)
		arena_free(&arenas[i]);
	buf_clear(&coming->records);
	buf_clear(&coming->arenas);
	coming->bytes = 0;
	return answer;
}

static void take(struct incoming *coming, const struct portable *record)
{
	struct err why;

	if ((coming->seal != NULL && coming->seal->check(coming->seal->context, record, &why) != 0) ||
	    (!record->agrees && portable_check(record, &why) != 0)) {
		refuse_record(coming, record, &why);
		return;
	}
	buf_add(&coming->records, record, sizeof *record);
}

static void take_block(struct incoming *coming, struct archive_reader *reader, const struct archive_block *block)
{
	archive_told(reader, block);
	for (int i = 0; i < block->count; i++)
		take(coming, &block->found[i]);
	buf_add(&coming->arenas, &block->arena, sizeof block->arena);
	coming->bytes += block->whole;
}

static int take_blocks(struct incoming *coming, struct archive_reader *reader, struct err *err)
{
	struct window window;

	do {
		for (window.count = 0; window.count < WINDOW; window.count++)
			if (archive_find(reader, &window.blocks[window.count]) == 0)
				break;
		read_window(&window);
		for (int i = 0; i < window.count; i++)
			take_block(coming, reader, &window.blocks[i]);
		if (coming->bytes >= BATCH && keep_batch(coming, err) != 0)
			return -1;
	} while (window.count > 0);
	return keep_batch(coming, err);
}

int carry_in(struct store *store, const char *path, const struct carry_seal *seal, archive_refused *refused,
	     void *context, struct carried_in *in, struct err *err)
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
	buf_free(&coming.records);
	buf_free(&coming.arenas);
	buf_free(&file);
	return answer;
}
