/* export_import - an export reads records from the store, writes each record as a line, compresses the lines in memory,
 * and writes the file. An import unpacks the file, parses its lines on all processors, and stores many records in each
 * transaction. */
#include "cache/export_import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "base/file.h"
#include "base/trace.h"
#include "cache/fingerprint.h"

enum {
	LEVEL = 9,
	WORKERS = 2, /* number of threads that compress */
	STEP = 1 << 20,		 /* number of bytes to read or unpack at a time */
	BATCH = 128 << 20,	 /* approximate number of bytes of lines that one transaction stores */
	THREADS_MAX = 16,
	CHUNK = 64,		 /* number of lines that a thread takes from the shared list in one step */
	SLICE = 1 << 14,	 /* the most lines that threads parse at a time */
	DAMAGED_MAX = 1 << 16,	 /* the import stops when it has found this many damaged lines */
	WINDOW_LOG_MAX = 24,	 /* limits the memory that zstd uses */
	FRAME_LEAST = 5,	 /* the least number of bytes from which zstd recognises a frame */
	/* The limit for the unpacked bytes of a file: UNPACKED_FREE, or RATIO_MAX times the size of the file if this is
	 * more. */
	UNPACKED_FREE = 64 << 20,
	RATIO_MAX = 1000,
};

static const char head[] = "reftest verdicts\t", tail[] = "end\t";

/* --- Out --------------------------------------------------------------------------------------------------------- */

struct outgoing {
	const struct record_signer *signer;
	struct export_counts *out;
	ZSTD_CCtx *packer;
	struct buf file, line;
	bool begun;
};

static void pack(struct outgoing *to, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {to->line.data, to->line.length, 0};
	size_t left;

	do {
		buf_reserve(&to->file, STEP);
		ZSTD_outBuffer out = {to->file.data + to->file.length, STEP, 0};

		left = ZSTD_compressStream2(to->packer, &out, &in, how);
		if (ZSTD_isError(left)) /* the only possible error is a lack of memory */
			die_no_memory();
		to->file.length += out.pos;
	} while (in.pos < in.size || (how != ZSTD_e_continue && left > 0));
	buf_clear(&to->line);
}

/* Writes the head line in a zstd frame of its own, so that this line can be read even if the rest of the file is
 * damaged. */
static void begin_file(struct outgoing *to, int64_t count)
{
	to->begun = true;
	buf_printf(&to->line, "%s%d\t%" PRId64 "\n", head, EXPORT_FORMAT, count);
	pack(to, ZSTD_e_flush);
}

static void end_file(struct outgoing *to)
{
	if (!to->begun)
		begin_file(to, 0);
	buf_printf(&to->line, "%s%" PRId64 "\n", tail, to->out->verdicts);
	pack(to, ZSTD_e_end);
}

static void add_verdict(const struct verdict_line *given, int64_t left, void *context)
{
	struct outgoing *to = context;
	struct verdict_line record = *given;
	struct err why;

	if (!to->begun)
		begin_file(to, left);
	if (to->signer != NULL)
		to->signer->sign(to->signer->context, &record);
	if (verdict_line_write(&record, &to->line, &why) == 0) {
		to->out->verdicts++;
	} else {
		to->out->left_out++;
		trace("cache", "not exported: %s", why.text);
	}
	if (to->line.length >= STEP)
		pack(to, ZSTD_e_continue);
}

static int write_out(const struct buf *file, struct err *err)
{
	return file_write_all(STDOUT_FILENO, file->data, file->length)
		   ? 0
		   : err_errno(err, "standard output cannot be written");
}

static ZSTD_CCtx *new_packer(void)
{
	ZSTD_CCtx *packer = ZSTD_createCCtx();

	if (packer == NULL)
		die_no_memory();
	ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(packer, ZSTD_c_checksumFlag, 1);
	ZSTD_CCtx_setParameter(packer, ZSTD_c_nbWorkers, WORKERS); /* has no effect if zstd was built without threads */
	return packer;
}

int export_verdicts(struct store *store, const char *path, const struct record_signer *signer, struct export_counts *out,
		    struct err *err)
{
	struct outgoing to = {.signer = signer, .out = out, .packer = new_packer()};
	int64_t damaged;

