#include "dataset/solution.h"

#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/unsafe_character.h"
#include "dataset/python_outline.h"

enum { NAME_BYTES = 200, PATH_BYTES = 4096, NOTES = 20 };

struct reader {
	struct json_text text;
	struct arena *arena;
	struct solution *out;
	const char **notes;       /* space for NOTES */
	struct err *err;
};

/* Writes a message "expected …, found …". Always returns -1. */
static int expected(struct reader *r, const struct json_step *at, const char *what, const cJSON *found)
{
	return json_expected(&r->text, at, found, r->err, what);
}

/* Adds a note for each unknown field that resembles a field of the schema. An unknown field that resembles none may
 * belong to a newer version of the schema, so it gets no note. */
static void note_misspelt(struct reader *r, const struct json_step *up, const cJSON *object, const char *const *known,
			  int count)
{
	for (const cJSON *member = object->child; member != NULL && r->out->note_count < NOTES; member = member->next) {
		const struct json_step at = {.up = up, .key = member->string};
		const char *near = suggest_word(member->string, known, count);
		struct err sentence;

		if (near == NULL || json_member(object, near) != NULL)
			continue;
		json_error_at(&r->text, &at, &sentence, "the field \"%s\" is unknown to the schema; did you mean \"%s\"?",
			      err_show(member->string).text, near);
		r->notes[r->out->note_count++] = arena_string(r->arena, sentence.text);
	}
}

/* Copies a member that is a non-empty string of safe characters. Returns NULL with a message on error. */
static const char *read_text(struct reader *r, const struct json_step *up, const cJSON *object, const char *key,
			     size_t most)
{
	const char *text = json_read_text(&r->text, up, object, key, most, r->err);

	return text != NULL ? arena_string(r->arena, text) : NULL;
}

/* Reads a name, which must equal `place`, the corresponding part of the path. */
static const char *read_name(struct reader *r, const cJSON *json, const char *key, const char *place)
{
	const struct json_step at = {.key = key};
	const char *name = read_text(r, NULL, json, key, NAME_BYTES);

	if (name == NULL || place == NULL || strcmp(name, place) == 0)
		return name;
	json_error_at(&r->text, &at, r->err, "expected \"%s\", as in the file's path, found \"%s\"", err_show(place).text,
		      err_show(name).text);
	return NULL;
}

/* --- the spec ------------------------------------------------------------------------------------------------ */

static const struct json_step at_spec = {.key = "spec"};

/* Checks a list of strings. If `out` is not NULL, writes copies of the strings to it, and their number to `count`. */
static int read_strings(struct reader *r, const cJSON *spec, const char *key, bool required, const char *const **out,
			int *count)
{
	const struct json_step list = {.up = &at_spec, .key = key};
	const cJSON *value = json_member(spec, key);
	int index = 0;

	if (value == NULL || cJSON_IsNull(value))
		return required ? json_missing(&r->text, &at_spec, key, r->err, "a list of strings") : 0;
	if (!cJSON_IsArray(value) || (required && value->child == NULL))
		return expected(r, &list, "a list with a string", value);
	const char **copies = arena_array(r->arena, (size_t)cJSON_GetArraySize(value), sizeof *copies);

	for (const cJSON *item = value->child; item != NULL; item = item->next, index++) {
		const struct json_step at = {.up = &list, .index = index};

		if (!cJSON_IsString(item) || *item->valuestring == '\0')
			return expected(r, &at, "a non-empty string", item);
		copies[index] = arena_string(r->arena, item->valuestring);
	}
	if (out != NULL) {
		*out = copies;
		*count = index;
	}
	return 0;
}

/* Reads "language", a string. */
static int read_language(struct reader *r, const cJSON *spec)
{
	const char **languages = arena_array(r->arena, 1, sizeof *languages);

	languages[0] = read_text(r, &at_spec, spec, "language", NAME_BYTES);
	r->out->languages = languages;
	r->out->language_count = languages[0] != NULL;
	return languages[0] != NULL ? 0 : -1;
}

