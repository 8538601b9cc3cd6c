/* test_serve - checks the messages of `reftest serve`, and the command line that `reftest serve` makes from a call of
 * one of its tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "serve/rpc.h"
#include "serve/tools.h"

/* ---- messages ---- */

static void expect_read(const char *line, enum rpc_code code, const char *id, const char *method)
{
	struct rpc_message message;
	struct err err = {""};
	enum rpc_code found = rpc_read(line, strlen(line), &message, &err);

	if (found != code)
		fail_msg("%s: the code is %d and not %d: %s", line, (int)found, (int)code, err.text);
	if (strcmp(message.id, id) != 0)
		fail_msg("%s: the id is %s and not %s", line, message.id, id);
	assert_true((code == RPC_OK) == (err.text[0] == '\0'));
	if (method != NULL)
		assert_string_equal(message.method, method);
	rpc_free(&message);
}

static void messages_are_read(void **state)
{
	char long_id[400];

	(void)state;
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"ping\"}", RPC_OK, "7", "ping");
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": \"a\\n\", \"method\": \"ping\", \"params\": {}}", RPC_OK, "\"a\\n\"", "ping");
	expect_read("{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}", RPC_OK, "null", "notifications/initialized");
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": 1}", RPC_OK, "1", NULL);
	expect_read("{", RPC_PARSE_ERROR, "null", NULL);
	expect_read("{} {}", RPC_PARSE_ERROR, "null", NULL);
	expect_read("[]", RPC_INVALID_REQUEST, "null", NULL);
	expect_read("3", RPC_INVALID_REQUEST, "null", NULL);
	expect_read("{\"id\": 4, \"method\": \"ping\"}", RPC_INVALID_REQUEST, "4", NULL);
	expect_read("{\"jsonrpc\": \"1.0\", \"id\": 4, \"method\": \"ping\"}", RPC_INVALID_REQUEST, "4", NULL);
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": 4}", RPC_INVALID_REQUEST, "4", NULL);
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": 1}", RPC_INVALID_REQUEST, "4", NULL);
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": \"ping\", \"params\": 1}", RPC_INVALID_REQUEST, "4", NULL);
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"ping\"}", RPC_INVALID_REQUEST, "null", NULL);
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"ping\"}", RPC_INVALID_REQUEST, "null", NULL);
	expect_read("{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"ping\"}", RPC_INVALID_REQUEST, "null", NULL);
	snprintf(long_id, sizeof long_id, "{\"jsonrpc\": \"2.0\", \"id\": \"%0300d\", \"method\": \"ping\"}", 0);
	expect_read(long_id, RPC_INVALID_REQUEST, "null", NULL);
}

static void responses_are_lines(void **state)
{
	struct buf out = {0};

	(void)state;
	rpc_result(&out, "7", "{}");
	rpc_error(&out, "\"a\"", RPC_BUSY, "a \"text\"\n");
	assert_string_equal(out.data, "{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}\n"
				      "{\"jsonrpc\": \"2.0\", \"id\": \"a\", \"error\": {\"code\": -32000, "
				      "\"message\": \"a \\\"text\\\"\\n\"}}\n");
	buf_free(&out);
}

/* ---- tools ---- */

/* Checks the command line of a call, as words that are separated by spaces. If the call is refused, checks the
 * message. */
static void expect_words(const char *tool, const char *arguments, const char *expected)
{
	const struct json_text text = {"arguments", arguments, strlen(arguments), 1};
	struct arena arena = {0};
	struct err err = {""};
	cJSON *json = json_parse(&text, &err);
	char **argv;
	const char *words = "";

	assert_non_null(json);
	int argc = tools_command_line(tools_find(tool), json, &arena, &argv, &err);

	for (int i = 0; i < argc; i++)
		words = arena_printf(&arena, "%s%s%s", words, i > 0 ? " " : "", argv[i]);
	assert_string_equal(argc < 0 ? err.text : words, expected);
	cJSON_Delete(json);
	arena_free(&arena);
}

