#include "models/model_config.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/string_list.h"
#include "base/suggest.h"
#include "kernels/core/published_models.h"

static void add_part(struct model *model, const cJSON *object, const char *source, const char *path)
{
	if (object != NULL && model->part_count < MODEL_PARTS)
		model->parts[model->part_count++] = (struct model_part){object, source, path};
}

static const char *lower_case(const char *text, struct arena *arena)
{
	char *copy = arena_string(arena, text);

	for (char *c = copy; *c != '\0'; c++)
		*c = (char)tolower((unsigned char)*c);
	return copy;
}

/* Returns the part of an hf_id after the '/'. */
static const char *behind_slash(const char *text)
{
	const char *slash = strrchr(text, '/');

	return slash != NULL ? slash + 1 : text;
}

static void take_row(struct model *model, cJSON *row, struct arena *arena)
{
	const char *source = json_text_of(row, "source"), *architecture = json_text_of(row, "architecture"),
		   *hf_id = json_text_of(row, "hf_id");

	model->owned[model->owned_count++] = row;
	if (model->name == NULL)
		model->name = model->label = arena_string(arena, json_text_of(row, "model"));
	if (architecture != NULL)
		model->architecture = arena_string(arena, architecture);
	if (hf_id != NULL)
		model->label = arena_string(arena, behind_slash(hf_id));
	add_part(model, row, source != NULL ? arena_string(arena, source) : "no source", "");
}

bool model_find(const char *name, struct model *model, struct arena *arena)
{
	const char *lower = lower_case(behind_slash(name), arena);
	struct model found = {0};
	size_t length;

	for (const char *row = model_row(lower, NULL, &length); row != NULL && found.owned_count < MODEL_PARTS;
	     row = model_row(lower, row, &length)) {
		cJSON *json = cJSON_ParseWithLength(row, length);

		if (json != NULL)
			take_row(&found, json, arena);
	}
	if (found.name != NULL)
		*model = found;
	return found.name != NULL;
}

const char *model_near(const char *name, struct arena *arena)
{
	struct string_list names = {.arena = arena};
	size_t length;

	for (const char *row = next_model_row(NULL, &length); row != NULL; row = next_model_row(row, &length)) {
		cJSON *json = cJSON_ParseWithLength(row, length);
		const cJSON *alias;

		if (json_text_of(json, "model") != NULL)
			string_list_add(&names, arena_string(arena, json_text_of(json, "model")));
		cJSON_ArrayForEach(alias, json_member(json, "aliases")) string_list_add(&names, arena_string(arena, alias->valuestring));
		cJSON_Delete(json);
	}
	return suggest_word(lower_case(behind_slash(name), arena), names.items, names.count);
}

/* Returns the name of the file's folder if the file is called config.json, else the file's name without its suffix. */
static char *name_of_path(const char *path, struct arena *arena)
{
	char *copy = arena_string(arena, path), *slash = strrchr(copy, '/'), *dot;

	if (slash != NULL && strcmp(slash + 1, "config.json") == 0) {
		*slash = '\0';
		return arena_string(arena, behind_slash(copy));
	}
	copy = arena_string(arena, behind_slash(path));
	dot = strrchr(copy, '.');
	if (dot != NULL && dot > copy)
		*dot = '\0';
	return copy;
}

static bool name_is_plain(const char *name)
{
	for (const char *c = name; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("-._", *c) == NULL)
			return false;
	return *name != '\0' && *name != '.' && strlen(name) < 128;
}

static int read_architecture(struct model *model, const cJSON *root, struct arena *arena, struct err *err)
{
	const cJSON *names = json_member(root, "architectures"), *first = cJSON_GetArrayItem(names, 0);
	const struct json_step step = {NULL, "architectures", 0};

	if (cJSON_IsArray(names) && first == NULL)
		return json_error_at(&model->text, &step, err, "expected the name of the model's architecture, found an empty list");
	if (!cJSON_IsArray(names) || !cJSON_IsString(first))
		return json_expected(&model->text, &step, names, err, "a list with the name of the model's architecture");
	model->architecture = arena_string(arena, first->valuestring);
	return 0;
}

