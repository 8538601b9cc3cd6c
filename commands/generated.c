#include "commands/generated.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/owned.h"
#include "artifacts/python.h"
#include "artifacts/templates.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "commands/notes.h"
#include "commands/present.h"
#include "commands/renewal.h"

enum { FILE_BYTES = 64 << 20 };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_selected(const struct renewal *r, const struct group *group)
{
	const struct generated_options *o = r->options;

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

/* Definitions are sorted by path, so those of an op_type stand together. */
static int group_end(const struct renewal *r, int begin)
{
	const struct dataset_file *all = r->dataset->definitions;
	int end = begin + 1;

	if (r->options->layout == LAYOUT_OP_TYPE)
		while (end < r->dataset->definition_count && strcmp(all[end].op_type, all[begin].op_type) == 0)
			end++;
	return end;
}

static const char *why_unnameable(const struct renewal *r, const char *stem)
{
	return arena_printf(
	    r->arena, "no file can be named after '%s': %s of letters, digits, '_' and '-' alone can be tested",
	    err_show(stem).text,
	    r->options->layout == LAYOUT_DEFINITION ? "in this layout, definitions with names" : "op_types with names");
}

/* All groups, in the order of definitions; how many. */
static int make_groups(const struct renewal *r, struct group **out)
{
	int definitions = r->dataset->definition_count, count = 0;
	const struct dataset_file **members = arena_array(r->arena, (size_t)definitions + 1, sizeof *members);
	struct group *groups = arena_array(r->arena, (size_t)definitions + 1, sizeof *groups);

	for (int i = 0; i < definitions; i++)
		members[i] = &r->dataset->definitions[i];
	for (int i = 0, end; i < definitions; i = end) {
		const char *stem = r->options->layout == LAYOUT_DEFINITION ? members[i]->name : members[i]->op_type;

		end = group_end(r, i);
		groups[count++] = (struct group){.file = arena_printf(r->arena, "test_%s.py", stem),
						 .members = members + i,
						 .count = end - i,
						 .refused = python_nameable(stem) ? NULL : why_unnameable(r, stem)};
	}
	*out = groups;
	return count;
}

/* The names of the files that there should be, sorted; how many. */
static int name_files(const struct renewal *r, const struct group *groups, int group_count, const char ***out)
{
	const char **files = arena_array(r->arena, (size_t)group_count + 1, sizeof *files);
	int count = 0;

	for (int i = 0; i < group_count; i++)
		if (groups[i].refused == NULL)
			files[count++] = groups[i].file;
	if (count > 1)
		qsort(files, (size_t)count, sizeof *files, by_text);
	*out = files;
	return count;
}

/* In the layout by definition two op_types may hold definitions of one name, which would be one file. */
static void refuse_namesakes(const struct renewal *r, struct group *groups, int group_count, const char **files,
			     int count)
{
	for (int i = 0; i < group_count; i++) {
		const char **found = count > 1 && groups[i].refused == NULL
					 ? bsearch(&groups[i].file, files, (size_t)count, sizeof *files, by_text)
					 : NULL;

		if (found != NULL && ((found > files && strcmp(found[-1], *found) == 0) ||
				      (found + 1 < files + count && strcmp(found[1], *found) == 0)))
			groups[i].refused = arena_printf(
			    r->arena,
			    "%s: another definition of this name would be %s%s as well, so neither is; use "
			    "--layout op-type, or rename one",
			    groups[i].members[0]->path, PRESENT_FOLDER, groups[i].file);
	}
}

static void count_without(struct renewal *r, const struct group *group)
{
	r->out->definitions += group->count;
	r->out->without += group->count;
}

static void refuse(struct renewal *r, const struct group *group)
{
	renewal_tell(r, group->refused);
	r->out->refused++;
	count_without(r, group);
}

static int update_group(struct renewal *r, const struct group *group, struct err *err)
{
	const struct note *note = notes_find(&r->notes, group->file);

	if (!is_selected(r, group)) {
		if (note != NULL)
			renewal_keep_note(r, note);
		return 0;
	}
	if (group->refused != NULL) {
		refuse(r, group);
		return 0;
	}
	if (note != NULL && renewal_noted(r, group, note))
		return 0;
	if (r->options->print == NULL && !present_has(&r->present, group->file)) {
		int may = renewal_may_write(r, group->file, err);

		if (may <= 0) {
			count_without(r, group);
			return may;
		}
	}
	return renewal_of(r, group, err);
}

static int remove_orphans(struct renewal *r, const char **files, int count, struct err *err)
{
	for (int i = 0; i < r->present.count; i++) {
		struct buf bytes = {0};
		enum owner owner = OWNER_STRANGER;
		int rc = 0;

		if (count > 0 && bsearch(&r->present.names[i], files, (size_t)count, sizeof *files, by_text) != NULL)
			continue;
		if (present_read(&r->present, r->present.names[i], &bytes, &owner, NULL) == FILE_OK &&
		    bytes.length > 0 && owner == OWNER_REFTEST)
			rc = renewal_may_remove(r, r->present.names[i], err);
		if (rc > 0)
			rc = renewal_remove(r, r->present.names[i], err);
		buf_free(&bytes);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static struct digest context_of(const struct renewal *r)
{
	struct buf all = {0};
	struct digest digest;

	buf_printf(&all, "%s %s %s", templates_digest(), r->reftest->kernels.face->digest,
		   layout_name(r->options->layout));
	digest = digest_of(all.data, all.length);
	buf_free(&all);
	return digest;
}

static int update(struct renewal *r, struct err *err)
{
	const struct generated_options *o = r->options;
	struct group *groups;
	const char **files;
	int group_count = make_groups(r, &groups), count = name_files(r, groups, group_count, &files);

	refuse_namesakes(r, groups, group_count, files, count);
	if (present_list(&r->present, r->dataset->fd, r->reftest->root, r->arena, err) < 0)
		return -1;
	notes_read(&r->notes, r->dataset->fd, r->arena);
	r->fresh.items = arena_array(r->arena, (size_t)group_count + 1, sizeof *r->fresh.items);
	for (int i = 0; i < group_count; i++)
		if (update_group(r, &groups[i], err) < 0)
			return -1;
	r->out->invalid += r->dataset->problem_count;
	for (int i = 0; i < r->dataset->problem_count && !o->untold; i++)
		renewal_tell(r, r->dataset->problems[i]);
	/* What a folder holds that cannot be read is not gone. */
	if (o->print == NULL && o->selected == NULL && r->dataset->problem_count == 0 &&
	    remove_orphans(r, files, count, err) < 0)
		return -1;
	if ((o->print == NULL ? r->out->files > 0 : strcmp(o->print, "conftest.py") == 0) &&
	    renewal_conftest(r, err) < 0)
		return -1;
	renewal_tell_sparse(r);
	return o->check || o->print != NULL ? 0 : notes_write(&r->fresh, r->reftest->root, o->layout, r->arena, err);
}

int generated_update(struct reftest *reftest, const struct dataset *dataset, const struct generated_options *options,
		     struct arena *arena, struct generated *out, struct err *err)
{
	struct renewal r = {.reftest = reftest,
			    .dataset = dataset,
			    .options = options,
			    .arena = arena,
			    .out = out,
			    .told = {.arena = arena},
			    .changed = {.arena = arena}};
	int rc;

	*out = (struct generated){0};
	if (reftest_kernels_library(reftest, err) < 0)
		return -1;
	r.context = context_of(&r);
	rc = update(&r, err);
	out->told = r.told.items;
	out->told_count = r.told.count;
	out->changed = r.changed.items;
	out->changed_count = r.changed.count;
	return rc;
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
	DIR *directory = opendir(arena_printf(&arena, "%s/%s", root, PRESENT_FOLDER));
	int one = -1;

	for (struct dirent *entry; one < 0 && directory != NULL && (entry = readdir(directory)) != NULL;) {
		struct buf bytes = {0};

		if (present_is_test(entry->d_name) &&
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