/* Adds a note for each language that no version of the format allows. */
static void note_unknown_languages(struct reader *r)
{
	static const char *const known[] = {"python", "pytorch",  "triton",  "cpp",    "cuda",    "cuda_cpp",
					    "cute_dsl", "tilelang", "cutlass", "cudnn", "cublas", "thunderkittens"};
	enum { KNOWN = sizeof known / sizeof *known };

	for (int i = 0; i < r->out->language_count && r->out->note_count < NOTES; i++) {
		const char *language = r->out->languages[i], *near = suggest_word(language, known, KNOWN);
		struct err sentence;
		bool found = false;

		for (int k = 0; k < KNOWN; k++)
			found = found || strcmp(known[k], language) == 0;
		if (found)
			continue;
		json_error_at(&r->text, &at_spec, &sentence, "the language \"%s\" is unknown%s%s%s", err_show(language).text,
			      near != NULL ? "; did you mean \"" : "", near != NULL ? near : "", near != NULL ? "\"?" : "");
		r->notes[r->out->note_count++] = arena_string(r->arena, sentence.text);
	}
}

/* Reads "destination_passing_style" and "binding". Ignores a value that has the wrong type, as flashinfer-bench
 * does. */
static void read_calling(struct reader *r, const cJSON *spec)
{
	const cJSON *writes = json_member(spec, "destination_passing_style");
	const char *binding = json_text_of(spec, "binding");

	if (cJSON_IsBool(writes))
		r->out->outputs = cJSON_IsTrue(writes) ? SOLUTION_WRITES : SOLUTION_RETURNS;
	if (binding != NULL)
		r->out->binding = arena_string(r->arena, binding);
}

/* Reads "FILE::FUNCTION". */
static int read_entry_point(struct reader *r, const cJSON *spec)
{
	const struct json_step at = {.up = &at_spec, .key = "entry_point"};
	const char *text = read_text(r, &at_spec, spec, "entry_point", PATH_BYTES);
	const char *colons = text != NULL ? strstr(text, "::") : NULL;

	if (text == NULL)
		return -1;
	if (colons == NULL || colons == text || colons[2] == '\0')
		return expected(r, &at, "a source file and a function, as in \"main.py::run\"",
				json_member(spec, "entry_point"));
	r->out->entry_source = arena_copy(r->arena, text, (size_t)(colons - text));
	r->out->entry_function = colons + 2;
	return 0;
}

static int read_spec(struct reader *r, const cJSON *json)
{
	static const char *const known[] = {"language",	    "languages",      "target_hardware",
					    "entry_point",  "dependencies",   "build_commands",
					    "binding",	    "destination_passing_style"};
	const cJSON *spec = json_member(json, "spec");

	if (spec == NULL)
		return json_missing(&r->text, NULL, "spec", r->err, "an object");
	if (!cJSON_IsObject(spec))
		return expected(r, &at_spec, "an object", spec);
	note_misspelt(r, &at_spec, spec, known, sizeof known / sizeof *known);
	if (json_member(spec, "languages") != NULL) {
		if (read_strings(r, spec, "languages", true, &r->out->languages, &r->out->language_count) != 0)
			return -1;
	} else if (read_language(r, spec) != 0) {
		return -1;
	}
	note_unknown_languages(r);
	read_calling(r, spec);
	return read_strings(r, spec, "target_hardware", true, NULL, NULL) != 0 ||
		       read_strings(r, spec, "dependencies", false, NULL, NULL) != 0 ||
		       read_strings(r, spec, "build_commands", false, NULL, NULL) != 0
		   ? -1
		   : read_entry_point(r, spec);
}

/* --- the sources --------------------------------------------------------------------------------------------- */

static const struct json_step at_sources = {.key = "sources"};

/* `entry` is the name of the function that the source must define, or NULL. */
static int check_python(struct reader *r, const struct json_step *source, const char *content, const char *entry)
{
	const struct json_step at = {.up = source, .key = "content"};
	struct arena scratch = {0};
	struct python_outline outline;
	struct err why;
	int rc = 0;
	enum python_outline_answer answer =
	    python_outline_read(content, strlen(content), entry, &scratch, &outline, &why);

	if (answer == PYTHON_OUTLINE_ERROR)
		rc = json_error_at(&r->text, &at, r->err, "the source is not valid Python at line %d, column %d: %s",
				   outline.line, outline.column, why.text);
	else if (answer == PYTHON_OUTLINE_OK && entry != NULL && !python_outline_may_define(&outline, entry))
		rc = json_error_at(&r->text, &at, r->err,
				   "expected the entry point as a function %s() at top level, found none",
				   err_show(entry).text);
	arena_free(&scratch);
	return rc;
}

