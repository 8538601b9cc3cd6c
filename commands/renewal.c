#include "commands/renewal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "artifacts/templates.h"
#include "artifacts/test_file.h"
#include "base/file.h"
#include "commands/test_class.h"

/* A file whose time stamps are this near to now may be written again without their showing it (ticks are 10 ms at most;
 * stamps of whole seconds come from a file system that has no finer ones). */
enum { NEAR_NS = 100 * 1000000, SECOND_NS = 1000000000 };

/* ---- telling ---------------------------------------------------------------------------------------------------- */

void renewal_tell(struct renewal *r, const char *sentence)
{
	sentences_add(&r->told, sentence);
}

static void note_changed(struct renewal *r, const char *file)
{
	sentences_add(&r->changed, arena_printf(r->arena, "%s%s", PRESENT_FOLDER, file));
}

static char *path_of(const struct renewal *r, const char *file)
{
	return arena_printf(r->arena, "%s/%s%s", r->reftest->root, PRESENT_FOLDER, file);
}

/* One that cannot be read is told, left as it is, and costs no other. */
static enum file_answer read_old(struct renewal *r, const char *file, struct buf *bytes, enum owner *owner)
{
	struct err err = {""};
	enum file_answer answer = present_read(&r->present, file, bytes, owner, &err);

	if (answer == FILE_ERROR)
		renewal_tell(r, arena_printf(r->arena, "%s, and is left as it is", err.text));
	return answer;
}

/* ---- notes of the last update ----------------------------------------------------------------------------------- */

static void add_stat(struct buf *all, const struct file_stat *stat)
{
	buf_add(all, stat, sizeof *stat);
}

/* Of a generated file; zeros: it is not there. */
static struct file_stat own_stat(const struct renewal *r, const char *file)
{
	struct stat st;

	return fstatat(r->dataset->fd, arena_printf(r->arena, "%s%s", PRESENT_FOLDER, file), &st, 0) == 0
		   ? file_stat_of(&st)
		   : (struct file_stat){0};
}

/* Over all that a file depends on, by stat: its definitions, whether somebody tests one of them by hand, and itself. */
static struct digest group_digest(const struct renewal *r, const struct group *group, const struct file_stat *own)
{
	struct buf all = {0};
	struct digest digest;

	buf_add(&all, r->context.bytes, DIGEST_BYTES);
	for (int i = 0; i < group->count; i++) {
		char name[512];

		snprintf(name, sizeof name, "test_%s.py", group->members[i]->name);
		buf_add(&all, group->members[i]->path, strlen(group->members[i]->path) + 1);
		add_stat(&all, &group->members[i]->stat);
		buf_text(&all, r->options->layout == LAYOUT_OP_TYPE && present_has(&r->present, name) ? "+" : "-");
	}
	add_stat(&all, own);
	digest = digest_of(all.data, all.length);
	buf_free(&all);
	return digest;
}

static bool is_near(int64_t stamp_ns, int64_t now_ns)
{
	int64_t window = stamp_ns % SECOND_NS == 0 ? 2 * (int64_t)SECOND_NS : NEAR_NS;

	return stamp_ns > now_ns - window;
}

/* Could a definition have been written again since it was read, without its stat showing it? */
static bool any_near(const struct group *group)
{
	struct timespec now;
	int64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
	for (int i = 0; i < group->count; i++)
		if (is_near(group->members[i]->stat.mtime_ns, ns) || is_near(group->members[i]->stat.ctime_ns, ns))
			return true;
	return false;
}

static void count_definitions(struct generated *out, const int counts[NOTE_COUNTS], int definitions)
{
	out->definitions += definitions;
	out->with_test += counts[0];
	out->hand_written += counts[1];
	out->stale += counts[2];
	out->without += counts[3];
}

static void note_fresh(struct renewal *r, const char *file, const struct digest *digest, const int counts[NOTE_COUNTS])
{
	struct note *note = &r->fresh.items[r->fresh.count++];

	*note = (struct note){.digest = *digest, .file = file};
	memcpy(note->counts, counts, sizeof note->counts);
}