int model_read(const char *path, const char *name, struct model *model, struct arena *arena, struct err *err)
{
	struct buf bytes = {0};
	const struct json_step whole = {NULL, "", 0};

	*model = (struct model){.label = name != NULL ? arena_string(arena, name) : name_of_path(path, arena)};
	if (!name_is_plain(model->label))
		return err_set(err,
			       "%s: the model's name '%s' contains characters that are not allowed in tags; give the "
			       "model another name with --model",
			       path, err_show(model->label).text);
	model->name = lower_case(model->label, arena);
	enum file_answer answer = file_read(AT_FDCWD, path, CONFIG_BYTES, &bytes, NULL, err);

	if (answer != FILE_OK) {
		buf_free(&bytes);
		return answer == FILE_ABSENT ? err_set(err, "%s does not exist", path) : -1;
	}
	model->text = (struct json_text){arena_string(arena, path), arena_copy(arena, bytes.data != NULL ? bytes.data : "", bytes.length),
					 bytes.length, 1};
	buf_free(&bytes);
	cJSON *root = json_parse(&model->text, err);

	if (root == NULL)
		return -1;
	model->owned[model->owned_count++] = root;
	if (!cJSON_IsObject(root))
		return json_expected(&model->text, &whole, root, err, "an object");
	if (cJSON_IsObject(json_member(root, "text_config")))
		add_part(model, json_member(root, "text_config"), model->text.name, "text_config");
	add_part(model, root, model->text.name, "");
	if (cJSON_IsObject(model_member(model, "rope_parameters", NULL)))
		add_part(model, model_member(model, "rope_parameters", NULL), model->text.name, "rope_parameters");
	return read_architecture(model, root, arena, err);
}

void model_close(struct model *model)
{
	for (int i = 0; i < model->owned_count; i++)
		cJSON_Delete(model->owned[i]);
	*model = (struct model){0};
}

const cJSON *model_member(const struct model *model, const char *field, const struct model_part **part)
{
	for (int i = 0; i < model->part_count; i++) {
		const cJSON *member = json_member(model->parts[i].object, field);

		if (member != NULL && !cJSON_IsNull(member)) {
			if (part != NULL)
				*part = &model->parts[i];
			return member;
		}
	}
	return NULL;
}

bool model_integer(const struct model *model, const char *field, int64_t *value, const char **source)
{
	const struct model_part *part = NULL;
	const cJSON *member = model_member(model, field, &part);
	int64_t number;

	if (member == NULL || !json_integer(member, &number) || number <= 0)
		return false;
	*value = number;
	*source = part->source;
	return true;
}

bool model_real(const struct model *model, const char *field, double *value)
{
	const cJSON *member = model_member(model, field, NULL);

	if (!cJSON_IsNumber(member) || !(member->valuedouble > 0))
		return false;
	*value = member->valuedouble;
	return true;
}

int model_field_error(const struct model *model, const char *field, const char *what, struct err *err)
{
	const struct model_part *part = NULL;
	const cJSON *member = model_member(model, field, &part);

	if (model->text.text == NULL)
		return err_set(err, "the table of models has no field '%s' for %s (expected %s); pass the model's "
				    "config.json "
				    "with --config", field, model->name, what);
	if (member == NULL)
		return err_set(err, "%s: the field '%s' is missing (expected %s)", model->text.name, field, what);
	char expected[160];

	snprintf(expected, sizeof expected, "%s for '%s'", what, field);
	const struct json_step inside = {NULL, part != NULL ? part->path : "", 0}, step = {*inside.key != '\0' ? &inside : NULL, field, 0};

	return json_expected(&model->text, &step, member, err, expected);
}