	*out = (struct export_counts){0};
	int answer = store_each_verdict(store, add_verdict, &to, &damaged, err);

	if (answer == 0) {
		end_file(&to);
		out->left_out += damaged;
		out->bytes = (int64_t)to.file.length;
		answer = strcmp(path, "-") == 0 ? write_out(&to.file, err)
						: file_replace(path, to.file.data, to.file.length, err);
	}
	ZSTD_freeCCtx(to.packer);
	buf_free(&to.file);
	buf_free(&to.line);
	return answer < 0 ? -1 : 0;
}

/* --- In: lines ---------------------------------------------------------------------------------------------------- */

/* Unpacks the file piece by piece, and divides it into lines. */
struct lines {
	ZSTD_DCtx *unpacker;
	ZSTD_inBuffer from; /* the next zstd block */
	size_t length;	    /* length of the file in bytes */
	uint64_t unpacked;
	struct buf text;     /* whole lines, and the beginning of the next line */
	size_t whole;	     /* number of bytes of the whole lines in `text` */
	bool ended;	     /* the file ended, or the rest cannot be unpacked */
	struct err why;	     /* the reason why unpacking ended before the end of the file, or "" */
};

/* Sets `from` to the next zstd block, or to the header of the next frame if the current frame is complete. Returns
 * false at the end of the file. */
static bool expect_block(struct lines *lines, size_t length)
{
	size_t left = lines->length - lines->from.pos, next = length > 0 ? length : FRAME_LEAST;

	lines->from.size = lines->from.pos + (next < left ? next : left);
	return left > 0;
}

/* Unpacks one zstd block. Each call of zstd gets only one block. If a call got several blocks and one of them was
 * damaged, the call would return no bytes, not even those of the intact blocks. */
static bool unpack_step(struct lines *lines)
{
	buf_reserve(&lines->text, STEP);
	ZSTD_outBuffer out = {lines->text.data + lines->text.length, STEP, 0};
	size_t left = ZSTD_decompressStream(lines->unpacker, &out, &lines->from);

	lines->text.length += out.pos;
	lines->unpacked += out.pos;
	if (ZSTD_isError(left))
		err_set(&lines->why, "the file is damaged at this point (%s)", ZSTD_getErrorName(left));
	else if (lines->unpacked > UNPACKED_FREE && lines->unpacked / RATIO_MAX > lines->from.pos)
		err_set(&lines->why, "the unpacked file is too large for an exported file");
	else if (lines->from.pos == lines->length && out.pos < out.size && left > 0)
		err_set(&lines->why, "the file was cut short");
	else
		return expect_block(lines, left) || out.pos == out.size;
	return false;
}

/* Unpacks until `text` contains at least `BATCH` bytes of whole lines, or until the file ends. */
static void next_lines(struct lines *lines)
{
	buf_drop(&lines->text, lines->whole);
	lines->whole = 0;
	while (!lines->ended && lines->whole < BATCH) {
		size_t before = lines->text.length;

		lines->ended = !unpack_step(lines);
		const char *last = lines->text.length > before
				       ? memrchr(lines->text.data + before, '\n', lines->text.length - before)
				       : NULL;

		if (last != NULL)
			lines->whole = (size_t)(last + 1 - lines->text.data);
		if (lines->text.length - lines->whole > VERDICT_LINE_MAX + STEP) {
			err_set(&lines->why, "a line is longer than %d bytes", VERDICT_LINE_MAX);
			lines->ended = true;
		}
	}
}

/* --- Import: parsing the lines on all processors ------------------------------------------------------------------ */

struct line {
	const char *text;
	size_t length;
	struct verdict_line record;
	const char *why; /* the reason why the line was refused; NULL if the record is valid */
};

struct readers {
	struct line *lines;
	int count;
	atomic_int next;
	struct arena arena[THREADS_MAX];
};

struct reader_thread {
	struct readers *all;
	struct arena *arena;
};

