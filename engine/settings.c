#include "engine/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "engine/accepted_states.h"
#include "engine/case_sizes.h"
#include "engine/cases.h"
#include "engine/devices.h"
#include "engine/tolerance_text.h"
#include "workers/sandbox/sandbox.h"

static const char toml_name[] = "reftest.toml", json_name[] = "reftest.json";
const char *const settings_files[SETTINGS_FILES] = {toml_name, json_name};
static const char hook_table[] = "hook.";

/* ---- the values -------------------------------------------------------------------------------------------------- */

static int read_sizes(struct settings *settings, const char *text, struct err *err)
{
	return case_sizes_read(text, settings->size, err);
}

static int read_device(struct settings *settings, const char *text, struct err *err)
{
	struct device_choice choice;

	settings->device = text;
	return devices_read(text, &choice, err);
}

/* A dataset can add ground truths, but it cannot replace the ground truths of reftest. */
static int read_truth(struct settings *settings, const char *text, struct err *err)
{
	size_t first = strcspn(text, ",");

	settings->ground_truth = text;
	if ((first == 4 && strncmp(text, "auto", 4) == 0) || (first == 3 && strncmp(text, "all", 3) == 0))
		return 0;
	return err_set(err, "expected \"auto\" or \"all\", optionally followed by names, as in \"auto,solution\"");
}

static int read_accept(struct settings *settings, const char *text, struct err *err)
{
	settings->accept = text;
	return accepted_states_check(text, err);
}

static int read_required(struct settings *settings, const char *text, struct err *err)
{
	char name[64];

	settings->required = *text != '\0' ? text : NULL;
	if (strcmp(text, "full") == 0)
		return 0;
	for (size_t length; *text != '\0'; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), text);
		if (sandbox_gap_named(name) == NULL)
			return err_set(err, "expected \"full\", or a list of gaps in the sandbox, as in \"files,network\", not '%s'",
				       err_show(name).text);
	}
	return 0;
}

/* ---- the keys ---------------------------------------------------------------------------------------------------- */

struct key_row {
	const char *name;
	enum toml_kind kind; /* TOML_TEXT also allows a list of texts */
	int (*read)(struct settings *settings, const char *text, struct err *err); /* for a key of the kind TOML_TEXT */
	bool may_be_empty;
};

static const struct key_row rows[SETTING_COUNT] = {
    [SETTING_SIZES] = {"sizes", TOML_TEXT, read_sizes, false},
    [SETTING_DEVICE] = {"device", TOML_TEXT, read_device, false},
    [SETTING_GROUND_TRUTH] = {"ground-truth", TOML_TEXT, read_truth, false},
    [SETTING_TOLERANCE] = {"tolerance", TOML_TEXT, NULL, false},
    [SETTING_ACCEPT] = {"accept", TOML_TEXT, read_accept, false},
    [SETTING_REQUIRE_CONTAINMENT] = {"require-containment", TOML_TEXT, read_required, true},
    [SETTING_HOOK_STRICT] = {"hook.strict", TOML_FLAG, NULL, false},
    [SETTING_HOOK_ALL] = {"hook.all", TOML_FLAG, NULL, false},
};

/* The options that a dataset may not set, and what the user can do instead. tests/unit/test_settings.c checks that each
 * option of verify and watch is in exactly one of the tables `rows` and `user_rows`. */
#define GIVE(option) {option, "give --" option " on the command line"}
#define TOLERANCE(option) {option, "set the key tolerance"}
static const struct user_row {
	const char *name, *instead;
} user_rows[] = {
    {"remote", "set the environment variable REFTEST_REMOTE"},
    {"python", "give --python on the command line, or set the environment variable REFTEST_PYTHON"},
    {"root", "give --root on the command line"},
    TOLERANCE("atol"), TOLERANCE("rtol"), TOLERANCE("hit-ratio"),
    GIVE("repos"), GIVE("jobs"), GIVE("timeout"), GIVE("memory"), GIVE("isolation"), GIVE("seed"), GIVE("strict"),
    GIVE("edge"), GIVE("backward"), GIVE("no-workloads"), GIVE("solutions"), GIVE("no-diagnosis"), GIVE("changed"),
    GIVE("staged"), GIVE("op-type"), GIVE("last-failed"), GIVE("case"), GIVE("shard"), GIVE("alone"),
    GIVE("device-class"), GIVE("force"), GIVE("cached-only"), GIVE("dry-run"), GIVE("fail-fast"), GIVE("staged-arena"),
    GIVE("format"), GIVE("junit"), GIVE("save"), GIVE("quiet"), GIVE("verbose"), GIVE("all"), GIVE("json"), GIVE("exec"),
    GIVE("once"), GIVE("spares"), GIVE("poll"), GIVE("max-watches"), {"hook", "write the table [hook]"},
};

