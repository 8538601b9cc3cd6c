#include "engine/settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "workers/sandbox/containment.h"
#include "workers/sandbox/sandbox.h"

enum { SETTINGS_BYTES = 64 << 10 };

static const char name[] = "reftest.json", required_key[] = "require_containment", truth_key[] = "ground_truth";

static int wrong_containment(const struct json_text *text, const cJSON *found, int index, struct err *err)
{
	const struct json_step list = {.key = required_key}, item = {.up = &list, .index = index};

	return json_expected(text, index < 0 ? &list : &item, found, err,
			     index < 0 ? "\"full\", or a list of names of gaps" : "the name of a gap, as `files`");
}

/* Reads "full", or a list of names, as the text that containment_suffices takes. */
static int read_required(const struct json_text *text, const cJSON *value, struct program *program, struct err *err)
{
	size_t used = 0;
	int index = 0;

	if (cJSON_IsString(value) && strcmp(value->valuestring, "full") == 0) {
		snprintf(program->required, sizeof program->required, "full");
		return 0;
	}
	if (!cJSON_IsArray(value))
		return wrong_containment(text, value, -1, err);
	for (const cJSON *item = value->child; item != NULL; item = item->next, index++) {
		if (!cJSON_IsString(item) || sandbox_gap_named(item->valuestring) == NULL ||
		    used + strlen(item->valuestring) + 2 > sizeof program->required)
			return wrong_containment(text, item, index, err);
		used += (size_t)snprintf(program->required + used, sizeof program->required - used, "%s%s",
					 used > 0 ? "," : "", item->valuestring);
	}
	return 0;
}

/* Reads the text of --ground-truth. A dataset can add ground truths to those of reftest, but not replace them. */
static int read_truth(const struct json_text *text, const cJSON *value, struct program *program, struct err *err)
{
	const struct json_step at = {.key = truth_key};
	const char *names = cJSON_GetStringValue(value);

	size_t first = names != NULL ? strcspn(names, ",") : 0;

	if (names == NULL || !((first == 4 && strncmp(names, "auto", 4) == 0) || (first == 3 && strncmp(names, "all", 3) == 0)))
		return json_expected(text, &at, value, err, "\"auto\" or \"all\", and names after commas, as \"auto,solution\"");
	if (strlen(names) >= sizeof program->ground_truth)
		return json_error_at(text, &at, err, "the text is too long");
	snprintf(program->ground_truth, sizeof program->ground_truth, "%s", names);
	return 0;
}

static int read_members(const struct json_text *text, const cJSON *json, struct program *program, struct err *err)
{
	if (!cJSON_IsObject(json))
		return json_expected(text, NULL, json, err, "an object with settings");
	for (const cJSON *member = json->child; member != NULL; member = member->next) {
		const struct json_step at = {.key = member->string};

		int rc = strcmp(member->string, required_key) == 0 ? read_required(text, member, program, err)
			 : strcmp(member->string, truth_key) == 0  ? read_truth(text, member, program, err)
			 /* a misspelt setting would silently not hold */
								   : json_error_at(text, &at, err,
										   "unknown setting \"%s\"; there are \"%s\" and \"%s\"",
										   err_show(member->string).text, required_key, truth_key);

		if (rc != 0)
			return -1;
	}
	return 0;
}

int settings_read(struct program *program, struct err *err)
{
	struct buf bytes = {0};
	int root = open(program->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	program->required[0] = program->ground_truth[0] = '\0';
	if (root < 0)
		return 0; /* a dataset that only git's index has */
	enum file_answer answer = file_read(root, name, SETTINGS_BYTES, &bytes, NULL, err);

	close(root);
	if (answer == FILE_OK) {
		const struct json_text text = {name, bytes.data, bytes.length, 1};
		cJSON *json = json_parse(&text, err);

		rc = json == NULL ? -1 : read_members(&text, json, program, err);
		cJSON_Delete(json);
	} else if (answer != FILE_ABSENT) {
		rc = -1;
	}
	buf_free(&bytes);
	return rc;
}

const char *settings_required(const struct program *program, const char *option)
{
	const char *wanted = option != NULL ? option : program->required;

	return *wanted == '\0' || strcmp(wanted, "none") == 0 ? NULL : wanted;
}