/* What was noted still holds: nothing to do. */
bool renewal_noted(struct renewal *r, const struct group *group, const struct note *note)
{
	const struct file_stat own = own_stat(r, group->file);
	struct digest digest = group_digest(r, group, &own);

	if (r->options->force || r->options->print != NULL || !digest_equal(&digest, &note->digest) || any_near(group))
		return false;
	r->out->files += note->counts[0] > note->counts[1];
	r->out->current += note->counts[0] > note->counts[1];
	count_definitions(r->out, note->counts, group->count);
	note_fresh(r, group->file, &note->digest, note->counts);
	return true;
}

void renewal_keep_note(struct renewal *r, const struct note *note)
{
	note_fresh(r, note->file, &note->digest, note->counts);
}

/* ---- from definitions to classes --------------------------------------------------------------------------------- */

/* The definition, or NULL with the sentence told. */
static const struct definition *load(struct renewal *r, const struct dataset_file *file, struct arena *arena)
{
	struct err err = {""};
	const struct definition *definition = test_class_definition(r->dataset->fd, file, arena, &err);

	if (definition == NULL && !r->options->untold)
		renewal_tell(r, arena_string(r->arena, err.text));
	return definition;
}

/* The classes of a group. `old` is the file as it is, for what cannot be read; empty if that is not ours. */
static int make_classes(struct renewal *r, const struct group *group, const struct buf *old, struct test_class *classes,
			int counts[NOTE_COUNTS], struct arena *arena)
{
	size_t skip = old->length > 0 ? owned_body(old->data, old->length) : 0;
	int count = 0;

	for (int i = 0; i < group->count; i++) {
		const struct dataset_file *file = group->members[i];
		struct test_class *c = &classes[count];

		*c = (struct test_class){.name = file->name};
		if (r->options->layout == LAYOUT_OP_TYPE && !r->options->force &&
		    present_hand_written(&r->present, file->name)) {
			counts[0]++;
			counts[1]++;
			continue;
		}
		c->definition = load(r, file, arena);
		if (c->definition != NULL) {
			test_class_fill(c, r->reftest->kernels.face, arena);
			counts[0]++;
			count++;
			continue;
		}
		r->out->invalid++;
		bool kept = skip > 0 && test_file_class(old->data + skip, old->length - skip, file->name, &c->kept,
							&c->kept_length);

		counts[kept ? 2 : 3]++;
		count += kept;
	}
	return count;
}

static const char *about(const struct renewal *r, const struct group *group)
{
	if (r->options->layout == LAYOUT_DEFINITION)
		return group->members[0]->path;
	return arena_printf(r->arena, "definitions/%s", group->members[0]->op_type);
}

/* ---- what is not checked out here --------------------------------------------------------------------------------- */

static int by_name_of_file(const void *a, const void *b)
{
	char one[512], other[512];

	snprintf(one, sizeof one, "%s.json", ((const struct test_class *)a)->name);
	snprintf(other, sizeof other, "%s.json", ((const struct test_class *)b)->name);
	return strcmp(one, other);
}

/* Of a file and those that go with it. */
static const char *are(const struct renewal *r, int count)
{
	return count == 1 ? " is" : arena_printf(r->arena, " and %d more are", count - 1);
}

/* The remedy, and what it does. */
static const char *brings(const struct renewal *r, const char *folder, const char *file, int count)
{
	return arena_printf(r->arena, "%s checks %s out", sparse_remedy(&r->sparse, folder, file, r->arena),
			    count == 1 ? "it" : "them");
}

/* What git has of a group and this working tree lacks: its classes, where the file has them, take their places among the
 * others, and `lost` gets the sentence of what would go with them; NULL: there is none. -1 with a sentence. */
