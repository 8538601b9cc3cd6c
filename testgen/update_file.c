#include "testgen/update_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/settings.h"
#include "testgen/file_tolerances.h"
#include "testgen/support_files.h"
#include "testgen/test_class.h"
#include "testgen/test_file.h"

/* If a file changes twice within NEAR_NS, the second change may leave all its timestamps the same, because the clock of
 * a filesystem may advance only every 10 ms. If a timestamp has no fraction of a second, the limit is two seconds,
 * because some filesystems store only whole seconds. */
enum { NEAR_NS = 100 * 1000000, SECOND_NS = 1000000000 };

/* ---- telling ---------------------------------------------------------------------------------------------------- */

void update_file_report(struct file_update *r, const char *sentence)
{
	string_list_add(&r->messages, sentence);
	string_list_add(&r->problems, sentence);
}

static void note_changed(struct file_update *r, const char *file)
{
	string_list_add(&r->changed, arena_printf(r->arena, "%s%s", TESTS_FOLDER, file));
}

static char *path_of(const struct file_update *r, const char *file)
{
	return arena_printf(r->arena, "%s/%s%s", r->program->root, TESTS_FOLDER, file);
}

static bool has_file(const char *const *paths, int count, const char *file)
{
	for (int i = 0; i < count; i++)
		if (strcmp(paths[i] + sizeof TESTS_FOLDER - 1, file) == 0)
			return true;
	return false;
}

/* Returns whether the file is a hand-written test file in which no test can fail. */
static bool is_vacuous(const struct file_update *r, const char *file)
{
	return has_file(r->options->vacuous, r->options->vacuous_count, file);
}

static bool is_removed(const struct file_update *r, const char *file)
{
	return has_file(r->options->removed, r->options->removed_count, file);
}

/* Reads the current file. If a file cannot be read, reports this and leaves the file unchanged; the other files are
 * still processed. */
static enum file_answer read_old(struct file_update *r, const char *file, struct buf *bytes, enum owner *owner)
{
	struct err err = {""};

	if (is_removed(r, file)) {
		*owner = OWNER_USER;
		return FILE_ABSENT;
	}
	enum file_answer answer = test_list_read(&r->test_list, file, bytes, owner, &err);

	if (answer == FILE_ERROR)
		update_file_report(r, arena_printf(r->arena, "%s; the file was not changed", err.text));
	return answer;
}

/* ---- records of the last update --------------------------------------------------------------------------------- */

static void add_stat(struct buf *all, const struct file_stat *stat)
{
	buf_add(all, stat, sizeof *stat);
}

/* Returns the stat() result of a generated file; all fields are 0 if the file does not exist. */
static struct file_stat own_stat(const struct file_update *r, const char *file)
{
	struct stat st;

	return fstatat(r->dataset->fd, arena_printf(r->arena, "%s%s", TESTS_FOLDER, file), &st, 0) == 0
		   ? file_stat_of(&st)
		   : (struct file_stat){0};
}

/* Returns a digest of everything on which a generated file depends: r->context, the stat() results of its definitions
 * and of the file itself, and which of the definitions have a test file of their own. */
static struct digest group_digest(const struct file_update *r, const struct group *group, const struct file_stat *own)
{
	struct buf all = {0};
	struct digest digest;

