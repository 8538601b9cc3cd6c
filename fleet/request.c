#include "fleet/request.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "engine/definition_files.h"
#include "engine/expected_seconds.h"
#include "engine/remembered_seconds.h"

struct reading {
	struct json_text text;
	struct arena *arena;
	struct work_request *out;
	struct err *err;
};

static int expected(const struct reading *r, const char *key, const cJSON *found, const char *what)
{
	const struct json_step step = {.key = key};

	return json_expected(&r->text, &step, found, r->err, what);
}

/* Returns the text of a member. Returns NULL and sets the error if the member is not a text of 1 to `most` bytes. */
static const char *read_text(const struct reading *r, const cJSON *value, const char *key, size_t most,
			     const char *what)
{
	const char *text = cJSON_IsString(value) ? value->valuestring : NULL;

	if (text != NULL && text[0] != '\0' && strlen(text) <= most)
		return arena_string(r->arena, text);
	expected(r, key, value, what);
	return NULL;
}

static bool is_known(const char *key, const char *const *known)
{
	while (*known != NULL && strcmp(*known, key) != 0)
		known++;
	return *known != NULL;
}

/* Refuses members with unknown names: if a misspelt member were ignored, the request could select the wrong cases. */
static int check_members(const struct reading *r, const cJSON *object, const struct json_step *at,
			 const char *const *known)
{
	for (const cJSON *member = object->child; member != NULL; member = member->next) {
		const struct json_step step = {.up = at, .key = member->string};

		if (!is_known(member->string, known))
			return json_error_at(&r->text, &step, r->err, "unknown field '%s'", err_show(member->string).text);
	}
	return 0;
}

/* Returns whether a text is "op_type/name". Neither part may begin with a '.'. */
static bool is_definition(const char *text)
{
	const char *slash = strchr(text, '/');

	return slash != NULL && slash != text && slash[1] != '\0' && strchr(slash + 1, '/') == NULL && text[0] != '.' &&
	       slash[1] != '.';
}

static int read_definition(const struct reading *r, const cJSON *object)
{
	const cJSON *name = json_member(object, "definition"), *content = json_member(object, "content");
	static const char what[] = "the name of a definition, as in \"rmsnorm/rmsnorm_h4096\"";

	r->out->definition = read_text(r, name, "definition", REQUEST_NAME_MAX, what);
	if (r->out->definition == NULL)
		return -1;
	if (!is_definition(r->out->definition))
		return expected(r, "definition", name, what);
	if (!cJSON_IsString(content) || !digest_parse(content->valuestring, &r->out->content))
		return expected(r, "content", content, "the digest of the definition's files, 32 hexadecimal digits");
	return 0;
}

/* Reads one case, which is an object with the member "id". */
static int read_case(const struct reading *r, const cJSON *item, int index, const char **out)
{
	static const char *const known[] = {"id", "seconds", NULL};
	const struct json_step list = {.key = "cases"}, at = {.up = &list, .index = index};
	const struct json_step of_id = {.up = &at, .key = "id"};
	const cJSON *id = json_member(item, "id");

	if (!cJSON_IsObject(item))
		return json_expected(&r->text, &at, item, r->err, "an object with the \"id\" of a case");
	if (check_members(r, item, &at, known) < 0)
		return -1;
	if (!cJSON_IsString(id) || id->valuestring[0] == '\0' || strlen(id->valuestring) > REQUEST_CASE_MAX)
		return json_expected(&r->text, &of_id, id, r->err, "the id of a case, as in \"small:batch_size=1\"");
	*out = arena_string(r->arena, id->valuestring);
	return 0;
}

static int read_cases(const struct reading *r, const cJSON *list)
{
	int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0, at = 0;

	if (count < 1 || count > REQUEST_CASES_MAX)
		return expected(r, "cases", list, "a list of 1 to 16384 cases");
	const char **ids = arena_array(r->arena, (size_t)count + 1, sizeof *ids);
	const cJSON *item;

	cJSON_ArrayForEach(item, list) {
		if (read_case(r, item, at, &ids[at]) < 0)
			return -1;
		at++;
	}
	ids[at] = NULL;
	r->out->cases = ids;
	return 0;
}

static int read_which(const struct reading *r, const cJSON *object)
{
	const cJSON *whole = json_member(object, "whole"), *cases = json_member(object, "cases");

	if (whole != NULL && !cJSON_IsBool(whole))
		return expected(r, "whole", whole, "true or false");
	if (cases == NULL && !cJSON_IsTrue(whole))
		return json_error(&r->text, "", r->err, "the request names no cases; give \"cases\", or \"whole\": true");
	if (cases != NULL && read_cases(r, cases) < 0)
		return -1;
	if (cJSON_IsTrue(whole))
		r->out->cases = NULL;
	return 0;
}

static int read_request(const struct reading *r, const cJSON *object)
{
	static const char *const known[] = {"id", "definition", "content", "whole", "cases", NULL};
	const cJSON *id = json_member(object, "id");

	if (!cJSON_IsObject(object))
		return json_expected(&r->text, NULL, object, r->err, "a request, which is an object");
	if (id != NULL && (r->out->id = read_text(r, id, "id", REQUEST_ID_MAX, "a text of 1 to 128 bytes")) == NULL)
		return -1;
	if (check_members(r, object, NULL, known) < 0 || read_definition(r, object) < 0)
		return -1;
	return read_which(r, object);
}

int request_read(const char *line, size_t length, int64_t number, struct arena *arena, struct work_request *out,
		 struct err *err)
{
	const struct reading reading = {
	    .text = {.name = "request", .text = line, .length = length, .first_line = (int)(number & INT32_MAX)},
	    .arena = arena,
	    .out = out,
	    .err = err};

	*out = (struct work_request){.id = NULL};
	cJSON *object = json_parse(&reading.text, err);

	if (object == NULL)
		return -1;
	int rc = read_request(&reading, object);

	cJSON_Delete(object);
	return rc;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Returns whether the case would run without --dry-run. Such a case has a job but no verdict, because a dry run
 * executes nothing. */
static bool would_run(const struct case_result *c)
{
	return c->verdict == NULL && c->test->job != NULL;
}

bool request_write(struct result *result, struct buf *out)
{
	const struct case_options *options = &result->run->options->cases;
	int wanted = 0;
	char content[DIGEST_HEX];

	for (int i = 0; i < result->case_count; i++)
		wanted += would_run(&result->cases[i]);
	if (wanted == 0)
		return false;
	digest_hex(&result->inputs, content);
	buf_text(out, "{\"definition\": ");
	buf_json_string(out, result_name(result, &result->arena));
	/* with --case, the result has only some cases of the definition */
	buf_printf(out, ", \"content\": \"%s\", \"whole\": %s, \"cases\": [", content,
		   wanted == result->case_count && options->only == NULL ? "true" : "false");
	for (int i = 0; i < result->case_count; i++) {
		const struct case_result *c = &result->cases[i];

		if (!would_run(c))
			continue;
		buf_text(out, "{\"id\": ");
		buf_json_string(out, c->test->id);
		buf_text(out, ", \"seconds\": ");
		buf_json_number(out, expected_seconds(remembered_seconds(result, c), c->test->job->op, c->test->job));
		buf_text(out, --wanted > 0 ? "}, " : "}]}\n");
	}
	return true;
}
