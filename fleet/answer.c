#include "fleet/answer.h"

#include <string.h>

#include "base/json.h"
#include "engine/definition_files.h"

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void add_seconds(struct buf *out, double seconds)
{
	buf_text(out, ", \"seconds\": ");
	buf_json_number(out, seconds);
}

static const char *signature_word(const struct signing_key *signer)
{
	if (signer == NULL || !signing_key_signs(signer))
		return NULL;
	return signing_key_kind(signer) == SIGNING_KEY_ED25519 ? "ed25519" : "hmac";
}

void answer_write_worker(struct buf *out, const struct worker_facts *facts)
{
	const struct policy *policy = &facts->machine->policy;

	buf_text(out, "{\"event\": \"worker\"");
	buf_json_next_member(out, "checker", facts->program->kernels.api->checker_digest);
	buf_json_next_member(out, "device", policy->device);
	buf_json_next_member(out, "device_class", policy->device_class);
	buf_json_next_member(out, "torch", policy->torch);
	buf_json_next_member(out, "cuda", policy->cuda);
	buf_printf(out, ", \"requests\": %d", facts->requests);
	buf_json_next_member(out, "signature", signature_word(facts->signer));
	buf_text(out, "}\n");
}

static void add_case(struct buf *out, const struct case_result *c)
{
	const struct verdict *v = c->verdict;

	buf_text(out, "{\"id\": ");
	buf_json_string(out, c->test->id);
	buf_json_next_member(out, "status", v != NULL ? status_name(v->status) : "unknown");
	buf_json_next_member(out, "reason", v != NULL ? reason_name(v->reason) : NULL);
	buf_json_next_member(out, "message", v != NULL ? v->message : NULL);
	add_seconds(out, v != NULL ? v->seconds : 0);
	buf_printf(out, ", \"stored\": %s}", c->in_store ? "true" : "false");
}

void answer_write_result(struct buf *out, const char *id, const struct result *result, const struct buf *verdicts)
{
	struct arena arena = {0};

	buf_text(out, "{\"event\": \"answer\"");
	buf_json_next_member(out, "id", id);
	buf_json_next_member(out, "checker", result->run->program->kernels.api->checker_digest);
	buf_json_next_member(out, "definition", result_name(result, &arena));
	buf_json_next_member(out, "status", result->known ? status_name(result->status) : "unknown");
	buf_json_next_member(out, "reason", reason_name(result->reason));
	buf_json_next_member(out, "message", result->message != NULL ? result->message : result->outside);
	add_seconds(out, result->seconds);
	buf_text(out, ", \"cases\": [");
	for (int i = 0; i < result->case_count; i++) {
		buf_text(out, i > 0 ? ", " : "");
		add_case(out, &result->cases[i]);
	}
	buf_text(out, "], \"verdicts\": [");
	buf_add(out, verdicts->data, verdicts->length);
	buf_text(out, "]}\n");
	arena_free(&arena);
}

void answer_write_error(struct buf *out, const char *id, const char *message)
{
	buf_text(out, "{\"event\": \"error\"");
	buf_json_next_member(out, "id", id);
	buf_json_next_member(out, "message", message);
	buf_text(out, "}\n");
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int read_verdicts(const struct json_text *text, const cJSON *list, struct arena *arena, struct answer *out,
			 struct err *err)
{
	const struct json_step step = {.key = "verdicts"};
	int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
	const cJSON *item;

	if (!cJSON_IsArray(list) || count > ANSWER_VERDICTS_MAX)
		return json_expected(text, &step, list, err, "a list of verdicts");
	const char **verdicts = arena_array(arena, (size_t)count + 1, sizeof *verdicts);

	cJSON_ArrayForEach(item, list) {
		const struct json_step at = {.up = &step, .index = out->verdict_count};

		if (!cJSON_IsString(item))
			return json_expected(text, &at, item, err, "a verdict, which is a string");
		verdicts[out->verdict_count++] = arena_string(arena, item->valuestring);
	}
	out->verdicts = verdicts;
	return 0;
}

static int read_answer(const struct json_text *text, const cJSON *object, struct arena *arena, struct answer *out,
		       struct err *err)
{
	const char *event = json_text_of(object, "event"), *id = json_text_of(object, "id");
	const char *checker = json_text_of(object, "checker");

	out->id = id != NULL ? arena_string(arena, id) : NULL;
	if (event != NULL && strcmp(event, "error") == 0)
		return 0;
	if (event == NULL || (strcmp(event, "worker") != 0 && strcmp(event, "answer") != 0))
		return json_error(text, "", err, "this is not a line that `reftest work` writes");
	if (checker == NULL)
		return json_error(text, "", err, "the line does not say which build made it (\"checker\" is missing)");
	out->checker = arena_string(arena, checker);
	return strcmp(event, "worker") == 0 ? 0 : read_verdicts(text, json_member(object, "verdicts"), arena, out, err);
}

int answer_read(const char *line, size_t length, int64_t number, struct arena *arena, struct answer *out,
		struct err *err)
{
	const struct json_text text = {
	    .name = "answer", .text = line, .length = length, .first_line = (int)(number & INT32_MAX)};

	*out = (struct answer){.id = NULL};
	cJSON *object = json_parse(&text, err);

	if (object == NULL)
		return -1;
	int rc = read_answer(&text, object, arena, out, err);

	cJSON_Delete(object);
	return rc;
}
