#include "commands/generated.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "artifacts/audit.h"
#include "artifacts/owned.h"
#include "artifacts/python.h"
#include "artifacts/templates.h"
#include "artifacts/test_file.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "commands/notes.h"
#include "commands/test_class.h"

static const char folder[] = "tests/references/";
/* A file whose time stamps are this near to now may be written again without their showing it (ticks are 10 ms at most;
 * stamps of whole seconds come from a file system that has no finer ones). */
enum {
	FILE_BYTES = 64 << 20,
	NEAR_NS = 100 * 1000000,
	SECOND_NS = 1000000000,
	SYNCED_FILES = 64, /* a sync takes some milliseconds */
	AUDIT_BYTES = 1 << 20 /* no file that a person wrote has more */
};

/* One file that there should be, and the definitions that belong into it. */
struct group {
	const char *file; /* "test_rmsnorm.py" */
	const struct dataset_file *const *members;
	int count;
};

struct updater {
	struct reftest *reftest;
	const struct dataset *dataset;
	const struct generated_options *options;
	struct arena *arena;
	struct generated *out;
	const char **present; /* names in tests/references, sorted */
	int present_count;
	struct notes notes; /* of the last update */
	struct notes fresh; /* of this one */
	struct digest context;
	int told_room, changed_room;
};

/* ---- telling ---------------------------------------------------------------------------------------------------- */

static void append(struct updater *u, const char ***list, int *count, int *room, const char *text)
{
	if (*count == *room) {
		const char **more = arena_array(u->arena, (size_t)*room * 2 + 16, sizeof *more);

		if (*count > 0)
			memcpy(more, *list, (size_t)*count * sizeof *more);
		*list = more;
		*room = *room * 2 + 16;
	}
	(*list)[(*count)++] = text;
}

static void tell(struct updater *u, const char *sentence)
{
	append(u, &u->out->told, &u->out->told_count, &u->told_room, sentence);
}

static void note_changed(struct updater *u, const char *file)
{
	append(u, &u->out->changed, &u->out->changed_count, &u->changed_room,
	       arena_printf(u->arena, "%s%s", folder, file));
}

static char *path_of(const struct updater *u, const char *file)
{
	return arena_printf(u->arena, "%s/%s%s", u->reftest->root, folder, file);
}

