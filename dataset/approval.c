#include "dataset/approval.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "dataset/definition_parse.h"

enum { CASES_MAX = 100000, CLASS_BYTES = 40 };

#define AGAIN "run `reftest approve` again"

/* Removes the member "digest" from an approval, and computes the digest of the remaining members. */
static void take_digest(cJSON *json, char hex[DIGEST_HEX])
{
	cJSON_DeleteItemFromObjectCaseSensitive(json, "digest");
	char *text = cJSON_PrintUnformatted(json);

	if (text == NULL)
		die_no_memory();
	const struct digest digest = digest_of(text, strlen(text));

	cJSON_free(text);
	digest_hex(&digest, hex);
}

static bool is_date(const char *text)
{
	static const char form[] = "dddd-dd-dd";

	for (size_t i = 0; i < sizeof form - 1; i++)
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	return text[sizeof form - 1] == '\0';
}

static const char *text_of(const cJSON *json, const char *key, size_t most)
{
	const char *text = json_text_of(json, key);

	return text != NULL && strlen(text) <= most ? text : NULL;
}

/* Reads the case ids. Returns -1 if "cases" is not a list of strings. */
static int read_cases(const cJSON *json, struct arena *arena, struct approval *out)
{
	const cJSON *list = json_member(json, "cases"), *item;
	int count = cJSON_GetArraySize(list);

	if (!cJSON_IsArray(list) || count > CASES_MAX)
		return -1;
	const char **cases = arena_array(arena, (size_t)count, sizeof *cases);

	cJSON_ArrayForEach(item, list)
	{
		if (!cJSON_IsString(item))
			return -1;
		cases[out->case_count++] = arena_string(arena, item->valuestring);
	}
	out->cases = cases;
	return 0;
}

/* Checks that `json` has the members that approval_write writes, and that its digest is correct. */
static int check_form(const char *path, cJSON *json, struct err *err)
{
	const cJSON *version = json_member(json, "approval");
	const char *said = json_text_of(json, "digest");
	char hex[DIGEST_HEX], then[DIGEST_HEX] = "";
	int64_t number;

	if (!json_integer(version, &number))
		return err_set(err, "%s: expected a file that `reftest approve` wrote, found a file without the "
				    "member \"approval\" (a number)", path);
	if (number != APPROVAL_VERSION)
		return err_set(err, "%s: the file has version %lld of its format, but this reftest reads only version %d", path,
			       (long long)number, APPROVAL_VERSION);
	if (said != NULL && strlen(said) == sizeof then - 1)
		memcpy(then, said, sizeof then);
	take_digest(json, hex);
	if (strcmp(hex, then) != 0)
		return err_set(err, "%s: the file was changed after `reftest approve` wrote it, because its digest does not match; "
				    AGAIN, path);
	return 0;
}

static const struct definition *load_definition(const char *path, const char *op_type, const char *name, const cJSON *json,
						struct arena *arena, struct err *err)
{
	const cJSON *object = json_member(json, "definition");
	char *text = object != NULL ? cJSON_PrintUnformatted(object) : NULL;
	const struct definition *out = NULL;

	if (text != NULL)
		out = definition_parse(arena_printf(arena, "%s, its definition", path), op_type, name, text, strlen(text),
				       arena, err);
	else
		err_set(err, "%s: expected a member \"definition\"; " AGAIN, path);
	cJSON_free(text);
	if (out == NULL || out->entry_point != NULL)
		return out;
	err_set(err, "%s: the approved definition has no reference; " AGAIN, path);
	return NULL;
}

const struct approval *approval_load(const char *path, const char *op_type, const char *name, const void *bytes,
				     size_t length, struct arena *arena, struct err *err)
{
	const struct json_text text = {path, bytes, length, 1};
	struct approval *out = arena_alloc(arena, sizeof *out);
	cJSON *json = json_parse(&text, err);

	*out = (struct approval){0};
	if (json == NULL)
		return NULL;
	int rc = check_form(path, json, err);
	const char *date = text_of(json, "date", 10), *note = text_of(json, "note", APPROVAL_NOTE_BYTES),
		   *device = text_of(json, "device_class", CLASS_BYTES);

	if (rc == 0 && (date == NULL || !is_date(date) || note == NULL || device == NULL || read_cases(json, arena, out) != 0))
		rc = err_set(err, "%s: expected \"date\", \"note\", \"device_class\" and \"cases\"; " AGAIN, path);
	if (rc == 0)
		out->definition = load_definition(path, op_type, name, json, arena, err);
	if (out->definition != NULL) {
		out->date = arena_string(arena, date);
		out->note = arena_string(arena, note);
		out->device_class = arena_string(arena, device);
	}
	cJSON_Delete(json);
	return out->definition != NULL ? out : NULL;
}

/* Appends the text of an approval file that contains `digest`. */
static void put_text(const struct approval *approval, const char *digest, const char *definition, size_t length,
		     struct buf *out)
{
	buf_printf(out, "{\n  \"approval\": %d,\n  \"date\": ", APPROVAL_VERSION);
	buf_json_string(out, approval->date);
	buf_text(out, ",\n  \"note\": ");
	buf_json_string(out, approval->note);
	buf_text(out, ",\n  \"device_class\": ");
	buf_json_string(out, approval->device_class);
	buf_text(out, ",\n  \"cases\": [");
	for (int i = 0; i < approval->case_count; i++) {
		buf_text(out, i > 0 ? ",\n    " : "\n    ");
		buf_json_string(out, approval->cases[i]);
	}
	buf_printf(out, "\n  ],\n  \"digest\": \"%s\",\n  \"definition\": ", digest);
	buf_add(out, definition, length);
	buf_text(out, "\n}\n");
}

bool approval_names(const struct approval *approval, const char *id)
{
	for (int i = 0; i < approval->case_count; i++)
		if (strcmp(approval->cases[i], id) == 0)
			return true;
	return false;
}

int approval_write(const struct approval *approval, const char *definition, size_t length, struct buf *out,
		   struct err *err)
{
	const struct json_text alone = {"the definition", definition, length, 1};
	struct buf draft = {0};
	char hex[DIGEST_HEX] = "";

	if (json_check(&alone, err) != 0)
		return -1;
	while (length > 0 && strchr(" \t\r\n", definition[length - 1]) != NULL)
		length--;
	put_text(approval, "", definition, length, &draft);
	const struct json_text text = {"the approval", draft.data, draft.length, 1};
	cJSON *json = json_parse(&text, err);

	if (json != NULL) {
		take_digest(json, hex);
		put_text(approval, hex, definition, length, out);
	}
	cJSON_Delete(json);
	buf_free(&draft);
	return json != NULL ? 0 : -1;
}
