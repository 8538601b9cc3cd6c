#include "testgen/update.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "engine/settings.h"
#include "testgen/hand_edit.h"
#include "testgen/python_text.h"
#include "testgen/support_files.h"
#include "testgen/test_list.h"
#include "testgen/update_internal.h"
#include "testgen/update_stamps.h"

enum { FILE_BYTES = 64 << 20 };

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_selected(const struct file_update *r, const struct group *group)
{
	const struct update_options *o = r->options;

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

/* Returns the index after the last definition that shares a test file with the definition at index `begin`. Definitions
 * that share a file are adjacent, because definitions are sorted by path. */
static int group_end(const struct file_update *r, int begin)
{
	const struct dataset_file *all = r->dataset->definitions;
	int end = begin + 1;

	if (r->options->layout == LAYOUT_OP_TYPE)
		while (end < r->dataset->definition_count && strcmp(all[end].op_type, all[begin].op_type) == 0)
			end++;
	return end;
}

static const char *why_unnameable(const struct file_update *r, const char *stem)
{
	return arena_printf(
	    r->arena,
	    "no test file can be named after '%s', because %s may contain only letters, digits, '_' and '-'; rename it",
	    err_show(stem).text,
	    r->options->layout == LAYOUT_DEFINITION ? "in this layout, names of definitions" : "names of op_types");
}

/* Groups the definitions that share a test file, and returns the number of groups. */
static int make_groups(const struct file_update *r, struct group **out)
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

/* Collects the names of the files that should exist, sorted, and returns their number. */
static int name_files(const struct file_update *r, const struct group *groups, int group_count, const char ***out)
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

/* If several groups have the same file name, sets `refused` in each of them, so that their file is not generated. This
 * can happen in the layout with one file per definition, because definitions of different op_types can have the same
 * name. */
static void refuse_namesakes(const struct file_update *r, struct group *groups, int group_count, const char **files,
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
			    "%s: another definition has the same name, and the tests of both would be in %s%s, so the file is "
			    "not generated; use --layout op-type, or rename one of them",
			    groups[i].members[0]->path, TESTS_FOLDER, groups[i].file);
	}
}

static void count_without(struct file_update *r, const struct group *group)
{
	r->out->definitions += group->count;
	r->out->without += group->count;
}

static void refuse(struct file_update *r, const struct group *group)
{
	update_file_report(r, group->refused);
	r->out->refused++;
	count_without(r, group);
}

static int update_group(struct file_update *r, const struct group *group, struct err *err)
{
	const struct note *note = stamps_find(&r->stamps, group->file);

	if (!is_selected(r, group)) {
		if (note != NULL)
			update_file_keep_note(r, note);
		return 0;
	}
	if (group->refused != NULL) {
		refuse(r, group);
		return 0;
	}
	if (note != NULL && update_file_noted(r, group, note))
		return 0;
	if (r->options->print == NULL && !test_list_has(&r->test_list, group->file)) {
		int may = update_file_may_write(r, group->file, err);

		if (may <= 0) {
			count_without(r, group);
			return may;
		}
	}
	return update_file_of(r, group, err);
}