static int add_sparse(struct renewal *r, const struct group *group, const struct buf *old, struct test_class **classes,
                         int *count, const char **lost, struct arena *arena, struct err *err)
{
	size_t skip = owned_body(old->data, old->length);
	const struct sparse *s = &r->sparse;
	const struct dataset_file *first = NULL;
	int missing = 0;

	*lost = NULL;
	if (sparse_ask(&r->sparse, r->dataset, r->arena, err) < 0)
		return -1;
	struct test_class *all = arena_array(arena, (size_t)(*count + s->count), sizeof *all);

	memcpy(all, *classes, (size_t)*count * sizeof *all);
	for (int i = 0; i < s->count; i++) {
		const struct dataset_file *file = &s->definitions[i];
		struct test_class kept = {.name = file->name};
		bool known;

		if (strcmp(file->op_type, group->members[0]->op_type) != 0)
			continue;
		known = skip > 0 && test_file_class(old->data + skip, old->length - skip, file->name, &kept.kept,
		                                    &kept.kept_length);
		if (!known && (skip > 0 || r->options->layout == LAYOUT_DEFINITION))
			continue;
		if (known)
			all[(*count)++] = kept;
		first = missing++ == 0 ? file : first;
	}
	if (missing == 0)
		return 0;
	qsort(all, (size_t)*count, sizeof *all, by_name_of_file);
	*classes = all;
	*lost = arena_printf(r->arena, "%s%s is %s: %s%s in git and not checked out here, and %s tests would be lost; %s",
			     PRESENT_FOLDER, group->file, skip > 0 ? "out of date and left as it is" : "not written",
			     first->path, are(r, missing), missing == 1 ? "its" : "their",
			     brings(r, arena_printf(arena, "definitions/%s", first->op_type), first->path, missing));
	return 0;
}

static void note_one(struct some *some, const char *file)
{
	some->first = some->count++ == 0 ? file : some->first;
}

int renewal_may_write(struct renewal *r, const char *file, struct err *err)
{
	if (sparse_ask(&r->sparse, r->dataset, r->arena, err) < 0)
		return -1;
	if (!sparse_has_test(&r->sparse, file))
		return true;
	r->out->refused++;
	note_one(&r->unwritten, file);
	return false;
}

int renewal_may_remove(struct renewal *r, const char *file, struct err *err)
{
	if (sparse_ask(&r->sparse, r->dataset, r->arena, err) < 0)
		return -1;
	if (sparse_of_test(&r->sparse, file, r->arena) == NULL)
		return true;
	note_one(&r->untouched, file);
	return false;
}