/* ---- what is there ---------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_test_name(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, "test_", 5) == 0 && length > 8 && strcmp(name + length - 3, ".py") == 0;
}

/* Folders that are symbolic links would let a dataset say where else on this machine files are written. */
static int refuse_links(const struct updater *u, struct err *err)
{
	static const char *const parts[] = {"tests", "tests/references"};

	for (int i = 0; i < 2; i++) {
		struct stat st;

		if (fstatat(u->dataset->fd, parts[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
			return err_set(
			    err,
			    "%s/%s is no folder of the dataset but a link or a file: generated tests go into a real "
			    "folder of that name",
			    u->reftest->root, parts[i]);
	}
	return 0;
}

static int list_present(struct updater *u, struct err *err)
{
	int fd = openat(u->dataset->fd, "tests/references", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), room = 0;
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

	if (directory == NULL) {
		bool absent = errno == ENOENT;

		if (fd >= 0)
			close(fd);
		return absent ? 0 : err_errno(err, "%s/%s cannot be read", u->reftest->root, folder);
	}
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
		if (!is_test_name(entry->d_name))
			continue;
		if (u->present_count == room) {
			const char **more = arena_array(u->arena, (size_t)room * 2 + 64, sizeof *more);

			if (room > 0)
				memcpy(more, u->present, (size_t)room * sizeof *more);
			u->present = more;
			room = room * 2 + 64;
		}
		u->present[u->present_count++] = arena_string(u->arena, entry->d_name);
	}
	closedir(directory);
	if (u->present_count > 1)
		qsort(u->present, (size_t)u->present_count, sizeof *u->present, by_text);
	return 0;
}

static bool is_present(const struct updater *u, const char *file)
{
	return u->present_count > 0 &&
	       bsearch(&file, u->present, (size_t)u->present_count, sizeof *u->present, by_text) != NULL;
}

/* FILE_OK with bytes and owner. An empty file is what a crash leaves of one that was being written: nobody's work. */
static enum file_answer read_present(const struct updater *u, const char *file, struct buf *bytes, enum owner *owner,
				     struct err *err)
{
	char *path = arena_printf(u->arena, "%s%s", folder, file);
	enum file_answer answer = file_read(u->dataset->fd, path, FILE_BYTES, bytes, NULL, err);

	*owner = OWNER_REFTEST;
	if (answer == FILE_OK && bytes->length > 0)
		*owner = owned_by(bytes->data, bytes->length);
	return answer;
}

/* Is there a test of this definition alone that somebody wrote? */
static bool is_hand_written(const struct updater *u, const char *name)
{
	const char *file = arena_printf(u->arena, "test_%s.py", name);
	struct buf bytes = {0};
	enum owner owner;
	bool found =
	    is_present(u, file) && read_present(u, file, &bytes, &owner, NULL) == FILE_OK && owner != OWNER_REFTEST;

	buf_free(&bytes);
	return found;
}

/* ---- notes of the last update ----------------------------------------------------------------------------------- */

static void add_stat(struct buf *all, const struct file_stat *stat)
{
	buf_add(all, stat, sizeof *stat);
}

/* Over all that a file depends on, by stat: its definitions, whether somebody tests one of them by hand, and itself. */
static struct digest group_digest(const struct updater *u, const struct group *group)
{
	struct file_stat own = {0};
	struct buf all = {0};
	struct digest digest;
	struct stat st;

	buf_add(&all, u->context.bytes, DIGEST_BYTES);
	for (int i = 0; i < group->count; i++) {
		char name[512];

		snprintf(name, sizeof name, "test_%s.py", group->members[i]->name);
		buf_add(&all, group->members[i]->path, strlen(group->members[i]->path) + 1);
		add_stat(&all, &group->members[i]->stat);
		buf_text(&all, u->options->layout == LAYOUT_OP_TYPE && is_present(u, name) ? "+" : "-");
	}
	if (fstatat(u->dataset->fd, arena_printf(u->arena, "%s%s", folder, group->file), &st, 0) == 0)
		own = file_stat_of(&st);
	add_stat(&all, &own);
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

static void note_fresh(struct updater *u, const char *file, const struct digest *digest, const int counts[NOTE_COUNTS])
{
	struct note *note = &u->fresh.items[u->fresh.count++];

	*note = (struct note){.digest = *digest, .file = file};
	memcpy(note->counts, counts, sizeof note->counts);
}

/* ---- from definitions to classes --------------------------------------------------------------------------------- */

/* The definition, or NULL with the sentence told. */
static const struct definition *load(struct updater *u, const struct dataset_file *file, struct arena *arena)
{
	const struct definition *definition = NULL;
	struct buf bytes = {0};
	struct err err = {""};
	enum file_answer answer = file_read(u->dataset->fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err);

	if (answer == FILE_OK)
		definition = definition_load(file->path, file->op_type, file->name, bytes.length > 0 ? bytes.data : "",
					     bytes.length, arena, &err);
	else if (answer == FILE_ABSENT)
		err_set(&err, "%s: the file has gone", file->path);
	buf_free(&bytes);
	if (definition == NULL && !u->options->untold)
		tell(u, arena_string(u->arena, err.text));
	return definition;
}

/* The classes of a group. `old` is the file as it is, for what cannot be read; empty if that is not ours. */
static int make_classes(struct updater *u, const struct group *group, const struct buf *old, struct test_class *classes,
			int counts[NOTE_COUNTS], struct arena *arena)
{
	size_t skip = old->length > 0 ? owned_body(old->data, old->length) : 0;
	int count = 0;

	for (int i = 0; i < group->count; i++) {
		const struct dataset_file *file = group->members[i];
		struct test_class *c = &classes[count];

		*c = (struct test_class){.name = file->name};
		if (u->options->layout == LAYOUT_OP_TYPE && !u->options->force && is_hand_written(u, file->name)) {
			counts[0]++;
			counts[1]++;
			continue;
		}
		c->definition = load(u, file, arena);
		if (c->definition != NULL) {
			test_class_fill(c, u->reftest->kernels.face, arena);
			counts[0]++;
			count++;
			continue;
		}
		u->out->invalid++;
		bool kept = skip > 0 && test_file_class(old->data + skip, old->length - skip, file->name, &c->kept,
							&c->kept_length);

		counts[kept ? 2 : 3]++;
		count += kept;
	}
	return count;
}

static const char *about(const struct updater *u, const struct group *group)
{
	if (u->options->layout == LAYOUT_DEFINITION)
		return group->members[0]->path;
	return arena_printf(u->arena, "definitions/%s", group->members[0]->op_type);
}

/* ---- one file --------------------------------------------------------------------------------------------------- */

/* The diff hint that goes with a file that is left alone. */
static const char *hint(const struct updater *u, const char *file)
{
	return arena_printf(u->arena,
			    "`reftest generate%s --print %s | diff %s%s -` shows how it differs, --force replaces it",
			    u->options->layout == LAYOUT_DEFINITION ? " --layout definition" : "", file, folder, file);
}

/* A file of which a power cut left only a part looks edited, and would be left alone for ever; and whether somebody has cut
 * off its end cannot be told from that. So each is on the disk before it has its name. Not so the rest of a great many, that
 * only `generate` in a new layout or of a new version writes: there `--force` is what helps whom the power fails at it. */
static int write_file(const struct updater *u, const char *file, const struct buf *text, struct err *err)
{
	return (u->out->written <= SYNCED_FILES ? file_replace : file_replace_soon)(path_of(u, file), text->data,
										     text->length, err);
}

/* Makes the file hold `text`. `group` NULL: conftest.py. Returns 1: it does (or would, with `check`); 0: it was left
 * alone; -1 with a sentence. */
static int settle(struct updater *u, const char *file, const struct buf *text, enum file_answer there,
		  const struct buf *old, enum owner owner, struct err *err)
{
	bool same = there == FILE_OK && old->length == text->length && memcmp(old->data, text->data, text->length) == 0;

	if (same) {
		u->out->current++;
		return 1;
	}
	if (there == FILE_OK && owner != OWNER_REFTEST && !u->options->force) {
		u->out->refused += owner == OWNER_EDITED || strcmp(file, "conftest.py") == 0;
		tell(u, arena_printf(u->arena,
				     owner == OWNER_EDITED
					 ? "%s%s was edited since reftest wrote it and is left as it is; %s"
					 : "%s%s was written by hand and is left as it is; %s",
				     folder, file, hint(u, file)));
		return 0;
	}
	u->out->written++;
	note_changed(u, file);
	tell(u, arena_printf(u->arena, "%s%s %s", folder, file,
			     !u->options->check ? "written"
			     : there == FILE_OK ? "is out of date"
						: "is missing"));
	if (u->options->check)
		return 1;
	return write_file(u, file, text, err) < 0 ? -1 : 1;
}

/* A file of ours that has nothing to hold any more. */
static int remove_file(struct updater *u, const char *file, struct err *err)
{
	u->out->removed++;
	note_changed(u, file);
	tell(u, arena_printf(u->arena, "%s%s %s: no definition belongs into it", folder, file,
			     u->options->check ? "is to go" : "removed"));
	if (!u->options->check && unlink(path_of(u, file)) != 0 && errno != ENOENT)
		return err_errno(err, "%s%s cannot be removed", folder, file);
	return 0;
}

/* Definitions of a file that stays as it is: somebody tests them, or, if it was ours, tests them as they were. */
static void count_left(enum owner owner, int counts[NOTE_COUNTS], int definitions)
{
	memset(counts, 0, NOTE_COUNTS * sizeof *counts);
	counts[0] = owner == OWNER_STRANGER ? definitions : 0;
	counts[1] = counts[0];
	counts[2] = owner == OWNER_EDITED ? definitions : 0;
}

static int print_file(struct updater *u, const struct buf *text)
{
	fwrite(text->data, 1, text->length, stdout);
	u->out->printed = true;
	return 0;
}

static int make_group(struct updater *u, const struct group *group, struct arena *arena, struct err *err)
{
	struct test_class *classes = arena_array(arena, (size_t)group->count, sizeof *classes);
	struct buf old = {0}, body = {0}, text = {0};
	int counts[NOTE_COUNTS] = {0}, rc = -1, settled = 1, invalid = u->out->invalid;
	enum owner owner;
	enum file_answer there = read_present(u, group->file, &old, &owner, err);
	const struct buf none = {0};

	if (there == FILE_ERROR)
		goto done;
	int count = make_classes(u, group, owner == OWNER_REFTEST ? &old : &none, classes, counts, arena);

	if (count > 0) {
		test_file_write(about(u, group), classes, count, &body);
		owned_seal(&text, body.data, body.length);
		u->out->files++;
		if (u->options->print != NULL) {
			rc = print_file(u, &text);
			goto done;
		}
		settled = settle(u, group->file, &text, there, &old, owner, err);
	} else if (there == FILE_OK && owner == OWNER_REFTEST && u->options->print == NULL) {
		settled = remove_file(u, group->file, err) < 0 ? -1 : 1;
	}
	if (settled < 0)
		goto done;
	if (settled == 0)
		count_left(owner, counts, group->count);
	count_definitions(u->out, counts, group->count);
	rc = 0;
	if (!u->options->check && settled == 1 && u->out->invalid == invalid && !any_near(group)) {
		struct digest digest = group_digest(u, group);

		note_fresh(u, group->file, &digest, counts);
	}
done:
	buf_free(&old);
	buf_free(&body);
	buf_free(&text);
	return rc;
}

static bool is_selected(const struct updater *u, const struct group *group)
{
	const struct generated_options *o = u->options;

	if (o->print != NULL)
		return strcmp(o->print, group->file) == 0;
	if (o->selected == NULL)
		return true;
	for (int i = 0; i < group->count; i++)
		for (int k = 0; k < o->selected_count; k++)
			if (o->selected[k] == group->members[i])
				return true;
	return false;
}

/* What was noted still holds: nothing to do. */
static bool is_noted(struct updater *u, const struct group *group, const struct note *note)
{
	struct digest digest = group_digest(u, group);

	if (u->options->force || u->options->print != NULL || !digest_equal(&digest, &note->digest) || any_near(group))
		return false;
	u->out->files += note->counts[0] > note->counts[1];
	u->out->current += note->counts[0] > note->counts[1];
	count_definitions(u->out, note->counts, group->count);
	note_fresh(u, group->file, &note->digest, note->counts);
	return true;
}

static int update_group(struct updater *u, const struct group *group, struct err *err)
{
	const struct note *note = notes_find(&u->notes, group->file);
	struct arena arena = {0};
	int rc;

	if (!is_selected(u, group)) {
		if (note != NULL)
			note_fresh(u, group->file, &note->digest, note->counts);
		return 0;
	}
	if (note != NULL && is_noted(u, group, note))
		return 0;
	rc = make_group(u, group, &arena, err);
	arena_free(&arena);
	return rc;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

/* Definitions are sorted by path, so those of an op_type stand together. */
static int group_end(const struct updater *u, int begin)
{
	const struct dataset_file *all = u->dataset->definitions;
	int end = begin + 1;

	if (u->options->layout == LAYOUT_OP_TYPE)
		while (end < u->dataset->definition_count && strcmp(all[end].op_type, all[begin].op_type) == 0)
			end++;
	return end;
}

static void refuse_name(struct updater *u, const char *stem, int definitions)
{
	tell(u, arena_printf(u->arena,
			     "no file can be named after '%s': %s of letters, digits, '_' and '-' alone can be tested",
			     err_show(stem).text,
			     u->options->layout == LAYOUT_DEFINITION ? "in this layout, definitions with names"
								     : "op_types with names"));
	u->out->refused++;
	u->out->definitions += definitions;
	u->out->without += definitions;
}

/* The files that there should be into `files`, or, `files` NULL, each of them made true. Returns how many, -1 on error.
 */
static int each_group(struct updater *u, const char **files, struct err *err)
{
	int count = 0;

	const struct dataset_file **members =
	    arena_array(u->arena, (size_t)u->dataset->definition_count + 1, sizeof *members);

	for (int i = 0; i < u->dataset->definition_count; i++)
		members[i] = &u->dataset->definitions[i];
	for (int i = 0, end; i < u->dataset->definition_count; i = end) {
		const char *stem = u->options->layout == LAYOUT_DEFINITION ? members[i]->name : members[i]->op_type;
		struct group group = {.members = members + i};

		end = group_end(u, i);
		group.count = end - i;
		group.file = arena_printf(u->arena, "test_%s.py", stem);
		if (!python_nameable(stem)) {
			if (files == NULL && is_selected(u, &group))
				refuse_name(u, stem, group.count);
			continue;
		}
		if (files != NULL)
			files[count] = group.file;
		else if (update_group(u, &group, err) < 0)
			return -1;
		count++;
	}
	return count;
}

/* In the layout by definition two op_types may hold definitions of one name, which would be one file. */
static int refuse_namesakes(const char **files, int count, struct err *err)
{
	for (int i = 1; i < count; i++)
		if (strcmp(files[i - 1], files[i]) == 0)
			return err_set(
			    err, "two definitions of one name would both be %s%s; use --layout op-type, or rename one",
			    folder, files[i]);
	return 0;
}

static int remove_orphans(struct updater *u, const char **files, int count, struct err *err)
{
	for (int i = 0; i < u->present_count; i++) {
		struct buf bytes = {0};
		enum owner owner = OWNER_STRANGER;
		int rc = 0;

		if (count > 0 && bsearch(&u->present[i], files, (size_t)count, sizeof *files, by_text) != NULL)
			continue;
		if (read_present(u, u->present[i], &bytes, &owner, NULL) == FILE_OK && bytes.length > 0 &&
		    owner == OWNER_REFTEST)
			rc = remove_file(u, u->present[i], err);
		buf_free(&bytes);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int update_conftest(struct updater *u, struct err *err)
{
	struct buf old = {0}, body = {0}, text = {0};
	enum owner owner;
	enum file_answer there = read_present(u, "conftest.py", &old, &owner, err);
	int rc = -1;

	if (there != FILE_ERROR) {
		template_conftest(&body);
		owned_seal(&text, body.data, body.length);
		u->out->files++;
		rc = u->options->print != NULL ? print_file(u, &text)
					       : settle(u, "conftest.py", &text, there, &old, owner, err);
	}
	buf_free(&old);
	buf_free(&body);
	buf_free(&text);
	return rc < 0 ? -1 : 0;
}

static struct digest context_of(const struct updater *u)
{
	struct buf all = {0};
	struct digest digest;

	buf_printf(&all, "%s %s %s", templates_digest(), u->reftest->kernels.face->digest,
		   layout_name(u->options->layout));
	digest = digest_of(all.data, all.length);
	buf_free(&all);
	return digest;
}

static int update(struct updater *u, struct err *err)
{
	const struct generated_options *o = u->options;
	const char **files = arena_array(u->arena, (size_t)u->dataset->definition_count + 1, sizeof *files);
	int count = each_group(u, files, err);

	if (count > 1)
		qsort(files, (size_t)count, sizeof *files, by_text);
	if (refuse_namesakes(files, count, err) < 0 || refuse_links(u, err) < 0 || list_present(u, err) < 0)
		return -1;
	notes_read(&u->notes, u->dataset->fd, u->arena);
	u->fresh.items = arena_array(u->arena, (size_t)u->dataset->definition_count + 1, sizeof *u->fresh.items);
	if (each_group(u, NULL, err) < 0)
		return -1;
	u->out->invalid += u->dataset->problem_count;
	for (int i = 0; i < u->dataset->problem_count && !o->untold; i++)
		tell(u, u->dataset->problems[i]);
	/* What a folder holds that cannot be read is not gone. */
	if (o->print == NULL && o->selected == NULL && u->dataset->problem_count == 0 &&
	    remove_orphans(u, files, count, err) < 0)
		return -1;
	if ((o->print == NULL ? u->out->files > 0 : strcmp(o->print, "conftest.py") == 0) &&
	    update_conftest(u, err) < 0)
		return -1;
	return o->check || o->print != NULL ? 0 : notes_write(&u->fresh, u->reftest->root, o->layout, u->arena, err);
}

int generated_update(struct reftest *reftest, const struct dataset *dataset, const struct generated_options *options,
		     struct arena *arena, struct generated *out, struct err *err)
{
	struct updater u = {.reftest = reftest, .dataset = dataset, .options = options, .arena = arena, .out = out};

	*out = (struct generated){0};
	if (reftest_kernels_library(reftest, err) < 0)
		return -1;
	u.context = context_of(&u);
	return update(&u, err);
}

/* The definition that a test file is about: the one it is named after, else the only one whose name stands in it. NULL:
 * none, or one of several. */
static const struct dataset_file *subject_of(const struct updater *u, const char *file, const struct buf *text)
{
	const struct dataset_file *found = NULL;
	size_t stem = strlen(file) - strlen("test_.py");
	int count = 0;

	for (int i = 0; i < u->dataset->definition_count; i++) {
		const struct dataset_file *one = &u->dataset->definitions[i];

		if (strlen(one->name) == stem && memcmp(one->name, file + 5, stem) == 0)
			return one;
		if (memmem(text->data, text->length, one->name, strlen(one->name)) == NULL)
			continue;
		found = one;
		count++;
	}
	return count == 1 ? found : NULL;
}

static void audit_file(struct updater *u, const char *file, const struct buf *text)
{
	const struct dataset_file *subject = subject_of(u, file, text);
	const struct definition *definition = NULL;
	const struct audit_finding *findings;
	struct arena arena = {0};

	if (subject != NULL)
		definition = load(u, subject, &arena);
	int count = audit_text(text->data, text->length, definition != NULL ? definition->reference : NULL,
			       subject != NULL ? subject->path : NULL, &arena, &findings);

	for (int i = 0; i < count; i++)
		tell(u, arena_printf(u->arena, "%s%s:%d: %s", folder, file, findings[i].line, findings[i].reason));
	arena_free(&arena);
}

int generated_audit(struct reftest *reftest, const struct dataset *dataset, struct arena *arena, struct generated *out,
		    struct err *err)
{
	const struct generated_options options = {.untold = true};
	struct updater u = {.reftest = reftest, .dataset = dataset, .options = &options, .arena = arena, .out = out};

	*out = (struct generated){0};
	if (refuse_links(&u, err) < 0 || list_present(&u, err) < 0)
		return -1;
	for (int i = 0; i < u.present_count; i++) {
		struct buf text = {0};
		enum owner owner;
		enum file_answer answer = read_present(&u, u.present[i], &text, &owner, err);

		if (answer == FILE_OK && owner != OWNER_REFTEST && text.length > 0 && text.length <= AUDIT_BYTES) {
			out->files++;
			audit_file(&u, u.present[i], &text);
		}
		buf_free(&text);
		if (answer == FILE_ERROR)
			return -1;
	}
	return 0;
}

/* Does a generated file, by its docstring, hold one definition? -1: it is none of ours. */
static int holds_one(const char *bytes, size_t length)
{
	size_t body = owned_body(bytes, length);
	const char *end = body > 0 ? memchr(bytes + body, '\n', length - body) : NULL;

	return end != NULL ? memmem(bytes + body, (size_t)(end - bytes) - body, ".json. ", 7) != NULL : -1;
}

/* A clone has the files but no notes of them: then any of them tells the layout. */
static bool generated_elsewhere(const char *root, enum layout *layout)
{
	struct arena arena = {0};
	DIR *directory = opendir(arena_printf(&arena, "%s/%s", root, folder));
	int one = -1;

	for (struct dirent *entry; one < 0 && directory != NULL && (entry = readdir(directory)) != NULL;) {
		struct buf bytes = {0};

		if (is_test_name(entry->d_name) &&
		    file_read(dirfd(directory), entry->d_name, FILE_BYTES, &bytes, NULL, NULL) == FILE_OK &&
		    bytes.length > 0)
			one = holds_one(bytes.data, bytes.length);
		buf_free(&bytes);
	}
	if (directory != NULL)
		closedir(directory);
	arena_free(&arena);
	if (one >= 0)
		*layout = one > 0 ? LAYOUT_DEFINITION : LAYOUT_OP_TYPE;
	return one >= 0;
}

bool generated_before(const char *root, enum layout *layout)
{
	return notes_layout(root, layout) || generated_elsewhere(root, layout);
}
