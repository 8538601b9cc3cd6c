/* published_models - looks up published model configurations. models/models.json is a table with one row per line. The
 * assembler embeds this file in the library unchanged. A look-up skips all rows that do not contain the model's name,
 * and parses only the others. */
#include "kernels/core/published_models.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kernels_digest.h" /* changes when models.json changes, so that make compiles this file again */

__asm__(".pushsection .rodata\n"
        "models_begin:\n"
        ".incbin \"models/models.json\"\n"
        "models_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const char models_begin[] __attribute__((visibility("hidden")));
extern const char models_end[] __attribute__((visibility("hidden")));

enum { NAME_BYTES = 128 };

const char *next_model_row(const char *after, size_t *length)
{
	const char *at = after == NULL ? models_begin : strchr(after, '\n');
	const char *end;

	while (at != NULL && at < models_end && *at != '{')
		at++;
	if (at == NULL || at >= models_end)
		return NULL;
	end = strchr(at, '\n');
	end = end != NULL ? end : models_end;
	while (end > at && end[-1] != '}')
		end--;
	*length = (size_t)(end - at);
	return at;
}

static bool row_contains(const char *row, size_t length, const char *name)
{
	char quoted[NAME_BYTES + 3];
	int size = snprintf(quoted, sizeof quoted, "\"%s\"", name);

	return size > 0 && (size_t)size < sizeof quoted && memmem(row, length, quoted, (size_t)size) != NULL;
}

static bool has_alias(const cJSON *row, const char *name)
{
	const cJSON *alias;

	cJSON_ArrayForEach(alias, json_member(row, "aliases"))
		if (cJSON_IsString(alias) && strcmp(alias->valuestring, name) == 0)
			return true;
	return false;
}

/* If the row belongs to the model with the name or alias `name`, writes the model's name to `model` and returns
 * true. */
static bool row_names(const char *row, size_t length, const char *name, char *model)
{
	bool found = false;

	if (!row_contains(row, length, name))
		return false;
	cJSON *json = cJSON_ParseWithLength(row, length);
	const char *own = json_text_of(json, "model");

	if (own != NULL && (strcmp(own, name) == 0 || has_alias(json, name))) {
		found = true;
		snprintf(model, NAME_BYTES, "%s", own);
	}
	cJSON_Delete(json);
	return found;
}

/* Writes the name to `key` in the spelling of models.json: in lower case, and without the part up to the last '/'. */
static void write_key(const char *name, char *key)
{
	const char *slash = strrchr(name, '/');

	snprintf(key, NAME_BYTES, "%s", slash != NULL ? slash + 1 : name);
	for (; *key != '\0'; key++)
		*key = (char)tolower((unsigned char)*key);
}

const char *model_row(const char *model, const char *after, size_t *length)
{
	char own[NAME_BYTES] = "", found[NAME_BYTES], key[NAME_BYTES];
	const char *row = NULL;

	write_key(model, key);
	while (own[0] == '\0' && (row = next_model_row(row, length)) != NULL)
		row_names(row, *length, key, own);
	for (row = next_model_row(after, length); own[0] != '\0' && row != NULL; row = next_model_row(row, length))
		if (row_names(row, *length, own, found) && strcmp(found, own) == 0)
			return row;
	return NULL;
}

bool model_number(const char *model, const char *field, double *out)
{
	size_t length;
	bool found = false;

	for (const char *row = model_row(model, NULL, &length); row != NULL && !found; row = model_row(model, row, &length)) {
		if (!row_contains(row, length, field))
			continue;
		cJSON *json = cJSON_ParseWithLength(row, length);
		const cJSON *value = json_member(json, field);

		if (cJSON_IsNumber(value)) {
			*out = value->valuedouble;
			found = true;
		}
		cJSON_Delete(json);
	}
	return found;
}

const char *rms_norm_field(int number)
{
	static const char *const fields[] = {"rms_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"};

	return number < (int)(sizeof fields / sizeof *fields) ? fields[number] : NULL;
}