/* Of files whose definitions are not here nothing was asked, so only `generate` speaks of them. */
void renewal_tell_sparse(struct renewal *r)
{
	const struct some *some = &r->unwritten;
	const char *folder = "tests/references";

	if (some->count > 0)
		renewal_tell(r, arena_printf(r->arena, "%s%s%s in git and not checked out here, so %s not written; %s",
					     PRESENT_FOLDER, some->first, are(r, some->count),
					     some->count == 1 ? "it is" : "they are",
					     brings(r, folder, arena_printf(r->arena, "%s/%s", folder, some->first),
						    some->count)));
	some = &r->untouched;
	if (some->count == 0 || r->options->untold)
		return;
	const struct dataset_file *file = sparse_of_test(&r->sparse, some->first, r->arena);

	folder = some->count == 1 ? arena_printf(r->arena, "definitions/%s", file->op_type) : "definitions";
	renewal_tell(r, arena_printf(r->arena,
				     "%s%s%s left as %s: what is tested there is in git and not checked out here; %s",
				     PRESENT_FOLDER, some->first, are(r, some->count),
				     some->count == 1 ? "it is" : "they are", brings(r, folder, file->path, 1)));
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

/* The diff hint that goes with a file that is left alone. */
static const char *hint(const struct renewal *r, const char *file)
{
	return arena_printf(
	    r->arena, "`reftest generate%s --print %s | diff %s%s -` shows how it differs, --force replaces it",
	    r->options->layout == LAYOUT_DEFINITION ? " --layout definition" : "", file, PRESENT_FOLDER, file);
}

/* Makes the file hold `text`, unless `lost` says what would be lost (NULL: nothing). Returns 1: it does (or would, with
 * `check`); 0: it was left alone; -1 with a sentence. */
static int settle(struct renewal *r, const char *file, const struct buf *text, enum file_answer there,
		  const struct buf *old, enum owner owner, const char *lost, struct err *err)
{
	bool same = there == FILE_OK && old->length == text->length && memcmp(old->data, text->data, text->length) == 0;

	if (same) {
		r->out->current++;
		return 1;
	}
	if (there == FILE_ERROR) { /* told when it was read */
		r->out->refused++;
		return 0;
	}
	if (there == FILE_OK && owner != OWNER_REFTEST && !r->options->force) {
		r->out->refused += owner == OWNER_EDITED || strcmp(file, "conftest.py") == 0;
		renewal_tell(r, arena_printf(r->arena,
					     owner == OWNER_EDITED
						 ? "%s%s was edited since reftest wrote it and is left as it is; %s"
						 : "%s%s was written by hand and is left as it is; %s",
					     PRESENT_FOLDER, file, hint(r, file)));
		return 0;
	}
	if (lost != NULL) {
		r->out->refused++;
		renewal_tell(r, lost);
		return 0;
	}
	r->out->written++;
	note_changed(r, file);
	renewal_tell(r, arena_printf(r->arena, "%s%s %s", PRESENT_FOLDER, file,
				     !r->options->check ? "written"
				     : there == FILE_OK ? "is out of date"
							: "is missing"));
	if (r->options->check)
		return 1;
	/* A file of which a power cut left only a part looks edited, and would be left alone for ever; and whether somebody
	 * has cut off its end cannot be told from that. So each is on the disk before it has its name, however many there
	 * are. A thousand cost a fraction of a second; writing them first and waiting for all at once saves little, for the
	 * disk is told to flush at each. */
	return file_replace(path_of(r, file), text->data, text->length, err) < 0 ? -1 : 1;
}

/* A file of ours that has nothing to hold any more. */
int renewal_remove(struct renewal *r, const char *file, struct err *err)
{
	r->out->removed++;
	note_changed(r, file);
	renewal_tell(r, arena_printf(r->arena, "%s%s %s: no definition belongs into it", PRESENT_FOLDER, file,
				     r->options->check ? "is to go" : "removed"));
	if (!r->options->check && unlink(path_of(r, file)) != 0 && errno != ENOENT)
		return err_errno(err, "%s%s cannot be removed", PRESENT_FOLDER, file);
	return 0;
}

/* Definitions of a file that stays as it is: somebody tests them, or, if it was ours, tests them as they were; one in
 * which nothing can be read tests none. */
static void count_left(bool readable, enum owner owner, int counts[NOTE_COUNTS], int definitions)
{
	memset(counts, 0, NOTE_COUNTS * sizeof *counts);
	if (!readable)
		counts[3] = definitions;
	else if (owner == OWNER_STRANGER)
		counts[0] = counts[1] = definitions;
	else
		counts[2] = definitions;
}

/* The class of that name in a file of ours; false: it has none. */
static bool has_class(const struct buf *file, const char *name, const char **class_text, size_t *length)
{
	size_t skip = file->length > 0 ? owned_body(file->data, file->length) : 0;

	return skip > 0 && test_file_class(file->data + skip, file->length - skip, name, class_text, length);
}

/* --check writes nothing, so that what counts is the file as it is: a class that it lacks tests nothing, and one that differs
 * is stale. */
static void count_there(const struct buf *old, const struct buf *text, const struct test_class *classes, int count,
			int counts[NOTE_COUNTS])
{
	for (int i = 0; i < count; i++) {
		const char *was, *is;
		size_t was_length, is_length;

		if (classes[i].definition == NULL)
			continue;
		if (!has_class(old, classes[i].name, &was, &was_length)) {
			counts[0]--;
			counts[3]++;
		} else if (!has_class(text, classes[i].name, &is, &is_length) || was_length != is_length ||
			   memcmp(was, is, is_length) != 0) {
			counts[0]--;
			counts[2]++;
		}
	}
}

static int print_file(struct renewal *r, const struct buf *text)
{
	fwrite(text->data, 1, text->length, stdout);
	r->out->printed = true;
	return 0;
}

/* Is `now` the stat of what was read, or of what was written since? Else somebody has edited the file meanwhile, and what was
 * noted of it would hide that for good. */
static bool is_what_we_know(const struct file_stat *read, const struct file_stat *now, bool wrote, size_t length)
{
	return wrote ? now->size == length : memcmp(read, now, sizeof *now) == 0;
}

/* The file with these classes; none is an empty text. */
static void write_text(const struct renewal *r, const struct group *group, const struct test_class *classes, int count,
                       struct buf *text)
{
	struct buf body = {0};

	buf_clear(text);
	if (count > 0) {
		test_file_write(about(r, group), classes, count, &body);
		owned_seal(text, body.data, body.length);
	}
	buf_free(&body);
}

/* Would `text` take away a class that the file has, or come where nobody can tell what the file had? */
static bool may_lose(const struct renewal *r, enum file_answer there, const struct buf *old, enum owner owner,
                     const struct buf *text)
{
	size_t skip = old->length > 0 ? owned_body(old->data, old->length) : 0;

	if (r->options->print != NULL || there == FILE_ERROR ||
	    (there == FILE_OK && owner != OWNER_REFTEST && !r->options->force))
		return false;
	return skip == 0 ? text->length > 0
			 : test_file_drops(old->data + skip, old->length - skip, text->data, text->length);
}

static int make_group(struct renewal *r, const struct group *group, struct arena *arena, struct err *err)
{
	struct test_class *classes = arena_array(arena, (size_t)group->count, sizeof *classes);
	struct buf old = {0}, text = {0};
	int counts[NOTE_COUNTS] = {0}, rc = -1, settled = 1, invalid = r->out->invalid, written = r->out->written;
	const struct file_stat first = own_stat(r, group->file);
	const char *lost = NULL;
	enum owner owner;
	enum file_answer there = read_old(r, group->file, &old, &owner);
	const struct buf none = {0};

	int count = make_classes(r, group, owner == OWNER_REFTEST ? &old : &none, classes, counts, arena);

	write_text(r, group, classes, count, &text);
	if (may_lose(r, there, &old, owner, &text)) {
		if (add_sparse(r, group, &old, &classes, &count, &lost, arena, err) < 0)
			goto done;
		if (lost != NULL)
			write_text(r, group, classes, count, &text);
	}
	if (count > 0) {
		r->out->files++;
		if (r->options->print != NULL) {
			rc = print_file(r, &text);
			goto done;
		}
		settled = settle(r, group->file, &text, there, &old, owner, lost, err);
	} else if (there == FILE_OK && owner == OWNER_REFTEST && r->options->print == NULL) {
		settled = renewal_remove(r, group->file, err) < 0 ? -1 : 1;
	}
	if (settled < 0)
		goto done;
	if (settled == 0)
		count_left(there == FILE_OK && old.length > 0, owner, counts, group->count);
	else if (r->options->check)
		count_there(&old, &text, classes, count, counts);
	count_definitions(r->out, counts, group->count);
	rc = 0;
	if (!r->options->check && settled == 1 && r->out->invalid == invalid && !any_near(group)) {
		const struct file_stat now = own_stat(r, group->file);
		struct digest digest = group_digest(r, group, &now);

		if (is_what_we_know(&first, &now, r->out->written > written, text.length))
			note_fresh(r, group->file, &digest, counts);
	}
done:
	buf_free(&old);
	buf_free(&text);
	return rc;
}

int renewal_of(struct renewal *r, const struct group *group, struct err *err)
{
	struct arena arena = {0};
	int rc = make_group(r, group, &arena, err);

	arena_free(&arena);
	return rc;
}

int renewal_conftest(struct renewal *r, struct err *err)
{
	struct buf old = {0}, body = {0}, text = {0};
	enum owner owner;
	enum file_answer there = read_old(r, "conftest.py", &old, &owner);
	int rc;

	template_conftest(&body);
	owned_seal(&text, body.data, body.length);
	r->out->files++;
	if (r->options->print != NULL)
		rc = print_file(r, &text);
	else if (there == FILE_ABSENT && (rc = renewal_may_write(r, "conftest.py", err)) <= 0)
		;
	else
		rc = settle(r, "conftest.py", &text, there, &old, owner, NULL, err);
	buf_free(&old);
	buf_free(&body);
	buf_free(&text);
	return rc < 0 ? -1 : 0;
}
