#include "engine/base_references.h"

#include <stdlib.h>
#include <string.h>

#include "cache/fingerprint.h"
#include "cache/python_normal_form.h"
#include "dataset/definition_parse.h"
#include "git/objects.h"

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct base_reference *)a)->path, ((const struct base_reference *)b)->path);
}

/* Splits a path such as "definitions/rmsnorm/rmsnorm_h64.json" into op_type and name. Returns false for a path of
 * another form. */
static bool split_path(const char *path, struct arena *arena, const char **op_type, const char **name)
{
	static const char head[] = "definitions/", tail[] = ".json";
	const char *word = path + sizeof head - 1, *slash;
	size_t length = strlen(path);

	if (strncmp(path, head, sizeof head - 1) != 0 || (slash = strchr(word, '/')) == NULL || strchr(slash + 1, '/') != NULL ||
	    length < sizeof tail || strcmp(path + length - (sizeof tail - 1), tail) != 0)
		return false;
	*op_type = arena_copy(arena, word, (size_t)(slash - word));
	*name = arena_copy(arena, slash + 1, strlen(slash + 1) - (sizeof tail - 1));
	return true;
}

/* Returns why the commit's version of a definition cannot run, or NULL if it can. */
static const char *why_not(const struct definition *definition)
{
	return definition->entry_point == NULL ? "it has no reference" : definition->unverifiable;
}

static int read_one(struct git *git, const struct repository *repository, const struct git_file *file, struct arena *arena,
		    struct base_reference *out, struct err *err)
{
	struct buf bytes = {0};
	struct err why = {""};
	const char *op_type, *name;
	int rc = git_object(git, repository, file->object, file->path, DEFINITION_BYTES, &bytes, err);

	*out = (struct base_reference){.path = file->path};
	if (rc == 0 && split_path(file->path, arena, &op_type, &name)) {
		out->definition = definition_parse(file->path, op_type, name, bytes.data, bytes.length, arena, &why);
		out->trouble = out->definition == NULL ? arena_string(arena, why.text) : why_not(out->definition);
	}
	buf_free(&bytes);
	return rc == 0 ? 0 : -1;
}

static bool listed(const struct git_files *paths, const char *path)
{
	for (int i = 0; i < paths->count; i++)
		if (strcmp(paths->list[i], path) == 0)
			return true;
	return false;
}

int base_references_read(const struct repository *repository, const char *commit, const struct git_files *paths,
			 struct arena *arena, struct base_references *out, struct err *err)
{
	const struct git_file *files;
	struct git git = {0};
	int count = git_commit_files(repository, commit, "definitions", arena, &files, err), rc = count < 0 ? -1 : 0;
	struct base_reference *items = arena_array(arena, (size_t)(count < 0 ? 0 : count), sizeof *items);
	const char *op_type, *name;

	*out = (struct base_references){items, 0};
	for (int i = 0; rc == 0 && i < count; i++)
		if (split_path(files[i].path, arena, &op_type, &name) && listed(paths, files[i].path))
			rc = read_one(&git, repository, &files[i], arena, &items[out->count++], err);
	git_end(&git);
	qsort(items, (size_t)out->count, sizeof *items, compare_paths);
	return rc;
}

const struct base_reference *base_reference_find(const struct base_references *base, const char *path)
{
	const struct base_reference wanted = {.path = path};

	return base->count == 0 ? NULL
				: bsearch(&wanted, base->items, (size_t)base->count, sizeof *base->items, compare_paths);
}

struct own_truth base_reference_truth(const struct base_references *base, const char *path, struct arena *arena)
{
	const struct base_reference *found = base_reference_find(base, path);
	struct own_truth out = {.truth = {.name = BASE_NAME, .program = true}};

	if (found == NULL || found->trouble != NULL) {
		refuse_truth(&out.truth,
			     found == NULL ? "the base commit has no definition of this name" : found->trouble, arena);
		return out;
	}
	const struct definition *definition = found->definition;
	const struct digest digest = digest_of(definition->reference, definition->reference_length);
	char hex[DIGEST_HEX];

	digest_hex(&digest, hex);
	out.truth.version = arena_string(arena, hex);
	out.program = (struct truth_program){.name = BASE_NAME,
					     .path = path,
					     .source = definition->reference,
					     .entry_point = definition->entry_point};
	return out;
}

bool base_reference_same_code(const struct definition *a, const struct definition *b, struct arena *arena)
{
	struct fields fields_a = {0}, fields_b = {0};

	definition_fields(a, arena, &fields_a);
	definition_fields(b, arena, &fields_b);
	const struct digest digest_a = fields_digest(&fields_a), digest_b = fields_digest(&fields_b);

	return digest_equal(&digest_a, &digest_b) && strcmp(a->entry_point, b->entry_point) == 0;
}

/* Returns whether two texts are equal; an absent text is NULL. */
static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_tolerance(const struct tolerance *a, const struct tolerance *b)
{
	return a->atol == b->atol && a->rtol == b->rtol && a->hit_ratio == b->hit_ratio;
}

static bool same_tolerances(const struct definition *a, const struct definition *b)
{
	bool same = same_tolerance(&a->tolerance, &b->tolerance);

	for (int i = 0; i < a->output_count && i < b->output_count; i++)
		same = same && same_tolerance(&a->output_tolerance[i], &b->output_tolerance[i]);
	return same;
}

static bool same_reads(const struct definition *a, const struct definition *b)
{
	bool same = a->read_count == b->read_count;

	for (int i = 0; same && i < a->read_count; i++)
		same = strcmp(a->reads[i], b->reads[i]) == 0;
	return same;
}

const char *base_reference_other_members(const struct definition *a, const struct definition *b, struct arena *arena)
{
	const struct {
		const char *name;
		bool same;
	} members[] = {
	    {"init", same_text(a->init, b->init)},
	    {"custom_inputs_entrypoint", same_text(a->custom_inputs_entrypoint, b->custom_inputs_entrypoint)},
	    {"check", same_text(a->check, b->check)},
	    {"tolerance", same_tolerances(a, b)},
	    {"reads", same_reads(a, b)},
	    {"ground_truth", same_text(a->chain, b->chain)},
	};
	const char *text = "";

	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (!members[i].same)
			text = arena_printf(arena, "%s%s`%s`", text, *text != '\0' ? ", " : "", members[i].name);
	return text;
}
