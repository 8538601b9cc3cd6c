#include "engine/selection.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

/* Returns whether the last components of the path `word` are equal to `path`. `word` may be absolute, or relative to
 * any directory. */
static bool select_path(const char *word, const char *path)
{
	size_t length = strlen(word), tail = strlen(path);

	return length >= tail && strcmp(word + length - tail, path) == 0 &&
	       (length == tail || word[length - tail - 1] == '/');
}

static bool name_selects(const char *word, const struct dataset_file *file)
{
	const char *slash = strchr(word, '/');
	const char *full = file->path + strlen("definitions/");
	size_t length = strlen(full) - strlen(".json");

	if (strpbrk(word, "*?[") != NULL) {
		char both[1024];

		snprintf(both, sizeof both, "%.*s", (int)length, full);
		return fnmatch(word, slash != NULL ? both : file->name, 0) == 0;
	}
	if (slash == NULL)
		return strcmp(word, file->name) == 0;
	return (strlen(word) == length && memcmp(word, full, length) == 0) || select_path(word, file->path);
}

static bool has_op_type(const struct dataset *dataset, const char *word)
{
	for (int i = 0; i < dataset->definition_count; i++)
		if (strcmp(dataset->definitions[i].op_type, word) == 0)
			return true;
	return false;
}

static int unknown_name(const struct dataset *dataset, const char *word, bool op_type, struct err *err)
{
	if (!op_type && has_op_type(dataset, word))
		return err_set(err, "%s has no definition '%s'; `--op-type %s` selects the definitions of this op_type",
			       dataset->root, word, word);
	struct arena arena = {0};
	const char **known = arena_array(&arena, (size_t)dataset->definition_count + 1, sizeof *known);

	for (int i = 0; i < dataset->definition_count; i++)
		known[i] = op_type ? dataset->definitions[i].op_type : dataset->definitions[i].name;
	const char *near = suggest_word(word, known, dataset->definition_count);

	err_set(err, "%s has no %s '%s'%s%s%s", dataset->root, op_type ? "op_type" : "definition", word,
		near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
	arena_free(&arena);
	return -1;
}

int select_definitions(const struct dataset *dataset, const struct selection *words, struct arena *arena,
		       const struct dataset_file ***out, struct err *err)
{
	int word_count = words->name_count + words->op_type_count, count = 0;
	bool *used = arena_array(arena, (size_t)word_count + 1, sizeof *used);

	*out = arena_array(arena, (size_t)dataset->definition_count, sizeof **out);
	for (int i = 0; i < dataset->definition_count; i++) {
		const struct dataset_file *file = &dataset->definitions[i];
		bool selected = word_count == 0;

		for (int k = 0; k < words->name_count; k++)
			if (name_selects(words->names[k], file))
				selected = used[k] = true;
		for (int k = 0; k < words->op_type_count; k++)
			if (strcmp(words->op_types[k], file->op_type) == 0)
				selected = used[words->name_count + k] = true;
		if (selected)
			(*out)[count++] = file;
	}
	for (int k = 0; k < word_count; k++)
		if (!used[k])
			return k < words->name_count
				   ? unknown_name(dataset, words->names[k], false, err)
				   : unknown_name(dataset, words->op_types[k - words->name_count], true, err);
	return count;
}
