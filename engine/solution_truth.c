#include "engine/solution_truth.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/unsafe_character.h"
#include "dataset/solution.h"

static const char folder[] = "solutions", prefix[] = SOLUTION_TRUTH ":";

/* ---- finding the files ---- */

struct paths {
	const char **list;
	int count;
	struct arena *arena;
};

static DIR *open_at(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && stream == NULL)
		close(fd);
	return stream;
}

static bool names_solution(const char *name)
{
	static const char suffix[] = ".json";
	size_t length = strlen(name), tail = sizeof suffix - 1;

	return name[0] != '.' && length > tail && strcmp(name + length - tail, suffix) == 0 && text_is_safe(name);
}

/* Adds the solutions in one folder of a definition. */
static void add_folder(struct paths *out, int root, const char *path)
{
	DIR *stream = open_at(root, path);
	const struct dirent *entry;

	while (stream != NULL && (entry = readdir(stream)) != NULL)
		if (names_solution(entry->d_name) && out->count < SOLUTIONS_MAX)
			out->list[out->count++] = arena_printf(out->arena, "%s/%s", path, entry->d_name);
	if (stream != NULL)
		closedir(stream);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **solution_paths(int root, const char *op_type, const char *name, struct arena *arena, int *count)
{
	struct paths out = {arena_array(arena, SOLUTIONS_MAX, sizeof *out.list), 0, arena};
	DIR *authors = open_at(root, folder);
	const struct dirent *entry;

	add_folder(&out, root, arena_printf(arena, "%s/%s/%s", folder, op_type, name));
	while (authors != NULL && (entry = readdir(authors)) != NULL)
		if (entry->d_name[0] != '.' && text_is_safe(entry->d_name))
			add_folder(&out, root, arena_printf(arena, "%s/%s/%s/%s", folder, entry->d_name, op_type, name));
	if (authors != NULL)
		closedir(authors);
	qsort(out.list, (size_t)out.count, sizeof *out.list, compare_text);
	*count = out.count;
	return out.list;
}

bool is_solution_path(const char *path)
{
	return strncmp(path, folder, sizeof folder - 1) == 0 && path[sizeof folder - 1] == '/';
}

bool solution_definition_path(const char *path, char *out, size_t size)
{
	const char *part[4]; /* the last parts of the path, the last one first */
	int count = 0;

	if (!is_solution_path(path) || !text_is_safe(path) || strstr(path, "/.") != NULL)
		return false;
	for (const char *at = path + strlen(path); at > path; at--)
		if (at[-1] == '/' && count++ < 4)
			part[count - 1] = at;
	if (count < 3 || count > 4 || !names_solution(part[0]))
		return false;
	int length = snprintf(out, size, "definitions/%.*s.json", (int)(part[0] - part[2]) - 1, part[2]);

	return length > 0 && (size_t)length < size;
}

/* Returns the author, the definition and the name in a path that ends with {author}/{op_type}/{definition}/{name}.json.
 * The folder of the author may be missing. */
static struct solution_place place_of(const char *path, const struct definition *definition, struct arena *arena)
{
	const char *name = strrchr(path, '/') + 1, *author = path + sizeof folder;
	size_t length = strcspn(author, "/");
	int slashes = 0;

	for (const char *at = path; *at != '\0'; at++)
		slashes += *at == '/';
	return (struct solution_place){.author = slashes == 4 ? arena_copy(arena, author, length) : NULL,
				       .definition = definition->name,
				       .name = arena_copy(arena, name, strlen(name) - strlen(".json"))};
}

/* ---- what a solution is ---- */

static bool ends_with(const char *text, const char *const *ends)
{
	size_t length = strlen(text);

	for (; *ends != NULL; ends++)
		if (length > strlen(*ends) && strcmp(text + length - strlen(*ends), *ends) == 0)
			return true;
	return false;
}

static bool is_python(const char *path)
{
	return ends_with(path, (const char *const[]){".py", NULL});
}

static bool says_language(const struct solution *solution, const char *language)
{
	for (int i = 0; i < solution->language_count; i++)
		if (strcmp(solution->languages[i], language) == 0)
			return true;
	return false;
}

/* Returns how the solution is compiled, or -1 if reftest cannot run it. */
static int build_of(const struct solution *solution)
{
	bool cuda = says_language(solution, "cuda");

	if (is_python(solution->entry_source))
		return BUILD_NONE;
	for (int i = 0; i < solution->source_count; i++)
		cuda = cuda || ends_with(solution->sources[i].path, (const char *const[]){".cu", ".cuh", NULL});
	if (!ends_with(solution->entry_source, (const char *const[]){".cpp", ".cc", ".cxx", ".cu", NULL}))
		return -1;
	return cuda ? BUILD_CUDA : BUILD_CPP;
}

/* Returns whether the path stays inside its folder. A path stays inside if none of its components is empty, "." or
 * "..". */
static bool stays_inside(const char *path)
{
	for (const char *part = path;; part++) {
		size_t length = strcspn(part, "/");

		if (length == 0 || (length <= 2 && strncmp(part, "..", length) == 0))
			return false;
		part += length;
		if (*part == '\0')
			return true;
	}
}

/* Returns the language because of which the solution needs a GPU, or NULL if it needs none. */
static const char *language_of_gpus(const struct solution *solution)
{
	return build_of(solution) == BUILD_CUDA || says_language(solution, "cuda") ? "CUDA"
	       : says_language(solution, "triton")				     ? "Triton"
										     : NULL;
}

/* Returns why the solution cannot run, or NULL. The answer must depend only on the device class and on what version_of
 * puts into the version, because a stored verdict counts as long as the version is the same. The version is that of a
 * solution that runs (not refuse_truth), so that a verdict from a GPU counts on a machine without a GPU. */
static const char *why_not_run(const char *path, const struct solution *solution, const char *device_class,
			       struct arena *arena)
{
	const char *language = strncmp(device_class, "sm_", 3) == 0 ? NULL : language_of_gpus(solution);
	int build = build_of(solution);

	if (build < 0)
		return arena_printf(arena, "%s: reftest runs solutions in Python, C++ and CUDA, but the entry point is in %s",
				    path, solution->entry_source);
	if (language != NULL)
		return arena_printf(arena, "%s is written in %s and needs a GPU; this run uses the CPU", path, language);
	if (build != BUILD_NONE && solution->binding != NULL && strcmp(solution->binding, "torch") != 0)
		return arena_printf(arena, "%s: reftest compiles only solutions with the binding \"torch\", "
					   "but the binding of this solution is \"%s\"",
				    path, solution->binding);
	for (int i = 0; i < solution->source_count; i++)
		if (!stays_inside(solution->sources[i].path))
			return arena_printf(arena, "%s: the path of the source \"%s\" leads out of the solution's folder",
					    path, solution->sources[i].path);
	return NULL;
}

/* Returns whether the solution's source file with the entry point has the same code as the reference. */
static bool is_reference(const struct solution *solution, const struct definition *definition)
{
	for (int i = 0; i < solution->source_count; i++) {
		const struct solution_source *source = &solution->sources[i];

		if (strcmp(source->path, solution->entry_source) == 0 && is_python(source->path))
			return same_code_as_reference(definition, source->content, strlen(source->content));
	}
	return false;
}

/* Returns the author of the reference according to a tag "author:NAME" of the definition, or NULL. */
static const char *author_of_reference(const struct definition *definition)
{
	static const char tag[] = "author:";

	for (int i = 0; i < definition->tag_count; i++)
		if (strncmp(definition->tags[i], tag, sizeof tag - 1) == 0)
			return definition->tags[i] + sizeof tag - 1;
	return NULL;
}

static const char *version_of(const struct solution *solution, const char *related, struct arena *arena)
{
	const char *gpus = language_of_gpus(solution);
	struct buf all = {0};
	char hex[DIGEST_HEX];

	buf_printf(&all, "%s::%s\n%d %d\n%s\n", solution->entry_source, solution->entry_function, (int)solution->outputs,
		   build_of(solution), related != NULL ? related : "");
	buf_printf(&all, "needs %s, binding %s\n", gpus != NULL ? gpus : "no GPU",
		   solution->binding != NULL ? solution->binding : "none");
	for (int i = 0; i < solution->source_count; i++) {
		const struct solution_source *source = &solution->sources[i];

		buf_printf(&all, "%s %zu\n%s\n", source->path, strlen(source->content), source->content);
	}
	const struct digest digest = digest_of(all.data, all.length);

	buf_free(&all);
	digest_hex(&digest, hex);
	return arena_string(arena, hex);
}

static const char *why_not_stored(const char *path, const struct solution *solution, struct arena *arena)
{
	if (build_of(solution) != BUILD_NONE)
		return arena_printf(arena, "not cached: %s is compiled, so the ground truth may depend on more than its source code",
				    path);
	for (int i = 0; i < solution->source_count; i++) {
		const struct solution_source *source = &solution->sources[i];
		const char *why = is_python(source->path)
				      ? why_truth_is_not_stored(arena_printf(arena, "%s (%s)", path, source->path),
								source->content, strlen(source->content), arena)
				      : NULL;

		if (why != NULL)
			return why;
	}
	return NULL;
}

static struct truth_program program_of(const char *name, const char *path, const struct solution *solution,
				       struct arena *arena)
{
	static const enum program_outputs outputs[] = {[SOLUTION_UNSAID] = OUTPUTS_GUESSED,
						       [SOLUTION_RETURNS] = OUTPUTS_RETURNED,
						       [SOLUTION_WRITES] = OUTPUTS_WRITTEN};
	struct program_file *files = arena_array(arena, (size_t)solution->source_count, sizeof *files);

	for (int i = 0; i < solution->source_count; i++)
		files[i] = (struct program_file){solution->sources[i].path, solution->sources[i].content};
	return (struct truth_program){.name = name,
				      .path = path,
				      .entry_point = solution->entry_function,
				      .files = files,
				      .file_count = solution->source_count,
				      .entry_file = solution->entry_source,
				      .build = (enum program_build)build_of(solution),
				      .outputs = outputs[solution->outputs]};
}

struct own_truth solution_truth_read(const char *path, const struct definition *definition, const struct buf *bytes,
				     const char *why, const char *device_class, struct arena *arena)
{
	const struct solution_place place = place_of(path, definition, arena);
	struct own_truth out = {.truth = {.name = arena_printf(arena, "%s%s", prefix, place.name),
					  .version = "none",
					  .program = true,
					  .place = path},
				.author = place.author != NULL ? place.author : "",
				.path = path};
	const char *author = author_of_reference(definition);
	struct err err = {""};
	const struct solution *solution =
	    why != NULL ? NULL : solution_load(path, &place, bytes->data, bytes->length, arena, &err);

	if (solution == NULL) {
		refuse_truth(&out.truth, why != NULL ? why : arena_string(arena, err.text), arena);
		out.invalid = true;
		return out;
	}
	out.author = solution->author;
	if (author != NULL && strcmp(author, solution->author) == 0)
		out.truth.related = arena_printf(arena, "%s wrote both the solution and the reference, so they may share a "
							"mistake", author);
	out.truth.version = version_of(solution, out.truth.related, arena);
	out.truth.refused = why_not_run(path, solution, device_class, arena);
	if (out.truth.refused != NULL)
		return out;
	if (is_reference(solution, definition))
		refuse_truth(&out.truth,
			     arena_printf(arena, "%s has the same code as the reference, so it cannot verify the "
						 "reference", path),
			     arena);
	out.program = program_of(out.truth.name, path, solution, arena);
	out.outside = why_not_stored(path, solution, arena);
	return out;
}

bool solution_is_named(const struct own_truth *solution, const char *word)
{
	return solution->author != NULL &&
	       (strcmp(solution->truth.name + sizeof prefix - 1, word) == 0 || strcmp(solution->author, word) == 0);
}
