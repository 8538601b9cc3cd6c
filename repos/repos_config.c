#include "repos/repos_config.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"

enum { CONFIG_MOST = 1 << 20 };

/* Reads the member `key` of an object. The member must be a string. */
static int read_text(const struct json_text *text, const struct json_step *entry, const cJSON *object, const char *key,
		     struct arena *arena, const char **out, struct err *err)
{
	const struct json_step at = {.up = entry, .key = key};
	const cJSON *value = json_member(object, key);

	if (!cJSON_IsString(value))
		return json_expected(text, &at, value, err, "a string");
	*out = arena_string(arena, value->valuestring);
	return 0;
}

static int read_entry(const struct json_text *text, const cJSON *object, const char *root, struct arena *arena,
		      struct repos_entry *out, struct err *err)
{
	const struct json_step top = {.key = "repositories"}, at = {.up = &top, .key = object->string};
	const char *status = NULL;

	out->name = arena_string(arena, object->string);
	if (!cJSON_IsObject(object))
		return json_expected(text, &at, object, err, "an object");
	if (read_text(text, &at, object, "path", arena, &out->checkout.path, err) < 0 ||
	    read_text(text, &at, object, "status", arena, &status, err) < 0 ||
	    read_text(text, &at, object, "commit", arena, &out->checkout.commit, err) < 0 ||
	    read_text(text, &at, object, "message", arena, &out->checkout.message, err) < 0)
		return -1;
	out->checkout.status = checkout_status_read(status);
	if (out->checkout.path[0] != '/')
		out->checkout.path = arena_printf(arena, "%s/%s", root, out->checkout.path);
	return 0;
}

static int read_config(const struct json_text *text, const cJSON *json, const char *root, struct arena *arena,
		       struct repos_config *out, struct err *err)
{
	const struct json_step top = {.key = "repositories"};
	const cJSON *list = json_member(json, "repositories"), *each;

	if (read_text(text, NULL, json, "target_dir", arena, &out->target_dir, err) < 0)
		return -1;
	if (!cJSON_IsObject(list))
		return json_expected(text, &top, list, err, "an object");
	out->items = arena_array(arena, (size_t)cJSON_GetArraySize(list), sizeof *out->items);
	cJSON_ArrayForEach(each, list) {
		if (read_entry(text, each, root, arena, &out->items[out->count], err) < 0)
			return -1;
		out->count++;
	}
	return 0;
}

int repos_config_read(const char *root, struct arena *arena, struct repos_config *out, struct err *err)
{
	const char *path = arena_printf(arena, "%s/" REPOS_CONFIG, root);
	struct buf bytes = {0};
	enum file_answer answer = file_read(AT_FDCWD, path, CONFIG_MOST, &bytes, NULL, err);
	int rc = answer == FILE_ERROR ? -1 : 0;

	*out = (struct repos_config){NULL, NULL, 0};
	if (answer == FILE_OK) {
		const struct json_text text = {path, bytes.data, bytes.length, 1};
		cJSON *json = json_parse(&text, err);

		rc = json == NULL ? -1 : read_config(&text, json, root, arena, out, err);
		cJSON_Delete(json);
	}
	buf_free(&bytes);
	return rc;
}

struct repos_entry *repos_config_find(const struct repos_config *config, const char *name)
{
	for (int i = 0; i < config->count; i++)
		if (strcmp(config->items[i].name, name) == 0)
			return &config->items[i];
	return NULL;
}

void repos_config_set(struct repos_config *config, const char *name, const struct checkout *checkout, struct arena *arena)
{
	struct repos_entry *entry = repos_config_find(config, name);

	if (entry == NULL) {
		struct repos_entry *more = arena_array(arena, (size_t)config->count + 1, sizeof *more);

		if (config->count > 0)
			memcpy(more, config->items, (size_t)config->count * sizeof *more);
		config->items = more;
		entry = &more[config->count++];
		entry->name = name;
	}
	entry->checkout = *checkout;
}

static void add_member(struct buf *out, const char *key, const char *value, const char *end)
{
	buf_printf(out, "      \"%s\": ", key);
	buf_json_string(out, value);
	buf_text(out, end);
}

int repos_config_write(const char *root, const struct repos_config *config, struct err *err)
{
	struct buf out = {0}, path = {0};

	buf_printf(&path, "%s/" REPOS_CONFIG, root);
	buf_text(&out, "{\n  \"target_dir\": ");
	buf_json_string(&out, config->target_dir);
	buf_text(&out, ",\n  \"repositories\": {");
	for (int i = 0; i < config->count; i++) {
		const struct checkout *one = &config->items[i].checkout;

		buf_text(&out, i == 0 ? "\n    " : ",\n    ");
		buf_json_string(&out, config->items[i].name);
		buf_text(&out, ": {\n");
		add_member(&out, "path", one->path, ",\n");
		add_member(&out, "status", checkout_status_name(one->status), ",\n");
		add_member(&out, "commit", one->commit, ",\n");
		add_member(&out, "message", one->message, "\n    }");
	}
	buf_text(&out, config->count > 0 ? "\n  }\n}\n" : "}\n}\n");
	int rc = file_replace(path.data, out.data, out.length, err);

	buf_free(&out);
	buf_free(&path);
	return rc < 0 ? -1 : 0;
}