	buf_add(&all, r->context.bytes, DIGEST_BYTES);
	for (int i = 0; i < group->count; i++) {
		char name[512];

		snprintf(name, sizeof name, "test_%s.py", group->members[i]->name);
		buf_add(&all, group->members[i]->path, strlen(group->members[i]->path) + 1);
		add_stat(&all, &group->members[i]->stat);
		buf_text(&all, r->options->layout == LAYOUT_OP_TYPE && test_list_has(&r->test_list, name) ? "+" : "-");
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

/* Returns whether a definition of the group was changed so recently that a further change may leave its stat() result
 * the same. */
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

static void count_definitions(struct update_result *out, const int counts[NOTE_COUNTS], int definitions)
{
	out->definitions += definitions;
	out->with_test += counts[0];
	out->hand_written += counts[1];
	out->stale += counts[2];
	out->without += counts[3];
}

static void note_fresh(struct file_update *r, const char *file, const struct digest *digest,
		       const int counts[NOTE_COUNTS])
{
	struct note *note = &r->fresh.items[r->fresh.count++];

	*note = (struct note){.digest = *digest, .file = file};
	memcpy(note->counts, counts, sizeof note->counts);
}

bool update_file_noted(struct file_update *r, const struct group *group, const struct note *note)
{
	const struct file_stat own = own_stat(r, group->file);
	struct digest digest = group_digest(r, group, &own);

	/* A record does not say whether its file is in the lists of removed or vacuous files. Therefore no record is
	 * used if there are removed files, and no record of hand-written files is used if there are vacuous files. */
	if (r->options->removed_count > 0 || (r->options->vacuous_count > 0 && note->counts[1] > 0))
		return false;
	if (r->options->force || r->options->tolerances != NULL || r->options->print != NULL || !digest_equal(&digest, &note->digest) || any_near(group))
		return false;
	r->out->files += note->counts[0] > note->counts[1];
	r->out->current += note->counts[0] > note->counts[1];
	count_definitions(r->out, note->counts, group->count);
	note_fresh(r, group->file, &note->digest, note->counts);
	return true;
}

void update_file_keep_note(struct file_update *r, const struct note *note)
{
	note_fresh(r, note->file, &note->digest, note->counts);
}

/* ---- from definitions to classes --------------------------------------------------------------------------------- */

/* Loads a definition. On error, returns NULL and reports the error. Also returns NULL, and sets `unverifiable`, if no
 * case of the definition can run. */
static const struct definition *load(struct file_update *r, const struct dataset_file *file, bool *unverifiable,
				     struct arena *arena)
{
	struct err err = {""};
	const struct definition *definition = test_class_definition(r->dataset->fd, file, arena, &err);

	*unverifiable = definition != NULL && definition->unverifiable != NULL;
	if (*unverifiable) {
		err_set(&err, "no test: %s", definition->unverifiable);
		definition = NULL;
	}
	if (definition == NULL && !r->options->quiet)
		update_file_report(r, arena_string(r->arena, err.text));
	return definition;
}

/* Builds the classes of a group. If a definition cannot be read, keeps its class from `old`, the text of the current
 * file (empty if reftest did not write the file). */
static int make_classes(struct file_update *r, const struct group *group, const struct buf *old,
			struct test_class *classes, int counts[NOTE_COUNTS], struct arena *arena)
{
	size_t skip = old->length > 0 ? owned_body(old->data, old->length) : 0;
	int count = 0;

	for (int i = 0; i < group->count; i++) {
		const struct dataset_file *file = group->members[i];
		const char *own = arena_printf(arena, "test_%s.py", file->name);
		struct test_class *c = &classes[count];

		*c = (struct test_class){.name = file->name};
		if (r->options->layout == LAYOUT_OP_TYPE && !r->options->force &&
		    test_list_hand_written(&r->test_list, file->name) && !is_removed(r, own)) {
			bool vacuous = is_vacuous(r, own);

			counts[0] += !vacuous;
			counts[1] += !vacuous;
			counts[3] += vacuous;
			continue;
		}
		bool unverifiable = false;

		c->definition = load(r, file, &unverifiable, arena);
		if (c->definition != NULL) {
			test_class_fill(c, r->program->kernels.api, r->program->settings->by_dtype, arena);
			counts[0]++;
			count++;
			continue;
		}
		if (unverifiable) {
			counts[3]++;
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

static const char *about(const struct file_update *r, const struct group *group)
{
	if (r->options->layout == LAYOUT_DEFINITION)
		return group->members[0]->path;
	return arena_printf(r->arena, "definitions/%s", group->members[0]->op_type);
}

/* ---- definitions that are not checked out ----------------------------------------------------------------------- */

static int by_name_of_file(const void *a, const void *b)
{
	char one[512], other[512];

	snprintf(one, sizeof one, "%s.json", ((const struct test_class *)a)->name);
	snprintf(other, sizeof other, "%s.json", ((const struct test_class *)b)->name);
	return strcmp(one, other);
}

/* Returns the words that follow the name of the first file in a message about `count` files: " is" or " and 2 more
 * are". */
static const char *are(const struct file_update *r, int count)
{
	return count == 1 ? " is" : arena_printf(r->arena, " and %d more are", count - 1);
}

/* Returns a clause for a message, with the command that checks out the files: "`git sparse-checkout add …` checks them
 * out". */
static const char *brings(const struct file_update *r, const char *folder, const char *file, int count)
{
	return arena_printf(r->arena, "%s checks %s out", sparse_remedy(&r->sparse, folder, file, r->arena),
			    count == 1 ? "it" : "them");
}

/* Adds the old classes of definitions that are in git but not checked out, and sorts all classes by the file names of
 * their definitions. If there are such definitions, sets `lost` to the message that writing the file would delete their
 * tests. Otherwise sets `lost` to NULL. Returns -1 and sets `err` on error. */
static int add_sparse(struct file_update *r, const struct group *group, const struct buf *old,
		      struct test_class **classes, int *count, const char **lost, struct arena *arena, struct err *err)
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
	*lost =
	    arena_printf(r->arena, "%s%s is %s: %s%s in git but not checked out here, so writing the file would delete "
				   "%s tests; %s",
			 TESTS_FOLDER, group->file, skip > 0 ? "out of date and left unchanged" : "not written",
			 first->path, are(r, missing), missing == 1 ? "its" : "their",
			 brings(r, arena_printf(arena, "definitions/%s", first->op_type), first->path, missing));
	return 0;
}

static void note_one(struct mentioned_files *some, const char *file)
{
	some->first = some->count++ == 0 ? file : some->first;
}

int update_file_may_write(struct file_update *r, const char *file, struct err *err)
{
	if (sparse_ask(&r->sparse, r->dataset, r->arena, err) < 0)
		return -1;
	if (!sparse_marks_test(&r->sparse, file))
		return true;
	r->out->refused++;
	note_one(&r->unwritten, file);
	return false;
}

int update_file_may_remove(struct file_update *r, const char *file, struct err *err)
{
	if (sparse_ask(&r->sparse, r->dataset, r->arena, err) < 0)
		return -1;
	if (sparse_of_test(&r->sparse, file, r->arena) == NULL)
		return true;
	note_one(&r->untouched, file);
	return false;
}

/* If options.quiet is set, does not report the files that were kept because their definitions are not checked out. */
void update_file_report_sparse(struct file_update *r)
{
	const struct mentioned_files *some = &r->unwritten;
	const char *folder = "tests/references";

	if (some->count > 0)
		update_file_report(
		    r, arena_printf(
			   r->arena, "%s%s%s in git but not checked out here, so %s not written; %s", TESTS_FOLDER,
			   some->first, are(r, some->count), some->count == 1 ? "it is" : "they are",
			   brings(r, folder, arena_printf(r->arena, "%s/%s", folder, some->first), some->count)));
	some = &r->untouched;
	if (some->count == 0 || r->options->quiet)
		return;
	const struct dataset_file *file = sparse_of_test(&r->sparse, some->first, r->arena);

	folder = some->count == 1 ? arena_printf(r->arena, "definitions/%s", file->op_type) : "definitions";
	update_file_report(
	    r, arena_printf(r->arena, "%s%s%s left unchanged: the definitions tested there are in git but not checked out "
				      "here; %s",
			    TESTS_FOLDER, some->first, are(r, some->count), brings(r, folder, file->path, 1)));
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

/* Returns a clause for a message about a file that was left unchanged. The clause names the command that compares the
 * file with the generated text. */
static const char *hint(const struct file_update *r, const char *file)
{
	return arena_printf(
	    r->arena,
	    "`reftest generate%s --print %s | diff %s%s -` shows the difference, and --force replaces the file",
	    r->options->layout == LAYOUT_DEFINITION ? " --layout definition" : "", file, TESTS_FOLDER, file);
}

/* Returns whether the text is from an old version of reftest, which wrote helper functions above the classes. The tests
 * of such a file call functions that the current conftest.py lacks. */
static bool is_outdated(const char *text, size_t length)
{
	static const char line[] = "\n    GROUND_TRUTHS = (";

	return memmem(text, length, line, sizeof line - 1) != NULL;
}

/* Returns whether an older version of reftest generated the class. A class from an older version contains the tests
 * themselves, and uses modules that a file from this version does not import. */
static bool is_older_class(const char *text, size_t length)
{
	static const char base[] = "(conftest.DefinitionTests):\n";

	return memmem(text, length, base, sizeof base - 1) == NULL;
}

static void report_left(struct file_update *r, const char *file, const struct buf *old, enum owner owner)
{
	const char *state = "was written by hand and is left unchanged";

	if (owner == OWNER_EDITED)
		state = "has been edited since reftest wrote it, and is left unchanged";
	if (owner == OWNER_EDITED && is_test_file(file) && is_outdated(old->data, old->length))
		state = "has been edited since an older reftest wrote it, and is left unchanged; its tests do not run with the "
			"conftest.py of this version: move your tests to another file";
	update_file_report(r, arena_printf(r->arena, "%s%s %s; %s", TESTS_FOLDER, file, state, hint(r, file)));
}

/* Writes `text` to the file if the file may be replaced. `lost` is NULL, or a message that says that `text` would
 * delete tests. If there is a message, reports it and leaves the file unchanged. Returns 1 if the file now has the new
 * text, or would have it without `check`. Returns 0 if the file was left unchanged. Returns -1 and sets `err` on
 * error. */
static int settle(struct file_update *r, const char *file, const struct buf *text, enum file_answer there,
		  const struct buf *old, enum owner owner, const char *lost, struct err *err)
{
	bool same = there == FILE_OK && old->length == text->length && memcmp(old->data, text->data, text->length) == 0;

	if (same) {
		r->out->current++;
		return 1;
	}
	if (there == FILE_ERROR) { /* read_old has already reported the error */
		r->out->refused++;
		return 0;
	}
	if (there == FILE_OK && owner != OWNER_REFTEST && !r->options->force) {
		r->out->refused += owner == OWNER_EDITED || !is_test_file(file);
		report_left(r, file, old, owner);
		return 0;
	}
	if (lost != NULL) {
		r->out->refused++;
		update_file_report(r, lost);
		return 0;
	}
	r->out->written++;
	note_changed(r, file);
	string_list_add(&r->messages, arena_printf(r->arena, "%s%s %s", TESTS_FOLDER, file,
						   !r->options->check ? "written"
						   : there == FILE_OK ? "is out of date"
								      : "is missing"));
	if (r->options->check)
		return 1;
	/* Each new file is synced before it is renamed. Otherwise a power failure could leave a truncated file, which
	 * would look like an edited file and would never be replaced. Syncing a thousand files takes a fraction of a
	 * second. A single sync after all writes would save little time, because the disk flushes its cache for each
	 * file anyway. */
	return file_replace(path_of(r, file), text->data, text->length, err) < 0 ? -1 : 1;
}

int update_file_remove(struct file_update *r, const char *file, const char *why, struct err *err)
{
	r->out->removed++;
	note_changed(r, file);
	string_list_add(&r->messages, arena_printf(r->arena, "%s%s %s: %s", TESTS_FOLDER, file,
						   r->options->check ? "must be removed" : "removed", why));
	if (!r->options->check && unlink(path_of(r, file)) != 0 && errno != ENOENT)
		return err_errno(err, "cannot remove %s%s", TESTS_FOLDER, file);
	return 0;
}

/* Returns whether a hand-written file may contain a test of this definition. A file that contains the word
 * "definitions" may read the folder of definitions and test all of them. */
static bool is_about(const struct buf *text, const struct group *group, int member)
{
	static const char folder[] = "definitions";
	const char *name = group->members[member]->name;

	return group->count == 1 || memmem(text->data, text->length, folder, sizeof folder - 1) != NULL ||
	       memmem(text->data, text->length, name, strlen(name)) != NULL;
}

/* Counts the definitions whose test file is hand-written. A definition counts as one with a hand-written test if the
 * file may test it and a test in the file can fail. Any other definition counts as one without a test. */
static void count_hand_written(const struct file_update *r, const struct group *group, const struct buf *text,
			       int counts[NOTE_COUNTS])
{
	bool vacuous = is_vacuous(r, group->file);

	for (int i = 0; i < group->count; i++) {
		bool tested = !vacuous && is_about(text, group, i);

		counts[0] += tested;
		counts[1] += tested;
		counts[3] += !tested;
	}
}

/* Counts the definitions of a file that is left unchanged. If reftest wrote the file, the definitions count as stale.
 * If the file cannot be read, the definitions count as definitions without a test. */
static void count_left(const struct file_update *r, const struct group *group, bool readable, enum owner owner,
		       const struct buf *text, int counts[NOTE_COUNTS])
{
	memset(counts, 0, NOTE_COUNTS * sizeof *counts);
	if (!readable)
		counts[3] = group->count;
	else if (owner == OWNER_USER)
		count_hand_written(r, group, text, counts);
	else
		counts[2] = group->count;
}

/* Finds the class of the definition `name` in a generated file. Returns false if there is no such class. */
static bool has_class(const struct buf *file, const char *name, const char **class_text, size_t *length)
{
	size_t skip = file->length > 0 ? owned_body(file->data, file->length) : 0;

	return skip > 0 && test_file_class(file->data + skip, file->length - skip, name, class_text, length);
}

/* Counts definitions for --check, which writes nothing. A definition counts as one without a test if the current file
 * has no class for it, and as stale if this class differs from the class that an update would write. */
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

static int print_file(struct file_update *r, const struct buf *text)
{
	fwrite(text->data, 1, text->length, stdout);
	r->out->printed = true;
	return 0;
}

/* Returns whether the file is unchanged since reftest read or wrote it; `now` is its current stat() result. A changed
 * file must not get a record, because the next update would then not notice that a user has edited the file. */
static bool is_known_stat(const struct file_stat *read, const struct file_stat *now, bool wrote, size_t length)
{
	return wrote ? now->size == length : memcmp(read, now, sizeof *now) == 0;
}

/* Adds bounds to the body of a file: those of the option --tolerance or, without this option, those in the current
 * file. */
static void add_tolerances(const struct file_update *r, const struct buf *old, struct buf *body)
{
	size_t skip = old->length > 0 ? owned_body(old->data, old->length) : 0;
	const char *tuple = NULL;
	struct buf asked = {0};

	if (r->options->tolerances != NULL) {
		file_tolerances_write(r->options->tolerances, &asked);
		file_tolerances_insert(asked.data, asked.length, body);
	} else if (skip > 0) {
		size_t length = file_tolerances_find(old->data + skip, old->length - skip, &tuple);

		file_tolerances_insert(tuple, length, body);
	}
	buf_free(&asked);
}

/* Writes the text of a file with these classes to `text`. If there are no classes, `text` is empty. `old` is the text
 * of the current file (empty if reftest did not write the file). */
static void write_text(const struct file_update *r, const struct group *group, const struct test_class *classes,
		       int count, const struct buf *old, struct buf *text)
{
	struct buf body = {0};

	buf_clear(text);
	if (count > 0) {
		test_file_write(about(r, group), classes, count, &body);
		add_tolerances(r, old, &body);
		owned_seal(text, body.data, body.length);
	}
	buf_free(&body);
}

/* Returns whether writing `text` may delete tests of a definition. This is the case if `text` lacks a class of the
 * current file. It may also be the case if the current file is missing or was not written by reftest: the file then
 * does not show which classes are needed. */
static bool may_lose(const struct file_update *r, enum file_answer there, const struct buf *old, enum owner owner,
		     const struct buf *text)
{
	size_t skip = old->length > 0 ? owned_body(old->data, old->length) : 0;

	if (r->options->print != NULL || there == FILE_ERROR ||
	    (there == FILE_OK && owner != OWNER_REFTEST && !r->options->force))
		return false;
	return skip == 0 ? text->length > 0
			 : test_file_drops(old->data + skip, old->length - skip, text->data, text->length);
}

/* Returns a message if one of the classes to write was generated by an older version of reftest; else NULL. */
static const char *outdated_class(const struct file_update *r, const struct group *group, const struct test_class *classes,
				  int count)
{
	for (int i = 0; i < count; i++)
		if (classes[i].definition == NULL && is_older_class(classes[i].kept, classes[i].kept_length))
			return arena_printf(r->arena,
					    "%s%s is out of date and left unchanged: the class of %s is from an older "
					    "reftest, and its definition is missing here or invalid",
					    TESTS_FOLDER, group->file, classes[i].name);
	return NULL;
}

static int make_group(struct file_update *r, const struct group *group, struct arena *arena, struct err *err)
{
	struct test_class *classes = arena_array(arena, (size_t)group->count, sizeof *classes);
	struct buf old = {0}, text = {0};
	int counts[NOTE_COUNTS] = {0}, rc = -1, settled = 1, invalid = r->out->invalid, written = r->out->written;
	const struct file_stat first = own_stat(r, group->file);
	const char *lost = NULL;
	enum owner owner;
	enum file_answer there = read_old(r, group->file, &old, &owner);
	const struct buf none = {0}, *own = owner == OWNER_REFTEST ? &old : &none;

	int count = make_classes(r, group, own, classes, counts, arena);

	write_text(r, group, classes, count, own, &text);
	if (may_lose(r, there, &old, owner, &text)) {
		if (add_sparse(r, group, &old, &classes, &count, &lost, arena, err) < 0)
			goto done;
		if (lost != NULL)
			write_text(r, group, classes, count, own, &text);
	}
	if (lost == NULL)
		lost = outdated_class(r, group, classes, count);
	if (count > 0) {
		r->out->files++;
		if (r->options->print != NULL) {
			rc = print_file(r, &text);
			goto done;
		}
		settled = settle(r, group->file, &text, there, &old, owner, lost, err);
	} else if (there == FILE_OK && owner == OWNER_REFTEST && r->options->print == NULL) {
		settled =
		    update_file_remove(r, group->file, "no definition belongs to this file", err) < 0 ? -1 : 1;
	}
	if (settled < 0)
		goto done;
	if (settled == 0)
		count_left(r, group, there == FILE_OK && old.length > 0, owner, &old, counts);
	else if (r->options->check)
		count_there(&old, &text, classes, count, counts);
	count_definitions(r->out, counts, group->count);
	rc = 0;
	if (!r->options->check && settled == 1 && r->out->invalid == invalid && !any_near(group)) {
		const struct file_stat now = own_stat(r, group->file);
		struct digest digest = group_digest(r, group, &now);

		if (is_known_stat(&first, &now, r->out->written > written, text.length))
			note_fresh(r, group->file, &digest, counts);
	}
done:
	buf_free(&old);
	buf_free(&text);
	return rc;
}

int update_file_of(struct file_update *r, const struct group *group, struct err *err)
{
	struct arena arena = {0};
	int rc = make_group(r, group, &arena, err);

	arena_free(&arena);
	return rc;
}

int update_file_shipped(struct file_update *r, int index, struct err *err)
{
	const char *file = shipped_name(index);
	struct buf old = {0}, body = {0}, text = {0};
	enum owner owner;
	enum file_answer there = read_old(r, file, &old, &owner);
	int rc;

	shipped_text(index, &body);
	owned_seal(&text, body.data, body.length);
	r->out->files++;
	if (r->options->print != NULL)
		rc = print_file(r, &text);
	else if (there == FILE_ABSENT && (rc = update_file_may_write(r, file, err)) <= 0)
		;
	else
		rc = settle(r, file, &text, there, &old, owner, NULL, err);
	buf_free(&old);
	buf_free(&body);
	buf_free(&text);
	return rc < 0 ? -1 : 0;
}