enum { USER_ROWS = sizeof user_rows / sizeof *user_rows, KEYS = SETTING_COUNT + USER_ROWS };

const char *settings_key(int index, const char **user_only)
{
	*user_only = index >= SETTING_COUNT && index < KEYS ? user_rows[index - SETTING_COUNT].instead : NULL;
	return index < SETTING_COUNT ? rows[index].name : index < KEYS ? user_rows[index - SETTING_COUNT].name : NULL;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct reader {
	const char *name; /* the name of the file */
	struct settings *settings;
	struct err *err;
};

static int fail_at(const struct reader *reader, const struct toml_value *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail_at(const struct reader *reader, const struct toml_value *value, const char *format, ...)
{
	struct buf text = {0};
	va_list args;

	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	err_set(reader->err, "%s:%d:%d: %s", reader->name, value->line, value->column, text.data);
	buf_free(&text);
	return -1;
}

static int unknown_key(const struct reader *reader, const struct toml_value *value, const char *key)
{
	const char *known[KEYS], *unused;
	int number = 0;

	for (; number < KEYS && strcmp(settings_key(number, &unused), key) != 0; number++)
		known[number] = settings_key(number, &unused);
	if (number >= SETTING_COUNT && number < KEYS)
		return fail_at(reader, value,
			       "a dataset cannot set \"%s\", because its author may be a stranger; %s instead", key,
			       user_rows[number - SETTING_COUNT].instead);
	/* If the name of the key is that of a setting, the key is in the wrong table: for example, a quoted
	 * "hook.strict" at top level instead of `strict` in the table [hook]. The message then suggests no setting. */
	const char *near = number < SETTING_COUNT ? NULL : suggest_word(key, known, SETTING_COUNT);

	if (near == NULL && number == KEYS)
		near = suggest_word(key, known, KEYS);
	if (near != NULL)
		return fail_at(reader, value, "unknown setting \"%s\"; did you mean \"%s\"?", err_show(key).text, near);
	return fail_at(reader, value, "unknown setting \"%s\"; docs/settings.md lists the settings", err_show(key).text);
}

static int wrong_kind(const struct reader *reader, const struct toml_value *value, const struct key_row *row)
{
	return fail_at(reader, value, "%s: expected %s, found %s", row->name,
		       row->kind == TOML_FLAG ? "true or false" : "a text, or a list of texts", toml_kind_name(value->kind));
}

/* Reads a text, or a list of texts, as an array. Returns the number of texts, or -1 with a message. */
static int read_texts(const struct reader *reader, const struct key_row *row, const struct toml_value *value,
		      const char ***out)
{
	const struct toml_value *items = value->kind == TOML_LIST ? value->items : value;
	int count = value->kind == TOML_LIST ? value->count : 1;
	const char **texts = arena_array(&reader->settings->arena, (size_t)count + 1, sizeof *texts);

	for (int i = 0; i < count; i++) {
		if (items[i].kind != TOML_TEXT)
			return wrong_kind(reader, &items[i], row);
		if (items[i].text[0] == '\0' || (items != value && row->read != NULL && strchr(items[i].text, ',') != NULL))
			return fail_at(reader, &items[i], "%s: '%s' is no name", row->name, err_show(items[i].text).text);
		texts[i] = items[i].text;
	}
	if (count == 0 && !row->may_be_empty)
		return fail_at(reader, value, "%s: the list is empty", row->name);
	*out = texts;
	return count;
}

static int read_value(const struct reader *reader, enum setting_id id, const struct toml_value *value, const char **text)
{
	struct settings *settings = reader->settings;
	const struct key_row *row = &rows[id];
	struct err why = {""};
	const char **texts = NULL;
	int count = read_texts(reader, row, value, &texts), rc;

	if (count < 0)
		return -1;
	const char *between = id == SETTING_TOLERANCE ? " " : ",";

	*text = "";
	for (int i = 0; i < count; i++)
		*text = arena_printf(&settings->arena, "%s%s%s", *text, i > 0 ? between : "", texts[i]);
	rc = id == SETTING_TOLERANCE ? tolerance_texts_read(texts, count, "the setting", settings->by_dtype, &why)
				     : row->read(settings, *text, &why);
	return rc < 0 ? fail_at(reader, value, "%s: %s", row->name, why.text) : 0;
}

static int read_flag(const struct reader *reader, enum setting_id id, const struct toml_value *value, const char **text)
{
	if (value->kind != TOML_FLAG)
		return wrong_kind(reader, value, &rows[id]);
	if (id == SETTING_HOOK_STRICT)
		reader->settings->hook_strict = value->flag;
	else
		reader->settings->hook_all = value->flag;
	*text = value->flag ? "true" : "false";
	return 0;
}

static int read_member(const struct reader *reader, const struct toml_value *value, const char *table)
{
	struct settings *settings = reader->settings;
	const char *key = arena_printf(&settings->arena, "%s%s", table, value->key);
	const char *text;
	int id = 0;

	if (value->kind == TOML_TABLE && strcmp(key, "hook") == 0) {
		for (int i = 0; i < value->count; i++)
			if (read_member(reader, &value->items[i], hook_table) < 0)
				return -1;
		return 0;
	}
	while (id < SETTING_COUNT && strcmp(rows[id].name, key) != 0)
		id++;
	/* A quoted key "hook.strict" at top level is not the key `strict` of the table [hook]. */
	if (id == SETTING_COUNT || (*table == '\0') != (strchr(rows[id].name, '.') == NULL))
		/* This is an error: otherwise, a misspelt setting would silently have no effect. */
		return unknown_key(reader, value, key);
	if ((rows[id].kind == TOML_FLAG ? read_flag : read_value)(reader, (enum setting_id)id, value, &text) < 0)
		return -1;
	settings->of[id] = (struct setting){rows[id].name, text, value->line};
	return 0;
}

/* ---- reftest.json, which older versions read --------------------------------------------------------------------- */

/* Converts a JSON value to a TOML value. Only texts and lists of texts are used. */
static struct toml_value value_of_json(const struct json_text *text, const cJSON *json, struct arena *arena)
{
	const struct cJSON *item = json->child;
	struct toml_value value = {.kind = TOML_TIME, .key = json->string};

	json_place(text, json->string != NULL ? json->string : "", &value.line, &value.column);
	if (cJSON_IsString(json)) {
		value.kind = TOML_TEXT;
		value.text = json->valuestring;
	} else if (cJSON_IsArray(json)) {
		struct toml_value *items = arena_array(arena, (size_t)cJSON_GetArraySize(json) + 1, sizeof *items);

		for (; item != NULL; item = item->next) {
			items[value.count] = (struct toml_value){.kind = cJSON_IsString(item) ? TOML_TEXT : TOML_TIME,
								 .line = value.line, .column = value.column,
								 .text = item->valuestring};
			value.count++;
		}
		value.kind = TOML_LIST;
		value.items = items;
	}
	return value;
}

static int read_json(const struct reader *reader, const struct json_text *text, const cJSON *json)
{
	static const struct {
		const char *old, *key;
	} keys[] = {{"require_containment", "require-containment"}, {"ground_truth", "ground-truth"}};
	struct arena *arena = &reader->settings->arena;
	const char *lines = "";

	if (!cJSON_IsObject(json))
		return json_expected(text, NULL, json, reader->err, "an object with settings");
	for (const cJSON *member = json->child; member != NULL; member = member->next) {
		struct toml_value value = value_of_json(text, member, arena);
		size_t k = 0;

		while (k < sizeof keys / sizeof *keys && strcmp(keys[k].old, member->string) != 0)
			k++;
		if (k == sizeof keys / sizeof *keys)
			return fail_at(reader, &value, "unknown setting \"%s\"; settings belong in %s (docs/settings.md)",
				       err_show(member->string).text, toml_name);
		value.key = keys[k].key;
		if (read_member(reader, &value, "") < 0)
			return -1;
		for (int id = 0; id < SETTING_COUNT; id++)
			if (strcmp(rows[id].name, value.key) == 0 && *reader->settings->of[id].text != '\0')
				lines = arena_printf(arena, "%s%s%s = \"%s\"", lines, *lines != '\0' ? "; " : "",
						     rows[id].name, reader->settings->of[id].text);
	}
	reader->settings->note = arena_printf(
	    arena, "later versions of reftest will not read %s: delete this file, and move its settings to %s: %s",
	    json_name, toml_name, *lines != '\0' ? lines : "the file has no settings");
	return 0;
}

static int parse_json(const struct reader *reader, const char *bytes, size_t length)
{
	const struct json_text text = {reader->name, bytes, length, 1};
	cJSON *json = json_parse(&text, reader->err);
	int rc = json == NULL ? -1 : read_json(reader, &text, json);

	cJSON_Delete(json);
	return rc;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static struct settings *new_settings(void)
{
	struct settings *settings = calloc(1, sizeof *settings);

	if (settings == NULL)
		die_no_memory();
	for (int i = 0; i < DTYPE_COUNT; i++)
		settings->by_dtype[i] = (struct tolerance){-1, -1, -1};
	return settings;
}

void settings_free(struct settings *settings)
{
	if (settings == NULL)
		return;
	arena_free(&settings->arena);
	free(settings);
}

static int parse(const struct reader *reader, const char *text, size_t length, bool json)
{
	if (json)
		return parse_json(reader, text, length);
	const struct toml_value *table = toml_parse(reader->name, text, length, &reader->settings->arena, reader->err);

	for (int i = 0; table != NULL && i < table->count; i++)
		if (read_member(reader, &table->items[i], "") < 0)
			return -1;
	return table == NULL ? -1 : 0;
}

struct settings *settings_parse(const char *text, size_t length, bool json, struct err *err)
{
	const struct reader reader = {json ? json_name : toml_name, new_settings(), err};

	reader.settings->file = reader.name;
	if (parse(&reader, text, length, json) == 0)
		return reader.settings;
	settings_free(reader.settings);
	return NULL;
}

/* Reads reftest.json or reftest.toml. Returns 0; if the file does not exist, sets `out` to NULL. Returns -1 with a
 * message on error. */
static int read_file(int root, bool json, struct settings **out, struct err *err)
{
	struct buf bytes = {0};
	enum file_answer answer = file_read(root, json ? json_name : toml_name, TOML_BYTES, &bytes, NULL, err);

	*out = answer == FILE_OK ? settings_parse(bytes.length > 0 ? bytes.data : "", bytes.length, json, err) : NULL;
	buf_free(&bytes);
	return *out == NULL && answer != FILE_ABSENT ? -1 : 0;
}

bool settings_is_path(const char *path)
{
	for (int i = 0; i < SETTINGS_FILES; i++)
		if (strcmp(path, settings_files[i]) == 0)
			return true;
	return false;
}

struct settings *settings_read(const char *path, struct err *err)
{
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct settings *settings, *old = NULL;

	if (root < 0)
		return new_settings(); /* the dataset exists only in git's index, so no settings file can be read */
	int rc = read_file(root, false, &settings, err);

	if (rc == 0)
		rc = read_file(root, true, &old, err);
	close(root);
	if (rc == 0 && settings != NULL && old != NULL)
		rc = err_set(err, "%s: %s has the settings of this dataset; delete %s", json_name, toml_name, json_name);
	if (rc == 0 && (settings != NULL || old != NULL))
		return settings != NULL ? settings : old;
	settings_free(settings);
	settings_free(old);
	return rc == 0 ? new_settings() : NULL;
}

const char *settings_required(const struct settings *settings, const char *option)
{
	const char *wanted = option != NULL ? option : settings != NULL ? settings->required : NULL;

	return wanted == NULL || *wanted == '\0' || strcmp(wanted, "none") == 0 ? NULL : wanted;
}

void settings_describe(const struct settings *settings, unsigned which, struct buf *out)
{
	const char *between = "";

	for (int id = 0; id < SETTING_COUNT; id++)
		if ((which >> id & 1) != 0 && settings->of[id].key != NULL) {
			if (*between == '\0')
				buf_printf(out, "%s sets ", settings->file);
			buf_printf(out, "%s%s = %s (line %d)", between, settings->of[id].key, settings->of[id].text,
				   settings->of[id].line);
			between = "; ";
		}
}