static int remove_orphans(struct file_update *r, const char **files, int count, struct err *err)
{
	for (int i = 0; i < r->test_list.count; i++) {
		struct buf bytes = {0};
		enum owner owner = OWNER_USER;
		int rc = 0;

		if (count > 0 && bsearch(&r->test_list.names[i], files, (size_t)count, sizeof *files, by_text) != NULL)
			continue;
		if (test_list_read(&r->test_list, r->test_list.names[i], &bytes, &owner, NULL) == FILE_OK &&
		    bytes.length > 0 && owner == OWNER_REFTEST)
			rc = update_file_may_remove(r, r->test_list.names[i], err);
		if (rc > 0)
			rc = update_file_remove(r, r->test_list.names[i], "no definition belongs to this file", err);
		buf_free(&bytes);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static bool is_shipped(const char *file)
{
	const char *name;

	for (int i = 0; (name = shipped_name(i)) != NULL; i++)
		if (strcmp(name, file) == 0)
			return true;
	return false;
}

/* Removes generated files below reftest_libraries/ that this version of reftest does not contain. */
static int remove_old_libraries(struct file_update *r, struct err *err)
{
	for (int i = 0; i < r->test_list.library_count; i++) {
		const char *file = r->test_list.libraries[i];
		struct buf bytes = {0};
		enum owner owner = OWNER_USER;
		int rc = 0;

		if (!is_shipped(file) && test_list_read(&r->test_list, file, &bytes, &owner, NULL) == FILE_OK &&
		    bytes.length > 0 && owner == OWNER_REFTEST)
			rc = update_file_remove(r, file, "this version of reftest has no such file", err);
		buf_free(&bytes);
		if (rc < 0)
			return -1;
	}
	return 0;
}

/* Updates the files that all tests use (testgen/support_files.h). With options.print, only prints the file that this
 * option names, or nothing if it names another file. */
static int update_shipped(struct file_update *r, struct err *err)
{
	const char *print = r->options->print, *name;

	if (print == NULL && r->out->files == 0)
		return 0;
	for (int i = 0; (name = shipped_name(i)) != NULL; i++)
		if ((print == NULL || strcmp(print, name) == 0) && update_file_shipped(r, i, err) < 0)
			return -1;
	return print == NULL ? remove_old_libraries(r, err) : 0;
}

static struct digest context_of(const struct file_update *r)
{
	struct buf all = {0};
	struct digest digest;

	buf_printf(&all, "%s %s %s", shipped_digest(), r->program->kernels.api->digest,
		   layout_name(r->options->layout));
	if (r->program->settings->of[SETTING_TOLERANCE].key != NULL)
		buf_add(&all, r->program->settings->by_dtype, sizeof r->program->settings->by_dtype);
	digest = digest_of(all.data, all.length);
	buf_free(&all);
	return digest;
}

static int update(struct file_update *r, struct err *err)
{
	const struct update_options *o = r->options;
	struct group *groups;
	const char **files;
	int group_count = make_groups(r, &groups), count = name_files(r, groups, group_count, &files);

	refuse_namesakes(r, groups, group_count, files, count);
	if (test_list_names(&r->test_list, r->dataset->fd, r->program->root, r->arena, err) < 0)
		return -1;
	stamps_read(&r->stamps, r->dataset->fd, r->arena);
	r->fresh.items = arena_array(r->arena, (size_t)group_count + 1, sizeof *r->fresh.items);
	for (int i = 0; i < group_count; i++)
		if (update_group(r, &groups[i], err) < 0)
			return -1;
	r->out->invalid += r->dataset->problem_count;
	for (int i = 0; i < r->dataset->problem_count && !o->quiet; i++)
		update_file_report(r, r->dataset->problems[i]);
	/* If a folder of definitions could not be read, no test file is removed, because the definitions in this folder
	 * may still exist. */
	if (o->print == NULL && o->selected == NULL && r->dataset->problem_count == 0 &&
	    remove_orphans(r, files, count, err) < 0)
		return -1;
	if (update_shipped(r, err) < 0)
		return -1;
	update_file_report_sparse(r);
	return o->check || o->print != NULL ? 0 : stamps_write(&r->fresh, r->program->root, o->layout, r->arena, err);
}

int update_tests(struct program *program, const struct dataset *dataset, const struct update_options *options,
		 struct arena *arena, struct update_result *out, struct err *err)
{
	struct file_update r = {.program = program,
				.dataset = dataset,
				.options = options,
				.arena = arena,
				.out = out,
				.messages = {.arena = arena},
				.problems = {.arena = arena},
				.changed = {.arena = arena}};
	int rc;

	*out = (struct update_result){0};
	if (program_settings(program, err) < 0 || program_kernels(program, err) < 0)
		return -1;
	r.context = context_of(&r);
	rc = update(&r, err);
	out->messages = r.messages.items;
	out->message_count = r.messages.count;
	out->problems = r.problems.items;
	out->problem_count = r.problems.count;
	out->changed = r.changed.items;
	out->changed_count = r.changed.count;
	return rc;
}

/* Returns 1 if the docstring of a generated file says that the file tests a single definition, and 0 if it does not.
 * Returns -1 if reftest did not generate the file. */
static int holds_one(const char *bytes, size_t length)
{
	size_t body = owned_body(bytes, length);
	const char *end = body > 0 ? memchr(bytes + body, '\n', length - body) : NULL;

	return end != NULL ? memmem(bytes + body, (size_t)(end - bytes) - body, ".json. ", 7) != NULL : -1;
}

/* Finds the layout in the docstring of a generated file, because a cloned dataset has generated files but no record of
 * their layout. */
static bool generated_elsewhere(const char *root, enum layout *layout)
{
	struct arena arena = {0};
	DIR *directory = opendir(arena_printf(&arena, "%s/%s", root, TESTS_FOLDER));
	int one = -1;

	for (struct dirent *entry; one < 0 && directory != NULL && (entry = readdir(directory)) != NULL;) {
		struct buf bytes = {0};

		if (is_test_file(entry->d_name) &&
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
	return stamps_layout(root, layout) || generated_elsewhere(root, layout);
}
