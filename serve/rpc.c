#include "serve/rpc.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

bool rpc_id_text(const cJSON *id, char out[RPC_ID_BYTES])
{
	struct buf text = {0};
	int64_t number;

	if (cJSON_IsString(id))
		buf_json_string(&text, id->valuestring);
	else if (json_integer(id, &number))
		buf_printf(&text, "%" PRId64, number);
	bool fits = text.length > 0 && text.length < RPC_ID_BYTES;

	if (fits)
		memcpy(out, text.data, text.length + 1);
	buf_free(&text);
	return fits;
}

static enum rpc_code invalid(struct err *err, const char *message)
{
	err_set(err, "%s", message);
	return RPC_INVALID_REQUEST;
}

/* Reads a message without "method", which is a response to a request. reftest sends no requests, so responses are
 * ignored. */
static enum rpc_code read_response(struct rpc_message *out, struct err *err)
{
	if (json_member(out->tree, "result") == NULL && json_member(out->tree, "error") == NULL)
		return invalid(err, "the message has no \"method\"");
	out->kind = RPC_RESPONSE;
	return RPC_OK;
}

static enum rpc_code read_members(struct rpc_message *out, struct err *err)
{
	const cJSON *id = json_member(out->tree, "id"), *method = json_member(out->tree, "method");
	const char *version = json_text_of(out->tree, "jsonrpc");

	out->kind = id == NULL ? RPC_NOTIFICATION : RPC_REQUEST;
	if (id != NULL && !cJSON_IsNull(id) && !rpc_id_text(id, out->id))
		return invalid(err, "\"id\" must be a text of at most 190 bytes or a whole number");
	if (version == NULL || strcmp(version, "2.0") != 0)
		return invalid(err, "\"jsonrpc\" is \"2.0\"");
	if (method == NULL)
		return read_response(out, err);
	if (id != NULL && cJSON_IsNull(id))
		return invalid(err, "\"id\" must be a text or a whole number, not null");
	out->method = cJSON_GetStringValue(method);
	if (out->method == NULL)
		return invalid(err, "\"method\" is a text");
	out->params = json_member(out->tree, "params");
	if (out->params != NULL && !cJSON_IsObject(out->params) && !cJSON_IsArray(out->params))
		return invalid(err, "\"params\" is an object");
	return RPC_OK;
}

enum rpc_code rpc_read(const char *line, size_t length, struct rpc_message *out, struct err *err)
{
	const struct json_text text = {"the message", line, length, 1};

	*out = (struct rpc_message){.kind = RPC_REQUEST, .id = "null"};
	out->tree = json_parse(&text, err);
	if (out->tree == NULL)
		return RPC_PARSE_ERROR;
	if (cJSON_IsArray(out->tree))
		return invalid(err, "several messages in one array are not supported; send one object on each line");
	if (!cJSON_IsObject(out->tree))
		return invalid(err, "a message is a JSON object");
	return read_members(out, err);
}

void rpc_free(struct rpc_message *message)
{
	cJSON_Delete(message->tree);
	message->tree = NULL;
}

void rpc_result(struct buf *out, const char *id, const char *result)
{
	buf_text(out, "{\"jsonrpc\": \"2.0\", \"id\": ");
	buf_text(out, id);
	buf_text(out, ", \"result\": ");
	buf_text(out, result);
	buf_text(out, "}\n");
}

void rpc_error(struct buf *out, const char *id, enum rpc_code code, const char *message)
{
	buf_printf(out, "{\"jsonrpc\": \"2.0\", \"id\": %s, \"error\": {\"code\": %d, \"message\": ", id, (int)code);
	buf_json_string(out, message);
	buf_text(out, "}}\n");
}