static void read_line(struct line *line, struct arena *arena)
{
	struct arena scratch = {0};
	struct err why = {""};
	struct verdict_line record;

	bool right = verdict_line_read(line->text, line->length, &scratch, &record, &why) != NULL;

	line->why = right ? NULL : arena_string(arena, why.text);
	line->record = record;
	struct case_name *names = arena_array(arena, (size_t)record.name_count, sizeof *names);

	for (int i = 0; i < record.name_count; i++) {
		names[i].definition = arena_string(arena, record.names[i].definition);
		names[i].case_id = arena_string(arena, record.names[i].case_id);
	}
	line->record.names = names;
	arena_free(&scratch);
}

static bool is_frame_line(const char *text, size_t length)
{
	return (length >= sizeof head - 1 && memcmp(text, head, sizeof head - 1) == 0) ||
	       (length >= sizeof tail - 1 && memcmp(text, tail, sizeof tail - 1) == 0);
}

static void *read_lines(void *context)
{
	struct reader_thread *thread = context;
	struct readers *all = thread->all;

	for (int from; (from = atomic_fetch_add(&all->next, CHUNK)) < all->count;)
		for (int i = from; i < from + CHUNK && i < all->count; i++)
			if (!is_frame_line(all->lines[i].text, all->lines[i].length))
				read_line(&all->lines[i], thread->arena);
	return NULL;
}

static int threads_for(int lines)
{
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	cores = cores < THREADS_MAX ? cores : THREADS_MAX;
	return cores < lines / CHUNK + 1 ? cores : lines / CHUNK + 1;
}

/* Parses all lines on all processors. The calling thread also parses lines. If no other thread can be started, the
 * calling thread parses all lines. */
