#include "engine/sparse_checkout.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "git/index_lock.h"
#include "git/objects.h"

enum { LOCK_LOOK_MS = 10 };

static const char definitions_head[] = "definitions/", tests_head[] = "tests/references/";

static int compare_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

static bool holds(const struct dataset_file *files, int count, const char *path)
{
	return count > 0 && bsearch(path, files, (size_t)count, sizeof *files, compare_path) != NULL;
}

/* Returns the dataset file for a path such as "definitions/gemm/gemm_n128.json". */
static struct dataset_file file_of(const char *path, struct arena *arena)
{
	const char *op_type = path + sizeof definitions_head - 1, *name = strchr(op_type, '/') + 1;

	return (struct dataset_file){.path = arena_string(arena, path),
				     .op_type = arena_copy(arena, op_type, (size_t)(name - op_type) - 1),
				     .name = arena_copy(arena, name, strlen(name) - strlen(".json"))};
}

static int by_stem(const void *a, const void *b)
{
	return strcmp(((const struct stem *)a)->text, ((const struct stem *)b)->text);
}

static const struct stem *stems_of(const struct dataset_file *definitions, int count, struct arena *arena)
{
	struct stem *stems = arena_array(arena, 2 * (size_t)count, sizeof *stems);

	for (int i = 0; i < count; i++) {
		stems[2 * i] = (struct stem){definitions[i].name, &definitions[i]};
		stems[2 * i + 1] = (struct stem){definitions[i].op_type, &definitions[i]};
	}
	if (count > 0)
		qsort(stems, 2 * (size_t)count, sizeof *stems, by_stem);
	return stems;
}

static void collect(struct sparse *s, const struct index *index, const struct dataset *dataset, struct arena *arena)
{
	size_t head = strlen(s->prefix), skipped = 0;
	struct dataset_file *definitions;
	char own[4096];

	for (int i = 0; i < index->count; i++)
		skipped += index->entries[i].skipped;
	definitions = arena_array(arena, skipped, sizeof *definitions);
	s->tests = arena_array(arena, skipped, sizeof *s->tests);
	for (int i = 0; i < index->count && skipped > 0; i++) {
		const char *path = index->entries[i].path;

		if (!index->entries[i].skipped || strncmp(path, s->prefix, head) != 0)
			continue;
		path += head;
		if (strncmp(path, tests_head, sizeof tests_head - 1) == 0)
			s->tests[s->test_count++] = arena_string(arena, path + sizeof tests_head - 1);
		else if (dataset_definition_path(path, own, sizeof own) && strcmp(path, own) == 0 &&
			 !holds(dataset->definitions, dataset->definition_count, path))
			definitions[s->count++] = file_of(path, arena);
	}
	s->definitions = definitions;
	s->stems = stems_of(definitions, s->count, arena);
}

/* Waits until git's lock file is removed or old. The wait is necessary because `git sparse-checkout` removes files
 * before it writes the index that marks these files skip-worktree. */
static void wait_for_git(const struct repository *repository)
{
	struct git_lock lock;

	if (snprintf(lock.path, sizeof lock.path, "%s.lock", repository->index) >= (int)sizeof lock.path)
		return;
	while (git_lock_held(&lock))
		poll(NULL, 0, LOCK_LOOK_MS);
}

int sparse_ask(struct sparse *s, const struct dataset *dataset, struct arena *arena, struct err *err)
{
	struct repository repository;
	struct arena scratch = {0};
	struct buf bytes = {0};
	struct index index;
	int rc = 0;

	if (s->asked)
		return 0;
	s->prefix = "";
	if (repository_find(dataset->root, &repository, NULL) == 0) {
		wait_for_git(&repository);
		rc = git_index(&repository, &bytes, &scratch, &index, err);
		s->prefix = arena_string(arena, repository.prefix);
		if (strcmp(dataset->root, ".") != 0 || s->prefix[0] != '\0')
			s->top = arena_string(arena, repository.top);
		s->checkout = !repository.sparse ? SPARSE_BY_HAND : repository.cone ? SPARSE_CONE : SPARSE_PATTERNS;
		if (rc == 0)
			collect(s, &index, dataset, arena);
	}
	s->asked = rc == 0;
	buf_free(&bytes);
	arena_free(&scratch);
	return rc;
}

bool sparse_lacks_definition(const struct sparse *s, const char *path)
{
	return holds(s->definitions, s->count, path);
}

const struct dataset_file *sparse_of_test(const struct sparse *s, const char *file, struct arena *arena)
{
	struct stem wanted = {.text = arena_copy(arena, file + 5, strlen(file) - strlen("test_.py"))};
	const struct stem *found =
	    s->count == 0 ? NULL : bsearch(&wanted, s->stems, 2 * (size_t)s->count, sizeof wanted, by_stem);

	return found != NULL ? found->definition : NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool sparse_marks_test(const struct sparse *s, const char *file)
{
	return s->test_count > 0 && bsearch(&file, s->tests, (size_t)s->test_count, sizeof *s->tests, by_text) != NULL;
}

/* Quotes a word for a shell. */
static const char *quoted(const char *text, struct arena *arena)
{
	struct buf out = {0};

	buf_text(&out, "'");
	for (; *text != '\0'; text++)
		if (*text == '\'')
			buf_text(&out, "'\\''");
		else
			buf_add(&out, text, 1);
	buf_text(&out, "'");
	char *word = arena_copy(arena, out.data, out.length);

	buf_free(&out);
	return word;
}

/* The paths in the command are relative to the top of the working tree, because git accepts such paths in every mode of
 * a sparse checkout. */
const char *sparse_remedy(const struct sparse *s, const char *folder, const char *file, struct arena *arena)
{
	const char *git = s->top != NULL ? arena_printf(arena, "git -C %s", quoted(s->top, arena)) : "git";
	const char *tail = s->checkout == SPARSE_PATTERNS ? "/**" : "";
	const char *one = quoted(arena_printf(arena, "%s%s", s->prefix, file), arena);

	if (s->checkout == SPARSE_BY_HAND)
		return arena_printf(arena, "`%s update-index --no-skip-worktree %s && %s checkout -- %s`", git, one,
				    git, one);
	return arena_printf(arena, "`%s sparse-checkout add %s`", git,
			    quoted(arena_printf(arena, "%s%s%s", s->prefix, folder, tail), arena));
}