static void a_call_is_a_command_line(void **state)
{
	(void)state;
	expect_words("status", "{}", "status --format=json --no-cases --");
	expect_words("status", "{\"names\": [\"a\", \"--force\"], \"op_types\": [\"gemm\", \"moe\"]}",
		     "status --format=json --no-cases --op-type=gemm --op-type=moe -- a --force");
	expect_words("status", "{\"names\": [\"a\"], \"cases\": true}", "status --format=json --no-cases --cases -- a");
	expect_words("verify", "{\"names\": [\"a\"], \"sizes\": \"small\", \"tolerance\": [\"1e-3\"], \"seed\": 3, \"edge\": true, \"force\": false}",
		     "verify --sizes=small --tolerance=1e-3 --seed=3 --edge -- a");
	expect_words("verify_text", "{\"definition\": \"{}\", \"case\": \"x y\"}", "verify_text --case=x y -- {}");
	expect_words("diff", "{\"names\": [\"a\"], \"commit\": \"HEAD~1\"}", "diff --format=json -- HEAD~1 a");
	expect_words("explain", "{\"names\": []}", "explain --");
	expect_words("explain", "{}", "the tool explain needs the argument \"names\"");
	expect_words("status", "{\"name\": \"a\"}", "the tool status has no argument \"name\"; did you mean \"names\"?");
	expect_words("status", "{\"names\": \"a\"}", "the argument \"names\" must be a list of at most 1000 texts");
	expect_words("status", "{\"names\": [1]}", "the argument \"names\" must be a list of at most 1000 texts");
	expect_words("verify", "{\"seed\": -1}", "the argument \"seed\" must be a whole number of at least 0");
	expect_words("verify", "{\"edge\": 1}", "the argument \"edge\" must be true or false");
	expect_words("verify", "{\"sizes\": null}", "the argument \"sizes\" must be a text");
	expect_words("verify", "[]", "\"arguments\" is an object");
	assert_null(tools_find("shell"));
}

static bool has_option(const struct command *command, const char *option)
{
	for (int i = 0; i < command->row_count; i++)
		if (strcmp(option_word(&command->rows[i]), option) == 0)
			return true;
	return false;
}

/* Each argument of a tool is an option of the command that the tool runs. The tool verify_text has the options of
 * `verify`. */
static void arguments_are_options(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct tool *tool;

	(void)state;
	for (int i = 0; (tool = tools_at(i)) != NULL; i++) {
		const struct command *command =
		    command_named(strcmp(tool->name, "verify_text") == 0 ? "verify" : tool->words[0], &arena, &err);

		assert_non_null(command);
		for (int k = 0; k < TOOL_ARGUMENTS && tool->arguments[k].name != NULL; k++)
			if (tool->arguments[k].option != NULL && !has_option(command, tool->arguments[k].option))
				fail_msg("%s has no option %s", command->name, tool->arguments[k].option);
	}
	arena_free(&arena);
}

static void the_list_is_json_with_a_schema_for_each_tool(void **state)
{
	struct buf out = {0};
	struct err err = {""};

	(void)state;
	tools_write_list(&out);
	const struct json_text text = {"list", out.data, out.length, 1};
	cJSON *json = json_parse(&text, &err);
	int count = 0;

	assert_non_null(json);
	for (const cJSON *tool = json_member(json, "tools")->child; tool != NULL; tool = tool->next, count++) {
		const cJSON *schema = json_member(tool, "inputSchema");

		assert_non_null(tools_find(json_text_of(tool, "name")));
		assert_non_null(json_text_of(tool, "description"));
		assert_string_equal(json_text_of(schema, "type"), "object");
		assert_true(cJSON_IsFalse(json_member(schema, "additionalProperties")));
		for (const cJSON *property = json_member(schema, "properties")->child; property != NULL; property = property->next)
			assert_true(json_text_of(property, "type") != NULL && json_text_of(property, "description") != NULL);
	}
	assert_null(tools_at(count));
	assert_non_null(tools_at(count - 1));
	cJSON_Delete(json);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(messages_are_read),
	    cmocka_unit_test(responses_are_lines),
	    cmocka_unit_test(a_call_is_a_command_line),
	    cmocka_unit_test(arguments_are_options),
	    cmocka_unit_test(the_list_is_json_with_a_schema_for_each_tool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