static void read_all(struct readers *all)
{
	struct reader_thread own[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	int count = threads_for(all->count), started = 1;

	atomic_store(&all->next, 0);
	for (int i = 0; i < count; i++)
		own[i] = (struct reader_thread){all, &all->arena[i]};
	while (started < count && pthread_create(&threads[started], NULL, read_lines, &own[started]) == 0)
		started++;
	read_lines(&own[0]);
	while (started > 1)
		pthread_join(threads[--started], NULL);
}

/* --- In: accepted lines ------------------------------------------------------------------------------------------- */

struct incoming {
	struct store *store;
	const struct record_signer *signer;
	struct import_counts *in;
	import_refused *refused;
	void *context;
	struct readers readers;
	struct buf records;		 /* array of struct verdict_line to be stored in one transaction */
	int64_t line;			 /* number of lines that were read */
	/* seen: number of record lines since the head line; expected: upper bound on the number of record lines, from
	 * the head line */
	int64_t seen, expected;
	int64_t damaged;		 /* number of damaged lines found so far in the file */
	bool inside, misplaced;		 /* inside: the current line is between a head line and its end line */
};

static void refuse(struct incoming *to, int64_t count, const char *sentence)
{
	to->in->refused += count;
	to->in->whole = false;
	to->refused(sentence, count, to->context);
}

static void refuse_record(struct incoming *to, const struct verdict_line *record, const char *why)
{
	struct err sentence;
	char where[40] = "";

	if (to->line > 0)
		snprintf(where, sizeof where, "line %" PRId64 ": ", to->line);
	if (record->name_count > 0)
		err_set(&sentence, "%s%s %s: %.1000s", where, err_show(record->names[0].definition).text,
			err_show(record->names[0].case_id).text, why);
	else
		err_set(&sentence, "%s%.1000s", where, why);
	refuse(to, 1, sentence.text);
}

static void take_record(struct incoming *to, const struct verdict_line *record)
{
	struct err why;

	if (to->signer != NULL && to->signer->check(to->signer->context, record, &why) != 0)
		refuse_record(to, record, why.text);
	else
		buf_add(&to->records, record, sizeof *record);
}

static int merge_records(struct incoming *to, struct err *err)
{
	int answer =
	    store_merge(to->store, (const struct verdict_line *)(const void *)to->records.data,
			(int)(to->records.length / sizeof(struct verdict_line)), &to->in->merged, err);

	buf_clear(&to->records);
	return answer;
}

/* Parses a text that consists only of a number. Returns -1 for a text that is not a number. */
static int64_t number_of(const char *text, size_t length)
{
	int64_t number = 0;

	for (size_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9' || (number = number * 10 + (text[i] - '0')) > INT32_MAX)
			return -1;
	return length > 0 ? number : -1;
}

/* If the line is a head line, returns its format number, and sets `count` to the number of records that the line
 * states. Otherwise returns -1. */
static int64_t read_head(const char *text, size_t length, int64_t *count)
{
	if (length < sizeof head - 1 || memcmp(text, head, sizeof head - 1) != 0)
		return -1;
	const char *format = text + sizeof head - 1, *tab = memchr(format, '\t', length - (sizeof head - 1));

	if (tab == NULL) /* a later format may have no count here */
		return number_of(format, (size_t)(text + length - format));
	*count = number_of(tab + 1, (size_t)(text + length - tab - 1));
	return number_of(format, (size_t)(tab - format));
}

/* Reports missing verdicts if there are fewer than `count` record lines between the head line and the end line. */
static void compare_count(struct incoming *to, int64_t count, const char *why)
{
	struct err sentence;
	int64_t missing = count - to->seen;

	if (missing <= 0 && *why == '\0')
		return;
	err_set(&sentence, "after line %" PRId64 ": %s; %" PRId64 " verdict%s missing", to->line,
		*why != '\0' ? why : "the exported file ends too early", missing > 0 ? missing : 0,
		missing == 1 ? " is" : "s are");
	refuse(to, missing > 0 ? missing : 0, sentence.text);
}

static void misplace(struct incoming *to, const char *what)
{
	struct err sentence;

	err_set(&sentence, "line %" PRId64 ": %s", to->line, what);
	refuse(to, 0, sentence.text);
}

static void take_head(struct incoming *to, const struct line *line)
{
	int64_t count = 0, format = read_head(line->text, line->length, &count);

	if (to->inside)
		compare_count(to, to->expected, "another exported file begins before the end of this one");
	to->inside = format == EXPORT_FORMAT && count >= 0;
	to->expected = count;
	to->seen = 0;
	if (!to->inside)
		misplace(to, "expected the first line of an exported file of format 3; the lines after this line are not read");
}

static void take_tail(struct incoming *to, const struct line *line)
{
	int64_t count = number_of(line->text + sizeof tail - 1, line->length - (sizeof tail - 1));

	if (!to->inside)
		misplace(to, "this line ends an exported file whose first line is missing");
	else if (count < to->seen || count > to->expected)
		misplace(to, "the number of verdicts in the last line of the exported file is wrong");
	else
		compare_count(to, count, "");
	to->inside = false;
}

static void take_line(struct incoming *to, const struct line *line)
{
	to->line++;
	if (line->length >= sizeof head - 1 && memcmp(line->text, head, sizeof head - 1) == 0) {
		take_head(to, line);
	} else if (is_frame_line(line->text, line->length)) {
		take_tail(to, line);
	} else if (!to->inside) {
		if (!to->misplaced)
			misplace(to, "there are lines after the end of the exported file");
		to->misplaced = true;
	} else if (line->why == NULL) {
		to->seen++;
		take_record(to, &line->record);
	} else {
		to->seen++;
		to->damaged++;
		refuse_record(to, &line->record, line->why);
	}
}

/* Finds at most SLICE lines. Returns the position where the next line begins. */
static const char *find_lines(const char *at, const char *end, struct line found[SLICE], int *count)
{
	for (*count = 0; at < end && *count < SLICE; ++*count) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));

		found[*count] = (struct line){.text = at, .length = (size_t)(feed - at)};
		at = feed + 1;
	}
	return at;
}

static int take_lines(struct incoming *to, struct lines *lines, struct err *err)
{
	const char *at = lines->text.data, *end = at + lines->whole;

	while (at < end && to->damaged < DAMAGED_MAX) {
		at = find_lines(at, end, to->readers.lines, &to->readers.count);
		read_all(&to->readers);
		for (int i = 0; i < to->readers.count; i++)
			take_line(to, &to->readers.lines[i]);
	}
	if (to->damaged >= DAMAGED_MAX) {
		err_set(&lines->why, "too many lines of the file are damaged");
		lines->ended = true;
		lines->text.length = lines->whole;
	}
	int answer = merge_records(to, err);

	for (int i = 0; i < THREADS_MAX; i++)
		arena_free(&to->readers.arena[i]);
	return answer;
}