/* Returns -1 with a message on error. */
static int read_source(struct reader *r, const struct json_step *at, const cJSON *json, struct solution_source *out)
{
	const struct json_step content_at = {.up = at, .key = "content"};
	const cJSON *content = json_member(json, "content");

	if (!cJSON_IsObject(json))
		return expected(r, at, "an object with \"path\" and \"content\"", json);
	const char *path = read_text(r, at, json, "path", PATH_BYTES);
	size_t length = path != NULL ? strlen(path) : 0;

	if (path == NULL)
		return -1;
	if (content == NULL)
		return json_missing(&r->text, at, "content", r->err, "the text of the file");
	if (!cJSON_IsString(content) || content->valuestring[strspn(content->valuestring, " \t\r\n")] == '\0')
		return expected(r, &content_at, "the content of the file as a string that is not empty", content);
	*out = (struct solution_source){path, arena_string(r->arena, content->valuestring)};
	if (length < 3 || strcmp(path + length - 3, ".py") != 0)
		return 0;
	bool entry = strcmp(path, r->out->entry_source) == 0;

	return check_python(r, at, content->valuestring, entry ? r->out->entry_function : NULL);
}

static int read_sources(struct reader *r, const cJSON *json)
{
	const cJSON *list = json_member(json, "sources");
	int count = cJSON_GetArraySize(list), index = 0;
	bool entry = false;

	if (list == NULL)
		return json_missing(&r->text, NULL, "sources", r->err, "a list of source files");
	if (!cJSON_IsArray(list) || count == 0)
		return expected(r, &at_sources, "a list with a source file", list);
	if (count > SOLUTION_SOURCES)
		return json_error_at(&r->text, &at_sources, r->err, "expected at most %d sources, found %d",
				     SOLUTION_SOURCES, count);
	struct solution_source *sources = arena_array(r->arena, (size_t)count, sizeof *sources);

	for (const cJSON *item = list->child; item != NULL; item = item->next, index++) {
		const struct json_step at = {.up = &at_sources, .index = index};

		if (read_source(r, &at, item, &sources[index]) != 0)
			return -1;
		for (int i = 0; i < index; i++)
			if (strcmp(sources[i].path, sources[index].path) == 0)
				return json_error_at(&r->text, &at, r->err, "expected each path once, found \"%s\" again",
						     err_show(sources[i].path).text);
		entry = entry || strcmp(sources[index].path, r->out->entry_source) == 0;
	}
	if (!entry)
		return json_error_at(&r->text, &at_sources, r->err, "expected the source of the entry point, \"%s\", found none",
				     err_show(r->out->entry_source).text);
	r->out->sources = sources;
	r->out->source_count = count;
	return 0;
}

/* --- the whole ----------------------------------------------------------------------------------------------- */

static int read_solution(struct reader *r, const cJSON *json, const struct solution_place *place)
{
	static const char *const known[] = {"name", "definition", "author", "spec", "sources", "description"};
	struct solution *out = r->out;

	if (!cJSON_IsObject(json))
		return expected(r, NULL, "a solution object", json);
	note_misspelt(r, NULL, json, known, sizeof known / sizeof *known);
	if ((out->name = read_name(r, json, "name", place->name)) == NULL ||
	    (out->definition = read_name(r, json, "definition", place->definition)) == NULL ||
	    (out->author = read_name(r, json, "author", place->author)) == NULL)
		return -1;
	return read_spec(r, json) != 0 ? -1 : read_sources(r, json);
}

const struct solution *solution_load(const char *path, const struct solution_place *place, const void *bytes,
				     size_t length, struct arena *arena, struct err *err)
{
	struct reader r = {
	    .text = {.name = path, .text = bytes, .length = length, .first_line = 1}, .arena = arena, .err = err};

	if (length > SOLUTION_BYTES) {
		err_set(err, "%s: the file has %zu bytes, more than the limit of %d", path, length, SOLUTION_BYTES);
		return NULL;
	}
	cJSON *json = json_parse(&r.text, err);

	if (json == NULL)
		return NULL;
	r.out = arena_alloc(arena, sizeof *r.out);
	r.notes = arena_array(arena, NOTES, sizeof *r.notes);
	r.out->notes = r.notes;
	int wrong = read_solution(&r, json, place);

	cJSON_Delete(json);
	return wrong ? NULL : r.out;
}