/* Returns 0 if the first line is a head line with a format number that this program supports, otherwise -1 with a
 * message. */
static int check_head(const struct lines *lines, struct err *err)
{
	const char *feed = lines->whole > 0 ? memchr(lines->text.data, '\n', lines->whole) : NULL;
	int64_t count, format = feed != NULL ? read_head(lines->text.data, (size_t)(feed - lines->text.data), &count) : -1;

	if (format < 0)
		return err_set(err, "the file does not begin like an exported file: another program or an older reftest wrote "
				    "the file, or its first bytes are damaged");
	if (format != EXPORT_FORMAT)
		return err_set(err, "the file has format %" PRId64 ", but this program reads only formats up to %d: use a "
							     "newer reftest",
			       format, EXPORT_FORMAT);
	return 0;
}

static int take_file(struct incoming *to, const struct buf *file, struct err *err)
{
	struct lines lines = {.unpacker = ZSTD_createDCtx(), .from = {.src = file->data}, .length = file->length};
	int answer = 0;

	if (lines.unpacker == NULL)
		die_no_memory();
	if ((to->readers.lines = malloc(SLICE * sizeof(struct line))) == NULL)
		die_no_memory();
	ZSTD_DCtx_setParameter(lines.unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	expect_block(&lines, 0);
	next_lines(&lines);
	answer = check_head(&lines, err);
	to->in->unusable = answer != 0;
	while (answer == 0 && lines.whole > 0) {
		answer = take_lines(to, &lines, err);
		next_lines(&lines);
	}
	if (answer == 0 && to->inside)
		compare_count(to, to->expected, lines.why.text[0] != '\0' ? lines.why.text : "the file was cut short");
	else if (answer == 0 && (lines.why.text[0] != '\0' || lines.text.length > lines.whole))
		refuse(to, 0, lines.why.text[0] != '\0' ? lines.why.text : "there are lines after the end of the exported file");
	free(to->readers.lines);
	ZSTD_freeDCtx(lines.unpacker);
	buf_free(&lines.text);
	return answer;
}

/* --- In: files ---------------------------------------------------------------------------------------------------- */

static int read_input(struct buf *out, struct err *err)
{
	for (;;) {
		buf_reserve(out, STEP);
		ssize_t n = read(STDIN_FILENO, out->data + out->length, STEP);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, "standard input cannot be read");
		if (n == 0)
			return 0;
		out->length += (size_t)n;
		if (out->length > EXPORT_FILE_MAX)
			return err_set(err, "standard input has more than %d bytes, the limit for an "
					    "imported file", EXPORT_FILE_MAX);
	}
}

static int read_file(const char *path, struct buf *out, struct err *err)
{
	if (strcmp(path, "-") == 0)
		return read_input(out, err);
	switch (file_read(AT_FDCWD, path, EXPORT_FILE_MAX, out, NULL, err)) {
	case FILE_OK:
		return 0;
	case FILE_ABSENT:
		return err_set(err, "%s: there is no such file", path);
	default:
		return -1;
	}
}

int import_verdicts(struct store *store, const char *path, const struct record_signer *signer, import_refused *refused,
		    void *context, struct import_counts *in, struct err *err)
{
	struct incoming to = {.store = store, .signer = signer, .in = in, .refused = refused, .context = context};
	struct buf file = {0};
	struct err why = {""};

	*in = (struct import_counts){.whole = true};
	int answer = read_file(path, &file, err);

	in->unusable = answer != 0;
	if (answer == 0) {
		answer = take_file(&to, &file, &why);
		if (answer != 0)
			err_set(err, "%s cannot be imported: %.1500s", path, why.text);
	}
	buf_free(&to.records);
	buf_free(&file);
	return answer;
}
